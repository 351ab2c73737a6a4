/* File descriptors: see fdlimit.h. Called by smcrd.c at start and after a reload. */
#include "daemon/fdlimit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"

#define FDS_PER_CONNECTION 2 /* client and middle, or middle and server */
#define FDS_PER_DEVICE 32    /* listener and some links */
#define FDS_OTHER 64         /* standard streams, loop, control clients, log */

void
fdlimit_raise(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) != 0)
		log_msg(LOG_LVL_WARNING, "cannot raise the limit of open files: error=\"%s\"", strerror(errno));
}

static uint64_t
fds_besides(const struct config *cfg)
{
	return FDS_OTHER + cfg->service_cnt + (uint64_t)cfg->device_cnt * FDS_PER_DEVICE;
}

uint64_t
fdlimit_needed(const struct config *cfg)
{
	uint64_t connections = 0;

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		connections += cfg->services[i].max_connections;
	return connections * FDS_PER_CONNECTION + fds_besides(cfg);
}

void
fdlimit_check(const struct config *cfg)
{
	uint64_t needed = fdlimit_needed(cfg), other = fds_besides(cfg);
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == RLIM_INFINITY || needed <= lim.rlim_cur)
		return;
	log_msg(LOG_LVL_WARNING,
	    "the limit of open files is too low for max_connections of all services, "
	    "accepting pauses when it is reached: limit=%llu needed=%llu enough_for_connections=%llu",
	    (unsigned long long)lim.rlim_cur, (unsigned long long)needed,
	    (unsigned long long)(lim.rlim_cur > other ? (lim.rlim_cur - other) / FDS_PER_CONNECTION : 0));
}
