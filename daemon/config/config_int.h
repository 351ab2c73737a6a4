/*
 * Between the parts of the configuration reader: config.c (file to struct),
 * config_scan.c (what libconfig would let pass), config_check.c (rules across
 * settings), config_devices.c (default devices). Nobody else includes it but
 * tests and the fuzz target.
 */
#ifndef SMCRD_CONFIG_INT_H
#define SMCRD_CONFIG_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"

/* Where errors go: counted, so that all of them are reported before the load fails. */
struct config_report {
	FILE *err;
	const char *path;
	unsigned errors;
	unsigned again; /* of these, those that may go away by themselves */
};

/* "PATH:LINE: ..."; line 0 = about the file as a whole, "PATH: ...". */
void config_error(struct config_report *, unsigned line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void config_warning(struct config_report *, unsigned line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What libconfig (1.5) swallows or reports without a place: numbers beyond 32 bits that it wraps, strings and
 * comments without end, deep nesting, NUL bytes, @include. True when libconfig may parse the text. */
bool config_scan(struct config_report *, const char *text, size_t len);

/* The configuration while it is being built, with the line of each setting. */
struct config_build {
	struct config *cfg;
	struct config_report *rep;
	const void **service_src; /* [service_cnt]: where it stands, for config_line */
	const void **device_src;  /* [device_cnt] */
	const void *top_src;
};

/* Line of a setting of this group, or of the group where it has none. */
unsigned config_line(const void *src, const char *name);
/* The group or setting of this name below src; NULL when there is none. */
const void *config_member(const void *src, const char *name);

/* Duplicates, overlapping listen addresses, settings that exclude each other. */
void config_check(struct config_build *);

/* One soft iWARP device for each local address that SMC-R traffic of the services uses. */
void config_default_devices(struct config_build *);

enum {
	CONFIG_NO_LOOKUP = 1 << 0, /* resolve no names, look at no interfaces: for tests and fuzzing */
};

/* config_load for a text in memory; path is used in messages. The text ends with a NUL at text[len]. */
int config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out);

#endif
