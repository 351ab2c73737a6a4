/*
 * The interfaces of this machine and their addresses, as netlink messages tell
 * them: a table and the decoder that feeds it. No I/O: netwatch.c reads the
 * messages.
 */
#ifndef SMCRD_DAEMON_NETIFS_H
#define SMCRD_DAEMON_NETIFS_H

#include <linux/netlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct netif {
	unsigned index;
	char name[IF_NAMESIZE];
	bool up; /* may carry traffic: switched on, with carrier */
	bool loopback;
};

struct netif_addr {
	struct sockaddr_storage addr; /* port 0; scope of a link-local IPv6 address set */
	unsigned index;               /* of its interface */
	bool usable;                  /* not still being checked for duplicates, nor found to be one */
	bool lasting;                 /* for a device: neither link-local nor a temporary address */
};

/* Owner: whoever embeds it. Both lists are in the order in which the kernel told them. */
struct netifs {
	struct netif *ifs;
	unsigned if_cnt;
	struct netif_addr *addrs;
	unsigned addr_cnt;
};

void netifs_init(struct netifs *);
void netifs_fini(struct netifs *);

/* Takes over what the message says; others than of links and addresses are ignored. 1 when the table is another
 * now, 0 when not, -ENOMEM. The message is whole: nlmsg_len bytes. */
int netifs_apply(struct netifs *, const struct nlmsghdr *);

/* NULL when there is none. */
const struct netif *netifs_by_index(const struct netifs *, unsigned index);
const struct netif_addr *netifs_find(const struct netifs *, const struct sockaddr_storage *addr);

#endif
