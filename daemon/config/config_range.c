/* A service for each of a range of ports: what `listen`, `to` and `name` of each are. See config_int.h. */
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

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

/* `listen`, or a target. */
struct end {
	const config_setting_t *at;
	const char *key, *text; /* text is NULL: it is no string */
	bool many;              /* it has a range, ports */
	struct ports ports;
};

static struct end
end_of(const char *key, const config_setting_t *s)
{
	struct end e = { .at = s, .key = key, .text = s != NULL ? config_setting_get_string(s) : NULL };

	e.many = e.text != NULL && split(e.text, &e.ports);
	return e;
}

/* One, or those of a list. Returns how many; 0: it is missing, or of another type. */
static unsigned
targets_of(const config_setting_t *s, struct end to[CONFIG_TARGETS_MAX])
{
	unsigned cnt;

	if (s == NULL || config_setting_is_group(s))
		return 0;
	if (!config_setting_is_aggregate(s)) {
		to[0] = end_of("to", s);
		return to[0].text != NULL;
	}
	cnt = (unsigned)config_setting_length(s);
	for (unsigned i = 0; i < cnt && cnt <= CONFIG_TARGETS_MAX; i++) {
		to[i] = end_of("to", config_setting_get_elem(s, i));
		if (to[i].text == NULL)
			return 0;
	}
	return cnt <= CONFIG_TARGETS_MAX ? cnt : 0;
}

static const char *
show(const struct end *e, char buf[VALUE_SHOW_MAX])
{
	return value_show(&(struct config_value){ .kind = CONFIG_V_TEXT, .text = e->text }, buf);
}

/* Reports what is wrong with its range; false then. */
static bool
is_right(struct config_build *b, const struct config_section *sec, const struct end *e)
{
	const struct ports *p = &e->ports;
	char buf[VALUE_SHOW_MAX];

	if (!e->many)
		return true;
	if (p->first == 0 || p->first > 65535 || p->last > 65535)
		config_error(b, config_place_of(e->at), "%s%s %s must have ports from 1 to 65535", sec->prefix, e->key,
		    show(e, buf));
	else if (p->first > p->last)
		config_error(b, config_place_of(e->at), "%s%s %s must have the lower port first", sec->prefix, e->key,
		    show(e, buf));
	else
		return true;
	return false;
}

static unsigned
cnt_of(const struct end *e)
{
	return e->many ? (unsigned)(e->ports.last - e->ports.first) + 1 : 1;
}

/* Reports what does not fit; false then. Both are right. */
static bool
fits(struct config_build *b, const struct config_section *sec, const struct end *listen, const struct end *to)
{
	char buf[VALUE_SHOW_MAX];

	if (listen->many && !to->many)
		config_error(b, config_place_of(listen->at), "%slisten has a range of ports, to %s has none",
		    sec->prefix, show(to, buf));
	else if (to->many && !listen->many)
		config_error(b, config_place_of(to->at), "%sto %s has a range of ports, listen has none", sec->prefix,
		    show(to, buf));
	else if (cnt_of(listen) != cnt_of(to))
		config_error(b, config_place_of(to->at), "%sto %s has %u ports, listen %u", sec->prefix, show(to, buf),
		    cnt_of(to), cnt_of(listen));
	else
		return true;
	return false;
}

static struct config_range_end
first_of(const struct end *e)
{
	return (struct config_range_end){ e->text, e->ports.host_len, (unsigned)e->ports.first };
}

enum config_range_kind
config_range_of(
    struct config_build *b, const struct config_section *sec, const config_setting_t *group, struct config_range *out)
{
	const config_setting_t *targets = config_member(group, "to");
	const struct end listen = end_of("listen", config_member(group, "listen"));
	struct end to[CONFIG_TARGETS_MAX];
	struct config_range r = { .to_cnt = targets_of(targets, to) };
	bool many = listen.many, right = is_right(b, sec, &listen);

	for (unsigned i = 0; i < r.to_cnt; i++) {
		many = many || to[i].many;
		right = is_right(b, sec, &to[i]) && right;
	}
	if (!many)
		return CONFIG_RANGE_NONE;
	for (unsigned i = 0; i < r.to_cnt && right; i++) {
		right = listen.text == NULL || fits(b, sec, &listen, &to[i]);
		r.to[i] = first_of(&to[i]);
	}
	if (!right)
		return CONFIG_RANGE_WRONG;
	r.listen = first_of(&listen);
	r.to_is_list = r.to_cnt > 0 && config_setting_is_aggregate(targets);
	(void)config_setting_lookup_string(group, "name", &r.name);
	r.cnt = cnt_of(&listen);
	*out = r;
	return CONFIG_RANGE_SOME;
}

static const char *
end_text(const struct config_range_end *e, unsigned i, char buf[CONFIG_TARGET_STR_MAX])
{
	snprintf(buf, CONFIG_TARGET_STR_MAX, "%.*s:%u", e->host_len, e->text, e->port + i);
	return buf;
}

bool
config_range_value(const struct config_range *r, unsigned i, const char *key, struct config_range_texts *texts,
    struct config_value *out)
{
	struct config_value v = { .kind = CONFIG_V_TEXT, .text = texts->text[0], .items = texts->items };

	if (strcmp(key, "name") == 0 && r->name != NULL && r->listen.text != NULL) {
		snprintf(texts->text[0], sizeof(texts->text[0]), "%s-%u", r->name, r->listen.port + i);
	} else if (strcmp(key, "listen") == 0 && r->listen.text != NULL) {
		(void)end_text(&r->listen, i, texts->text[0]);
	} else if (strcmp(key, "to") == 0 && r->to_cnt > 0) {
		for (unsigned k = 0; k < r->to_cnt; k++)
			texts->items[k] = end_text(&r->to[k], i, texts->text[k]);
		v.kind = r->to_is_list ? CONFIG_V_LIST : CONFIG_V_TEXT;
		v.item_cnt = r->to_is_list ? r->to_cnt : 0;
	} else {
		return false;
	}
	*out = v;
	return true;
}
