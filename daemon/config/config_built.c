/* What this build has of what a configuration may ask for. A file of its own, so that a test can be another build. */
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
