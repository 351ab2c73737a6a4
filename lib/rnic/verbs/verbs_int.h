/* Internals of the verbs device. verbs.c: device, memory, table of operations; verbs_list.c: ports and GIDs;
 * verbs_qp.c: queue pairs, their states and end; verbs_roce.c: connecting them; verbs_cm.c: threads for blocking calls;
 * verbs_wr.c: posting; verbs_cq.c: completions; verbs_async.c: events of port and card. iWARP only: verbs_iwarp.c,
 * verbs_iwarp_passive.c: connecting; verbs_fence.c: the fence. */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include "base/idtable.h"
#include "base/list.h"
#include "base/timerq.h"
#include "rnic/events.h"
#include "rnic/fence.h"
#include "rnic/unknown_peers.h"
#include "rnic/verbs/verbs.h"

#define VERBS_INLINE 64               /* maximum of inline data per request */
#define VERBS_CHAIN 64                /* requests per post call */
#define VERBS_POLL 32                 /* completions per poll call */
#define VERBS_ACK_BATCH 64            /* completion events acknowledged together */
#define VERBS_EVENTS_TURN 256         /* events read per turn */
#define VERBS_BYTES (2 * 1024 * 1024) /* payload worth queueing, struct rnic_credits */
#define VERBS_FLUSH_MS 1000           /* time limit for flushing a broken QP; then it is destroyed */
#define VERBS_READ_DEPTH 2   /* of an iWARP QP: our Read, and an RTR Read of the card, which may not count it */
#define VERBS_NUDGE_MS 100   /* the active side sends a second message if nothing is received after the first */
#define VERBS_LINGER_MS 2000 /* time limit of a graceful close */
#define VERBS_LINGER_MAX 64
#define VERBS_TROUBLE_MS 60000 /* minimum interval between reports of the same trouble */
#define VERBS_MAX_QP 65536
#define VERBS_PARKED_MAX 64 /* parked MPA requests, as with soft iWARP */
#define VERBS_PARKED_MS 1000

struct verbs_pd {
	struct rnic_pd pd;
	struct ibv_pd *hw;
};

struct verbs_wr {
	uint64_t wr_id;
	uint32_t len;
	uint8_t op;     /* enum rnic_wr_op */
	uint8_t status; /* enum rnic_wc_status, once ended */
	bool signaled;  /* the user wants a completion */
};

struct verbs_recv {
	uint64_t wr_id;
	uint32_t len; /* of the received message */
	uint32_t status;
};

/* Requests not passed to the card yet. */
struct verbs_chain {
	struct ibv_send_wr wr[VERBS_CHAIN];
	struct ibv_sge sge[VERBS_CHAIN][RNIC_SGE_MAX];
};

/* Phases of a queue pair, in order; verbs_qp.c has the transitions. */
enum verbs_phase {
	VERBS_INIT,       /* accepts receives */
	VERBS_EXPECTING,  /* iWARP: likewise, and accepts the peer */
	VERBS_CONNECTING, /* RoCE: a thread makes the transition; iWARP: connecting */
	VERBS_RTR,
	VERBS_RTS,
	VERBS_LINGER,  /* graceful close: posted requests are still being sent */
	VERBS_CANCEL,  /* to be ended, but its connecting thread still uses it */
	VERBS_FLUSH,   /* in the error state: the card flushes requests */
	VERBS_DESTROY, /* a thread destroys it, which ends unflushed requests */
	VERBS_ENDED,   /* all requests have ended */
	VERBS_RELEASE, /* destroyed by its user: a thread frees all of its hardware */
	VERBS_PHASE_CNT,
};

enum verbs_user {
	VERBS_USED,
	VERBS_CLOSED, /* qp_disconnect was called: no event follows */
	VERBS_DESTROYED,
};

/* A job that may block on the network or the card; see verbs_cm.c. */
struct verbs_job {
	struct list_node node;
	void (*run)(struct verbs_job *);  /* in the thread */
	void (*done)(struct verbs_job *); /* in the loop */
	struct verbs_cm *cm;              /* of a job with its own thread: */
	pthread_t thread;
	struct ibv_qp *hw;
	struct ibv_qp_attr rtr, rts;
	bool to_rts;    /* passive side: both transitions */
	bool cancelled; /* nothing may be placed: to the error state, whatever the result */
	int err;        /* result: 0 or a positive errno */
};

/* Hardware to be freed by the thread. */
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
	enum verbs_phase ended_in; /* phase of the end, or up to RTS the last one */
	enum verbs_user user;
	bool claimed; /* qp_connect was called */
	bool drained; /* FLUSH: the card has no send left */
	bool failed;  /* a request has failed: all later ones are flushed */
	bool refused; /* the card rejected request sq.sent */
	enum rnic_side side;
	struct rnic_remote remote;
	/* iWARP */
	uint64_t token;
	struct verbs_conn *conn;
	struct verbs_job job;
	/* send queue; sq.sent: end of requests passed to the card */
	struct sendq sq;
	struct verbs_wr *wrs;
	uint32_t wr_mask;
	uint32_t sq_given;  /* end of completions reported, or unwanted */
	uint32_t sq_sig;    /* after the last request that the card reports */
	struct fence fence; /* iWARP */
	struct ibv_mr *fence_mr;
	uint32_t card_pos; /* iWARP: end of requests that the card is done with */
	bool nudge_out;
	uint8_t (*msg)[VERBS_INLINE]; /* copies of inline data, by send queue entry */
	struct ibv_mr *msg_mr;        /* for a card without inline data */
	struct verbs_chain *chain;
	unsigned chain_cnt;
	/* receive queue, likewise */
	uint32_t rq_depth;
	struct verbs_recv *rq;
	uint32_t rq_mask;
	uint32_t rq_head, rq_hw, rq_ended, rq_done;
	bool armed;       /* the CQ reports its next completion */
	unsigned unacked; /* events read but not acknowledged */
	struct timer timer;
	struct qp_events events;
	struct list_node node, cq_node, tx_node;
};

struct verbs_worker {
	struct verbs_cm *cm;
	pthread_t thread;
	bool started;
	pthread_cond_t more;
	struct list_node todo;     /* verbs_job */
	struct verbs_job *running; /* taken from todo */
};

/* Threads for blocking calls: one for transitions, one for the end of hardware. Some jobs have their own. */
struct verbs_cm {
	struct verbs_worker connects, ends;
	pthread_mutex_t lock;
	struct list_node done;
	bool quit;
	int evfd; /* signals results */
};

struct verbs_dev {
	struct rnic_dev dev;
	struct verbs_config cfg;
	struct rnic_loop loop;
	struct rng *rng;
	struct timerq timers;
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	unsigned phys_ports;
	struct verbs_port port;
	bool gid_present;
	bool gone; /* the card was removed */
	struct verbs_gid gid;
	struct rnic_info info; /* but for port and mtu_code; qp_cnt includes those being destroyed */
	bool has_inline;
	bool ends; /* rnic_ops.free was called: ends after the last queue pair */
	struct events events;
	const char *troubled; /* the last trouble reported, and its time */
	int64_t troubled_ns;
	bool more; /* unread events may be left */
	int64_t busy_until_ns;
	struct idtable ids;       /* verbs_qp by the id of their CQ */
	struct list_node qps;     /* all verbs_qp */
	struct list_node cq_list; /* verbs_qp whose CQ must be polled */
	struct list_node tx_list; /* verbs_qp with a chain */
	struct verbs_cm cm;
	struct verbs_iwarp *iwarp; /* NULL: not an iWARP card */
	struct verbs_stats stats;
	struct unknown_peers strangers; /* last peers counted */
};

static inline struct verbs_dev *
verbs_dev(const struct rnic_dev *d)
{
	return CONTAINER_OF((uintptr_t)d, struct verbs_dev, dev);
}

static inline struct verbs_qp *
verbs_qp(const struct rnic_qp *q)
{
	return CONTAINER_OF((uintptr_t)q, struct verbs_qp, qp);
}

static inline bool
verbs_is_iwarp(const struct verbs_dev *dev)
{
	return rnic_is_iwarp(dev->port.transport);
}

/* Relative to the time of this turn. */
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

/* Reports a call that failed with err (positive) as RNIC_EV_TROUBLE; may name the memory limit as the cause. */
void verbs_trouble(struct verbs_dev *, int err, const char *why);

/* -- verbs_list.c -- */

/* Both 0 or a negative errno; the port's name and number must be set. */
int verbs_read_port(struct ibv_context *, struct verbs_port *);
int verbs_read_gids(struct ibv_context *, unsigned ports, struct verbs_port *);
void verbs_name_port(struct ibv_context *, uint32_t vendor, unsigned num, struct verbs_port *);
/* Takes the configured GID from the port's table, if present. */
bool verbs_find_gid(struct verbs_dev *);
/* Opens the card of this name: 0, or a negative errno and *why. */
int verbs_open_card(const char *name, struct ibv_context **, const char **why);
/* For a failed call that pins memory, err positive: names the limit if that is the likely cause, else NULL. */
const char *verbs_memlock_why(int err);

/* -- verbs_qp.c -- */

#define VERBS_GONE_WHY "the RDMA device was removed"

/* A thread uses the QP. */
static inline bool
verbs_qp_is_away(const struct verbs_qp *qp)
{
	return (qp->phase == VERBS_CONNECTING && !verbs_is_iwarp(qp->dev)) || qp->phase == VERBS_CANCEL ||
	    qp->phase == VERBS_DESTROY || qp->phase == VERBS_RELEASE;
}

int verbs_qp_create(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
void verbs_qp_destroy(struct rnic_qp *);
void verbs_qp_disconnect(struct rnic_qp *, bool graceful);
int verbs_qp_connect(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);

/* The only function that changes the phase; why: static text for the log. */
void verbs_qp_set_phase(struct verbs_qp *, enum verbs_phase, const char *why);
/* RTR or RTS: stops the time limit of the connection, notifies the user. */
void verbs_qp_connected(struct verbs_qp *, enum verbs_phase);
/* The QP is unusable: to the error state; events follow when all requests have ended. No effect once it ends. */
void verbs_qp_break(struct verbs_qp *, const char *why);
/* Called before it: the reason is a missing answer of the peer. */
static inline void
verbs_qp_note_silence(struct verbs_qp *qp)
{
	if (qp->phase < VERBS_LINGER)
		qp->events.silent = true;
}
/* The card is removed, or does not end requests: destroys the hardware, then ends the remaining requests. Only before
 * phase DESTROY, and if no thread uses the QP. */
void verbs_qp_kill(struct verbs_qp *, const char *why);
/* Requests have ended: ends the QP if they were the last. */
void verbs_qp_check_end(struct verbs_qp *);
/* The connecting thread has returned the QP of this job. */
void verbs_qp_job_done(struct verbs_job *);
/* If the QP has ended and its user has destroyed it, submits its hardware to the thread; QP_FREED follows. */
void verbs_qp_reap(struct verbs_qp *);
/* The hardware is freed, or the QP was never returned to a user. */
void verbs_qp_free(struct verbs_qp *);
void verbs_event(struct verbs_qp *, enum rnic_event_type);

/* -- verbs_roce.c -- */

/* Ends with verbs_qp_connected() or verbs_qp_break(), like verbs_iwarp_connect(). */
int verbs_roce_connect(struct verbs_qp *);
int verbs_qp_rts(struct rnic_qp *);

/* -- verbs_cm.c -- */

int verbs_cm_init(struct verbs_dev *);
/* Ends the threads, which must be idle. */
void verbs_cm_fini(struct verbs_dev *);
/* Submits qp->job to the connecting thread: 0 or a negative errno. */
int verbs_cm_submit(struct verbs_qp *);
/* Submits a job to a started thread. */
void verbs_cm_give(struct verbs_worker *, struct verbs_job *);
/* Runs a slow job in its own thread: 0 or a negative errno. */
int verbs_cm_submit_alone(struct verbs_dev *, struct verbs_job *);
/* Cancels the job. False: it is running, and will be returned. */
bool verbs_cm_cancel(struct verbs_qp *);

/* -- verbs_iwarp.c, verbs_iwarp_passive.c; queue pairs of RoCE have no connection and are never held -- */

int verbs_iwarp_open(struct verbs_dev *, const char **why);
/* Refuses peers from now on. */
void verbs_iwarp_close(struct verbs_dev *);
/* Frees the rest, complete or not; no queue pair is left. */
void verbs_iwarp_fini(struct verbs_dev *);
/* Also called for unread events that are left. */
void verbs_iwarp_io(void *dev, unsigned events);
int verbs_iwarp_connect(struct verbs_qp *);
int verbs_qp_expect(struct rnic_qp *);
/* The timer of a connecting queue pair. */
void verbs_iwarp_timed_out(struct verbs_qp *);
/* Called before the error state, and in it or when the queue pair is freed. */
void verbs_conn_leaving(struct verbs_qp *);
void verbs_conn_left(struct verbs_qp *);
/* The kernel still connects it and will report the result: destroying it before that would block. */
bool verbs_qp_is_held(const struct verbs_qp *);

/* -- verbs_fence.c -- */

/* 0 or a negative errno; no effect except on iWARP. */
int verbs_fence_init(struct verbs_qp *);
/* The active side's first Read, which proves the connection: 0 or a positive errno. */
int verbs_fence_first(struct verbs_qp *);
/* The chain was posted: posts the Read if due. */
void verbs_fence_flush(struct verbs_qp *);
void verbs_fence(struct rnic_qp *);
/* The card is done with the send queue. */
static inline bool
verbs_card_is_done(const struct verbs_qp *qp)
{
	return qp->card_pos == qp->sq.sent && !qp->fence.out && !qp->nudge_out;
}

/* The Read has ended; false: failed. */
void verbs_fence_read_ended(struct verbs_qp *, bool ok);
/* The card is done with the active side's second message. */
void verbs_fence_nudge_ended(struct verbs_qp *);

/* -- verbs_wr.c -- */

int verbs_post_send(struct rnic_qp *, const struct rnic_send_wr *);
int verbs_post_recv(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
void verbs_credits(const struct rnic_qp *, struct rnic_credits *);
void verbs_flush(struct rnic_dev *);
void verbs_chain_post(struct verbs_qp *);
/* Posts a last request whose completion ends the queue; false if the card rejects it. */
bool verbs_post_drain(struct verbs_qp *);
/* Schedules posting at the end of this turn. */
static inline void
verbs_tx_schedule(struct verbs_qp *qp)
{
	if (list_empty(&qp->tx_node))
		list_push(&qp->dev->tx_list, &qp->tx_node);
}

/* -- verbs_cq.c -- */

/* wr_id on the card: queue position, and queue. */
#define VERBS_ID_RECV (1ull << 63)
#define VERBS_ID_DRAIN (1ull << 62)
#define VERBS_ID_READ (1ull << 61)
#define VERBS_ID_NUDGE (1ull << 60)

unsigned verbs_poll(struct rnic_dev *, struct rnic_wc *, unsigned max);
/* Also called for unread events that are left, with events 0. */
void verbs_channel_io(void *dev, unsigned events);
/* Completions are lost: only destroying the QP is sure to end its requests. */
void verbs_cq_failed(struct verbs_qp *);
/* Requests an event for the next completion: 0 or a negative errno. */
int verbs_cq_arm(struct verbs_qp *);
/* Polls all completions. */
void verbs_cq_empty(struct verbs_qp *);
/* The oldest request on the card gets this status. */
void verbs_fail_oldest(struct verbs_qp *, enum rnic_wc_status);
/* The requests before pos succeeded, unless a request has failed already. */
void verbs_end_sends(struct verbs_qp *, uint32_t pos);
void verbs_end_all(struct verbs_qp *);
void verbs_cq_schedule(struct verbs_qp *);

/* -- verbs_async.c -- */

/* Also called for unread events that are left. */
void verbs_async_io(void *dev, unsigned events);
void verbs_set_gone(struct verbs_dev *);
