/* The verbs device: RDMA cards and the kernel's rdma_rxe through libibverbs: RoCE, and iWARP with librdmacm. Implements
 * rnic.h. A device is one port of a card with one of its GIDs. If verbs_list() fails, it gives the reason; other
 * functions must not be called then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"

#define VERBS_DEV_NAME_MAX 64 /* of a card: IBV_SYSFS_NAME_MAX */
#define VERBS_GIDS_MAX 64     /* maximum read per port */

struct verbs_gid {
	struct rnic_gid gid;
	enum rnic_gid_type type; /* never RNIC_GID_NONE: the GID table has the MAC of an iWARP card as RNIC_GID_IB */
	uint32_t index;          /* in the port's GID table */
	unsigned ifindex;        /* network interface, may be a VLAN; 0: none */
};

struct verbs_port {
	char dev[VERBS_DEV_NAME_MAX];
	char provider[RNIC_NAME_MAX]; /* "rxe", "mlx5", ... */
	bool retries_forever;         /* struct rnic_info */
	uint8_t port;                 /* from 1 */
	enum rnic_transport transport;
	enum rnic_port_state state;
	uint8_t mtu_code; /* active MTU, as in struct rnic_info */
	bool infiniband;  /* the link layer is not Ethernet */
	unsigned ifindex; /* of the port; 0: none */
	unsigned gid_cnt;
	struct verbs_gid gids[VERBS_GIDS_MAX];
};

/* All ports of all cards, including ports that are down. The caller frees *ports. 0 with *cnt > 0, or a negative errno
 * with *why, a static text for the operator: -ENODEV no card, -ENOSYS no kernel support, -EACCES no permission for the
 * device files. A card that cannot be opened is skipped if another can. */
int verbs_list(struct verbs_port **ports, unsigned *cnt, const char **why);

/* True if the kernel lists the card, or if unknown; does not open it. Software cards report their removal in no other
 * way, and the removal waits for their last user. */
bool verbs_card_listed(const char *dev);

/* Selects a GID: of this type (RNIC_GID_NONE: any), that of addr (NULL: any), on the interface (0: any). RoCE v2 before
 * v1, IPv4 before global IPv6 before link-local, then the lowest index. NULL if none matches. */
const struct verbs_gid *verbs_choose_gid(
    const struct verbs_port *, enum rnic_gid_type, const struct sockaddr_storage *addr, unsigned ifindex);

struct verbs_config {
	char name[RNIC_NAME_MAX]; /* device name in smcrd */
	char dev[VERBS_DEV_NAME_MAX];
	uint8_t port;
	struct rnic_gid gid;
	enum rnic_gid_type gid_type;
	enum rnic_protection protection;
	/* IP address of an iWARP card, without port, instead of a GID; AF_UNSPEC: the first of its interface. */
	struct sockaddr_storage addr;
	/* QP attributes (values of Linux's SMC-R in brackets) */
	uint8_t traffic_class; /* [0] */
	uint8_t service_level; /* [0] 0..15 */
	uint8_t hop_limit;     /* [1; 64 if routed] 1..; 1 with a RoCE v1 GID */
	uint8_t timeout;       /* [15] ACK timeout: 4.096 us x 2^timeout, 1..31 */
	uint8_t retry_cnt;     /* [7, unlimited on rxe] 0..6 */
	uint8_t min_rnr_timer; /* [5] 0..31 */
	/* iWARP cards, as in struct siw_config */
	uint16_t mpa_port_min, mpa_port_max;
	uint32_t connect_ms, answer_ms, fence_ms;
	uint32_t busy_poll_us; /* polls for this time after the last completion before it sleeps; 0: never */
	uint32_t max_qp;       /* our limit; that of the card applies as well */
};

/* Defaults for all members except dev and gid; port 1, RoCE v2. */
void verbs_config_init(struct verbs_config *);

/* Opens the port. Randomness from rng (kept, not owned), readiness from loop (copied). 0, or a negative errno with
 * *why, a static text that names the fault; for -ENOMEM caused by RLIMIT_MEMLOCK it names that limit. */
int verbs_open(const struct verbs_config *, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **why);

/* The GID is still in the table. The device finds it under a new index; absent = port down. */
bool verbs_gid_present(const struct rnic_dev *);

/* For `smcrctl devices`: port and GIDs as last read (at open, and at each GID change). */
const struct verbs_port *verbs_port_of(const struct rnic_dev *);

/* Counters of rnic_ops.stats. */
struct verbs_stats {
	uint64_t sends_posted, writes_posted, doorbells; /* requests; calls that post them */
	uint64_t completions, polls, wakeups;
	uint64_t rnr_retry_exc, retry_exc, remote_access_errs, flushed, other_errs; /* completions by status */
	uint64_t async_events;
	/* iWARP */
	uint64_t reads_sent;         /* fences */
	uint64_t mpa_refused_token;  /* unknown peer, used token, token of another link */
	uint64_t mpa_refused_parked; /* not claimed in time, or too many parked */
};
