/* The limit of open files; see open_files.h. */
#include "daemon/open_files.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "daemon/worker/workers.h"

#define FDS_PER_CONNECTION 2 /* client and middle, or middle and server */
#define FDS_PER_DEVICE 32    /* listener and some links */
#define FDS_PER_WORKER 8     /* loop, mailbox, netlink */
#define FDS_METRICS 128      /* clients, those sent away included */
#define FDS_OTHER 64         /* standard streams, loop, control clients, log */

struct open_files
open_files_of(const struct config *cfg, unsigned workers)
{
	uint64_t each = FDS_PER_WORKER + cfg->service_cnt + (uint64_t)cfg->device_cnt * FDS_PER_DEVICE;
	uint64_t metrics = cfg->metrics.listen.ss_family != 0 ? FDS_METRICS : 0;
	uint64_t connections = 0;

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		connections += (uint64_t)cfg->services[i].max_connections * FDS_PER_CONNECTION;
	return (struct open_files){ .needed = FDS_OTHER + metrics + each * workers + connections,
		.connections = connections };
}

uint64_t
open_files_enough_for(const struct open_files *of, uint64_t limit)
{
	uint64_t other = of->needed - of->connections;

	return limit > other ? (limit - other) / FDS_PER_CONNECTION : 0;
}

void
open_files_raise(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == lim.rlim_max)
		return;
	lim.rlim_cur = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) != 0)
		log_msg(LOG_LVL_WARNING, "cannot raise the limit of open files: error=\"%s\"", strerror(errno));
}

void
open_files_check(struct open_files *before, const struct config *cfg)
{
	const struct open_files now = open_files_of(cfg, workers_wanted(cfg));
	bool said = now.needed == before->needed;
	struct rlimit lim;

	*before = now;
	if (said || getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == RLIM_INFINITY || now.needed <= lim.rlim_cur)
		return;
	log_msg(LOG_LVL_WARNING,
	    "the limit of open files is too low for max_connections of all services, "
	    "accepting pauses when it is reached: limit=%llu needed=%llu enough_for_connections=%llu",
	    (unsigned long long)lim.rlim_cur, (unsigned long long)now.needed,
	    (unsigned long long)open_files_enough_for(&now, lim.rlim_cur));
}
