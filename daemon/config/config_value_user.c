/* Users and groups as values of settings; see config_value.h. Looks nothing up: config_lookup.c does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

#define ID_MAX (UINT32_MAX - 1) /* the last one means "none" to the kernel */

/* A name, or digits, which are the id itself. 0 or -EINVAL. */
static int
parse_id(const char *text, struct config_id *out)
{
	struct config_id id = { .id = UINT32_MAX };
	uint64_t n;

	if (text[0] == '\0' || text[0] == '-' || strlen(text) >= sizeof(id.name))
		return -EINVAL;
	for (const char *p = text; *p != '\0'; p++)
		if (!value_is_name_char(*p) && strchr("$@", *p) == NULL)
			return -EINVAL;
	if (text[strspn(text, "0123456789")] == '\0') {
		if (value_parse_uint(text, &n) != 0 || n > ID_MAX)
			return -EINVAL;
		id.id = (uint32_t)n;
	}
	strcpy(id.name, text);
	*out = id;
	return 0;
}

int
value_set_user(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char digits[VALUE_SHOW_MAX];

	(void)key;
	(void)why;
	return parse_id(v->kind == CONFIG_V_INT ? value_show(v, digits) : v->text, at) == 0 ? 0 : VALUE_BAD_TYPE;
}

/* Digits in quotes, too: in an array all entries are of one type. */
void
value_print_user(const struct config_key *key, const void *at, FILE *out)
{
	const struct config_id *id = at;

	(void)key;
	fprintf(out, "\"%s\"", id->name);
}

bool
value_user_equal(const void *at_a, const void *at_b)
{
	const struct config_id *a = at_a, *b = at_b;

	return a->id == b->id && strcmp(a->name, b->name) == 0;
}

/* -- lists -- */

int
value_set_users(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	unsigned cnt = v->item_cnt;
	char buf[VALUE_SHOW_MAX];
	struct config_id *ids;
	int rc = 0;

	(void)key;
	/* As with networks: an empty list would mean "everybody" in struct config_service. */
	if (cnt == 0)
		return value_bad(why, "is empty: leave it out to allow everybody");
	ids = calloc(cnt, sizeof(*ids));
	if (ids == NULL) {
		value_bad(why, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		const struct config_value item = { .kind = CONFIG_V_TEXT, .text = v->items[i] };

		if (parse_id(v->items[i], &ids[i]) != 0)
			rc = value_also_bad(why, "has %s, which is no user", value_show(&item, buf));
	}
	if (rc != 0) {
		free(ids);
		return rc;
	}
	memcpy(at, &ids, sizeof(ids));
	memcpy((char *)at + sizeof(ids), &cnt, sizeof(cnt));
	return 0;
}

/* The list, and how many are in it. */
static const struct config_id *
load_users(const void *at, unsigned *cnt)
{
	const struct config_id *ids;

	memcpy(&ids, at, sizeof(ids));
	memcpy(cnt, (const char *)at + sizeof(ids), sizeof(*cnt));
	return ids;
}

void
value_print_users(const struct config_key *key, const void *at, FILE *out)
{
	unsigned cnt;
	const struct config_id *ids = load_users(at, &cnt);

	for (unsigned i = 0; i < cnt; i++) {
		fputs(i == 0 ? "[ " : ", ", out);
		value_print_user(key, &ids[i], out);
	}
	fputs(" ]", out);
}

bool
value_users_equal(const void *at_a, const void *at_b)
{
	unsigned a_cnt, b_cnt;
	const struct config_id *a = load_users(at_a, &a_cnt), *b = load_users(at_b, &b_cnt);

	for (unsigned i = 0; a_cnt == b_cnt && i < a_cnt; i++)
		if (!value_user_equal(&a[i], &b[i]))
			return false;
	return a_cnt == b_cnt;
}
