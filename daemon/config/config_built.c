/* Optional features of this build that a configuration may use. A separate file, so that a test can replace it. */
#include <config.h>

#include "daemon/config/config.h"

bool
config_names_wait(void)
{
	return HAVE_CARES;
}

bool
config_has_user_sctp(void)
{
	return HAVE_USRSCTP;
}
