/* The RNIC contract: operations of the SMC-R engine on a device, modelled on verbs. Devices (soft iWARP, verbs, sim)
 * implement struct rnic_ops; the engine includes this header and no device.
 * Objects: device -> protection domain -> memory region and queue pair. The caller frees them in reverse order of
 * creation. All calls come from one thread, never from a device's callback; no call blocks. Queue pairs and devices end
 * asynchronously: the call requests it, an event completes it. Until then a queue pair's domain, regions and buffers
 * are in use.
 * Work requests: wr_id is opaque, and returned in the completion. Requests of one QP take effect in the order posted.
 * Success: only RNIC_SIGNALED requests and receives yield a completion, in the order posted; that of request n means
 * that all requests posted before n are complete. A completed write or send means that the peer's RNIC has the data
 * (RFC 5040 guarantees less; an iWARP device sends a fence, a small Read). Failure: the first failed request reports
 * its error; every outstanding one, receives included, signaled or not, follows as RNIC_WC_FLUSHED. So each request
 * ends exactly once. Until then its buffers belong to the device. RNIC_INLINE takes a copy, up to info.max_inline
 * bytes.
 * Receives: an arriving Send uses the oldest posted receive. Without one the device holds the sender back (RNR retry,
 * or it stops reading). Over iWARP the ends exchange recv_depth at connect, and `credits` limits the Sends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define RNIC_NAME_MAX 32
#define RNIC_SGE_MAX 4

/* Only devices of one transport can be connected. */
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

/* With any transport protocol. */
static inline bool
rnic_is_iwarp(enum rnic_transport transport)
{
	return transport == RNIC_TRANSPORT_IWARP || rnic_is_sctp(transport);
}

/* Name in reports. */
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

/* Addressing of a port's packets, the same at both ends of a link. A port may be several devices, one for each type.
 * SMC-R version 1 of Linux uses RoCE v1 only, version 2 uses RoCE v2 with IPv4. */
enum rnic_gid_type {
	RNIC_GID_NONE,    /* iWARP */
	RNIC_GID_ROCE_V1, /* EtherType 0x8915, not routed */
	RNIC_GID_ROCE_V2, /* UDP port 4791 */
	RNIC_GID_IB,      /* InfiniBand */
};

/* Route to a peer's port, as far as known without sending to it. */
enum rnic_reach {
	RNIC_REACH_NONE,    /* no route from this port */
	RNIC_REACH_DIRECT,  /* the next hop is the peer, or the route is unknown */
	RNIC_REACH_GATEWAY, /* the next hop is a router */
};

/* Of a device's packets on their way, by the user's word: RNIC_PROTECTED_NONE, or how. */
enum rnic_protection { RNIC_PROTECTED_NONE, RNIC_PROTECTED_MACSEC, RNIC_PROTECTED_IPSEC, RNIC_PROTECTED_PSP };

enum rnic_port_state { RNIC_PORT_DOWN, RNIC_PORT_UP };

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
	uint16_t vlan;    /* VLAN id of the interface, 0 = none: all links of a group share one (RFC 7609 2) */
	uint8_t mtu_code; /* 1..5 = 256..4096 bytes (RFC 7609 A.2.3) */
	/* Over SCTP: implementation ("kernel", "user") and specification ("rfc5043", "draft-00"). NULL elsewhere. */
	const char *stack, *profile;
	/* iWARP: the port for MPA connections, or for SCTP associations (also that of UDP, if used). 0 otherwise. */
	uint16_t mpa_port;
	uint32_t max_qp, max_mr;
	uint32_t max_sq, max_rq; /* work requests per QP */
	uint32_t max_sge, max_inline;
	enum rnic_protection protection;
	bool tls;    /* protects connections of queue pairs with a secret by TLS (doc/secure.md) */
	bool denies; /* enforces rnic_mr.deny, and keeps rnic_mr.units */
	bool pins;   /* pages of a region must not change until it is deregistered */
	/* Treats a retry count of 7 as unlimited, as soft RoCE does, where cards count to 7. A send with 7, as Linux
	 * uses, to a destroyed queue pair then never ends. True of our device, and most likely of the peer's. */
	bool retries_forever;
	uint32_t qp_cnt, mr_cnt; /* in use now */
	uint64_t mr_bytes;
};

struct rnic_dev;
struct rnic_ops;

/* Each device embeds these as the first member of its own struct. */
struct rnic_dev {
	const struct rnic_ops *ops;
	void *ctx;             /* the engine's */
	struct list_node node; /* the engine's, of devices that end */
	/* The time of this turn, base of all time limits. The user sets it at the start of a turn, before any other
	 * call. A stale time would end time limits early. */
	int64_t now_ns;
};

struct rnic_pd {
	struct rnic_dev *dev;
};

enum { RNIC_ACCESS_LOCAL = 0, RNIC_ACCESS_REMOTE_WRITE = 1 << 0, RNIC_ACCESS_REMOTE_READ = 1 << 1 };

struct rnic_mr {
	struct rnic_pd *pd;
	uint8_t *buf;
	size_t len;
	uint32_t lkey, rkey; /* rkey is secret: never log it */
	uint64_t addr;       /* address of buf[0] for the peer; soft devices: not the process address */
	/* Set by the engine, read by software devices (info.denies): while bit i is set, a remote write that touches
	 * bytes [i * deny_unit, (i + 1) * deny_unit) is refused as out of range. deny_unit 0: no check. */
	uint32_t deny_unit;
	uint64_t deny[4];
	struct rnic_unit *units; /* rnic/unit.h; NULL: none */
};

#define RNIC_SECRET_LEN 34   /* as TLS_SECRET_LEN */
#define RNIC_SECRET_SUITE 32 /* in it, the code of a cipher suite, big-endian */

struct rnic_qp_attr {
	void *ctx;         /* the engine's, kept in struct rnic_qp */
	uint32_t sq_depth; /* send queue: maximum of outstanding requests */
	uint32_t rq_depth; /* maximum of posted receives; sent to an iWARP peer as receive depth */
	uint64_t token;    /* iWARP: secret of the link group that the peer must present (0 elsewhere) */
	/* Keys of the connection to the peer come from this, RNIC_SECRET_LEN bytes, copied; NULL: in clear. A device
	 * without protected connections ignores it, see rnic_info.tls. */
	const uint8_t *secret;
};

struct rnic_qp {
	struct rnic_dev *dev;
	void *ctx;
	uint32_t qpn; /* 24 bits */
	uint32_t psn; /* 24 bits, random: the first PSN that we send */
};

/* The far end of a QP, as learned from CLC or ADD LINK. */
struct rnic_remote {
	struct rnic_gid gid;
	uint8_t mac[6];
	uint32_t qpn, psn;
	uint8_t mtu_code;  /* of the path */
	uint16_t mpa_port; /* iWARP, active side only */
};

enum rnic_side {
	RNIC_ACTIVE,  /* SMC client: opens the MPA connection or association; RoCE: RTR only, RTS by qp_rts */
	RNIC_PASSIVE, /* SMC server: RoCE: RTR and RTS */
};

enum { RNIC_SIGNALED = 1 << 0, RNIC_SOLICITED = 1 << 1, RNIC_INLINE = 1 << 2 };

enum rnic_wr_op { RNIC_WR_SEND, RNIC_WR_WRITE };

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
	RNIC_WC_FLUSHED,    /* QP went to error before the request completed */
	RNIC_WC_REMOTE_ERR, /* refused by the peer (access, no receive, ...) */
	RNIC_WC_LOCAL_ERR,
	RNIC_WC_RETRY_EXC, /* no answer from the peer */
};

enum rnic_wc_op { RNIC_WC_SEND, RNIC_WC_WRITE, RNIC_WC_RECV };

struct rnic_wc {
	uint64_t wr_id;
	struct rnic_qp *qp;
	enum rnic_wc_op op;
	enum rnic_wc_status status;
	uint32_t len; /* receives: bytes */
};

/* Pending events of one queue pair, and of the port, are reported in this order. */
enum rnic_event_type {
	RNIC_EV_CONNECTED,      /* qp is usable (RoCE passive: at once) */
	RNIC_EV_CONNECT_FAILED, /* qp is unusable */
	RNIC_EV_CREDITS,        /* an exhausted member of struct rnic_credits is available again */
	RNIC_EV_SILENT,         /* iWARP: no answer within the time limit, repeated after each; the qp continues */
	RNIC_EV_QP_ERROR,       /* a connected qp broke; flushed completions can be polled */
	RNIC_EV_QP_FREED,       /* a destroyed qp is freed */
	RNIC_EV_DEV_GONE,
	RNIC_EV_PORT_DOWN,
	RNIC_EV_PORT_UP,   /* after "down": the last event gives the current state */
	RNIC_EV_DEV_FREED, /* the device is freed */
	RNIC_EV_TROUBLE,   /* the device continues, but an operation failed; why gives the operator's remedy */
};

struct rnic_event {
	enum rnic_event_type type;
	struct rnic_qp *qp; /* NULL for port and device events; invalid with RNIC_EV_QP_FREED */
	void *ctx;          /* the qp's */
	const char *why;    /* static text for the operator, or NULL */
	bool silent; /* of CONNECT_FAILED and QP_ERROR: no answer from the peer, or the network drops everything */
};

/* Limits of posting on a QP now. */
struct rnic_credits {
	uint32_t wrs;   /* free send queue entries */
	uint32_t sends; /* Sends covered by the peer's receives (<= wrs) */
	size_t bytes;   /* payload bytes worth queueing now; more would only delay others */
};

/* Read depths sent by a peer at start-up (RFC 6581 9.1); -1 = none sent. */
struct rnic_depths {
	int ird; /* maximum of inbound requests */
	int ord; /* requested maximum of outbound requests */
};

/* A path of a queue pair's connection or association. TCP has one, SCTP one for each address of the peer. */
enum rnic_path_state {
	RNIC_PATH_UNKNOWN,
	RNIC_PATH_ACTIVE,
	RNIC_PATH_SUSPECT,     /* retransmitting, no answer so far */
	RNIC_PATH_INACTIVE,    /* failed, until the peer answers there */
	RNIC_PATH_UNCONFIRMED, /* unused: announced by the peer, no answer from there yet */
};

struct rnic_path {
	struct rnic_gid to; /* the peer's address */
	enum rnic_path_state state;
	bool primary; /* used for data */
	/* 0: unknown. Smoothed round trip; retransmission timeout; longest IP packet; bytes that may be in flight. */
	uint32_t rtt_us, rto_us, mtu, cwnd;
};

#define RNIC_FAR_NS 1000000 /* round trip from which a path holds more than is sent and received meanwhile */
#define RNIC_PATHS_MAX 8

struct rnic_conn_info {
	int64_t retransmits; /* packets since the start; -1: unknown */
	int64_t unacked;     /* packets in flight; -1: unknown */
	unsigned path_cnt;   /* 0: unknown, not connected */
	struct rnic_path paths[RNIC_PATHS_MAX];
};

struct rnic_stat {
	const char *name; /* static */
	uint64_t value;
};

#define RNIC_STATS_MAX 32

struct sockaddr_storage;

struct rnic_ops {
	/* Fills *info, including current use. */
	void (*query)(struct rnic_dev *, struct rnic_info *info);
	/* Counters, always in the same order, in stats[RNIC_STATS_MAX]; returns their number. NULL = no counters. */
	unsigned (*stats)(const struct rnic_dev *, struct rnic_stat *stats);
	/* The last peer that increased this counter, with port; false if unknown. NULL = always unknown. */
	bool (*last_refused)(const struct rnic_dev *, const char *counter, struct sockaddr_storage *from);

	/* All return 0 or a negative errno; outputs are set on success only. */
	int (*pd_alloc)(struct rnic_dev *, struct rnic_pd **);
	void (*pd_free)(struct rnic_pd *);
	int (*mr_reg)(struct rnic_pd *, void *buf, size_t len, unsigned access, struct rnic_mr **);
	void (*mr_dereg)(struct rnic_mr *);
	int (*qp_create)(struct rnic_pd *, const struct rnic_qp_attr *, struct rnic_qp **);
	/* Passive side, before our QPN and PSN go to the peer: accepts the peer from now on. */
	int (*qp_expect)(struct rnic_qp *);
	/* Asynchronous: ends with RNIC_EV_CONNECTED or RNIC_EV_CONNECT_FAILED. */
	int (*qp_connect)(struct rnic_qp *, enum rnic_side, const struct rnic_remote *);
	/* RoCE active side: to RTS, after the peer's CONFIRM LINK. A no-op elsewhere. */
	int (*qp_rts)(struct rnic_qp *);
	/* Breaks the connection now (iWARP: `graceful` sends all posted requests, then FIN; otherwise reset). Flushes
	 * outstanding requests; later input is not placed. No RNIC_EV_QP_ERROR follows. */
	void (*qp_disconnect)(struct rnic_qp *, bool graceful);
	/* Requests the end of the QP, and disconnects it if necessary. Drops its completions and events except
	 * RNIC_EV_QP_FREED. Domain and memory regions must stay until that event is polled. */
	void (*qp_destroy)(struct rnic_qp *);

	/* 0; -ENOBUFS without credits; -ENOTCONN not connected or broken; -EINVAL. Nothing is posted on failure. */
	int (*post_send)(struct rnic_qp *, const struct rnic_send_wr *);
	/* Posts all n or none. Allowed from creation on. */
	int (*post_recv)(struct rnic_qp *, const struct rnic_recv_wr *, unsigned n);
	void (*credits)(const struct rnic_qp *, struct rnic_credits *);
	/* Depths of the peer after an accept or reject. NULL = the device does not learn them. */
	struct rnic_depths (*peer_depths)(const struct rnic_qp *);
	/* Shortest known round trip in ns, or -1. From RNIC_FAR_NS on the path is long. NULL = not measured. */
	int64_t (*path_rtt)(struct rnic_qp *);
	/* Fills known members of *out, which is preset to "unknown", for the operator. NULL = unknown. */
	void (*conn_info)(struct rnic_qp *, struct rnic_conn_info *out);
	/* Called periodically: frees memory that an idle QP does not need. NULL = no such memory. */
	void (*rest)(struct rnic_qp *);
	/* Requests early completion of all posted requests: iWARP devices send a fence. */
	void (*fence)(struct rnic_qp *);

	/* Completions of all QPs of the device, at most max; returns their number. */
	unsigned (*poll)(struct rnic_dev *, struct rnic_wc *wc, unsigned max);
	/* The next event in *ev; false if none is pending. */
	bool (*poll_event)(struct rnic_dev *, struct rnic_event *ev);

	/* The route from this port to a peer's, as far as known without sending. A hint for the order of devices: a
	 * peer without route may be tried all the same. NULL = always direct. */
	enum rnic_reach (*reaches)(struct rnic_dev *, const struct rnic_gid *);

	/* For devices that use the event loop; each may be NULL. */

	/* End of a loop turn: transmits posted requests, one system call per link. */
	void (*flush)(struct rnic_dev *);
	/* Next time for progress(), or INT64_MAX. Now or earlier = unfinished work, completions or events. */
	int64_t (*deadline)(const struct rnic_dev *);
	void (*progress)(struct rnic_dev *, int64_t now_ns);
	/* Requests the end of the device, which accepts no new connections. All QPs must be destroyed before. When they
	 * are freed and PDs and MRs are freed, RNIC_EV_DEV_FREED follows, and polling it frees the device. */
	void (*free)(struct rnic_dev *);
};

/* Services of the event loop for a device: edge-triggered readiness of a file descriptor (read, write, hang-up at
 * once). The callback notes or reads only; it must not call the engine. rnic_dev.now_ns is set before. */
enum { RNIC_IO_READ = 1 << 0, RNIC_IO_WRITE = 1 << 1, RNIC_IO_HUP = 1 << 2 };

typedef void (*rnic_io_cb)(void *arg, unsigned events);

struct rnic_loop {
	void *ctx;
	/* 0 or -errno. Unwatch before close: no callback follows it. Allowed for an unwatched descriptor. */
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

/* qp may be NULL: all unknown. */
static inline struct rnic_conn_info
rnic_conn_info(struct rnic_qp *qp)
{
	struct rnic_conn_info info = { .retransmits = -1, .unacked = -1 };

	if (qp != NULL && qp->dev->ops->conn_info != NULL)
		qp->dev->ops->conn_info(qp, &info);
	return info;
}
