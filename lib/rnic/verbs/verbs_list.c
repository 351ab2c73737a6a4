/* The verbs device: ports with their state, GIDs and provider; see verbs.h. Called in the search for devices, at open,
 * and at each GID change. */
#include "rnic/verbs/verbs.h"

#include <errno.h>
#include <glob.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/verbs/verbs_int.h"

#define RXE_VENDOR 0xffffffu
#define SIW_VENDOR 0x626d74u

/* -- provider -- */

/* The driver of the card behind the device: "mlx5" for mlx5_core. */
static bool
driver_of(const char *ibdev_path, char out[RNIC_NAME_MAX])
{
	char link[PATH_MAX + 32], target[PATH_MAX];

	(void)snprintf(link, sizeof(link), "%s/device/driver", ibdev_path);
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	char *name = strrchr(target, '/');
	name = name != NULL ? name + 1 : target;
	n = (ssize_t)strlen(name);
	if (n > 5 && strcmp(name + n - 5, "_core") == 0)
		name[n - 5] = '\0';
	(void)snprintf(out, RNIC_NAME_MAX, "%.*s", RNIC_NAME_MAX - 1, name);
	return true;
}

/* -- a port -- */

/* The interface of an iWARP port, whose GID begins with its MAC address; older kernels do not report it. 0: none. */
static unsigned
ifindex_by_mac(const struct rnic_gid *gid)
{
	struct ifaddrs *list;
	unsigned index = 0;

	if (getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *a = list; a != NULL && index == 0; a = a->ifa_next) {
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(const void *)a->ifa_addr;

		if (ll != NULL && ll->sll_family == AF_PACKET && ll->sll_halen == 6 &&
		    memcmp(ll->sll_addr, gid->b, 6) == 0)
			index = (unsigned)ll->sll_ifindex;
	}
	freeifaddrs(list);
	return index;
}

/* All entries of the device's table: their number, or a negative errno; the caller frees *out. */
static ssize_t
read_gid_table(struct ibv_context *ctx, unsigned ports, struct ibv_gid_entry **out)
{
	struct ibv_port_attr attr;
	size_t max = 0;

	for (unsigned p = 1; p <= ports; p++)
		if (ibv_query_port(ctx, (uint8_t)p, &attr) == 0 && attr.gid_tbl_len > 0)
			max += (size_t)attr.gid_tbl_len;
	*out = calloc(max > 0 ? max : 1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	ssize_t n = ibv_query_gid_table(ctx, *out, max, 0);
	if (n < 0) {
		free(*out);
		*out = NULL;
	}
	return n;
}

int
verbs_read_gids(struct ibv_context *ctx, unsigned ports, struct verbs_port *port)
{
	struct ibv_gid_entry *table;
	ssize_t n = read_gid_table(ctx, ports, &table);

	if (n < 0)
		return (int)n;
	port->gid_cnt = 0;
	port->ifindex = 0;
	for (ssize_t i = 0; i < n; i++) {
		struct verbs_gid *g = &port->gids[port->gid_cnt];

		if (table[i].port_num != port->port || port->gid_cnt == VERBS_GIDS_MAX)
			continue;
		*g = (struct verbs_gid){ .index = table[i].gid_index, .ifindex = table[i].ndev_ifindex };
		g->type = table[i].gid_type == IBV_GID_TYPE_ROCE_V1 ? RNIC_GID_ROCE_V1
		    : table[i].gid_type == IBV_GID_TYPE_ROCE_V2     ? RNIC_GID_ROCE_V2
		                                                    : RNIC_GID_IB;
		memcpy(g->gid.b, table[i].gid.raw, sizeof(g->gid.b));
		if (g->ifindex == 0 && rnic_is_iwarp(port->transport))
			g->ifindex = ifindex_by_mac(&g->gid);
		/* The first entries are the port's own; those of its VLANs follow. */
		if (port->ifindex == 0)
			port->ifindex = g->ifindex;
		port->gid_cnt++;
	}
	free(table);
	return 0;
}

int
verbs_read_port(struct ibv_context *ctx, struct verbs_port *port)
{
	struct ibv_port_attr attr;
	int rc = ibv_query_port(ctx, port->port, &attr);

	if (rc != 0)
		return -rc;
	port->state = attr.state == IBV_PORT_ACTIVE ? RNIC_PORT_UP : RNIC_PORT_DOWN;
	port->mtu_code = (uint8_t)attr.active_mtu;
	port->infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND && port->transport == RNIC_TRANSPORT_ROCE;
	return 0;
}

void
verbs_name_port(struct ibv_context *ctx, uint32_t vendor, unsigned num, struct verbs_port *port)
{
	*port = (struct verbs_port){
		.port = (uint8_t)num,
		.transport = ctx->device->transport_type == IBV_TRANSPORT_IWARP ? RNIC_TRANSPORT_IWARP
		                                                                : RNIC_TRANSPORT_ROCE,
	};
	(void)snprintf(port->dev, sizeof(port->dev), "%s", ibv_get_device_name(ctx->device));
	/* Software devices are recognized by vendor: sysfs names the driver of the underlying interface. */
	if (vendor == RXE_VENDOR || vendor == SIW_VENDOR)
		(void)snprintf(port->provider, RNIC_NAME_MAX, "%s", vendor == RXE_VENDOR ? "rxe" : "siw");
	else if (!driver_of(ctx->device->ibdev_path, port->provider))
		(void)snprintf(port->provider, RNIC_NAME_MAX, "vendor-%06x", vendor);
	port->retries_forever = vendor == RXE_VENDOR;
}

/* -- all ports -- */

static bool
is_permission(int err)
{
	return err == EACCES || err == EPERM;
}

static int
open_device(struct ibv_device *dev, struct ibv_context **out)
{
	errno = 0;
	*out = ibv_open_device(dev);
	return *out != NULL ? 0 : errno != 0 ? -errno : -EIO;
}

static int
add_ports(struct ibv_device *dev, struct verbs_port **ports, unsigned *cnt)
{
	struct ibv_device_attr attr;
	struct ibv_context *ctx;
	int rc = open_device(dev, &ctx);

	if (rc < 0)
		return rc;
	rc = -ibv_query_device(ctx, &attr);
	for (unsigned p = 1; rc == 0 && p <= attr.phys_port_cnt; p++) {
		struct verbs_port *grown = realloc(*ports, (*cnt + 1) * sizeof(**ports));
		if (grown == NULL) {
			rc = -ENOMEM;
			break;
		}
		*ports = grown;
		verbs_name_port(ctx, attr.vendor_id, p, &grown[*cnt]);
		/* A port that cannot be queried is skipped; others may work. */
		if (verbs_read_port(ctx, &grown[*cnt]) == 0 &&
		    verbs_read_gids(ctx, attr.phys_port_cnt, &grown[*cnt]) == 0)
			(*cnt)++;
	}
	ibv_close_device(ctx);
	return rc;
}

/* The kernel has a device, but no provider library supports it. */
static bool
kernel_has_devices(void)
{
	glob_t found;
	bool any = glob("/sys/class/infiniband/*", GLOB_NOSORT, NULL, &found) == 0;

	globfree(&found);
	return any;
}

/* Text for a failed open of a card (negative errno). */
static const char *
open_error(int rc)
{
	if (is_permission(-rc))
		return "the RDMA device files (/dev/infiniband/uverbs*) may not be opened";
	if (rc == -ENOSYS)
		return "the kernel has no RDMA support (module ib_uverbs)";
	return "the RDMA device cannot be opened";
}

const char *
verbs_memlock_why(int err)
{
	struct rlimit l;

	/* The kernel returns ENOMEM, some providers another error. */
	if ((err != ENOMEM && err != EPERM && err != EAGAIN) || getrlimit(RLIMIT_MEMLOCK, &l) < 0 ||
	    l.rlim_cur == RLIM_INFINITY)
		return NULL;
	return "memory cannot be locked: raise RLIMIT_MEMLOCK (LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited)";
}

/* The kernel's cards: their number, or a negative errno and *why; the caller frees the list. */
static int
list_cards(struct ibv_device ***list, const char **why)
{
	int n = 0;

	errno = 0;
	*list = ibv_get_device_list(&n);
	if (*list != NULL)
		return n;
	int rc = errno != 0 ? -errno : -ENOSYS;
	*why = open_error(rc);
	return rc;
}

static struct ibv_device *
find_card(struct ibv_device **list, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			return list[i];
	return NULL;
}

int
verbs_open_card(const char *name, struct ibv_context **out, const char **why)
{
	struct ibv_device **list;
	int n = list_cards(&list, why), rc = -ENODEV;

	if (n < 0)
		return n;
	struct ibv_device *card = find_card(list, n, name);
	*why = "no RDMA device has this name";
	if (card != NULL) {
		rc = open_device(card, out);
		*why = open_error(rc);
	}
	ibv_free_device_list(list);
	return rc;
}

int
verbs_list(struct verbs_port **out, unsigned *cnt_out, const char **why)
{
	struct verbs_port *ports = NULL;
	struct ibv_device **list;
	unsigned cnt = 0;
	int n = list_cards(&list, why), rc = 0;

	if (n < 0)
		return is_permission(-n) ? -EACCES : n;
	for (int i = 0; i < n; i++) {
		int one = add_ports(list[i], &ports, &cnt);

		if (one < 0)
			rc = one;
	}
	ibv_free_device_list(list);
	if (cnt > 0) {
		*out = ports;
		*cnt_out = cnt;
		return 0;
	}
	free(ports);
	if (n == 0) {
		*why = kernel_has_devices() ? "no provider library for this machine's RDMA devices (ibverbs-providers)"
		                            : "this machine has no RDMA device";
		return -ENODEV;
	}
	*why = rc != 0 ? open_error(rc) : "no RDMA device has a port";
	return rc == 0 ? -ENODEV : is_permission(-rc) ? -EACCES : rc;
}

bool
verbs_card_listed(const char *dev)
{
	struct ibv_device **list;
	const char *why;
	int n = list_cards(&list, &why);

	if (n < 0)
		return true;
	bool found = find_card(list, n, dev) != NULL;
	ibv_free_device_list(list);
	return found;
}

/* -- selecting a GID -- */

/* Lower is better. */
static unsigned
rank(const struct verbs_gid *g)
{
	unsigned type = g->type == RNIC_GID_ROCE_V2 ? 0 : g->type == RNIC_GID_ROCE_V1 ? 1 : 2;
	bool link_local = g->gid.b[0] == 0xfe && (g->gid.b[1] & 0xc0) == 0x80;
	struct sockaddr_storage ss;

	addr_from_v6(g->gid.b, 0, &ss);
	unsigned kind = ss.ss_family == AF_INET ? 0 : link_local ? 2 : 1;

	return type * 3 + kind;
}

const struct verbs_gid *
verbs_choose_gid(
    const struct verbs_port *port, enum rnic_gid_type type, const struct sockaddr_storage *addr, unsigned ifindex)
{
	const struct verbs_gid *best = NULL;
	uint8_t want[16];

	if (addr != NULL) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)(const void *)addr;

		addr_to_v6(addr, want);
		/* Several interfaces may have the same link-local address. */
		if (ifindex == 0 && addr->ss_family == AF_INET6)
			ifindex = sin6->sin6_scope_id;
	}
	for (unsigned i = 0; i < port->gid_cnt; i++) {
		const struct verbs_gid *g = &port->gids[i];

		if ((type != RNIC_GID_NONE && g->type != type) ||
		    (addr != NULL && memcmp(g->gid.b, want, sizeof(want)) != 0) ||
		    (ifindex != 0 && g->ifindex != ifindex))
			continue;
		if (best == NULL || rank(g) < rank(best) || (rank(g) == rank(best) && g->index < best->index))
			best = g;
	}
	return best;
}

bool
verbs_find_gid(struct verbs_dev *dev)
{
	for (unsigned i = 0; i < dev->port.gid_cnt; i++) {
		const struct verbs_gid *g = &dev->port.gids[i];

		if (g->type == dev->cfg.gid_type && memcmp(g->gid.b, dev->cfg.gid.b, sizeof(g->gid.b)) == 0) {
			dev->gid = *g;
			return dev->gid_present = true;
		}
	}
	return dev->gid_present = false;
}
