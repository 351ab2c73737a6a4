/* Which devices there should be; see device_plan.h. */
#include "daemon/device_plan.h"

#include <string.h>

#include "base/addr.h"

struct plan {
	const struct netifs *ifs;
	struct device_want *want;
	unsigned cnt, max;
};

static void
add(struct plan *p, const struct device_want *w)
{
	for (unsigned i = 0; i < p->cnt; i++)
		if (addr_same_host(&p->want[i].addr, &w->addr))
			return;
	if (p->cnt < p->max)
		p->want[p->cnt++] = *w;
}

static enum device_place
place_of(const struct plan *p, const struct netif_addr *a)
{
	const struct netif *i = netifs_by_index(p->ifs, a->index);

	return i != NULL && i->up && a->usable ? DEVICE_PLACE_UP : DEVICE_PLACE_DOWN;
}

static void
add_address(struct plan *p, const struct config_device *cfg)
{
	const struct netif_addr *a = p->ifs != NULL ? netifs_find(p->ifs, &cfg->siw.addr) : NULL;
	struct device_want w = { .cfg = cfg, .addr = cfg->siw.addr, .base = cfg->siw.name };

	w.place = a != NULL ? place_of(p, a) : DEVICE_PLACE_UNKNOWN;
	/* Whether it can be is up to bind. */
	w.open = a == NULL || a->usable;
	add(p, &w);
}

static void
add_interface(struct plan *p, const struct config_device *cfg, const struct netif *i, int family)
{
	bool all = strcmp(cfg->interface, CONFIG_ALL_INTERFACES) == 0;

	for (unsigned k = 0; k < p->ifs->addr_cnt; k++) {
		const struct netif_addr *a = &p->ifs->addrs[k];
		struct device_want w = { .cfg = cfg, .addr = a->addr };

		if (a->index != i->index || a->addr.ss_family != family || !a->lasting)
			continue;
		w.base = cfg->siw.name[0] != '\0' ? cfg->siw.name : i->name;
		w.place = place_of(p, a);
		w.open = a->usable && (i->up || !all);
		add(p, &w);
	}
}

static void
add_interfaces(struct plan *p, const struct config_device *cfg)
{
	bool all = strcmp(cfg->interface, CONFIG_ALL_INTERFACES) == 0;

	for (unsigned i = 0; i < p->ifs->if_cnt; i++) {
		const struct netif *is = &p->ifs->ifs[i];

		if (all ? is->loopback : strcmp(is->name, cfg->interface) != 0)
			continue;
		add_interface(p, cfg, is, AF_INET);
		add_interface(p, cfg, is, AF_INET6);
	}
}

/* What an entry names, from the most to the least exact. */
static unsigned
exactness(const struct config_device *cfg)
{
	if (cfg->interface[0] == '\0')
		return 0;
	return strcmp(cfg->interface, CONFIG_ALL_INTERFACES) != 0 ? 1 : 2;
}

unsigned
device_plan(const struct config *cfg, const struct netifs *ifs, struct device_want *out, unsigned max)
{
	struct plan p = { .ifs = ifs, .want = out, .max = max };

	for (unsigned exact = 0; exact <= 2; exact++) {
		for (unsigned i = 0; i < cfg->device_cnt; i++) {
			if (exactness(&cfg->devices[i]) != exact)
				continue;
			if (exact == 0)
				add_address(&p, &cfg->devices[i]);
			else if (ifs != NULL)
				add_interfaces(&p, &cfg->devices[i]);
		}
	}
	return p.cnt;
}
