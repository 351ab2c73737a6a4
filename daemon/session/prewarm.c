/* Link groups made ahead; see service.h. */
#include "daemon/session/service.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/session/probe.h"

#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
#define TIMEOUT_MS 15000

struct prewarm {
	struct service *svc;
	struct probe *probe; /* NULL while pausing and when done */
	struct timer timer;  /* the pause */
	uint32_t pause_ms;
};

static void attempt(struct prewarm *);

static void
pause_before_next(struct prewarm *pw)
{
	env_arm(pw->svc->pool->env, &pw->timer, pw->pause_ms);
	pw->pause_ms = pw->pause_ms * 2 < PAUSE_MAX_MS ? pw->pause_ms * 2 : PAUSE_MAX_MS;
}

static void
on_done(void *arg, const struct check_result *r)
{
	struct prewarm *pw = arg;
	const char *name = pw->svc->settings->cfg.name;

	pw->probe = NULL;
	if (r->possible) {
		log_msg(LOG_LVL_NOTICE, "link group made ahead: service=%s result=\"%s\"", name, r->text);
		return;
	}
	log_msg(LOG_LVL_NOTICE, "link group could not be made ahead: service=%s result=\"%s\" again_in_ms=%u", name,
	    r->text, pw->pause_ms);
	pause_before_next(pw);
}

static void
on_timer(struct timer *t)
{
	attempt(CONTAINER_OF(t, struct prewarm, timer));
}

static void
attempt(struct prewarm *pw)
{
	const struct config_service *cfg = &pw->svc->settings->cfg;
	const struct probe_target target = {
		.addrs = cfg->to.addrs,
		.addr_cnt = cfg->to.addr_cnt,
		.elem_size = cfg->elem_size,
		.timeout_ms = TIMEOUT_MS,
	};

	pw->probe = probe_start(pw->svc->pool, &target, on_done, pw);
	if (pw->probe == NULL)
		pause_before_next(pw);
}

int
prewarm_start(struct service *svc)
{
	const struct config_service *cfg = &svc->settings->cfg;
	struct prewarm *pw;

	if (!cfg->prewarm || cfg->kind != CONFIG_INGRESS)
		return 0;
	pw = calloc(1, sizeof(*pw));
	if (pw == NULL || timerq_reserve(&svc->pool->env->timers, 1) != 0) {
		free(pw);
		return -ENOMEM;
	}
	pw->svc = svc;
	pw->pause_ms = PAUSE_MIN_MS;
	timer_init(&pw->timer, on_timer);
	svc->prewarm = pw;
	attempt(pw);
	return 0;
}

void
prewarm_stop(struct service *svc)
{
	struct prewarm *pw = svc->prewarm;

	if (pw == NULL)
		return;
	if (pw->probe != NULL)
		probe_cancel(pw->probe);
	timer_cancel(&svc->pool->env->timers, &pw->timer);
	timerq_unreserve(&svc->pool->env->timers, 1);
	free(pw);
	svc->prewarm = NULL;
}
