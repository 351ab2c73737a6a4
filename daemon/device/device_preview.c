/* Wanted devices as text, without opening them; see device_preview.h. */
#include "daemon/device/device_preview.h"

#include <string.h>

#include "base/addr.h"
#include "daemon/device/netwatch.h"

static const char *
interface_name(const struct netifs *ifs, unsigned index)
{
	const struct netif *i = netifs_by_index(ifs, index);

	return i != NULL ? i->name : "unknown";
}

/* Why the place of a soft iWARP device is missing now. */
static const char *
why_no_place(const struct config_device *d, const struct netifs *ifs)
{
	if (d->interface[0] == '\0')
		return "the address may not be used yet";
	if (ifs != NULL && strcmp(d->interface, CONFIG_ALL_INTERFACES) != 0 &&
	    netifs_by_name(ifs, d->interface) == NULL)
		return "there is no such interface";
	return "it has no address";
}

static void
print_device(const struct device_want *w, const struct netifs *ifs, FILE *out)
{
	const char *state = w->place == DEVICE_PLACE_UP ? "up" : "down";
	const struct netif_addr *a = netifs_find(ifs, &w->addr);
	char text[ADDR_STR_MAX];

	if (w->port != NULL) {
		fprintf(out, "card %s (%s) port %u, interface %s, GID %s, %s, index %u, port %s\n", w->port->dev,
		    w->port->provider, w->port->port, interface_name(ifs, w->gid->ifindex),
		    device_gid_format(&w->gid->gid, text), device_gid_type_str(w->gid->type), w->gid->index, state);
		if (w->cfg->verbs.protection != RNIC_PROTECTED_NONE)
			fprintf(out, "  its protection (\"protected\") is not verified\n");
		return;
	}
	fprintf(out, "soft iWARP%s, address %s", w->cfg->siw.transport == SIW_SCTP ? " over SCTP" : "",
	    addr_format(&w->addr, text, sizeof(text)));
	if (a != NULL)
		fprintf(out, ", interface %s, %s\n", interface_name(ifs, a->index), state);
	else
		fputs(", which no interface has\n", out);
}

/* Does the host lack an address, other than loopback? process/preflight.c checks those of default devices. */
static bool
lacks_address(const struct config *cfg, const struct device_want *w, const struct netifs *ifs)
{
	return !cfg->devices_default && w->port == NULL && ifs != NULL && !addr_is_loopback(&w->addr) &&
	    netifs_find(ifs, &w->addr) == NULL;
}

void
device_preview_print(
    const struct config *cfg, const struct netifs *ifs, const struct device_cards *cards, FILE *out, FILE *warnings)
{
	struct device_want want[DEVICE_WANTS_MAX];
	unsigned cnt = device_plan(cfg, ifs, cards, want, DEVICE_WANTS_MAX);
	char text[DEVICE_WHERE_MAX], addr[ADDR_STR_MAX];

	for (unsigned i = 0; i < cnt; i++) {
		unsigned n = 1;

		if (!want[i].open)
			continue;
		/* The name that open_one() in devices.c will choose. */
		for (unsigned k = 0; k < i; k++)
			n += want[k].open && strcmp(want[k].base, want[i].base) == 0;
		fprintf(out, "device %s", want[i].base);
		if (n > 1)
			fprintf(out, ":%u", n);
		fputs(": ", out);
		print_device(&want[i], ifs, out);
		if (lacks_address(cfg, &want[i], ifs))
			config_advise(cfg, want[i].cfg->place, warnings,
			    "no interface has the address %s of device %s now",
			    addr_format(&want[i].addr, addr, sizeof(addr)), want[i].base);
	}
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		const struct config_device *d = &cfg->devices[i];
		const char *why = why_no_place(d, ifs);

		if (device_plan_serves(d, want, cnt))
			continue;
		if (d->type == CONFIG_DEVICE_VERBS)
			why = cards->rc != 0 ? cards->why : device_plan_why_not(d, ifs, cards);
		config_advise(
		    cfg, d->place, warnings, "no device for %s now: %s", device_entry_name(d, text, sizeof(text)), why);
	}
}

void
device_preview(const struct config *cfg, FILE *out, FILE *warnings)
{
	struct device_cards cards = { 0 };
	struct netifs ifs = { 0 };
	bool known = netwatch_read(&ifs) == 0;

	if (config_has_verbs(cfg))
		device_cards_list(&cards, 0);
	device_preview_print(cfg, known ? &ifs : NULL, &cards, out, warnings);
	device_cards_forget(&cards);
	netifs_fini(&ifs);
}
