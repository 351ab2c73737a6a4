/* What a liar does only in version 2 of SMC: lists of any length in messages of up to 8 KiB, 16-bit numbers in either byte order,
 * and sequences of messages, each of which is nearly right: requests for links, RMBs by the hundred that come and go, answers
 * that are unsolicited. Called by liar.c alone. */
#pragma once

#include "tests/scenario/liar.h"

/* Plan.habit_v2, and what a single lie is. */
enum lie_v2 {
	LIE_V2_NONE,
	LIE_V2_LIST,
	LIE_V2_STRETCH,
	LIE_V2_TURN,
	LIE_V2_CNT,
};

/* Plan.liar_order */
enum liar_order {
	LIAR_ORDER_ENGINES, /* as its engine has it */
	LIAR_LITTLE,        /* it is a little-endian machine, in earnest */
	LIAR_EITHER,        /* each message has another one */
};

/* One of these lies about this message, instead of one of both versions' (liar.h)? */
bool liar_v2_draws(struct liar *, enum lie_proto, const uint8_t *msg, size_t len);
/* About a message on a link. False: it does not go itself. */
bool liar_v2_says(struct liar *, struct sim_forgery *);
/* About a CLC message: its new length. */
size_t liar_v2_clc(struct liar *, uint8_t *buf, size_t len, size_t cap);
/* A sequence of messages at this queue pair. */
void liar_v2_acts(struct liar *, struct rnic_dev *, uint32_t qpn);
/* The last change of each LLC message. */
void liar_v2_orders(struct liar *, uint8_t *msg, size_t len);
