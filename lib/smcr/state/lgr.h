/* A link group (RFC 7609 2.2): links, RMBs of both sides, connections, and LLC exchanges. Owned by the engine, created
 * and ended by group/lgr.c; freed at the end of a turn after lgr_down, when no connection refers to it. */
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
#define GRANTS_MAX 128 /* elements granted to the client and not used yet */

enum lgr_state {
	LGR_FORMING, /* first contact in progress */
	LGR_ACTIVE,
	LGR_DELETING, /* not used for new connections; ends when DELETE LINK is complete */
	LGR_DEAD,     /* freed at the end of the turn in which nothing refers to it, see lgr_free */
	LGR_STATE_CNT,
};

/* Owner of a group (group/owner.h). */
struct owner {
	uint8_t peer_id[8]; /* peer ID */
	/* of a client whose Proposal has no peer ID, as it offers only version 2: its RoCE v2 GID instead. Else 0 */
	uint8_t gid[16];
	struct smcr_identity remote; /* its address, as far as known */
};

/* Terms of first contact in version 2, and what the peer reported. Zero in version 1. */
struct lgr_terms {
	struct clc_eid eid;
	uint8_t release;
	uint8_t max_conns; /* release 1: limits, as sent in the Confirm */
	uint8_t max_links;
	uint8_t peer_os; /* enum clc_os */
	uint8_t peer_host[CLC_HOST_LEN];
	uint8_t peer_gid_cnt; /* server: the client's RoCE v2 GIDs, including that of the first link */
	uint8_t peer_gids[CLC_MAX_GIDS][CLC_GID_LEN];
};

/* LLC exchanges (RFC 7609 3.3, 3.5.5, C.7): at most one per group and kind, never both kinds at once (3.5.5.3). */
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
	LLC_WAIT_PEER_DECLINE,     /* first link lost while another was being added: the client must decline */
	/* a new link, server */
	LLC_WAIT_ADD_LINK_RSP,
	LLC_WAIT_ADD_CONT_RSP,
	LLC_WAIT_NEW_CONNECTED, /* its queue pair */
	LLC_WAIT_NEW_CONFIRM_RSP,
	/* a new link, client */
	LLC_CONNECT_NEW, /* its queue pair; the response to ADD LINK follows */
	LLC_WAIT_ADD_CONT,
	LLC_WAIT_NEW_CONFIRM,
	/* the end of a link */
	LLC_DRAIN_LINK,           /* its connections move away; then DELETE LINK or its response follows */
	LLC_WAIT_DELETE_LINK_RSP, /* server */
	/* the end of the group */
	LLC_WAIT_DELETE_LINK_SENT, /* DELETE LINK for all was sent: its completion awaited */
	LLC_WAIT_DELETE_LINK,      /* client requested the end of the group: the server's DELETE LINK awaited */
	/* LLC_FLOW_RKEY */
	LLC_WAIT_CONFIRM_RKEY_RSP,
	LLC_WAIT_DELETE_RKEY_RSP,
	LLC_STEP_CNT,
};

struct llc_flow {
	enum llc_step step;
	struct lgr *lgr;
	struct link *link;     /* that carries it */
	struct link *new_link; /* LLC_FLOW_LINK: the link being added */
	struct link *gone;     /* LLC_FLOW_LINK: the link being deleted */
	uint8_t number;        /* ADD LINK: number of the new link, even if it has failed */
	bool cont_seen;        /* ADD LINK CONTINUATION: the peer's count is known */
	uint8_t peer_left;     /* its RTokens still to come */
	uint32_t sent;         /* ours, by rmb->number, up to this one */
	struct rmb *rmb;       /* LLC_FLOW_RKEY */
	bool deleting_new;     /* DELETE RKEY: the peer may not know the RMB */
	bool overtaken;        /* CONFIRM RKEY: RTokens for a new link may have overtaken it on another link */
	unsigned next_slot;    /* CONFIRM RKEY: first slot of links not yet named */
	uint8_t left;          /* CONFIRM RKEY, ADD LINK CONTINUATION: RTokens that we still have to send */
	struct timer timer;
};

/* First contact, while the group is forming (3.5.1). */
struct lgr_contact {
	struct smcr_conn *conn;        /* its rendezvous creates the group */
	struct rnic_gid proposed_from; /* server: the client's RNIC, as in its Proposal */
	bool confirm_link_out;         /* our CONFIRM LINK was sent: we may not decline afterwards (C.2) */
	bool confirm_link_in;          /* server: our CONFIRM LINK has arrived at the client */
};

/* Last loss of a link with connections (data/failover.c), shown to an operator. */
struct failover {
	int64_t began_ns; /* 0 = none yet */
	int64_t took_ns;  /* until the peer was notified of every connection's move */
	const char *why;
	uint32_t moved;
	uint32_t left; /* not resumed yet */
};

/* Client: an element of the server for a connection that we open (data/grant.h). */
struct grant {
	uint32_t token;
	uint32_t remote_rmb; /* its number */
	uint8_t idx;
	uint8_t size_code;
};

/* A service that the client has reached by a rendezvous with this group. */
struct ticket {
	uint32_t nr;      /* 0: connections with this key reach several hosts, so none is opened over a link */
	int64_t at_ns;    /* of the last rendezvous */
	int64_t pause_ns; /* client: not used before, as the peer has refused one; 0: has not */
	char key[64];     /* client: of smcr_open */
	struct smcr_scope scope;
	struct clc_dest dest; /* client: of smcr_open */
	bool uses_client;     /* client: of smcr_open */
};

struct lgr {
	struct list_node node; /* engine's groups */
	struct smcr *eng;
	uint32_t id;
	enum smcr_role role;
	enum lgr_state state;
	struct lgr_marks marks;
	const char *delete_why;
	uint32_t delete_reason;
	bool end_wanted;  /* server: the client has ended it; no new connections, ends when ours are gone */
	unsigned version; /* of SMC: 1 or 2; known before the first link is made */
	struct dialect dialect;
	struct lgr_terms terms;
	bool rfc_cursors; /* what we send in CONFIRM LINK: the configuration when the group was created */
	bool eye_catcher; /* RFC cursors: the peer's CONFIRM LINK lacked the flags */
	struct owner owner;
	uint8_t peer_id[8];            /* as the peer reports it; a version 2 client may do so first in its Confirm */
	uint16_t vlan;                 /* of the devices of all its links (2, 5.1) */
	char peer_key[64];             /* client */
	char peer_name[SMCR_NAME_MAX]; /* that the owner has proven, for reports */
	uint64_t token; /* secret of both ends, in iWARP connection setup and the server's Accepts (owner.h) */
	bool in_tls;    /* links on TCP are in TLS, with keys from the secret (struct smcr_open) */
	bool only_tls;  /* no other links (struct smcr_open) */
	uint8_t secret[RNIC_SECRET_LEN];
	int64_t born_ns;
	int64_t active_ns;     /* since when; 0: not active yet */
	int64_t idle_since_ns; /* while it is unused */
	int64_t joined_ns;     /* when a rendezvous last joined it; 0: never */
	struct lgr_contact contact;

	struct link links[LINK_SLOTS];
	unsigned link_cnt; /* neither LINK_FREE nor LINK_GONE */
	unsigned active_cnt;
	uint8_t next_link_number;
	uint32_t links_made;    /* so far: gives the order of links */
	uint8_t links_limit;    /* symmetric links: the smaller of both sides' limits; 0: not known yet */
	uint8_t conns_limit;    /* connections: the smaller of both sides' limits */
	bool want_link;         /* try to add a link; a client requests it */
	struct timer add_retry; /* server: ADD LINK again; client: reports an idle device again (C.8) */
	uint32_t add_retry_ms;  /* 0: the last attempt succeeded */
	bool add_rejected;      /* server: the last attempt was rejected, no device reported since */
	uint32_t add_failures;  /* attempts to add a link: the next one begins with another device */
	int64_t add_due_ns;     /* by when pending link offers are handled (llc_offer_due) */
	/* Server: a REQUEST ADD LINK on this link awaits ADD LINK or a response, or any if it has ended; 0: none. */
	uint8_t asked_over;
	int64_t fyi_due_ns;                /* server: from when the client may report a device again */
	struct timer rkey_retry;           /* the peer refused our CONFIRM RKEY because of another exchange */
	struct llc_delete_link delete_req; /* client: the server's, answered when the link is drained */
	struct failover failover;
	struct timer moves; /* a lost link is deleted, and the peer's connections may be moving */

	struct list_node rmbs;
	struct list_node dead_rmbs; /* freed when ending links no longer use them */
	uint32_t rmb_cnt, rmb_next_number;
	uint64_t rmb_bytes;
	uint32_t quarantined; /* elements of all RMBs (rmb.h) */
	struct list_node remote_rmbs;
	uint32_t remote_rmb_cnt, remote_next_number;

	struct list_node sndbuf_slabs;
	/* By size (sndbuf.c); last in, first out for warm pages; parked rings at the end. */
	struct list_node sndbuf_free[SNDBUF_SIZES];
	uint64_t sndbuf_bytes;
	uint32_t sndbuf_cnt, sndbuf_lent;
	bool sndbuf_waiting; /* connections with tx.ring_short may exist */

	struct list_node conns; /* connections that hold elements of the group */
	uint32_t conn_cnt;
	uint32_t reader_cnt; /* connections that have left it and still read an element (conn_end) */
	uint32_t rdv_cnt;    /* rendezvous that have the group as rdv->lgr */

	/* Opening over a link (data/grant.h) */
	struct list_node spares; /* server: connections in CONN_SPARE */
	unsigned spare_cnt, spare_aim;
	struct grant grants[GRANTS_MAX]; /* client */
	unsigned grant_cnt;
	struct ticket *tickets;
	unsigned ticket_cnt;

	struct list_node wait_rmb; /* rdv->wait of connections that wait for the confirmation of a new RMB */
	struct llc_flow flow[LLC_FLOW_CNT];
	struct remote_rmb *cont_rmb; /* the peer's CONFIRM RKEY that continues in CONTINUATIONs */
	uint8_t cont_left;
	struct timer cont_timer; /* time limit of the next CONTINUATION */
	struct timer idle;
	struct timer rmb_idle;
};

/* Links of a group in slot order, including free slots. */
#define LGR_EACH_LINK(l, lgr) for (__typeof__(&(lgr)->links[0]) l = (lgr)->links; l < (lgr)->links + LINK_SLOTS; l++)
/* The first of them for which cond, an expression of l, is true; NULL: none. */
#define LGR_FIND_LINK(l, lgr, cond)                              \
	({                                                       \
		__typeof__(&(lgr)->links[0]) l = (lgr)->links;   \
		while (l < (lgr)->links + LINK_SLOTS && !(cond)) \
			l++;                                     \
		l < (lgr)->links + LINK_SLOTS ? l : NULL;        \
	})

/* True for one of them. */
#define LGR_ANY_LINK(l, lgr, cond) (LGR_FIND_LINK(l, lgr, cond) != NULL)

/* The only function that changes the state: asserts that it is legal, logs it (debug). why: static text or NULL. */
void lgr_set_state(struct lgr *, enum lgr_state, const char *why);
extern const struct state_row lgr_states[]; /* by enum lgr_state */
/* Likewise for the step of an exchange. */
void llc_flow_set_step(struct llc_flow *, enum llc_step);
/* An active link for a connection to send over: the one with fewest connections, suspect or retiring last; or NULL. */
struct link *lgr_pick_link(struct lgr *);
/* The link with this number that is being set up, active or lost; NULL if there is none. */
struct link *lgr_link_by_number(struct lgr *, uint8_t number);
/* All active links are suspect: nothing is started over them. */
bool lgr_is_silent(const struct lgr *);
/* Limit of connections, from the agreement of both ends and our configuration. */
uint32_t lgr_conns_max(const struct lgr *);
/* No connections, and none waits for an RMB. */
bool lgr_unused(const struct lgr *);
