/*
 * Between the parts of the configuration reader: config.c (file to struct),
 * config_scan.c (what libconfig would let pass), config_check.c (rules across
 * settings), config_devices.c (default devices). Nobody else includes it but
 * tests and the fuzz target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_report.h"

/* Refuses what libconfig (1.5) accepts or reports without a place: numbers beyond 32 bits that it wraps, strings and
 * comments without end, deep nesting, NUL bytes, @include. True when libconfig may parse the text. */
bool config_scan(struct config_report *, const char *text, size_t len);

/* The configuration while it is being built, with the line of each setting. */
struct config_build {
	struct config *cfg;
	struct config_report *rep;
	const struct config_setting_t **service_src; /* [service_cnt]: where it stands, for config_line */
	const struct config_setting_t **device_src;  /* [device_cnt] */
	const struct config_setting_t *top_src;
};

/* Duplicates, overlapping listen addresses, settings that exclude each other. */
void config_check(struct config_build *);

/* One soft iWARP device for each local address that SMC-R traffic of the services uses. */
void config_default_devices(struct config_build *);

enum {
	CONFIG_NO_LOOKUP = 1 << 0, /* resolve no names, look at no interfaces: for tests and fuzzing */
};

/* config_load for a text in memory; path is used in messages. The text ends with a NUL at text[len]. */
int config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out);
