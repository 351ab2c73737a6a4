/*
 * A link: one queue pair between two RNICs, with its own protection domain, in
 * a link group (RFC 7609 2.2). Owned by its group, in a fixed slot, made and
 * ended by group/link.c. Data is posted by data/link_post.c: wr_id is a running
 * number into a ring that remembers what each request was.
 *
 *	FREE -> CONNECTING -> CONFIRMING -> ACTIVE
 *	any of the last three -> LOST -> DOWN	when it broke, or
 *	                      -> DOWN		when it ends in order or the peer never knew it
 *	DOWN -> GONE or FREE, GONE -> FREE; LOST -> FREE with its group
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "rnic/rnic.h"
#include "smcr/smcr.h"
#include "wire/llc.h"

#define LINK_MSG_LEN 44   /* every CDC message, and nearly every LLC message (RFC 7609 A.3, A.4) */
#define LINK_LLC_QUEUE 16 /* LLC messages waiting to be posted */

/* Link slots of a group: the symmetric links and one asymmetric. */
#define LINK_SLOTS (SMCR_LINKS_MAX + 1)

struct lgr;

enum link_state {
	LINK_FREE,       /* slot not in use */
	LINK_CONNECTING, /* QP made, not connected */
	LINK_CONFIRMING, /* connected, CONFIRM LINK exchange not done */
	LINK_ACTIVE,
	LINK_LOST, /* of no use, but the peers have not agreed on its end: DELETE LINK is owed or under way */
	LINK_GONE, /* nothing is left of it but its identity: an Accept or Confirm under way may name it yet */
	LINK_DOWN, /* no more posts; waits to be freed at the end of the turn */
	LINK_STATE_CNT,
};

enum link_wr_kind {
	LINK_WR_WRITE,
	LINK_WR_CDC,
	LINK_WR_FAILOVER, /* a failover validation message */
	LINK_WR_LLC,
};

/* What a posted request was, by wr_id. */
struct link_wr {
	enum link_wr_kind kind;
	uint32_t conn_id;  /* write, CDC */
	uint64_t tx_end;   /* CDC: stream position up to which its writes reach */
	uint16_t seq;      /* CDC: its sequence number */
	uint8_t flags;     /* CDC: its connection flags */
	enum llc_type llc; /* LLC */
	bool llc_response;
	bool llc_long; /* LLC: it is in link->long_buf */
};

/* A message that has come and waits: its buffer, which is not posted again before. */
struct link_wait {
	uint32_t buf, len;
};

/* An LLC message that waits to be posted. */
struct link_llc {
	uint16_t len;
	const uint8_t *in_long; /* one above LINK_MSG_LEN is here, in link->long_buf; else NULL */
	uint8_t msg[LINK_MSG_LEN];
	enum llc_type type;
	bool response;
};

struct link {
	struct lgr *lgr;
	unsigned slot;  /* index in lgr->links */
	uint32_t order; /* of making, within the group */
	enum link_state state;
	bool was_active;
	bool told_up;              /* in the log, when it is known that what we send over it arrives */
	bool path_lost;            /* it ended because its path was lost, as either side says */
	int64_t gone_ns;           /* LINK_GONE: since */
	const char *down_why;      /* static text */
	bool silent;               /* and the reason is that the peer did not answer */
	uint8_t number;            /* link number of the peers, never 0 */
	uint32_t qpn;              /* ours */
	bool retiring;             /* takes no connections; those that it has are moving away */
	bool delete_sent;          /* a DELETE LINK for it is out */
	uint8_t delete_over;       /* number of the link that it went over */
	uint8_t delete_cnt;        /* how often */
	uint32_t delete_reason;    /* what its DELETE LINK says, LLC_DELETE_ */
	uint32_t delete_wanted;    /* this end's own reason, LLC_DELETE_; 0: none, or the peer was first */
	struct timer delete_timer; /* client, LINK_LOST: the server's DELETE LINK is awaited, asked for or not */
	uint32_t user_id, peer_user_id;

	struct rnic_dev *dev;
	struct rnic_info info; /* of the device, when the link was made */
	struct rnic_pd *pd;
	struct rnic_qp *qp; /* qp->ctx is this link; NULL once its end was asked for */
	bool leaving; /* the end of qp was asked for: what the device may use of the link stays until it is freed */
	bool connected;
	bool looked;               /* it has ended, and its completions were handled once more since */
	bool loss_marked;          /* its group has not reacted to its loss yet (marks.h) */
	const char *failed;        /* why it is to be lost (marks.h); NULL: it is not */
	struct rnic_remote remote; /* valid from CLC or ADD LINK on */
	uint8_t mtu_code;          /* of the path: the smaller of both */

	/* receive */
	uint32_t rq_depth;        /* as configured, or what the device can do; SMC version 2: 48 at most */
	uint32_t recv_len;        /* of each buffer */
	uint8_t *recv_buf;        /* rq_depth buffers, and long_buf behind them */
	struct rnic_mr *recv_mr;  /* of all that */
	uint32_t recv_repost[64]; /* buffers to be posted again, in batches */
	unsigned recv_repost_cnt;
	struct link_wait *recv_wait; /* messages that wait for what comes over other links, rq_depth entries */
	unsigned recv_wait_cnt;
	struct list_node wait_node; /* engine's list of links with such */
	int64_t last_rx_ns;         /* activity is something received (4.5.3) */

	/* send */
	struct link_wr *wr; /* ring of sq_depth + 1 entries, by wr_id % wr_cap */
	uint32_t wr_cap;
	uint64_t wr_head;         /* next wr_id */
	uint64_t wr_tail;         /* oldest not complete */
	struct rnic_send_wr held; /* handed in, not yet posted: see link_post */
	bool has_held;
	uint8_t held_msg[LINK_MSG_LEN];
	uint32_t unsignaled; /* posted since the last signaled one */
	/* SMC version 2: LLC messages above LINK_MSG_LEN, one behind the other, from their queueing to their completion; it is
	 * used from its start again when all of them are complete. NULL in version 1. */
	uint8_t *long_buf; /* LLC_MAX_LEN bytes */
	uint32_t long_used;
	unsigned long_cnt; /* messages in it */

	uint32_t sends_max;  /* most Sends that the device ever had credits for */
	bool want_fence;     /* somebody waits for completions */
	uint64_t fence_head; /* wr_head when they were last asked for */

	struct link_llc llc_queue[LINK_LLC_QUEUE];
	unsigned llc_first, llc_cnt;

	struct list_node ready;    /* conns with something to send, round robin */
	struct list_node eng_node; /* engine's list of links with work (ready, LLC or held) */
	uint32_t conn_cnt;         /* connections that send over this link */

	/* TEST LINK (4.5.3) */
	struct timer keepalive;
	bool ack_wanted; /* a TEST LINK is to go with the next flush */
	bool test_pending;
	bool test_again;   /* another one is to follow the one under way */
	const char *doubt; /* what was not answered over it: why it is lost when its test is not answered either */
	/* It is silent for longer than an answer may take, and for this reason; NULL: it is not. Its test is under way. */
	const char *suspect;
	int64_t suspect_ns; /* since */
	int64_t proven_ns;  /* a test or CONFIRM LINK was answered last */
	bool told_silent;   /* in the log */
	/* RTokens that were told when it was made, of RMBs that we did not know: their CONFIRM RKEY may be late */
	uint8_t rtokens_ahead;
	uint8_t late_rkeys; /* RKEY exchanges that were given up: their answers may come yet */
	/* of those, DELETE RKEYs of version 2, whose answers name nothing; a test that was sent behind them settles it */
	uint8_t owed_deletes;
	bool is_suspect; /* the peer is said not to know it: the next test that is answered shows that it does */
	bool denies;     /* some elements are closed to it (rx.c) until a test shows that the peer has not reset it */
	uint8_t test_data[16];
	int64_t test_sent_ns;
	int64_t rtt_ns; /* -1 = none yet */
};

/* The only place where the state changes: asserts that the change is one of those above, keeps the group's link_cnt and
 * active_cnt, and writes it to the log at level debug. why is static text or NULL. */
void link_set_state(struct link *, enum link_state, const char *why);
const char *link_state_str(enum link_state);
/* Its far end is this RNIC. Version 2 crosses routers, where a MAC may be the router's: the GID alone counts. */
bool link_leads_to(const struct link *, const uint8_t gid[16], const uint8_t mac[6]);

/* Nothing can be sent or received over it. */
static inline bool
link_has_ended(const struct link *link)
{
	return link->state == LINK_FREE || link->state >= LINK_LOST;
}
