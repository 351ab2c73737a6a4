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
#include "smcr/state/link.h"
#include "smcr/state/llc_flow.h"
#include "smcr/state/marks.h"
#include "wire/llc.h"

enum lgr_state {
	LGR_FORMING, /* first contact goes on */
	LGR_ACTIVE,
	LGR_DELETING, /* never offered; ends when DELETE LINK is through */
	LGR_DEAD,     /* freed at the end of the turn in which nobody has it, see lgr_free */
	LGR_STATE_CNT,
};

/* Whose a group is (group/owner.h). */
struct owner {
	uint8_t peer_id[8];          /* what it calls itself */
	struct smcr_identity remote; /* who it is, as far as anybody knows */
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
	unsigned version; /* SMC version: 1 */
	bool rfc_cursors; /* what we say in CONFIRM LINK: the configuration when the group was made */
	bool eye_catcher; /* RFC cursors: the peer's CONFIRM LINK lacked the flags */
	struct owner owner;
	uint16_t vlan;     /* of the devices of all of its links (2, 5.1) */
	char peer_key[64]; /* client */
	uint64_t token;    /* secret of both ends: MPA connections show it, and the server's Accepts (owner.h) */
	int64_t born_ns;
	int64_t idle_since_ns; /* while it is unused */
	struct lgr_contact contact;

	struct link links[LINK_SLOTS];
	unsigned link_cnt; /* neither LINK_FREE nor LINK_GONE */
	unsigned active_cnt;
	uint8_t next_link_number;
	uint32_t links_made;     /* so far: their order */
	uint8_t links_limit;     /* symmetric links: the smaller of both sides' */
	bool want_link;          /* another link is to be tried; a client asks for it */
	struct timer add_retry;  /* server: ADD LINK again; client: the server is told again of an idle device (C.8) */
	uint32_t add_retry_ms;   /* 0: the last attempt went well */
	int64_t add_due_ns;      /* by when the offers of links so far are worked off (llc_offer_due) */
	int64_t fyi_due_ns;      /* server: from when the client may say again that it has a device */
	struct timer rkey_retry; /* the peer refused our CONFIRM RKEY because of another exchange */
	struct llc_delete_link delete_req; /* client: the server's, to be answered when the link is drained */
	struct failover failover;

	struct list_node rmbs;
	uint32_t rmb_cnt, rmb_next_number;
	uint32_t quarantined; /* elements of all RMBs (quarantine.h) */
	struct list_node remote_rmbs;
	uint32_t remote_rmb_cnt, remote_next_number;

	struct list_node sndbuf_slabs;
	struct list_node sndbuf_free; /* last in, first out: warm pages first; at its end those parked */
	uint64_t sndbuf_bytes;
	uint32_t sndbuf_lent;
	bool sndbuf_waiting; /* there may be connections with tx.ring_short */

	struct list_node conns; /* all connections that hold elements of the group */
	uint32_t conn_cnt;
	uint32_t rdv_cnt; /* rendezvous that have the group as rdv->lgr */

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
/* An active link for a connection's sending: the one with the fewest connections, not a retiring one when there is
 * another; NULL when there is none. */
struct link *lgr_pick_link(struct lgr *);
/* No connections, and none waits for an RMB. */
bool lgr_unused(const struct lgr *);
