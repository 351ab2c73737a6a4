/* The wanted devices; see device_plan.h. */
#include "daemon/device/device_plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

struct plan {
	const struct netifs *ifs;
	const struct device_cards *cards;
	struct device_want *want;
	unsigned cnt, max;
};

static bool
is_all(const char *name)
{
	return strcmp(name, "*") == 0;
}

/* What an entry names, from the most to the least exact. */
enum exactness { EXACT_ADDRESS, EXACT_INTERFACE, EXACT_CARD, EXACT_ALL };

static enum exactness
exactness(const struct config_device *cfg)
{
	if (is_all(cfg->interface) || is_all(cfg->card))
		return EXACT_ALL;
	if (cfg->card[0] != '\0')
		return EXACT_CARD;
	return cfg->interface[0] != '\0' ? EXACT_INTERFACE : EXACT_ADDRESS;
}

/* -- soft iWARP: addresses -- */

static void
add_siw(struct plan *p, const struct device_want *w)
{
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->want[i].port == NULL && addr_same_host(&p->want[i].addr, &w->addr) &&
		    siw_same_llp(&p->want[i].cfg->siw, &w->cfg->siw))
			return;
	if (p->cnt < p->max)
		p->want[p->cnt++] = *w;
}

static void
set_base(struct device_want *w, const char *otherwise)
{
	(void)snprintf(
	    w->base, sizeof(w->base), "%.*s", RNIC_NAME_MAX - 1, w->cfg->name[0] != '\0' ? w->cfg->name : otherwise);
}

static enum device_place
place_of(const struct plan *p, const struct netif_addr *a)
{
	const struct netif *i = netifs_by_index(p->ifs, a->index);

	return i != NULL && i->up && a->usable ? DEVICE_PLACE_UP : DEVICE_PLACE_DOWN;
}

/* For a device with several addresses: up while one of them is, since links can use any of them. */
static enum device_place
best_place(const struct plan *p, enum device_place place, const struct siw_addrs *more)
{
	for (unsigned i = 0; i < more->cnt; i++) {
		const struct netif_addr *a = netifs_find(p->ifs, &more->at[i]);

		if (a != NULL && place_of(p, a) == DEVICE_PLACE_UP)
			return DEVICE_PLACE_UP;
	}
	return place;
}

static void
add_address(struct plan *p, const struct config_device *cfg)
{
	const struct netif_addr *a = netifs_find(p->ifs, &cfg->addr);
	struct device_want w = {
		.cfg = cfg,
		.addr = cfg->addr,
		.place = a != NULL ? place_of(p, a) : DEVICE_PLACE_UNKNOWN,
		.open = a == NULL || a->usable, /* unknown: bind reports an error */
	};

	w.place = best_place(p, w.place, &cfg->siw.more_addrs);
	set_base(&w, "");
	add_siw(p, &w);
}

static void
add_interface(struct plan *p, const struct config_device *cfg, const struct netif *i, int family)
{
	for (unsigned k = 0; k < p->ifs->addr_cnt; k++) {
		const struct netif_addr *a = &p->ifs->addrs[k];
		struct device_want w = { .cfg = cfg, .addr = a->addr };

		if (a->index != i->index || a->addr.ss_family != family || !a->lasting)
			continue;
		set_base(&w, i->name);
		w.place = place_of(p, a);
		w.open = a->usable && (i->up || !is_all(cfg->interface));
		add_siw(p, &w);
	}
}

static void
add_interfaces(struct plan *p, const struct config_device *cfg)
{
	bool all = is_all(cfg->interface);

	for (unsigned i = 0; p->ifs != NULL && i < p->ifs->if_cnt; i++) {
		const struct netif *is = &p->ifs->ifs[i];

		if (all ? is->loopback : strcmp(is->name, cfg->interface) != 0)
			continue;
		add_interface(p, cfg, is, AF_INET);
		add_interface(p, cfg, is, AF_INET6);
	}
}

/* -- verbs: ports -- */

/* The GID of this port, if the entry names the port. */
static const struct verbs_gid *
named_gid(const struct plan *p, const struct config_device *cfg, const struct verbs_port *port)
{
	static const enum rnic_gid_type types[] = {
		[CONFIG_GID_ANY] = RNIC_GID_NONE,
		[CONFIG_GID_ROCE_V1] = RNIC_GID_ROCE_V1,
		[CONFIG_GID_ROCE_V2] = RNIC_GID_ROCE_V2,
	};
	const struct netif_addr *at;
	const struct netif *is;

	switch (exactness(cfg)) {
	case EXACT_ADDRESS:
		if (!rnic_is_iwarp(port->transport))
			return verbs_choose_gid(port, types[cfg->gid_type], &cfg->addr, 0);
		/* GIDs of iWARP are not addresses: the interface with the address is searched. */
		at = netifs_find(p->ifs, &cfg->addr);
		return at != NULL ? verbs_choose_gid(port, RNIC_GID_NONE, NULL, at->index) : NULL;
	case EXACT_INTERFACE:
		is = netifs_by_name(p->ifs, cfg->interface);
		return is != NULL ? verbs_choose_gid(port, types[cfg->gid_type], NULL, is->index) : NULL;
	case EXACT_CARD:
		if (strcmp(port->dev, cfg->card) != 0 || (cfg->port != 0 && cfg->port != port->port))
			return NULL;
		break;
	case EXACT_ALL:
		break;
	}
	return verbs_choose_gid(port, types[cfg->gid_type], NULL, 0);
}

static void
add_port(struct plan *p, const struct config_device *cfg, const struct verbs_port *port)
{
	const struct verbs_gid *gid = named_gid(p, cfg, port);
	struct device_want w = { .cfg = cfg, .port = port, .gid = gid };
	const bool all = exactness(cfg) == EXACT_ALL;
	char name[VERBS_DEV_NAME_MAX + 8];
	bool more_ports = false;

	if (gid == NULL)
		return;
	/* An entry for all cards leaves the whole port to the more exact entry, whatever GID that one uses. */
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->want[i].port == port && (p->want[i].gid == gid || all))
			return;
	for (unsigned i = 0; i < p->cards->cnt; i++)
		more_ports = more_ports ||
		    (&p->cards->ports[i] != port && strcmp(p->cards->ports[i].dev, port->dev) == 0);
	(void)snprintf(name, sizeof(name), more_ports ? "%s/%u" : "%s", port->dev, port->port);
	set_base(&w, name);
	w.place = port->state == RNIC_PORT_UP ? DEVICE_PLACE_UP : DEVICE_PLACE_DOWN;
	w.open = port->state == RNIC_PORT_UP || !all;
	if (p->cnt < p->max)
		p->want[p->cnt++] = w;
}

static void
add_named_ports(struct plan *p, const struct config_device *cfg)
{
	for (unsigned i = 0; i < p->cards->cnt; i++)
		add_port(p, cfg, &p->cards->ports[i]);
}

/* -- verbs: the second device of a port -- */

/* Hosts with AF_SMC may be peers and speak version 1 of SMC with this side. */
static bool
has_peers_of_version_1(const struct config *cfg)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (cfg->services[i].peer != SMCR_PEER_SMCRD)
			return cfg->smcr.smc_version != 2;
	return false;
}

static bool
has_gid(const struct plan *p, const struct verbs_gid *gid)
{
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->want[i].gid == gid)
			return true;
	return false;
}

/* Linux addresses version 1 by RoCE v1 GIDs and version 2 by RoCE v2 GIDs. If the entry has no GID type, a port with
 * both becomes one device for each. Its v1 GID is the first one of the interface, as in Linux. */
static void
add_v1_gids(struct plan *p)
{
	for (unsigned i = 0, cnt = p->cnt; i < cnt; i++) {
		struct device_want w = p->want[i];
		const struct verbs_gid *first = NULL;

		if (w.port == NULL || w.cfg->gid_type != CONFIG_GID_ANY || w.gid->type != RNIC_GID_ROCE_V2)
			continue;
		for (unsigned k = 0; k < w.port->gid_cnt; k++) {
			const struct verbs_gid *g = &w.port->gids[k];

			if (g->type == RNIC_GID_ROCE_V1 && g->ifindex == w.gid->ifindex &&
			    (first == NULL || g->index < first->index))
				first = g;
		}
		if (first == NULL || has_gid(p, first) || p->cnt == p->max)
			continue;
		w.gid = first;
		p->want[p->cnt++] = w;
	}
}

unsigned
device_plan(const struct config *cfg, const struct netifs *ifs, const struct device_cards *cards,
    struct device_want *out, unsigned max)
{
	struct plan p = { .ifs = ifs, .cards = cards, .want = out, .max = max };

	for (enum exactness exact = EXACT_ADDRESS; exact <= EXACT_ALL; exact++) {
		for (unsigned i = 0; i < cfg->device_cnt; i++)
			if (cfg->devices[i].type == CONFIG_DEVICE_VERBS && exactness(&cfg->devices[i]) == exact)
				add_named_ports(&p, &cfg->devices[i]);
		for (unsigned i = 0; i < cfg->device_cnt; i++)
			if (cfg->devices[i].type == CONFIG_DEVICE_SIW && exactness(&cfg->devices[i]) == exact)
				(exact == EXACT_ADDRESS ? add_address : add_interfaces)(&p, &cfg->devices[i]);
	}
	/* At the end, as there may be more than the engine accepts. */
	if (has_peers_of_version_1(cfg))
		add_v1_gids(&p);
	return p.cnt;
}

bool
device_plan_serves(const struct config_device *cfg, const struct device_want *want, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (want[i].cfg == cfg && want[i].open)
			return true;
	return false;
}

void
device_cards_forget(struct device_cards *c)
{
	free(c->ports);
	*c = (struct device_cards){ 0 };
}

void
device_cards_list(struct device_cards *c, int64_t now_ns)
{
	device_cards_forget(c);
	c->at_ns = now_ns;
	c->listed = true;
	c->why = "";
	c->rc = verbs_list(&c->ports, &c->cnt, &c->why);
}

const char *
device_gid_type_str(enum rnic_gid_type type)
{
	static const char *const words[] = {
		[RNIC_GID_NONE] = "none",
		[RNIC_GID_IB] = "IB",
		[RNIC_GID_ROCE_V1] = "RoCE v1",
		[RNIC_GID_ROCE_V2] = "RoCE v2",
	};

	return words[type];
}

char *
device_gid_format(const struct rnic_gid *gid, char buf[DEVICE_GID_MAX])
{
	if (inet_ntop(AF_INET6, gid->b, buf, DEVICE_GID_MAX) == NULL)
		buf[0] = '\0';
	return buf;
}

char *
device_where(const struct device_want *w, const char *sep, char *buf, size_t cap)
{
	char text[ADDR_STR_MAX], gid[DEVICE_GID_MAX];

	if (w->port != NULL)
		(void)snprintf(buf, cap, "card%s%s/%u gid%s%s gid_type%s\"%s\"", sep, w->port->dev, w->port->port, sep,
		    device_gid_format(&w->gid->gid, gid), sep, device_gid_type_str(w->gid->type));
	else if (sep[0] == ' ')
		(void)snprintf(buf, cap, "%s", addr_format(&w->addr, text, sizeof(text)));
	else
		(void)snprintf(buf, cap, "address%s%s", sep, addr_format(&w->addr, text, sizeof(text)));
	return buf;
}

char *
device_entry_name(const struct config_device *cfg, char *buf, size_t cap)
{
	char text[ADDR_STR_MAX];

	if (cfg->card[0] != '\0' && cfg->port != 0)
		(void)snprintf(buf, cap, "device \"%s\" port %u", cfg->card, cfg->port);
	else if (cfg->card[0] != '\0')
		(void)snprintf(buf, cap, "device \"%s\"", cfg->card);
	else if (cfg->interface[0] != '\0')
		(void)snprintf(buf, cap, "interface \"%s\"", cfg->interface);
	else
		(void)snprintf(buf, cap, "address %s", addr_format(&cfg->addr, text, sizeof(text)));
	return buf;
}

const char *
device_plan_why_not(const struct config_device *cfg, const struct netifs *ifs, const struct device_cards *cards)
{
	bool any_type = cfg->gid_type == CONFIG_GID_ANY, card = false, port = false;

	switch (exactness(cfg)) {
	case EXACT_ADDRESS:
		return "no port has this address as a GID";
	case EXACT_INTERFACE:
		return netifs_by_name(ifs, cfg->interface) != NULL ? "no card has a GID on this interface"
		                                                   : "there is no such interface";
	case EXACT_CARD:
		for (unsigned i = 0; i < cards->cnt; i++) {
			if (strcmp(cards->ports[i].dev, cfg->card) != 0)
				continue;
			card = true;
			port = port || cfg->port == 0 || cfg->port == cards->ports[i].port;
		}
		if (!card)
			return "there is no card of this name";
		if (!port)
			return "the card has no such port";
		return any_type ? "the port has no GID" : "the port has no GID of the type asked for";
	case EXACT_ALL:
		break;
	}
	return any_type ? "no port is up and has a GID" : "no port is up and has a GID of the type asked for";
}
