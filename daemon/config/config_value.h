/* The value of one setting: text to memory and back, compared. Uses types and ranges (config_keys.h), not files. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config_keys.h"

#define CONFIG_WHY_MAX 4096 /* a list may have several reasons, one per line */
#define CONFIG_SHOWN_MAX 72

/* As written in the file. */
struct config_value {
	enum {
		CONFIG_V_BOOL,
		CONFIG_V_INT,
		CONFIG_V_TEXT,
		CONFIG_V_LIST,  /* of strings */
		CONFIG_V_MIXED, /* of strings and integers, as text */
		CONFIG_V_OTHER, /* groups, fractions, lists of something else */
	} kind;

	long long num;            /* BOOL, INT */
	const char *text;         /* TEXT */
	const char *const *items; /* LIST, MIXED */
	unsigned item_cnt;
	char shown[CONFIG_SHOWN_MAX]; /* as written, short and printable: for messages, and the text of an INT */
};

/* The string as a value with its `shown`; it is not copied. */
struct config_value config_value_text(const char *text);
/* Fills v->shown. */
void config_value_show(struct config_value *v);

/* Stores v, whose `shown` is filled, at its place below base. 0, or -EINVAL (-ENOMEM) with the reasons in why and
 * nothing stored. */
int config_value_set(const struct config_key *, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX]);
/* Stores the default, if it has one. 0 or -ENOMEM. */
int config_value_set_default(const struct config_key *, void *base);
/* As in the file, without name and semicolon. */
void config_value_print(const struct config_key *, const void *base, FILE *out);
/* A number in the stored unit, as in the file. */
void config_number_format(const struct config_key *, uint64_t n, char *buf, size_t cap);
/* Not set, as in zeroed memory: a list without entries, no name, no address. These have no written form. */
bool config_value_is_empty(const struct config_key *, const void *base);
bool config_value_equal(const struct config_key *, const void *base_a, const void *base_b);

/* -- between config_value.c, with the table of types, and config_value_*.c -- */

#define VALUE_BAD_TYPE 1 /* of a set function: config_value_set prints the expected form */

/* -EINVAL, with the reason added to why, which was "" before the first. */
int value_bad(char why[CONFIG_WHY_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Decimal digits alone. 0, -EINVAL or -ERANGE (more than 64 bits). */
int value_parse_uint(const char *text, uint64_t *out);
bool value_is_name_char(char c);
/* "first-last", or one port, to two uint16_t. */
int value_set_ports(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);

/* Operations of config_value_list.c, also of single addresses, users and groups; see struct type_ops. */
int value_set_list(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
void value_print_list(const struct config_key *, const void *at, FILE *);
bool value_list_equal(const struct config_key *, const void *, const void *);

/* Operations of config_value_inner.c. */
int value_set_bytes(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
void value_print_bytes(const struct config_key *, const void *at, FILE *);
int value_set_inner(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
void value_print_inner(const struct config_key *, const void *at, FILE *);
bool value_inner_equal(const struct config_key *, const void *, const void *);

/* Operations of config_via.c. */
void value_print_vias(const struct config_key *, const void *at, FILE *);
bool value_vias_equal(const struct config_key *, const void *, const void *);

/* Entries of lists, and single ones, in config_value_net.c: from a string. 0, VALUE_BAD_TYPE, or
 * a negative errno with the reason in why; then out is not used. */
int value_parse_addr(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_one_addr(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_listen(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_target(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_net(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_dest(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_peer_addr(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
int value_parse_user(const struct config_value *, void *out, char why[CONFIG_WHY_MAX]);
