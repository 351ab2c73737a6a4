/*
 * A link: one queue pair between two RNICs, with its own protection domain, in
 * a link group (RFC 7609 2.2). Owned by its group, in a fixed slot; freed with
 * link_free once the device has given back every request.
 *
 * Sending (link_tx.c): link_post hands work requests to the device in order,
 * one behind, so that the last one of a burst can be signaled; wr_id is a
 * running number into a ring that remembers what each request was.
 */
#ifndef SMCRD_SMCR_LINK_H
#define SMCRD_SMCR_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "rnic/rnic.h"
#include "smcr/smcr.h"
#include "wire/llc.h"

#define LINK_MSG_LEN 44      /* every LLC and CDC message (RFC 7609 A.3, A.4) */
#define LINK_LLC_QUEUE 16    /* LLC messages waiting to be posted */
#define LINK_SIGNAL_EVERY 64 /* at least one request in so many is signaled */

struct lgr;
struct smcr_conn;

enum link_state {
	LINK_FREE,       /* slot not in use */
	LINK_CONNECTING, /* QP made, not connected */
	LINK_CONFIRMING, /* connected, CONFIRM LINK exchange not done */
	LINK_ACTIVE,
	LINK_LOST, /* of no use any more, but the peers are not through with it: DELETE LINK is owed or under way */
	LINK_GONE, /* nothing is left of it but its identity: an Accept or Confirm under way may name it yet */
	LINK_DOWN, /* no more posts; waits to be freed at the end of the turn */
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
};

/* An LLC message that waits to be posted. */
struct link_llc {
	uint8_t msg[LINK_MSG_LEN];
	enum llc_type type;
	bool response;
};

struct link {
	struct lgr *lgr;
	unsigned slot;  /* index in lgr->links */
	uint32_t order; /* of making, within the group */
	bool was_active;
	int64_t gone_ns; /* LINK_GONE: since */
	enum link_state state;
	const char *down_why;   /* static text */
	uint8_t number;         /* link number of the peers, never 0 */
	uint32_t qpn;           /* ours */
	bool retiring;          /* takes no more connections; those that it has are moving away */
	bool told;              /* a DELETE LINK for it is out */
	uint8_t told_over;      /* number of the link that it went over */
	uint8_t told_cnt;       /* how often */
	uint32_t delete_reason; /* what its DELETE LINK says, LLC_DELETE_ */
	struct timer deletion;  /* client, LINK_LOST: the server's DELETE LINK is awaited */
	uint32_t user_id, peer_user_id;

	struct rnic_dev *dev;
	struct rnic_info info; /* of the device, when the link was made */
	struct rnic_pd *pd;
	struct rnic_qp *qp; /* qp->ctx is this link */
	bool connected;
	bool looked;               /* it has ended, and its completions were handled once more since */
	const char *failed;        /* why it goes down by the end of smcr_poll; NULL: it does not */
	struct rnic_remote remote; /* valid from CLC or ADD LINK on */
	uint8_t mtu_code;          /* of the path: the smaller of both */

	/* receive */
	uint32_t rq_depth; /* as configured, or what the device can do */
	uint8_t *recv_buf; /* rq_depth buffers of RECV_LEN */
	struct rnic_mr *recv_mr;
	uint32_t recv_repost[64]; /* buffers to be posted again, in batches */
	unsigned recv_repost_cnt;
	int64_t last_rx_ns; /* activity is something received (4.5.3) */

	/* send */
	struct link_wr *wr; /* ring of sq_depth + 1 entries, by wr_id % wr_cap */
	uint32_t wr_cap;
	uint64_t wr_head;         /* next wr_id */
	uint64_t wr_tail;         /* oldest not complete */
	struct rnic_send_wr held; /* handed in, not yet posted: see link_post */
	bool has_held;
	uint8_t held_msg[LINK_MSG_LEN];
	uint32_t unsignaled; /* posted since the last signaled one */

	uint32_t sends_max; /* most Sends that the device ever had room for */
	bool want_proof;
	bool want_confirm;     /* somebody waits for completions */
	uint64_t confirm_head; /* wr_head when they were last asked for */

	struct link_llc llc_queue[LINK_LLC_QUEUE];
	unsigned llc_first, llc_cnt;

	struct list_node ready;    /* conns with something to send, round robin */
	struct list_node eng_node; /* engine's list of links with work (ready, LLC or held) */
	uint32_t conn_cnt;         /* connections that send over this link */

	/* TEST LINK (4.5.3) */
	struct timer keepalive;
	bool test_pending;
	bool test_again; /* another one is to follow the one under way */
	const char *
	    doubt; /* what was not answered over it; NULL: all was. It is what it goes down for without an answer now */
	uint8_t late_rkeys; /* RKEY exchanges that were given up: their answers may come yet */
	bool doubted;       /* the peer is said not to know it: the next test that is answered shows that it does */
	bool denies; /* some elements are closed to it (rx.c) until a test shows that the peer has not reset it */
	uint8_t test_data[16];
	int64_t test_sent_ns;
	int64_t rtt_ns; /* -1 = none yet */
};

/* -- link_tx.c: used by tx.c, llc.c and the engine's flush -- */

/* Room for one data step of a connection: how many work requests, and payload bytes worth queueing. */
void link_room(const struct link *, struct rnic_credits *);
/* Queues a work request; msg != NULL: an inline message of LINK_MSG_LEN bytes (Send, solicited), copied.
 * 0 or -ENOBUFS/-ENOTCONN; the caller looked at link_room before, so an error means a broken link. */
int link_post(struct link *, const struct rnic_send_wr *, const uint8_t *msg, const struct link_wr *what);
/* End of a burst: posts what is held, signaled. */
void link_post_end(struct link *);
/* Queues an LLC message; it goes out before any data. -ENOBUFS when LINK_LLC_QUEUE are
 * waiting: such a link is broken and goes down with the next smcr_poll. */
int link_send_llc(struct link *, const struct llc_msg *);
/* A send-side completion of this link: hands each request up to wr_id to its owner (conn_wr_done, llc_sent). */
void link_wc(struct link *, const struct rnic_wc *);
/* Posts LLC, then connections round robin, within the room; true when more is waiting and could go at once. */
bool link_flush(struct link *);
/* Somebody waits for the completion of what is posted until the next flush ends. */
void link_want_confirm(struct link *);
/* Something has left the link: does it live on? Asked by TEST LINK at the next flush. */
void link_want_proof(struct link *);
/* Registers that this link has work for the next flush. */
void link_kick(struct link *);

/* -- link.c: set-up and end -- */

/* Takes a free slot, makes PD, QP, receive buffers; registers all RMBs and send buffers of the group. */
int link_new(struct lgr *, struct rnic_dev *, struct link **);
/* The link is of no use any more: state DOWN, tells the group (lgr_link_down), which decides about its
 * connections. Safe to call twice. */
void link_down(struct link *, const char *why);
/* The peers are through with its deletion: what is queued still goes out, then it ends. */
void link_retire(struct link *, const char *why);
/* Frees QP, PD, registrations. */
void link_release(struct link *);
/* The same, and the slot is free again. */
void link_free(struct link *);
/* The end of a link that is down: its slot is kept for a while when the peer may have named it. */
void link_bury(struct link *);
/* RNIC_EV_CONNECTED. */
void link_connected(struct link *);
/* The far end; lowers the path's MTU to its. */
void link_set_remote(struct link *, const struct rnic_remote *);
/* The same, as Accept or Confirm has it. */
void link_set_remote_clc(struct link *, const struct clc_accept *);
/* Is this link, active or lost of late, the one whose far end the message names? */
bool link_is_remote(const struct link *, const struct clc_accept *);
/* CONFIRM LINK is through. */
void link_set_active(struct link *);
/* Like link_down, but the group is not told; graceful sends what was posted first. next: LINK_DOWN, or LINK_LOST when
 * the peers have to agree on its end. */
void link_stop(struct link *, enum link_state next, const char *why, bool graceful);
/* Nothing can be sent or received over it any more. */
static inline bool
link_has_ended(const struct link *link)
{
	return link->state == LINK_FREE || link->state == LINK_LOST || link->state == LINK_GONE ||
	    link->state == LINK_DOWN;
}
int link_recv_fill(struct link *);
/* One receive completion: dispatches CDC and LLC, marks the buffer for reposting. False: not yet, the completions of the
 * other devices are to be handled first; never when `last` says that they were. */
bool link_recv(struct link *, const struct rnic_wc *, bool last);
void link_recv_repost(struct link *);

#endif
