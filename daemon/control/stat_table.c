/* All counters by name; see stat_table.h. */
#include "daemon/control/stat_table.h"

#include <string.h>

#include "control/counters.h"

#define OF_SMCR(field) STAT_SMCR, offsetof(struct smcr_counters, field)
#define OF_WORKER(field) STAT_WORKER, offsetof(struct worker_stats, field)
#define OF_CONTROL(field) STAT_CONTROL, offsetof(struct control_stats, field)
#define ROW(source, field, words) { CONTROL_COUNTER_KEY(source, field), OF_##source(field) },
#define NO_ROW(heading)

const struct stat_desc stat_table[] = { CONTROL_COUNTERS(NO_ROW, ROW){ .key = NULL } };

uint64_t
stat_value(const struct stat_desc *d, const struct stat_sources *src)
{
	const void *base[] = {
		[STAT_SMCR] = src->smcr,
		[STAT_WORKER] = src->worker,
		[STAT_CONTROL] = src->control,
	};
	uint64_t v;

	memcpy(&v, (const char *)base[d->source] + d->off, sizeof(v));
	return v;
}

const char *const device_stats[] = {
	/* of cards */
	"sends_posted",
	"writes_posted",
	"doorbells",
	"completions",
	"polls",
	"wakeups",
	"rnr_retry_exc",
	"retry_exc",
	"remote_access_errs",
	"flushed",
	"other_errs",
	"async_events",
	"reads_sent",
	"mpa_refused_token",
	"mpa_refused_parked",
	/* of soft iWARP */
	"fpdus_sent",
	"fpdus_received",
	"bytes_sent",
	"bytes_received",
	"reads_served",
	"mpa_refused_address",
	"mpa_bad",
	"terminates_sent",
	"terminates_received",
	"crc_errors",
	"recv_stalls",
	"accept_pauses",
	"linger_refused",
	"no_memory",
	NULL,
};

uint64_t
device_stat_value(const char *key, const struct rnic_stat *of, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (strcmp(of[i].name, key) == 0)
			return of[i].value;
	return 0;
}
