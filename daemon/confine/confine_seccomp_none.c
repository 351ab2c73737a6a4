/* Built without libseccomp: see confine_seccomp.c. */
#include "daemon/confine/confine_parts.h"

void
confine_system_calls(enum confine_do what, struct confine_part_state *out)
{
	(void)what;
	confine_part_set(out, false, "built without libseccomp");
}
