/* What devices have counted and an operator should hear of; see devices.h. */
#include <string.h>

#include "daemon/device/devices.h"
#include "daemon/device/devices_priv.h"

#define PAUSE_MS 1000 /* between two looks: so much is one line */

static const struct {
	const char *counter, *words;
} watched[DEVICE_TOLD_MAX] = {
	{ "mpa_refused_address", "MPA connections from addresses that may not connect" },
	{ "mpa_bad", "MPA connections without a proper request" },
	{ "mpa_refused_token", "MPA connections refused: not of a peer, or for no link that waits" },
	{ "mpa_refused_parked", "MPA connections refused: nobody expected them" },
	{ "crc_errors", "CRC errors" },
	{ "terminates_sent", "streams ended because of the peer's errors" },
	{ "terminates_received", "streams ended by the peer because of errors" },
	{ "accept_pauses", "accepting paused: out of descriptors" },
	{ "no_memory", "out of memory" },
};

static void
look_at(struct device *me, const struct rnic_stat *stats, unsigned cnt)
{
	for (unsigned i = 0; i < DEVICE_TOLD_MAX; i++) {
		for (unsigned k = 0; k < cnt; k++) {
			uint64_t value = stats[k].value;

			if (strcmp(stats[k].name, watched[i].counter) != 0 || value == me->told[i])
				continue;
			log_msg(LOG_LVL_NOTICE, "%s: device=%s count=%llu total=%llu", watched[i].words, me->name,
			    (unsigned long long)(value - me->told[i]), (unsigned long long)value);
			me->told[i] = value;
		}
	}
}

int64_t
devices_log(struct worker *w)
{
	struct devices *d = w->devices;
	struct rnic_stat stats[RNIC_STATS_MAX];

	if (w->now_ns < d->log_ns)
		return d->log_ns;
	d->log_ns = w->now_ns + PAUSE_MS * NS_PER_MS;
	for (unsigned i = 0; i < d->cnt; i++) {
		struct device *me = &d->devs[i];

		if (me->dev->ops->stats != NULL)
			look_at(me, stats, me->dev->ops->stats(me->dev, stats));
	}
	return INT64_MAX;
}
