/*
 * The RNIC devices of a worker and the interfaces that they are on: opened as
 * configuration, interfaces and RDMA cards have it (device_plan.h), given to
 * the engine, fed with readiness by the loop, closed when their addresses or
 * cards are gone. Owned by the worker.
 */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/loop/env.h"
#include "daemon/net/listen_socket.h"
#include "rnic/verbs/verbs.h"

struct devices;

/* Decides who may open iWARP connections to soft iWARP devices, as in struct siw_config. */
struct devices_gate {
	bool (*may_connect)(void *ctx, const struct rnic_gid *from);
	void *ctx;
};

/* Reads the interfaces, opens the devices and adds them to env->eng: 0, or -errno, nothing left behind, err says why. A
 * missing address or card is a warning in err, and is waited for. cfg is kept until devices_reload or devices_free. */
int devices_new(struct env *, const struct config *cfg, const struct devices_gate *, FILE *err, struct devices **out);
/* In each turn, before smcr_poll: follows changes of interfaces, cards and devices. */
void devices_follow(struct devices *);
/* In each turn, behind smcr_poll: true when the engine has heard of a change from a device, so that devices_follow has to be
 * called again. */
bool devices_listen(struct devices *);
/* In each turn: logs what devices have counted that an operator should hear of, at most once a second. Returns when it is to
 * be called again. */
int64_t devices_log(struct devices *);
/* Opens the devices of a new configuration that are not there yet; err gets warnings. */
void devices_reload(struct devices *, const struct config *next, FILE *err);
/* Devices that did not open are tried again in the next turn, and cards looked for. Returns how many that is about: devices that did
 * not open, and entries of the configuration that no card serves. */
unsigned devices_retry(struct devices *);
/* Takes the devices from the engine, which frees them. */
void devices_close(struct devices *);
/* Closes them if need be; their descriptors are watched no longer. NULL is allowed. */
void devices_free(struct devices *);

/* Fills in what the engine wants to know of a middle with this local address: its networks, and the GID of the device that it
 * should use: one at this address, or a card on its interface; the address itself when there is none. */
void devices_describe(const struct devices *, const struct sockaddr_storage *local, struct smcr_open *);
/* Is the address in a network that a device of ours is in? */
bool devices_near(const struct devices *, const struct rnic_gid *);

/* Adds other descriptors of the sockets on which peers connect to soft devices over TCP. 0 or -errno. */
int devices_add_ports(const struct devices *, struct listen_socket_list *out);
/* Another process has this port: nobody connects to ours. */
void devices_drop_port(struct devices *, const struct sockaddr_storage *port);

struct device_info {
	struct rnic_info rnic;
	const char *interface;              /* of its address or GID; "" when there is none or it is not known */
	unsigned interface_mtu;             /* bytes; 0: not known */
	const struct siw_addrs *more_addrs; /* besides that of its GID; NULL: none */
	/* verbs only; otherwise NULL, unset and 0 */
	const struct verbs_port *card;
	struct verbs_gid gid; /* in use: type, index */
	/* of all kinds of devices */
	struct rnic_stat stats[RNIC_STATS_MAX];
	unsigned stat_cnt;
};

/* NULL and false behind the last. */
struct rnic_dev *devices_get(const struct devices *, unsigned i);
bool devices_info(const struct devices *, unsigned i, struct device_info *);
/* Has an interface of this host the address? */
bool devices_have_addr(const struct devices *, const struct sockaddr_storage *);
/* The name of an interface; "" when it is not known. */
const char *devices_interface(const struct devices *, unsigned index);
