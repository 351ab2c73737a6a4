/* Users and groups as values of settings; see config_value.h. Looks up no names: config_lookup.c does. */
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

#define ID_MAX (UINT32_MAX - 1) /* the last one means "unset" to the kernel */

int
value_parse_user(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	struct config_id id = { .id = UINT32_MAX };
	uint64_t n;

	(void)why;
	if (v->text[0] == '\0' || v->text[0] == '-' || strlen(v->text) >= sizeof(id.name))
		return VALUE_BAD_TYPE;
	for (const char *p = v->text; *p != '\0'; p++)
		if (!value_is_name_char(*p) && strchr("$@", *p) == NULL)
			return VALUE_BAD_TYPE;
	if (v->text[strspn(v->text, "0123456789")] == '\0') {
		if (value_parse_uint(v->text, &n) != 0 || n > ID_MAX)
			return VALUE_BAD_TYPE;
		id.id = (uint32_t)n;
	}
	strcpy(id.name, v->text);
	memcpy(out, &id, sizeof(id));
	return 0;
}

int
value_set_user(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char digits[VALUE_SHOW_MAX];
	const struct config_value text = { .kind = CONFIG_V_TEXT,
		.text = v->kind == CONFIG_V_INT ? value_show(v, digits) : v->text };

	(void)key;
	return value_parse_user(&text, at, why);
}

/* Digits are quoted like names: all entries of an array have one type. */
void
value_print_user(const struct config_key *key, const void *at, FILE *out)
{
	const struct config_id *id = at;

	(void)key;
	fprintf(out, "\"%s\"", id->name);
}

bool
value_user_equal(const struct config_key *key, const void *at_a, const void *at_b)
{
	const struct config_id *a = at_a, *b = at_b;

	(void)key;
	return a->id == b->id && strcmp(a->name, b->name) == 0;
}
