/*
 * The verbs device: RDMA cards, and the kernel's rdma_rxe, through libibverbs:
 * RoCE and InfiniBand; iWARP cards with librdmacm. Implements rnic.h. One
 * device is one port of a card, seen under one of its GIDs.
 *
 * Without a card, a provider library or permission, verbs_list says so; nothing
 * else here is called then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"

#define VERBS_DEV_NAME_MAX 64 /* of a card: IBV_SYSFS_NAME_MAX */
#define VERBS_GIDS_MAX 64     /* looked at, per port */

struct verbs_gid {
	struct rnic_gid gid;
	enum rnic_gid_type type; /* never RNIC_GID_NONE: the table has the MAC of an iWARP card as RNIC_GID_IB */
	uint32_t index;          /* in the port's GID table */
	unsigned ifindex;        /* its network interface, which may be a VLAN; 0: none */
};

struct verbs_port {
	char dev[VERBS_DEV_NAME_MAX];
	char provider[RNIC_NAME_MAX]; /* "rxe", "mlx5", ... */
	bool retries_forever;         /* struct rnic_info */
	uint8_t port;                 /* from 1 */
	enum rnic_transport transport;
	enum rnic_port_state state;
	uint8_t mtu_code; /* active MTU, as in struct rnic_info */
	bool infiniband;  /* its link layer, so not Ethernet */
	unsigned ifindex; /* of the port itself; 0: none */
	unsigned gid_cnt;
	struct verbs_gid gids[VERBS_GIDS_MAX];
};

/*
 * All ports of all cards there are, down ones too. *ports is the caller's, by free().
 * 0 with *cnt > 0, or a negative errno with *why a static text for the operator: -ENODEV no card, -ENOSYS no kernel support,
 * -EACCES the device files are not ours to open. A card that cannot be opened is left out when others can.
 */
int verbs_list(struct verbs_port **ports, unsigned *cnt, const char **why);

/*
 * Does the kernel still offer the card? Opens nothing. Software cards have no other way to say that they are being
 * removed, and wait until their last user has let go. True when that is not known.
 */
bool verbs_card_listed(const char *dev);

/*
 * The GID to use: the one of addr (NULL: any), on the interface (0: any). RoCE v2 before v1, IPv4 before global IPv6
 * before link-local, then the lowest index. NULL when there is none.
 */
const struct verbs_gid *verbs_choose_gid(
    const struct verbs_port *, const struct sockaddr_storage *addr, unsigned ifindex);

struct verbs_config {
	char name[RNIC_NAME_MAX]; /* of the device in smcrd */
	char dev[VERBS_DEV_NAME_MAX];
	uint8_t port;
	struct rnic_gid gid;
	enum rnic_gid_type gid_type;
	/* An iWARP card is reached by an IP address: this one (its port is ignored), or the first of its interface when the
	 * family is AF_UNSPEC. It is the device's GID; gid and gid_type are not looked at. */
	struct sockaddr_storage addr;
	/* QP attributes (Linux's SMC-R in brackets) */
	uint8_t traffic_class; /* [0] */
	uint8_t service_level; /* [0] 0..15 */
	uint8_t hop_limit;     /* [1; 64 when routed] 1..; with a RoCE v1 GID it is 1 */
	uint8_t timeout;       /* [15] of a packet's acknowledgement: 4.096 us x 2^timeout, 1..31 */
	uint8_t retry_cnt;     /* [7, which rxe takes as unlimited] 0..6 */
	uint8_t min_rnr_timer; /* [5] 0..31 */
	/* iWARP cards, as in struct siw_config */
	uint16_t mpa_port_min, mpa_port_max;
	uint32_t connect_ms;
	uint32_t answer_ms;
	uint32_t fence_ms;
	uint32_t busy_poll_us; /* polls for so long after the last completion before it sleeps; 0: never */
	uint32_t max_qp;       /* ours, at most; the card's limit counts, too */
};

/* Defaults for everything but dev and gid; port 1, RoCE v2. */
void verbs_config_init(struct verbs_config *);

/*
 * Opens the port. Randomness from rng (kept, not owned), readiness from loop (copied).
 * 0, or a negative errno with *why a static text that names what is at fault; -ENOMEM because of RLIMIT_MEMLOCK says
 * that limit.
 */
int verbs_open(const struct verbs_config *, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **why);

/* Does its GID still stand in the table? The device finds it again under another index; gone = port down. */
bool verbs_gid_present(const struct rnic_dev *);

/* For `smcrctl devices`: the port and its GIDs as they were read last (at open, and at each GID change). */
const struct verbs_port *verbs_port_of(const struct rnic_dev *);

/* Counters, as rnic_ops.stats has them. */
struct verbs_stats {
	uint64_t sends_posted, writes_posted, doorbells; /* requests; calls that posted them */
	uint64_t completions, polls, wakeups;
	uint64_t rnr_retry_exc, retry_exc, remote_access_errs, flushed, other_errs; /* completions by status */
	uint64_t async_events;
	/* iWARP */
	uint64_t reads_sent;         /* fences */
	uint64_t mpa_refused_token;  /* stranger, used token, token for another link */
	uint64_t mpa_refused_parked; /* came early and was not claimed in time, or no place */
};
