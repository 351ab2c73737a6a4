/* The fence of an iWARP device: sent data has reached the peer once a small RDMA Read after it is answered, because the
 * peer answers in order (RFC 5040 5.5). One Read at a time is sent. A user that waits for a completion causes it after
 * a delay, a requested fence at once. A half-used send queue, or half of the peer's receives used, causes it as well.
 * If a Read is unanswered too long, the device reports RNIC_EV_SILENT.
 * Rules and time limits are here; devices send the Read and report its answer. Internal to lib/rnic. */
#pragma once

#include "base/timerq.h"
#include "rnic/mpa_pdata.h"
#include "rnic/sendq.h"

#define FENCE_TIMERS 2 /* for timerq_reserve */
/* STag of a zero-length Read, which is not checked (RFC 5040); 1, because some peers reject 0. */
#define FENCE_EMPTY_STAG 1

struct fence {
	const struct sendq *sq;
	const struct rnic_dev *dev; /* source of the time */
	struct timerq *timers;
	uint32_t delay_ms;                /* a signaled request is fenced after this time at the latest */
	uint32_t answer_ms;               /* an unanswered Read is reported after each such interval */
	uint8_t bytes[2 * MPA_FENCE_LEN]; /* first the source of the peer's Reads, then the sink of ours */
	uint32_t peer_stag;               /* source of our Reads; 0: none, the Reads are empty */
	uint64_t peer_to;
	bool out;          /* a Read is outstanding */
	uint32_t read_pos; /* it proves the requests before this position */
	uint32_t want_pos; /* proof is requested up to this position */
	uint32_t sig_pos;  /* after the last request with a waiting user */
	struct timer delay_timer, answer_timer;
};

/* The device sets sq, dev, timers and the two times before. */
void fence_init(struct fence *, void (*on_delay)(struct timer *), void (*on_silence)(struct timer *));
void fence_stop(struct fence *);
/* Takes the peer's fence bytes from its private data. */
void fence_set_peer(struct fence *, const struct mpa_pdata *);
/* Called after a post; signaled: requests proof of it after the delay. */
void fence_posted(struct fence *, bool signaled);
/* Requests proof of all posted requests now. */
void fence_want(struct fence *);

/* A Read may be sent, and proof of sent requests is requested. */
bool fence_wanted(const struct fence *);
/* A Read may be sent, and the send queue needs one. */
bool fence_pressed(const struct fence *);

/* The Read was sent after all requests before sq->sent. */
void fence_sent(struct fence *);
/* The Read was answered or failed. All requests before the returned position are proven, unless it failed. */
uint32_t fence_answered(struct fence *);
/* Arms the delay if requests are left that no outstanding Read proves. */
void fence_arm(struct fence *);
/* The peer must respond within answer_ms. */
void fence_expect_answer(struct fence *);
