/* Between the parts of the configuration reader, see doc/architecture.md. Also for tests. */
#pragma once

#include <libconfig.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"

#define CONFIG_FILES_MAX 257u /* the main one and included ones */

struct config_file {
	config_t tree;
	const config_setting_t *root; /* NULL: syntax errors */
};

struct config_msg; /* one message, of config_msgs.c */

/* The configuration under construction. */
struct config_build {
	struct config *cfg;
	FILE *err; /* output of config_tell */
	struct config_msg *msgs;
	unsigned msg_cnt;
	const char *path;
	const char *instance;                                /* NULL: none */
	struct config_file *files;                           /* the main one, then those of cfg->included */
	unsigned file_cnt, reading;                          /* reading: the file that is being read */
	const config_setting_t *defaults[CONFIG_EGRESS + 1]; /* by kind; NULL = not set */
	/* Of an entry with a range of ports: the service being read, and the first port of `listen` (0: not set). */
	bool ranged;
	unsigned range_nr, range_port;
	unsigned errors; /* counted, as the load fails only after all are reported */
	unsigned again;  /* of these, temporary ones */
	bool silent;     /* a name server has not answered */
	/* For config_line: the services and devices of cfg. */
	const config_setting_t *service_src[2 * CONFIG_SERVICES_MAX];
	const config_setting_t *device_src[SMCR_LINKS_MAX];
};

/* A place: number of the file, and line in 16 bits as in libconfig. Line 0: the whole file; file 0: the main one. */
static inline unsigned
config_place(unsigned file, unsigned line)
{
	return file << 16 | (line & 0xffff);
}

/* "PATH:LINE: ..." for a place; "PATH: ..." for line 0. */
void config_error(struct config_build *, unsigned place, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void config_warning(struct config_build *, unsigned place, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Prints errors and warnings, sorted by place, without duplicates. Called once, while the file names exist. */
void config_tell(struct config_build *);
#define CONFIG_THERE_MAX (4096 + 16) /* a path and a line */
/* The place of this setting in another group: "line 7", or "PATH:7" in another file than here. Returns buf. */
const char *config_there(const struct config_build *, const config_setting_t *here, const config_setting_t *other,
    const char *name, char buf[CONFIG_THERE_MAX]);
/* Place of a setting. */
unsigned config_place_of(const config_setting_t *);
/* The place of a setting of this group, or of the group without it; 0 without a group. */
unsigned config_line(const config_setting_t *group, const char *name);
/* The group or setting of this name in the group; NULL: not found. */
const config_setting_t *config_member(const config_setting_t *group, const char *name);

/* Reports the first error that libconfig (1.5) accepts or describes only as a syntax error. These are integers that
 * wrap, strings and comments without end, NUL bytes, @include, and characters not allowed outside strings and
 * comments. Without an error libconfig may parse the text. */
void config_scan(struct config_build *, const char *text, size_t len);
/* Starts an entry of ingress or egress; `listen` and each target of `to` may have port ranges of equal length. Returns
 * the number of services, 1 without a range, or 0 with errors reported. */
unsigned config_range_start(struct config_build *, const struct config_section *, const config_setting_t *group);
/* `listen` or a target of service nr of a range: buf, with its port, or the text without a range. */
const char *config_range_text(const char *text, unsigned nr, char buf[CONFIG_TARGET_STR_MAX]);

/* Parses the text of the main file into b->files: 0, or negative with errors reported. */
int config_files_open(struct config_build *, const char *text, size_t len);
/* Reads the files that cfg->include names, sorted by name. */
void config_files_include(struct config_build *);
void config_files_close(struct config_build *);
/* The text, to be freed, followed by a NUL; NULL and why, static or strerror's. */
char *config_file_read(const char *path, bool included, size_t *len, const char **why);

/* Duplicates, overlapping listen addresses, conflicting settings. */
void config_check(struct config_build *);
/* Is the setting written, with another value than the default? A canonical form has each. base: the struct of the place. */
bool config_is_chosen(enum config_place, const config_setting_t *group, const char *name, const void *base);
/* The local address for connects to `to`: connect() on a datagram socket looks up the route and sends nothing. */
bool config_source_to(const struct sockaddr_storage *to, struct sockaddr_storage *out);
/* Looks up the names of hosts, users and groups. */
void config_look_up(struct config_build *);
/* Rules of `to`, and of `via` and `capture`. */
void config_check_via(struct config_build *, const struct config_service *, const config_setting_t *);
/* Rules of TLS for all services; then, without errors, its files. */
void config_check_tls(struct config_build *);
void config_load_tls(struct config_build *);
/* Adds a soft iWARP device for each local address that SMC-R traffic of the services uses. */
void config_default_devices(struct config_build *);

enum {
	CONFIG_NO_LOOKUP = 1 << 0, /* look up no names, read no interfaces and no other files: for tests and fuzzing */
};

/* config_load for a text in memory with this path in messages. The text ends with a NUL at text[len]. */
int config_parse(const char *path, const char *text, size_t len, unsigned flags, FILE *err, struct config **out);
