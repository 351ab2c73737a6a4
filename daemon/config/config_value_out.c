/* Values of settings back to text, and compared: see config_value.h. */
#include <arpa/inet.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/config/config_value_int.h"

static uint64_t
load_number(const struct config_key *key, const void *base)
{
	const void *p = (const char *)base + key->off;

	if (key->type == CONFIG_T_BOOL)
		return *(const bool *)p;
	switch (key->len) {
	case sizeof(uint8_t):
		return *(const uint8_t *)p;
	case sizeof(uint16_t):
		return *(const uint16_t *)p;
	case sizeof(uint64_t):
		return *(const uint64_t *)p;
	default:
		return *(const uint32_t *)p;
	}
}

static void
format_scaled(uint64_t n, const struct value_unit *units, char *buf, size_t cap)
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
		format_scaled(n, value_size_units, buf, cap);
	else if (key->type == CONFIG_T_US)
		format_scaled(n, value_micro_units, buf, cap);
	else if (key->type == CONFIG_T_MS)
		format_scaled(n, value_time_units, buf, cap);
	else if (key->type == CONFIG_T_SECONDS)
		format_scaled(n * 1000, value_time_units, buf, cap);
	else
		snprintf(buf, cap, "%llu", (unsigned long long)n);
}

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
	const char *at = (const char *)base + key->off;
	const struct config_net *nets;
	unsigned cnt;

	switch (key->type) {
	case CONFIG_T_NETS:
		load_nets(key, base, &nets, &cnt);
		return cnt == 0;
	case CONFIG_T_NAME:
	case CONFIG_T_IFNAME:
	case CONFIG_T_CARD:
		return at[0] == '\0';
	case CONFIG_T_ADDR:
		return ((const struct sockaddr_storage *)(const void *)at)->ss_family == 0;
	case CONFIG_T_BOOL:
	case CONFIG_T_UINT:
	case CONFIG_T_SIZE:
	case CONFIG_T_US:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
	case CONFIG_T_WORD:
	case CONFIG_T_WORDS:
	case CONFIG_T_PATH:
	case CONFIG_T_MODE:
	case CONFIG_T_LISTEN:
	case CONFIG_T_TARGET:
	case CONFIG_T_PORTS:
		break;
	}
	return false;
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
	case CONFIG_T_US:
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
	case CONFIG_T_IFNAME:
	case CONFIG_T_CARD:
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
	case CONFIG_T_US:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
	case CONFIG_T_MODE:
	case CONFIG_T_WORD:
	case CONFIG_T_WORDS:
		return load_number(key, base_a) == load_number(key, base_b);
	case CONFIG_T_NAME:
	case CONFIG_T_IFNAME:
	case CONFIG_T_CARD:
	case CONFIG_T_PATH:
		return strcmp(a, b) == 0;
	case CONFIG_T_ADDR:
		if (config_value_is_empty(key, base_a) || config_value_is_empty(key, base_b))
			return config_value_is_empty(key, base_a) == config_value_is_empty(key, base_b);
		/* fall through */
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
