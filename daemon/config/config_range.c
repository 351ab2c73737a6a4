/* One service for each port of a range: the ports, and the `listen` and `to` of each service. See config_int.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

/* `listen`, or a target. */
struct end {
	const config_setting_t *at;
	const char *key, *text;    /* NULL: not a string */
	bool many;                 /* "HOST:FIRST-LAST" */
	int host_len;              /* of these */
	unsigned long first, last; /* of any length: a port above 65535 is reported */
	const char *rest;          /* many: behind it, "" or CONFIG_BACKUP */
};

static struct end
end_of(const char *key, const config_setting_t *at, const char *text)
{
	struct end e = { .at = at, .key = key, .text = text };
	const char *colon = text != NULL ? strrchr(text, ':') : NULL;
	char *rest;

	if (colon == NULL || !isdigit((unsigned char)colon[1]))
		return e;
	e.host_len = (int)(colon - text);
	e.first = strtoul(colon + 1, &rest, 10);
	if (rest[0] != '-' || !isdigit((unsigned char)rest[1]))
		return e;
	e.last = strtoul(rest + 1, &rest, 10);
	e.many = *rest == '\0' || strcmp(rest, CONFIG_BACKUP) == 0;
	e.rest = rest;
	return e;
}

static struct end
end_at(const char *key, const config_setting_t *s)
{
	return end_of(key, s, s != NULL ? config_setting_get_string(s) : NULL);
}

/* One, or those of a list. Returns their number; 0: missing, or of another type. */
static unsigned
targets_of(const config_setting_t *s, struct end to[CONFIG_TARGETS_MAX])
{
	unsigned cnt;

	if (s == NULL || config_setting_is_group(s))
		return 0;
	if (!config_setting_is_aggregate(s)) {
		to[0] = end_at("to", s);
		return to[0].text != NULL;
	}
	cnt = (unsigned)config_setting_length(s);
	for (unsigned i = 0; i < cnt && cnt <= CONFIG_TARGETS_MAX; i++) {
		to[i] = end_at("to", config_setting_get_elem(s, i));
		if (to[i].text == NULL)
			return 0;
	}
	return cnt <= CONFIG_TARGETS_MAX ? cnt : 0;
}

/* Reports errors of its range; false then. */
static bool
is_right(struct config_build *b, const struct config_section *sec, const struct end *e)
{
	const bool in_range = e->first > 0 && e->first <= 65535 && e->last <= 65535;

	if (!e->many || (in_range && e->first <= e->last))
		return true;
	config_error(b, config_place_of(e->at), "%s%s %s must have %s", sec->prefix, e->key,
	    config_value_text(e->text).shown, in_range ? "the lower port first" : "ports from 1 to 65535");
	return false;
}

static unsigned
cnt_of(const struct end *e)
{
	return e->many ? (unsigned)(e->last - e->first) + 1 : 1;
}

/* Both are right; reports a mismatch, false then. */
static bool
config_range_fits(
    struct config_build *b, const struct config_section *sec, const struct end *listen, const struct end *to)
{
	const struct config_value target = config_value_text(to->text);

	if (listen->many && !to->many)
		config_error(b, config_place_of(listen->at), "%slisten has a range of ports, to %s has none",
		    sec->prefix, target.shown);
	else if (to->many && !listen->many)
		config_error(b, config_place_of(to->at), "%sto %s has a range of ports, listen has none", sec->prefix,
		    target.shown);
	else if (cnt_of(listen) != cnt_of(to))
		config_error(b, config_place_of(to->at), "%sto %s has %u ports, listen %u", sec->prefix, target.shown,
		    cnt_of(to), cnt_of(listen));
	else
		return true;
	return false;
}

unsigned
config_range_start(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	const struct end listen = end_at("listen", config_member(group, "listen"));
	struct end to[CONFIG_TARGETS_MAX];
	const unsigned to_cnt = targets_of(config_member(group, "to"), to);
	bool many = listen.many, right = is_right(b, sec, &listen);

	for (unsigned i = 0; i < to_cnt; i++) {
		many = many || to[i].many;
		right = is_right(b, sec, &to[i]) && right;
	}
	for (unsigned i = 0; i < to_cnt && right && many && listen.text != NULL; i++)
		right = config_range_fits(b, sec, &listen, &to[i]);
	b->ranged = many;
	b->range_port = listen.many ? (unsigned)listen.first : 0;
	return right ? cnt_of(&listen) : 0;
}

const char *
config_range_text(const char *text, unsigned nr, char buf[CONFIG_TARGET_STR_MAX])
{
	const struct end e = end_of("", NULL, text);

	if (!e.many)
		return text;
	snprintf(buf, CONFIG_TARGET_STR_MAX, "%.*s:%lu%s", e.host_len, text, e.first + nr, e.rest);
	return buf;
}
