/*
 * The fence: what an iWARP device has sent is known to be with the peer when a
 * small RDMA Read behind it was answered, because the peer answers in order
 * (RFC 5040 5.5). One Read at a time: when a user waits for a completion or
 * asks, at once or after a little, or when half of a queue or of the peer's
 * receives is used up. Unanswered for too long, the device reports RNIC_EV_SILENT.
 *
 * This has the rules and the time limits; devices send the Read and say when it
 * was answered. Internal to lib/rnic.
 */
#pragma once

#include "base/timerq.h"
#include "rnic/mpa_pdata.h"
#include "rnic/sendq.h"

#define FENCE_TIMERS 2 /* for timerq_reserve */
/* Of a Read of no bytes nobody looks at the STag (RFC 5040); 1, because some peers dislike 0. */
#define FENCE_EMPTY_STAG 1

struct fence {
	const struct sendq *sq;
	const struct rnic_dev *dev; /* whose time counts */
	struct timerq *timers;
	uint32_t delay_ms;                /* a signaled request is fenced after this, at the latest */
	uint32_t answer_ms;               /* a Read unanswered for this long is reported, and again after as long */
	uint8_t bytes[2 * MPA_FENCE_LEN]; /* what the peer's Reads read, then what ours have for a target */
	uint32_t peer_stag;               /* of what ours read; 0: nothing, they are empty */
	uint64_t peer_to;
	bool out;          /* a Read is under way */
	uint32_t read_pos; /* it proves the requests before this one */
	uint32_t want_pos; /* proof is wanted up to here */
	uint32_t sig_pos;  /* behind the last request whose user waits for its completion */
	struct timer delay_timer;
	struct timer answer_timer;
};

/* sq, dev, timers and the two times are set by the device before. */
void fence_init(struct fence *, void (*on_delay)(struct timer *), void (*on_silence)(struct timer *));
void fence_stop(struct fence *);
/* The peer's private data name what its fence bytes are. */
void fence_set_peer(struct fence *, const struct mpa_pdata *);
/* A request was posted, the last one; signaled: proof of it is wanted after a while. */
void fence_posted(struct fence *, bool signaled);
/* Proof is wanted of all that was posted, now. */
void fence_want(struct fence *);

/* May a Read be sent, and is one wanted of what has been sent so far? */
bool fence_wanted(const struct fence *);
/* May a Read be sent, and does the queue need one? */
bool fence_pressed(const struct fence *);

/* The Read was sent behind all requests before sq->sent. */
void fence_sent(struct fence *);
/* The Read was answered, or failed: all requests before the position that is returned are proven, unless it failed. */
uint32_t fence_answered(struct fence *);
/* Arms the delay, when there is something to prove that no Read under way will. */
void fence_arm(struct fence *);
/* The peer has to do something within answer_ms. */
void fence_expect_answer(struct fence *);
