/* Which peers a port reaches; see route.h. One question and one answer over netlink. */
#include "rnic/route.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct route_query {
	struct nlmsghdr nh;
	struct rtmsg rt;
	uint8_t attrs[128];
};

/* Bytes of an address: where they are and how many. */
static const void *
addr_bytes(const struct sockaddr_storage *ss, size_t *len)
{
	*len = ss->ss_family == AF_INET ? 4 : 16;
	if (ss->ss_family == AF_INET)
		return &((const struct sockaddr_in *)(const void *)ss)->sin_addr;
	return &((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr;
}

static void
put_attr(struct route_query *q, unsigned short type, const void *data, size_t len)
{
	const struct rtattr a = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len) };
	uint8_t *at = (uint8_t *)q + NLMSG_ALIGN(q->nh.nlmsg_len);

	memcpy(at, &a, sizeof(a));
	memcpy(at + RTA_LENGTH(0), data, len);
	q->nh.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->nh.nlmsg_len) + RTA_ALIGN(a.rta_len));
}

/* The route from our address to dst. */
static void
make_query(const struct sockaddr_storage *from, const struct sockaddr_storage *dst, struct route_query *q)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)(const void *)dst;
	const void *b;
	size_t len;

	*q = (struct route_query){
		.nh = { .nlmsg_len = NLMSG_LENGTH(sizeof(q->rt)),
		    .nlmsg_type = RTM_GETROUTE,
		    .nlmsg_flags = NLM_F_REQUEST },
		.rt = { .rtm_family = (uint8_t)dst->ss_family },
	};
	b = addr_bytes(dst, &len);
	q->rt.rtm_dst_len = q->rt.rtm_src_len = (uint8_t)(len * 8);
	put_attr(q, RTA_DST, b, len);
	b = addr_bytes(from, &len);
	put_attr(q, RTA_SRC, b, len);
	if (dst->ss_family == AF_INET6 && sin6->sin6_scope_id != 0)
		put_attr(q, RTA_OIF, &sin6->sin6_scope_id, sizeof(sin6->sin6_scope_id));
}

/* Is the answer a route, to this machine or out of our own interface? One that leaves by another interface does not
 * share the fate of our port. */
static bool
is_our_route(unsigned if_index, const struct nlmsghdr *nh)
{
	const struct rtmsg *rt = NLMSG_DATA(nh);
	unsigned oif = 0;
	size_t len;

	if (nh->nlmsg_type != RTM_NEWROUTE || nh->nlmsg_len < NLMSG_LENGTH(sizeof(*rt)))
		return false;
	if (rt->rtm_type == RTN_LOCAL || (rt->rtm_type == RTN_UNICAST && if_index == 0))
		return true;
	len = RTM_PAYLOAD(nh);
	for (const struct rtattr *a = RTM_RTA(rt); RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(oif))
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
	return rt->rtm_type == RTN_UNICAST && oif == if_index;
}

bool
route_reaches(const struct sockaddr_storage *from, unsigned if_index, const struct sockaddr_storage *to)
{
	union {
		struct nlmsghdr nh;
		uint8_t bytes[4096];
	} answer;

	struct route_query q;
	ssize_t n;
	int fd;

	if (from->ss_family != to->ss_family)
		return false;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return true; /* who knows */
	make_query(from, to, &q);
	/* The kernel answers inside of send. */
	n = send(fd, &q, q.nh.nlmsg_len, 0);
	if (n > 0)
		n = recv(fd, &answer, sizeof(answer), 0);
	close(fd);
	return n < 0 ||
	    (n >= (ssize_t)sizeof(answer.nh) && NLMSG_OK(&answer.nh, (size_t)n) && is_our_route(if_index, &answer.nh));
}
