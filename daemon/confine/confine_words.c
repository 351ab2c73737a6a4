/* The names of the confinement's parts and modes, apart because the control library needs only these. See confine.h. */
#include "daemon/confine/confine.h"

#define WORD(constant, word, meaning) word,

const char *const confine_part_words[] = { CONFINE_PARTS(WORD) };

const char *const confine_mode_words[] = {
	[CONFIG_CONFINE_OFF] = "off",
	[CONFIG_CONFINE_AUTO] = "auto",
	[CONFIG_CONFINE_REQUIRE] = "require",
};
