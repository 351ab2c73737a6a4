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

/* At most one exchange of each kind runs in a group. */
enum llc_flow_kind {
	LLC_FLOW_LINK, /* CONFIRM LINK / ADD LINK / DELETE LINK: changes the links; exclusive */
	LLC_FLOW_RKEY, /* our CONFIRM RKEY or DELETE RKEY; the peer's may overlap */
	LLC_FLOW_CNT,
};

enum llc_step {
	LLC_IDLE,
	/* LLC_FLOW_LINK */
	LLC_WAIT_CONFIRM_LINK,     /* client, first contact: CONFIRM LINK request awaited */
	LLC_WAIT_CONFIRM_LINK_RSP, /* server */
	LLC_WAIT_ADD_LINK,         /* client, first contact */
	LLC_WAIT_ADD_LINK_RSP,     /* server */
	LLC_WAIT_DELETE_LINK_RSP,  /* server: one link is taken back */
	LLC_WAIT_DELETE_LINK_SENT, /* DELETE LINK for all is out: its completion awaited */
	LLC_WAIT_DELETE_LINK,      /* client asked for the end of the group: the server's DELETE LINK awaited */
	/* LLC_FLOW_RKEY */
	LLC_WAIT_CONFIRM_RKEY_RSP,
	LLC_WAIT_DELETE_RKEY_RSP,
};

struct llc_flow {
	enum llc_step step;
	struct lgr *lgr;
	struct link *link;     /* over which it runs */
	struct link *new_link; /* LLC_FLOW_LINK: the one offered by ADD LINK */
	struct rmb *rmb;       /* LLC_FLOW_RKEY */
	unsigned next_slot;    /* CONFIRM RKEY: links not told yet start here */
	uint8_t left;          /* and are so many */
	struct timer timer;
};

void llc_init(struct lgr *);
void llc_fini(struct lgr *);
/* The first link is connected and both CLC messages are through: CONFIRM LINK, then the ADD LINK attempt. */
void llc_first_contact(struct link *);
/* Makes an RMB of this element size and tells the peer; ends with rdv_rmb_ready. When one of that size is under way
 * already, that one counts. 0, -ENOSPC (255 RMBs), -ENOMEM, -ENOBUFS, -ENOTCONN. */
int llc_add_rmb(struct lgr *, uint32_t elem_size);
/* Deletes RMBs that were idle for rmb_idle_ms. */
void llc_delete_idle_rmb(struct lgr *);
/* Client, first contact: nothing comes of the ADD LINK that is awaited; the group is ready. */
void llc_add_link_over(struct lgr *);
/* The link is down. True when it was but an offered second link: the group goes on without it. */
bool llc_link_lost(struct link *);
/* DELETE LINK for all links; the group goes down when it is through. */
void llc_delete_group(struct lgr *, uint32_t reason);
/* Starts and stops the link's TEST LINK timer (4.5.3). */
void llc_keepalive_start(struct link *);
/* The interval anew, as it is configured now: an active link whose test is not under way. */
void llc_keepalive_arm(struct link *);
void llc_keepalive_stop(struct link *);
/* One LLC message from the peer, 44 bytes, not CDC. */
void llc_recv(struct link *, const uint8_t *buf, size_t len);
/* A posted LLC message is complete (delivered), or failed when !ok. */
void llc_sent(struct link *, enum llc_type, bool response, bool ok);

#endif
