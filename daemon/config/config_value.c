/* Values of settings, from text to struct config: see config_value.h. Addresses are in config_value_net.c, the way
 * back to text in config_value_out.c. */
#include "daemon/config/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_value_int.h"

const struct value_unit value_size_units[] = {
	{ "G", 1u << 30 },
	{ "M", 1u << 20 },
	{ "K", 1u << 10 },
	{ "", 1 },
	{ NULL, 0 },
};
const struct value_unit value_time_units[] = {
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
	{ NULL, 0 },
};
const struct value_unit value_micro_units[] = {
	{ "s", 1000000 },
	{ "ms", 1000 },
	{ "us", 1 },
	{ NULL, 0 },
};
static const struct value_unit no_units[] = {
	{ "", 1 },
	{ NULL, 0 },
};

int
value_bad(char why[CONFIG_WHY_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, CONFIG_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *
value_show(const struct config_value *v, char buf[VALUE_SHOW_MAX])
{
	size_t n = 0;

	switch (v->kind) {
	case CONFIG_V_BOOL:
		return v->num ? "true" : "false";
	case CONFIG_V_INT:
		snprintf(buf, VALUE_SHOW_MAX, "%lld", v->num);
		return buf;
	case CONFIG_V_TEXT:
		buf[n++] = '"';
		for (const char *p = v->text; *p != '\0' && n < VALUE_SHOW_MAX - 6; p++)
			buf[n++] = (char)(isprint((unsigned char)*p) ? *p : '?');
		snprintf(buf + n, VALUE_SHOW_MAX - n, "%s", strlen(v->text) >= VALUE_SHOW_MAX - 6 ? "...\"" : "\"");
		return buf;
	case CONFIG_V_LIST:
		return "a list";
	case CONFIG_V_OTHER:
		break;
	}
	return "something else";
}

const char *
config_type_words(enum config_type type)
{
	switch (type) {
	case CONFIG_T_BOOL:
		return "true or false";
	case CONFIG_T_UINT:
		return "an integer";
	case CONFIG_T_SIZE:
		return "bytes as an integer, or a string like \"64K\"";
	case CONFIG_T_US:
		return "seconds as an integer, or a string like \"50us\" or \"1ms\"";
	case CONFIG_T_MS:
		return "seconds as an integer, or a string like \"500ms\" or \"30s\"";
	case CONFIG_T_SECONDS:
		return "seconds as an integer, or a string like \"30s\" or \"10m\"";
	case CONFIG_T_WORD:
		return "a string";
	case CONFIG_T_WORDS:
		return "a list of strings, [ \"...\", ... ]";
	case CONFIG_T_NAME:
		return "a string of letters, digits, '.', '_' and '-'";
	case CONFIG_T_IFNAME:
		return "a string, the name of an interface or \"*\"";
	case CONFIG_T_CARD:
		return "a string, the name of an RDMA card or \"*\"";
	case CONFIG_T_PATH:
		return "a string, an absolute path";
	case CONFIG_T_MODE:
		return "a string of octal digits like \"0660\"";
	case CONFIG_T_ADDR:
		return "a string, an IPv4 or IPv6 address";
	case CONFIG_T_LISTEN:
		return "a string \"address:port\" or \"[IPv6 address]:port\"";
	case CONFIG_T_TARGET:
		return "a string \"host:port\" or \"[IPv6 address]:port\"";
	case CONFIG_T_NETS:
		return "a list of strings, [ \"address/prefix\", ... ]";
	case CONFIG_T_PORTS:
		return "a port or a string \"first-last\"";
	}
	return "?";
}

int
value_bad_type(const struct config_key *key, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char buf[VALUE_SHOW_MAX];

	return value_bad(why, "must be %s, not %s", config_type_words(key->type), value_show(v, buf));
}

/* -- numbers -- */

/* Digits and a unit of the list. 0, -EINVAL not such a text, -ERANGE more than 64 bits. */
static int
parse_scaled(const char *text, const struct value_unit *units, uint64_t *out)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	for (; units->text != NULL; units++) {
		if (strcmp(end, units->text) != 0)
			continue;
		if (errno == ERANGE || n > UINT64_MAX / units->factor)
			return -ERANGE;
		*out = n * units->factor;
		return 0;
	}
	return -EINVAL;
}

int
value_parse_uint(const char *text, uint64_t *out)
{
	return parse_scaled(text, no_units, out);
}

/* n is in range, so it fits. */
static void
store_number(const struct config_key *key, void *base, uint64_t n)
{
	void *p = (char *)base + key->off;

	switch (key->len) {
	case sizeof(uint8_t):
		*(uint8_t *)p = (uint8_t)n;
		break;
	case sizeof(uint16_t):
		*(uint16_t *)p = (uint16_t)n;
		break;
	case sizeof(uint64_t):
		*(uint64_t *)p = n;
		break;
	default:
		*(uint32_t *)p = (uint32_t)n;
		break;
	}
}

int
value_bad_range(const struct config_key *key, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char min[32], max[32], buf[VALUE_SHOW_MAX];

	config_number_format(key, key->min, min, sizeof(min));
	config_number_format(key, key->max, max, sizeof(max));
	return value_bad(why, "must be %sfrom %s to %s, not %s", (key->flags & CONFIG_OR_ZERO) != 0 ? "0 or " : "", min,
	    max, value_show(v, buf));
}

static int
set_checked(
    const struct config_key *key, void *base, uint64_t n, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char buf[VALUE_SHOW_MAX];

	if ((n < key->min || n > key->max) && !(n == 0 && (key->flags & CONFIG_OR_ZERO) != 0))
		return value_bad_range(key, v, why);
	if ((key->flags & CONFIG_POW2) != 0 && (n & (n - 1)) != 0)
		return value_bad(why, "must be a power of two, not %s", value_show(v, buf));
	store_number(key, base, n);
	return 0;
}

static const struct value_unit *
units_of(const struct config_key *key)
{
	if (key->type == CONFIG_T_MS || key->type == CONFIG_T_SECONDS)
		return value_time_units;
	return key->type == CONFIG_T_US ? value_micro_units : value_size_units;
}

static int
set_number(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct value_unit *units = units_of(key);
	uint64_t n, second = 1; /* an integer of a time means seconds */
	char buf[VALUE_SHOW_MAX];
	int rc = 0;

	if (v->kind == CONFIG_V_INT && v->num < 0)
		return value_bad_range(key, v, why);
	if (units == value_time_units)
		second = 1000;
	else if (units == value_micro_units)
		second = 1000000;
	if (v->kind == CONFIG_V_INT)
		n = (uint64_t)v->num > UINT64_MAX / second ? UINT64_MAX : (uint64_t)v->num * second;
	else if (v->kind == CONFIG_V_TEXT && key->type != CONFIG_T_UINT)
		rc = parse_scaled(v->text, units, &n);
	else
		return value_bad_type(key, v, why);
	if (rc == -ERANGE)
		return value_bad_range(key, v, why);
	if (rc != 0)
		return value_bad_type(key, v, why);
	if (key->type == CONFIG_T_SECONDS) {
		if (n % 1000 != 0)
			return value_bad(why, "must be whole seconds, not %s", value_show(v, buf));
		n /= 1000;
	}
	return set_checked(key, base, n, v, why);
}

static int
set_mode(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	unsigned long n;
	char *end;

	if (v->kind != CONFIG_V_TEXT || !isdigit((unsigned char)v->text[0]))
		return value_bad_type(key, v, why);
	n = strtoul(v->text, &end, 8);
	if (*end != '\0')
		return value_bad_type(key, v, why);
	return set_checked(key, base, n, v, why);
}

static int
set_bool(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_BOOL)
		return value_bad_type(key, v, why);
	*(bool *)(void *)((char *)base + key->off) = v->num != 0;
	return 0;
}

/* -- words -- */

static const struct config_word *
find_word(const struct config_key *key, const char *text)
{
	for (const struct config_word *w = key->words; w->text != NULL; w++)
		if (strcmp(w->text, text) == 0)
			return w;
	return NULL;
}

static int
bad_word(const struct config_key *key, const char *text, char why[CONFIG_WHY_MAX])
{
	const struct config_value v = { .kind = CONFIG_V_TEXT, .text = text };
	char list[128] = "", buf[VALUE_SHOW_MAX];
	size_t n = 0;

	for (const struct config_word *w = key->words; w->text != NULL && n < sizeof(list); w++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\"", n > 0 ? ", " : "", w->text);
	return value_bad(why, "must be one of %s, not %s", list, value_show(&v, buf));
}

static int
set_word(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct config_word *w;

	if (v->kind != CONFIG_V_TEXT)
		return value_bad_type(key, v, why);
	w = find_word(key, v->text);
	if (w == NULL)
		return bad_word(key, v->text, why);
	store_number(key, base, w->value);
	return 0;
}

static int
set_words(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	unsigned bits = 0;

	if (v->kind != CONFIG_V_LIST)
		return value_bad_type(key, v, why);
	for (unsigned i = 0; i < v->item_cnt; i++) {
		const struct config_word *w = find_word(key, v->items[i]);

		if (w == NULL)
			return bad_word(key, v->items[i], why);
		bits |= w->value;
	}
	if (bits == 0)
		return value_bad(why, "must not be empty");
	store_number(key, base, bits);
	return 0;
}

/* -- strings -- */

bool
value_is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static int
set_name(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_TEXT)
		return value_bad_type(key, v, why);
	if (v->text[0] == '\0')
		return value_bad(why, "must not be empty");
	if (strlen(v->text) >= key->len)
		return value_bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (!value_is_name_char(*p))
			return value_bad_type(key, v, why);
	strcpy((char *)base + key->off, v->text);
	return 0;
}

/* Cards are named like interfaces. */
static int
set_ifname(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind == CONFIG_V_TEXT && strcmp(v->text, "*") == 0) {
		strcpy((char *)base + key->off, v->text);
		return 0;
	}
	if (v->kind == CONFIG_V_TEXT && (strcmp(v->text, ".") == 0 || strcmp(v->text, "..") == 0))
		return value_bad_type(key, v, why);
	return set_name(key, base, v, why);
}

static int
set_path(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_TEXT || v->text[0] != '/')
		return value_bad_type(key, v, why);
	if (strlen(v->text) >= key->len)
		return value_bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p))
			return value_bad(why, "has a control character");
	strcpy((char *)base + key->off, v->text);
	return 0;
}

/* -- all types -- */

int
config_value_set(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	switch (key->type) {
	case CONFIG_T_BOOL:
		return set_bool(key, base, v, why);
	case CONFIG_T_UINT:
	case CONFIG_T_SIZE:
	case CONFIG_T_US:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
		return set_number(key, base, v, why);
	case CONFIG_T_WORD:
		return set_word(key, base, v, why);
	case CONFIG_T_WORDS:
		return set_words(key, base, v, why);
	case CONFIG_T_NAME:
		return set_name(key, base, v, why);
	case CONFIG_T_IFNAME:
	case CONFIG_T_CARD:
		return set_ifname(key, base, v, why);
	case CONFIG_T_PATH:
		return set_path(key, base, v, why);
	case CONFIG_T_MODE:
		return set_mode(key, base, v, why);
	case CONFIG_T_ADDR:
		return value_set_addr(key, base, v, why);
	case CONFIG_T_LISTEN:
		return value_set_listen(key, base, v, why);
	case CONFIG_T_TARGET:
		return value_set_target(key, base, v, why);
	case CONFIG_T_NETS:
		return value_set_nets(key, base, v, why);
	case CONFIG_T_PORTS:
		return value_set_ports(key, base, v, why);
	}
	return value_bad(why, "has an unknown type");
}

int
config_value_set_default(const struct config_key *key, void *base)
{
	struct config_value v = { .kind = CONFIG_V_TEXT, .text = key->def };
	const char *items[8];
	char why[CONFIG_WHY_MAX], copy[64], *save = NULL;

	if (key->def == NULL)
		return 0;
	if (key->type == CONFIG_T_BOOL) {
		v.kind = CONFIG_V_BOOL;
		v.num = strcmp(key->def, "true") == 0;
	} else if (key->type != CONFIG_T_MODE && key->def[strspn(key->def, "0123456789")] == '\0') {
		v.kind = CONFIG_V_INT;
		v.num = atoll(key->def);
	} else if (key->type == CONFIG_T_WORDS) {
		v.kind = CONFIG_V_LIST;
		v.items = items;
		snprintf(copy, sizeof(copy), "%s", key->def);
		for (char *p = strtok_r(copy, ", ", &save); p != NULL && v.item_cnt < 8;
		     p = strtok_r(NULL, ", ", &save))
			items[v.item_cnt++] = p;
	}
	return config_value_set(key, base, &v, why);
}
