/*
 * An honest peer of the engine: a second engine with a connection to the first one, over which numbered bytes go in
 * both directions. Whatever the rival does, it must not notice; only what a program does to the engine's own devices or
 * memory may end it.
 */
#pragma once

#include "arena.h"

struct witness_end {
	struct arena_user user;
	struct witness *of;
	struct smcr_conn *conn;
	uint8_t out[1024]; /* CLC bytes for the other end */
	size_t out_len;
	uint64_t written, read;
	bool established, ended;
};

struct witness {
	struct arena *arena;
	struct smcr *eng;
	struct rng rng;
	struct rnic_dev *dev;
	struct witness_end here, there; /* of the witness, of the engine */
	bool excused;
	uint8_t accept[256]; /* what it has said in clear, for the rival to use: its own CLC messages */
	size_t accept_len;
};

/* As the engine's client or server. Its connection is established when this returns. */
void witness_init(struct witness *, struct arena *, enum smcr_role of_engine);
/* CLC bytes, events, data: true when something happened. */
bool witness_turn(struct witness *);
int64_t witness_deadline(const struct witness *);
void witness_send(struct witness *, size_t len);
/* Bytes get through both ways, unless excused. */
void witness_check(struct witness *);
void witness_fini(struct witness *);
