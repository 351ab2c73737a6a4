/*
 * The interfaces of this machine, their addresses and networks: a table and the
 * decoder of netlink messages that feeds it. No I/O: netwatch.c reads the
 * messages.
 */
#pragma once

#include <linux/netlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "smcr/smcr.h"

struct netif {
	unsigned index;
	unsigned mtu; /* 0: not known */
	char name[IF_NAMESIZE];
	bool enabled; /* switched on, with or without carrier */
	bool up;      /* may carry traffic: switched on, with carrier */
	bool loopback;
};

struct netif_addr {
	struct sockaddr_storage addr; /* port 0; scope of a link-local IPv6 address set */
	unsigned index;               /* of its interface */
	uint8_t prefix_len;           /* of its network */
	bool usable;                  /* not still being checked for duplicates, nor found to be one */
	bool lasting;                 /* for a device: neither link-local nor a temporary address */
};

/* Embedded in its owner, all zero at first. Both lists are in the order of the kernel's messages. */
struct netifs {
	struct netif *ifs;
	unsigned if_cnt;
	struct netif_addr *addrs;
	unsigned addr_cnt;
};

void netifs_fini(struct netifs *);

/* Applies a message; others than of links and addresses are ignored. 1 when the table has changed, 0 when not, -ENOMEM. The
 * message is whole: nlmsg_len bytes. */
int netifs_apply(struct netifs *, const struct nlmsghdr *);

/* NULL when there is none. */
const struct netif *netifs_by_index(const struct netifs *, unsigned index);
const struct netif *netifs_by_name(const struct netifs *, const char *name);
const struct netif_addr *netifs_find(const struct netifs *, const struct sockaddr_storage *addr);

/* The networks of all interfaces that are switched on; returns the number written. */
unsigned netifs_networks(const struct netifs *, struct smcr_subnet out[SMCR_NETWORKS_MAX]);
/* The network of a local address, and with IPv6 the others of its interface (RFC 7609 3.5.1.2, A.2.2); returns the number
 * written, 0 when no interface that is switched on has the address. */
unsigned netifs_networks_of(
    const struct netifs *, const struct sockaddr_storage *local, struct smcr_subnet out[SMCR_PREFIXES_MAX]);
/* Is the other address in one of the networks that netifs_networks_of() finds for the local one? Both are IPv6, or IPv4
 * mapped. */
bool netifs_near(const struct netifs *, const uint8_t local[16], const uint8_t other[16]);
