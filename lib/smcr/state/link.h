/* A link: one queue pair between two RNICs, with its own protection domain, in a link group (RFC 7609 2.2). Owned by
 * its group, in a fixed slot, created and ended by group/link.c. data/link_post.c posts data; wr_id is a running number
 * and indexes a ring of request records.
 *
 * FREE -> CONNECTING -> CONFIRMING -> ACTIVE
 * any of the last three -> LOST -> DOWN when it broke, or
 *                       -> DOWN  when it ends in order or the peer never knew it
 * DOWN -> GONE or FREE, GONE -> FREE; LOST -> FREE with its group */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "rnic/rnic.h"
#include "smcr/smcr.h"
#include "smcr/state/log.h"
#include "wire/llc.h"

#define LINK_MSG_LEN 44   /* every CDC message, and nearly every LLC message (RFC 7609 A.3, A.4) */
#define LINK_LLC_QUEUE 16 /* LLC messages waiting to be posted */

/* Link slots of a group: symmetric links and one asymmetric link. */
#define LINK_SLOTS (SMCR_LINKS_MAX + 1)

struct lgr;

enum link_state {
	LINK_FREE,       /* slot not in use */
	LINK_CONNECTING, /* QP made, not connected */
	LINK_CONFIRMING, /* connected, CONFIRM LINK exchange not done */
	LINK_ACTIVE,
	LINK_LOST, /* unusable, but its end is not agreed yet: DELETE LINK is owed or in progress */
	LINK_GONE, /* only its identity remains, for an Accept or Confirm in flight */
	LINK_DOWN, /* no more posts; freed at the end of the turn */
	LINK_STATE_CNT,
};

enum link_wr_kind {
	LINK_WR_WRITE,
	LINK_WR_CDC,
	LINK_WR_FAILOVER, /* a failover validation message */
	LINK_WR_LLC,
};

/* Record of a posted request, by wr_id. */
struct link_wr {
	enum link_wr_kind kind;
	uint32_t conn_id;  /* write, CDC */
	uint64_t tx_end;   /* CDC: stream position up to which its writes extend */
	uint16_t seq;      /* CDC: its sequence number */
	uint8_t flags;     /* CDC: its connection flags */
	enum llc_type llc; /* LLC */
	bool llc_response;
	bool llc_long; /* LLC: stored in link->long_buf */
};

/* A received message that waits; its buffer is not reposted before. */
struct link_wait {
	uint32_t buf, len;
};

/* An LLC message waiting to be posted. */
struct link_llc {
	uint16_t len;
	const uint8_t *in_long; /* one above LINK_MSG_LEN, in link->long_buf; else NULL */
	uint8_t msg[LINK_MSG_LEN];
	enum llc_type type;
	bool response;
};

struct link {
	struct lgr *lgr;
	unsigned slot;  /* index in lgr->links */
	uint32_t order; /* of creation, within the group */
	enum link_state state;
	bool was_active;
	bool told_up;              /* LINK_UP was logged: our sends are known to arrive */
	bool path_lost;            /* ended because its path was lost, as reported by either side */
	int64_t gone_ns;           /* LINK_GONE: since */
	const char *down_why;      /* static text */
	bool silent;               /* and the reason is a silent peer */
	uint8_t number;            /* link number shared by both ends, never 0 */
	uint32_t qpn;              /* ours */
	bool retiring;             /* takes no connections; its connections are moving away */
	bool delete_sent;          /* a DELETE LINK for it was sent */
	uint8_t delete_over;       /* number of the link that carried it */
	uint8_t delete_cnt;        /* how often */
	uint32_t delete_reason;    /* reason in its DELETE LINK, LLC_DELETE_ */
	uint32_t delete_wanted;    /* this end's own reason, LLC_DELETE_; 0: none, or the peer was first */
	struct timer delete_timer; /* client, LINK_LOST: the server's DELETE LINK is awaited, requested or not */
	uint32_t user_id, peer_user_id;

	struct rnic_dev *dev;
	struct rnic_info info; /* of the device, when the link was created */
	struct rnic_pd *pd;
	struct rnic_qp *qp; /* qp->ctx is this link; NULL once its end was requested */
	bool leaving;       /* the end of qp was requested: the device may use memory of the link until qp is freed */
	bool connected;
	bool looked;               /* ended, and its completions were polled once more since */
	bool loss_marked;          /* the group has not handled its loss yet (marks.h) */
	const char *failed;        /* reason of a pending loss (marks.h); NULL: none */
	struct rnic_remote remote; /* valid from CLC or ADD LINK on */
	uint8_t mtu_code;          /* of the path: the smaller of both ends */

	/* receive */
	uint32_t rq_depth;        /* as configured, or the device's limit; at most 48 in SMC version 2 */
	uint32_t recv_len;        /* of each buffer */
	uint8_t *recv_buf;        /* rq_depth buffers, followed by long_buf */
	struct rnic_mr *recv_mr;  /* of all of it */
	uint32_t recv_repost[64]; /* buffers to be reposted in batches */
	unsigned recv_repost_cnt;
	struct link_wait *recv_wait; /* messages that wait for those of other links, rq_depth entries */
	unsigned recv_wait_cnt;
	struct list_node wait_node; /* engine's list of links with waiting messages */
	int64_t last_rx_ns;         /* only a receive counts as activity (4.5.3) */

	/* send */
	struct link_wr *wr; /* ring of sq_depth + 1 entries, by wr_id % wr_cap */
	uint32_t wr_cap;
	uint64_t wr_head;         /* next wr_id */
	uint64_t wr_tail;         /* oldest not complete */
	struct rnic_send_wr held; /* accepted, not yet posted: see link_post */
	bool has_held;
	uint8_t held_msg[LINK_MSG_LEN];
	uint32_t unsignaled; /* posted since the last signaled one */
	/* Version 2: LLC messages above LINK_MSG_LEN, back to back; reused from its start when all are complete. */
	uint8_t *long_buf; /* LLC_MAX_LEN bytes */
	uint32_t long_used;
	unsigned long_cnt; /* messages in it */

	uint32_t sends_max;  /* highest number of Send credits of the device so far */
	bool want_fence;     /* a waiter for completions exists */
	uint64_t fence_head; /* wr_head when completions were last requested */

	struct link_llc llc_queue[LINK_LLC_QUEUE];
	unsigned llc_first, llc_cnt;

	struct list_node ready;    /* conns with something to send, round robin */
	struct list_node eng_node; /* engine's list of links with work (ready, LLC or held) */
	uint32_t conn_cnt;         /* connections that send over this link */

	/* TEST LINK (4.5.3) */
	struct timer keepalive;
	bool ack_wanted; /* send a TEST LINK with the next flush */
	bool test_pending;
	bool test_again;   /* send another one after the one in progress */
	const char *doubt; /* what was not answered: reason of the loss if its test is not answered either */
	/* Silent beyond the response limit, for this reason, and its test is in progress; NULL: not suspect. */
	const char *suspect;
	int64_t suspect_ns; /* since */
	int64_t proven_ns;  /* last answer to a test or CONFIRM LINK */
	bool told_silent;   /* LINK_SILENT was logged */
	/* RTokens for unknown RMBs, sent when it was added: their CONFIRM RKEY may be late */
	uint8_t rtokens_ahead;
	uint8_t late_rkeys; /* abandoned RKEY exchanges: their responses may still come */
	/* of those, version 2 DELETE RKEYs, whose responses name nothing; a test sent after them settles it */
	uint8_t owed_deletes;
	bool is_suspect; /* the peer reportedly does not know it: the next answered test disproves that */
	bool denies;     /* some elements are closed to it (rx.c) until a test shows that the peer has not reset it */
	uint8_t test_data[16];
	int64_t test_sent_ns;
	int64_t rtt_ns; /* -1 = none yet */
};

/* Likewise for a link, as lgr_set_state; maintains the group's link_cnt and active_cnt. */
void link_set_state(struct link *, enum link_state, const char *why);
extern const struct state_row link_states[]; /* by enum link_state */
/* The link's remote end is this RNIC. Version 2 crosses routers, so only the GID counts: a MAC may be a router's. */
bool link_leads_to(const struct link *, const uint8_t gid[16], const uint8_t mac[6]);

/* Nothing can be sent or received over the link. */
static inline bool
link_has_ended(const struct link *link)
{
	return link->state == LINK_FREE || link->state >= LINK_LOST;
}
