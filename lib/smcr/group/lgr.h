/*
 * A link group (RFC 7609 2.2): links, RMBs of both sides, connections, and the
 * LLC exchanges that change its configuration. Owned by the engine; freed at
 * the end of a turn after lgr_down, when every connection has let go of it.
 */
#ifndef SMCRD_SMCR_LGR_H
#define SMCRD_SMCR_LGR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "smcr/data/failover.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/group/owner.h"
#include "smcr/data/rmb.h"
#include "smcr/smcr.h"

enum lgr_state {
	LGR_FORMING, /* first contact goes on */
	LGR_ACTIVE,
	LGR_DELETING, /* never offered; ends when DELETE LINK is through */
	LGR_DEAD,     /* freed at the end of the turn in which nobody has it any more, see lgr_free */
};

/* Send rings: slabs of buffers registered on every link, lent to connections while bytes are in flight. */
struct sndbuf_slab;

struct lgr {
	struct list_node node; /* engine's groups */
	struct smcr *eng;
	uint32_t id;
	enum smcr_role role;
	enum lgr_state state;
	const char *down_why;
	const char *delete_why;
	uint32_t delete_reason;
	bool end_wanted;  /* server: the client is through with it; not offered any more, ends when ours are gone */
	unsigned version; /* SMC version: 1 */
	bool rfc_cursors; /* what we say in CONFIRM LINK: the configuration when the group was made */
	bool eye_catcher; /* RFC cursors: the peer's CONFIRM LINK lacked the flags */
	struct owner owner;
	uint16_t vlan;     /* of the devices of all of its links (2, 5.1) */
	char peer_key[64]; /* client */
	uint64_t token;    /* secret of both ends: MPA connections show it, and the server's Accepts (owner.h) */
	uint16_t peer_mpa_port;
	int64_t born_ns;
	int64_t idle_since_ns; /* while it is unused */

	struct link links[LINK_SLOTS];
	unsigned link_cnt; /* not LINK_FREE */
	unsigned active_cnt;
	uint8_t next_link_number;
	uint32_t links_made;     /* so far: their order */
	uint8_t links_limit;     /* symmetric links: the smaller of both sides' */
	bool settle;             /* llc_next is to look what can be started */
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
	bool sndbuf_waiting; /* there may be connections with tx_ring_short */

	struct list_node conns; /* all connections that hold elements of the group */
	uint32_t conn_cnt;
	uint32_t rdv_cnt;             /* rendezvous that have the group as rdv->lgr */
	struct smcr_conn *first_conn; /* whose rendezvous makes the group, while LGR_FORMING */

	struct list_node wait_rmb; /* rdv->wait of connections that wait for a new RMB to be confirmed */
	struct llc_flow flow[LLC_FLOW_CNT];
	struct remote_rmb *cont_rmb; /* the peer's CONFIRM RKEY that goes on in CONTINUATIONs */
	uint8_t cont_left;
	struct timer cont_timer; /* and how long for its next one is waited */
	struct timer idle;
	struct timer rmb_idle;
};

/* The address of element idx of the peer's RMB on a link. */
uint64_t lgr_remote_addr(const struct remote_rmb *, const struct link *, uint32_t elem_size, uint8_t idx);

struct lgr *lgr_new(struct smcr *, enum smcr_role, const struct owner *);
/* Every connection is reset with the reason, every link goes down, no messages. Idempotent. */
void lgr_down(struct lgr *, enum smcr_reason, const char *why);
/* Frees a dead group, unless a connection has not let go of it: it is counted that every one has. False: not yet. */
bool lgr_free(struct lgr *);
/* An active link for a connection's sending: the one with the fewest connections, not a retiring one when there is
 * another; NULL when there is none. */
struct link *lgr_pick_link(struct lgr *);
/* Called by link_down and link_retire: connections move, or the group ends with its last link. */
void lgr_link_down(struct lgr *, struct link *);
/* The link that shares an RNIC with another one (2.2), NULL when there is none. */
struct link *lgr_asymmetric_link(const struct lgr *);
unsigned lgr_symmetric_cnt(const struct lgr *);
/* For a new link: numbers are not used again before all were (2.2). */
uint8_t lgr_next_number(struct lgr *);
/* Exchanges that wait may be started now. */
void lgr_settle(struct lgr *);
/* A connection of the group is through and gave back its elements, or does not wait for any longer: the group may be
 * unused now (idle timer, drain). */
void lgr_conn_gone(struct lgr *);
/* First contact is through. */
void lgr_set_active(struct lgr *);
/* Has, or can make, a free element of this size. */
bool lgr_has_place(const struct lgr *, uint32_t elem_size);
/* New connections may join: nothing is to end it, and the peer lets go of enough elements. */
bool lgr_takes_conns(const struct lgr *);
/* No connections, and none waits for an RMB. */
bool lgr_unused(const struct lgr *);
/* The peer says that it does not know the group (A.2.5). Anybody may say so, so its links are tested: what the peer has given
 * up does not answer and goes down. Until then the group is not offered. */
void lgr_doubt(struct lgr *);
bool lgr_is_doubted(const struct lgr *);
/* Orderly end of a group without connections: DELETE LINK for all (3.5.4). reason: LLC_DELETE_. */
void lgr_delete(struct lgr *, uint32_t reason);
/* The links that went down so far are about to have the last look at their completions; dev NULL: of any device. */
void lgr_last_look(struct smcr *, const struct rnic_dev *dev);
/* Frees links that went down and had it, at the end of the turn. */
void lgr_sweep(struct smcr *);
void lgr_peer_name(const struct lgr *, char *buf, size_t cap);

/* -- sndbuf.c -- */

/* A send ring, registered on all links; NULL when memory is out. */
struct sndbuf *sndbuf_get(struct lgr *);
void sndbuf_put(struct lgr *, struct sndbuf *);
/* The same, but the device may still read from it: lent again when the request wr_id of the link is complete. */
void sndbuf_park(struct lgr *, struct sndbuf *, const struct link *, uint64_t wr_id);
/* A ring may be free again: connections that found none get SMCR_EV_WRITABLE. */
void sndbuf_wake(struct lgr *);
struct rnic_mr *sndbuf_mr(const struct sndbuf *, const struct link *);
int sndbuf_register_all(struct lgr *, struct link *);
void sndbuf_deregister_all(struct lgr *, struct link *);
void sndbuf_free_all(struct lgr *);

struct sndbuf {
	struct list_node node; /* lgr->sndbuf_free while not lent */
	struct sndbuf_slab *slab;
	uint8_t *buf;
	uint32_t size;
	const struct link *parked_on; /* NULL when it may be lent */
	uint64_t parked_until;        /* request */
};

#endif
