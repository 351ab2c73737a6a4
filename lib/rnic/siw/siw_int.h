/*
 * What the files of the soft iWARP device share. siw.c: the device, its
 * memory and its list of calls; siw_qp.c: queue pairs, their requests and
 * completions; siw_cm.c and siw_pend.c: connection set-up; siw_rx.c and
 * siw_tx.c: the established stream; siw_linger.c: what is left of a connection
 * at its end. What is below DDP is behind siw_llp.h.
 */
#pragma once

#include "base/list.h"
#include "base/pages.h"
#include "base/timerq.h"
#include "iwarp/depths.h"
#include "iwarp/stag.h"
#include "iwarp/stream.h"
#include "rnic/events.h"
#include "rnic/fence.h"
#include "rnic/iface.h"
#include "rnic/mpa_pdata.h"
#include "rnic/siw/siw.h"
#include "rnic/unknown_peers.h"

#define SIW_MAX_INLINE 64
#define SIW_MAX_SQ 8192
#define SIW_MAX_RQ 8192
#define SIW_MAX_MR (1u << 20)
#define SIW_SLOT_BITS 12 /* of a QPN: index; the rest is random */
#define SIW_MAX_QP ((1u << SIW_SLOT_BITS) - 2)
#define SIW_TX_BUDGET (1024u * 1024) /* bytes a QP and turn */
#define SIW_TX_QUEUED (256u * 1024)  /* payload worth queueing, struct rnic_credits */
#define SIW_COPY_MAX TXQ_COPY_MAX    /* payload that an LLP's put copies */
#define SIW_PARKED_MAX 64
#define SIW_PARKED_OF_ONE 32 /* of them, from one address */
#define SIW_PARKED_MS 1000
#define SIW_PENDING_MAX 128 /* peers whose request is not complete, parked ones included */
#define SIW_NUDGE_MS 100    /* the active side says a second word when nothing was heard after the first */

/* Had a connection that lingers ever a queue pair? */
enum siw_linger_kind { SIW_LINGER_UNKNOWN_PEER, SIW_LINGER_QP, SIW_LINGER_KINDS };

struct siw_dev {
	struct rnic_dev dev;
	struct siw_config cfg;
	struct depths_config depths; /* by cfg */
	const struct siw_llp *llp;
	void *llp_dev; /* the LLP's */
	struct rnic_loop loop;
	struct rng *rng;
	struct timerq timers;
	struct stag_table stags;
	struct siw_qp **slots; /* by index in the QPN */
	uint32_t qp_cnt;
	uint32_t next_slot;
	uint64_t mr_bytes;
	struct iface iface; /* of our address */
	struct events events;
	struct siw_acceptor *acceptor; /* over TCP: the LLP's; NULL = none */
	uint16_t port;
	enum rnic_transport transport;
	const char *stack;        /* of SCTP, see struct rnic_info */
	bool unfinished;          /* the LLP has more to do for the device in the next turn */
	struct list_node pending; /* siw_pend whose request is not complete, oldest first */
	struct list_node parked;  /* siw_pend whose request is complete, no QP expects them yet */
	unsigned pending_cnt;
	unsigned parked_cnt;
	struct list_node lingering[SIW_LINGER_KINDS]; /* siw_linger, oldest first */
	unsigned linger_cnt[SIW_LINGER_KINDS];
	struct list_node rx_list; /* siw_qp with bytes to read or to decode */
	struct list_node tx_list; /* siw_qp with something to send */
	struct list_node cq_list; /* siw_qp with completions */
	struct siw_stats stats;
	struct unknown_peers strangers; /* whom it has counted last */
	bool ends;                      /* by siw_ops.free */
};

struct siw_pd {
	struct rnic_pd pd;
	uint32_t refs;
};

struct siw_mr {
	struct rnic_mr mr;
	struct stag_region region;
};

/* A posted request. */
struct siw_wr {
	uint64_t wr_id;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t len;
	enum rnic_wr_op op;
	uint16_t flags;
	uint16_t sge_cnt;

	union {
		struct iovec sge[RNIC_SGE_MAX];
		uint8_t bytes[SIW_MAX_INLINE];
	} u;
};

/* How much of a ring was gone through, for siw_qp_rest. */
struct siw_ring_use {
	struct pages_use pages;
	uint32_t head; /* at the last look */
};

enum siw_state {
	SIW_IDLE,       /* created */
	SIW_EXPECTING,  /* passive: the peer may come */
	SIW_CONNECTING, /* active: the LLP's connection */
	SIW_REQUESTED,  /* active: the answer to our request awaited */
	SIW_RTR_WAIT,   /* passive: answered, the peer's first segment awaited */
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
	uint32_t rq_depth;
	/* set-up */
	bool claimed;   /* qp_connect was called */
	bool connected; /* RNIC_EV_CONNECTED was given out */
	struct rnic_remote remote;
	uint32_t peer_qpn; /* as the peer's private data says */
	struct timer connect_timer;
	struct timer nudge_timer;
	bool nudge;                     /* another segment is to be sent, whatever it says */
	struct rnic_depths peer_depths; /* as the peer named them */
	/* stream */
	void *llp; /* the LLP's */
	struct stream stream;
	size_t seg_max;  /* of what we send: largest DDP segment */
	bool tx_blocked; /* the LLP takes nothing now */
	/* send queue; sq.sent: wholly turned into segments */
	struct sendq sq;
	struct siw_wr *wrs;
	uint32_t wr_mask;
	struct siw_ring_use wrs_used, cq_used;
	uint32_t enc_off; /* bytes done of request sq.sent */
	struct fence fence;
	struct stag_region fence_region; /* of the fence's bytes */
	/* completions that were not polled */
	struct rnic_wc *cq;
	uint32_t cq_mask;
	uint32_t cq_head;
	uint32_t cq_tail;
	uint32_t cq_recvs; /* receives among them */
	struct qp_events events;
	struct list_node rx_node;
	struct list_node tx_node;
	struct list_node cq_node;
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

/* From the time of this turn. */
static inline void
siw_arm(struct siw_dev *dev, struct timer *t, uint32_t ms)
{
	timer_arm(&dev->timers, t, dev->dev.now_ns + (int64_t)ms * 1000000);
}

/* -- siw_qp.c -- */

int siw_qp_create(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
void siw_qp_destroy(struct rnic_qp *);
/* The memory: it was destroyed, and its user has heard so. */
void siw_qp_free(struct siw_qp *);
void siw_qp_disconnect(struct rnic_qp *, bool graceful);
/* Gives back what an idle QP does not need. */
void siw_qp_rest(struct rnic_qp *);
struct siw_qp *siw_qp_find(struct siw_dev *, uint32_t qpn);
void siw_qp_set_state(struct siw_qp *, enum siw_state);

/*
 * The connection is lost, or never came about: closes the socket, flushes,
 * reports. status: of the oldest request. term (may be NULL): a Terminate to
 * be sent first, if the socket takes it.
 */
void siw_qp_break(struct siw_qp *, const char *why, enum rnic_wc_status, const struct rdmap_term *term);
/* Ahead of it: the reason is that the peer does not answer. */
static inline void
siw_qp_note_silence(struct siw_qp *qp)
{
	if (qp->state < SIW_BROKEN)
		qp->events.silent = true;
}

int siw_post_send(struct rnic_qp *, const struct rnic_send_wr *);
int siw_post_recv(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
void siw_credits(const struct rnic_qp *, struct rnic_credits *);
void siw_fence(struct rnic_qp *);
unsigned siw_poll(struct rnic_dev *, struct rnic_wc *, unsigned max);
void siw_complete(struct siw_qp *, uint64_t wr_id, enum rnic_wc_op, enum rnic_wc_status, uint32_t len);
/* All requests before pos are done. */
void siw_complete_sends(struct siw_qp *, uint32_t pos);
/* Gives RNIC_EV_CREDITS when something that was used up is there again. */
void siw_credits_changed(struct siw_qp *);

/* -- siw_accept.c -- */

/*
 * The device's socket on the first free port of its range: open_on() makes one, or gives a negative errno; dev->port is set, and the
 * loop watches. The descriptor, or a negative errno with *err a static text that names the setting at fault.
 */
int siw_open_port(struct siw_dev *, int (*open_on)(const struct siw_config *, uint16_t port), rnic_io_cb, void *arg,
    const char **err);

/* Accepts on such a socket, a bounded number a turn (dev->unfinished says of more), and not for a while when descriptors are out. */
struct siw_acceptor {
	struct siw_dev *dev;
	int fd; /* -1: closed */
	/* Takes over the descriptor, which does not block. */
	void (*accepted)(struct siw_dev *, int fd, const struct sockaddr_storage *from);
	struct timer retry;
};

/* 0, or a negative errno as siw_open_port, and nothing is to be closed. */
int siw_acceptor_open(struct siw_acceptor *, struct siw_dev *, int (*open_on)(const struct siw_config *, uint16_t port),
    void (*accepted)(struct siw_dev *, int fd, const struct sockaddr_storage *from), const char **err);
void siw_acceptor_run(struct siw_acceptor *);
void siw_acceptor_close(struct siw_acceptor *);

/* -- siw_cm.c: connection set-up, what both sides and all LLPs share -- */

/* Both sides' qp_connect: the passive one only says whom it wants. */
int siw_qp_connect(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);
int siw_qp_expect(struct rnic_qp *);
struct rnic_depths siw_peer_depths(const struct rnic_qp *);
/* RFC 6581 9.1: the depths that the peer named are for our user, too. */
void siw_set_peer_depths(struct siw_qp *, const struct depths *);
/* Our own private data for the peer; with the token where we have to show it, to the one that is asked (NULL: an answer). */
struct mpa_pdata siw_own_pdata(const struct siw_qp *, const struct rnic_remote *to);
/* Are these the private data of an answer from the one that was asked? */
bool siw_is_answer(const struct siw_qp *, const struct mpa_pdata *peer);
/*
 * Negotiation is done, the peer's private data are these: the stream may run. ord: negotiated; rtr_send: the first
 * segment may be an RTR Send (struct stream).
 */
void siw_stream_start(struct siw_qp *, const struct mpa_pdata *peer, uint16_t ord, bool rtr_send);
/* CONNECTED once the stream runs and the user asked for it. */
void siw_cm_check_connected(struct siw_qp *);
void siw_cm_connect_timeout(struct timer *);

/* -- siw_pend.c: peers that have come, before a queue pair has them -- */

/* First member of the LLP's own struct. */
struct siw_pend {
	struct list_node node;
	struct siw_dev *dev;
	struct timer timer;
	struct unknown_peer from;
	bool parked;
	struct mpa_pdata pdata; /* once it is parked or has a queue pair */
};

/* One has come and is refused: counted, and remembered until the next one is. */
void siw_refused(struct siw_dev *, enum unknown_peer_kind, const struct unknown_peer *from);
/* May this address come? Asked before anything else is kept of it. */
bool siw_may_come(struct siw_dev *, const struct unknown_peer *from);
/* A peer has come: its request has to be complete within connect_ms. The oldest such one may have to go for it.
 * 0 or -ENOMEM. */
int siw_pend_add(struct siw_dev *, struct siw_pend *, const struct unknown_peer *from);
/* Off all lists; the LLP frees it. */
void siw_pend_remove(struct siw_pend *);
/* Its request is complete, with these private data: it goes to the QP that they name, waits for one a little (parked), or is
 * refused. True: it waits; else it has ended. */
bool siw_pend_dispatch(struct siw_pend *, struct span pdata);
/* A QP expects its peer, who may be there. */
void siw_pend_expected(struct siw_qp *);
void siw_pend_drop_all(struct siw_dev *);

/* -- siw_rx.c -- */

enum siw_seg {
	SIW_SEG_TAKEN,
	SIW_SEG_HELD, /* a Send, and no receive is posted: to be given again when recv_posted() tells */
	SIW_SEG_END,  /* the queue pair is broken: nothing more is taken */
};

/* A DDP segment, in its turn. */
enum siw_seg siw_segment_in(struct siw_qp *, struct span segment);
/* Something of the peer's was taken: the passive side may speak now, if it had to wait for that. False: the peer is not the claimed
 * one, and the QP is broken. */
bool siw_rx_started(struct siw_qp *);
/* There may be something to read or to decode. */
void siw_rx_schedule(struct siw_qp *);
/* A reset came with segments unread: its words when this is a Terminate, or NULL. Nothing else of them may be looked at. */
const char *siw_terminate_str(struct span segment);
/* The connection is lost: status RNIC_WC_RETRY_EXC, or REMOTE_ERR when the peer's last words (may be NULL) say why. */
void siw_stream_lost(struct siw_qp *, const char *why, const char *last_words);

/* -- siw_linger.c -- */

/* A part of an LLP's connection that has no owner any more; a timer is reserved for it. */
struct siw_linger {
	struct list_node node;
	struct timer timer;
	struct siw_dev *dev;
	enum siw_linger_kind kind;
	void (*over)(struct siw_linger *); /* its time or its place is gone */
};

void siw_linger_init(struct siw_linger *, struct siw_dev *, void (*over)(struct siw_linger *));
void siw_linger_start(struct siw_linger *, enum siw_linger_kind);
/* Also of one that was not started. */
void siw_linger_stop(struct siw_linger *);
void siw_linger_end_all(struct siw_dev *);

/* -- siw_tx.c -- */

/* Something is to be sent. */
void siw_tx_schedule(struct siw_qp *);
/* The LLP may take more again. */
void siw_tx_unblocked(struct siw_qp *);
void siw_flush(struct rnic_dev *);
/* Queues the first segment of the active side, of this kind (RTR_*; 0: none was negotiated). */
void siw_tx_rtr(struct siw_qp *, unsigned rtr);
void siw_nudge_timeout(struct timer *);
/* Queues a Terminate: false when it may not be sent. */
bool siw_tx_terminate(struct siw_qp *, const struct rdmap_term *);
/* Turns requests into segments as far as there is room. */
void siw_tx_fill(struct siw_qp *);
