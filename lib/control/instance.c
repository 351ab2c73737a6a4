/* Names and paths of instances; see instance.h. */
#include "control/instance.h"

#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool
instance_name_ok(const char *name)
{
	const size_t len = strspn(name, LETTERS "-_.");

	return len > 0 && len <= INSTANCE_NAME_MAX && name[len] == '\0' && strspn(name, LETTERS) > 0 &&
	    strcmp(name, "smcrd") != 0;
}

const char *
instance_control_path(const char *name, char *buf, size_t cap)
{
	(void)snprintf(buf, cap, RUNSTATEDIR "/smcrd%s%s/control", name != NULL ? "-" : "", name != NULL ? name : "");
	return buf;
}
