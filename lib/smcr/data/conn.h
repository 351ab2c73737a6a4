/*
 * A connection: one SMC-R TCP connection's stream in both directions. Born by
 * smcr_open; its rendezvous is another room's, its data path in tx.c and rx.c,
 * its end in close.c. Lives until the user has released it *and* the protocol
 * is through with it; freed at the end of the turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "smcr/data/close.h"
#include "smcr/data/rx.h"
#include "smcr/data/tx.h"
#include "smcr/smcr.h"
#include "smcr/state/lgr.h"
#include "wire/clc.h"

struct smcr_conn {
	struct smcr *eng;
	void *app;
	uint32_t id; /* our alert token */
	enum smcr_role role;
	enum conn_state state;
	enum smcr_reason reason;
	const char *detail; /* static */
	unsigned events;    /* SMCR_EV_ not yet taken */
	bool released;      /* by the user */
	bool reported;      /* SMCR_EV_CLOSED was raised, or would have been */
	bool established;   /* SMCR_EV_ESTABLISHED was raised, and not taken back because there is no user for data */
	bool foreign;       /* the peer's CLC message has no part of smcrd's: it is Linux, say */
	struct rdv *rdv;    /* the rendezvous, while it lasts */
	struct conn_mark *mark; /* in rdv */
	struct smcr_diag diag;
	int64_t born_ns;
	struct list_node event_node; /* engine's list of connections with events, or of those to be freed */
	struct list_node lgr_node;
	struct list_node ready_node; /* link->ready */
	struct timer timer;          /* close_ms, abort_ms, fin_grace_ms */

	struct lgr *lgr;   /* NULL before the group is chosen and after the elements are given back */
	struct link *link; /* over which we send */
	struct rmb *rmb;
	uint8_t elem_idx;
	struct remote_rmb *peer_rmb;
	uint8_t peer_elem_idx;
	uint32_t peer_elem_size;
	uint32_t peer_token;

	struct conn_tx tx;
	struct conn_rx rx;
	struct conn_close close;
};

/* A connection in state RENDEZVOUS with an id; rdv is NULL. NULL with *err = -EMFILE or -ENOMEM (both counted). */
struct smcr_conn *conn_new(struct smcr *, const struct smcr_open *, int *err);
/* Frees it; it is in no list of events, links or groups, and its rdv is NULL. */
void conn_free(struct smcr_conn *);
const char *conn_state_str(enum conn_state);
/* The only place where the state changes: asserts that the change is one of Figures 22 and 23, or of what is before them. */
void conn_set_state(struct smcr_conn *, enum conn_state);
void conn_raise(struct smcr_conn *, unsigned events);
/* CLOSED is raised, once, with this reason; the protocol may go on behind. */
void conn_report(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The connection is established and not ended: its data path is alive. */
bool conn_is_open(const struct smcr_conn *);
/* Rendezvous is over: state ACTIVE, ESTABLISHED raised; data that overtook the Confirm becomes readable. */
void conn_establish(struct smcr_conn *);
/* Joins the group with the element in conn->rmb/elem_idx, to send over link; receive cursors at their start, eye
 * catcher written when the group uses them (only now is that known). From now on CDC messages are accepted (they may
 * overtake the Confirm, 3.5.2.4). */
void conn_attach(struct smcr_conn *, struct lgr *, struct link *);
/* Holds the element that the peer's Accept or Confirm names, in this RMB of its: from now on, long before the first byte
 * at first contact, the peer cannot take the RMB back. */
void conn_hold_peer_elem(struct smcr_conn *, struct remote_rmb *, const struct clc_accept *);
/* Takes the element that it holds into use. */
void conn_attach_peer(struct smcr_conn *);
/* Lets go of the peer's element, if there is one. */
void conn_drop_peer_elem(struct smcr_conn *);
/* Gives the elements back (ours quarantined when the peer did not acknowledge) and leaves the group (mark_conn_left).
 * Also for a connection that has no element of the peer yet. */
void conn_detach(struct smcr_conn *, bool quarantine);
/* The end: state CLOSED, CLOSED raised, elements given back. */
void conn_end(struct smcr_conn *, enum smcr_reason, const char *detail, bool quarantine);
/* smcr_release of a connection that has ended, is aborting, or has fallen back: freed when the protocol is through with it. */
void conn_release(struct smcr_conn *);
