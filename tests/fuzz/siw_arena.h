/*
 * The soft iWARP device that a program of steps is about, and its user: queue pairs, regions, requests and what becomes of
 * them. A second, honest device has a link to it and must not notice what the program's rivals do. The device may not crash,
 * hang, leak, end a request twice or never, or place a byte where its peer may not. What is on the wire is the target's:
 * rivals, and the sockets in memory that join all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "rnic/siw/siw.h"
#include "rnic/unit.h"
#include "steps.h"
#include "twist.h"

#define MS 1000000LL
#define SIW_ARENA_LINKS 6
#define SIW_ARENA_REGION 8192
#define SIW_ARENA_TOKEN 0x1122334455667700 /* of the first link, and so on */

struct siw_region {
	uint8_t *mem; /* SIW_ARENA_REGION bytes between two guards */
	struct rnic_mr *mr;
	struct rnic_unit units[8]; /* of a region for the peer: Writes may stay where they arrive */
};

/* One queue pair, with a protection domain, a region for its peer and one for its receives. */
struct siw_link {
	struct rnic_dev *dev; /* NULL: free */
	struct rnic_pd *pd;
	struct rnic_qp *qp;
	struct siw_region open, own;
	bool connected, over;
	uint32_t sq, rq;
	uint64_t posted, ended; /* sends, signaled or not: what a failure ends is counted, too */
	uint64_t recvs, recvs_ended;
	uint64_t got;
};

struct siw_arena {
	/* The target's, set before siw_arena_begin(). */
	struct siw_config cfg;
	struct rnic_loop loop;
	bool (*rivals_turn)(struct siw_arena *); /* they take what has arrived: true when there was something */
	bool (*net_turn)(void);
	void (*ended)(struct siw_arena *); /* the rivals are no more */
	uint16_t rival_port;               /* where those are that a queue pair may look for, */
	unsigned rival_ports;              /* so many */
	int64_t now_ns;                    /* never set back */

	struct rng rng;
	struct rnic_dev *dev, *honest;
	struct siw_link link[SIW_ARENA_LINKS], witness[2]; /* [0] of the device, [1] of the honest one */
	bool excused;                                      /* the witness may notice */
};

/* Both devices, and the witness's link. cfg is the device's; the honest one has depths of its own. reversed: the device is the
 * passive side of that link. */
void siw_arena_begin(struct siw_arena *, bool reversed);
/* The witness works, before and behind the rivals' end; all is given back. */
void siw_arena_end(struct siw_arena *);
/* All that can happen now happens. */
void siw_arena_settle(struct siw_arena *);
void siw_arena_run(struct siw_arena *, int64_t ns);
/* Numbers that mean something. */
void siw_arena_gather(const struct siw_arena *, struct lore *);

/* -- steps -- */

void siw_step_create(struct siw_arena *, const struct step *);
void siw_step_expect(struct siw_arena *, const struct step *);
/* b: the peer that comes, or is looked for. */
void siw_step_connect(struct siw_arena *, const struct step *);
/* Requests, receives, regions, ends. */
void siw_step_user(struct siw_arena *, const struct step *);
void siw_step_time(struct siw_arena *, const struct step *);
void siw_step_port(struct siw_arena *, const struct step *);
/* The witness's link is used. */
void siw_step_witness(struct siw_arena *, const struct step *);
