/*
 * Where an LLC exchange of a group stands (RFC 7609 3.3, 3.5.5, C.7). At most
 * one exchange of each kind runs in a group, and neither starts while the other
 * runs (3.5.5.3).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timerq.h"

struct lgr;
struct link;
struct rmb;

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
	unsigned next_slot;    /* CONFIRM RKEY: links not told yet start here */
	uint8_t left;          /* CONFIRM RKEY, ADD LINK CONTINUATION: what we have still to tell */
	struct timer timer;
};

/* The only place where the step changes: asserts that the new one may follow, and writes it to the log at level debug. */
void llc_flow_set_step(struct llc_flow *, enum llc_step);
