/*
 * What a lower room has to tell a higher one. It sets a mark; setting one calls
 * nothing, so nothing can end under the feet of whoever sets it. The engine
 * acts on marks (engine_act_on_marks) when no room has anything under way:
 * after each completion and device event, after the timers, and when a flush
 * begins. LLC exchanges start at the end of a poll and when a flush begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "smcr/smcr.h"

struct lgr;
struct link;

enum contact_mark {
	CONTACT_GOES_ON,
	CONTACT_READY,  /* first contact is through: the group is active */
	CONTACT_FAILED, /* it came to nothing: a Decline with diag where one may still go, else the end for reason */
	CONTACT_BROKEN, /* the peer should have declined by now: the end for reason */
};

enum rmb_mark {
	RMB_WAIT,
	RMB_READY,   /* connections in lgr->wait_rmb may find an element, or ask again */
	RMB_REFUSED, /* the peer does not take the RMB that they wait for */
};

struct lgr_marks {
	struct list_node node;      /* eng->marked_lgrs: acted on at once; empty: nothing is marked */
	struct list_node turn_node; /* eng->waiting_lgrs: an LLC exchange that waited may start at the turn's end */
	bool conn_left;             /* a connection has left, or does not wait for an RMB: the group may be unused */
	bool links;                 /* a link of the group has `loss_marked` */
	bool delete_sent;           /* DELETE LINK for all is complete */
	enum rmb_mark rmb;
	enum contact_mark contact;
	uint32_t diag; /* enum clc_diag */
	enum smcr_reason reason;
	const char *why; /* static text */
};

/* How a connection in its rendezvous has to end; part of its struct rdv. */
struct conn_mark {
	struct list_node node; /* eng->marked_conns; empty: it is not marked */
	bool at_once;          /* else a server whose Accept is out waits for the Confirm (C.1) */
	enum smcr_reason reason;
	const char *why; /* static text */
};

void mark_exchanges(struct lgr *);
void mark_conn_left(struct lgr *);
void mark_link_lost(struct link *);
/* The link is of no use, because of what was to be posted on it: it is to be lost when the device's events, which may say why,
 * have been handled. The first reason counts. */
void mark_link_failed(struct link *, const char *why);
/* Puts the link on the engine's list for the next flush. */
void link_schedule(struct link *);
/* Something has left the link: does it live on? Asked by TEST LINK at the next flush. */
void link_request_ack(struct link *);
void mark_delete_sent(struct lgr *);
void mark_rmb(struct lgr *, enum rmb_mark);
void mark_contact_ready(struct lgr *);
/* Does not count when first contact is marked already. */
void mark_contact_failed(struct lgr *, uint32_t diag, enum smcr_reason, const char *why);
/* Counts always: the group ends. */
void mark_contact_broken(struct lgr *, enum smcr_reason, const char *why);
/* Connections that waited for first contact with the peer whose node this is may go on. */
void mark_peer(struct smcr *, struct list_node *);
/* The first one counts. */
void mark_conn_end(struct smcr *, struct conn_mark *, bool at_once, enum smcr_reason, const char *why);
