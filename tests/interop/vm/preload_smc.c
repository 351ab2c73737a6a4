/*
 * For LD_PRELOAD in the laboratory: TCP sockets that a program makes are AF_SMC ones, and nothing else is changed. What a program
 * does to its socket afterwards is the kernel's business: it hands addresses and options of TCP on to the TCP socket within.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif
enum { SMC_OVER_IPV4, SMC_OVER_IPV6 }; /* protocols of AF_SMC */

/* The library's name: the program gets ours in its place. */
__attribute__((visibility("default"))) int
socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if ((domain == AF_INET || domain == AF_INET6) && kind == SOCK_STREAM &&
	    (protocol == 0 || protocol == IPPROTO_TCP)) {
		protocol = domain == AF_INET6 ? SMC_OVER_IPV6 : SMC_OVER_IPV4;
		domain = AF_SMC;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}
