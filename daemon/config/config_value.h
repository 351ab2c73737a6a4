/*
 * One setting's value: from what is written to what is stored, back to text,
 * and compared. Knows types and ranges (config_keys.h), not files and lines.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config_keys.h"

#define CONFIG_WHY_MAX 256

/* As written in the file. */
struct config_value {
	enum {
		CONFIG_V_BOOL,
		CONFIG_V_INT,
		CONFIG_V_TEXT,
		CONFIG_V_LIST,  /* of strings */
		CONFIG_V_OTHER, /* groups, fractions, lists of something else */
	} kind;

	long long num;            /* BOOL, INT */
	const char *text;         /* TEXT */
	const char *const *items; /* LIST */
	unsigned item_cnt;
};

/* Stores v at its place below base. 0, or -EINVAL (-ENOMEM) with the reason in why and nothing stored. */
int config_value_set(const struct config_key *, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX]);
/* Stores the default, if there is one. 0 or -ENOMEM. */
int config_value_set_default(const struct config_key *, void *base);
/* As the file would have it, without name and semicolon. */
void config_value_print(const struct config_key *, const void *base, FILE *out);
/* A number in the stored unit as the file would have it. */
void config_number_format(const struct config_key *, uint64_t n, char *buf, size_t cap);
/* Not set: a list without entries, no name, no address. These have no written form. */
bool config_value_is_empty(const struct config_key *, const void *base);
bool config_value_equal(const struct config_key *, const void *base_a, const void *base_b);
