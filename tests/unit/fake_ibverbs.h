/*
 * libibverbs for tests: takes its place at link time. Cards in memory, joined
 * by a perfect wire, that do nothing by themselves: fake_run() lets them work.
 * What a program may not do (overflow a queue, destroy what is in use, leave
 * events unacknowledged, skip a state) fails the test on the spot.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#define FAKE_DEVS 4
#define FAKE_PORTS 2
#define FAKE_GIDS 16
#define FAKE_NEVER UINT32_MAX

struct fake_port {
	enum ibv_port_state state;
	enum ibv_mtu mtu;
	uint8_t link_layer;
	int query_err;
	struct ibv_gid_entry gids[FAKE_GIDS];
	unsigned gid_cnt;
};

struct fake_dev {
	struct ibv_device dev; /* first */
	struct ibv_device_attr attr;
	struct fake_port ports[FAKE_PORTS];
	uint32_t max_inline;
	int open_err;
	bool gone; /* its calls fail */
	unsigned opened;
	struct fake_ctx *ctx; /* opened last */
};

struct fake_wqe {
	uint64_t wr_id;
	enum ibv_wr_opcode op;
	unsigned flags;
	int num_sge;
	struct ibv_sge sge[8];
	uint8_t bytes[256]; /* inline */
	uint64_t raddr;
	uint32_t rkey;
};

struct fake_qp {
	struct ibv_qp qp; /* first */
	struct fake_dev *dev;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr init, rtr, rts; /* as they were set */
	bool revoked;                      /* access flags taken away afterwards */
	struct fake_wqe *sq, *rq;
	uint32_t sq_head, sq_next, sq_free; /* posted; to be executed; slots before are free again */
	uint32_t rq_head, rq_next, rq_free;
	uint32_t post_calls;
	/* what goes wrong: counted in requests of this QP since its creation */
	uint32_t fail_at; /* that send ends with fail_status */
	enum ibv_wc_status fail_status;
	uint32_t refuse_send_at, refuse_recv_at; /* posting it fails */
	bool refuse_on;                          /* and of all further sends, too */
	bool hold;                               /* executes nothing, but flushes */
	bool no_flush;                           /* does not even flush */
	int to_err_err;                          /* of the transition to the error state */
	int rts_err;
	bool notify_err; /* arming its CQ fails */
	bool poll_err;   /* polling its CQ fails */
	/* iWARP */
	uint32_t wire;     /* number of the QP at the other end */
	bool no_answer;    /* Reads of the other end get none */
	bool misses;       /* a first message, until another one comes */
	bool swallows;     /* what comes is taken and never placed */
	unsigned reads_in; /* answered */
	uint32_t read_len; /* the last of them */
};

struct fake_state {
	struct fake_dev devs[FAKE_DEVS];
	unsigned dev_cnt;
	int list_err; /* of ibv_get_device_list */
	int gid_table_err;
	uint32_t fail_call; /* this many calls that make something succeed, then one fails */
	int fail_call_err;
	int reg_mr_err;
	int rtr_err;
	bool destroy_cleans; /* destroying a QP takes its completions from the CQ, as some providers do */
	bool late;           /* the wire moves only when a CQ is being armed, just before it is */
	bool rtr_waits;      /* transitions to RTR wait for fake_rtr_go() */
	bool destroy_waits;  /* destroying a queue pair waits for fake_destroy_go() */
	/* in use */
	int ctx_cnt, pd_cnt, mr_cnt, cq_cnt, qp_cnt, channel_cnt;
	unsigned solicited, inlined, signaled, sent, written;
	uint64_t acks;
};

extern struct fake_state fake;

/* Two cards "fake0" and "fake1", one active RoCE port each, MTU 4096, GIDs: 0 link-local v1, 1 link-local v2,
 * 2 ::ffff:10.0.<n>.1 v1, 3 the same v2. */
void fake_reset(void);
/* Zeroed. Not by calloc: where a test lets allocations fail, calls of the library fail by what the test says of them. */
void *fake_alloc(size_t len);
/* For who waits until a thread has closed its device. */
int fake_open_devices(void);
/* One of the counts of what is in use. */
int fake_live(const int *cnt);
/* All that was made is gone again, or will soon be. */
void fake_check_clean(void);
void fake_gid(
    struct fake_port *, uint32_t port_num, uint32_t index, enum ibv_gid_type, unsigned ifindex, const char *addr);
void fake_gid_remove(struct fake_port *, uint32_t index);

/* Lets all cards do what they can; whether anything happened. */
bool fake_run(void);
/* A completion that the card should not give. */
void fake_bogus(struct fake_qp *, uint64_t wr_id, enum ibv_wc_status);
/* The card is an iWARP card from now on; before it is opened. */
void fake_make_iwarp(struct fake_dev *);
/* What MPA does: both to RTS. */
void fake_join(struct fake_qp *, struct fake_qp *);
/* The QP with this number. */
struct fake_qp *fake_qp_of(uint32_t qpn);
/* Requests that the card has and has not ended. */
uint32_t fake_sends_left(const struct fake_qp *);
uint32_t fake_recvs_left(const struct fake_qp *);

void fake_async_port(struct fake_dev *, enum ibv_event_type, int port);
void fake_async_qp(struct fake_qp *, enum ibv_event_type);
void fake_async_cq(struct fake_qp *, enum ibv_event_type);
/* A burst of harmless ones. */
void fake_async_many(struct fake_dev *, unsigned n);
/* The card is pulled: DEVICE_FATAL, and every call fails from now on. told: with the event, otherwise the descriptor
 * gives EIO. */
void fake_unplug(struct fake_dev *, bool told);

/* rtr_waits: how many wait now (after up to 20 s at least n), and letting all go with this result. */
unsigned fake_rtr_waiting(unsigned n);
void fake_rtr_go(int err);
/* Likewise of destroy_waits. */
unsigned fake_destroy_waiting(unsigned n);
void fake_destroy_go(void);
/* Comes to this state, by another thread, within 20 s. */
bool fake_comes_to(const struct fake_qp *, enum ibv_qp_state);
