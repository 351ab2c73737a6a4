/* Sessions and services for smcrctl, commands of the operator, and new addresses of names; see worker.h. */
#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/leg/clc_stream.h"
#include "daemon/session/session.h"
#include "daemon/service/service.h"
#include "daemon/worker/worker_int.h"

struct smcr *
worker_engine(struct worker *w)
{
	return w->env.eng;
}

const struct devices *
worker_devices(const struct worker *w)
{
	return w->devices;
}

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *info)
{
	const struct session *s = idtable_next(&w->sessions.sessions, pos);

	if (s != NULL)
		session_info(s, info);
	return s != NULL;
}

/* Names are unique over ingresses and egresses. */
static struct service *
find_by_name(const struct worker *w, const char *name)
{
	LIST_EACH(struct service, svc, &w->sessions.services, node)
		if (strcmp(svc->settings->cfg.name, name) == 0)
			return svc;
	return NULL;
}

/* pos counts the passed services. */
static const struct service *
next_service(const struct worker *w, uint32_t *pos)
{
	uint32_t i = 0;

	LIST_EACH(const struct service, svc, &w->sessions.services, node) {
		if (i++ < *pos)
			continue;
		++*pos;
		return svc;
	}
	return NULL;
}

static void
fill_info(const struct service *svc, struct service_info *info)
{
	*info = svc->ctr;
	info->cfg = &svc->settings->cfg;
	info->disabled = svc->disabled;
	info->closed = service_is_closed(svc);
	info->targets = svc->settings->targets;
	info->bytes_from_app = svc->stats.bytes[WAY_FROM_APP];
	info->bytes_to_app = svc->stats.bytes[WAY_TO_APP];
}

bool
worker_service_next(const struct worker *w, uint32_t *pos, struct service_info *info)
{
	const struct service *svc = next_service(w, pos);

	if (svc != NULL)
		fill_info(svc, info);
	return svc != NULL;
}

bool
worker_service_find(const struct worker *w, const char *name, struct service_info *info, struct outage_info *outage)
{
	const struct service *svc = find_by_name(w, name);

	if (svc == NULL)
		return false;
	fill_info(svc, info);
	outage_look(svc, outage);
	return true;
}

const struct service_stats *
worker_service_stats(const struct worker *w, const char *name)
{
	const struct service *svc = find_by_name(w, name);

	return svc != NULL ? &svc->stats : NULL;
}

bool
worker_stats_next(
    const struct worker *w, uint32_t *pos, const struct config_service **cfg, const struct service_stats **stats)
{
	const struct service *svc = next_service(w, pos);

	if (svc == NULL)
		return false;
	*cfg = &svc->settings->cfg;
	*stats = &svc->stats;
	return true;
}

void
worker_stats(const struct worker *w, struct worker_stats *stats)
{
	const struct session_stats *s = &w->sessions.stats;
	const struct spin_counters *spin = loop_spin_counters(w->env.loop);

	*stats = (struct worker_stats){
		.accept_pauses = s->accept_pauses,
		.sessions_opened = s->opened,
		.sessions_closed = s->closed,
		.sessions_reset = s->reset,
		.sessions_closed_operator = s->closed_operator,
		.tcp_bytes = s->tcp_bytes,
		.option_agreed = s->option_agreed,
		.option_missing = s->option_missing,
		.option_unknown = s->option_unknown,
		.option_stray_clc = s->option_stray_clc,
		.turns = w->turns,
		.spins = spin->spins,
		.spin_hits = spin->hits,
		.spin_wanted = spin->wanted,
		.spun_us = spin->spun_us,
		.draining = w->draining,
		.uptime_ns = w->env.now_ns - w->started_ns,
		.setups = w->sessions.setup_slab.used,
	};
}

struct session_pool *
worker_sessions(struct worker *w)
{
	return &w->sessions;
}

int
worker_check(struct worker *w, const struct sockaddr_storage *peer, uint32_t timeout_ms, uint64_t bulk,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	const struct probe_target target = {
		.addrs = peer,
		.addr_cnt = 1,
		.elem_size = bulk > 0 ? 0 : SMCR_ELEM_MIN, /* measured with the size of services */
		.bulk = bulk,
		.timeout_ms = timeout_ms,
		.peer = SMCR_PEER_AUTO,
		.insist = true,
	};

	return probe_start(&w->sessions, &target, done, arg) != NULL ? 0 : -ENOMEM;
}

bool
worker_close_next(struct worker *w, uint32_t *pos, const struct close_filter *filter, bool *closed)
{
	struct session *s = idtable_next(&w->sessions.sessions, pos);

	*closed = s != NULL && session_matches(s, filter) && session_close(s);
	if (*closed)
		loop_again(w->env.loop);
	return s != NULL;
}

int
worker_set_disabled(struct worker *w, const char *name, bool disabled)
{
	struct service *svc = find_by_name(w, name);

	if (svc == NULL)
		return -ENOENT;
	if (w->sessions.place.nr == 0 && svc->disabled != disabled)
		log_msg(LOG_LVL_NOTICE, "service %s: service=%s", disabled ? "disabled" : "enabled", name);
	svc->disabled = disabled;
	return service_follow(svc);
}

void
worker_follow_targets(struct worker *w)
{
	services_follow(&w->sessions);
}

struct worker_retried
worker_retry(struct worker *w, const struct sockaddr_storage *peer)
{
	struct worker_retried done = {
		.prewarms = services_retry(&w->sessions, peer),
		.targets = services_retry_now(&w->sessions, peer),
	};
	char key[ADDR_STR_MAX + 1];
	uint8_t addr[16];

	if (peer == NULL) {
		done.devices = devices_retry(w->devices);
		done.engine = smcr_retry(w->env.eng, NULL, NULL);
	} else {
		addr_to_v6(peer, addr);
		done.engine = smcr_retry(w->env.eng, addr, middle_key(peer, key, sizeof(key)));
	}
	loop_again(w->env.loop);
	return done;
}

void
worker_targets_changed(struct worker *w, const char *service)
{
	struct service *svc = find_by_name(w, service);

	if (svc != NULL && !w->draining)
		service_prewarm(svc);
}
