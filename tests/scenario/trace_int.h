/* What the trace checks share: what was seen of each connection and group, from one host's view. */
#ifndef SMCRD_SCENARIO_TRACE_INT_H
#define SMCRD_SCENARIO_TRACE_INT_H

#include "base/list.h"
#include "tests/scenario/plan.h"
#include "tests/scenario/trace.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"

#define TRACE_BUCKETS 256
#define TRACE_LLC_TYPES 16

struct watcher {
	struct trace *t;
	struct smcr *eng;
	unsigned host;
	bool rfc_cursors;
};

struct trace {
	struct world *w;
	bool faulty; /* links may break */
	struct watcher watcher[PLAN_HOSTS_MAX];
	struct list_node conns[TRACE_BUCKETS];
	struct list_node groups;
};

/* An RMB element as one side named it in its Accept or Confirm. */
struct elem {
	bool known;
	uint32_t rkey;
	uint64_t vaddr;
	uint8_t idx;
	uint32_t size;
	uint32_t token;
};

/* One direction of CDC messages. */
struct cdc_seen {
	bool any;
	uint16_t seq;
	uint64_t prod, cons; /* as positions */
	uint8_t prod_flags, conn_flags;
};

struct tconn {
	struct list_node node;
	unsigned host;
	uint32_t id;
	bool client;
	bool first_contact;
	bool proposal, accept, confirm; /* went by, in their direction */
	bool declined;
	bool middle_ended;
	bool peer_reused; /* the peer gave its element to somebody else: it is through with us */
	struct elem mine, peers;
	struct cdc_seen out, in;
	uint8_t asked; /* producer flags of the peer since our last message, and at it */
};

/* A link group: one link so far. */
struct tgroup {
	struct list_node node;
	unsigned host;
	uint32_t id;
	uint32_t req_in[TRACE_LLC_TYPES], rsp_in[TRACE_LLC_TYPES];
	uint32_t req_out[TRACE_LLC_TYPES], rsp_out[TRACE_LLC_TYPES];
	bool confirmed; /* the CONFIRM LINK exchange is through */
	bool no_eyecatcher_in, no_eyecatcher_out;
	bool deleted; /* DELETE LINK for all went out */
	bool cdc;     /* a CDC message went by */
};

void trace_bad(const struct watcher *, const struct tconn *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct tconn *trace_conn(const struct watcher *, uint32_t id, bool make);
struct tgroup *trace_group(const struct watcher *, uint32_t id);
/* Both sides have said that they are through, or the connection never came to be. */
bool trace_conn_over(const struct tconn *);

void trace_clc(const struct watcher *, const struct smcr_trace *, struct tconn *);
void trace_cdc(const struct watcher *, const struct smcr_trace *, struct tconn *);
void trace_llc(const struct watcher *, const struct smcr_trace *, struct tgroup *);

#endif
