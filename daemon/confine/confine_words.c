/* The confinement's words; apart, because the control socket's library has no more of it. See confine.h. */
#include "daemon/confine/confine.h"

const char *
confine_part_str(enum confine_part part)
{
	switch (part) {
	case CONFINE_PRIVILEGES:
		return "no_new_privs";
	case CONFINE_CAPABILITIES:
		return "capabilities";
	case CONFINE_FILES:
		return "files";
	case CONFINE_SYSTEM_CALLS:
		return "system_calls";
	case CONFINE_PART_CNT:
		break;
	}
	return "";
}

const char *
confine_mode_str(enum config_confine mode)
{
	switch (mode) {
	case CONFIG_CONFINE_OFF:
		return "off";
	case CONFIG_CONFINE_AUTO:
		return "auto";
	case CONFIG_CONFINE_REQUIRE:
		return "require";
	}
	return "";
}
