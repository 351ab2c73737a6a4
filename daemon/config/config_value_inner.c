/* Groups of settings in a service, and texts of any bytes; see config_value.h. */
#include <string.h>

#include "daemon/config/config_value.h"

/* Other characters than printable ones as libconfig reads them. */
void
value_print_bytes(const struct config_key *key, const void *at, FILE *out)
{
	(void)key;
	fputc('"', out);
	for (const unsigned char *p = at; *p != '\0'; p++)
		fprintf(out, *p == '"' || *p == '\\' ? "\\%c" : *p >= ' ' && *p < 0x7f ? "%c" : "\\x%02x", *p);
	fputc('"', out);
}

int
value_set_bytes(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (strlen(v->text) >= key->len)
		return value_bad(why, "is longer than %zu characters", key->len - 1);
	strcpy(at, v->text);
	return 0;
}

/* config.c stores a group setting by setting. */
int
value_set_inner(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	(void)key;
	(void)at;
	(void)v;
	(void)why;
	return VALUE_BAD_TYPE;
}

void
value_print_inner(const struct config_key *key, const void *at, FILE *out)
{
	fputs("{ ", out);
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & key->max) == 0 || config_value_is_empty(k, at))
			continue;
		fprintf(out, "%s = ", k->name);
		config_value_print(k, at, out);
		fputs("; ", out);
	}
	fputc('}', out);
}

bool
value_inner_equal(const struct config_key *key, const void *a, const void *b)
{
	return memcmp(a, b, key->len) == 0;
}
