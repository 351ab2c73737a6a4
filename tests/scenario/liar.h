/*
 * The third host of a hostile run: a real engine behind a layer that lies. What it says on its TCP connections and
 * posts to its devices goes through here; up to some message it passes unchanged, from there on some of it is changed
 * (lie.h), left out, doubled, swapped with the next one, replaced by an old one, or followed by a forged one;
 * and between messages the liar does things of its own: it breaks links, ends connections, stands still, restarts. What
 * it hears is changed too, now and then, so that its engine goes on faithfully from what is not so. Everything is drawn
 * from the plan's seed.
 *
 * A liar may have a habit: the same lie about each message of one kind, so that what one such message costs adds up.
 *
 * Of SMC version 2 it knows more lies (liar_v2.h).
 *
 * Further kinds of harm need no lie: its peer id may be that of another host, or another one in each connection; it may
 * repeat what others have said; and it may fall silent before it ends.
 */
#pragma once

#include "tests/sim/sim.h"
#include "tests/scenario/host.h"
#include "tests/scenario/lie.h"

#define LIAR_HOST 2 /* the last of the three; hosts 0 and 1 are honest */

/* Plan.habit: a CLC message by its type, an LLC message by its type, or CDC. */
#define LIAR_HABIT_CLC(type) (type)
#define LIAR_HABIT_LLC(type) (16 + (type))
#define LIAR_HABIT_CDC 48

/* The liar's treatment of a message. */
enum lie {
	LIE_FIELDS,
	LIE_OMIT,
	LIE_DOUBLE,
	LIE_SWAP,
	LIE_INSTEAD, /* an old or a new one in its place */
	LIE_BEHIND,  /* an old or a new one follows */
	LIE_ELSEWHERE,
	LIE_CUT,
	LIE_MUTE,
	LIE_CNT,
};

struct session;

/* The fate of a TCP connection after the liar's message. */
enum liar_end {
	LIAR_GO_ON,
	LIAR_HUSH, /* nothing more is said on it */
	LIAR_FIN,
	LIAR_RST,
};

struct liar {
	struct world *w;
	const struct plan *p;
	struct host *h;
	struct rng rng;
	struct lie_memory mem;
	unsigned spoken; /* messages */
	unsigned lied;   /* so many times */
	bool by_habit;   /* the one at hand */
	bool mute;       /* nothing of it arrives on any link */
	bool gone;
	struct timer act;
	struct timer trouble; /* what follows a lie */
	struct rnic_dev *trouble_dev;
	uint32_t trouble_qpn;
	bool has_kept; /* a message that goes behind the next one */
	uint32_t kept_qpn;
	size_t kept_len;
	uint8_t kept[LIE_MSG_MAX];
};

/* Says this at one of the liar's queue pairs. */
void liar_forge(struct liar *, struct rnic_dev *, uint32_t qpn, uint8_t *msg, size_t len, const char *why);
void liar_start(struct liar *, struct world *, const struct plan *, struct host *);
void liar_stop(struct liar *);
/* Bytes of CLC that the liar's side of a flow is about to send, whole messages, len of cap: their new length, and what
 * becomes of the connection. */
size_t liar_says(struct liar *, uint32_t flow, uint8_t *buf, size_t len, size_t cap, enum liar_end *);
/* CLC that is about to be sent to the liar. */
void liar_hears(struct liar *, uint8_t *buf, size_t len);
/* struct sim_config.tamper */
bool liar_tampers(struct liar *, struct sim_forgery *);
/* CLC between others. */
void liar_overhears(struct liar *, const uint8_t *buf, size_t len);
/* From now on nothing of it arrives on any link, and its process stands still. */
void liar_falls_silent(struct liar *, int64_t until_ns);
/* The process ends. */
void liar_ends(struct liar *);
