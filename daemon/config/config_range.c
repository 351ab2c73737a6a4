/* A service for each of a range of ports: what `listen`, `to` and `name` of each are. See config_int.h. */
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_int.h"

#define DIGITS "0123456789"

/* "HOST:FIRST-LAST". Numbers of any length: what is beyond 65535 is a mistake to tell. */
struct ports {
	int host_len;
	unsigned long first, last;
};

/* Is there a range at all? */
static bool
split(const char *text, struct ports *out)
{
	const char *colon = strrchr(text, ':'), *dash;
	size_t first_len, last_len;

	if (colon == NULL)
		return false;
	first_len = strspn(colon + 1, DIGITS);
	dash = colon + 1 + first_len;
	last_len = *dash == '-' ? strspn(dash + 1, DIGITS) : 0;
	if (first_len == 0 || last_len == 0 || dash[1 + last_len] != '\0')
		return false;
	*out = (struct ports){
		.host_len = (int)(colon - text),
		.first = strtoul(colon + 1, NULL, 10),
		.last = strtoul(dash + 1, NULL, 10),
	};
	return true;
}

/* Reports what is wrong with it; false then. */
static bool
is_right(struct config_build *b, const struct config_section *sec, const config_setting_t *group, const char *key,
    const struct ports *p)
{
	if (p->first == 0 || p->first > 65535 || p->last > 65535)
		config_error(b, config_line(group, key), "%s%s must have ports from 1 to 65535", sec->prefix, key);
	else if (p->first > p->last)
		config_error(b, config_line(group, key), "%s%s must have the lower port first", sec->prefix, key);
	else
		return true;
	return false;
}

enum config_range_kind
config_range_of(
    struct config_build *b, const struct config_section *sec, const config_setting_t *group, struct config_range *out)
{
	struct ports listen = { 0 }, to = { 0 };
	struct config_range r = { 0 };
	bool many, many_to;

	/* What is missing or of another type is an error of the service, whose ports do not matter then. */
	if (!config_setting_lookup_string(group, "name", &r.name) ||
	    !config_setting_lookup_string(group, "listen", &r.listen) ||
	    !config_setting_lookup_string(group, "to", &r.to))
		return CONFIG_RANGE_NONE;
	many = split(r.listen, &listen);
	many_to = split(r.to, &to);
	if (!many && !many_to)
		return CONFIG_RANGE_NONE;
	if (many != many_to) {
		config_error(b, config_line(group, many ? "listen" : "to"), "%s%s has a range of ports, %s has none",
		    sec->prefix, many ? "listen" : "to", many ? "to" : "listen");
		return CONFIG_RANGE_WRONG;
	}
	if (!is_right(b, sec, group, "listen", &listen) || !is_right(b, sec, group, "to", &to))
		return CONFIG_RANGE_WRONG;
	if (to.last - to.first != listen.last - listen.first) {
		config_error(b, config_line(group, "to"), "%sto has %lu ports, listen %lu", sec->prefix,
		    to.last - to.first + 1, listen.last - listen.first + 1);
		return CONFIG_RANGE_WRONG;
	}
	r.listen_len = listen.host_len;
	r.to_len = to.host_len;
	r.listen_port = (unsigned)listen.first;
	r.to_port = (unsigned)to.first;
	r.cnt = (unsigned)(listen.last - listen.first) + 1;
	*out = r;
	return CONFIG_RANGE_SOME;
}

const char *
config_range_text(const struct config_range *r, unsigned i, const char *key, char buf[CONFIG_TARGET_STR_MAX])
{
	if (strcmp(key, "name") == 0)
		snprintf(buf, CONFIG_TARGET_STR_MAX, "%s-%u", r->name, r->listen_port + i);
	else if (strcmp(key, "listen") == 0)
		snprintf(buf, CONFIG_TARGET_STR_MAX, "%.*s:%u", r->listen_len, r->listen, r->listen_port + i);
	else if (strcmp(key, "to") == 0)
		snprintf(buf, CONFIG_TARGET_STR_MAX, "%.*s:%u", r->to_len, r->to, r->to_port + i);
	else
		return NULL;
	return buf;
}
