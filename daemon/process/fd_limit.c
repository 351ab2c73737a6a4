/* The limit of open files; see process/fd_limit.h. */
#include "daemon/process/fd_limit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "control/files.h"
#include "daemon/worker/workers.h"

struct fd_limit
open_files_of(const struct config *cfg, unsigned workers)
{
	struct files f = {
		.workers = workers,
		.services = cfg->service_cnt,
		.devices = (uint64_t)cfg->device_cnt * workers,
		.metrics = cfg->metrics.listen.ss_family != 0,
	};

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		f.connections += cfg->services[i].max_connections;
	return (struct fd_limit){ .needed = files_needed(&f), .connections = f.connections * FILES_PER_CONNECTION };
}

uint64_t
open_files_enough_for(const struct fd_limit *of, uint64_t limit)
{
	uint64_t other = of->needed - of->connections;

	return limit > other ? (limit - other) / FILES_PER_CONNECTION : 0;
}

void
fd_limit_raise(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) != 0)
		log_msg(LOG_LVL_WARNING, "cannot raise the limit of open files: error=\"%s\"", strerror(errno));
}

void
fd_limit_check(struct fd_limit *before, const struct config *cfg)
{
	const struct fd_limit now = open_files_of(cfg, workers_wanted(cfg));
	bool said = now.needed == before->needed;
	struct rlimit lim;

	*before = now;
	if (said || getrlimit(RLIMIT_NOFILE, &lim) != 0 || !files_are_few(lim.rlim_cur, now.needed))
		return;
	log_msg(LOG_LVL_WARNING,
	    "the limit of open files is too low for max_connections of all services, "
	    "accepting pauses when it is reached: limit=%llu needed=%llu enough_for_connections=%llu",
	    (unsigned long long)lim.rlim_cur, (unsigned long long)now.needed,
	    (unsigned long long)open_files_enough_for(&now, lim.rlim_cur));
}
