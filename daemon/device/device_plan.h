/*
 * Which RNIC devices there should be: the configuration's entries laid over the interfaces, addresses and ports of RDMA
 * cards that there are, and the words for all of them. Pure but for the list of cards, which is asked for only when the
 * configuration has an entry of type "verbs". devices.c carries the plan out, device_preview.c prints it.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/device/netifs.h"
#include "rnic/verbs/verbs.h"

/* The ports of cards as they were listed last, and why there are none. Embedded in its owner; all zero: never listed. */
struct device_cards {
	struct verbs_port *ports;
	unsigned cnt;
	int rc;          /* of the list: 0 or -errno */
	const char *why; /* when it failed; static */
	int64_t at_ns;
	bool listed;
};

/* Lists them anew; pointers into the old list are invalid then. */
void device_cards_list(struct device_cards *, int64_t now_ns);
/* Frees the list: nothing is known. */
void device_cards_forget(struct device_cards *);

enum device_place {
	DEVICE_PLACE_UNKNOWN, /* no interface has this address; it may be local all the same (127.0.0.2) */
	DEVICE_PLACE_DOWN,    /* the interface or port is down, or the address not usable yet */
	DEVICE_PLACE_UP,
};

struct device_want {
	const struct config_device *cfg;
	struct sockaddr_storage addr;  /* soft iWARP */
	const struct verbs_port *port; /* verbs, with the GID to use; NULL otherwise */
	const struct verbs_gid *gid;
	char base[RNIC_NAME_MAX]; /* its name, unless that is taken */
	enum device_place place;
	bool open; /* worth opening now; false: to be kept when it is there */
};

/* Interfaces and ports that there are. */
struct device_view {
	const struct netifs *ifs; /* NULL: not known */
	const struct verbs_port *ports;
	unsigned port_cnt;
};

#define DEVICE_WANTS_MAX 64
/* Writes up to max rows, each address or GID once, and returns the number. They point into cfg and the view. Entries with an
 * address come first, then those that name an interface, then a card, then all of them; of each kind verbs before soft iWARP.
 * With services for hosts that have AF_SMC a port may stand there twice, the second time under a RoCE v1 GID. */
unsigned device_plan(const struct config *cfg, const struct device_view *, struct device_want *out, unsigned max);
/* Has the plan a device to open for the entry? */
bool device_plan_serves(const struct config_device *, const struct device_want *, unsigned cnt);

/* Does the file ask for cards? */
bool device_plan_has_verbs(const struct config *cfg);
/* Why an entry of type verbs has no device though cards could be listed: static text. */
const char *device_plan_why_not(const struct config_device *, const struct device_view *);

#define DEVICE_WHERE_MAX 160
/* Where a device is, each fact as name, sep and value: "card=mlx5_0/1 gid=... type=...", "address=192.0.2.1"; of soft
 * iWARP with sep " " the address alone. Both return buf. */
char *device_where(const struct device_want *, const char *sep, char *buf, size_t cap);
/* What an entry names: device "mlx5_0", interface "eth0", address 192.0.2.1. */
char *device_entry_name(const struct config_device *, char *buf, size_t cap);

/* "RoCE v2" */
const char *device_gid_type_str(enum rnic_gid_type);
#define DEVICE_GID_MAX 48
/* As an IPv6 address, like smcrctl; returns buf. */
char *device_gid_format(const struct rnic_gid *, char buf[DEVICE_GID_MAX]);
