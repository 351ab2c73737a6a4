/* Between config_value.c, which has the table of types, and config_value_net.c: the types of addresses and networks. `at` is the place of the value: base + key->off. */
#pragma once

#include "daemon/config/config_value.h"

#define VALUE_SHOW_MAX 72
#define VALUE_BAD_TYPE 1 /* of a set function: config_value_set says what the type looks like */

/* -EINVAL, with the reason in why. */
int value_bad(char why[CONFIG_WHY_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The value as written, short and printable, for messages. */
const char *value_show(const struct config_value *, char buf[VALUE_SHOW_MAX]);
/* Decimal digits alone. 0, -EINVAL or -ERANGE (more than 64 bits). */
int value_parse_uint(const char *text, uint64_t *out);
bool value_is_name_char(char c);

/* Operations of config_value_net.c, with the contracts of struct type_ops. */
int value_set_addr(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_target(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_nets(const struct config_key *, void *at, const struct config_value *, char why[CONFIG_WHY_MAX]);
void value_print_addr(const struct config_key *, const void *at, FILE *);
void value_print_target(const struct config_key *, const void *at, FILE *);
void value_print_nets(const struct config_key *, const void *at, FILE *);
bool value_addr_equal(const void *, const void *);
bool value_target_equal(const void *, const void *);
bool value_nets_equal(const void *, const void *);
bool value_addr_empty(const void *at);
bool value_nets_empty(const void *at);
