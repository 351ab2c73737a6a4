/*
 * Which network a local address belongs to, for the subnet check of RFC 7609
 * 3.5.1.2: a copy of the interfaces' addresses, read at start, on reload and when
 * interfaces change.
 */
#ifndef SMCRD_DAEMON_SUBNET_H
#define SMCRD_DAEMON_SUBNET_H

#include <sys/socket.h>

#include "smcr/smcr.h"

struct subnet_if;

struct subnets {
	struct subnet_if *ifs;
	unsigned cnt;
};

void subnets_init(struct subnets *);
void subnets_fini(struct subnets *);
/* Reads the interfaces anew: 0, or -errno and the old copy stays. */
int subnets_refresh(struct subnets *);
/* The prefix of the local address, and with IPv6 the others of its interface: how many were written. */
unsigned subnets_of(
    const struct subnets *, const struct sockaddr_storage *local, struct smcr_subnet out[SMCR_PREFIXES_MAX]);

/* Those of all interfaces: how many were written. */
unsigned subnets_all(const struct subnets *, struct smcr_subnet out[SMCR_NETWORKS_MAX]);

/* Is the other address in one of the networks that subnets_of() finds for the local one? Both are IPv6, or IPv4 mapped. */
bool subnets_near(const struct subnets *, const uint8_t local[16], const uint8_t other[16]);

#endif
