/*
 * The sim device: an RNIC in memory with virtual time and faults, for tests.
 * Implements rnic.h strictly: it is the referee, and reports each breach of
 * the contract by the device's user instead of forgiving it.
 *
 * A fabric joins the devices of several engines. Nothing happens between two
 * calls of sim_run: posts, connects and breaks take effect when virtual time
 * reaches them, each delay drawn from the seed, so that a run is repeated
 * exactly by the same seed and the same calls. The devices have no deadline
 * and no progress function: like a completion channel, sim_ready says when
 * the user of a device has something to poll.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rnic/rnic.h"

struct sim_fabric;

/* The fate of a message on its way. */
enum sim_fate {
	SIM_DELIVER,
	SIM_LOSE,    /* the link breaks before it */
	SIM_TEAR,    /* the link breaks after a part of a write was placed */
	SIM_UNACKED, /* delivered, then the link breaks: no successful completion of it */
	SIM_GHOST, /* completed though it does not arrive, nor does anything behind it; the link breaks later (4.6.1) */
	SIM_DROP,  /* completed though it does not arrive, and nothing else happens: a peer that does not listen */
	SIM_HOLD,  /* not yet: asked again a little later; what is behind it on its way waits too */
};

/* How a link breaks. */
enum sim_cut {
	SIM_CUT_RESET,  /* both ends notice soon; nothing on the way arrives */
	SIM_CUT_LATE,   /* an end that has not noticed yet still gets what is on the way to it, maybe much later */
	SIM_CUT_SILENT, /* nothing passes; an end notices when a request of its own is not answered */
};

/* A message about to arrive, for the filter. */
struct sim_msg {
	struct rnic_dev *from;
	struct rnic_dev *to;
	uint32_t qpn; /* of the sender */
	enum rnic_wr_op op;
	const uint8_t *data;
	size_t len;
	uint64_t nr; /* of the fabric, from 1 */
};

/* A request on its way to the peer of its QP. data has room for cap bytes. */
struct sim_forgery {
	struct rnic_dev *from;
	struct rnic_dev *to; /* NULL: no such device */
	uint32_t qpn;        /* of the sender */
	enum rnic_wr_op op;
	uint8_t *data;
	size_t len, cap;
	uint64_t raddr; /* writes */
	uint32_t rkey;
};

struct sim_config {
	uint64_t seed;
	int64_t delay_min_ns; /* one way, drawn for each message */
	int64_t delay_max_ns;
	int64_t ack_max_ns; /* a completion comes up to this much later than it could */
	int64_t fence_ns;   /* completions wait this long for rnic_ops.fence (iWARP); 0 = they need none */
	int64_t retry_ns;   /* a request fails when not answered this long; iWARP: RNIC_EV_SILENT */
	int64_t connect_ns; /* iWARP: connecting fails after */
	int64_t end_ns;     /* a queue pair takes so long to end; 0 = it is at once */
	uint32_t max_sq, max_rq, max_sge, max_inline, max_qp, max_mr;
	size_t credit_bytes;   /* payload on the way that rnic_ops.credits allows a QP */
	bool no_deny;          /* devices do not enforce rnic_mr.deny, and have no TLS, as cards */
	bool need_flush;       /* posts leave at rnic_ops.flush only */
	unsigned tear_percent; /* writes that are placed in two steps */
	unsigned
	    early_percent; /* iWARP: writes that are placed when something before them arrives, as SCTP lets them be */
	unsigned unplaced_percent; /* small writes that soft devices leave where they arrived (rnic/unit.h) */
	unsigned enomem_per_mille; /* registrations and creations that fail with -ENOMEM */
	enum sim_cut cut;          /* of links that break by fate or by sim_break */

	void *ctx; /* of what follows; each may be NULL */
	/* Without it a breach is printed and aborts. */
	void (*breach)(void *ctx, const struct rnic_dev *, const char *what);
	/* A peer that takes requests for consumed while they are under way may see their buffers change: they are its own. */
	bool (*peer_lies)(void *ctx, const struct rnic_gid *peer);
	enum sim_fate (*filter)(void *ctx, const struct sim_msg *);
	/* A peer that keeps no rule: each request as it is posted, which may be changed but for its op (a write keeps a byte
	 * at least). False: it does not go, and its sender will not know. */
	bool (*tamper)(void *ctx, struct sim_forgery *);
	/* Bytes of a write were placed there, at the device and QP that it came to. */
	void (*placed)(void *ctx, const struct rnic_dev *from, struct rnic_qp *to, const uint8_t *ptr, size_t len);
	/* One line for each thing that happens on the fabric. */
	void (*log)(void *ctx, int64_t now_ns, const char *line);
};

/* Short delays, no faults. */
void sim_config_init(struct sim_config *);

struct sim_fabric *sim_fabric_new(const struct sim_config *);
/* All devices have ended before. */
void sim_fabric_free(struct sim_fabric *);
/* Everything up to now_ns happens. Time never goes back. */
void sim_run(struct sim_fabric *, int64_t now_ns);
/* When the next thing happens; INT64_MAX for never. */
int64_t sim_next(const struct sim_fabric *);
uint64_t sim_breaches(const struct sim_fabric *);

/* name and gid are to be unique in the fabric. */
struct rnic_dev *sim_dev_new(
    struct sim_fabric *, const char *name, enum rnic_transport, const struct rnic_gid *, const uint8_t mac[6]);
/* The n-th of a host, on the host's interface if_nr: its GID is 10.0.n.(host + 1), which makes the MAC, too, with if_nr for n. */
struct rnic_dev *sim_dev_at(
    struct sim_fabric *, const char *name, enum rnic_transport, unsigned host, unsigned n, unsigned if_nr);
/* Completions or events wait to be polled. */
bool sim_ready(const struct rnic_dev *);

/* Objects that exist, over all devices: to find leaks. */
struct sim_live {
	uint32_t pd, mr, qp, links;
	uint64_t mr_bytes;
};

void sim_live(const struct sim_fabric *, struct sim_live *);

/* -- faults -- */

/* Breaks the n-th (modulo their number) connected link of the fabric: false when there is none. */
bool sim_break(struct sim_fabric *, uint32_t n, enum sim_cut);
/* The n-th (modulo their number) connected QP of the fabric: false when there is none. */
bool sim_nth_qp(const struct sim_fabric *, uint32_t n, struct rnic_dev **, uint32_t *qpn);
/* Nothing is wrong with the link of this QP, at neither end, noticed or not. */
bool sim_intact(const struct rnic_dev *, uint32_t qpn);
/* The link that this QP is an end of, which is the first to notice: false when it is not connected. */
bool sim_break_qp(struct rnic_dev *, uint32_t qpn, enum sim_cut);
void sim_port(struct rnic_dev *, enum rnic_port_state);
/* Its interface is in this VLAN. */
void sim_vlan(struct rnic_dev *, uint16_t vlan);
/* RoCE: its GID is of this type; RoCE v2 otherwise. */
void sim_gid_type(struct rnic_dev *, enum rnic_gid_type);
/* What it says of the way to every peer, which nothing on the fabric depends on; direct otherwise. */
void sim_reach(struct rnic_dev *, enum rnic_reach);
/* So many queue pairs from now on. */
void sim_max_qp(struct rnic_dev *, uint32_t max);
/* The device answers nothing from now on, and does not know it. */
void sim_freeze(struct rnic_dev *, bool frozen);
/* From now on it takes a queue pair so long to end. */
void sim_end_takes(struct sim_fabric *, int64_t ns);
/* Queue pairs that end do so now. */
void sim_end_all(struct sim_fabric *);
/* The device is unplugged. */
void sim_gone(struct rnic_dev *);
/* Requests of this device are not completed until it is off again, though they arrive. */
void sim_withhold(struct rnic_dev *, bool on);
/* iWARP: a firewall drops every MPA connection, or association, to this device. */
void sim_block_connect(struct rnic_dev *, bool blocked);

/* Its connection has the keys of a secret (rnic_qp_attr.secret), as if in TLS. */
bool sim_qp_in_tls(const struct rnic_qp *);
void sim_protect(struct rnic_dev *, enum rnic_protection);

/* -- a peer that keeps no rule -- */

/* The n-th (modulo their number) connected QP of this device: false when there is none. */
bool sim_nth_qp_of(const struct rnic_dev *, uint32_t n, uint32_t *qpn);
/* Sends what the QP's user did not post, behind what it did: no request, no completion, no rule. op, data, len, raddr and
 * rkey of the forgery count. False when the QP is not connected. */
bool sim_forge(struct rnic_dev *, uint32_t qpn, const struct sim_forgery *);
