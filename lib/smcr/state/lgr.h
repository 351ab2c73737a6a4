/*
 * A link group (RFC 7609 2.2): links, RMBs of both sides, connections, and the
 * LLC exchanges that change its configuration. Owned by the engine, made and
 * ended by group/lgr.c; freed at the end of a turn after lgr_down, when every
 * connection has let go of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "smcr/smcr.h"
#include "smcr/state/dialect.h"
#include "smcr/state/link.h"
#include "smcr/state/marks.h"
#include "wire/clc.h"
#include "wire/llc.h"

struct rmb;

#define SNDBUF_SIZES 16

enum lgr_state {
	LGR_FORMING, /* first contact goes on */
	LGR_ACTIVE,
	LGR_DELETING, /* never offered; ends when DELETE LINK is through */
	LGR_DEAD,     /* freed at the end of the turn in which nobody has it, see lgr_free */
	LGR_STATE_CNT,
};

/* Whose a group is (group/owner.h). */
struct owner {
	uint8_t peer_id[8]; /* what it calls itself */
	/* of a client whose Proposal names no peer id, as it offers version 2 alone: its RoCE v2 port stands in for it. Else 0 */
	uint8_t gid[16];
	struct smcr_identity remote; /* who it is, as far as anybody knows */
};

/* What both ends agreed on at first contact in version 2, and what the peer told. Zero in version 1. */
struct lgr_terms {
	struct clc_eid eid;
	uint8_t release;
	uint8_t max_conns; /* release 1: limits, as they go into the Confirm */
	uint8_t max_links;
	uint8_t peer_os; /* enum clc_os */
	uint8_t peer_host[CLC_HOST_LEN];
	uint8_t peer_gid_cnt; /* server: the client's RoCE v2 ports, that of the first link among them */
	uint8_t peer_gids[CLC_MAX_GIDS][CLC_GID_LEN];
};

/*
 * LLC exchanges (RFC 7609 3.3, 3.5.5, C.7). At most one of each kind runs in a group, and neither starts while the other
 * runs (3.5.5.3).
 */
enum llc_flow_kind {
	LLC_FLOW_LINK, /* CONFIRM LINK / ADD LINK / DELETE LINK: changes the links */
	LLC_FLOW_RKEY, /* our CONFIRM RKEY or DELETE RKEY; the peer's may overlap */
	LLC_FLOW_CNT,
};

enum llc_step {
	LLC_IDLE,
	/* LLC_FLOW_LINK: first contact */
	LLC_WAIT_CONFIRM_LINK,     /* client: CONFIRM LINK request awaited */
	LLC_WAIT_CONFIRM_LINK_RSP, /* server */
	LLC_WAIT_ADD_LINK,         /* client */
	LLC_WAIT_PEER_DECLINE, /* the first link was lost while another was being added: the client has to decline */
	/* a new link, server */
	LLC_WAIT_ADD_LINK_RSP,
	LLC_WAIT_ADD_CONT_RSP,
	LLC_WAIT_NEW_CONNECTED, /* its queue pair */
	LLC_WAIT_NEW_CONFIRM_RSP,
	/* a new link, client */
	LLC_CONNECT_NEW, /* its queue pair; the answer to ADD LINK follows */
	LLC_WAIT_ADD_CONT,
	LLC_WAIT_NEW_CONFIRM,
	/* the end of a link */
	LLC_DRAIN_LINK,           /* its connections are moving away; then DELETE LINK or its answer follows */
	LLC_WAIT_DELETE_LINK_RSP, /* server */
	/* the end of all */
	LLC_WAIT_DELETE_LINK_SENT, /* DELETE LINK for all is out: its completion awaited */
	LLC_WAIT_DELETE_LINK,      /* client asked for the end of the group: the server's DELETE LINK awaited */
	/* LLC_FLOW_RKEY */
	LLC_WAIT_CONFIRM_RKEY_RSP,
	LLC_WAIT_DELETE_RKEY_RSP,
	LLC_STEP_CNT,
};

struct llc_flow {
	enum llc_step step;
	struct lgr *lgr;
	struct link *link;     /* over which it runs */
	struct link *new_link; /* LLC_FLOW_LINK: the one that is being added */
	struct link *gone;     /* LLC_FLOW_LINK: the one that is being deleted */
	uint8_t number;        /* ADD LINK: number of the new link, though it may have failed already */
	bool cont_seen;        /* ADD LINK CONTINUATION: the peer's count is known */
	uint8_t peer_left;     /* and so many of its RTokens are to come */
	uint32_t sent;         /* of ours, by rmb->number, up to this one */
	struct rmb *rmb;       /* LLC_FLOW_RKEY */
	bool deleting_new;     /* DELETE RKEY: the peer may not know it */
	bool overtaken;        /* CONFIRM RKEY: RTokens for a new link, over another one, may have come first */
	unsigned next_slot;    /* CONFIRM RKEY: links that it has not named yet start here */
	uint8_t left;          /* CONFIRM RKEY, ADD LINK CONTINUATION: what we have still to tell */
	struct timer timer;
};

/* First contact, while the group is forming (3.5.1). */
struct lgr_contact {
	struct smcr_conn *conn;        /* whose rendezvous makes the group */
	struct rnic_gid proposed_from; /* server: the client's RNIC, as its Proposal has it */
	bool confirm_link_out;         /* our CONFIRM LINK is sent: no Decline of ours may follow (C.2) */
	bool confirm_link_in;          /* server: our CONFIRM LINK has arrived at the client */
};

/* The last loss of a link with connections on it (data/failover.c), for an operator. */
struct failover {
	int64_t began_ns; /* 0 = none yet */
	int64_t took_ns;  /* until the peer had heard of every connection's move */
	const char *why;
	uint32_t moved;
	uint32_t left; /* have not resumed yet */
};

struct lgr {
	struct list_node node; /* engine's groups */
	struct smcr *eng;
	uint32_t id;
	enum smcr_role role;
	enum lgr_state state;
	struct lgr_marks marks;
	const char *down_why;
	const char *delete_why;
	uint32_t delete_reason;
	bool end_wanted;  /* server: the client is through with it; not offered, ends when ours are gone */
	unsigned version; /* of SMC: 1 or 2; known before the first link is made */
	struct dialect dialect;
	struct lgr_terms terms;
	bool rfc_cursors; /* what we say in CONFIRM LINK: the configuration when the group was made */
	bool eye_catcher; /* RFC cursors: the peer's CONFIRM LINK lacked the flags */
	struct owner owner;
	uint8_t peer_id[8]; /* as the peer calls itself; of version 2 a client may do so in its Confirm first */
	uint16_t vlan;      /* of the devices of all of its links (2, 5.1) */
	char peer_key[64];  /* client */
	uint64_t token;     /* secret of both ends: iWARP connections show it, and the server's Accepts (owner.h) */
	int64_t born_ns;
	int64_t active_ns;     /* since when; 0: not yet */
	int64_t idle_since_ns; /* while it is unused */
	int64_t joined_ns;     /* when a rendezvous has last led to it; 0: never */
	struct lgr_contact contact;

	struct link links[LINK_SLOTS];
	unsigned link_cnt; /* neither LINK_FREE nor LINK_GONE */
	unsigned active_cnt;
	uint8_t next_link_number;
	uint32_t links_made;    /* so far: their order */
	uint8_t links_limit;    /* symmetric links: the smaller of both sides'; 0: not known yet */
	uint8_t conns_limit;    /* connections: the smaller of both sides' */
	bool want_link;         /* another link is to be tried; a client asks for it */
	struct timer add_retry; /* server: ADD LINK again; client: the server hears again of an idle device (C.8) */
	uint32_t add_retry_ms;  /* 0: the last attempt went well */
	bool add_rejected;      /* server: the last attempt was, and the client has not told of a device since */
	int64_t add_due_ns;     /* by when the offers of links so far are worked off (llc_offer_due) */
	/* Server: a REQUEST ADD LINK that came over this link is owed an ADD LINK or an answer, over any link when that one has
	 * ended; 0: none. */
	uint8_t asked_over;
	int64_t fyi_due_ns;                /* server: from when the client may say again that it has a device */
	struct timer rkey_retry;           /* the peer refused our CONFIRM RKEY because of another exchange */
	struct llc_delete_link delete_req; /* client: the server's, to be answered when the link is drained */
	struct failover failover;
	struct timer moves; /* a lost link is deleted, and the peer's connections may be moving */

	struct list_node rmbs;
	struct list_node dead_rmbs; /* freed once links that are leaving are through with them */
	uint32_t rmb_cnt, rmb_next_number;
	uint64_t rmb_bytes;
	uint32_t quarantined; /* elements of all RMBs (rmb.h) */
	struct list_node remote_rmbs;
	uint32_t remote_rmb_cnt, remote_next_number;

	struct list_node sndbuf_slabs;
	/* By size (sndbuf.c); last in, first out: warm pages first; at the end those parked. */
	struct list_node sndbuf_free[SNDBUF_SIZES];
	uint64_t sndbuf_bytes;
	uint32_t sndbuf_cnt, sndbuf_lent;
	bool sndbuf_waiting; /* there may be connections with tx.ring_short */

	struct list_node conns; /* all connections that hold elements of the group */
	uint32_t conn_cnt;
	uint32_t reader_cnt; /* connections that have left it, and read on in an element (conn_end) */
	uint32_t rdv_cnt;    /* rendezvous that have the group as rdv->lgr */

	struct list_node wait_rmb; /* rdv->wait of connections that wait for a new RMB to be confirmed */
	struct llc_flow flow[LLC_FLOW_CNT];
	struct remote_rmb *cont_rmb; /* the peer's CONFIRM RKEY that goes on in CONTINUATIONs */
	uint8_t cont_left;
	struct timer cont_timer; /* and how long for its next one is waited */
	struct timer idle;
	struct timer rmb_idle;
};

/* The links of a group in the order of their slots, those that are free included. */
#define LGR_EACH_LINK(l, lgr) for (__typeof__(&(lgr)->links[0]) l = (lgr)->links; l < (lgr)->links + LINK_SLOTS; l++)

/* The only place where the state changes: asserts that the change is a legal one (FORMING -> ACTIVE -> DELETING -> DEAD, DEAD
 * from any) and writes it to the log at level debug. why is static text or NULL. */
void lgr_set_state(struct lgr *, enum lgr_state, const char *why);
const char *lgr_state_str(enum lgr_state);
/* The same for the step of an exchange. */
void llc_flow_set_step(struct llc_flow *, enum llc_step);
/* An active link for a connection's sending: the one with the fewest connections, not a suspect or a retiring one when
 * there is another; NULL when there is none. */
struct link *lgr_pick_link(struct lgr *);
/* The link of this number that is set up, active or lost; NULL when the group has none. */
struct link *lgr_link_by_number(struct lgr *, uint8_t number);
/* All of its active links are suspect: nothing is to be begun over them. */
bool lgr_is_silent(const struct lgr *);
/* Connections at most, as both ends agreed and we are set to. */
uint32_t lgr_conns_max(const struct lgr *);
/* No connections, and none waits for an RMB. */
bool lgr_unused(const struct lgr *);
