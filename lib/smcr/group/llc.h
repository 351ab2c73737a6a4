/*
 * LLC exchanges of a link group (RFC 7609 3.3, 3.5.5, C.7): which may run
 * together, their timers and recovery.
 */
#ifndef SMCRD_SMCR_LLC_H
#define SMCRD_SMCR_LLC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timerq.h"
#include "wire/llc.h"

struct lgr;
struct link;
struct rmb;

/* At most one exchange of each kind runs in a group, and neither starts while the other runs (3.5.5.3). */
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
	unsigned next_slot;    /* CONFIRM RKEY: links not told yet start here */
	uint8_t left;          /* CONFIRM RKEY, ADD LINK CONTINUATION: what we have still to tell */
	struct timer timer;
};

void llc_init(struct lgr *);
void llc_fini(struct lgr *);
void llc_init_link(struct link *);
/* Goes on with what waits: a retiring link whose last connection has left, links to be deleted, a link to be added,
 * RMBs to be confirmed. */
void llc_next(struct lgr *);
/* The first link is connected and both CLC messages are through: CONFIRM LINK, then the ADD LINK attempt. */
void llc_first_contact(struct link *);
/* The queue pair of the link that is being added is connected. */
void llc_new_link_connected(struct link *);
/* Makes an RMB of this element size and tells the peer; ends with rdv_rmb_ready. When one of that size is under way
 * already, or has to wait for another exchange, that one counts. 0, -ENOSPC (255 RMBs), -ENOMEM, -ENOBUFS, -ENOTCONN. */
int llc_add_rmb(struct lgr *, uint32_t elem_size);
/* lgr->cont_timer: the peer's CONFIRM RKEY does not go on. */
void llc_cont_fired(struct timer *, int64_t now_ns);
/* Deletes RMBs that were idle for rmb_idle_ms. */
void llc_delete_idle_rmb(struct lgr *);
/* Client, first contact: nothing comes of the ADD LINK that is awaited; the group is ready. */
void llc_add_link_over(struct lgr *);
/* The group is active: further links are tried. */
void llc_group_active(struct lgr *);
/* The engine has a device that it had not, or its port is up again. */
void llc_device_appeared(struct lgr *);
/*
 * The link is of no use any more. True when the group need not do anything about it: it was but being added. Exchanges
 * that ran over it or about it end, by C.7.1.
 */
bool llc_link_lost(struct link *);
/* The connections of a lost link have moved: the peer is told (DELETE LINK). */
void llc_link_gone(struct link *);

/* Takes an active link out in the orderly way. 0 or -EBUSY: an exchange is under way. */
int llc_retire_link(struct link *, uint32_t reason);
/* DELETE LINK for all links; the group goes down when it is through. */
void llc_delete_group(struct lgr *, uint32_t reason);
/* Starts and stops the link's TEST LINK timer (4.5.3). */
void llc_keepalive_start(struct link *);
/* The interval anew, as it is configured now: an active link whose test is not under way. */
void llc_keepalive_arm(struct link *);
void llc_keepalive_stop(struct link *);
/* A request over the link was not answered: a TEST LINK that is not answered either takes it down. */
void llc_doubt(struct link *, const char *what);
/* link->want_proof: tests the link now. */
void llc_prove(struct link *);
/* One LLC message from the peer, 44 bytes, not CDC. */
void llc_recv(struct link *, const uint8_t *buf, size_t len);
/* A posted LLC message is complete (delivered), or failed when !ok. */
void llc_sent(struct link *, enum llc_type, bool response, bool ok);
/* What the first connection of a forming group waits for, or "". */
const char *llc_waits_for(const struct lgr *);

#endif
