/* Internals of the soft iWARP device. siw.c: device, memory, table of operations; siw_qp.c: queue pairs, requests,
 * completions; siw_cm.c: connection setup; siw_stream.c: the established stream; siw_linger.c: ended connections with
 * data to send. siw_llp.h hides the lower layer of DDP. */
#pragma once

#include "base/list.h"
#include "base/pages.h"
#include "base/timerq.h"
#include "iwarp/negotiate.h"
#include "iwarp/stag.h"
#include "iwarp/stream.h"
#include "rnic/events.h"
#include "rnic/fence.h"
#include "rnic/iface.h"
#include "rnic/mpa_pdata.h"
#include "rnic/siw/siw.h"
#include "rnic/unit.h"
#include "rnic/unknown_peers.h"
#include "tls/tls.h"

#define SIW_MAX_INLINE 64
#define SIW_MAX_SQ 8192
#define SIW_MAX_RQ 8192
#define SIW_MAX_MR (1u << 20)
#define SIW_SLOT_BITS 12 /* of a QPN: index; the other bits are random */
#define SIW_MAX_QP ((1u << SIW_SLOT_BITS) - 2)
#define SIW_TX_BUDGET (1024u * 1024) /* bytes per QP and turn */
#define SIW_TX_QUEUED (256u * 1024)  /* payload worth queueing, struct rnic_credits */
#define SIW_PARKED_MAX 64
#define SIW_PARKED_OF_ONE 32 /* of these, from one address */
#define SIW_PARKED_MS 1000
#define SIW_PENDING_MAX 128 /* peers with incomplete requests, and parked ones */
#define SIW_NUDGE_MS 100    /* the active side sends a second segment if nothing is received after the first */

/* Kinds of lingering connections, by their queue pair. */
enum siw_linger_kind { SIW_LINGER_UNKNOWN_PEER, SIW_LINGER_QP, SIW_LINGER_KINDS };

struct siw_dev {
	struct rnic_dev dev;
	struct siw_config cfg;
	struct neg_config neg; /* from cfg */
	const struct siw_llp *llp;
	struct siw_sctp_dev *sctp; /* owned by the LLP; NULL with TCP */
	struct rnic_loop loop;
	struct rng *rng;
	struct timerq timers;
	struct stag_table stags;
	struct list_node *rx_buffer; /* struct rnic_unit with Writes that stay where the segment is; NULL: none may */
	struct siw_qp **slots;       /* by index in the QPN */
	uint32_t qp_cnt, next_slot;
	uint32_t secured_cnt; /* of these, with a secret */
	uint64_t mr_bytes;
	struct iface iface; /* of our address */
	struct events events;
	/* siw_accept_run(): accepted() owns the non-blocking descriptor of a peer that siw_may_come() admits. */
	int listen_fd; /* -1: none */
	void (*accepted)(struct siw_dev *, int fd, const struct unknown_peer *from);
	struct timer accept_retry;
	uint16_t port;
	enum rnic_transport transport;
	const char *stack; /* SCTP, see struct rnic_info */
	bool unfinished;   /* the LLP continues its work in the next turn, by go_on */
	void (*go_on)(struct siw_dev *);
	void (*flush)(struct siw_dev *); /* transmits what the turn has pushed; NULL: push transmits */
	struct list_node pending;        /* siw_pend with incomplete request, oldest first */
	struct list_node parked;         /* siw_pend with complete request, not expected by a QP yet */
	unsigned pending_cnt, linger_cnt[SIW_LINGER_KINDS];
	struct list_node lingering[SIW_LINGER_KINDS]; /* siw_linger, oldest first */
	struct list_node rx_list;                     /* siw_qp with bytes to read or decode */
	struct list_node tx_list;                     /* siw_qp with data to send */
	struct list_node cq_list;                     /* siw_qp with completions */
	struct siw_stats stats;
	struct unknown_peers strangers; /* last peers counted */
	bool ends;                      /* siw_ops.free was called */
};

struct siw_pd {
	struct rnic_pd pd;
	uint32_t refs;
};

struct siw_mr {
	struct rnic_mr mr;
	struct stag_region region;
};

struct siw_wr {
	uint64_t wr_id, raddr;
	uint32_t rkey, len;
	enum rnic_wr_op op;
	uint16_t flags, sge_cnt;

	union {
		struct iovec sge[RNIC_SGE_MAX];
		uint8_t bytes[SIW_MAX_INLINE];
	} u;
};

/* The part of a ring used, for siw_qp_rest(). */
struct siw_ring_use {
	struct pages_use pages;
	uint32_t head; /* at the last check */
};

enum siw_state {
	SIW_IDLE,       /* created */
	SIW_EXPECTING,  /* passive: accepts the peer */
	SIW_CONNECTING, /* active: waits for the LLP's connection */
	SIW_REQUESTED,  /* active: waits for the answer to our request */
	SIW_RTR_WAIT,   /* passive: answered, waits for the peer's first segment */
	SIW_RTS,
	SIW_BROKEN, /* all requests flushed */
	SIW_CLOSED, /* by qp_disconnect */
};

struct siw_qp {
	struct rnic_qp qp;
	struct siw_dev *dev;
	struct siw_pd *pd;
	enum siw_state state;
	uint64_t token;
	bool secured; /* only in TLS, with keys from `secret` */
	uint8_t secret[RNIC_SECRET_LEN];
	uint32_t rq_depth;
	/* setup */
	bool claimed;   /* qp_connect was called */
	bool connected; /* RNIC_EV_CONNECTED was reported */
	struct rnic_remote remote;
	uint32_t peer_qpn; /* from the peer's private data */
	struct timer connect_timer, nudge_timer;
	bool nudge;                     /* another segment is due, of any content */
	struct rnic_depths peer_depths; /* as sent by the peer */
	/* stream */
	const size_t *queued; /* lower bound of the payload in the LLP's queue, in bytes */

	/* Owned by the LLP. */
	union {
		struct siw_tcp *tcp;
		struct siw_sctp *sctp;
	};

	struct stream stream;
	size_t seg_max;               /* largest DDP segment sent */
	bool tx_blocked;              /* the LLP accepts no data now */
	bool held;                    /* the LLP holds a Send until a receive is posted */
	int64_t rtt_ns, rtt_asked_ns; /* siw_path_rtt(); -1: unknown */
	/* send queue; sq.sent: end of requests turned into segments */
	struct sendq sq;
	struct siw_wr *wrs;
	uint32_t wr_mask;
	struct siw_ring_use wrs_used, cq_used;
	uint32_t enc_off; /* bytes done of request sq.sent */
	struct fence fence;
	struct stag_region fence_region; /* bytes for the fence */
	/* completions not polled yet */
	struct rnic_wc *cq;
	uint32_t cq_mask, cq_head, cq_tail;
	uint32_t cq_recvs; /* of these, receives */
	struct qp_events events;
	struct list_node rx_node, tx_node, cq_node;
};

static inline struct siw_dev *
siw_dev(const struct rnic_dev *d)
{
	return CONTAINER_OF((uintptr_t)d, struct siw_dev, dev);
}

static inline struct siw_qp *
siw_qp(const struct rnic_qp *q)
{
	return CONTAINER_OF((uintptr_t)q, struct siw_qp, qp);
}

/* Relative to the time of this turn. */
static inline void
siw_arm(struct siw_dev *dev, struct timer *t, uint32_t ms)
{
	timer_arm(&dev->timers, t, dev->dev.now_ns + (int64_t)ms * 1000000);
}

/* As in struct rnic_ops; the LLP measures at most once a second. */
int64_t siw_path_rtt(struct rnic_qp *);

/* -- siw_qp.c -- */

int siw_qp_create(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
void siw_qp_destroy(struct rnic_qp *);
/* Frees a destroyed QP after its event was polled. */
void siw_qp_free(struct siw_qp *);
void siw_qp_disconnect(struct rnic_qp *, bool graceful);
void siw_qp_rest(struct rnic_qp *);
void siw_qp_set_state(struct siw_qp *, enum siw_state);

/* Ends a lost or failed connection: closes the socket, flushes, reports. status: of the oldest request. term (may be
 * NULL): a Terminate to send first, if the socket accepts it. The caller has set events.silent if the peer is. */
void siw_qp_break(struct siw_qp *, const char *why, enum rnic_wc_status, const struct rdmap_term *term);

int siw_post_send(struct rnic_qp *, const struct rnic_send_wr *);
int siw_post_recv(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
void siw_credits(const struct rnic_qp *, struct rnic_credits *);
void siw_fence(struct rnic_qp *);
unsigned siw_poll(struct rnic_dev *, struct rnic_wc *, unsigned max);
void siw_complete(struct siw_qp *, uint64_t wr_id, enum rnic_wc_op, enum rnic_wc_status, uint32_t len);
/* Completes all requests before pos. */
void siw_complete_sends(struct siw_qp *, uint32_t pos);
/* Reports RNIC_EV_CREDITS if an exhausted member is available again. */
void siw_credits_changed(struct siw_qp *);

/* -- siw_cm.c: setup common to both sides and all LLPs; peers without queue pair; the listening port -- */

/* qp_connect of both sides; the passive one only names the peer. */
int siw_qp_connect(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);
int siw_qp_expect(struct rnic_qp *);
struct rnic_depths siw_peer_depths(const struct rnic_qp *);
/* RFC 6581 9.1: reports the peer's depths to our user as well. */
void siw_set_peer_depths(struct siw_qp *, const struct depths *);
/* Our private data for the peer. With the token if sent to the peer asked; to == NULL: an answer. */
struct mpa_pdata siw_own_pdata(const struct siw_qp *, const struct rnic_remote *to);
/* Checks that the private data of an answer are from the peer asked. */
bool siw_is_answer(const struct siw_qp *, const struct mpa_pdata *peer);
/* Starts the stream after negotiation, with the peer's private data. ord: negotiated; rtr_send: the first segment may
 * be an RTR Send (struct stream). */
void siw_stream_start(struct siw_qp *, const struct mpa_pdata *peer, uint16_t ord, bool rtr_send);
/* Reports CONNECTED once the stream runs and the user has called qp_connect. */
void siw_cm_check_connected(struct siw_qp *);
void siw_cm_connect_timeout(struct timer *);

/* First member of the LLP's struct. */
struct siw_pend {
	struct list_node node;
	struct siw_dev *dev;
	struct timer timer;
	struct unknown_peer from;
	bool parked;
	bool in_tls; /* the peer has the key of the queue pair tls_qpn */
	uint32_t tls_qpn;
	struct mpa_pdata pdata; /* once parked or assigned to a queue pair */
};

/* Counts a refused peer, and notes it as the last one. */
void siw_refused(struct siw_dev *, enum unknown_peer_kind, const struct unknown_peer *from);
/* Checks the address, before any other state is kept. */
bool siw_may_come(struct siw_dev *, const struct unknown_peer *from);
/* Adds a peer, whose request must be complete within connect_ms. May evict the oldest incomplete one. 0 or -ENOMEM. */
int siw_pend_add(struct siw_dev *, struct siw_pend *, const struct unknown_peer *from);
/* tls_link_find of a device: the secret of a queue pair that waits for its peer. */
const uint8_t *siw_pend_secret(void *dev, const struct tls_link *);
/* Unlinks; the LLP frees it. */
void siw_pend_remove(struct siw_pend *);
/* The request is complete, with these private data: passes it to the addressed QP, parks it for a while, or refuses it.
 * True: parked; false: ended. */
bool siw_pend_dispatch(struct siw_pend *, struct span pdata);
void siw_pend_drop_all(struct siw_dev *);

/* Opens the device's socket on the first free port of its range. open_on() creates it or returns a negative errno. Sets
 * dev->port and watches the socket. The descriptor, or a negative errno with *err a static text that names the faulty
 * setting. */
int siw_open_port(struct siw_dev *, int (*open_on)(const struct siw_config *, uint16_t port), rnic_io_cb, void *arg,
    const char **err);

/* Accepts connections on the first free port: 0, or a negative errno as in siw_open_port(); then nothing needs
 * closing. */
int siw_accept_open(struct siw_dev *, int (*open_on)(const struct siw_config *, uint16_t port),
    void (*accepted)(struct siw_dev *, int fd, const struct unknown_peer *from), const char **err);
/* A bounded number per turn (dev->unfinished: more are left). Pauses when descriptors are exhausted. */
void siw_accept_run(struct siw_dev *);
void siw_accept_close(struct siw_dev *);
void siw_close_reset(int fd);
/* fd, or if not ok, closes it: the negative errno. */
int siw_fd_if(bool ok, int fd);

/* -- siw_stream.c -- */

enum siw_seg {
	SIW_SEG_TAKEN,
	SIW_SEG_HELD, /* a Send without posted receive: set qp->held, repeat it in rx_turn() */
	SIW_SEG_END,  /* the queue pair is broken: input ends */
};

enum siw_seg siw_segment_in(struct siw_qp *, struct span segment);
/* Called after input of the peer: a passive side that waited for it may send now. False: not the claimed peer, the QP
 * is broken. */
bool siw_rx_started(struct siw_qp *);
void siw_rx_schedule(struct siw_qp *);

void siw_tx_schedule(struct siw_qp *);
void siw_tx_unblocked(struct siw_qp *);
void siw_flush(struct rnic_dev *);
/* Queues the first segment of the active side, of this kind (RTR_*; 0: none negotiated). */
void siw_tx_rtr(struct siw_qp *, unsigned rtr);
void siw_nudge_timeout(struct timer *);
/* Queues a Terminate; false if it must not be sent. */
bool siw_tx_terminate(struct siw_qp *, const struct rdmap_term *);
void siw_tx_fill(struct siw_qp *);

/* -- siw_linger.c -- */

/* The rest of an LLP's connection without owner; a timer is reserved for it. */
struct siw_linger {
	struct list_node node;
	struct timer timer;
	struct siw_dev *dev;
	enum siw_linger_kind kind;
	void (*over)(struct siw_linger *); /* its time is over, or it was evicted */
};

void siw_linger_init(struct siw_linger *, struct siw_dev *, void (*over)(struct siw_linger *));
void siw_linger_start(struct siw_linger *, enum siw_linger_kind);
/* Also for one that was not started. */
void siw_linger_stop(struct siw_linger *);
void siw_linger_end_all(struct siw_dev *);
