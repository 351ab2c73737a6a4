/* Soft iWARP over the kernel's SCTP keeps to rnic.h as it does over TCP. */
#define OVER_SCTP 1
#define SCTP_STACK SIW_STACK_KERNEL
#include "check_siw.c"

#include <sys/socket.h>

static const char *
no_sctp(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	if (fd < 0)
		return "the kernel has no SCTP";
	close(fd);
	return NULL;
}

UNIT_NEEDS(no_sctp);
