/*
 * The network interface that a device is on: what it is, and which peers are
 * reached by it, by the kernel's word. Sends nothing. Internal to lib/rnic.
 */
#pragma once

#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"

struct iface {
	unsigned index; /* 0: none, or not known */
	bool loopback;
	uint8_t mac[6];
	uint16_t vlan;
	uint8_t mtu_code; /* as in struct rnic_info */
	uint32_t mtu;     /* bytes */
};

/* The index of the interface that has this address, 0: none. */
unsigned iface_of(const struct sockaddr_storage *addr);
/* Reads all about the interface `index`. The MAC stays what it is when there is one already, because peers know the device
 * by it; one of our own making where the interface has none. */
void iface_learn(struct iface *, unsigned index, struct rng *);

/* The peer's address in the family, and with the scope, of ours: 0, or -EAFNOSUPPORT when it has another family. */
int iface_remote(
    const struct sockaddr_storage *ours, const struct rnic_gid *, uint16_t port, struct sockaddr_storage *out);
/*
 * The route from our address `from` to `to` (with its scope), when it leads out of our own interface (0: any), or to this
 * machine. The kernel answers at once. RNIC_REACH_DIRECT when it cannot be asked.
 */
enum rnic_reach iface_reach(const struct sockaddr_storage *from, unsigned index, const struct sockaddr_storage *to);
