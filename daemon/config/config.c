/* The configuration, from file to struct config: libconfig parses the text, the table (config_keys.c) stores each
 * setting, then the whole is checked and completed. A load fails after all errors of a step were reported. */
#include "daemon/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/instance.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

#define DIGITS_MAX 24 /* any integer as text */

/* The entries of a setting's list. */
struct items {
	const char *text[CONFIG_ITEMS_MAX];
	char digits[CONFIG_ITEMS_MAX][DIGITS_MAX]; /* of integers */
	char of_port[CONFIG_TARGETS_MAX][CONFIG_TARGET_STR_MAX];
};

/* The entries of a list: strings, or strings and integers. */
static void
read_items(const config_setting_t *s, struct items *items, struct config_value *v)
{
	v->kind = CONFIG_V_LIST;
	v->item_cnt = (unsigned)config_setting_length(s);
	for (unsigned i = 0; i < v->item_cnt; i++) {
		const config_setting_t *item = config_setting_get_elem(s, i);
		int type = config_setting_type(item);
		bool is_int = type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;

		if (is_int && v->kind == CONFIG_V_LIST)
			v->kind = CONFIG_V_MIXED;
		else if (!is_int && type != CONFIG_TYPE_STRING)
			v->kind = CONFIG_V_OTHER;
		if (i >= CONFIG_ITEMS_MAX)
			continue;
		items->text[i] = is_int ? items->digits[i] : config_setting_get_string(item);
		if (is_int)
			snprintf(items->digits[i], DIGITS_MAX, "%lld", config_setting_get_int64(item));
	}
}

/* A libconfig setting as config_value. */
static struct config_value
read_value(const config_setting_t *s, struct items *items)
{
	const int type = config_setting_type(s);
	struct config_value v = { .kind = CONFIG_V_OTHER, .items = items->text };

	if (type == CONFIG_TYPE_BOOL) {
		v.kind = CONFIG_V_BOOL;
		v.num = config_setting_get_bool(s);
	} else if (type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64) {
		v.kind = CONFIG_V_INT;
		v.num = config_setting_get_int64(s);
	} else if (type == CONFIG_TYPE_STRING) {
		v.kind = CONFIG_V_TEXT;
		v.text = config_setting_get_string(s);
	} else if (type == CONFIG_TYPE_ARRAY || type == CONFIG_TYPE_LIST) {
		read_items(s, items, &v);
	}
	return v;
}

/* For an entry with a range of ports: name, address or targets of the service being read. */
static void
pick_port(const struct config_build *b, const struct config_key *key, struct items *items, struct config_value *v)
{
	if (key->type == CONFIG_T_NAME && v->kind == CONFIG_V_TEXT && b->range_port != 0) {
		snprintf(items->of_port[0], sizeof(items->of_port[0]), "%s-%u", v->text, b->range_port + b->range_nr);
		v->text = items->of_port[0];
	} else if ((key->type == CONFIG_T_LISTEN || key->type == CONFIG_T_TARGET) && v->kind == CONFIG_V_TEXT) {
		v->text = config_range_text(v->text, b->range_nr, items->of_port[0]);
	} else if (key->type == CONFIG_T_TARGET && v->kind == CONFIG_V_LIST) {
		for (unsigned i = 0; i < v->item_cnt && i < CONFIG_TARGETS_MAX; i++)
			items->text[i] = config_range_text(items->text[i], b->range_nr, items->of_port[i]);
	}
}

static void load_inner(struct config_build *, const struct config_section *, const struct config_key *,
    const config_setting_t *, void *base);

static void load_vias(struct config_build *, const struct config_section *, const struct config_key *,
    const config_setting_t *, struct config_service *);

static void
load_setting(struct config_build *b, const struct config_section *sec, const struct config_key *key,
    const config_setting_t *s, void *base)
{
	char why[CONFIG_WHY_MAX], *save = NULL;
	struct items items;
	struct config_value v = read_value(s, &items);

	if (key->type == CONFIG_T_INNER && config_setting_is_group(s)) {
		load_inner(b, sec, key, s, (char *)base + key->off);
		return;
	}
	if (key->type == CONFIG_T_VIAS && config_setting_is_list(s)) {
		load_vias(b, sec, key, s, base);
		return;
	}
	if (b->ranged)
		pick_port(b, key, &items, &v);
	config_value_show(&v);
	if (config_value_set(key, base, &v, why) == 0)
		return;
	for (char *one = strtok_r(why, "\n", &save); one != NULL; one = strtok_r(NULL, "\n", &save))
		config_error(b, config_place_of(s), "%s%s %s", sec->prefix, key->name, one);
}

/* From the group (may be NULL), or a default; an error when the setting is required. */
static void
load_key(struct config_build *b, const struct config_section *sec, const struct config_key *key,
    const config_setting_t *group, void *base)
{
	const config_setting_t *s = config_member(group, key->name);
	const struct config_service *svc = base;

	/* A default must fit the listening socket. In the table `listen` comes before all settings that depend on it. */
	if (s == NULL && (sec->place & (CONFIG_AT_INGRESS | CONFIG_AT_EGRESS)) != 0 &&
	    config_key_fits(key, svc->listen.ss_family))
		s = config_member(b->defaults[svc->kind], key->name);
	if (s != NULL)
		load_setting(b, sec, key, s, base);
	else if ((key->flags & CONFIG_REQUIRED) != 0)
		config_error(b, config_line(group, ""), "%s%s is missing", sec->prefix, key->name);
	else if (config_value_set_default(key, base) != 0)
		config_error(b, 0, "out of memory");
}

/* All settings of one place of the section. */
static void
load_group(struct config_build *b, const struct config_section *sec, enum config_place place,
    const config_setting_t *group, void *base)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & place) != 0)
			load_key(b, sec, k, group, base);
}

/* A key of another section, or the word of other programs for one of a service; NULL. */
static const char *
unknown_key_hint(const struct config_section *sec, const char *name, char buf[CONFIG_WHY_MAX])
{
	static const struct {
		const char *word, *key;
	} words[] = { { "bind", "listen" }, { "accept", "listen" }, { "server", "to" }, { "connect", "to" },
		{ "backend", "to" }, { "maxconn", "max_connections" } };
	const bool service = (sec->place & (CONFIG_AT_INGRESS | CONFIG_AT_EGRESS)) != 0;

	for (size_t i = 0; service && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, name) == 0) {
			snprintf(buf, CONFIG_WHY_MAX, ", \"%s\" is meant?", words[i].key);
			return buf;
		}
	for (const struct config_section *s = config_sections; s->name != NULL; s++) {
		if (s == sec || (s->place & sec->place) != 0 || config_key_find(s->place, name) == NULL)
			continue;
		snprintf(buf, CONFIG_WHY_MAX,
		    s->name[0] != '\0' ? ": it is a key of %s" : ": it is a key outside of sections", s->name);
		return buf;
	}
	return NULL;
}

static void
unknown_key(
    struct config_build *b, const struct config_section *sec, const config_setting_t *group, const config_setting_t *s)
{
	const char *name = config_setting_name(s), *like, *type, *hint;
	char buf[CONFIG_WHY_MAX];
	unsigned places = sec->place;

	/* A device has the settings of its type, if that is known. */
	if (places == CONFIG_AT_DEVICE && config_setting_lookup_string(group, "type", &type) == CONFIG_TRUE)
		places = strcmp(type, "verbs") == 0 ? CONFIG_AT_VERBS : CONFIG_AT_SIW;
	like = config_nearest(places, name);
	hint = unknown_key_hint(sec, name, buf);
	if (hint != NULL)
		config_error(b, config_place_of(s), "unknown key %s%s%s", sec->prefix, name, hint);
	else if (like != NULL)
		config_error(b, config_place_of(s), "unknown key %s%s, did you mean \"%s\"?", sec->prefix, name, like);
	else
		config_error(b, config_place_of(s), "unknown key %s%s", sec->prefix, name);
}

/* Reports settings that the group cannot have. An included file may have only lists. */
static void
find_unknown(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	const bool included = sec->place == CONFIG_AT_INCLUDED, has_sections = included || sec->place == CONFIG_AT_TOP;

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);
		const struct config_section *below = has_sections ? config_section_find(name) : NULL;

		if (below == NULL && config_key_find(included ? CONFIG_AT_TOP : sec->place, name) == NULL)
			unknown_key(b, sec, group, s);
		else if (included && (below == NULL || below->list_max == 0))
			config_error(b, config_place_of(s), "%s is allowed only in the main file, %s", name, b->path);
	}
}

/* A group in a service: its settings are below base. */
static void
load_inner(struct config_build *b, const struct config_section *sec, const struct config_key *key,
    const config_setting_t *group, void *base)
{
	char prefix[64];
	const struct config_section inner = { key->name, prefix, (enum config_place)key->max, 0 };

	(void)snprintf(prefix, sizeof(prefix), "%s%s.", sec->prefix, key->name);
	find_unknown(b, &inner, group);
	load_group(b, &inner, inner.place, group, base);
}

/* A list of groups: each has its settings in one entry. */
static void
load_vias(struct config_build *b, const struct config_section *sec, const struct config_key *key,
    const config_setting_t *list, struct config_service *svc)
{
	const int cnt = config_setting_length(list);

	svc->via = cnt > 0 && cnt <= CONFIG_ITEMS_MAX ? calloc((size_t)cnt, sizeof(*svc->via)) : NULL;
	if (svc->via == NULL) {
		config_error(b, config_place_of(list), "%s%s %s", sec->prefix, key->name,
		    cnt == 0 ? "is empty" : "has too many entries");
		return;
	}
	for (int i = 0; i < cnt; i++) {
		const config_setting_t *one = config_setting_get_elem(list, (unsigned)i);

		if (!config_setting_is_group(one))
			config_error(
			    b, config_place_of(one), "%s%s must have only groups, { ... }", sec->prefix, key->name);
		else
			load_inner(b, sec, key, one, &svc->via[svc->via_cnt++]);
	}
}

static void
load_device(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	struct config_device *dev = &b->cfg->devices[b->cfg->device_cnt];
	const config_setting_t *type = config_member(group, "type");
	unsigned errors = b->errors;
	enum config_place place;

	/* Without it the other settings cannot be checked. */
	load_key(b, sec, config_key_find(CONFIG_AT_DEVICE, "type"), group, dev);
	if (b->errors > errors)
		return;
	place = config_device_place(dev->type);
	if (dev->type == CONFIG_DEVICE_SIW && config_member(group, "interface") == NULL)
		snprintf(dev->name, sizeof(dev->name), "siw%u", b->cfg->device_cnt);
	dev->place = config_place_of(group);
	b->device_src[b->cfg->device_cnt++] = group;
	/* A setting of another type would have no effect, but is not a typing error. */
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);

		if (config_key_find(CONFIG_AT_DEVICE, name) != NULL && config_key_find(place, name) == NULL)
			config_error(b, config_place_of(s), "%s%s is not a setting of type \"%s\"", sec->prefix, name,
			    config_setting_get_string(type));
	}
	load_group(b, sec, place, group, dev);
}

/* Of a list, from all files so far. */
static unsigned
count_entries(const struct config *cfg, enum config_place place)
{
	unsigned cnt = 0;

	if (place == CONFIG_AT_DEVICE)
		return cfg->device_cnt;
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		cnt += config_service_place(cfg->services[i].kind) == place;
	return cnt;
}

/* An entry of ingress or egress: one service, or one for each port of its range. */
static void
load_services(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	const unsigned cnt = config_range_start(b, sec, group), errors = b->errors;
	const bool fits = cnt + count_entries(b->cfg, sec->place) <= sec->list_max;

	if (!fits)
		config_error(b, config_place_of(group), "%s has more than %u entries", sec->name, sec->list_max);
	/* Reports a mistake once, not for each service. */
	for (b->range_nr = 0; fits && b->range_nr < cnt && b->errors == errors; b->range_nr++) {
		struct config_service *svc = &b->cfg->services[b->cfg->service_cnt];

		b->service_src[b->cfg->service_cnt++] = group;
		svc->place = config_place_of(group);
		svc->kind = sec->place == CONFIG_AT_INGRESS ? CONFIG_INGRESS : CONFIG_EGRESS;
		load_group(b, sec, sec->place, group, svc);
	}
	b->ranged = false;
}

static void
load_list(struct config_build *b, const struct config_section *sec, const config_setting_t *root)
{
	const config_setting_t *list = config_member(root, sec->name);

	if (list == NULL)
		return;
	int type = config_setting_type(list), cnt = config_setting_length(list);
	unsigned line = config_place_of(list);
	/* libconfig parses [] as an empty array, which counts as an empty list. */
	if (type != CONFIG_TYPE_LIST && !(type == CONFIG_TYPE_ARRAY && cnt == 0)) {
		config_error(b, line, "%s must be a list, ( { ... }, ... )", sec->name);
		return;
	}
	if ((unsigned)cnt + count_entries(b->cfg, sec->place) > sec->list_max) {
		config_error(b, line, "%s has more than %u entries", sec->name, sec->list_max);
		return;
	}
	for (int i = 0; i < cnt; i++) {
		const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);

		if (!config_setting_is_group(s)) {
			config_error(b, config_place_of(s), "%s must have only groups, { ... }", sec->name);
			continue;
		}
		find_unknown(b, sec, s);
		(sec->place == CONFIG_AT_DEVICE ? load_device : load_services)(b, sec, s);
	}
}

static void
free_service(struct config_service *svc)
{
	config_targets_free(svc->to, svc->to_cnt);
	free(svc->allow);
	free(svc->allow_users);
	free(svc->accept_proxy);
	free(svc->clients);
	free(svc->to_allow);
	config_vias_free(svc->via, svc->via_cnt);
}

/* For one kind of services. Checked here, so that a mistake is reported once, not for each service. */
static void
load_defaults_of(struct config_build *b, enum config_kind kind, const config_setting_t *group)
{
	static const struct config_section sections[] = {
		[CONFIG_INGRESS] = { "defaults.ingress", "defaults.ingress.", CONFIG_AT_INGRESS, 0 },
		[CONFIG_EGRESS] = { "defaults.egress", "defaults.egress.", CONFIG_AT_EGRESS, 0 },
	};
	const struct config_section *sec = &sections[kind];
	struct config_service svc = { .kind = kind };
	unsigned errors = b->errors;

	if (!config_setting_is_group(group)) {
		config_error(b, config_place_of(group), "%s must be a group, { ... }", sec->name);
		return;
	}
	find_unknown(b, sec, group);
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		const config_setting_t *s = config_member(group, k->name);

		if ((k->where & sec->place) == 0 || s == NULL)
			continue;
		if ((k->flags & CONFIG_REQUIRED) != 0)
			config_error(b, config_place_of(s), "%s%s: each service needs its own", sec->prefix, k->name);
		else
			load_setting(b, sec, k, s, &svc);
	}
	free_service(&svc);
	if (b->errors == errors)
		b->defaults[kind] = group;
}

static void
load_defaults(struct config_build *b, const config_setting_t *group)
{
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);

		if (strcmp(name, "ingress") == 0)
			load_defaults_of(b, CONFIG_INGRESS, s);
		else if (strcmp(name, "egress") == 0)
			load_defaults_of(b, CONFIG_EGRESS, s);
		else
			config_error(b, config_place_of(s), "unknown key defaults.%s: it has ingress and egress", name);
	}
}

/* All but lists, from the main file. */
static void
load_groups(struct config_build *b)
{
	const config_setting_t *root = b->files[0].root;

	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++) {
		const config_setting_t *s = sec->place == CONFIG_AT_TOP ? root : config_member(root, sec->name);

		if (sec->list_max > 0)
			continue;
		if (s != NULL && !config_setting_is_group(s)) {
			config_error(b, config_place_of(s), "%s must be a group, { ... }", sec->name);
			continue;
		}
		if (s != NULL && sec->place == CONFIG_AT_DEFAULTS) {
			load_defaults(b, s);
			continue;
		}
		if (s != NULL)
			find_unknown(b, sec, s);
		load_group(b, sec, sec->place, s, b->cfg);
		if (sec->place == CONFIG_AT_CONTROL && config_member(s, "path") == NULL)
			instance_control_path(b->instance, b->cfg->control_path, sizeof(b->cfg->control_path));
	}
}

static void
build(struct config_build *b, unsigned flags)
{
	static const struct config_section included = { "", "", CONFIG_AT_INCLUDED, 0 };

	/* load_list enforces the limits. */
	b->cfg->services = calloc(2 * CONFIG_SERVICES_MAX, sizeof(*b->cfg->services));
	b->cfg->devices = calloc(SMCR_LINKS_MAX, sizeof(*b->cfg->devices));
	if (b->cfg->services == NULL || b->cfg->devices == NULL) {
		config_error(b, 0, "out of memory");
		return;
	}
	load_groups(b);
	if ((flags & CONFIG_NO_LOOKUP) == 0)
		config_files_include(b);
	for (unsigned i = 1; i < b->file_cnt; i++)
		if (b->files[i].root != NULL)
			find_unknown(b, &included, b->files[i].root);
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++)
		for (unsigned i = 0; sec->list_max > 0 && i < b->file_cnt; i++)
			load_list(b, sec, b->files[i].root);
	config_check(b);
	if (b->errors > 0 || (flags & CONFIG_NO_LOOKUP) != 0)
		return;
	config_look_up(b);
	if (b->errors == 0)
		config_load_tls(b);
	if (b->errors == 0 && b->cfg->device_cnt == 0)
		config_default_devices(b);
}

static int
config_parse_as(const char *path, const char *instance, const char *text, size_t len, unsigned flags, FILE *err,
    struct config **out)
{
	struct config_build b = { .cfg = calloc(1, sizeof(*b.cfg)), .err = err, .path = path, .instance = instance };

	if (b.cfg == NULL) {
		config_error(&b, 0, "out of memory");
		config_tell(&b);
		return -ENOMEM;
	}
	if ((size_t)snprintf(b.cfg->path, sizeof(b.cfg->path), "%s", path) >= sizeof(b.cfg->path))
		config_error(&b, 0, "the path is longer than %zu characters", sizeof(b.cfg->path) - 1);
	if (b.errors == 0 && config_files_open(&b, text, len) == 0)
		build(&b, flags);
	config_tell(&b);
	config_files_close(&b);
	if (b.errors > 0) {
		config_free(b.cfg);
		return b.again == b.errors ? -EAGAIN : -EINVAL;
	}
	*out = b.cfg;
	return 0;
}

int
config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out)
{
	return config_parse_as(path, NULL, text, len, flags, err, out);
}

int
config_load(const char *path, const char *instance, FILE *err, struct config **out)
{
	const char *why;
	size_t len;
	char *text = config_file_read(path, false, &len, &why);
	int rc = -EINVAL;

	if (text == NULL)
		fprintf(err, "%s: cannot be read: %s\n", path, why);
	else
		rc = config_parse_as(path, instance, text, len, 0, err, out);
	free(text);
	return rc;
}

const struct config_service *
config_connects_as_client(const struct config *cfg)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (cfg->services[i].client_address == CONFIG_CLIENT_CONNECT)
			return &cfg->services[i];
	return NULL;
}

bool
config_has_verbs(const struct config *cfg)
{
	for (unsigned i = 0; i < cfg->device_cnt; i++)
		if (cfg->devices[i].type == CONFIG_DEVICE_VERBS)
			return true;
	return false;
}

void
config_free(struct config *cfg)
{
	if (cfg == NULL)
		return;
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		free_service(&cfg->services[i]);
	for (unsigned i = 0; i < cfg->included_cnt; i++)
		free(cfg->included[i]);
	free(cfg->included);
	free(cfg->services);
	free(cfg->devices);
	free(cfg->mpa_peers);
	free(cfg->mpa_clients);
	free(cfg->metrics.allow);
	tls_ctx_put(cfg->tls_ctx);
	free(cfg);
}
