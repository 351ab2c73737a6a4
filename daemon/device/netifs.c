/* Interfaces and addresses from netlink messages; see netifs.h. */
#include "daemon/device/netifs.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

void
netifs_fini(struct netifs *n)
{
	free(n->ifs);
	free(n->addrs);
	*n = (struct netifs){ 0 };
}

const struct netif *
netifs_by_index(const struct netifs *n, unsigned index)
{
	for (unsigned i = 0; n != NULL && i < n->if_cnt; i++)
		if (n->ifs[i].index == index)
			return &n->ifs[i];
	return NULL;
}

const struct netif *
netifs_by_name(const struct netifs *n, const char *name)
{
	for (unsigned i = 0; n != NULL && i < n->if_cnt; i++)
		if (strcmp(n->ifs[i].name, name) == 0)
			return &n->ifs[i];
	return NULL;
}

const struct netif_addr *
netifs_find(const struct netifs *n, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; n != NULL && i < n->addr_cnt; i++)
		if (addr_same_host(&n->addrs[i].addr, addr))
			return &n->addrs[i];
	return NULL;
}

#define V4_IN_V6 12 /* offset of the IPv4 address in a mapped one */

static struct smcr_subnet
network_of(const struct netif_addr *a)
{
	struct smcr_subnet net = { .v6 = a->addr.ss_family == AF_INET6, .prefix_len = a->prefix_len };
	uint8_t b[16];

	addr_to_v6(&a->addr, b);
	for (unsigned bit = 0; bit < a->prefix_len; bit++)
		net.addr[bit / 8] |= b[(net.v6 ? 0 : V4_IN_V6) + bit / 8] & (0x80 >> bit % 8);
	return net;
}

static bool
is_enabled(const struct netifs *n, const struct netif_addr *a)
{
	const struct netif *i = netifs_by_index(n, a->index);

	return i != NULL && i->enabled;
}

unsigned
netifs_networks(const struct netifs *n, struct smcr_subnet out[SMCR_NETWORKS_MAX])
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < n->addr_cnt && cnt < SMCR_NETWORKS_MAX; i++)
		if (is_enabled(n, &n->addrs[i]))
			out[cnt++] = network_of(&n->addrs[i]);
	return cnt;
}

unsigned
netifs_networks_of(
    const struct netifs *n, const struct sockaddr_storage *local, struct smcr_subnet out[SMCR_PREFIXES_MAX])
{
	const struct netif_addr *home = NULL;
	unsigned cnt = 0;

	for (unsigned i = 0; i < n->addr_cnt && home == NULL; i++)
		if (addr_same_host(&n->addrs[i].addr, local) && is_enabled(n, &n->addrs[i]))
			home = &n->addrs[i];
	if (home == NULL)
		return 0;
	out[cnt++] = network_of(home);
	/* RFC 7609 A.2.2: one IPv4 subnet, or the IPv6 prefixes of the interface. */
	for (unsigned i = 0; local->ss_family == AF_INET6 && i < n->addr_cnt && cnt < SMCR_PREFIXES_MAX; i++)
		if (&n->addrs[i] != home && n->addrs[i].addr.ss_family == AF_INET6 && n->addrs[i].index == home->index)
			out[cnt++] = network_of(&n->addrs[i]);
	return cnt;
}

bool
netifs_near(const struct netifs *n, const uint8_t local[16], const uint8_t other[16])
{
	struct smcr_subnet nets[SMCR_PREFIXES_MAX];
	struct sockaddr_storage from, to;

	addr_from_v6(local, 0, &from);
	addr_from_v6(other, 0, &to);
	bool v6 = to.ss_family == AF_INET6;
	for (unsigned i = netifs_networks_of(n, &from, nets); i-- > 0;)
		if (nets[i].v6 == v6 && nets[i].prefix_len > 0 &&
		    addr_same_prefix(nets[i].addr, other + (v6 ? 0 : V4_IN_V6), nets[i].prefix_len))
			return true;
	return false;
}

/* -- changes of the table -- */

static int
put_if(struct netifs *n, const struct netif *is)
{
	for (unsigned i = 0; i < n->if_cnt; i++) {
		struct netif *was = &n->ifs[i];

		if (was->index != is->index)
			continue;
		if (strcmp(was->name, is->name) == 0 && was->enabled == is->enabled && was->up == is->up &&
		    was->loopback == is->loopback)
			return 0;
		*was = *is;
		return 1;
	}
	struct netif *list = realloc(n->ifs, (n->if_cnt + 1) * sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	n->ifs = list;
	n->ifs[n->if_cnt++] = *is;
	return 1;
}

/* With its addresses, for which the kernel may send no messages. */
static int
drop_if(struct netifs *n, unsigned index)
{
	for (unsigned i = n->addr_cnt; i-- > 0;)
		if (n->addrs[i].index == index)
			memmove(&n->addrs[i], &n->addrs[i + 1], (--n->addr_cnt - i) * sizeof(*n->addrs));
	for (unsigned i = 0; i < n->if_cnt; i++) {
		if (n->ifs[i].index != index)
			continue;
		memmove(&n->ifs[i], &n->ifs[i + 1], (--n->if_cnt - i) * sizeof(*n->ifs));
		return 1;
	}
	return 0;
}

static bool
netifs_same_place(const struct netif_addr *a, const struct netif_addr *b)
{
	return a->index == b->index && addr_same_host(&a->addr, &b->addr);
}

static int
put_addr(struct netifs *n, const struct netif_addr *is)
{
	for (unsigned i = 0; i < n->addr_cnt; i++) {
		struct netif_addr *was = &n->addrs[i];

		if (!netifs_same_place(was, is))
			continue;
		if (was->prefix_len == is->prefix_len && was->usable == is->usable && was->lasting == is->lasting)
			return 0;
		*was = *is;
		return 1;
	}
	struct netif_addr *list = realloc(n->addrs, (n->addr_cnt + 1) * sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	n->addrs = list;
	n->addrs[n->addr_cnt++] = *is;
	return 1;
}

static int
drop_addr(struct netifs *n, const struct netif_addr *gone)
{
	for (unsigned i = 0; i < n->addr_cnt; i++) {
		if (!netifs_same_place(&n->addrs[i], gone))
			continue;
		memmove(&n->addrs[i], &n->addrs[i + 1], (--n->addr_cnt - i) * sizeof(*n->addrs));
		return 1;
	}
	return 0;
}

/* The attribute of this type among len bytes from a; NULL: not found. */
static const struct rtattr *
find_attr(const struct rtattr *a, size_t len, unsigned short type)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == type)
			return a;
	return NULL;
}

static bool
decode_link(const struct nlmsghdr *nh, struct netif *out)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nh);

	if (nh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) || ifi->ifi_family != AF_UNSPEC)
		return false;
	*out = (struct netif){
		.index = (unsigned)ifi->ifi_index,
		.enabled = (ifi->ifi_flags & IFF_UP) != 0,
		/* RUNNING: its operational state is up (or unknown), carrier included. */
		.up = (ifi->ifi_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING),
		.loopback = (ifi->ifi_flags & IFF_LOOPBACK) != 0,
	};
	const struct rtattr *name = find_attr(IFLA_RTA(ifi), IFLA_PAYLOAD(nh), IFLA_IFNAME);
	if (name == NULL)
		return false;
	size_t len = strnlen(RTA_DATA(name), RTA_PAYLOAD(name));
	if (len == 0 || len >= sizeof(out->name))
		return false;
	memcpy(out->name, RTA_DATA(name), len);
	const struct rtattr *mtu = find_attr(IFLA_RTA(ifi), IFLA_PAYLOAD(nh), IFLA_MTU);
	if (mtu != NULL && RTA_PAYLOAD(mtu) == sizeof(uint32_t))
		memcpy(&out->mtu, RTA_DATA(mtu), sizeof(uint32_t));
	return true;
}

static bool
decode_sockaddr(unsigned family, const struct rtattr *a, unsigned index, struct sockaddr_storage *out)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)out;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)out;

	*out = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
	if (family == AF_INET && RTA_PAYLOAD(a) == sizeof(sin->sin_addr)) {
		memcpy(&sin->sin_addr, RTA_DATA(a), sizeof(sin->sin_addr));
		return true;
	}
	if (family != AF_INET6 || RTA_PAYLOAD(a) != sizeof(sin6->sin6_addr))
		return false;
	memcpy(&sin6->sin6_addr, RTA_DATA(a), sizeof(sin6->sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr))
		sin6->sin6_scope_id = index;
	return true;
}

static bool
decode_addr(const struct nlmsghdr *nh, struct netif_addr *out)
{
	const struct ifaddrmsg *ifa = NLMSG_DATA(nh);

	if (nh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifa)))
		return false;
	const struct rtattr *attrs = IFA_RTA(ifa);
	size_t len = IFA_PAYLOAD(nh);
	/* On a point-to-point link ADDRESS is the other end. */
	const struct rtattr *at = find_attr(attrs, len, IFA_LOCAL);
	if (at == NULL)
		at = find_attr(attrs, len, IFA_ADDRESS);
	*out = (struct netif_addr){ .index = ifa->ifa_index, .prefix_len = ifa->ifa_prefixlen };
	if (at == NULL || ifa->ifa_prefixlen > (ifa->ifa_family == AF_INET ? 32 : 128) ||
	    !decode_sockaddr(ifa->ifa_family, at, ifa->ifa_index, &out->addr))
		return false;
	uint32_t flags = ifa->ifa_flags;
	const struct rtattr *more = find_attr(attrs, len, IFA_FLAGS);
	if (more != NULL && RTA_PAYLOAD(more) == sizeof(flags))
		memcpy(&flags, RTA_DATA(more), sizeof(flags));
	out->usable = (flags & IFA_F_DADFAILED) == 0 &&
	    ((flags & IFA_F_TENTATIVE) == 0 || (flags & IFA_F_OPTIMISTIC) != 0);
	/* IPv4 uses the bit of "temporary" for "secondary"; a secondary address is as good as a first one. */
	out->lasting = ifa->ifa_family == AF_INET ||
	    ((flags & IFA_F_TEMPORARY) == 0 && ifa->ifa_scope != RT_SCOPE_LINK);
	return true;
}

int
netifs_apply(struct netifs *n, const struct nlmsghdr *nh)
{
	struct netif link;
	struct netif_addr addr;

	switch (nh->nlmsg_type) {
	case RTM_NEWLINK:
		return decode_link(nh, &link) ? put_if(n, &link) : 0;
	case RTM_DELLINK:
		return decode_link(nh, &link) ? drop_if(n, link.index) : 0;
	case RTM_NEWADDR:
		return decode_addr(nh, &addr) ? put_addr(n, &addr) : 0;
	case RTM_DELADDR:
		return decode_addr(nh, &addr) ? drop_addr(n, &addr) : 0;
	default:
		return 0;
	}
}
