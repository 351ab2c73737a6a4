/* What smcrctl shows of a worker: walks and figures of worker.h. */
#include "daemon/device/devices.h"
#include "daemon/session/service.h"
#include "daemon/session/session.h"
#include "daemon/worker/worker_priv.h"

struct smcr *
worker_engine(struct worker *w)
{
	return w->eng;
}

struct rnic_dev *
worker_device(struct worker *w, unsigned i)
{
	return devices_get(w, i);
}

const char *
worker_interface(const struct worker *w, unsigned index)
{
	return devices_interface(w, index);
}

bool
worker_device_info(const struct worker *w, unsigned i, struct device_info *info)
{
	return devices_info(w, i, info);
}

int64_t
worker_now_ns(const struct worker *w)
{
	return w->now_ns;
}

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *info)
{
	const struct session *s = idtable_next(&w->sessions, pos);

	if (s == NULL)
		return false;
	session_info(s, info);
	return true;
}

/* *pos counts the services passed. */
bool
worker_service_next(const struct worker *w, uint32_t *pos, struct service_info *info)
{
	uint32_t i = 0;

	LIST_FOREACH(n, &w->services) {
		const struct service *svc = CONTAINER_OF(n, struct service, node);

		if (i++ < *pos)
			continue;
		*info = (struct service_info){
			.cfg = &svc->settings->cfg,
			.connections = svc->connections,
			.accepted = svc->accepted,
			.refused_allow = svc->refused_allow,
			.refused_max = svc->refused_max,
			.refused_per_peer = svc->refused_per_peer,
			.refused_connect = svc->refused_connect,
			.refused_fallback = svc->refused_fallback,
			.fallbacks = svc->fallbacks,
			.resets = svc->resets,
		};
		++*pos;
		return true;
	}
	return false;
}

void
worker_stats(const struct worker *w, struct worker_stats *stats)
{
	*stats = w->stats;
}

const struct worker_fallbacks *
worker_fallbacks(const struct worker *w)
{
	return &w->fallbacks;
}
