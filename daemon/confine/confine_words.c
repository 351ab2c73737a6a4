/* The confinement's words; apart, because the control socket's library has no more of it. See confine.h. */
#include "daemon/confine/confine.h"

const char *const confine_part_words[] = {
	[CONFINE_PRIVILEGES] = "no_new_privs",
	[CONFINE_CAPABILITIES] = "capabilities",
	[CONFINE_FILES] = "files",
	[CONFINE_SYSTEM_CALLS] = "system_calls",
};

const char *const confine_mode_words[] = {
	[CONFIG_CONFINE_OFF] = "off",
	[CONFIG_CONFINE_AUTO] = "auto",
	[CONFIG_CONFINE_REQUIRE] = "require",
};
