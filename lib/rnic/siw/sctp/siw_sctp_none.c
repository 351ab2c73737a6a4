/* Soft iWARP, DDP over SCTP: a build without a stack in user space; see siw_sctp.h. */
#include <errno.h>

#include "rnic/siw/sctp/siw_sctp.h"

static int
open_none(struct siw_dev *dev, const char **err)
{
	(void)dev;
	*err = "SCTP: this smcrd was built without libusrsctp";
	return -ENOTSUP;
}

/* Nothing else of a device that could not be opened is called. */
const struct siw_sctp_stack siw_sctp_user = { .open = open_none };
