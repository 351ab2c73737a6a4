/* Strings as values of settings: names, paths, patterns, users and groups; see config_value.h. Looks up no names. */
#include <ctype.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

#define ID_MAX (UINT32_MAX - 1) /* the last one means "unset" to the kernel */

bool
value_is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

int
value_set_name(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
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
int
value_set_ifname(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	if (strcmp(v->text, ".") == 0 || strcmp(v->text, "..") == 0)
		return VALUE_BAD_TYPE;
	if (strcmp(v->text, "*") != 0)
		return value_set_name(key, at, v, why);
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

int
value_set_path(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	return v->text[0] == '/' ? set_file(key, at, v, why) : VALUE_BAD_TYPE;
}

int
value_set_pattern(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	size_t len = strlen(v->text);

	/* This excludes files of editors and package managers beside it. */
	if (len < 5 || strcmp(v->text + len - 5, ".conf") != 0)
		return value_bad(why, "must end in \".conf\", like \"conf.d/*.conf\", not %s", v->shown);
	return set_file(key, at, v, why);
}

void
value_print_string(const struct config_key *key, const void *at, FILE *out)
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

bool
value_string_equal(const struct config_key *key, const void *a, const void *b)
{
	(void)key;
	return strcmp(a, b) == 0;
}

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
