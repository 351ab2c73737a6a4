/* Default devices, when the file has no devices: one soft iWARP device on each local address that the SMC-R side of a
 * service uses. Asks the kernel for routes and interfaces; sends nothing. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

/* Adds a device for this address unless it has one. Warns once beyond the limit, as the count passes it only once. */
static void
want_device(struct config_build *b, unsigned *wanted, const struct sockaddr_storage *addr)
{
	struct config *cfg = b->cfg;
	struct config_device *dev = &cfg->devices[cfg->device_cnt];
	char buf[ADDR_STR_MAX];

	for (unsigned i = 0; i < cfg->device_cnt; i++)
		if (addr_same_host(&cfg->devices[i].addr, addr))
			return;
	++*wanted;
	if (*wanted == SMCR_LINKS_MAX + 1)
		config_warning(b, 0, "no device for %s (and maybe more): at most %d; name those to be used in devices",
		    addr_format(addr, buf, sizeof(buf)), SMCR_LINKS_MAX);
	if (cfg->device_cnt == SMCR_LINKS_MAX)
		return;
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & CONFIG_AT_SIW) != 0 && config_value_set_default(k, dev) != 0) {
			config_error(b, 0, "out of memory");
			return;
		}
	}
	dev->type = CONFIG_DEVICE_SIW;
	snprintf(dev->name, sizeof(dev->name), "siw%u", cfg->device_cnt++);
	dev->addr = *addr;
	addr_set_port(&dev->addr, 0);
}

bool
config_source_to(const struct sockaddr_storage *to, struct sockaddr_storage *out)
{
	int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*out);

	*out = (struct sockaddr_storage){ 0 };
	bool ok = fd >= 0 && connect(fd, (const struct sockaddr *)(const void *)to, addr_len(to)) == 0 &&
	    getsockname(fd, (struct sockaddr *)(void *)out, &len) == 0 && !addr_is_any(out);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The local address that the kernel would use to the first address of the target with a route. A name without an
 * address uses the default route, found with addresses that no host has (RFC 5737, RFC 3849). */
static bool
local_address_to(const struct config_target *to, struct sockaddr_storage *out)
{
	static const char *const nowhere[] = { "192.0.2.1:9", "[2001:db8::1]:9" };

	for (unsigned i = 0; i < to->addr_cnt; i++)
		if (config_source_to(&to->addrs[i], out))
			return true;
	for (unsigned i = 0; to->addr_cnt == 0 && i < 2; i++) {
		struct sockaddr_storage ss;

		if (addr_parse_port(nowhere[i], &ss) == 0 && config_source_to(&ss, out))
			return true;
	}
	return false;
}

static bool
usable(const struct ifaddrs *ifa, int family, bool loopback)
{
	struct sockaddr_in6 sin6;

	if (ifa->ifa_addr == NULL || ifa->ifa_addr->sa_family != family || (ifa->ifa_flags & IFF_UP) == 0 ||
	    ((ifa->ifa_flags & IFF_LOOPBACK) != 0) != loopback)
		return false;
	if (family == AF_INET)
		return true;
	/* A link-local address is useless to the peer without the interface. */
	memcpy(&sin6, ifa->ifa_addr, sizeof(sin6));
	return !IN6_IS_ADDR_LINKLOCAL(&sin6.sin6_addr);
}

/* Loopback comes last, so it is left out first when there are too many. */
static void
devices_for_wildcard(struct config_build *b, unsigned *wanted, bool v6)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0) {
		config_error(b, 0, "cannot list the interfaces: %s", strerror(errno));
		return;
	}
	for (unsigned round = 0; round < 4; round++) {
		bool loopback = round >= 2, is_v6 = round % 2 == 1;

		for (const struct ifaddrs *ifa = list; ifa != NULL && (v6 || !is_v6); ifa = ifa->ifa_next) {
			struct sockaddr_storage ss = { 0 };

			if (!usable(ifa, is_v6 ? AF_INET6 : AF_INET, loopback))
				continue;
			memcpy(&ss, ifa->ifa_addr, is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
			want_device(b, wanted, &ss);
		}
	}
	freeifaddrs(list);
}

/* Of a peer at the destination's address: towards a host of each net; towards all destinations by the default route. */
static void
devices_for_via(struct config_build *b, const struct config_via *via, unsigned *wanted)
{
	struct sockaddr_storage peer = via->peer, local;
	const struct config_target to = { .addrs = &peer, .addr_cnt = 1 }, all = { .addr_cnt = 0 };
	const bool fixed = !addr_is_any(&peer);

	for (unsigned i = 0; i < (fixed ? 1 : via->net_cnt); i++) {
		const struct config_dest *net = &via->nets[i];
		uint8_t addr[16];

		memcpy(addr, net->addr, sizeof(addr));
		addr[15] |= net->prefix_len < 128;
		if (!fixed)
			addr_from_v6(addr, addr_port(&via->peer), &peer);
		if (local_address_to(net->prefix_len % 96 == 0 && !fixed ? &all : &to, &local))
			want_device(b, wanted, &local);
	}
}

/* Without a route a target has no SMC-R until a reload or restart, but TCP may work later. */
static void
devices_for_targets(struct config_build *b, unsigned nr, unsigned *wanted)
{
	const struct config_service *svc = &b->cfg->services[nr];

	for (unsigned i = 0; i < svc->via_cnt; i++)
		devices_for_via(b, &svc->via[i], wanted);
	for (unsigned i = 0; i < svc->to_cnt; i++) {
		const struct config_target *to = &svc->to[i];
		struct sockaddr_storage local;

		if (local_address_to(to, &local))
			want_device(b, wanted, &local);
		else
			config_warning(b, config_line(b->service_src[nr], "to"),
			    "no route to %s now: no default device for \"%s\"", to->host, svc->name);
	}
}

void
config_default_devices(struct config_build *b)
{
	const struct config *cfg = b->cfg;
	bool any4 = false, any6 = false;
	unsigned wanted = 0;

	b->cfg->devices_default = true;
	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		const struct config_service *svc = &cfg->services[i];

		if (svc->kind == CONFIG_INGRESS)
			devices_for_targets(b, i, &wanted);
		else if (!addr_is_any(&svc->listen))
			want_device(b, &wanted, &svc->listen);
		else if (svc->listen.ss_family == AF_INET)
			any4 = true;
		else
			any6 = true;
	}
	/* Addresses in services come first. */
	if (any4 || any6)
		devices_for_wildcard(b, &wanted, any6);
}
