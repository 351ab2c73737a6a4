/* Between the parts of the configuration reader: config.c (settings to struct), config_msgs.c (messages),
 * config_scan.c (what libconfig would let pass), config_check.c (rules across settings), config_devices.c (default devices); for tests,
 * too. */
#pragma once

#include <stddef.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"

struct config_setting_t; /* libconfig's: a setting or group, where it stands in the file */
struct config_t;         /* and a file */

#define CONFIG_FILES_MAX 257u /* the main one, and those that it includes */

struct config_file {
	char *path;
	struct config_t *tree;
	const struct config_setting_t *root; /* NULL: it has errors of syntax */
};

struct config_msg; /* one message, of config_msgs.c */

/* The configuration while it is being built. */
struct config_build {
	struct config *cfg;
	FILE *err; /* where messages go, by config_tell */
	struct config_msg *msgs;
	unsigned msg_cnt;
	const char *path;
	struct config_file *files;                                  /* the main one first */
	unsigned file_cnt, reading;                                 /* the one whose text is being looked at */
	const struct config_setting_t *defaults[CONFIG_EGRESS + 1]; /* by kind; NULL = none */
	/* The entry of services that is read has a range of ports: which of the services, and the first port of `listen` (0: there
	 * is none). */
	bool ranged;
	unsigned range_nr, range_port;
	unsigned errors; /* counted, so that all of them are reported before the load fails */
	unsigned again;  /* of these, those that may go away by themselves */
	bool silent;     /* a name server has not answered */
	/* For config_line: services and devices of cfg. */
	const struct config_setting_t *service_src[2 * CONFIG_SERVICES_MAX];
	const struct config_setting_t *device_src[SMCR_LINKS_MAX];
};

/* Where something stands: the number of the file and the line, which libconfig counts in 16 bits. Line 0 is the file as a
 * whole, and 0 the main file. */
static inline unsigned
config_place(unsigned file, unsigned line)
{
	return file << 16 | (line & 0xffff);
}

/* "PATH:LINE: ...", of a place; "PATH: ..." of line 0. */
void config_error(struct config_build *, unsigned place, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void config_warning(struct config_build *, unsigned place, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Prints what was reported by these two, sorted by place; what is said twice of one place is printed once. To be called once,
 * while the files' names are there. */
void config_tell(struct config_build *);
#define CONFIG_THERE_MAX (4096 + 16) /* a path and a line */
/* "line 7", or "PATH:7" when that is not the file of the other place. Returns buf. */
const char *config_there(const struct config_build *, unsigned here, unsigned place, char buf[CONFIG_THERE_MAX]);
/* A place as the configuration keeps it. */
static inline struct config_source
config_source_of(unsigned place)
{
	return (struct config_source){ .file = place >> 16, .line = place & 0xffff };
}

/* Place of a setting. */
unsigned config_place_of(const struct config_setting_t *);
/* Place of a setting of this group, or of the group where it has none; 0 without a group. */
unsigned config_line(const struct config_setting_t *group, const char *name);
/* The group or setting of this name in the group; NULL when there is none. */
const struct config_setting_t *config_member(const struct config_setting_t *group, const char *name);

/* Reports the first of what libconfig (1.5) accepts or calls a syntax error: integers that it wraps, strings and comments
 * without end, NUL bytes, @include, and characters that have no place outside of strings and comments. Without an error
 * libconfig may parse the text. */
void config_scan(struct config_build *, const char *text, size_t len);
/* Begins with an entry of ingress or egress that may have ranges of as many ports in `listen` and each target of `to`. Returns
 * how many services it is, 1 without a range; 0 with errors reported. */
unsigned config_range_start(struct config_build *, const struct config_section *, const struct config_setting_t *group);
/* `listen` or a target of service nr of a range: buf, with its port, or the text when it has no range. */
const char *config_range_text(const char *text, unsigned nr, char buf[CONFIG_TARGET_STR_MAX]);

/* Reads and parses the main file: 0 or negative with errors reported. b->files has it. */
int config_files_open(struct config_build *, const char *path, const char *text, size_t len);
/* The files that cfg->include names, in the order of their names. */
void config_files_include(struct config_build *);
/* Copies the names of included files to the configuration. 0 or -ENOMEM. */
int config_files_keep_names(struct config_build *);
void config_files_close(struct config_build *);
/* The text, to be freed, with a NUL behind it; NULL and why, static or strerror's. */
char *config_file_read(const char *path, bool included, size_t *len, const char **why);

/* Duplicates, overlapping listen addresses, settings that exclude each other. */
void config_check(struct config_build *);
/* The local address that the kernel would connect from: connect on a datagram socket looks up the route and sends nothing. */
bool config_source_to(const struct sockaddr_storage *to, struct sockaddr_storage *out);
/* Fills in what names of hosts, users and groups stand for. */
void config_look_up(struct config_build *);
/* One soft iWARP device for each local address that SMC-R traffic of the services uses. */
void config_default_devices(struct config_build *);

enum {
	CONFIG_NO_LOOKUP =
	    1 << 0, /* resolve no names, look at no interfaces and no other files: for tests and fuzzing */
};

/* config_load for a text in memory; path is used in messages. The text ends with a NUL at text[len]. */
int config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out);
