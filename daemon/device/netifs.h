/* The interfaces of this host, their addresses and networks: a table filled from netlink messages, without I/O. */
#pragma once

#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "smcr/smcr.h"

struct netif {
	unsigned index;
	unsigned mtu; /* 0: unknown */
	char name[IF_NAMESIZE];
	bool enabled; /* enabled, with or without carrier */
	bool up;      /* may carry traffic: enabled, with carrier */
	bool loopback;
};

struct netif_addr {
	struct sockaddr_storage addr; /* port 0; scope of a link-local IPv6 address set */
	unsigned index;               /* of its interface */
	uint8_t prefix_len;           /* of its network */
	bool usable;                  /* neither tentative nor a duplicate */
	bool lasting;                 /* suitable for a device: neither link-local nor temporary */
};

/* Embedded in its owner, initially zero. Both lists are in the order of the kernel's messages. */
struct netifs {
	struct netif *ifs;
	unsigned if_cnt;
	struct netif_addr *addrs;
	unsigned addr_cnt;
};

void netifs_fini(struct netifs *);

/* Applies a complete message; ignores all but links and addresses. 1: the table has changed; 0: not; -ENOMEM. */
int netifs_apply(struct netifs *, const struct nlmsghdr *);

/* NULL: not found, or no table. */
const struct netif *netifs_by_index(const struct netifs *, unsigned index);
const struct netif *netifs_by_name(const struct netifs *, const char *name);
const struct netif_addr *netifs_find(const struct netifs *, const struct sockaddr_storage *addr);

/* The networks of all enabled interfaces; returns the number written. */
unsigned netifs_networks(const struct netifs *, struct smcr_subnet out[SMCR_NETWORKS_MAX]);
/* The network of a local address, and for IPv6 the others of its interface (RFC 7609 3.5.1.2, A.2.2). Returns the
 * number written, 0 when no enabled interface has the address. */
unsigned netifs_networks_of(
    const struct netifs *, const struct sockaddr_storage *local, struct smcr_subnet out[SMCR_PREFIXES_MAX]);
/* Is the other address in a network that netifs_networks_of() finds for the local one? IPv6 or IPv4-mapped. */
bool netifs_near(const struct netifs *, const uint8_t local[16], const uint8_t other[16]);
