/* Between the parts of config_value: config_value.c, config_value_net.c, config_value_out.c. */
#ifndef SMCRD_CONFIG_VALUE_INT_H
#define SMCRD_CONFIG_VALUE_INT_H

#include "daemon/config/config_value.h"

#define VALUE_SHOW_MAX 72

/* Largest first, so that printing takes the first that divides; ends with text == NULL. */
struct value_unit {
	const char *text;
	uint64_t factor;
};

extern const struct value_unit value_size_units[];
extern const struct value_unit value_time_units[];
extern const struct value_unit value_micro_units[];

/* -EINVAL, with the reason in why. */
int value_bad(char why[CONFIG_WHY_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int value_bad_type(const struct config_key *, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_bad_range(const struct config_key *, const struct config_value *, char why[CONFIG_WHY_MAX]);
/* What was written, short and printable, for messages. */
const char *value_show(const struct config_value *, char buf[VALUE_SHOW_MAX]);
/* Decimal digits alone. 0, -EINVAL or -ERANGE (more than 64 bits). */
int value_parse_uint(const char *text, uint64_t *out);
bool value_is_name_char(char c);

/* Setters of config_value_net.c, with the contract of config_value_set. */
int value_set_addr(const struct config_key *, void *base, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_listen(const struct config_key *, void *base, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_target(const struct config_key *, void *base, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_nets(const struct config_key *, void *base, const struct config_value *, char why[CONFIG_WHY_MAX]);
int value_set_ports(const struct config_key *, void *base, const struct config_value *, char why[CONFIG_WHY_MAX]);

#endif
