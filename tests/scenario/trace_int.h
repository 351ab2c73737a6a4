/* Shared by the trace checks: the messages seen of each connection and group, from one host's view. */
#pragma once

#include "base/list.h"
#include "tests/scenario/plan.h"
#include "tests/scenario/trace.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"

#define TRACE_BUCKETS 256
#define TRACE_LLC_TYPES 16
#define TRACE_GRANTS 128

struct watcher {
	struct trace *t;
	unsigned host;
};

struct host;
struct script_run;

struct trace {
	const struct host *hosts;
	struct world *w;
	struct script_run *script; /* hears of what is sent; may be NULL */
	bool faulty;               /* links may break */
	unsigned kept;             /* bytes of an element that are not written to, as a rule: of Linux (tx.c) */
	bool hostile;              /* groups are judged only when they are known to be honest */
	int64_t llc_ns;            /* an answer is awaited for so long */
	int64_t queued_ns;         /* a message may wait so long for its turn and for room */
	struct watcher watcher[PLAN_HOSTS_MAX];
	struct list_node conns[TRACE_BUCKETS];
	struct list_node groups;
	struct list_node aliases[TRACE_BUCKETS]; /* struct talias by rkey */
};

/* An RMB has an rkey on each link; all mean the one it was known by first. */
struct talias {
	struct list_node node;
	uint32_t rkey, first;
};

/* An RMB element as one side named it in its Accept or Confirm. */
struct elem {
	bool known;
	uint32_t rkey; /* the RMB's first */
	uint8_t idx;
	uint32_t size;
	uint32_t token;
};

/* One direction of CDC messages. */
struct cdc_seen {
	bool any;
	uint16_t seq;
	uint64_t prod, cons; /* as positions, with what was skipped */
	uint8_t prod_flags, conn_flags;
	uint8_t link;     /* number; behind an F it is another one */
	uint32_t deleted; /* links of the group by then, as DELETE LINK said */
};

struct tconn {
	struct list_node node;
	unsigned host;
	uint32_t id;
	bool hostile; /* its peer lies: it is not judged */
	bool client;
	bool first_contact;
	bool granted;                   /* to the client, which may open it over a link */
	bool proposal, accept, confirm; /* went by, in their direction */
	bool declined, mine_declined;
	bool middle_ended;
	bool knows_start_over; /* both sides say so */
	bool said_start_over;  /* our last message did */
	bool
	    peer_through; /* though the connection had ended here: the peer said C or A late, or its element is another's or gone */
	struct elem mine, peers;
	struct cdc_seen out, in;
	uint8_t asked; /* producer flags of the peer since our last message, and at it */
};

/* The exchange that changes the links (3.5.5.3), as one side knows of it. */
struct texchange {
	enum { EX_NONE, EX_ADD, EX_DELETE } kind;
	uint8_t link_num; /* the link that is added or deleted */
	uint8_t over;     /* and the one that carries the messages */
	int64_t from_ns;  /* what was queued before it became known may still go */
	int64_t until_ns; /* a waiter for an answer gives up then */
	bool confirming;  /* CONFIRM LINK was asked for over the new link */
};

struct tgroup {
	struct list_node node;
	unsigned host;
	uint32_t id;
	bool honest; /* hostile runs: a connection of honest hosts is in it */
	uint32_t req_in[TRACE_LLC_TYPES], rsp_in[TRACE_LLC_TYPES];
	uint32_t req_out[TRACE_LLC_TYPES], rsp_out[TRACE_LLC_TYPES];
	uint8_t test_open[256]; /* TEST LINK requests of ours without an answer, by link number */
	bool rkey_open;         /* a CONFIRM RKEY or DELETE RKEY of ours is not answered, over this link */
	uint8_t rkey_over;
	int64_t rkey_until_ns; /* it may be given up then, and restarted */
	uint8_t peer_deletes[LLC_MAX_DELETE_RKEYS_V2 *
	    LLC_RKEY_LEN]; /* the keys of the last DELETE RKEY request received */
	struct texchange exchange;
	bool no_eyecatcher_in, no_eyecatcher_out;
	int64_t end_asked_ns;            /* DELETE LINK for all came in: what was queued may go until then */
	int64_t lost_told_ns[256];       /* by link number: when a client's word came that the link is lost; 0: never */
	struct elem grant[TRACE_GRANTS]; /* by the server, not used yet */
	unsigned grant_cnt;
	bool deleted; /* DELETE LINK for all went out */
	bool cdc;     /* a CDC message went by */
};

void trace_bad(const struct watcher *, const struct tconn *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct tconn *trace_conn(const struct watcher *, uint32_t id, bool make);
struct tgroup *trace_group(const struct watcher *, uint32_t id);
/* The RMB's first rkey. */
uint32_t trace_first_rkey(const struct trace *, uint32_t rkey);
void trace_alias(struct trace *, uint32_t rkey, uint32_t known_as);
/* Both sides have said that they are through, or the connection never came to be. */
bool trace_conn_over(const struct tconn *);

/* An element that this host names now may not belong to another connection. */
void trace_check_mine(const struct watcher *, struct tconn *);
/* An element that the peer names now: its last user here is notified. */
void trace_note_peers(const struct watcher *, const struct tconn *);

/* False: another LLC message. */
bool trace_open(const struct watcher *, const struct smcr_trace *, struct tgroup *);
void trace_clc(const struct watcher *, const struct smcr_trace *, struct tconn *);
void trace_cdc(const struct watcher *, const struct smcr_trace *, struct tconn *);
/* One that came for a connection that is gone. */
void trace_late_cdc(const struct watcher *, const struct smcr_trace *);
void trace_llc(const struct watcher *, const struct smcr_trace *, struct tgroup *);
