/*
 * The RNIC devices of a worker: opened as configuration, interfaces and RDMA
 * cards have it (device_plan.h), given to the engine, fed with readiness by the
 * loop, told when their ports go down and up (soft iWARP), closed when their
 * addresses or cards are gone.
 */
#ifndef SMCRD_DAEMON_DEVICES_H
#define SMCRD_DAEMON_DEVICES_H

#include <stdio.h>

#include "daemon/worker/worker_priv.h"

/* Opens the devices and adds them to w->eng: 0, or -errno, nothing left behind, err says which one. An address or card that
 * is not there is told as a warning, and waited for. cfg is kept until devices_reload or devices_close. */
int devices_open(struct worker *, const struct config *, FILE *err);
/* In each turn, before smcr_poll: what the interfaces' and cards' news mean for the devices. True when there are
 * any of interfaces. */
bool devices_follow(struct worker *);
/* In each turn, behind smcr_poll: what devices have told the engine. True when devices_follow has to be called for it. */
bool devices_listen(struct worker *);
/* In each turn: logs what devices have counted that an operator should hear of, at most once a second. When it wants to be
 * called again. */
int64_t devices_log(struct worker *);
/* The devices of a new configuration that are not there yet are opened; err gets warnings. */
void devices_reload(struct worker *, const struct config *next, FILE *err);
/* Takes them from the engine and frees them. */
void devices_close(struct worker *);
/* The GID of the device that connections of this local address should use: one at this address, or a card on its
 * interface; the address itself when there is none. */
void devices_gid_at(const struct worker *, const struct sockaddr_storage *local, struct rnic_gid *);
struct rnic_dev *devices_get(const struct worker *, unsigned i);
/* Is the address in a network that a device of ours is in? */
bool devices_near(const struct worker *, const struct rnic_gid *);
/* The name of an interface; "" when it is not known. */
const char *devices_interface(const struct worker *, unsigned index);
bool devices_info(const struct worker *, unsigned i, struct device_info *);

#endif
