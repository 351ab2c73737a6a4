/* Lists and single entries as values of settings: their types, and storing, printing and comparing them. See
 * config_value.h; config_value_net.c parses entries. Looks up no names. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

enum entry {
	ADDR,
	PLACE,
	TARGET,
	NET,
	DEST,
	PEER,
	ID,
	EID
}; /* PLACE: an address and port, or a path; PEER: of any host */

/* The entries of a list. It is stored as a pointer followed by the count, or as the count followed by the entries. A
 * single entry is stored alone. */
struct list_ops {
	enum entry entry;
	size_t size;
	size_t behind;     /* offset of entries that follow their count; 0: the list is a pointer */
	unsigned max;      /* 1: not a list, a single entry */
	const char *empty; /* error text for an empty list; NULL: it may be empty */
	const char *noun;
	bool unique; /* duplicate entries are errors */
	/* From a string: 0, VALUE_BAD_TYPE, or a negative errno with the reason in why. */
	int (*parse)(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
};

static int
parse_eid(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	(void)why;
	return clc_eid_parse(v->text, out) == 0 ? 0 : VALUE_BAD_TYPE;
}

/* Where names are looked up again, their addresses are not settings. */
static bool
target_equal(const void *at_a, const void *at_b)
{
	const struct config_target *a = at_a, *b = at_b;
	const bool by_addrs = !config_names_wait();

	if (!config_target_same(a, b) || (by_addrs && a->addr_cnt != b->addr_cnt))
		return false;
	for (unsigned i = 0; by_addrs && i < a->addr_cnt; i++)
		if (!addr_same_host(&a->addrs[i], &b->addrs[i]))
			return false;
	return true;
}

static const char *
format_entry(enum entry type, const void *at, char buf[CONFIG_TARGET_STR_MAX])
{
	switch (type) {
	case ADDR:
		return addr_format(at, buf, CONFIG_TARGET_STR_MAX);
	case PLACE:
		return addr_format_port(at, buf, CONFIG_TARGET_STR_MAX);
	case TARGET:
		return config_target_str(at, buf);
	case NET:
		return config_net_str(at, buf);
	case DEST:
		return config_dest_str(at, buf);
	case PEER:
		if (!addr_is_any(at))
			return addr_format_port(at, buf, CONFIG_TARGET_STR_MAX);
		snprintf(buf, CONFIG_TARGET_STR_MAX, "*:%u", addr_port(at));
		return buf;
	case EID:
		clc_field_str(at, buf);
		return buf;
	case ID:
	default:
		return ((const struct config_id *)at)->name;
	}
}

/* An empty list would allow everybody in struct config_service; an operator who writes [] means the opposite. */
#define NOT_EMPTY "is empty: leave it out for its default"

static const struct list_ops lists[] = {
	[CONFIG_T_TARGET] = { TARGET, sizeof(struct config_target), 0, CONFIG_TARGETS_MAX, "is empty",
	    "\"host:port\", \"[IPv6 address]:port\", \"unix:/path\" or \"srv:name\"", true, value_parse_target },
	[CONFIG_T_NETS] = { NET, sizeof(struct config_net), 0, CONFIG_ITEMS_MAX, NOT_EMPTY, "address", false,
	    value_parse_net },
	[CONFIG_T_DESTS] = { DEST, sizeof(struct config_dest), 0, CONFIG_ITEMS_MAX, "is empty",
	    "address, network or one with ports", false, value_parse_dest },
	[CONFIG_T_PEER_ADDR] = { PEER, sizeof(struct sockaddr_storage), 0, 1, NULL, NULL, false,
	    value_parse_peer_addr },
	[CONFIG_T_USERS] = { ID, sizeof(struct config_id), 0, CONFIG_ITEMS_MAX, NOT_EMPTY, "user", false,
	    value_parse_user },
	[CONFIG_T_ADDRS] = { ADDR, sizeof(struct sockaddr_storage), offsetof(struct siw_addrs, at), SIW_MORE_ADDRS_MAX,
	    NULL, "address", true, value_parse_addr },
	[CONFIG_T_EIDS] = { EID, sizeof(struct clc_eid), sizeof(uint8_t), CLC_MAX_EIDS, NULL,
	    "UEID: 1 to 32 of A-Z, 0-9, '.' and '-', a letter or digit first, no two dots together", true, parse_eid },
	[CONFIG_T_ADDR] = { ADDR, sizeof(struct sockaddr_storage), 0, 1, NULL, NULL, false, value_parse_one_addr },
	[CONFIG_T_LISTEN] = { PLACE, sizeof(struct sockaddr_storage), 0, 1, NULL, NULL, false, value_parse_listen },
	[CONFIG_T_USER] = { ID, sizeof(struct config_id), 0, 1, NULL, NULL, false, value_parse_user },
	[CONFIG_T_GROUP] = { ID, sizeof(struct config_id), 0, 1, NULL, NULL, false, value_parse_user },
};

_Static_assert(CLC_EID_LEN == 32, "the words about a UEID");

static bool
equal(const struct list_ops *o, const void *a, const void *b)
{
	if (o->entry == TARGET)
		return target_equal(a, b);
	if (o->entry == ADDR || o->entry == PLACE || o->entry == PEER)
		return addr_same_place(a, b);
	return memcmp(a, b, o->size) == 0;
}

/* The entries, and their number. */
static const char *
load(const struct config_key *key, const char *at, unsigned *cnt)
{
	const struct list_ops *o = &lists[key->type];
	const char *first = at + o->behind;

	*cnt = 1;
	if (o->max == 1)
		return at;
	if (o->behind == sizeof(uint8_t)) {
		*cnt = *(const uint8_t *)at;
		return first;
	}
	if (o->behind == 0)
		memcpy(&first, at, sizeof(first));
	memcpy(cnt, o->behind == 0 ? at + sizeof(first) : at, sizeof(*cnt));
	return first;
}

/* Takes the entries over. */
static void
store(const struct config_key *key, char *at, char *all, unsigned cnt)
{
	const struct list_ops *o = &lists[key->type];

	memset(at, 0, key->len);
	if (o->max > 1 && o->behind == 0) {
		memcpy(at, &all, sizeof(all));
		memcpy(at + sizeof(all), &cnt, sizeof(cnt));
		return;
	}
	if (o->behind == sizeof(uint8_t))
		*at = (char)cnt;
	else if (o->max > 1)
		memcpy(at, &cnt, sizeof(cnt));
	memcpy(at + o->behind, all, cnt * o->size);
	free(all);
}

/* Of CONFIG_T_TARGET, behind pointer and count. */
static enum config_to *
word_at(void *at)
{
	return (enum config_to *)(void *)((char *)at + sizeof(void *) + sizeof(unsigned));
}

static enum config_to
word_of(const struct config_key *key, const void *at)
{
	enum config_to word = CONFIG_TO_TARGETS;

	if (key->type == CONFIG_T_TARGET)
		memcpy(&word, (const char *)at + sizeof(void *) + sizeof(unsigned), sizeof(word));
	return word;
}

static bool
set_word(void *at, const char *text)
{
	for (unsigned i = CONFIG_TO_TARGETS + 1; config_to_words[i] != NULL; i++)
		if (strcmp(text, config_to_words[i]) == 0) {
			*word_at(at) = (enum config_to)i;
			return true;
		}
	return false;
}

int
value_set_list(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const struct list_ops *o = &lists[key->type];
	const bool alone = v->kind == CONFIG_V_TEXT || v->kind == CONFIG_V_INT; /* a single entry without a list */
	const char *text = v->kind == CONFIG_V_INT ? v->shown : v->text;
	const unsigned cnt = alone ? 1 : v->item_cnt;
	int rc = 0;
	char *all;

	if (key->type == CONFIG_T_TARGET && alone && set_word(at, text))
		return 0;
	if (cnt == 0 && o->empty != NULL)
		return value_bad(why, "%s", o->empty);
	if (cnt > o->max)
		return value_bad(why, "has more than %u entries", o->max);
	all = calloc(cnt + 1, o->size);
	if (all == NULL) {
		value_bad(why, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		const struct config_value item = config_value_text(alone ? text : v->items[i]);
		char *out = all + i * o->size;
		int one = o->parse(&item, out, why);

		if (one == VALUE_BAD_TYPE && !alone)
			one = value_bad(why, "has %s, which is no %s", item.shown, o->noun);
		for (const char *before = all; one == 0 && o->unique && before < out; before += o->size)
			if (equal(o, before, out))
				one = value_bad(why, "has %s twice", item.shown);
		if (one != 0)
			rc = one;
	}
	if (rc == 0)
		store(key, at, all, cnt);
	else if (key->type == CONFIG_T_TARGET)
		config_targets_free((struct config_target *)(void *)all, cnt);
	else
		free(all);
	return rc;
}

void
value_print_list(const struct config_key *key, const void *at, FILE *out)
{
	const struct list_ops *o = &lists[key->type];
	char buf[CONFIG_TARGET_STR_MAX];
	unsigned cnt;
	const char *all = load(key, at, &cnt);
	const bool alone = o->max == 1 || (key->type == CONFIG_T_TARGET && cnt == 1);

	if (word_of(key, at) != CONFIG_TO_TARGETS) {
		fprintf(out, "\"%s\"", config_to_words[word_of(key, at)]);
		return;
	}
	fputs(alone ? "" : "[ ", out);
	for (unsigned i = 0; i < cnt; i++)
		fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", format_entry(o->entry, all + i * o->size, buf));
	fputs(alone ? "" : cnt > 0 ? " ]" : "]", out);
}

bool
value_list_equal(const struct config_key *key, const void *at_a, const void *at_b)
{
	const struct list_ops *o = &lists[key->type];
	unsigned a_cnt, b_cnt;
	const char *a = load(key, at_a, &a_cnt), *b = load(key, at_b, &b_cnt);

	for (unsigned i = 0; a_cnt == b_cnt && i < a_cnt; i++)
		if (!equal(o, a + i * o->size, b + i * o->size))
			return false;
	return a_cnt == b_cnt && word_of(key, at_a) == word_of(key, at_b);
}
