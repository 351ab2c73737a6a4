/* Values of settings, see config_value.h: numbers, words, strings, and the table of types. */
#include "daemon/config/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tls/tls.h"

/* Largest first, so that printing uses the first that divides; the one with factor 1 ends the list. */
struct unit {
	const char *text;
	uint64_t factor;
};

/* A type of settings. `at` is the place of the value: base + key->off. */
struct type_ops {
	const char *words; /* the expected form: "a string \"address:port\"" */
	unsigned kinds;    /* accepted kinds of config_value, 1 << CONFIG_V_ */
	/* Stores *v. 0, VALUE_BAD_TYPE, or a negative errno with the reason in why, "" before. */
	int (*set)(const struct config_key *, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX]);
	void (*print)(const struct config_key *, const void *at, FILE *);
	bool (*equal)(const struct config_key *, const void *a, const void *b); /* NULL: key->len bytes are compared */
	const struct unit *units;                                               /* of a number with a unit; NULL */
	uint64_t int_factor;    /* unit of an integer, as a multiple of the smallest */
	uint64_t stored_factor; /* unit of the stored number */
};

static const struct type_ops types[CONFIG_T_PEERS + 1];

static const struct unit size_units[] = { { "G", 1u << 30 }, { "M", 1u << 20 }, { "K", 1u << 10 }, { "", 1 } };
static const struct unit time_units[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };
static const struct unit micro_units[] = { { "s", 1000000 }, { "ms", 1000 }, { "us", 1 } };
static const struct unit no_units[] = { { "", 1 } };

#define ONE_MAX 512 /* a reason */

int
value_bad(char why[CONFIG_WHY_MAX], const char *fmt, ...)
{
	const size_t len = strlen(why);
	char one[ONE_MAX];
	va_list ap;

	if (len >= CONFIG_WHY_MAX - ONE_MAX)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(one, sizeof(one), fmt, ap);
	va_end(ap);
	str_append(why, CONFIG_WHY_MAX, "%s%s", len > 0 ? "\n" : "", one);
	if (strlen(why) >= CONFIG_WHY_MAX - ONE_MAX)
		str_append(why, CONFIG_WHY_MAX, "\nhas more errors");
	return -EINVAL;
}

void
config_value_show(struct config_value *v)
{
	const int most = CONFIG_SHOWN_MAX - 7; /* quotes and dots fit */

	if (v->kind == CONFIG_V_TEXT)
		snprintf(v->shown, CONFIG_SHOWN_MAX, "\"%.*s%s", most, v->text,
		    strlen(v->text) > (size_t)most ? "...\"" : "\"");
	else if (v->kind == CONFIG_V_INT)
		snprintf(v->shown, CONFIG_SHOWN_MAX, "%lld", v->num);
	else if (v->kind == CONFIG_V_BOOL)
		strcpy(v->shown, v->num ? "true" : "false");
	else
		strcpy(v->shown, v->kind == CONFIG_V_LIST ? "a list" : "something else");
	for (char *p = v->shown; *p != '\0'; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
}

struct config_value
config_value_text(const char *text)
{
	struct config_value v = { .kind = CONFIG_V_TEXT, .text = text };

	config_value_show(&v);
	return v;
}

static int
bad_range(const struct config_key *key, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char min[32], max[32];

	config_number_format(key, key->min, min, sizeof(min));
	config_number_format(key, key->max, max, sizeof(max));
	return value_bad(why, "must be %s%sfrom %s to %s, not %s", (key->flags & CONFIG_OR_ZERO) != 0 ? "0 or " : "",
	    (key->flags & CONFIG_AUTO) != 0 ? "\"auto\" or " : "", min, max, v->shown);
}

/* -- numbers -- */

/* Digits and a unit of the list. 0, -EINVAL for another text, -ERANGE for more than 64 bits. */
static int
parse_scaled(const char *text, const struct unit *units, uint64_t *out)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	while (strcmp(end, units->text) != 0)
		if (units++->factor == 1)
			return -EINVAL;
	if (errno == ERANGE || n > UINT64_MAX / units->factor)
		return -ERANGE;
	*out = n * units->factor;
	return 0;
}

int
value_parse_uint(const char *text, uint64_t *out)
{
	return parse_scaled(text, no_units, out);
}

void
config_number_format(const struct config_key *key, uint64_t n, char *buf, size_t cap)
{
	const struct type_ops *t = &types[key->type];
	const struct unit *u = t->units != NULL && n != 0 ? t->units : no_units;

	if ((key->flags & CONFIG_AUTO) != 0 && n == 0) {
		snprintf(buf, cap, "auto");
		return;
	}
	if (key->type == CONFIG_T_MODE) {
		snprintf(buf, cap, "%04llo", (unsigned long long)n);
		return;
	}
	if (u != no_units)
		n *= t->stored_factor;
	while (n % u->factor != 0)
		u++;
	snprintf(buf, cap, "%llu%s", (unsigned long long)(n / u->factor), u->text);
}

static uint64_t
load_number(const struct config_key *key, const void *at)
{
	if (key->len == sizeof(uint8_t))
		return *(const uint8_t *)at;
	if (key->len == sizeof(uint16_t))
		return *(const uint16_t *)at;
	return key->len == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

/* n is in range, so it fits. */
static void
store_number(const struct config_key *key, void *at, uint64_t n)
{
	if (key->len == sizeof(uint8_t))
		*(uint8_t *)at = (uint8_t)n;
	else if (key->len == sizeof(uint16_t))
		*(uint16_t *)at = (uint16_t)n;
	else if (key->len == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)n;
	else
		*(uint64_t *)at = n;
}

static int
set_checked(const struct config_key *key, void *at, uint64_t n, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if ((n < key->min || n > key->max) && !(n == 0 && (key->flags & CONFIG_OR_ZERO) != 0))
		return bad_range(key, v, why);
	if ((key->flags & CONFIG_POW2) != 0 && (n & (n - 1)) != 0)
		return value_bad(why, "must be a power of two, not %s", v->shown);
	store_number(key, at, n);
	return 0;
}

static int
set_number(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct type_ops *t = &types[key->type];
	uint64_t n;
	int rc = 0;

	if ((key->flags & CONFIG_AUTO) != 0 && v->kind == CONFIG_V_TEXT && strcmp(v->text, "auto") == 0) {
		store_number(key, at, 0);
		return 0;
	}
	if (v->kind == CONFIG_V_TEXT)
		rc = t->units != NULL ? parse_scaled(v->text, t->units, &n) : -EINVAL;
	else if (v->num < 0)
		rc = -ERANGE;
	else
		n = (uint64_t)v->num > UINT64_MAX / t->int_factor ? UINT64_MAX : (uint64_t)v->num * t->int_factor;
	if (rc != 0)
		return rc == -ERANGE ? bad_range(key, v, why) : VALUE_BAD_TYPE;
	if (t->stored_factor != 1 && n % t->stored_factor != 0)
		return value_bad(why, "must be whole seconds, not %s", v->shown);
	return set_checked(key, at, n / t->stored_factor, v, why);
}

static void
print_number(const struct config_key *key, const void *at, FILE *out)
{
	char buf[32];

	config_number_format(key, load_number(key, at), buf, sizeof(buf));
	/* With a unit it is a string. */
	if (key->type == CONFIG_T_MODE || buf[strspn(buf, "0123456789")] != '\0')
		fprintf(out, "\"%s\"", buf);
	else
		fputs(buf, out);
}

int
value_set_ports(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	uint64_t first, last;
	uint16_t *range = at;
	char text[32] = "", *dash;

	if (v->kind == CONFIG_V_INT && (v->num < 0 || v->num > 65535))
		return bad_range(key, v, why);
	if (v->kind == CONFIG_V_INT || strlen(v->text) < sizeof(text))
		strcpy(text, v->kind == CONFIG_V_INT ? v->shown : v->text);
	dash = strchr(text, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (value_parse_uint(text, &first) != 0 || value_parse_uint(dash != NULL ? dash : text, &last) != 0)
		return VALUE_BAD_TYPE;
	if (last > 65535 || (first == 0 && last != 0))
		return value_bad(why, "must have ports from 1 to 65535 (or be 0 for any), not %s", v->shown);
	if (first > last)
		return value_bad(why, "must have the lower port first, not %s", v->shown);
	range[0] = (uint16_t)first;
	range[1] = (uint16_t)last;
	return 0;
}

static void
print_ports(const struct config_key *key, const void *at, FILE *out)
{
	const uint16_t *range = at;

	(void)key;
	fprintf(out, range[0] == range[1] ? "%u" : "\"%u-%u\"", range[0], range[1]);
}

static int
set_mode(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char *end;
	unsigned long n = strtoul(v->text, &end, 8);

	if (!isdigit((unsigned char)v->text[0]) || *end != '\0')
		return VALUE_BAD_TYPE;
	return set_checked(key, at, n, v, why);
}

static int
config_value_set_bool(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	(void)key;
	(void)why;
	*(bool *)at = v->num != 0;
	return 0;
}

static void
print_bool(const struct config_key *key, const void *at, FILE *out)
{
	(void)key;
	fputs(*(const bool *)at ? "true" : "false", out);
}

/* A word, or a list of words whose values are bits. */
static int
set_words(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	unsigned bits = 0, cnt = v->kind == CONFIG_V_LIST ? v->item_cnt : 1;
	const char *one = v->kind == CONFIG_V_INT ? v->shown : v->text;
	const char *const *items = v->kind == CONFIG_V_LIST ? v->items : &one;
	int rc = 0;

	for (unsigned i = 0; i < cnt; i++) {
		const struct config_word *w = key->words;
		char list[128] = "";

		for (; w->text != NULL && strcmp(w->text, items[i]) != 0; w++)
			str_append(list, sizeof(list), "%s\"%s\"", w != key->words ? ", " : "", w->text);
		if (w->text == NULL)
			rc = value_bad(why, "must be one of %s, not %s", list,
			    v->kind == CONFIG_V_INT ? v->shown : config_value_text(items[i]).shown);
		bits |= w->value;
	}
	if (cnt == 0)
		return value_bad(why, "must not be empty");
	if (rc == 0)
		store_number(key, at, bits);
	return rc;
}

/* A list, the word of this value, or, of CONFIG_T_US_WORD, a number that has no word. */
static void
print_words(const struct config_key *key, const void *at, FILE *out)
{
	uint64_t bits = load_number(key, at);
	const char *sep = "[ ";

	for (const struct config_word *w = key->words; w->text != NULL; w++) {
		if (key->type != CONFIG_T_WORDS && w->value == bits) {
			fprintf(out, isdigit((unsigned char)w->text[0]) ? "%s" : "\"%s\"", w->text);
			return;
		}
		if (key->type == CONFIG_T_WORDS && (w->value & bits) != 0) {
			fprintf(out, "%s\"%s\"", sep, w->text);
			sep = ", ";
		}
	}
	if (key->type == CONFIG_T_WORDS)
		fputs(" ]", out);
	else
		print_number(key, at, out);
}

static int
set_number_or_word(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	for (const struct config_word *w = key->words; w->text != NULL; w++) {
		if (strcmp(w->text, v->text) == 0) {
			store_number(key, at, w->value);
			return 0;
		}
	}
	return set_number(key, at, v, why);
}

/* -- strings -- */

bool
value_is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static int
set_name(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->text[0] == '\0')
		return value_bad(why, "must not be empty");
	if (strlen(v->text) >= key->len)
		return value_bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (!value_is_name_char(*p))
			return VALUE_BAD_TYPE;
	strcpy(at, v->text);
	return 0;
}

/* Cards are named like interfaces. */
static int
set_ifname(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (strcmp(v->text, ".") == 0 || strcmp(v->text, "..") == 0)
		return VALUE_BAD_TYPE;
	if (strcmp(v->text, "*") != 0)
		return set_name(key, at, v, why);
	strcpy(at, v->text);
	return 0;
}

static int
set_file(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (strlen(v->text) >= key->len)
		return value_bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p))
			return value_bad(why, "has a control character");
	strcpy(at, v->text);
	return 0;
}

static int
set_path(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	return v->text[0] == '/' ? set_file(key, at, v, why) : VALUE_BAD_TYPE;
}

static int
set_pattern(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	size_t len = strlen(v->text);

	/* This excludes files of editors and package managers beside it. */
	if (len < 5 || strcmp(v->text + len - 5, ".conf") != 0)
		return value_bad(why, "must end in \".conf\", like \"conf.d/*.conf\", not %s", v->shown);
	return set_file(key, at, v, why);
}

static void
print_string(const struct config_key *key, const void *at, FILE *out)
{
	(void)key;
	fputc('"', out);
	for (const char *p = at; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fputc('\\', out);
		fputc(*p, out);
	}
	fputc('"', out);
}

/* Entries have no control characters, so one separates them. */
static int
set_peers(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	size_t len = 0;
	char *out = at;

	for (unsigned i = 0; i < v->item_cnt; i++) {
		const char *one = v->items[i];

		if (one[0] == '\0' || one[strcspn(one, "\n\"\\")] != '\0')
			return value_bad(why, "has %s, which is no name", config_value_text(one).shown);
		const char *error = tls_name_error(one, false);
		if (error != NULL && tls_name_error(one, true) != NULL)
			return value_bad(why, "has %s, which %s", config_value_text(one).shown, error);
		len += strlen(one) + 1;
		if (len > key->len)
			return value_bad(why, "is longer than %zu characters", key->len - 1);
	}
	if (v->item_cnt == 0)
		return value_bad(why, "is empty");
	out[0] = '\0';
	for (unsigned i = 0; i < v->item_cnt; i++)
		str_append(out, key->len, "%s%s", i > 0 ? "\n" : "", v->items[i]);
	return 0;
}

static void
print_peers(const struct config_key *key, const void *at, FILE *out)
{
	const char *sep = "[ ";

	(void)key;
	for (const char *p = at; *p != '\0'; sep = ", ") {
		size_t len = strcspn(p, "\n");

		fprintf(out, "%s\"%.*s\"", sep, (int)len, p);
		p += len + (p[len] != '\0');
	}
	fputs(" ]", out);
}

static bool
string_equal(const struct config_key *key, const void *a, const void *b)
{
	(void)key;
	return strcmp(a, b) == 0;
}

/* -- the types -- */

#define BIT(kind) (1u << CONFIG_V_##kind)
#define TEXT_OR_INT (BIT(INT) | BIT(TEXT))
#define NO_UNITS NULL, 0, 0
#define NUMBER_OPS set_number, print_number, NULL
#define LIST_OPS value_set_list, value_print_list, value_list_equal, NO_UNITS
#define STRING_OPS print_string, string_equal, NO_UNITS

static const struct type_ops types[] = {
	[CONFIG_T_BOOL] = { "true or false", BIT(BOOL), config_value_set_bool, print_bool, NULL, NO_UNITS },
	[CONFIG_T_UINT] = { "an integer", BIT(INT), NUMBER_OPS, NULL, 1, 1 },
	[CONFIG_T_SIZE] = { "bytes as an integer, or a string like \"64K\"", TEXT_OR_INT, NUMBER_OPS, size_units, 1,
	    1 },
	[CONFIG_T_US] = { "seconds as an integer, or a string like \"50us\" or \"1ms\"", TEXT_OR_INT, NUMBER_OPS,
	    micro_units, 1000000, 1 },
	[CONFIG_T_US_WORD] = { "a word, or a string like \"50us\" or \"1ms\"", BIT(TEXT), set_number_or_word,
	    print_words, NULL, micro_units, 1000000, 1 },
	[CONFIG_T_MS] = { "seconds as an integer, or a string in ms, s, m or h like \"500ms\"", TEXT_OR_INT, NUMBER_OPS,
	    time_units, 1000, 1 },
	[CONFIG_T_SECONDS] = { "seconds as an integer, or a string like \"30s\" or \"10m\"", TEXT_OR_INT, NUMBER_OPS,
	    time_units, 1000, 1000 },
	[CONFIG_T_MODE] = { "a string of octal digits like \"0660\"", BIT(TEXT), set_mode, print_number, NULL,
	    NO_UNITS },
	[CONFIG_T_WORD] = { "a string", BIT(TEXT), set_words, print_words, NULL, NO_UNITS },
	[CONFIG_T_CHOICE] = { "a string or an integer", TEXT_OR_INT, set_words, print_words, NULL, NO_UNITS },
	[CONFIG_T_WORDS] = { "a list of strings, [ \"...\", ... ]", BIT(LIST), set_words, print_words, NULL, NO_UNITS },
	[CONFIG_T_NAME] = { "a string of letters, digits, '.', '_' and '-'", BIT(TEXT), set_name, STRING_OPS },
	[CONFIG_T_IFNAME] = { "a string, the name of an interface or \"*\"", BIT(TEXT), set_ifname, STRING_OPS },
	[CONFIG_T_CARD] = { "a string, the name of an RDMA card or \"*\"", BIT(TEXT), set_ifname, STRING_OPS },
	[CONFIG_T_PATTERN] = { "a string, a pattern of file names like \"conf.d/*.conf\"", BIT(TEXT), set_pattern,
	    STRING_OPS },
	[CONFIG_T_PATH] = { "a string, an absolute path", BIT(TEXT), set_path, STRING_OPS },
	[CONFIG_T_ADDR] = { "a string, an IPv4 or IPv6 address", BIT(TEXT), LIST_OPS },
	[CONFIG_T_ADDRS] = { "a list of strings, IPv4 or IPv6 addresses", BIT(LIST), LIST_OPS },
	[CONFIG_T_LISTEN] = { "a string \"address:port\", \"[IPv6 address]:port\" or \"unix:/path\"", BIT(TEXT),
	    LIST_OPS },
	[CONFIG_T_TARGET] = { "a string \"host:port\", \"[IPv6 address]:port\", \"unix:/path\" or \"srv:name\", or a list",
	    BIT(TEXT) | BIT(LIST), LIST_OPS },
	[CONFIG_T_NETS] = { "a list of strings, [ \"address/prefix\", ... ]", BIT(LIST), LIST_OPS },
	[CONFIG_T_DESTS] = { "a list of strings, [ \"address/prefix\", \"address/prefix:ports\", ... ]", BIT(LIST),
	    LIST_OPS },
	[CONFIG_T_PEER_ADDR] = { "a string \"address:port\", \"[IPv6 address]:port\" or \"*:port\"", BIT(TEXT),
	    LIST_OPS },
	[CONFIG_T_VIAS] = { "a list of groups, ( { ... }, ... )", BIT(OTHER), value_set_inner, value_print_vias,
	    value_vias_equal, NO_UNITS },
	[CONFIG_T_PORTS] = { "a port or a string \"first-last\"", TEXT_OR_INT, value_set_ports, print_ports, NULL,
	    NO_UNITS },
	[CONFIG_T_USER] = { "a string or an integer, a user", TEXT_OR_INT, LIST_OPS },
	[CONFIG_T_GROUP] = { "a string or an integer, a group", TEXT_OR_INT, LIST_OPS },
	[CONFIG_T_USERS] = { "a list of users, [ \"name\", ... ] or ( \"name\", number, ... )", BIT(LIST) | BIT(MIXED),
	    LIST_OPS },
	[CONFIG_T_EIDS] = { "a list of strings, [ \"...\", ... ]", BIT(LIST), value_set_list, value_print_list, NULL,
	    NO_UNITS },
	[CONFIG_T_BYTES] = { "a string", BIT(TEXT), value_set_bytes, value_print_bytes, string_equal, NO_UNITS },
	[CONFIG_T_INNER] = { "a group, { ... }", BIT(OTHER), value_set_inner, value_print_inner, value_inner_equal,
	    NO_UNITS },
	[CONFIG_T_PEERS] = { "a list of strings, [ \"...\", ... ]", BIT(LIST), set_peers, print_peers, string_equal,
	    NO_UNITS },
};

int
config_value_set(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct type_ops *t = &types[key->type];
	const unsigned kinds = t->kinds | ((key->flags & CONFIG_AUTO) != 0 ? BIT(TEXT) : 0);
	int rc = VALUE_BAD_TYPE;

	why[0] = '\0';
	if ((kinds & 1u << v->kind) != 0) {
		if (v->item_cnt > CONFIG_ITEMS_MAX)
			return value_bad(why, "has more than %u entries", CONFIG_ITEMS_MAX);
		rc = t->set(key, (char *)base + key->off, v, why);
	}
	if (rc != VALUE_BAD_TYPE)
		return rc;
	return value_bad(
	    why, "must be %s%s, not %s", t->words, (key->flags & CONFIG_AUTO) != 0 ? ", or \"auto\"" : "", v->shown);
}

int
config_value_set_default(const struct config_key *key, void *base)
{
	unsigned kinds = types[key->type].kinds;
	struct config_value v = { .kind = CONFIG_V_TEXT, .text = key->def };
	const char *items[8];
	char why[CONFIG_WHY_MAX], copy[64], *save = NULL;

	if (key->def == NULL)
		return 0;
	if (kinds == BIT(BOOL)) {
		v = (struct config_value){ .kind = CONFIG_V_BOOL, .num = strcmp(key->def, "true") == 0 };
	} else if ((kinds & BIT(INT)) != 0 && key->def[strspn(key->def, "0123456789")] == '\0') {
		v = (struct config_value){ .kind = CONFIG_V_INT, .num = atoll(key->def) };
	} else if (kinds == BIT(LIST)) {
		v = (struct config_value){ .kind = CONFIG_V_LIST, .items = items };
		snprintf(copy, sizeof(copy), "%s", key->def);
		for (char *p = strtok_r(copy, ", ", &save); p != NULL; p = strtok_r(NULL, ", ", &save))
			items[v.item_cnt++] = p;
	}
	config_value_show(&v);
	return config_value_set(key, base, &v, why);
}

void
config_value_print(const struct config_key *key, const void *base, FILE *out)
{
	types[key->type].print(key, (const char *)base + key->off, out);
}

bool
config_value_is_empty(const struct config_key *key, const void *base)
{
	static const _Alignas(max_align_t) char unset[1024]; /* longer than the longest of these types */
	bool (*equal)(const struct config_key *, const void *, const void *) = types[key->type].equal;

	return equal != NULL && equal(key, (const char *)base + key->off, unset);
}

bool
config_value_equal(const struct config_key *key, const void *base_a, const void *base_b)
{
	const void *a = (const char *)base_a + key->off, *b = (const char *)base_b + key->off;
	const struct type_ops *t = &types[key->type];

	return t->equal != NULL ? t->equal(key, a, b) : memcmp(a, b, key->len) == 0;
}
