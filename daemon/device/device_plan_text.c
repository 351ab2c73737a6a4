/* The plan in words: where a device is, and why there is none; see device_plan.h. */
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/device/device_cards.h"
#include "daemon/device/device_plan.h"

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

static const char *
why_not_card(const struct config_device *cfg, const struct device_view *v)
{
	bool card = false, port = false;

	for (unsigned i = 0; i < v->port_cnt; i++) {
		if (strcmp(v->ports[i].dev, cfg->card) != 0)
			continue;
		card = true;
		port = port || cfg->port == 0 || cfg->port == v->ports[i].port;
	}
	if (!card)
		return "there is no card of this name";
	if (!port)
		return "the card has no such port";
	return cfg->gid_type == CONFIG_GID_ANY ? "the port has no GID" : "the port has no GID of the type asked for";
}

const char *
device_plan_why_not(const struct config_device *cfg, const struct device_view *v)
{
	if (strcmp(cfg->card, CONFIG_ALL_CARDS) == 0 || strcmp(cfg->interface, CONFIG_ALL_INTERFACES) == 0)
		return cfg->gid_type == CONFIG_GID_ANY ? "no port is up and has a GID"
		                                       : "no port is up and has a GID of the type asked for";
	if (cfg->card[0] != '\0')
		return why_not_card(cfg, v);
	if (cfg->interface[0] == '\0')
		return "no port has this address as a GID";
	return v->ifs != NULL && netifs_by_name(v->ifs, cfg->interface) != NULL ? "no card has a GID on this interface"
	                                                                        : "there is no such interface";
}
