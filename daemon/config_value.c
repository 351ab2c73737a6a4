/* Values of settings: see config_value.h. Called by config.c (set), config_print.c and config_plan.c. */
#include "daemon/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config.h"

struct unit {
	const char *text;
	uint64_t factor;
};

/* Largest first, so that printing takes the first that divides. */
static const struct unit size_units[] = {
	{ "G", 1u << 30 }, { "M", 1u << 20 }, { "K", 1u << 10 }, { "", 1 }, { NULL, 0 },
};
static const struct unit time_units[] = {
	{ "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }, { NULL, 0 },
};

static int __attribute__((format(printf, 2, 3)))
bad(char why[CONFIG_WHY_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, CONFIG_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* What was written, short and printable, for messages. */
static const char *
show(const struct config_value *v, char buf[72])
{
	size_t n = 0;

	switch (v->kind) {
	case CONFIG_V_BOOL:
		return v->num ? "true" : "false";
	case CONFIG_V_INT:
		snprintf(buf, 72, "%lld", v->num);
		return buf;
	case CONFIG_V_TEXT:
		buf[n++] = '"';
		for (const char *p = v->text; *p != '\0' && n < 66; p++)
			buf[n++] = (char)(isprint((unsigned char)*p) ? *p : '?');
		snprintf(buf + n, 72 - n, "%s", strlen(v->text) >= 66 ? "...\"" : "\"");
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
	case CONFIG_T_BOOL: return "true or false";
	case CONFIG_T_UINT: return "an integer";
	case CONFIG_T_SIZE: return "bytes as an integer, or a string like \"64K\"";
	case CONFIG_T_MS: return "seconds as an integer, or a string like \"500ms\" or \"30s\"";
	case CONFIG_T_SECONDS: return "seconds as an integer, or a string like \"30s\" or \"10m\"";
	case CONFIG_T_WORD: return "a string";
	case CONFIG_T_WORDS: return "a list of strings, [ \"...\", ... ]";
	case CONFIG_T_NAME: return "a string of letters, digits, '.', '_' and '-'";
	case CONFIG_T_PATH: return "a string, an absolute path";
	case CONFIG_T_MODE: return "a string of octal digits like \"0660\"";
	case CONFIG_T_ADDR: return "a string, an IPv4 or IPv6 address";
	case CONFIG_T_LISTEN: return "a string \"address:port\" or \"[IPv6 address]:port\"";
	case CONFIG_T_TARGET: return "a string \"host:port\" or \"[IPv6 address]:port\"";
	case CONFIG_T_NETS: return "a list of strings, [ \"address/prefix\", ... ]";
	case CONFIG_T_PORTS: return "a port or a string \"first-last\"";
	}
	return "?";
}

static int
bad_type(const struct config_key *key, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char buf[72];

	return bad(why, "must be %s, not %s", config_type_words(key->type), show(v, buf));
}

/* -- numbers -- */

/* Digits and a unit of the list. 0, -EINVAL not such a text, -ERANGE more than 64 bits. */
static int
parse_scaled(const char *text, const struct unit *units, uint64_t *out)
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

static void
format_scaled(uint64_t n, const struct unit *units, char *buf, size_t cap)
{
	while (units[1].text != NULL && n % units->factor != 0)
		units++;
	snprintf(buf, cap, "%llu%s", (unsigned long long)(n / units->factor), units->text);
}

void
config_number_format(const struct config_key *key, uint64_t n, char *buf, size_t cap)
{
	if (key->type == CONFIG_T_MODE)
		snprintf(buf, cap, "%04llo", (unsigned long long)n);
	else if (n == 0)
		snprintf(buf, cap, "0");
	else if (key->type == CONFIG_T_SIZE)
		format_scaled(n, size_units, buf, cap);
	else if (key->type == CONFIG_T_MS)
		format_scaled(n, time_units, buf, cap);
	else if (key->type == CONFIG_T_SECONDS)
		format_scaled(n * 1000, time_units, buf, cap);
	else
		snprintf(buf, cap, "%llu", (unsigned long long)n);
}

static uint64_t
load_number(const struct config_key *key, const void *base)
{
	const void *p = (const char *)base + key->off;

	if (key->type == CONFIG_T_BOOL)
		return *(const bool *)p;
	switch (key->len) {
	case sizeof(uint8_t): return *(const uint8_t *)p;
	case sizeof(uint16_t): return *(const uint16_t *)p;
	default: return *(const uint32_t *)p;
	}
}

/* n is in range, so it fits. */
static void
store_number(const struct config_key *key, void *base, uint64_t n)
{
	void *p = (char *)base + key->off;

	switch (key->len) {
	case sizeof(uint8_t): *(uint8_t *)p = (uint8_t)n; break;
	case sizeof(uint16_t): *(uint16_t *)p = (uint16_t)n; break;
	default: *(uint32_t *)p = (uint32_t)n; break;
	}
}

static int
out_of_range(const struct config_key *key, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char min[32], max[32], buf[72];

	config_number_format(key, key->min, min, sizeof(min));
	config_number_format(key, key->max, max, sizeof(max));
	return bad(why, "must be %sfrom %s to %s, not %s", (key->flags & CONFIG_OR_ZERO) != 0 ? "0 or " : "",
	    min, max, show(v, buf));
}

static int
set_checked(const struct config_key *key, void *base, uint64_t n, const struct config_value *v,
    char why[CONFIG_WHY_MAX])
{
	char buf[72];

	if ((n < key->min || n > key->max) && !(n == 0 && (key->flags & CONFIG_OR_ZERO) != 0))
		return out_of_range(key, v, why);
	if ((key->flags & CONFIG_POW2) != 0 && (n & (n - 1)) != 0)
		return bad(why, "must be a power of two, not %s", show(v, buf));
	store_number(key, base, n);
	return 0;
}

static int
set_number(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	bool is_time = key->type == CONFIG_T_MS || key->type == CONFIG_T_SECONDS;
	uint64_t n;
	char buf[72];
	int rc = 0;

	if (v->kind == CONFIG_V_INT && v->num < 0)
		return out_of_range(key, v, why);
	if (v->kind == CONFIG_V_INT)
		n = (uint64_t)v->num > UINT64_MAX / 1000 ? UINT64_MAX : (uint64_t)v->num * (is_time ? 1000 : 1);
	else if (v->kind == CONFIG_V_TEXT && key->type != CONFIG_T_UINT)
		rc = parse_scaled(v->text, is_time ? time_units : size_units, &n);
	else
		return bad_type(key, v, why);
	if (rc == -ERANGE)
		return out_of_range(key, v, why);
	if (rc != 0)
		return bad_type(key, v, why);
	if (key->type == CONFIG_T_SECONDS) {
		if (n % 1000 != 0)
			return bad(why, "must be whole seconds, not %s", show(v, buf));
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
		return bad_type(key, v, why);
	n = strtoul(v->text, &end, 8);
	if (*end != '\0')
		return bad_type(key, v, why);
	return set_checked(key, base, n, v, why);
}

static int
set_bool(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_BOOL)
		return bad_type(key, v, why);
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
	char list[128] = "", buf[72];
	size_t n = 0;

	for (const struct config_word *w = key->words; w->text != NULL && n < sizeof(list); w++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\"", n > 0 ? ", " : "", w->text);
	return bad(why, "must be one of %s, not %s", list, show(&v, buf));
}

static int
set_word(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct config_word *w;

	if (v->kind != CONFIG_V_TEXT)
		return bad_type(key, v, why);
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
		return bad_type(key, v, why);
	for (unsigned i = 0; i < v->item_cnt; i++) {
		const struct config_word *w = find_word(key, v->items[i]);

		if (w == NULL)
			return bad_word(key, v->items[i], why);
		bits |= w->value;
	}
	if (bits == 0)
		return bad(why, "must not be empty");
	store_number(key, base, bits);
	return 0;
}

/* -- strings -- */

static bool
is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static int
set_name(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_TEXT)
		return bad_type(key, v, why);
	if (v->text[0] == '\0')
		return bad(why, "must not be empty");
	if (strlen(v->text) >= key->len)
		return bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (!is_name_char(*p))
			return bad_type(key, v, why);
	strcpy((char *)base + key->off, v->text);
	return 0;
}

static int
set_path(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (v->kind != CONFIG_V_TEXT || v->text[0] != '/')
		return bad_type(key, v, why);
	if (strlen(v->text) >= key->len)
		return bad(why, "is longer than %zu characters", key->len - 1);
	for (const char *p = v->text; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p))
			return bad(why, "has a control character");
	strcpy((char *)base + key->off, v->text);
	return 0;
}

/* -- addresses -- */

static int
set_addr(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct sockaddr_storage *out = (void *)((char *)base + key->off);

	if (v->kind != CONFIG_V_TEXT || addr_parse(v->text, out) != 0)
		return bad_type(key, v, why);
	return 0;
}

static int
set_listen(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct sockaddr_storage *out = (void *)((char *)base + key->off);

	if (v->kind != CONFIG_V_TEXT || addr_parse_port(v->text, out) != 0)
		return bad_type(key, v, why);
	return 0;
}

/* A host name; not something that was meant as an IPv4 address, like 10.0.0.300. */
static bool
is_host_name(const char *text)
{
	const char *dot = strrchr(text, '.');
	const char *last = dot != NULL ? dot + 1 : text;

	for (const char *p = text; *p != '\0'; p++)
		if (!is_name_char(*p) || (p[0] == '.' && (p == text || p[1] == '.')))
			return false;
	return text[0] != '\0' && strspn(last, "0123456789") < strlen(last);
}

static int
set_target(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct config_target *out = (void *)((char *)base + key->off);
	struct sockaddr_storage ss;
	char host[CONFIG_HOST_MAX];
	uint16_t port;

	if (v->kind != CONFIG_V_TEXT || addr_split(v->text, host, sizeof(host), &port) != 0)
		return bad_type(key, v, why);
	if (addr_parse(host, &ss) != 0) {
		if (!is_host_name(host))
			return bad_type(key, v, why);
		strcpy(out->host, host);
		out->port = port;
		return 0;
	}
	if (addr_is_any(&ss))
		return bad(why, "must name a host to connect to, not \"%s\"", host);
	out->addrs = malloc(sizeof(*out->addrs));
	if (out->addrs == NULL) {
		bad(why, "out of memory");
		return -ENOMEM;
	}
	addr_set_port(&ss, port);
	addr_format(&ss, out->host, sizeof(out->host));
	out->port = port;
	out->addrs[0] = ss;
	out->addr_cnt = 1;
	return 0;
}

/* "address" or "address/prefix"; bits behind the prefix have to be 0, a typing error otherwise. */
static int
parse_net(const char *text, struct config_net *out, char why[CONFIG_WHY_MAX])
{
	const struct config_value v = { .kind = CONFIG_V_TEXT, .text = text };
	char host[ADDR_STR_MAX], buf[72];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct sockaddr_storage ss;
	struct config_net net;
	uint64_t prefix;
	unsigned base;

	if (len >= sizeof(host))
		return bad(why, "has %s, which is no address", show(&v, buf));
	memcpy(host, text, len);
	host[len] = '\0';
	if (addr_parse(host, &ss) != 0 || strchr(host, '%') != NULL || strchr(host, '[') != NULL)
		return bad(why, "has %s, which is no address", show(&v, buf));
	base = ss.ss_family == AF_INET ? 96 : 0;
	prefix = 128 - base;
	/* ::ffff:10.0.0.0/104 would be ambiguous */
	if (base != 0 && strchr(host, ':') != NULL)
		return bad(why, "has %s: write it as an IPv4 address", show(&v, buf));
	if (slash != NULL && (parse_scaled(slash + 1, size_units + 3, &prefix) != 0 || prefix > 128 - base))
		return bad(why, "has %s, whose prefix is not 0..%u", show(&v, buf), 128 - base);
	addr_to_v6(&ss, net.addr);
	net.prefix_len = (uint8_t)(base + prefix);
	for (unsigned bit = net.prefix_len; bit < 128; bit++)
		if ((net.addr[bit / 8] & 0x80 >> bit % 8) != 0)
			return bad(why, "has %s, which has address bits behind its prefix", show(&v, buf));
	*out = net;
	return 0;
}

static int
set_nets(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char *at = (char *)base + key->off;
	unsigned cnt = v->item_cnt;
	struct config_net *nets;

	if (v->kind != CONFIG_V_LIST)
		return bad_type(key, v, why);
	/* An empty list means "everybody" in struct config_service; somebody who writes [] means the opposite. */
	if (cnt == 0)
		return bad(why, "is empty: leave it out to allow everybody");
	if (cnt > CONFIG_NETS_MAX)
		return bad(why, "has more than %u entries", CONFIG_NETS_MAX);
	nets = calloc(cnt, sizeof(*nets));
	if (nets == NULL) {
		bad(why, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		if (parse_net(v->items[i], &nets[i], why) != 0) {
			free(nets);
			return -EINVAL;
		}
	}
	memcpy(at, &nets, sizeof(nets));
	memcpy(at + sizeof(nets), &cnt, sizeof(cnt));
	return 0;
}

/* -- ports -- */

static int
set_ports(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	uint64_t first, last;
	uint16_t range[2];
	char buf[72], text[32];
	char *dash;

	if (v->kind == CONFIG_V_INT && (v->num < 0 || v->num > 65535))
		return out_of_range(key, v, why);
	if (v->kind == CONFIG_V_INT)
		snprintf(text, sizeof(text), "%lld", v->num);
	else if (v->kind == CONFIG_V_TEXT && strlen(v->text) < sizeof(text))
		strcpy(text, v->text);
	else
		return bad_type(key, v, why);
	dash = strchr(text, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (parse_scaled(text, size_units + 3, &first) != 0)
		return bad_type(key, v, why);
	last = first;
	if (dash != NULL && parse_scaled(dash, size_units + 3, &last) != 0)
		return bad_type(key, v, why);
	if (last > 65535 || (first == 0 && last != 0))
		return bad(why, "must have ports from 1 to 65535 (or be 0 for any), not %s", show(v, buf));
	if (first > last)
		return bad(why, "must have the lower port first, not %s", show(v, buf));
	range[0] = (uint16_t)first;
	range[1] = (uint16_t)last;
	memcpy((char *)base + key->off, range, sizeof(range));
	return 0;
}

/* -- all types -- */

int
config_value_set(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	switch (key->type) {
	case CONFIG_T_BOOL: return set_bool(key, base, v, why);
	case CONFIG_T_UINT:
	case CONFIG_T_SIZE:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS: return set_number(key, base, v, why);
	case CONFIG_T_WORD: return set_word(key, base, v, why);
	case CONFIG_T_WORDS: return set_words(key, base, v, why);
	case CONFIG_T_NAME: return set_name(key, base, v, why);
	case CONFIG_T_PATH: return set_path(key, base, v, why);
	case CONFIG_T_MODE: return set_mode(key, base, v, why);
	case CONFIG_T_ADDR: return set_addr(key, base, v, why);
	case CONFIG_T_LISTEN: return set_listen(key, base, v, why);
	case CONFIG_T_TARGET: return set_target(key, base, v, why);
	case CONFIG_T_NETS: return set_nets(key, base, v, why);
	case CONFIG_T_PORTS: return set_ports(key, base, v, why);
	}
	return bad(why, "has an unknown type");
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

/* -- printing -- */

static void
print_string(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void
print_number(const struct config_key *key, const void *base, FILE *out)
{
	uint64_t n = load_number(key, base);
	char buf[32];

	config_number_format(key, n, buf, sizeof(buf));
	/* With a unit it is a string. */
	if (key->type == CONFIG_T_MODE || buf[strspn(buf, "0123456789")] != '\0')
		fprintf(out, "\"%s\"", buf);
	else
		fputs(buf, out);
}

static void
print_words(const struct config_key *key, const void *base, FILE *out)
{
	uint64_t bits = load_number(key, base);
	const char *sep = "[ ";

	for (const struct config_word *w = key->words; w->text != NULL; w++) {
		if (key->type == CONFIG_T_WORD && w->value == bits)
			fprintf(out, "\"%s\"", w->text);
		if (key->type == CONFIG_T_WORDS && (w->value & bits) != 0) {
			fprintf(out, "%s\"%s\"", sep, w->text);
			sep = ", ";
		}
	}
	if (key->type == CONFIG_T_WORDS)
		fputs(" ]", out);
}

static void
load_nets(const struct config_key *key, const void *base, const struct config_net **nets, unsigned *cnt)
{
	const char *at = (const char *)base + key->off;

	memcpy(nets, at, sizeof(*nets));
	memcpy(cnt, at + sizeof(*nets), sizeof(*cnt));
}

bool
config_value_is_empty(const struct config_key *key, const void *base)
{
	const struct config_net *nets;
	unsigned cnt;

	if (key->type != CONFIG_T_NETS)
		return false;
	load_nets(key, base, &nets, &cnt);
	return cnt == 0;
}

static void
print_nets(const struct config_key *key, const void *base, FILE *out)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	const struct config_net *nets;
	char buf[INET6_ADDRSTRLEN];
	unsigned cnt;

	load_nets(key, base, &nets, &cnt);
	for (unsigned i = 0; i < cnt; i++) {
		bool is_v4 = nets[i].prefix_len >= 96 && memcmp(nets[i].addr, v4, sizeof(v4)) == 0;

		inet_ntop(is_v4 ? AF_INET : AF_INET6, nets[i].addr + (is_v4 ? 12 : 0), buf, sizeof(buf));
		fprintf(out, "%s\"%s/%u\"", i == 0 ? "[ " : ", ", buf, nets[i].prefix_len - (is_v4 ? 96u : 0u));
	}
	fputs(" ]", out);
}

static void
print_target(const struct config_target *t, FILE *out)
{
	fprintf(out, strchr(t->host, ':') != NULL ? "\"[%s]:%u\"" : "\"%s:%u\"", t->host, t->port);
}

static void
print_ports(const void *at, FILE *out)
{
	uint16_t range[2];

	memcpy(range, at, sizeof(range));
	if (range[0] == range[1])
		fprintf(out, "%u", range[0]);
	else
		fprintf(out, "\"%u-%u\"", range[0], range[1]);
}

void
config_value_print(const struct config_key *key, const void *base, FILE *out)
{
	const void *at = (const char *)base + key->off;
	char buf[ADDR_STR_MAX];

	switch (key->type) {
	case CONFIG_T_BOOL:
		fputs(*(const bool *)at ? "true" : "false", out);
		break;
	case CONFIG_T_UINT:
	case CONFIG_T_SIZE:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
	case CONFIG_T_MODE:
		print_number(key, base, out);
		break;
	case CONFIG_T_WORD:
	case CONFIG_T_WORDS:
		print_words(key, base, out);
		break;
	case CONFIG_T_NAME:
	case CONFIG_T_PATH:
		print_string(at, out);
		break;
	case CONFIG_T_ADDR:
		fprintf(out, "\"%s\"", addr_format(at, buf, sizeof(buf)));
		break;
	case CONFIG_T_LISTEN:
		fprintf(out, "\"%s\"", addr_format_port(at, buf, sizeof(buf)));
		break;
	case CONFIG_T_TARGET:
		print_target(at, out);
		break;
	case CONFIG_T_NETS:
		print_nets(key, base, out);
		break;
	case CONFIG_T_PORTS:
		print_ports(at, out);
		break;
	}
}

/* -- comparing -- */

static bool
target_equal(const struct config_target *a, const struct config_target *b)
{
	if (strcmp(a->host, b->host) != 0 || a->port != b->port || a->addr_cnt != b->addr_cnt)
		return false;
	for (unsigned i = 0; i < a->addr_cnt; i++)
		if (!addr_same_host(&a->addrs[i], &b->addrs[i]))
			return false;
	return true;
}

static bool
nets_equal(const struct config_key *key, const void *base_a, const void *base_b)
{
	const struct config_net *a, *b;
	unsigned a_cnt, b_cnt;

	load_nets(key, base_a, &a, &a_cnt);
	load_nets(key, base_b, &b, &b_cnt);
	if (a_cnt != b_cnt)
		return false;
	for (unsigned i = 0; i < a_cnt; i++)
		if (a[i].prefix_len != b[i].prefix_len || memcmp(a[i].addr, b[i].addr, 16) != 0)
			return false;
	return true;
}

bool
config_value_equal(const struct config_key *key, const void *base_a, const void *base_b)
{
	const void *a = (const char *)base_a + key->off, *b = (const char *)base_b + key->off;

	switch (key->type) {
	case CONFIG_T_BOOL:
	case CONFIG_T_UINT:
	case CONFIG_T_SIZE:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
	case CONFIG_T_MODE:
	case CONFIG_T_WORD:
	case CONFIG_T_WORDS:
		return load_number(key, base_a) == load_number(key, base_b);
	case CONFIG_T_NAME:
	case CONFIG_T_PATH:
		return strcmp(a, b) == 0;
	case CONFIG_T_ADDR:
	case CONFIG_T_LISTEN:
		return addr_same_host(a, b) && addr_port(a) == addr_port(b);
	case CONFIG_T_TARGET:
		return target_equal(a, b);
	case CONFIG_T_NETS:
		return nets_equal(key, base_a, base_b);
	case CONFIG_T_PORTS:
		return memcmp(a, b, key->len) == 0;
	}
	return false;
}
