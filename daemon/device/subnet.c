/* The interfaces' networks; see subnet.h. */
#include "daemon/device/subnet.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"

struct subnet_if {
	char name[IF_NAMESIZE];
	struct sockaddr_storage addr;
	unsigned prefix_len;
};

void
subnets_init(struct subnets *s)
{
	*s = (struct subnets){ 0 };
}

void
subnets_fini(struct subnets *s)
{
	free(s->ifs);
	subnets_init(s);
}

/* Bytes of an address without port: where they are and how many. */
static const uint8_t *
addr_bytes(const struct sockaddr *sa, unsigned *len)
{
	*len = sa->sa_family == AF_INET ? 4 : 16;
	if (sa->sa_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr;
	return ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr.s6_addr;
}

static unsigned
mask_len(const struct sockaddr *mask)
{
	unsigned len, bits = 0;
	const uint8_t *b = addr_bytes(mask, &len);

	for (unsigned i = 0; i < len * 8 && (b[i / 8] & (0x80 >> i % 8)) != 0; i++)
		bits++;
	return bits;
}

static bool
usable(const struct ifaddrs *ifa)
{
	return ifa->ifa_addr != NULL && ifa->ifa_netmask != NULL && (ifa->ifa_flags & IFF_UP) != 0 &&
	    (ifa->ifa_addr->sa_family == AF_INET || ifa->ifa_addr->sa_family == AF_INET6);
}

int
subnets_refresh(struct subnets *s)
{
	struct ifaddrs *all;
	struct subnet_if *ifs;
	unsigned cnt = 0;

	if (getifaddrs(&all) != 0)
		return -errno;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		cnt += usable(i);
	ifs = calloc(cnt + 1, sizeof(*ifs));
	if (ifs == NULL) {
		freeifaddrs(all);
		return -ENOMEM;
	}
	cnt = 0;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (!usable(i))
			continue;
		strncpy(ifs[cnt].name, i->ifa_name, IF_NAMESIZE - 1);
		memcpy(&ifs[cnt].addr, i->ifa_addr,
		    i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		ifs[cnt++].prefix_len = mask_len(i->ifa_netmask);
	}
	freeifaddrs(all);
	subnets_fini(s);
	*s = (struct subnets){ .ifs = ifs, .cnt = cnt };
	return 0;
}

static void
put_prefix(const struct subnet_if *i, struct smcr_subnet *out)
{
	unsigned len;
	const uint8_t *b = addr_bytes((const struct sockaddr *)&i->addr, &len);

	*out = (struct smcr_subnet){ .v6 = len == 16, .prefix_len = (uint8_t)i->prefix_len };
	for (unsigned bit = 0; bit < i->prefix_len; bit++)
		out->addr[bit / 8] |= b[bit / 8] & (0x80 >> bit % 8);
}

unsigned
subnets_of(const struct subnets *s, const struct sockaddr_storage *local, struct smcr_subnet out[SMCR_PREFIXES_MAX])
{
	const struct subnet_if *home = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < s->cnt && home == NULL; i++)
		if (addr_same_host(&s->ifs[i].addr, local))
			home = &s->ifs[i];
	if (home == NULL)
		return 0;
	put_prefix(home, &out[n++]);
	/* RFC 7609 A.2.2: one IPv4 subnet, or the IPv6 prefixes of the interface. */
	for (unsigned i = 0; local->ss_family == AF_INET6 && i < s->cnt && n < SMCR_PREFIXES_MAX; i++)
		if (&s->ifs[i] != home && s->ifs[i].addr.ss_family == AF_INET6 &&
		    strcmp(s->ifs[i].name, home->name) == 0)
			put_prefix(&s->ifs[i], &out[n++]);
	return n;
}

unsigned
subnets_all(const struct subnets *s, struct smcr_subnet out[SMCR_NETWORKS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->cnt && n < SMCR_NETWORKS_MAX; i++)
		put_prefix(&s->ifs[i], &out[n++]);
	return n;
}

static bool
holds(const struct smcr_subnet *s, const struct sockaddr_storage *ss)
{
	unsigned len;
	const uint8_t *b = addr_bytes((const struct sockaddr *)ss, &len);

	return s->v6 == (len == 16) && s->prefix_len > 0 && addr_same_prefix(s->addr, b, s->prefix_len);
}

bool
subnets_near(const struct subnets *s, const uint8_t local[16], const uint8_t other[16])
{
	struct smcr_subnet nets[SMCR_PREFIXES_MAX];
	struct sockaddr_storage from, to;

	addr_from_v6(local, 0, &from);
	addr_from_v6(other, 0, &to);
	for (unsigned i = subnets_of(s, &from, nets); i > 0; i--)
		if (holds(&nets[i - 1], &to))
			return true;
	return false;
}
