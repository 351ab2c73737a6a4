/* Probes of failed targets; see target_probe.h. Called by session*.c and service.c. */
#include "daemon/target/target_probe.h"

#include "base/addr.h"
#include "daemon/state/service_state.h"

static void on_time(struct timer *);
static void on_leg(struct loop_io *, unsigned events);
static void target_probe_go_on(struct service *);

void
target_probe_init(struct target_probe *r)
{
	*r = (struct target_probe){ .dial.busy = false };
	leg_init(&r->leg, on_leg);
	timer_init(&r->timer, on_time);
}

static int64_t
next_ns(const struct settings *st)
{
	return st->svc->pool->env->now_ns + st->cfg.retry_ms * NS_PER_MS;
}

static void
log_good(const struct settings *st, const struct endpoint_pick *p)
{
	struct session_pool *pool = st->svc->pool;
	char addr[ADDR_STR_MAX];

	log_limited(&pool->lim_target, pool->env->now_ns, LOG_LVL_NOTICE, "target works again: service=%s target=%s",
	    st->cfg.name, addr_format_port(&p->addr, addr, sizeof(addr)));
}

/* -- results of connections -- */

void
target_good(const struct settings *st, const struct endpoint_pick *p, bool served)
{
	struct endpoints *es = targets_lock(st->targets);
	bool news = endpoints_good(es, p, served) && endpoints_count(es) > 1;

	targets_unlock(st->targets);
	if (news)
		log_good(st, p);
}

void
target_bad(const struct settings *st, const struct endpoint_pick *p, enum endpoint_fault fault, const char *why)
{
	struct service *svc = st->svc;
	struct session_pool *pool = svc->pool;
	struct endpoints *es = targets_lock(st->targets);
	bool news = endpoints_bad(es, p, fault, why, pool->env->now_ns, next_ns(st), pool->place.nr);
	bool several = endpoints_count(es) > 1;
	char addr[ADDR_STR_MAX];

	targets_unlock(st->targets);
	if (!news)
		return;
	if (several)
		log_limited(&pool->lim_target, pool->env->now_ns, LOG_LVL_WARNING,
		    "target failed: service=%s target=%s why=\"%s\" again_in_ms=%u", st->cfg.name,
		    addr_format_port(&p->addr, addr, sizeof(addr)), why, st->cfg.retry_ms);
	if (svc->settings != NULL && svc->settings->targets == st->targets && !timer_armed(&svc->retry.timer))
		target_probe_go_on(svc);
}

/* -- probes -- */

static void
end_look(struct service *svc, bool connected)
{
	struct target_probe *r = &svc->retry;
	const struct settings *st = svc->settings;

	leg_close(&r->leg, svc->pool->env->loop, false);
	r->dial.busy = false;
	struct endpoints *es = targets_lock(st->targets);
	bool news = endpoints_looked(es, &r->pick, connected, next_ns(st)) && endpoints_count(es) > 1;
	targets_unlock(st->targets);
	if (news)
		log_good(st, &r->pick);
	target_probe_go_on(svc);
}

/* Starts the next probe now or when due. One that fails at once becomes due later, which ends the recursion. */
static void
target_probe_go_on(struct service *svc)
{
	struct target_probe *r = &svc->retry;
	struct session_pool *pool = svc->pool;
	int64_t at_ns;

	timer_cancel(&pool->env->timers, &r->timer);
	struct endpoints *es = targets_lock(svc->settings->targets);
	bool due = endpoints_due(es, pool->place.nr, pool->env->now_ns, &r->pick, &at_ns);
	targets_unlock(svc->settings->targets);
	if (due) {
		r->dial = (struct dial){ .leg = &r->leg };
		if (dial_start(&r->dial, pool->env->loop, &pool->cfg->keepalive, &r->pick.addr) == 0 && !r->dial.waits)
			env_arm(pool->env, &r->timer, svc->settings->cfg.connect_ms);
		else
			end_look(svc, false);
	} else if (at_ns != INT64_MAX) {
		timer_arm(&pool->env->timers, &r->timer, at_ns);
	}
}

static void
on_leg(struct loop_io *io, unsigned events)
{
	struct service *svc = CONTAINER_OF(io, struct service, retry.leg.io);

	leg_latch(&svc->retry.leg, events);
	int r = dial_check(&svc->retry.dial);
	if (r != 0)
		end_look(svc, r > 0);
}

static void
on_time(struct timer *t)
{
	struct service *svc = CONTAINER_OF(t, struct service, retry.timer);

	if (svc->retry.dial.busy)
		end_look(svc, false);
	else
		target_probe_go_on(svc);
}

void
target_probe_stop(struct service *svc)
{
	leg_close(&svc->retry.leg, svc->pool->env->loop, false);
	svc->retry.dial.busy = false;
	timer_cancel(&svc->pool->env->timers, &svc->retry.timer);
}

void
target_probe_restart(struct service *svc)
{
	target_probe_stop(svc);
	target_probe_go_on(svc);
}

unsigned
target_probe_now(struct service *svc, const struct sockaddr_storage *peer)
{
	const struct session_pool *pool = svc->pool;
	struct endpoints *es = targets_lock(svc->settings->targets);
	unsigned cnt = endpoints_retry_now(es, pool->place.nr, peer, pool->env->now_ns);

	targets_unlock(svc->settings->targets);
	if (cnt > 0 && !svc->retry.dial.busy)
		target_probe_go_on(svc);
	return cnt;
}
