/* Descriptors that a test program has, for what must not leak. */
#pragma once

#include <fcntl.h>

static inline unsigned
open_fds(void)
{
	unsigned cnt = 0;

	for (int fd = 0; fd < 256; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}
