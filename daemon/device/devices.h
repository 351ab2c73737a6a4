/* The RNIC devices of a worker and their interfaces. Opened by the plan (device_plan.h), added to the engine, driven
 * by the loop, closed when their addresses or cards are gone. Owned by the worker. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/loop/env.h"
#include "daemon/net/listen_socket.h"
#include "rnic/verbs/verbs.h"

struct devices;

/* Decides which peers may open iWARP connections to soft iWARP devices, as in struct siw_config. */
struct devices_gate {
	bool (*may_connect)(void *ctx, const struct rnic_gid *from);
	void *ctx;
};

/* Reads the interfaces, opens the devices and adds them to env->eng: 0, or -errno with everything undone and the
 * reason in err. A missing address or card is a warning and waited for. cfg stays until devices_reload or _free. */
int devices_new(struct env *, const struct config *cfg, const struct devices_gate *, FILE *err, struct devices **out);
/* In each turn, before smcr_poll: follows changes of interfaces, cards and devices. */
void devices_follow(struct devices *);
/* In each turn, after smcr_poll: true when a device reported a change, and devices_follow has to be called again. */
bool devices_listen(struct devices *);
/* In each turn: logs the watched counters of devices, at most once a second. Returns the time of the next call. */
int64_t devices_log(struct devices *);
/* Opens the new devices of a configuration; err gets warnings. */
void devices_reload(struct devices *, const struct config *next, FILE *err);
/* In the next turn, opens failed devices again and lists the cards. Returns how many that concerns: devices that did
 * not open, and entries without a card. */
unsigned devices_retry(struct devices *);
/* Removes the devices from the engine, which frees them. */
void devices_close(struct devices *);
/* Closes them if needed and ends the watches of their descriptors. NULL is allowed. */
void devices_free(struct devices *);

/* Fills in the engine's data about a CLC connection with this local address: its networks, and the GID of the device
 * to use. That is one at this address, or a card on its interface; otherwise the address itself. */
void devices_describe(const struct devices *, const struct sockaddr_storage *local, struct smcr_open *);
/* Is the address in a network of one of the devices? */
bool devices_near(const struct devices *, const struct rnic_gid *);

/* Adds other descriptors of the sockets on which peers connect to soft iWARP devices over TCP. 0 or -errno. */
int devices_add_ports(const struct devices *, struct listen_socket_list *out);
/* Another process has this port: connections no longer arrive at ours. */
void devices_drop_port(struct devices *, const struct sockaddr_storage *port);

struct device_info {
	struct rnic_info rnic;
	const char *interface;              /* of its address or GID; "" when missing or unknown */
	unsigned interface_mtu;             /* bytes; 0: unknown */
	const struct siw_addrs *more_addrs; /* besides that of its GID; NULL: no more */
	/* verbs only; otherwise NULL, unset and 0 */
	const struct verbs_port *card;
	struct verbs_gid gid; /* the used one: type, index */
	/* of all kinds of devices */
	struct rnic_stat stats[RNIC_STATS_MAX];
	unsigned stat_cnt;
};

/* NULL and false after the last. */
struct rnic_dev *devices_get(const struct devices *, unsigned i);
bool devices_info(const struct devices *, unsigned i, struct device_info *);
/* Has an interface of this host the address? */
bool devices_have_addr(const struct devices *, const struct sockaddr_storage *);
/* The name of an interface; "" when unknown. */
const char *devices_interface(const struct devices *, unsigned index);
