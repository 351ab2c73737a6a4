/*
 * What the files of the soft iWARP device share. siw.c: the device, its
 * memory and its list of calls; siw_qp.c: queue pairs, their requests and
 * completions; siw_cm.c and siw_passive.c: connection set-up; siw_rx.c and
 * siw_tx.c: the established stream; siw_linger.c: sockets whose QP is gone, with
 * something left to send.
 */
#pragma once

#include <sys/socket.h>

#include "base/list.h"
#include "base/timerq.h"
#include "iwarp/fpdu.h"
#include "iwarp/negotiate.h"
#include "iwarp/stag.h"
#include "iwarp/stream.h"
#include "iwarp/txq.h"
#include "rnic/events.h"
#include "rnic/fence.h"
#include "rnic/iface.h"
#include "rnic/siw/siw.h"

#define SIW_MAX_INLINE 64
#define SIW_MAX_SQ 8192
#define SIW_MAX_RQ 8192
#define SIW_MAX_MR (1u << 20)
#define SIW_SLOT_BITS 12 /* of a QPN: index; the rest is random */
#define SIW_MAX_QP ((1u << SIW_SLOT_BITS) - 2)
#define SIW_RX_BUF (256u * 1024) /* staging read; also holds the FPDU that is not complete */
#define SIW_PLACE_MIN 2048u      /* rest of a Write worth reading straight into place */
#define SIW_TX_RING (128u * 1024)
#define SIW_TX_BUDGET (1024u * 1024) /* bytes a QP and turn */
#define SIW_TX_QUEUED (256u * 1024)  /* payload worth queueing, struct rnic_credits */
#define SIW_IOV 256
#define SIW_PARKED_MAX 64
#define SIW_PARKED_OF_ONE 32 /* of them, from one address */
#define SIW_PARKED_MS 1000
#define SIW_PENDING_MAX 128 /* MPA requests that are being read, parked ones included */
#define SIW_NUDGE_MS 100    /* the active side says a second word when nothing was heard after the first */
#define SIW_LINGER_MAX 64
#define SIW_LINGER_MS 2000

struct siw_dev {
	struct rnic_dev dev;
	struct siw_config cfg;
	struct neg_config neg_cfg; /* by cfg */
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
	uint16_t port;
	int listen_fd;
	bool accept_more;          /* connections may wait on listen_fd */
	struct timer accept_timer; /* out of descriptors: accepting pauses */
	struct list_node pending;  /* siw_pend being read, oldest first */
	struct list_node parked;   /* siw_pend complete, no QP expects them yet */
	unsigned pending_cnt;
	unsigned parked_cnt;
	struct list_node lingering;
	unsigned linger_cnt;
	struct list_node rx_list; /* siw_qp with bytes to read or to decode */
	struct list_node tx_list; /* siw_qp with something to send */
	struct list_node cq_list; /* siw_qp with completions */
	struct siw_stats stats;
	bool ends; /* by siw_ops.free */
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

enum siw_state {
	SIW_IDLE,       /* created */
	SIW_EXPECTING,  /* passive: the peer may come */
	SIW_CONNECTING, /* active: TCP */
	SIW_REQUESTED,  /* active: MPA Reply awaited */
	SIW_RTR_WAIT,   /* passive: replied, first FPDU awaited */
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
	bool nudge; /* another FPDU is to be sent, whatever it says */
	struct neg neg;
	/* stream */
	int fd;
	int64_t rtt_ns, rtt_asked_ns; /* siw_path.c */
	size_t ulpdu_max;             /* of what we send */
	struct stream stream;
	struct fpdu_rx fpdu;
	uint8_t *rx_buf;
	size_t rx_off;           /* first byte not decoded */
	size_t rx_len;           /* bytes in the buffer */
	bool rx_hup;             /* the peer closed its side: read to the end */
	bool peer_fin;           /* the end was read */
	struct span rx_held;     /* a Send that waits for a receive; ptr NULL: none */
	struct ddp_hdr rx_place; /* rest of a Write that is read straight into place (CRC off) */
	size_t rx_place_len;     /* its bytes to come; 0 = there is none */
	size_t rx_place_tail;    /* padding and CRC behind it, to be skipped */
	struct txq txq;
	bool tx_blocked; /* the socket is full */
	/* send queue; sq.sent: wholly turned into FPDUs */
	struct sendq sq;
	struct siw_wr *wrs;
	uint32_t wr_mask;
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
struct siw_qp *siw_qp_find(struct siw_dev *, uint32_t qpn);
void siw_qp_set_state(struct siw_qp *, enum siw_state);

/*
 * The connection is lost, or never came about: closes the socket, flushes,
 * reports. status: of the oldest request. term (may be NULL): a Terminate to
 * be sent first, if the socket takes it.
 */
void siw_qp_break(struct siw_qp *, const char *why, enum rnic_wc_status, const struct rdmap_term *term);

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

/* -- siw_rx.c -- */

/* Negotiation is done; starts the stream on qp->fd. 0 or a negative errno. */
int siw_stream_start(struct siw_qp *, const struct mpa_pdata *peer);
void siw_stream_io(void *qp, int fd, unsigned events);
/* Hardware wants FPDUs within segments: their size follows the path's. */
void siw_follow_mss(struct siw_qp *);
/* The socket gave this error, 0 = end of file. */
void siw_stream_lost(struct siw_qp *, int err);
/* One bounded turn of reading and decoding. */
void siw_rx_turn(struct siw_qp *);
/* There may be something to read or to decode. */
void siw_rx_schedule(struct siw_qp *);

/* -- siw_tx.c -- */

/* Something is to be sent. */
void siw_tx_schedule(struct siw_qp *);
void siw_flush(struct rnic_dev *);
/* Queues the first FPDU of the active side. */
void siw_tx_rtr(struct siw_qp *);
void siw_nudge_timeout(struct timer *);
/* Of a sendmsg() of what txq_gather() gave. */
static inline int
siw_send_flags(const struct txq *q)
{
	return MSG_DONTWAIT | MSG_NOSIGNAL | (q->apart ? MSG_EOR : 0);
}
/* Queues a Terminate: false when it may not be sent. */
bool siw_tx_terminate(struct siw_qp *, const struct rdmap_term *);
/* Turns requests into FPDUs as far as there is room. */
void siw_tx_fill(struct siw_qp *);

/* -- siw_cm.c -- */

void siw_tune_socket(int fd);
struct rnic_depths siw_peer_depths(const struct rnic_qp *);

/* -- the path (siw_path.c) -- */

int64_t siw_path_rtt(struct rnic_qp *);
/* Encodes `f` with this private data into out: its length, or a negative errno. */
int siw_frame_encode(struct mpa_frame f, const struct mpa_pdata *, uint8_t out[MPA_FRAME_MAX]);
/* Sends `f` with our own private data; with the token where we have to show it (to != NULL). The first bytes on a new
 * connection: always taken whole, or it is broken (false). */
bool siw_send_frame(struct siw_qp *, const struct rnic_remote *to, const struct mpa_frame *f);
/* CONNECTED once the stream runs and the user asked for it. */
void siw_cm_check_connected(struct siw_qp *);
void siw_cm_connect_timeout(struct timer *);

/* Both sides' qp_connect: the passive one only says whom it wants. */
int siw_qp_connect(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);

/* -- siw_passive.c -- */

int siw_listen(struct siw_dev *, const char **err);
void siw_listen_close(struct siw_dev *);
void siw_accept_more(struct siw_dev *);
int siw_qp_expect(struct rnic_qp *);

/* -- siw_linger.c -- */

/*
 * Takes over fd: sends len bytes (copied), then FIN, waits for the peer's FIN
 * for a while and closes. Nobody else watches the descriptor.
 */
void siw_linger_bytes(struct siw_dev *, int fd, const void *bytes, size_t len);
/* The same with everything that the QP still has to send; more is taken from siw_tx_fill(). */
void siw_linger_qp(struct siw_qp *, int fd);
void siw_linger_close_all(struct siw_dev *);
