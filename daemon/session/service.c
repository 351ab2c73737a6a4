/* Services and their settings; see service.h. */
#include "daemon/session/service.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
service_put(struct service *svc)
{
	assert(svc->refs > 0);
	if (--svc->refs > 0)
		return;
	timerq_unreserve(&svc->pool->env->timers, 1);
	list_remove(&svc->node);
	sources_fini(&svc->sources);
	free(svc);
}

/* One piece of memory with all that cfg points to. */
struct settings *
settings_new(struct service *svc, const struct config_service *cfg)
{
	size_t addrs_len = cfg->to.addr_cnt * sizeof(*cfg->to.addrs), allow_len = cfg->allow_cnt * sizeof(*cfg->allow);
	struct settings *s = malloc(sizeof(*s) + addrs_len + allow_len);

	if (s == NULL)
		return NULL;
	*s = (struct settings){ .cfg = *cfg, .svc = svc, .refs = 1 };
	s->cfg.to.addrs = s->addrs;
	s->cfg.allow = (void *)(s->addrs + cfg->to.addr_cnt);
	if (addrs_len > 0)
		memcpy(s->cfg.to.addrs, cfg->to.addrs, addrs_len);
	if (allow_len > 0)
		memcpy(s->cfg.allow, cfg->allow, allow_len);
	svc->refs++;
	return s;
}

struct settings *
settings_get(struct service *svc)
{
	svc->settings->refs++;
	return svc->settings;
}

void
settings_put(struct settings *s)
{
	struct service *svc = s->svc;

	assert(s->refs > 0);
	if (--s->refs > 0)
		return;
	free(s);
	service_put(svc);
}

struct service *
service_new(struct session_pool *pool, const struct config_service *cfg)
{
	struct service *svc = calloc(1, sizeof(*svc));

	if (svc == NULL)
		return NULL;
	svc->pool = pool;
	svc->refs = 1;
	list_init(&svc->node);
	listener_init(&svc->listener);
	sources_init(&svc->sources, rng_u64(&pool->env->rng));
	/* The listener's timer: starting it may not fail for want of memory. */
	if (timerq_reserve(&pool->env->timers, 1) == 0) {
		svc->settings = settings_new(svc, cfg);
		if (svc->settings != NULL)
			return svc;
		timerq_unreserve(&pool->env->timers, 1);
	}
	free(svc);
	return NULL;
}

void
service_drop(struct service *svc)
{
	struct settings *s = svc->settings;

	service_stop(svc);
	list_remove(&svc->node);
	list_push(&svc->pool->old_services, &svc->node);
	svc->settings = NULL;
	settings_put(s);
	service_put(svc);
}

void
service_change(struct service *svc, struct settings *next)
{
	struct settings *old = svc->settings;

	svc->settings = next;
	settings_put(old);
}

void
service_stop(struct service *svc)
{
	int fd = listener_stop(svc);

	prewarm_stop(svc);
	if (fd >= 0)
		close(fd);
}
