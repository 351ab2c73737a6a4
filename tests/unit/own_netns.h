/* A network namespace of the test's own, for tests with interfaces. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* root of a user namespace of our own will do */
static inline bool
own_user_namespace(void)
{
	unsigned uid = geteuid();

	if (unshare(CLONE_NEWUSER) != 0)
		return false;
	FILE *f = fopen("/proc/self/uid_map", "w");
	if (f == NULL)
		return false;
	fprintf(f, "0 %u 1", uid);
	return fclose(f) == 0;
}

/* Runs commands of ip(8), one a line: true when all went well. */
static inline bool
ip_batch(const char *commands)
{
	FILE *f = popen("PATH=$PATH:/usr/sbin:/sbin exec ip -batch - >/dev/null 2>&1", "w");

	if (f == NULL)
		return false;
	fputs(commands, f);
	return pclose(f) == 0;
}

/* This process, which the test forked, gets a network namespace and these interfaces. False, and said why, where the
 * machine has none for us. */
static inline bool
own_netns(const char *commands)
{
	if ((unshare(CLONE_NEWNET) == 0 || (own_user_namespace() && unshare(CLONE_NEWNET) == 0)) && ip_batch(commands))
		return true;
	fprintf(stderr, "# no network namespace of our own, or no ip(8): not tested here\n");
	return false;
}
