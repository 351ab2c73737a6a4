/* Services and their prewarming; see service.h. */
#include "daemon/service/service.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
#define TIMEOUT_MS 15000

/* -- prewarming -- */

static void
pause_before_next(struct service *svc)
{
	struct prewarm *pw = &svc->prewarm;

	env_arm(svc->pool->env, &pw->pause, pw->pause_ms);
	pw->pause_ms = pw->pause_ms * 2 < PAUSE_MAX_MS ? pw->pause_ms * 2 : PAUSE_MAX_MS;
}

static void
on_verdict(void *arg, const struct check_result *r)
{
	struct service *svc = arg;
	const char *name = svc->settings->cfg.name;

	svc->prewarm.probe = NULL;
	if (r->possible) {
		log_msg(LOG_LVL_NOTICE, "link group prewarmed: service=%s result=\"%s\"", name, r->text);
		return;
	}
	/* Logged once: it may last, as with peer = "auto" a plain server is no fault. */
	bool news = strcmp(svc->prewarm.failure, r->text) != 0;
	log_msg(news ? LOG_LVL_NOTICE : LOG_LVL_DEBUG, "prewarming failed: service=%s result=\"%s\" again_in_ms=%u",
	    name, r->text, svc->prewarm.pause_ms);
	memcpy(svc->prewarm.failure, r->text, sizeof(svc->prewarm.failure));
	pause_before_next(svc);
}

static void
attempt(struct service *svc)
{
	const struct config_service *cfg = &svc->settings->cfg;
	struct env *env = svc->pool->env;
	struct sockaddr_storage addrs[CONFIG_TARGET_ADDRS_MAX];
	struct probe_target t = {
		.addrs = addrs, .elem_size = cfg->elem_size, .timeout_ms = TIMEOUT_MS, .peer = cfg->peer
	};
	struct endpoint_pick pick;
	uint64_t tried = 0;

	struct endpoints *es = targets_lock(svc->settings->targets);
	while (t.addr_cnt < CONFIG_TARGET_ADDRS_MAX && endpoints_pick(es, env->now_ns, &env->rng, &tried, &pick))
		addrs[t.addr_cnt++] = pick.addr;
	targets_unlock(svc->settings->targets);
	/* No address yet: service_prewarm is called when a name is resolved. */
	if (t.addr_cnt == 0)
		return;
	t.secure = cfg->secure != CONFIG_SECURE_OFF ? svc->settings : NULL;
	svc->prewarm.probe = probe_start(svc->pool, &t, on_verdict, svc);
	if (svc->prewarm.probe == NULL)
		pause_before_next(svc);
}

static void
on_pause_over(struct timer *t)
{
	attempt(CONTAINER_OF(t, struct service, prewarm.pause));
}

static void
prewarm_stop(struct service *svc)
{
	if (svc->prewarm.probe != NULL)
		probe_cancel(svc->prewarm.probe);
	svc->prewarm.probe = NULL;
	timer_cancel(&svc->pool->env->timers, &svc->prewarm.pause);
}

void
service_prewarm(struct service *svc)
{
	prewarm_stop(svc);
	if (!svc->settings->cfg.prewarm || svc->settings->cfg.kind != CONFIG_INGRESS || svc->disabled ||
	    svc->pool->draining)
		return;
	svc->prewarm.pause_ms = PAUSE_MIN_MS;
	svc->prewarm.failure[0] = '\0';
	attempt(svc);
}

unsigned
services_retry(struct session_pool *pool, const struct sockaddr_storage *peer, unsigned *targets)
{
	unsigned cnt = 0, nr;

	LIST_EACH(struct service, svc, &pool->services, node) {
		if (timer_armed(&svc->prewarm.pause) &&
		    (peer == NULL || targets_find(svc->settings->targets, peer, &nr))) {
			service_prewarm(svc);
			cnt++;
		}
		*targets += target_probe_now(svc, peer);
	}
	return cnt;
}

/* -- start and stop -- */

struct service *
service_new(struct session_pool *pool, const struct config_service *cfg)
{
	struct service *svc = calloc(1, sizeof(*svc));

	if (svc == NULL || timerq_reserve(&pool->env->timers, SERVICE_TIMERS) != 0) {
		free(svc);
		return NULL;
	}
	svc->pool = pool;
	svc->refs = 1;
	list_init(&svc->node);
	listener_init(&svc->listener);
	timer_init(&svc->prewarm.pause, on_pause_over);
	target_probe_init(&svc->retry);
	svc->admission = admission_get(pool->place.admissions, cfg);
	if (svc->admission != NULL) {
		svc->outage = &svc->admission->outage;
		svc->fallback_periods = &svc->admission->fallback_periods;
		svc->settings = settings_new(svc, cfg);
	}
	if (svc->settings != NULL)
		return svc;
	service_put(svc);
	return NULL;
}

void
service_drop(struct service *svc)
{
	service_stop(svc);
	admission_retire(svc->pool->place.admissions, svc->admission);
	list_remove(&svc->node);
	list_push(&svc->pool->old_services, &svc->node);
	settings_put(svc->settings);
	svc->settings = NULL;
	service_put(svc);
}

void
service_stop(struct service *svc)
{
	struct listen_socket sock = listener_stop(svc);

	prewarm_stop(svc);
	target_probe_stop(svc);
	listen_socket_close(&sock);
}

static void
log_when_down(const struct service *svc, enum listener_mode before)
{
	struct session_pool *pool = svc->pool;

	if (pool->place.nr != 0 || svc->disabled || pool->draining ||
	    svc->settings->cfg.when_down != CONFIG_DOWN_CLOSE_LISTENER)
		return;
	if (service_is_closed(svc))
		log_limited(&pool->lim_target, pool->env->now_ns, LOG_LVL_WARNING,
		    "listener closed, no target works: service=%s looked_at_every_ms=%u", svc->settings->cfg.name,
		    svc->settings->cfg.retry_ms);
	else if (before == LISTENER_SHUT)
		log_limited(&pool->lim_target, pool->env->now_ns, LOG_LVL_NOTICE,
		    "listener open again, a target works: service=%s", svc->settings->cfg.name);
}

int
service_follow(struct service *svc)
{
	enum listener_mode before = svc->listener.mode;
	int rc = listener_follow(svc);

	if (rc != 0)
		log_msg(
		    LOG_LVL_ERROR, "service failed: service=%s reason=\"%s\"", svc->settings->cfg.name, strerror(-rc));
	if (svc->listener.mode != before) {
		service_prewarm(svc);
		log_when_down(svc, before);
	}
	return rc;
}

bool
service_is_closed(const struct service *svc)
{
	return svc->listener.mode == LISTENER_SHUT && !svc->disabled && !svc->pool->draining;
}
