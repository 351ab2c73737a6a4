/* Marks: notifications of a lower room to a higher one. Setting a mark calls nothing, so no object ends within the
 * caller. engine_act_on_marks handles marks when no room is active: after each completion and device event, after the
 * timers, and at the start of a flush. LLC exchanges start at the end of a poll and at the start of a flush. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "smcr/smcr.h"
#include "wire/open.h"

struct lgr;
struct link;

enum contact_mark {
	CONTACT_GOES_ON,
	CONTACT_READY,  /* first contact succeeded: the group is active */
	CONTACT_FAILED, /* it failed: Decline with diag if one is still allowed, else end with reason */
	CONTACT_BROKEN, /* the peer should have declined by now: end with reason */
};

enum rmb_mark {
	RMB_WAIT,
	RMB_READY,   /* connections in lgr->wait_rmb may find an element, or request one again */
	RMB_REFUSED, /* the peer refuses the RMB that they wait for */
};

struct lgr_marks {
	struct list_node node;      /* eng->marked_lgrs: handled at once; empty: no mark */
	struct list_node turn_node; /* eng->waiting_lgrs: a waiting LLC exchange may start at the end of the turn */
	bool conn_left;             /* a connection left, or no longer waits for an RMB: the group may be unused */
	bool links;                 /* a link of the group has `loss_marked` */
	bool delete_sent;           /* DELETE LINK for all is complete */
	struct link *opened_over;   /* `open` came over this link; NULL: none */
	struct open_msg open;       /* handled before the next message */
	enum rmb_mark rmb;
	enum contact_mark contact;
	uint32_t diag; /* enum clc_diag */
	enum smcr_reason reason;
	const char *why; /* static text */
};

/* How a connection in its rendezvous must end; part of its struct rdv. */
struct conn_mark {
	struct list_node node; /* eng->marked_conns; empty: not marked */
	bool at_once;          /* else a server that sent its Accept waits for the Confirm (C.1) */
	enum smcr_reason reason;
	const char *why; /* static text */
};

void mark_exchanges(struct lgr *);
/* The group's marks, for one to be set: conn_left, delete_sent or rmb. */
struct lgr_marks *mark_lgr(struct lgr *);
void mark_link_lost(struct link *);
/* A request could not be posted: lost after the device's events, which may give the reason. The first one counts. */
void mark_link_failed(struct link *, const char *why);
/* Queues the link for the next flush. */
void link_schedule(struct link *);
/* Data left the link: the next flush checks it by TEST LINK. */
void link_request_ack(struct link *);
/* diag: of CONTACT_FAILED; reason, why: of a failure. Ignored when first contact is marked, but for CONTACT_BROKEN. */
void mark_contact(struct lgr *, enum contact_mark, uint32_t diag, enum smcr_reason, const char *why);
/* The first mark counts. */
void mark_conn_end(struct smcr *, struct conn_mark *, bool at_once, enum smcr_reason, const char *why);
