/* Instances: several daemons on one host. The first one has no name: its file is smcrd.conf, its directory smcrd below the run-time
 * directory. Instance NAME has the file NAME.conf and the directory smcrd-NAME, as the unit smcrd@NAME creates it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define INSTANCE_NAME_MAX 32

/* At most INSTANCE_NAME_MAX letters, digits, '-', '_' and '.', with a letter or digit first; not "smcrd", the first daemon's file. */
bool instance_name_ok(const char *name);
/* The default path of the control socket; NULL: the first daemon's. Cut to cap, returns buf. */
const char *instance_control_path(const char *name, char *buf, size_t cap);
