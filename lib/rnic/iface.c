/* The network interface of a device; see iface.h. */
#include "rnic/iface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_vlan.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/addr.h"

/* -- properties -- */

unsigned
iface_of(const struct sockaddr_storage *addr)
{
	struct ifaddrs *list;
	unsigned index = 0;

	if (getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *i = list; i != NULL && index == 0; i = i->ifa_next) {
		struct sockaddr_storage ss = { 0 };

		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != addr->ss_family)
			continue;
		memcpy(&ss, i->ifa_addr, addr_len(addr));
		if (addr_same_host(&ss, addr))
			index = if_nametoindex(i->ifa_name);
	}
	freeifaddrs(list);
	return index;
}

void
iface_learn(struct iface *me, unsigned index, struct rng *rng)
{
	static const uint8_t none[6];
	struct vlan_ioctl_args vlan = { .cmd = GET_VLAN_VID_CMD };
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 1500;

	me->index = index;
	me->vlan = 0;
	me->loopback = false;
	if (fd >= 0 && index != 0 && if_indextoname(index, ifr.ifr_name) != NULL) {
		(void)snprintf(vlan.device1, sizeof(vlan.device1), "%s", ifr.ifr_name);
		if (ioctl(fd, SIOCGIFVLAN, &vlan) == 0)
			me->vlan = (uint16_t)(vlan.u.VID & 0xfff);
		if (ioctl(fd, SIOCGIFMTU, &ifr) == 0)
			mtu = ifr.ifr_mtu;
		if (ioctl(fd, SIOCGIFHWADDR, &ifr) == 0) {
			me->loopback = ifr.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
			if (ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER && memcmp(me->mac, none, sizeof(none)) == 0)
				memcpy(me->mac, ifr.ifr_hwaddr.sa_data, sizeof(me->mac));
		}
	}
	if (fd >= 0)
		close(fd);
	me->mtu = (uint32_t)mtu;
	for (me->mtu_code = 5; me->mtu_code > 1 && (128 << me->mtu_code) > mtu;)
		me->mtu_code--;
	if (memcmp(me->mac, none, sizeof(none)) == 0) {
		rng->fill(rng, me->mac, sizeof(me->mac));
		me->mac[0] = (uint8_t)((me->mac[0] & 0xfc) | 0x02); /* locally administered, unicast */
	}
}

/* -- reachable peers -- */

int
iface_remote(
    const struct sockaddr_storage *ours, const struct rnic_gid *gid, uint16_t port, struct sockaddr_storage *out)
{
	addr_from_v6(gid->b, port, out);
	if (out->ss_family != ours->ss_family)
		return -EAFNOSUPPORT;
	if (out->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)out)->sin6_scope_id =
		    ((const struct sockaddr_in6 *)(const void *)ours)->sin6_scope_id;
	return 0;
}

struct route_query {
	struct nlmsghdr nh;
	struct rtmsg rt;
	uint8_t attrs[128];
};

static void
put_attr(struct route_query *q, unsigned short type, const void *data, size_t len)
{
	const struct rtattr a = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len) };
	uint8_t *at = (uint8_t *)q + NLMSG_ALIGN(q->nh.nlmsg_len);

	memcpy(at, &a, sizeof(a));
	memcpy(at + RTA_LENGTH(0), data, len);
	q->nh.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->nh.nlmsg_len) + RTA_ALIGN(a.rta_len));
}

static void
make_query(const struct sockaddr_storage *from, const struct sockaddr_storage *dst, struct route_query *q)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)(const void *)dst;
	size_t len = dst->ss_family == AF_INET ? 4 : 16;
	uint8_t to6[16], from6[16];

	*q = (struct route_query){
		.nh = { .nlmsg_len = NLMSG_LENGTH(sizeof(q->rt)),
		    .nlmsg_type = RTM_GETROUTE,
		    .nlmsg_flags = NLM_F_REQUEST },
		.rt = { .rtm_family = (uint8_t)dst->ss_family },
	};
	q->rt.rtm_dst_len = q->rt.rtm_src_len = (uint8_t)(len * 8);
	/* An IPv4 address is the last bytes of its IPv6 form. */
	addr_to_v6(dst, to6);
	addr_to_v6(from, from6);
	put_attr(q, RTA_DST, to6 + 16 - len, len);
	put_attr(q, RTA_SRC, from6 + 16 - len, len);
	if (dst->ss_family == AF_INET6 && sin6->sin6_scope_id != 0)
		put_attr(q, RTA_OIF, &sin6->sin6_scope_id, sizeof(sin6->sin6_scope_id));
}

/* A route through another interface does not share the failures of our port. */
static enum rnic_reach
read_route(unsigned index, const struct nlmsghdr *nh)
{
	const struct rtmsg *rt = NLMSG_DATA(nh);
	bool gateway = false;
	unsigned oif = 0;

	if (nh->nlmsg_type != RTM_NEWROUTE || nh->nlmsg_len < NLMSG_LENGTH(sizeof(*rt)))
		return RNIC_REACH_NONE;
	if (rt->rtm_type == RTN_LOCAL)
		return RNIC_REACH_DIRECT;
	size_t len = RTM_PAYLOAD(nh);
	for (const struct rtattr *a = RTM_RTA(rt); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(oif))
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
		/* RTA_VIA is a router of the other family. */
		gateway = gateway || a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA;
	}
	if (rt->rtm_type != RTN_UNICAST || (index != 0 && oif != index))
		return RNIC_REACH_NONE;
	return gateway ? RNIC_REACH_GATEWAY : RNIC_REACH_DIRECT;
}

enum rnic_reach
iface_reach(const struct sockaddr_storage *from, unsigned index, const struct sockaddr_storage *to)
{
	union {
		struct nlmsghdr nh;
		uint8_t bytes[4096];
	} answer;

	struct route_query q;

	if (from->ss_family != to->ss_family)
		return RNIC_REACH_NONE;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return RNIC_REACH_DIRECT;
	make_query(from, to, &q);
	/* The kernel answers within send(). */
	ssize_t n = send(fd, &q, q.nh.nlmsg_len, 0);
	if (n > 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	close(fd);
	if (n < 0)
		return RNIC_REACH_DIRECT;
	if (n < (ssize_t)sizeof(answer.nh) || !NLMSG_OK(&answer.nh, (size_t)n))
		return RNIC_REACH_NONE;
	return read_route(index, &answer.nh);
}
