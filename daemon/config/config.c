/*
 * The configuration: from file to struct config. Reads the text, lets
 * libconfig parse it, stores each setting by the table (config_keys.c), then
 * has the whole checked and completed. All errors of a step are reported
 * before the load fails.
 */
#include "daemon/config/config.h"

#include <errno.h>
#include <libconfig.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

#define FILE_MAX (1u << 20)
#define TARGET_ADDRS_MAX 16

/* -- one setting -- */

static int
read_list(const config_setting_t *s, struct config_value *v)
{
	int cnt = config_setting_length(s);
	const char **items = calloc((size_t)cnt + 1, sizeof(*items));

	if (items == NULL)
		return -ENOMEM;
	v->kind = CONFIG_V_LIST;
	for (int i = 0; i < cnt; i++) {
		items[i] = config_setting_get_string_elem(s, i);
		if (items[i] == NULL) {
			free(items);
			v->kind = CONFIG_V_OTHER;
			return 0;
		}
	}
	v->items = items;
	v->item_cnt = (unsigned)cnt;
	return 0;
}

/* A setting of libconfig as config_value. 0 or -ENOMEM; the caller frees v->items. */
static int
read_value(const config_setting_t *s, struct config_value *v)
{
	*v = (struct config_value){ .kind = CONFIG_V_OTHER };
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_BOOL:
		v->kind = CONFIG_V_BOOL;
		v->num = config_setting_get_bool(s);
		return 0;
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		v->kind = CONFIG_V_INT;
		v->num = config_setting_get_int64(s);
		return 0;
	case CONFIG_TYPE_STRING:
		v->kind = CONFIG_V_TEXT;
		v->text = config_setting_get_string(s);
		return 0;
	case CONFIG_TYPE_ARRAY:
	case CONFIG_TYPE_LIST:
		return read_list(s, v);
	default:
		return 0;
	}
}

static void
load_setting(struct config_build *b, const struct config_section *sec, const struct config_key *key,
    const config_setting_t *s, void *base)
{
	char why[CONFIG_WHY_MAX];
	struct config_value v;

	if (read_value(s, &v) != 0) {
		config_error(b->rep, config_setting_source_line(s), "out of memory");
		return;
	}
	if (config_value_set(key, base, &v, why) != 0)
		config_error(b->rep, config_setting_source_line(s), "%s%s %s", sec->prefix, key->name, why);
	free((void *)v.items);
}

/* -- groups of settings -- */

/* All settings of one place of the section: defaults for what the group (may be NULL) does not have, errors for what it
 * lacks. */
static void
load_group(struct config_build *b, const struct config_section *sec, enum config_place place,
    const config_setting_t *group, void *base)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		const config_setting_t *s = config_member(group, k->name);

		if ((k->where & place) == 0)
			continue;
		if (s != NULL)
			load_setting(b, sec, k, s, base);
		else if ((k->flags & CONFIG_REQUIRED) != 0)
			config_error(b->rep, config_line(group, ""), "%s%s is missing", sec->prefix, k->name);
		else if (config_value_set_default(k, base) != 0)
			config_error(b->rep, 0, "out of memory");
	}
}

static void
find_unknown(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);

		if (config_key_find(sec->place, name) != NULL)
			continue;
		if (sec->place == CONFIG_AT_TOP && config_section_find(name) != NULL)
			continue;
		config_error(b->rep, config_setting_source_line(s), "unknown key %s%s", sec->prefix, name);
	}
}

/* Settings of another type are no typing errors, but would have no effect. */
static void
find_foreign(struct config_build *b, enum config_place place, const char *type, const config_setting_t *group)
{
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const char *name = config_setting_name(s);

		if (config_key_find(CONFIG_AT_DEVICE, name) != NULL && config_key_find(place, name) == NULL)
			config_error(b->rep, config_setting_source_line(s),
			    "devices.%s is not a setting of type \"%s\"", name, type);
	}
}

static void
load_device(struct config_build *b, const struct config_section *sec, const config_setting_t *group)
{
	struct config_device *dev = &b->cfg->devices[b->cfg->device_cnt];
	const config_setting_t *type = config_member(group, "type");
	const struct config_key *key = config_key_find(CONFIG_AT_DEVICE, "type");
	unsigned errors = b->rep->errors;
	enum config_place place;

	/* Without it nothing is known of the others. */
	if (type == NULL)
		config_error(b->rep, config_line(group, ""), "%s%s is missing", sec->prefix, key->name);
	else
		load_setting(b, sec, key, type, dev);
	if (b->rep->errors > errors)
		return;
	place = config_device_place(dev->type);
	if (dev->type == CONFIG_DEVICE_SIW && config_member(group, "interface") == NULL)
		snprintf(dev->name, sizeof(dev->name), "siw%u", b->cfg->device_cnt);
	b->device_src[b->cfg->device_cnt++] = group;
	find_foreign(b, place, config_setting_get_string(type), group);
	load_group(b, sec, place, group, dev);
}

static void
load_list(struct config_build *b, const struct config_section *sec, const config_setting_t *list)
{
	int type = config_setting_type(list), cnt = config_setting_length(list);
	struct config_service *svc;

	/* libconfig takes [] for an empty array, which is as good as an empty list. */
	if (type != CONFIG_TYPE_LIST && !(type == CONFIG_TYPE_ARRAY && cnt == 0)) {
		config_error(
		    b->rep, config_setting_source_line(list), "%s must be a list, ( { ... }, ... )", sec->name);
		return;
	}
	if ((unsigned)cnt > sec->list_max) {
		config_error(
		    b->rep, config_setting_source_line(list), "%s has more than %u entries", sec->name, sec->list_max);
		return;
	}
	for (int i = 0; i < cnt; i++) {
		const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);

		if (!config_setting_is_group(s)) {
			config_error(
			    b->rep, config_setting_source_line(s), "%s must have only groups, { ... }", sec->name);
			continue;
		}
		find_unknown(b, sec, s);
		if (sec->place == CONFIG_AT_DEVICE) {
			load_device(b, sec, s);
			continue;
		}
		svc = &b->cfg->services[b->cfg->service_cnt];
		b->service_src[b->cfg->service_cnt++] = s;
		svc->kind = sec->place == CONFIG_AT_INGRESS ? CONFIG_INGRESS : CONFIG_EGRESS;
		load_group(b, sec, sec->place, s, svc);
	}
}

static void
load_section(struct config_build *b, const struct config_section *sec, const config_setting_t *s)
{
	if (sec->list_max > 0) {
		if (s != NULL)
			load_list(b, sec, s);
		return;
	}
	if (s != NULL && !config_setting_is_group(s)) {
		config_error(b->rep, config_setting_source_line(s), "%s must be a group, { ... }", sec->name);
		return;
	}
	if (s != NULL)
		find_unknown(b, sec, s);
	load_group(b, sec, sec->place, s, b->cfg);
}

/* -- names -- */

static int
take_addrs(struct config_target *t, const struct addrinfo *list)
{
	t->addrs = calloc(TARGET_ADDRS_MAX, sizeof(*t->addrs));
	if (t->addrs == NULL)
		return -ENOMEM;
	for (const struct addrinfo *ai = list; ai != NULL && t->addr_cnt < TARGET_ADDRS_MAX; ai = ai->ai_next) {
		if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
			continue;
		memcpy(&t->addrs[t->addr_cnt], ai->ai_addr, ai->ai_addrlen);
		addr_set_port(&t->addrs[t->addr_cnt++], t->port);
	}
	return t->addr_cnt > 0 ? 0 : -ENOENT;
}

static void
lookup_target(struct config_build *b, unsigned line, struct config_target *t)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list;
	int rc = getaddrinfo(t->host, NULL, &hints, &list);

	if (rc != 0) {
		b->rep->again += rc == EAI_AGAIN;
		config_error(b->rep, line, "cannot resolve %s: %s", t->host,
		    rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		return;
	}
	rc = take_addrs(t, list);
	if (rc != 0)
		config_error(b->rep, line, "cannot resolve %s: %s", t->host,
		    rc == -ENOMEM ? "out of memory" : "no IPv4 or IPv6 address");
	freeaddrinfo(list);
}

/* -- the whole -- */

static unsigned
list_length(const config_setting_t *root, const char *name)
{
	const config_setting_t *s = config_setting_get_member(root, name);

	return s != NULL ? (unsigned)config_setting_length(s) : 0;
}

static void
build(struct config_build *b, const config_setting_t *root, unsigned flags)
{
	/* Room for all that the lists name; load_list enforces the limits. One more keeps calloc from 0. */
	unsigned services = list_length(root, "ingress") + list_length(root, "egress") + 1;
	unsigned devices = list_length(root, "devices") + SMCR_LINKS_MAX;

	b->cfg->services = calloc(services, sizeof(*b->cfg->services));
	b->service_src = calloc(services, sizeof(*b->service_src));
	b->cfg->devices = calloc(devices, sizeof(*b->cfg->devices));
	b->device_src = calloc(devices, sizeof(*b->device_src));
	if (b->cfg->services == NULL || b->service_src == NULL || b->cfg->devices == NULL || b->device_src == NULL) {
		config_error(b->rep, 0, "out of memory");
		return;
	}
	b->top_src = root;
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++)
		load_section(b, sec, sec->place == CONFIG_AT_TOP ? root : config_setting_get_member(root, sec->name));
	config_check(b);
	if (b->rep->errors > 0 || (flags & CONFIG_NO_LOOKUP) != 0)
		return;
	for (unsigned i = 0; i < b->cfg->service_cnt; i++) {
		struct config_target *t = &b->cfg->services[i].to;

		if (t->addr_cnt == 0 && t->host[0] != '\0')
			lookup_target(b, config_line(b->service_src[i], "to"), t);
	}
	if (b->rep->errors == 0 && b->cfg->device_cnt == 0)
		config_default_devices(b);
}

static void
parse_text(struct config_build *b, const char *text, unsigned flags)
{
	config_t lc;

	config_init(&lc);
	if (config_read_string(&lc, text) == CONFIG_TRUE)
		build(b, config_root_setting(&lc), flags);
	else
		config_error(b->rep, (unsigned)config_error_line(&lc), "%s", config_error_text(&lc));
	free(b->service_src);
	free(b->device_src);
	config_destroy(&lc);
}

int
config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out)
{
	struct config_report rep = { .err = err, .path = path };
	struct config_build b = { .rep = &rep };

	b.cfg = calloc(1, sizeof(*b.cfg));
	if (b.cfg == NULL) {
		config_error(&rep, 0, "out of memory");
		return -ENOMEM;
	}
	if (strlen(path) >= sizeof(b.cfg->path))
		config_error(&rep, 0, "the path is longer than %zu characters", sizeof(b.cfg->path) - 1);
	else
		strcpy(b.cfg->path, path);
	if (rep.errors == 0 && config_scan(&rep, text, len))
		parse_text(&b, text, flags);
	if (rep.errors > 0) {
		config_free(b.cfg);
		return rep.again == rep.errors ? -EAGAIN : -EINVAL;
	}
	*out = b.cfg;
	return 0;
}

/* The file's text with a NUL behind it; NULL with *why. */
static char *
read_file(const char *path, size_t *len, const char **why)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	struct stat st;

	*why = strerror(errno);
	if (f == NULL)
		return NULL;
	if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
		*why = "is a directory";
	} else if ((text = malloc(FILE_MAX + 1)) == NULL) {
		*why = "out of memory";
	} else {
		*len = fread(text, 1, FILE_MAX + 1, f);
		*why = ferror(f) ? strerror(errno) : *len > FILE_MAX ? "larger than 1 MiB" : NULL;
	}
	fclose(f);
	if (*why != NULL) {
		free(text);
		return NULL;
	}
	text[*len] = '\0';
	return text;
}

int
config_load(const char *path, FILE *err, struct config **out)
{
	const char *why;
	size_t len;
	char *text = read_file(path, &len, &why);
	int rc;

	if (text == NULL) {
		fprintf(err, "%s: cannot be read: %s\n", path, why);
		return -EINVAL;
	}
	rc = config_parse(path, text, len, 0, err, out);
	free(text);
	return rc;
}

void
config_free(struct config *cfg)
{
	if (cfg == NULL)
		return;
	for (unsigned i = 0; cfg->services != NULL && i < cfg->service_cnt; i++) {
		free(cfg->services[i].to.addrs);
		free(cfg->services[i].allow);
	}
	free(cfg->services);
	free(cfg->devices);
	free(cfg->mpa_peers);
	free(cfg->mpa_clients);
	free(cfg);
}
