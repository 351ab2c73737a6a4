/*
 * The RNIC contract: what the SMC-R engine may ask of a device, shaped like
 * verbs. Devices (soft iWARP, verbs, sim) implement struct rnic_ops; the
 * engine sees this header and no device.
 *
 * Objects: device -> protection domain -> memory region and queue pair. The
 * caller frees what it made, in reverse order. All calls come from one thread,
 * never from inside a device's callback; no call blocks. The end of a queue
 * pair or a device may take its time: it is asked for, and done when the event
 * says so; until then a queue pair's domain, regions and buffers are in use.
 *
 * Work requests
 *   - wr_id is the caller's; a device reports it back and does not look at it.
 *   - Requests of one QP take effect in the order posted.
 *   - Success: only RNIC_SIGNALED requests and receives yield a completion,
 *     in the order posted; the completion of request n says that all requests
 *     posted before n are complete too.
 *   - A completed write or send means that the peer's RNIC has the data
 *     (RFC 5040 gives less; a device over iWARP sends a fence, a small Read behind).
 *   - Failure: the first failed request reports its error, every request still
 *     outstanding, signaled or not, follows as RNIC_WC_FLUSHED, receives too.
 *     So each request ends exactly once.
 *   - Buffers under a request belong to the device until the request is
 *     complete. RNIC_INLINE takes a copy, up to info.max_inline bytes.
 *
 * Receives: a Send that arrives takes the oldest posted receive. A device that
 * has none holds the sender back (RNR retry, or it stops reading); over iWARP
 * the ends exchange recv_depth at connect and `credits` says how many Sends may go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define RNIC_NAME_MAX 32
#define RNIC_SGE_MAX 4

/* Two devices can be joined when they have the same one. */
enum rnic_transport {
	RNIC_TRANSPORT_ROCE,
	RNIC_TRANSPORT_IWARP,          /* MPA on TCP */
	RNIC_TRANSPORT_IWARP_SCTP,     /* DDP over SCTP (RFC 5043), protocol 132 */
	RNIC_TRANSPORT_IWARP_SCTP_UDP, /* the same in UDP (RFC 6951) */
};

static inline bool
rnic_is_sctp(enum rnic_transport transport)
{
	return transport == RNIC_TRANSPORT_IWARP_SCTP || transport == RNIC_TRANSPORT_IWARP_SCTP_UDP;
}

/* Over whatever transport protocol. */
static inline bool
rnic_is_iwarp(enum rnic_transport transport)
{
	return transport == RNIC_TRANSPORT_IWARP || rnic_is_sctp(transport);
}

/* As reports have it. */
static inline const char *
rnic_transport_str(enum rnic_transport transport)
{
	static const char *const words[] = {
		[RNIC_TRANSPORT_ROCE] = "roce",
		[RNIC_TRANSPORT_IWARP] = "iwarp",
		[RNIC_TRANSPORT_IWARP_SCTP] = "iwarp-sctp",
		[RNIC_TRANSPORT_IWARP_SCTP_UDP] = "iwarp-sctp-udp",
	};

	return words[transport];
}

/* How the packets of a port are addressed, the same at both ends of a link. A port may be several devices, one for each kind.
 * SMC-R version 1 of Linux takes RoCE v1 alone, version 2 takes RoCE v2 with IPv4. */
enum rnic_gid_type {
	RNIC_GID_NONE,    /* iWARP */
	RNIC_GID_ROCE_V1, /* EtherType 0x8915, not routed */
	RNIC_GID_ROCE_V2, /* UDP port 4791 */
	RNIC_GID_IB,      /* InfiniBand */
};

/* The way to a peer's port, as far as it is known without asking it. */
enum rnic_reach {
	RNIC_REACH_NONE,    /* no route leads there from the port */
	RNIC_REACH_DIRECT,  /* the next hop is the peer itself, or the way is not known */
	RNIC_REACH_GATEWAY, /* the next hop is a router */
};

enum rnic_port_state {
	RNIC_PORT_DOWN,
	RNIC_PORT_UP,
};

struct rnic_gid {
	uint8_t b[16]; /* an IPv6 address; IPv4 as ::ffff:a.b.c.d */
};

struct rnic_info {
	char name[RNIC_NAME_MAX];
	char provider[RNIC_NAME_MAX];
	enum rnic_transport transport;
	enum rnic_port_state port;
	struct rnic_gid gid;
	enum rnic_gid_type gid_type;
	uint8_t mac[6];
	uint16_t
	    vlan; /* id of the VLAN that its interface is in, 0 = none: all links of a group are in one (RFC 7609 2) */
	uint8_t mtu_code; /* 1..5 = 256..4096 bytes (RFC 7609 A.2.3) */
	/* Over SCTP: what runs it, "kernel" or "user", and which document its messages follow, "rfc5043" or "draft-00". NULL elsewhere. */
	const char *stack, *profile;
	/* iWARP: where the device accepts MPA connections, or SCTP associations: then the port of SCTP and that of UDP, if there is
	 * one. 0 otherwise. */
	uint16_t mpa_port;
	uint32_t max_qp;
	uint32_t max_mr;
	uint32_t max_sq; /* work requests a QP */
	uint32_t max_rq;
	uint32_t max_sge;
	uint32_t max_inline;
	bool denies; /* enforces rnic_mr.deny, and counts in rnic_mr.placed */
	bool pins;   /* pages of a region have to stay as they are until it is deregistered */
	/* Takes 7 for no limit of retries where cards count to 7, as soft RoCE does: what is sent with that, as Linux does, to a
	 * queue pair that is gone never ends. Of our device, and most likely of the peer's, too. */
	bool retries_forever;
	/* in use now */
	uint32_t qp_cnt;
	uint32_t mr_cnt;
	uint64_t mr_bytes;
};

struct rnic_dev;
struct rnic_ops;

/* Each device embeds these as the first member of its own struct. */
struct rnic_dev {
	const struct rnic_ops *ops;
	void *ctx;             /* the engine's */
	struct list_node node; /* the engine's, of devices that end */
	/* The time of this turn, what time limits count from: its user sets it when a turn begins, before any other call of
	 * that turn. Time limits that start from an older time would end too early. */
	int64_t now_ns;
};

struct rnic_pd {
	struct rnic_dev *dev;
};

enum {
	RNIC_ACCESS_LOCAL = 0,
	RNIC_ACCESS_REMOTE_WRITE = 1 << 0,
	RNIC_ACCESS_REMOTE_READ = 1 << 1,
};

struct rnic_mr {
	struct rnic_pd *pd;
	uint8_t *buf;
	size_t len;
	uint32_t lkey;
	uint32_t rkey; /* secret: never logged */
	uint64_t addr; /* what the peer uses as address of buf[0]; soft devices: not the process address */
	/* The engine's, read by devices of software (info.denies) at each remote write: one that touches bytes
	 * [i * deny_unit, (i + 1) * deny_unit) is refused like one out of range while bit i is set. deny_unit 0: none is.
	 * A card cannot do that. */
	uint32_t deny_unit;
	uint64_t deny[4];
	uint64_t
	    *placed; /* and there it adds what it writes into each unit, or was about to; NULL: nobody wants to know */
};

struct rnic_qp_attr {
	void *ctx;         /* the engine's, kept in struct rnic_qp */
	uint32_t sq_depth; /* send queue: requests outstanding at most */
	uint32_t rq_depth; /* receives posted at most; an iWARP peer hears of it as receive depth */
	uint64_t token;    /* iWARP: secret of the link group that the peer has to show (0 elsewhere) */
};

struct rnic_qp {
	struct rnic_dev *dev;
	void *ctx;
	uint32_t qpn; /* 24 bits */
	uint32_t psn; /* 24 bits, random: the first one we send */
};

/* The far end of a QP, as learned from CLC or ADD LINK. */
struct rnic_remote {
	struct rnic_gid gid;
	uint8_t mac[6];
	uint32_t qpn;
	uint32_t psn;
	uint8_t mtu_code;  /* of the path */
	uint16_t mpa_port; /* iWARP, active side only */
};

enum rnic_side {
	RNIC_ACTIVE,  /* SMC client: opens the MPA connection or the association; RoCE: RTR only, RTS by qp_rts */
	RNIC_PASSIVE, /* SMC server: RoCE: RTR and RTS */
};

enum {
	RNIC_SIGNALED = 1 << 0,
	RNIC_SOLICITED = 1 << 1,
	RNIC_INLINE = 1 << 2,
};

enum rnic_wr_op {
	RNIC_WR_SEND,
	RNIC_WR_WRITE,
};

struct rnic_sge {
	struct rnic_mr *mr; /* NULL with RNIC_INLINE */
	const uint8_t *ptr; /* inside mr, except with RNIC_INLINE */
	uint32_t len;
};

struct rnic_send_wr {
	uint64_t wr_id;
	enum rnic_wr_op op;
	unsigned flags;
	unsigned sge_cnt; /* <= RNIC_SGE_MAX */
	struct rnic_sge sge[RNIC_SGE_MAX];
	uint64_t raddr; /* write only */
	uint32_t rkey;  /* write only */
};

struct rnic_recv_wr {
	uint64_t wr_id;
	struct rnic_mr *mr;
	uint8_t *ptr;
	uint32_t len;
};

enum rnic_wc_status {
	RNIC_WC_OK,
	RNIC_WC_FLUSHED,    /* QP went to error before this request was done */
	RNIC_WC_REMOTE_ERR, /* the peer refused it (access, no receive, ...) */
	RNIC_WC_LOCAL_ERR,
	RNIC_WC_RETRY_EXC, /* the peer did not answer */
};

enum rnic_wc_op {
	RNIC_WC_SEND,
	RNIC_WC_WRITE,
	RNIC_WC_RECV,
};

struct rnic_wc {
	uint64_t wr_id;
	struct rnic_qp *qp;
	enum rnic_wc_op op;
	enum rnic_wc_status status;
	uint32_t len; /* receives: bytes */
};

enum rnic_event_type {
	RNIC_EV_CONNECTED,      /* qp may be used (RoCE passive: at once) */
	RNIC_EV_CONNECT_FAILED, /* qp is of no further use */
	RNIC_EV_QP_ERROR,       /* a connected qp broke; flushed completions are ready to be polled */
	RNIC_EV_SILENT, /* iWARP: the peer has not answered for the device's time limit. The qp goes on: its user ends it, or waits;
	                 * comes again after each further such time without an answer */
	RNIC_EV_CREDITS,  /* something of struct rnic_credits was used up and is there again */
	RNIC_EV_QP_FREED, /* a destroyed qp is no more */
	RNIC_EV_PORT_UP,
	RNIC_EV_PORT_DOWN,
	RNIC_EV_DEV_GONE,
	RNIC_EV_DEV_FREED, /* the device is no more */
	RNIC_EV_TROUBLE, /* the device goes on, but could not do what was asked of it: why says what the operator can do */
};

struct rnic_event {
	enum rnic_event_type type;
	struct rnic_qp *qp; /* NULL for port and device events; of RNIC_EV_QP_FREED, not to be looked at */
	void *ctx;          /* the qp's */
	const char *why;    /* static text for the operator; NULL: none */
	bool
	    silent; /* of CONNECT_FAILED and QP_ERROR: the peer does not answer, or what is in between lets nothing pass */
};

/* What may be posted on a QP now. */
struct rnic_credits {
	uint32_t wrs;   /* free send queue entries */
	uint32_t sends; /* Sends the peer has receives for (<= wrs) */
	size_t bytes;   /* payload bytes that are worth queueing now; more would only delay others */
};

/* Read depths of a peer, as it named them in the start-up (RFC 6581 9.1); -1 = it named none. */
struct rnic_depths {
	int ird; /* requests that it takes in at a time */
	int ord; /* that it wants to have under way */
};

/* A path of a queue pair's connection or association: TCP has one, SCTP one for each address of the peer. */
enum rnic_path_state {
	RNIC_PATH_UNKNOWN,
	RNIC_PATH_ACTIVE,
	RNIC_PATH_SUSPECT,     /* what was sent last is sent again: without an answer so far */
	RNIC_PATH_INACTIVE,    /* given up, until the peer answers there */
	RNIC_PATH_UNCONFIRMED, /* not used yet: the peer has named it, and not answered there */
};

struct rnic_path {
	struct rnic_gid to; /* the peer's address */
	enum rnic_path_state state;
	bool primary; /* the one that data take */
	/* 0: not known. Round trip, smoothed; time until a packet is sent again; longest IP packet; bytes that may be under way. */
	uint32_t rtt_us, rto_us, mtu, cwnd;
};

#define RNIC_FAR_NS 1000000 /* a round trip: the path holds more than what is sent and taken meanwhile */
#define RNIC_PATHS_MAX 8

struct rnic_conn_info {
	int64_t retransmits; /* packets, since the start; -1: not known */
	int64_t unacked;     /* packets under way; -1: not known */
	unsigned path_cnt;   /* 0: nothing is known, there is no connection yet or no more */
	struct rnic_path paths[RNIC_PATHS_MAX];
};

/* One of a device's own counters. */
struct rnic_stat {
	const char *name; /* static */
	uint64_t value;
};

#define RNIC_STATS_MAX 32

struct sockaddr_storage;

struct rnic_ops {
	/* Fills *info, in-use figures included. */
	void (*query)(struct rnic_dev *, struct rnic_info *info);
	/* What the device has counted: fills stats[RNIC_STATS_MAX], always the same names in the same order; returns their
	 * number. NULL = nothing. */
	unsigned (*stats)(const struct rnic_dev *, struct rnic_stat *stats);
	/* Who made this one of its counters go up last: true and his address and port in *from, or false when that is not known.
	 * NULL = it never is. */
	bool (*last_refused)(const struct rnic_dev *, const char *counter, struct sockaddr_storage *from);

	/* All return 0 or a negative errno; outputs are set on success only. */
	int (*pd_alloc)(struct rnic_dev *, struct rnic_pd **);
	void (*pd_free)(struct rnic_pd *);
	int (*mr_reg)(struct rnic_pd *, void *buf, size_t len, unsigned access, struct rnic_mr **);
	void (*mr_dereg)(struct rnic_mr *);
	int (*qp_create)(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
	/* Passive side, before our QPN and PSN go to the peer: from now on the peer may come. */
	int (*qp_expect)(struct rnic_qp *);
	/* Asynchronous: ends with RNIC_EV_CONNECTED or RNIC_EV_CONNECT_FAILED. */
	int (*qp_connect)(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);
	/* RoCE active side: to RTS, when the peer's CONFIRM LINK came. A no-op elsewhere. */
	int (*qp_rts)(struct rnic_qp *);
	/* Breaks the connection now (iWARP: `graceful` sends all that was posted, then FIN; otherwise reset).
	 * Outstanding requests are flushed; nothing that still arrives is placed. No RNIC_EV_QP_ERROR follows. */
	void (*qp_disconnect)(struct rnic_qp *, bool graceful);
	/* Asks for the end of the QP, which is disconnected if it was not. Its completions and events are dropped but for one,
	 * RNIC_EV_QP_FREED; until that one is polled the domain and memory regions stay. */
	void (*qp_destroy)(struct rnic_qp *);

	/* 0; -ENOBUFS no credits; -ENOTCONN not connected or broken; -EINVAL. Nothing is posted on failure. */
	int (*post_send)(struct rnic_qp *, const struct rnic_send_wr *);
	/* Posts all n or none. Allowed from creation on. */
	int (*post_recv)(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
	void (*credits)(const struct rnic_qp *, struct rnic_credits *);
	/* Of the peer that accepted us, was accepted, or rejected us. NULL = the device does not learn them. */
	struct rnic_depths (*peer_depths)(const struct rnic_qp *);
	/* The shortest round trip of the path that is known, in ns; -1: none. From RNIC_FAR_NS on the path is long. NULL = the device
	 * does not learn it. */
	int64_t (*path_rtt)(struct rnic_qp *);
	/* What the transport protocol below knows of the queue pair's connection, for the operator: fills *out, which says that nothing
	 * is known, as far as it knows better. NULL = nothing. */
	void (*conn_info)(struct rnic_qp *, struct rnic_conn_info *out);
	/* Called now and then: what an idle QP does not need is given back. NULL = the device keeps what it has. */
	void (*rest)(struct rnic_qp *);
	/* Wants completions of everything posted so far soon: iWARP devices send a fence. */
	void (*fence)(struct rnic_qp *);

	/* Up to max completions of all QPs of the device; returns their number. */
	unsigned (*poll)(struct rnic_dev *, struct rnic_wc *wc, unsigned max);
	/* One event into *ev: true, or false when there is none. */
	bool (*poll_event)(struct rnic_dev *, struct rnic_event *ev);

	/* The way from this port to that of a peer, as far as is known without asking it. Sends nothing.
	 * Says which devices are worth trying first; a peer that is said to be out of reach may be tried all the same.
	 * NULL = always direct. */
	enum rnic_reach (*reaches)(struct rnic_dev *, const struct rnic_gid *);

	/* What follows is for devices that need the event loop; any of it may be NULL. */

	/* End of a loop turn: transmit what was posted, one system call a link. */
	void (*flush)(struct rnic_dev *);
	/* Next time progress has to be called, or INT64_MAX. "Now or earlier" = unfinished work, or completions
	 * or events wait to be polled. */
	int64_t (*deadline)(const struct rnic_dev *);
	void (*progress)(struct rnic_dev *, int64_t now_ns);
	/* Asks for the end of the device, which takes no more connections. All QPs are destroyed before; when they are freed
	 * and PDs and MRs are gone, RNIC_EV_DEV_FREED follows, and polling it frees the device. */
	void (*free)(struct rnic_dev *);
};

/*
 * What the event loop offers to a device: edge-triggered readiness of a file
 * descriptor (read, write, hang-up at once). The callback only notes or reads;
 * it may not call the engine. The time of the turn, in struct rnic_dev, is set
 * before.
 */
enum {
	RNIC_IO_READ = 1 << 0,
	RNIC_IO_WRITE = 1 << 1,
	RNIC_IO_HUP = 1 << 2,
};

typedef void (*rnic_io_cb)(void *arg, int fd, unsigned events);

struct rnic_loop {
	void *ctx;
	/* 0 or -errno. unwatch before close; no callback comes after it, and it may be called of what is not watched. */
	int (*watch)(void *ctx, int fd, rnic_io_cb cb, void *arg);
	void (*unwatch)(void *ctx, int fd);
};

static inline struct rnic_info
rnic_query(struct rnic_dev *dev)
{
	struct rnic_info info;

	dev->ops->query(dev, &info);
	return info;
}

/* qp may be NULL: nothing is known of it. */
static inline struct rnic_conn_info
rnic_conn_info(struct rnic_qp *qp)
{
	struct rnic_conn_info info = { .retransmits = -1, .unacked = -1 };

	if (qp != NULL && qp->dev->ops->conn_info != NULL)
		qp->dev->ops->conn_info(qp, &info);
	return info;
}
