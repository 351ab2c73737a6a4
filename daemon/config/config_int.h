/* Between the parts of the configuration reader: config.c (settings to struct), config_text.c (messages, and what
 * libconfig would let pass), config_check.c (rules across settings), config_devices.c (default devices); for tests,
 * too. */
#pragma once

#include <stddef.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"

struct config_setting_t; /* libconfig's: a setting or group, where it stands in the file */

/* The configuration while it is being built. */
struct config_build {
	struct config *cfg;
	FILE *err; /* where messages go */
	const char *path;
	unsigned errors; /* counted, so that all of them are reported before the load fails */
	unsigned again;  /* of these, those that may go away by themselves */
	/* For config_line: the file, services and devices of cfg. */
	const struct config_setting_t *top_src;
	const struct config_setting_t *service_src[2 * CONFIG_SERVICES_MAX];
	const struct config_setting_t *device_src[SMCR_LINKS_MAX];
};

/* "PATH:LINE: ..."; line 0 = about the file as a whole, "PATH: ...". */
void config_error(struct config_build *, unsigned line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void config_warning(struct config_build *, unsigned line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Line of a setting of this group, or of the group where it has none; 0 without a group. */
unsigned config_line(const struct config_setting_t *group, const char *name);
/* The group or setting of this name in the group; NULL when there is none. */
const struct config_setting_t *config_member(const struct config_setting_t *group, const char *name);

/* The key, or at top level the section, of these places (CONFIG_AT_ bits) that an unknown name is like; NULL when none is. */
const char *config_nearest(unsigned places, const char *name);

/* Refuses what libconfig (1.5) accepts or reports without a place: numbers beyond 32 bits that it wraps, strings and
 * comments without end, deep nesting, NUL bytes, @include, and whatever is against the grammar. Without an error libconfig
 * may parse the text. */
void config_scan(struct config_build *, const char *text, size_t len);
/* Duplicates, overlapping listen addresses, settings that exclude each other. */
void config_check(struct config_build *);
/* Fills in what names of hosts, users and groups stand for. */
void config_look_up(struct config_build *);
/* One soft iWARP device for each local address that SMC-R traffic of the services uses. */
void config_default_devices(struct config_build *);

enum {
	CONFIG_NO_LOOKUP = 1 << 0, /* resolve no names, look at no interfaces: for tests and fuzzing */
};

/* config_load for a text in memory; path is used in messages. The text ends with a NUL at text[len]. */
int config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out);
