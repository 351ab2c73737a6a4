/* Cards that are made up; see fake_verbs.h. */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/list.h"
#include "checks.h"

struct fake_verbs fake_verbs;

struct fake_dev {
	struct rnic_dev dev;
	struct verbs_config cfg;
	struct verbs_port as_read;
};

void
fake_verbs_reset(void)
{
	memset(&fake_verbs, 0, sizeof(fake_verbs));
}

struct verbs_port *
fake_verbs_port(const char *dev, uint8_t port, unsigned ifindex)
{
	struct verbs_port *p = &fake_verbs.ports[fake_verbs.cnt++];

	*p = (struct verbs_port){
		.provider = "fake",
		.port = port,
		.transport = RNIC_TRANSPORT_ROCE,
		.state = RNIC_PORT_UP,
		.mtu_code = 3,
		.ifindex = ifindex,
	};
	strcpy(p->dev, dev);
	return p;
}

void
fake_verbs_gid(struct verbs_port *p, const char *addr, enum rnic_gid_type type, unsigned ifindex)
{
	struct verbs_gid *g = &p->gids[p->gid_cnt];
	struct sockaddr_storage ss;

	*g = (struct verbs_gid){ .type = type, .index = p->gid_cnt++, .ifindex = ifindex };
	ck_assert_int_eq(addr_parse(addr, &ss), 0);
	addr_to_v6(&ss, g->gid.b);
}

void
fake_verbs_unplug(const char *dev)
{
	for (unsigned i = fake_verbs.cnt; i-- > 0;) {
		if (strcmp(fake_verbs.ports[i].dev, dev) != 0)
			continue;
		fake_verbs.cnt--;
		memmove(
		    &fake_verbs.ports[i], &fake_verbs.ports[i + 1], (fake_verbs.cnt - i) * sizeof(fake_verbs.ports[0]));
	}
}

int
verbs_list(struct verbs_port **ports, unsigned *cnt, const char **why)
{
	fake_verbs.lists++;
	*why = fake_verbs.cnt > 0 || fake_verbs.list_rc != 0 ? fake_verbs.why : "this machine has no RDMA device";
	if (fake_verbs.list_rc != 0 || fake_verbs.cnt == 0)
		return fake_verbs.list_rc != 0 ? fake_verbs.list_rc : -ENODEV;
	/* Not one byte more, so that a sanitizer sees who reads further. */
	*ports = calloc(fake_verbs.cnt, sizeof(**ports));
	memcpy(*ports, fake_verbs.ports, fake_verbs.cnt * sizeof(**ports));
	*cnt = fake_verbs.cnt;
	return 0;
}

bool
verbs_card_listed(const char *dev)
{
	for (unsigned i = 0; i < fake_verbs.cnt; i++)
		if (strcmp(fake_verbs.ports[i].dev, dev) == 0)
			return true;
	return fake_verbs.list_rc != 0;
}

static unsigned
rank(const struct verbs_gid *g)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	unsigned type = g->type == RNIC_GID_ROCE_V2 ? 0 : g->type == RNIC_GID_ROCE_V1 ? 3 : 6;

	if (memcmp(g->gid.b, mapped, sizeof(mapped)) == 0)
		return type;
	return type + (g->gid.b[0] == 0xfe ? 2 : 1);
}

const struct verbs_gid *
verbs_choose_gid(
    const struct verbs_port *p, enum rnic_gid_type type, const struct sockaddr_storage *addr, unsigned ifindex)
{
	const struct verbs_gid *best = NULL;
	uint8_t want[16];

	if (addr != NULL)
		addr_to_v6(addr, want);
	for (unsigned i = 0; i < p->gid_cnt; i++) {
		const struct verbs_gid *g = &p->gids[i];

		if ((type == RNIC_GID_NONE || g->type == type) &&
		    (addr == NULL || memcmp(g->gid.b, want, sizeof(want)) == 0) &&
		    (ifindex == 0 || g->ifindex == ifindex) && (best == NULL || rank(g) < rank(best)))
			best = g;
	}
	return best;
}

void
verbs_config_init(struct verbs_config *cfg)
{
	*cfg = (struct verbs_config){ 0 };
}

/* -- a device -- */

static const struct verbs_port *
port_now(const struct fake_dev *d)
{
	for (unsigned i = 0; i < fake_verbs.cnt; i++)
		if (strcmp(fake_verbs.ports[i].dev, d->cfg.dev) == 0 && fake_verbs.ports[i].port == d->cfg.port)
			return &fake_verbs.ports[i];
	return NULL;
}

bool
verbs_gid_present(const struct rnic_dev *dev)
{
	const struct fake_dev *d = CONTAINER_OF(dev, const struct fake_dev, dev);
	const struct verbs_port *p = port_now(d);

	for (unsigned i = 0; p != NULL && i < p->gid_cnt; i++)
		if (memcmp(&p->gids[i].gid, &d->cfg.gid, sizeof(d->cfg.gid)) == 0)
			return true;
	return false;
}

static void
dev_query(struct rnic_dev *dev, struct rnic_info *info)
{
	const struct fake_dev *d = CONTAINER_OF(dev, struct fake_dev, dev);
	const struct verbs_port *p = port_now(d);

	*info = (struct rnic_info){
		.transport = RNIC_TRANSPORT_ROCE,
		.port = p != NULL && verbs_gid_present(dev) ? p->state : RNIC_PORT_DOWN,
		.gid = d->cfg.gid,
		.gid_type = d->cfg.gid_type,
		.qp_cnt = fake_verbs.qps,
	};
	memcpy(info->name, d->cfg.name, sizeof(info->name));
}

static unsigned
dev_stats(const struct rnic_dev *dev, struct rnic_stat *stats)
{
	(void)dev;
	stats[0] = (struct rnic_stat){ "flushed", fake_verbs.flushed };
	stats[1] = (struct rnic_stat){ "mpa_refused_token", fake_verbs.refused };
	return 2;
}

static bool
dev_last_refused(const struct rnic_dev *dev, const char *counter, struct sockaddr_storage *from)
{
	(void)dev;
	return strcmp(counter, "mpa_refused_token") == 0 && fake_verbs.from != NULL &&
	    addr_parse_port(fake_verbs.from, from) == 0;
}

static void
dev_free(struct rnic_dev *dev)
{
	fake_verbs.frees++;
	free(CONTAINER_OF(dev, struct fake_dev, dev));
}

int
verbs_open(const struct verbs_config *cfg, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **why)
{
	static const struct rnic_ops ops = {
		.query = dev_query, .stats = dev_stats, .last_refused = dev_last_refused, .free = dev_free
	};
	struct fake_dev *d;

	(void)loop;
	(void)rng;
	fake_verbs.last = *cfg;
	*why = fake_verbs.why;
	if (fake_verbs.open_rc != 0)
		return fake_verbs.open_rc;
	fake_verbs.opens++;
	d = calloc(1, sizeof(*d));
	d->dev.ops = &ops;
	d->cfg = *cfg;
	if (port_now(d) != NULL)
		d->as_read = *port_now(d);
	*dev = &d->dev;
	return 0;
}

const struct verbs_port *
verbs_port_of(const struct rnic_dev *dev)
{
	return &CONTAINER_OF(dev, const struct fake_dev, dev)->as_read;
}
