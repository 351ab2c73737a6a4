/* The wanted RNIC devices: the entries of the configuration matched with the present interfaces, addresses and ports
 * of RDMA cards, and their text forms. Pure, except for the list of cards, which is read only when the configuration
 * has an entry of type "verbs". devices.c applies the plan, device_preview.c prints it. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/device/netifs.h"
#include "rnic/verbs/verbs.h"

/* The last list of card ports, and the reason of a failure. Embedded in its owner; all zero: never listed. */
struct device_cards {
	struct verbs_port *ports;
	unsigned cnt;
	int rc;          /* of the list: 0 or -errno */
	const char *why; /* reason of a failure; static */
	int64_t at_ns;
	bool listed;
};

/* Lists them again, which invalidates pointers into the old list. */
void device_cards_list(struct device_cards *, int64_t now_ns);
/* Frees the list; the state is then "never listed". */
void device_cards_forget(struct device_cards *);

enum device_place {
	DEVICE_PLACE_UNKNOWN, /* no interface has this address; it may still be local (127.0.0.2) */
	DEVICE_PLACE_DOWN,    /* the interface or port is down, or the address is not usable yet */
	DEVICE_PLACE_UP,
};

struct device_want {
	const struct config_device *cfg;
	struct sockaddr_storage addr;  /* soft iWARP */
	const struct verbs_port *port; /* verbs, with its GID; NULL otherwise */
	const struct verbs_gid *gid;
	char base[RNIC_NAME_MAX]; /* its name, if that is free */
	enum device_place place;
	bool open; /* open it now; false: only keep it if it is open */
};

#define DEVICE_WANTS_MAX 64
/* For the present interfaces (NULL: unknown) and cards: writes up to max rows, each address or GID once, and returns
 * their number. Rows point into cfg and cards. The order is: entries with an address, with an interface, with a card,
 * with all; within each, verbs before soft iWARP. With services for hosts that have AF_SMC a port may have a second
 * row, with a RoCE v1 GID. */
unsigned device_plan(
    const struct config *, const struct netifs *, const struct device_cards *, struct device_want *out, unsigned max);
/* Does the plan open a device for the entry? */
bool device_plan_serves(const struct config_device *, const struct device_want *, unsigned cnt);

/* Why an entry of type verbs has no device although cards could be listed: static text. */
const char *device_plan_why_not(const struct config_device *, const struct netifs *, const struct device_cards *);

#define DEVICE_WHERE_MAX 160
/* The place of a device, each fact as name, sep and value: "card=mlx5_0/1 gid=... type=...", "address=192.0.2.1"; with
 * sep " " the address only for soft iWARP. Both return buf. */
char *device_where(const struct device_want *, const char *sep, char *buf, size_t cap);
/* What an entry names: device "mlx5_0", interface "eth0", address 192.0.2.1. */
char *device_entry_name(const struct config_device *, char *buf, size_t cap);

/* "RoCE v2" */
const char *device_gid_type_str(enum rnic_gid_type);
#define DEVICE_GID_MAX 48
/* As an IPv6 address, like in smcrctl; returns buf. */
char *device_gid_format(const struct rnic_gid *, char buf[DEVICE_GID_MAX]);
