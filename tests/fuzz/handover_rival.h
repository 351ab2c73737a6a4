/*
 * A process at the other end of a hand-over (daemon/control/handover_msg.h), the new one or the old one, that says anything: messages that are
 * right but for what a step changes, in any order, with any descriptors, cut at any byte; and raw bytes.
 */
#pragma once

#include "descriptors.h"
#include "steps.h"

#define HANDOVER_TWISTS_MAX 4

/* What its steps do; a target has others behind them. */
enum {
	/* who: type; a: kind, or a number; b: text and identity of a file; c: descriptors. */
	RIVAL_MESSAGE,
	RIVAL_RAW,   /* a: length, b: descriptors, c: steps whose bytes it is */
	RIVAL_TWIST, /* of the next message: a: where, b: how, c: value */
	RIVAL_CUT,   /* the next message: a: where, b: its beginning or its end is sent */
	RIVAL_CNT,
};

struct handover_rival {
	int sock;
	unsigned ops; /* how many kinds of steps the program has: what follows is seen by that */
	struct step twists[HANDOVER_TWISTS_MAX];
	unsigned twist_cnt;
	struct step cut;
	bool cuts;
	/* What its messages had of each file: its path, its identity. */
	bool path_said[DESC_CNT], identity_said[DESC_CNT];
};

/* Of a kind below RIVAL_CNT. steps: what follows, of which a step may take some. */
void handover_rival_step(struct handover_rival *, const struct step *, struct steps *);
