/* Messages about a configuration file, and the places that they are about. Used by everything that reads it. */
#pragma once

#include <stdio.h>

struct config_setting_t; /* libconfig's: a setting or group, where it stands in the file */

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

/* Line of a setting of this group, or of the group where it has none; 0 without a group. */
unsigned config_line(const struct config_setting_t *group, const char *name);
/* The group or setting of this name in the group; NULL when there is none. */
const struct config_setting_t *config_member(const struct config_setting_t *group, const char *name);
