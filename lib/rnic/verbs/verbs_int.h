/*
 * What the files of the verbs device share. verbs.c: the device, its memory and
 * its list of calls; verbs_list.c: ports and GIDs; verbs_qp.c: queue pairs,
 * their states and their end; verbs_roce.c: connecting them; verbs_cm.c: the
 * threads for what may wait; verbs_wr.c: posting; verbs_cq.c: completions;
 * verbs_async.c: what happens to port and card. Of iWARP alone: verbs_iwarp.c,
 * verbs_iwarp_passive.c: connecting; verbs_fence.c: the Read behind writes.
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include "base/idtable.h"
#include "base/list.h"
#include "base/timerq.h"
#include "rnic/events.h"
#include "rnic/fence.h"
#include "rnic/iface.h"
#include "rnic/unknown_peers.h"
#include "rnic/verbs/verbs.h"

#define VERBS_INLINE 64               /* bytes of a message that a request carries itself */
#define VERBS_CHAIN 64                /* requests handed to the card in one call */
#define VERBS_POLL 32                 /* completions taken from a CQ in one call */
#define VERBS_ACK_BATCH 64            /* completion events acknowledged together */
#define VERBS_EVENTS_TURN 256         /* events read in one go */
#define VERBS_BYTES (2 * 1024 * 1024) /* payload worth queueing, struct rnic_credits */
#define VERBS_FLUSH_MS 1000           /* a card that has not flushed a broken QP by then loses it */
/* Reads at once that are asked of and offered to an iWARP peer: ours, and an RTR Read that the card sends by itself and
 * may or may not count. */
#define VERBS_READ_DEPTH 2
#define VERBS_NUDGE_MS 100   /* the active side says a second word when nothing was heard after the first */
#define VERBS_LINGER_MS 2000 /* a QP that is closed in order and still sends */
#define VERBS_LINGER_MAX 64
#define VERBS_TROUBLE_MS 60000 /* between two words about the same trouble */
#define VERBS_MAX_QP 65536
#define VERBS_PARKED_MAX 64 /* MPA requests that nobody expects yet, as with soft iWARP */
#define VERBS_PARKED_MS 1000

struct verbs_pd {
	struct rnic_pd pd;
	struct ibv_pd *hw;
};

/* A posted send or write. */
struct verbs_wr {
	uint64_t wr_id;
	uint32_t len;
	uint8_t op;     /* enum rnic_wr_op */
	uint8_t status; /* enum rnic_wc_status, once it has ended */
	bool signaled;  /* its user wants a completion */
};

struct verbs_recv {
	uint64_t wr_id;
	uint32_t len; /* of what came */
	uint32_t status;
};

/* Requests that are not the card's yet. */
struct verbs_chain {
	struct ibv_send_wr wr[VERBS_CHAIN];
	struct ibv_sge sge[VERBS_CHAIN][RNIC_SGE_MAX];
};

/* Where a queue pair is in its life, in order; verbs_qp.c has which one may follow which. */
enum verbs_phase {
	VERBS_INIT,       /* takes receives */
	VERBS_EXPECTING,  /* iWARP: the same, and the peer may come */
	VERBS_CONNECTING, /* RoCE: the thread has it; iWARP: its connection is being made */
	VERBS_RTR,
	VERBS_RTS,
	VERBS_LINGER,  /* closed in order: what was posted is still being sent */
	VERBS_CANCEL,  /* it is to end, and the thread that connects it has it still */
	VERBS_FLUSH,   /* in the error state: the card ends requests */
	VERBS_DESTROY, /* the thread destroys it, which ends what the card does not flush */
	VERBS_ENDED,   /* all requests have ended */
	VERBS_RELEASE, /* its user has destroyed it: the thread takes all of it from the card */
	VERBS_PHASE_CNT,
};

/* How its user stands to it. */
enum verbs_user {
	VERBS_USED,
	VERBS_CLOSED, /* by qp_disconnect: no event follows */
	VERBS_DESTROYED,
};

/* A piece of work that may wait, for the network or for the card; see verbs_cm.c. */
struct verbs_job {
	struct list_node node;
	void (*run)(struct verbs_job *);  /* in the thread */
	void (*done)(struct verbs_job *); /* in the loop */
	struct verbs_cm *cm;              /* of a job with a thread of its own, which is this one: */
	pthread_t thread;
	struct ibv_qp *hw;
	struct ibv_qp_attr rtr, rts;
	int rtr_mask, rts_mask;
	bool to_rts;    /* passive side: both steps */
	bool cancelled; /* nothing may be placed: to the error state, whatever came out */
	int err;        /* result: 0 or a positive errno */
};

/* Hardware that the thread for that takes back from the card. */
struct verbs_end {
	struct verbs_job job;
	struct ibv_qp *hw;
	struct ibv_cq *cq;
	struct ibv_mr *msg_mr, *fence_mr;
};

struct verbs_mr {
	struct rnic_mr mr;
	struct ibv_mr *hw;
};

struct verbs_conn;

struct verbs_qp {
	struct rnic_qp qp;
	struct verbs_dev *dev;
	struct verbs_pd *pd;
	struct ibv_qp *hw; /* NULL: destroyed, or about to be */
	struct ibv_cq *cq; /* NULL: likewise, in phase RELEASE */
	struct verbs_end end;
	uint32_t id; /* of the CQ's events */
	enum verbs_phase phase;
	enum verbs_phase ended_in; /* beyond RTS: the last phase up to there */
	enum verbs_user user;
	bool claimed; /* qp_connect was called */
	bool stopped; /* in the error state: nothing is placed */
	bool drained; /* FLUSH: the card has no send left */
	bool failed;  /* a request has ended badly: all that follow are flushed */
	bool refused; /* the card did not take request sq.sent */
	enum rnic_side side;
	struct rnic_remote remote;
	/* iWARP */
	uint64_t token;
	struct verbs_conn *conn;
	struct verbs_job job;
	/* send queue; sq.sent: the card has those before */
	struct sendq sq;
	struct verbs_wr *wrs;
	uint32_t wr_mask;
	uint32_t sq_given;  /* completions of those before were handed out, or are not wanted */
	uint32_t sq_sig;    /* behind the last one that the card reports */
	struct fence fence; /* iWARP */
	struct ibv_mr *fence_mr;
	uint32_t card_pos; /* iWARP: the card is done with those before */
	bool nudge_out;
	uint8_t (*msg)[VERBS_INLINE]; /* copies of inline data, by place in the send queue */
	struct ibv_mr *msg_mr;        /* of a card that does not know inline data */
	struct verbs_chain *chain;
	unsigned chain_cnt;
	/* receive queue, likewise */
	uint32_t rq_depth;
	struct verbs_recv *rq;
	uint32_t rq_mask;
	uint32_t rq_head, rq_hw, rq_ended, rq_done;
	bool armed;       /* the CQ tells of its next completion */
	unsigned unacked; /* its events that were read and not acknowledged */
	struct timer timer;
	struct qp_events events;
	struct list_node node;
	struct list_node cq_node;
	struct list_node tx_node;
};

/* How queue pairs of a transport are connected. */
struct verbs_connect_ops {
	int (*init)(struct verbs_qp *); /* INIT */
	int (*expect)(struct verbs_qp *);
	int (*connect)(struct verbs_qp *); /* side and remote are set; ends with verbs_qp_connected or verbs_qp_break */
	int (*rts)(struct verbs_qp *);
	/* What follows may be NULL. */
	int (*open)(struct verbs_dev *, const char **why); /* of the device */
	void (*close)(struct verbs_dev *);                 /* no peer comes from now on */
	void (*fini)(struct verbs_dev *);                  /* frees the rest; no queue pair is left */
	void (*more)(struct verbs_dev *);                  /* events were left to be read */
	void (*timed_out)(struct verbs_qp *);              /* the timer of a queue pair that is being connected */
	void (*leaving)(struct verbs_qp *);                /* just before it goes to the error state */
	void (*left)(struct verbs_qp *);                   /* it is there, or freed */
	bool (*holds)(const struct verbs_qp *); /* the kernel is at it: the queue pair may not be destroyed */
};

/* A thread, and what it has to do, in this order. */
struct verbs_worker {
	struct verbs_cm *cm;
	pthread_t thread;
	bool started;
	pthread_cond_t more;
	struct list_node todo;     /* verbs_job */
	struct verbs_job *running; /* taken from todo */
};

/* The threads for what may wait: for all transitions, and for what is taken from the card. Some jobs have one each. */
struct verbs_cm {
	struct verbs_worker connects;
	struct verbs_worker ends;
	pthread_mutex_t lock;
	struct list_node done;
	bool quit;
	int evfd; /* results are there */
};

struct verbs_dev {
	struct rnic_dev dev;
	struct verbs_config cfg;
	struct rnic_loop loop;
	struct rng *rng;
	const struct verbs_connect_ops *connect;
	struct timerq timers;
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	unsigned phys_ports;
	struct verbs_port port;
	bool gid_present;
	bool gone; /* the card was taken away */
	struct verbs_gid gid;
	struct iface iface;
	uint32_t max_qp, max_mr, max_sq, max_rq, max_sge;
	bool has_inline;
	bool ends;       /* by rnic_ops.free: when the last queue pair has gone */
	uint32_t qp_cnt; /* those included that are being destroyed */
	uint32_t mr_cnt;
	uint64_t mr_bytes;
	struct events events;
	const char *troubled; /* the last trouble reported, and when */
	int64_t troubled_ns;
	bool async_more; /* events may be left to be read */
	bool conn_more;
	bool cq_more;
	int64_t busy_until_ns;
	struct idtable ids;       /* verbs_qp by the id of their CQ */
	struct list_node qps;     /* all verbs_qp */
	struct list_node cq_list; /* verbs_qp whose CQ has to be polled */
	struct list_node tx_list; /* verbs_qp with a chain */
	struct verbs_cm cm;
	struct verbs_iwarp *iwarp; /* NULL: not an iWARP card */
	uint16_t mpa_port;
	struct verbs_stats stats;
	struct unknown_peers strangers; /* whom it has counted last */
};

static inline struct verbs_dev *
verbs_dev(struct rnic_dev *d)
{
	return CONTAINER_OF(d, struct verbs_dev, dev);
}

static inline const struct verbs_dev *
verbs_dev_const(const struct rnic_dev *d)
{
	return CONTAINER_OF((struct rnic_dev *)(uintptr_t)d, struct verbs_dev, dev);
}

static inline struct verbs_qp *
verbs_qp(struct rnic_qp *q)
{
	return CONTAINER_OF(q, struct verbs_qp, qp);
}

static inline bool
verbs_is_iwarp(const struct verbs_dev *dev)
{
	return rnic_is_iwarp(dev->port.transport);
}

/* From the time of this turn. */
static inline void
verbs_arm(struct verbs_dev *dev, struct timer *t, uint32_t ms)
{
	timer_arm(&dev->timers, t, dev->dev.now_ns + (int64_t)ms * 1000000);
}

static inline struct verbs_pd *
verbs_pd(struct rnic_pd *p)
{
	return CONTAINER_OF(p, struct verbs_pd, pd);
}

/* -- verbs.c -- */

/* A call failed with err (positive): says so to people, with the limit on memory where that may be the cause. */
void verbs_trouble(struct verbs_dev *, int err, const char *why);

/* -- verbs_list.c -- */

/* Both 0 or a negative errno; the port's name and number are set. */
int verbs_read_port(struct ibv_context *, struct verbs_port *);
int verbs_read_gids(struct ibv_context *, unsigned ports, struct verbs_port *);
void verbs_name_port(struct ibv_context *, uint32_t vendor, unsigned num, struct verbs_port *);
const struct verbs_gid *verbs_find_gid(const struct verbs_port *, const struct rnic_gid *, enum rnic_gid_type);
/* Why a card could not be opened (negative errno). */
const char *verbs_open_error(int rc);
/* Of a call that pins memory and failed with err (positive): the limit on it, where that is the likely cause, else NULL. */
const char *verbs_memlock_why(int err);

/* -- verbs_qp.c -- */

#define VERBS_GONE_WHY "the RDMA device is gone"

/* Has a thread the QP? */
static inline bool
verbs_qp_is_away(const struct verbs_qp *qp)
{
	return (qp->phase == VERBS_CONNECTING && !verbs_is_iwarp(qp->dev)) || qp->phase == VERBS_CANCEL ||
	    qp->phase == VERBS_DESTROY || qp->phase == VERBS_RELEASE;
}

int verbs_qp_create(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
void verbs_qp_destroy(struct rnic_qp *);
void verbs_qp_disconnect(struct rnic_qp *, bool graceful);
int verbs_qp_expect(struct rnic_qp *);
int verbs_qp_connect(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);
int verbs_qp_rts(struct rnic_qp *);

/* The only place that changes the phase; why: for the log, a static text. */
void verbs_qp_set_phase(struct verbs_qp *, enum verbs_phase, const char *why);
/* The kernel still connects it, and will tell the outcome: destroying it before that would wait. */
bool verbs_qp_is_held(const struct verbs_qp *);
/* RTR or RTS: the user hears of it. */
void verbs_qp_connected(struct verbs_qp *, enum verbs_phase);
/* The QP is of no further use: to the error state; events follow when all requests have ended. Of no effect once it ends. */
void verbs_qp_break(struct verbs_qp *, const char *why);
/* Ahead of it: the reason is that the peer does not answer. */
static inline void
verbs_qp_note_silence(struct verbs_qp *qp)
{
	if (qp->phase < VERBS_LINGER)
		qp->events.silent = true;
}
/* The card is gone, or does not end its requests: the QP is taken from it, and then what is missing is made up. Before phase
 * DESTROY only, and no thread has it. */
void verbs_qp_kill(struct verbs_qp *, const char *why);
/* Requests have ended: is it the end of the QP, too? */
void verbs_qp_check_end(struct verbs_qp *);
/* The thread that connects has handed the QP back. */
void verbs_qp_job_done(struct verbs_qp *);
/* When its user has destroyed it and its end has come, everything of it is given to the thread; QP_FREED follows. */
void verbs_qp_reap(struct verbs_qp *);
/* The card has nothing of it, or it was never handed out. */
void verbs_qp_free(struct verbs_qp *);
void verbs_event(struct verbs_qp *, enum rnic_event_type);

/* -- verbs_roce.c -- */

extern const struct verbs_connect_ops verbs_roce_ops;
/* -- verbs_cm.c -- */

int verbs_cm_init(struct verbs_dev *);
/* Ends the threads, which have nothing to do. */
void verbs_cm_fini(struct verbs_dev *);
/* Hands qp->job to the thread: 0 or a negative errno. */
int verbs_cm_submit(struct verbs_qp *);
/* Hands a job to the thread that takes things from the card. */
void verbs_cm_end(struct verbs_dev *, struct verbs_job *);
/* Runs a job that may take long in a thread of its own: 0 or a negative errno. */
int verbs_cm_submit_alone(struct verbs_dev *, struct verbs_job *);
/* Nothing is to come of the job. False: it is under way, and will be handed back. */
bool verbs_cm_cancel(struct verbs_qp *);

/* -- verbs_iwarp.c -- */

extern const struct verbs_connect_ops verbs_iwarp_ops;
/* The first Read, which says that the connection is good, came back. */
void verbs_iwarp_answered(struct verbs_qp *);

/* -- verbs_fence.c -- */

/* 0 or a negative errno; of no consequence but on iWARP. */
int verbs_fence_init(struct verbs_qp *);
/* The active side's first Read, after which the connection is good: 0 or a positive errno. */
int verbs_fence_first(struct verbs_qp *);
/* The chain was handed over: posts the Read when it is due. */
void verbs_fence_flush(struct verbs_qp *);
void verbs_fence(struct rnic_qp *);
/* Is the card done with the send queue? */
static inline bool
verbs_card_is_done(const struct verbs_qp *qp)
{
	return qp->card_pos == qp->sq.sent && !qp->fence.out && !qp->nudge_out;
}

/* The Read has ended; false: badly. */
void verbs_fence_read_ended(struct verbs_qp *, bool ok);
/* The card is done with the active side's second message. */
void verbs_fence_nudge_ended(struct verbs_qp *);

/* -- verbs_wr.c -- */

int verbs_post_send(struct rnic_qp *, const struct rnic_send_wr *);
int verbs_post_recv(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
void verbs_credits(const struct rnic_qp *, struct rnic_credits *);
void verbs_flush(struct rnic_dev *);
/* Hands the chain to the card. */
void verbs_chain_post(struct verbs_qp *);
/* Posts a request behind all others that only has to come back: false when the card does not take it. */
bool verbs_post_drain(struct verbs_qp *);
/* Gives RNIC_EV_CREDITS when something that was used up is there again. */
void verbs_credits_changed(struct verbs_qp *);
/* To be posted at the end of this turn. */
static inline void
verbs_tx_schedule(struct verbs_qp *qp)
{
	if (list_empty(&qp->tx_node))
		list_push(&qp->dev->tx_list, &qp->tx_node);
}

/* -- verbs_cq.c -- */

/* wr_id as the card has it: a position in a queue, and which queue. */
#define VERBS_ID_RECV (1ull << 63)
#define VERBS_ID_DRAIN (1ull << 62)
#define VERBS_ID_READ (1ull << 61)
#define VERBS_ID_NUDGE (1ull << 60)

unsigned verbs_poll(struct rnic_dev *, struct rnic_wc *, unsigned max);
void verbs_channel_io(void *dev, int fd, unsigned events);
void verbs_channel_read(struct verbs_dev *);
/* Asks for an event at the next completion: 0 or a negative errno. */
int verbs_cq_arm(struct verbs_qp *);
/* Takes all completions that are there. */
void verbs_cq_empty(struct verbs_qp *);
/* The oldest request that the card has answers for what happened. */
void verbs_fail_oldest(struct verbs_qp *, enum rnic_wc_status);
/* The requests before pos ended well. */
void verbs_end_sends(struct verbs_qp *, uint32_t pos);
/* All requests that have not ended do so now. */
void verbs_end_all(struct verbs_qp *);
void verbs_cq_schedule(struct verbs_qp *);

/* -- verbs_async.c -- */

void verbs_async_io(void *dev, int fd, unsigned events);
void verbs_async_read(struct verbs_dev *);
void verbs_set_gone(struct verbs_dev *);
