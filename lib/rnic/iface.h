/* The network interface of a device: its properties, and the peers reachable through it according to the kernel's
 * routes. Sends nothing. Internal to lib/rnic. */
#pragma once

#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"

struct iface {
	unsigned index; /* 0: none or unknown */
	bool loopback;
	uint8_t mac[6];
	uint16_t vlan;
	uint8_t mtu_code; /* as in struct rnic_info */
	uint32_t mtu;     /* bytes */
};

/* The index of the interface with this address, or 0. */
unsigned iface_of(const struct sockaddr_storage *addr);
/* Reads the properties of interface `index`. An existing MAC is kept, because peers know the device by it. If the
 * interface has no MAC, a random one is made. */
void iface_learn(struct iface *, unsigned index, struct rng *);

/* The peer's address in the family and scope of ours: 0, or -EAFNOSUPPORT if its family differs. */
int iface_remote(
    const struct sockaddr_storage *ours, const struct rnic_gid *, uint16_t port, struct sockaddr_storage *out);
/* Looks up the route from our address `from` to `to` (with its scope), through our interface (0: any) or to this host.
 * Does not block. RNIC_REACH_DIRECT if the kernel cannot be queried. */
enum rnic_reach iface_reach(const struct sockaddr_storage *from, unsigned index, const struct sockaddr_storage *to);
