/* The sim device's objects, shared by sim.c (verbs) and sim_fabric.c (what happens between devices). */
#pragma once

#include "base/idtable.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/timerq.h"
#include "rnic/unit.h"
#include "tests/sim/sim.h"

struct sim_fabric {
	struct sim_config cfg;
	struct rng rng;
	struct rng unplaced_rng; /* of its own: what is left unplaced changes nothing else */
	int64_t now_ns;
	struct timerq timers;
	struct list_node devs;
	struct idtable qps; /* by sim_qp.id */
	struct list_node chans;
	struct list_node ending; /* sim_qp that are destroyed, and not free yet */
	uint64_t msg_cnt;
	uint64_t breach_cnt;
	uint32_t chan_cnt;
};

struct sim_dev {
	struct rnic_dev base;
	struct sim_fabric *fab;
	struct list_node node;
	struct rnic_info info;
	enum rnic_reach reach;
	bool frozen, gone, blocked, withhold;
	bool ends; /* by sim_ops.free */
	struct list_node mrs;
	const struct rnic_mr *mr_found; /* the last one that was looked for: the next is often the same */
	struct list_node wcs;           /* struct sim_done */
	struct list_node events;
	uint32_t pd_cnt, mr_cnt, qp_cnt;
	uint64_t mr_bytes;
};

struct sim_pd {
	struct rnic_pd base;
	uint32_t users; /* MRs and QPs */
	uint32_t qps_ending;
};

struct sim_mr {
	struct rnic_mr base;
	struct list_node node;
	unsigned access;
	uint32_t users; /* requests that the device has not completed */
};

enum sim_qp_state {
	SIM_QP_NEW,
	SIM_QP_CONNECTING,
	SIM_QP_READY,  /* RoCE active: receives, sends after rts */
	SIM_QP_BROKEN, /* by the fabric */
	SIM_QP_CLOSED, /* by its user */
};

/* One direction of a link: messages in order, taken over from the work requests so that they may outlive the QP. */
struct sim_chan {
	struct sim_fabric *fab;
	struct list_node node;
	uint32_t from, to; /* QP ids; to = 0: not known (RoCE looks it up) */
	struct sim_dev *from_dev;
	struct sim_dev *to_dev; /* NULL: no such device */
	struct list_node msgs;
	struct timer timer; /* arrival of the first one */
	int64_t last_ns;    /* arrival of the last one */
	int64_t held_ns;    /* since when the first one waits at a closed port; -1 = it does not */
	int64_t silences;   /* iWARP: number of such reports to the sender */
	size_t bytes;       /* payload on the way */
	bool dead;          /* nothing more arrives */
	bool ghost;         /* what comes is acknowledged and forgotten */
	bool released;      /* its QP is gone or closed: freed when empty */
};

struct sim_parcel {
	struct list_node node;
	enum rnic_wr_op op;
	bool fin;   /* no message: the far end hears that the link is closed */
	bool left;  /* was flushed: at_ns is valid */
	bool half;  /* a part of the write was placed */
	bool early; /* the write was placed before its turn */
	bool omit;  /* its sender's peer keeps it to itself */
	int64_t at_ns;
	uint64_t raddr;
	uint32_t rkey;
	struct sim_wr *wr; /* NULL once the request was flushed */
	uint32_t len;
	uint8_t data[];
};

enum sim_wr_state {
	SIM_WR_SENT,    /* on its way */
	SIM_WR_ARRIVED, /* answer on its way */
	SIM_WR_UNACKED, /* arrived, and the link broke under the answer */
};

struct sim_wr {
	struct list_node node; /* sim_qp.sq */
	struct sim_qp *qp;
	enum sim_wr_state state;
	uint64_t seq;
	int64_t answer_ns; /* when ARRIVED */
	struct rnic_send_wr req;
	struct sim_parcel *parcel; /* while SENT; its data are what the buffers held when posted */
	uint32_t sum;              /* of the payload */
};

struct sim_recv {
	struct list_node node;
	struct rnic_recv_wr req;
};

struct sim_done {
	struct list_node node;
	struct rnic_wc wc;
	uint64_t seq; /* send side: slots up to it are free when polled */
	bool recv;
};

struct sim_note {
	struct list_node node;
	struct rnic_event ev;
};

struct sim_qp {
	struct rnic_qp base;
	struct sim_dev *dev;
	struct sim_pd *pd;
	uint32_t id;
	struct rnic_qp_attr attr;
	uint8_t secret[RNIC_SECRET_LEN]; /* attr.secret points to it */
	enum sim_qp_state state;
	enum rnic_side side;
	bool expecting; /* iWARP passive */
	bool rts;
	bool connected_polled;
	bool error_polled;
	bool has_remote;
	struct rnic_remote remote;
	uint32_t peer;         /* id of the paired QP (iWARP) */
	uint32_t peer_rq;      /* its receive depth (iWARP) */
	struct sim_chan *chan; /* towards the peer */

	struct list_node sq;
	uint64_t seq;        /* of the last request posted */
	uint64_t freed_seq;  /* slots up to here are free */
	uint64_t fence_seq;  /* a fence was asked for behind those up to here */
	uint64_t sends_open; /* Sends posted and not complete */
	struct list_node rq;
	/* Writes that were left where they arrived, in a buffer that is spoilt when it is reused. */
	struct list_node unplaced;
	uint8_t *arrived;
	uint32_t arrived_len;
	uint32_t rq_used; /* posted and not polled */
	bool starved;     /* some credit was used up: EV_CREDITS is owed */

	struct timer answer_timer;
	struct timer conn_timer;
	int64_t conn_until_ns;
	struct timer fail_timer; /* breaks the QP */
	struct timer end_timer;  /* destroyed: it is freed */
	struct list_node end_node;
	enum rnic_wc_status fail_status;
	const char *fail_why;
	bool only_silent; /* but for now it only says that the peer does not answer */
	bool silent;      /* it breaks as the peer does not answer */
};

/* -- sim.c -- */
/* Zeroed; memory that a device needs for itself does not run out. */
void *sim_alloc(size_t len);
void sim_breach(struct sim_dev *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_note(struct sim_qp *, enum rnic_event_type, const char *why);
void sim_dev_note(struct sim_dev *, enum rnic_event_type, const char *why);
/* Outstanding requests end; the first unfinished one of the send queue with `first`. */
void sim_qp_flush(struct sim_qp *, enum rnic_wc_status first);
void sim_wr_finish(struct sim_wr *, enum rnic_wc_status);
/* Until its data have arrived a request's buffers must not change: later contents are not seen. */
void sim_check_buffers(struct sim_wr *);
void sim_recv_finish(struct sim_qp *, struct sim_recv *, enum rnic_wc_status, uint32_t len);
void sim_check_credits(struct sim_qp *);
uint32_t sim_sum(const uint8_t *p, size_t len);

/* -- sim_fabric.c -- */
void sim_log(struct sim_fabric *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_qp *sim_qp_get(struct sim_fabric *, uint32_t id);
struct sim_qp *sim_qp_by_qpn(struct sim_fabric *, const struct sim_dev *, uint32_t qpn);
void sim_qp_init(struct sim_qp *);
int sim_connect(struct sim_qp *);
/* Gives messages that were posted to the link their time of arrival. */
void sim_transmit(struct sim_qp *);
void sim_fence(struct sim_qp *);
/* A receive was posted: a Send may be waiting for it. */
void sim_recv_posted(struct sim_qp *);
void sim_disconnect(struct sim_qp *, bool graceful);
/* The QP breaks now. */
void sim_qp_break(struct sim_qp *, enum rnic_wc_status first, const char *why);
void sim_chan_release(struct sim_qp *);
