/*
 * What fuzz_engine.c runs in: one engine with two simulated devices, virtual time, and the peers of that engine:
 * the rival, which does what the program says, and the witness, an honest engine whose connection must not notice. Only
 * the public interface of the engine is used; the bounds of what it may hold look inside, after each turn.
 */
#pragma once

#include "tests/sim/sim.h"
#include "smcr/smcr.h"
#include "tests/scenario/bounds.h"

#define ARENA_DEVS 4
#define ARENA_MS 1000000LL
#define ARENA_UEID 'U' /* so many of it */

/* smcr_open.app of every connection of the engine. */
struct arena_user {
	void (*on_event)(struct arena_user *, unsigned events);
};

/* Calls of the engine's devices that fail from now on: bits. */
enum {
	FAIL_POST_SEND = 1 << 0,
	FAIL_POST_RECV = 1 << 1,
	FAIL_MR_REG = 1 << 2,
	FAIL_QP_CREATE = 1 << 3,
	FAIL_PD_ALLOC = 1 << 4,
	FAIL_CONNECT = 1 << 5,
	FAIL_EXPECT = 1 << 6,
	FAIL_ALL = (1 << 7) - 1,
};

struct rival;
struct witness;

struct arena {
	unsigned flags;
	struct sim_fabric *fab;
	struct rng rng;
	struct smcr *eng;
	struct smcr_config cfg;
	struct rnic_dev *dev[ARENA_DEVS]; /* NULL: not there at the moment */
	int64_t now_ns;
	unsigned fail_what, fail_after, fail_cnt;
	struct rival *rival;
	struct witness *witness;
	bool deaf; /* the engine's log has no reader */
	struct bounds bounds;
};

enum {
	ARENA_ROCE = 1 << 0,
	ARENA_RFC_CURSORS = 1 << 1,
	ARENA_ONE_LINK = 1 << 2,
	ARENA_MANY_LINKS = 1 << 3,
	ARENA_SMALL = 1 << 4,    /* few connections a group, small RMBs: limits are near */
	ARENA_NO_DENY = 1 << 5,  /* a card */
	ARENA_CONFIRMS = 1 << 6, /* completions wait for rnic_ops.confirm */
	ARENA_ONE_DEV = 1 << 7,
	ARENA_V2 = 1 << 8, /* the engine has a UEID, and RoCE */
	/* Without these two last: soft iWARP over TCP. */
	ARENA_SCTP = 1 << 9,
	ARENA_SCTP_UDP = 1 << 10,
	ARENA_MIXED = 1 << 11, /* each host has soft iWARP of every kind */
};

void arena_init(struct arena *, unsigned flags);
/* The engine first, while its peers still have their ends; then rival and witness, which the caller frees. */
void arena_free_engine(struct arena *);
void arena_free_fabric(struct arena *);
/* A GID and MAC of their own for the n-th device of host h; its transport is that of all with this number. */
struct rnic_dev *arena_device(struct arena *, unsigned h, unsigned n);
/* Everything that happens at this instant. */
void arena_settle(struct arena *);
void arena_run(struct arena *, int64_t ns);
void arena_fail(struct arena *, unsigned what, unsigned after, unsigned cnt);

/* -- devices of the engine -- */
void arena_dev_remove(struct arena *, unsigned n);
void arena_dev_add(struct arena *, unsigned n);
