/* Health probes; see prober.h. */
#include "daemon/probe/prober.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/account/peer_name.h"
#include "daemon/leg/leg.h"
#include "daemon/state/service_state.h"

#define BUSY_MS 50 /* until the next attempt to begin, while PROBES_AT_ONCE run */

struct prober {
	struct list_node checks;
	unsigned running;
	unsigned changes; /* of addresses, as seen last */
};

/* One address, probed in one way. Owned by the prober. */
struct prober_check {
	struct list_node node;
	struct session_pool *pool;
	struct settings *settings; /* of the first service that wants it; counted */
	struct sockaddr_storage addr;
	struct health health;
	bool wanted; /* by a service, in prober_follow */
	struct timer timer;
	/* While a probe runs, one of these. */
	struct probe *probe;
	struct leg leg;
	struct dial dial;
	bool connected;
	char answer[CONFIG_PROBE_TEXT_MAX];
	size_t answer_len;
};

static bool
asks_peer(const struct config_service *cfg)
{
	return cfg->probe.kind == CONFIG_PROBE_SMCR ||
	    (cfg->probe.kind == CONFIG_PROBE_AUTO && cfg->kind == CONFIG_INGRESS && cfg->peer != SMCR_PEER_LINUX);
}

/* With TLS only the service itself: keys and names are its own. */
static bool
is_alike(const struct config_service *a, const struct config_service *b)
{
	if (a->probe.kind == CONFIG_PROBE_OFF || memcmp(&a->probe, &b->probe, sizeof(a->probe)) != 0 ||
	    asks_peer(a) != asks_peer(b))
		return false;
	return !asks_peer(a) || strcmp(a->name, b->name) == 0 ||
	    (a->secure == CONFIG_SECURE_OFF && b->secure == CONFIG_SECURE_OFF && a->peer == b->peer &&
	        a->fallback == b->fallback);
}

/* -- results -- */

static void
prober_report(const struct prober_check *c, const struct settings *st, const struct health *before)
{
	const bool down = c->health.state == HEALTH_DOWN;
	struct event e = { .kind = down ? EVENT_TARGET_DOWN : EVENT_TARGET_UP };

	if (!down && (c->health.state != HEALTH_UP || before->state != HEALTH_DOWN))
		return;
	(void)snprintf(e.service, sizeof(e.service), "%s", st->cfg.name);
	(void)addr_format_port(&c->addr, st->cfg.kind == CONFIG_INGRESS ? e.peer : e.server, ADDR_STR_MAX);
	(void)snprintf(e.host, sizeof(e.host), "%s", peer_name_of(st->svc, &c->addr));
	(void)snprintf(e.reason, sizeof(e.reason), "%s", c->health.why);
	if (!down)
		e.after_ms = (uint64_t)(c->health.since_ns - before->since_ns) / NS_PER_MS;
	session_pool_report(c->pool, &e);
}

/* To the endpoint of a service; false: it has none of this address. */
static bool
prober_share(const struct prober_check *c, const struct settings *st)
{
	struct endpoints *es = targets_lock(st->targets);
	const bool has = endpoints_find(es, &c->addr) != NULL;

	endpoints_probed(es, &c->addr, &c->health, asks_peer(&st->cfg) || st->cfg.kind == CONFIG_EGRESS);
	targets_unlock(st->targets);
	return has;
}

/* To all services alike. before: of a state that has changed, to be reported; NULL: it has not. */
static void
prober_spread(const struct prober_check *c, const struct health *before)
{
	LIST_EACH(struct service, svc, &c->pool->services, node)
		if (is_alike(&c->settings->cfg, &svc->settings->cfg) && prober_share(c, svc->settings) &&
		    before != NULL)
			prober_report(c, svc->settings, before);
}

static void
prober_arm(struct prober_check *c, bool first)
{
	struct env *env = c->pool->env;

	timer_arm(&env->timers, &c->timer, env->now_ns + health_pause_ns(&c->settings->cfg.probe, &env->rng, first));
}

static bool
is_running(const struct prober_check *c)
{
	return c->probe != NULL || c->leg.io.fd >= 0;
}

static void
prober_end(struct prober_check *c)
{
	if (c->probe != NULL)
		probe_cancel(c->probe);
	c->pool->prober->running -= is_running(c);
	c->probe = NULL;
	leg_close(&c->leg, c->pool->env->loop, false);
	timer_cancel(&c->pool->env->timers, &c->timer);
}

/* state NONE: the probe could not be made. */
static void
prober_result(struct prober_check *c, enum health_state state, const char *why, enum clc_server server)
{
	const struct health before = c->health;

	prober_end(c);
	if (state != HEALTH_NONE) {
		bool news = health_result(&c->health, &c->settings->cfg.probe, state, why, c->pool->env->now_ns);

		c->health.server = c->health.state == HEALTH_DOWN && server != CLC_SERVER_UNSAID ? server
		                                                                                 : CLC_SERVER_DOWN;
		prober_spread(c, news ? &before : NULL);
	}
	prober_arm(c, false);
}

/* err: errno of the leg. */
static void
prober_failed(struct prober_check *c, int err, const char *why)
{
	const bool ours = err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL;

	prober_result(c, ours ? HEALTH_NONE : HEALTH_DOWN, why != NULL ? why : strerror(err),
	    err != 0 ? health_server(err) : CLC_SERVER_DOWN);
}

/* -- the kinds of probes -- */

static void
prober_on_answer(void *arg, const struct check_result *r)
{
	struct prober_check *c = arg;
	const char *why;
	char text[HEALTH_WHY_MAX];
	enum health_state state = check_health(r, c->settings->cfg.fallback == CONFIG_FALLBACK_REFUSE, &why);

	(void)snprintf(text, sizeof(text), "%s%s", r->server > CLC_SERVER_UP ? "its server " : "", why);
	c->probe = NULL; /* it has ended */
	c->pool->prober->running--;
	prober_result(c, state, text, CLC_SERVER_UNSAID);
}

static int
prober_ask(struct prober_check *c)
{
	const struct config_service *cfg = &c->settings->cfg;
	const struct probe_target t = { .addrs = &c->addr,
		.addr_cnt = 1,
		.elem_size = SMCR_ELEM_MIN,
		.timeout_ms = cfg->probe.timeout_ms,
		.peer = cfg->peer,
		.ask_server = true,
		.secure = cfg->secure != CONFIG_SECURE_OFF ? c->settings : NULL };

	c->probe = probe_start(c->pool, &t, prober_on_answer, c);
	return c->probe != NULL ? 0 : -ENOMEM;
}

/* Connected: sends, and compares what has come. */
static void
prober_talk(struct prober_check *c)
{
	const struct config_probe *cfg = &c->settings->cfg.probe;
	const size_t send_len = strlen(cfg->send), want = strlen(cfg->expect);
	ssize_t n = 1;
	bool urgent;

	if (!c->connected && send_len > 0) {
		const struct iovec iov = { (void *)(uintptr_t)cfg->send, send_len };

		/* The buffer of a new connection has space for it. */
		if (leg_write(&c->leg, &iov, 1, false) != (ssize_t)send_len) {
			prober_failed(c, 0, "it does not take what is sent");
			return;
		}
	}
	c->connected = true;
	while (n > 0 && c->answer_len < want) {
		const struct iovec iov = { c->answer + c->answer_len, want - c->answer_len };

		n = leg_read(&c->leg, &iov, 1, &urgent);
		if (n > 0)
			c->answer_len += (size_t)n;
	}
	if (memcmp(c->answer, cfg->expect, c->answer_len) != 0)
		prober_failed(c, 0, "its answer is not the expected one");
	else if (c->answer_len == want)
		prober_result(c, HEALTH_UP, "", CLC_SERVER_UNSAID);
	else if (n < 0 || (c->leg.flags & LEG_EOF) != 0)
		prober_failed(c, 0, "it ends the connection before the expected answer");
}

static void
prober_on_leg(struct loop_io *io, unsigned events)
{
	struct prober_check *c = CONTAINER_OF(io, struct prober_check, leg.io);

	leg_latch(&c->leg, events);
	int r = c->connected ? 1 : dial_check(&c->dial);
	if (r < 0)
		prober_failed(c, -r, NULL);
	else if (r > 0)
		prober_talk(c);
}

static int
prober_dial(struct prober_check *c)
{
	c->dial = (struct dial){ .leg = &c->leg };
	c->connected = false;
	c->answer_len = 0;
	int rc = dial_start(&c->dial, c->pool->env->loop, &c->pool->cfg->keepalive, &c->addr);
	if (rc == 0 && c->dial.waits)
		return -EAGAIN; /* a UNIX socket whose backlog is full */
	if (rc == 0)
		env_arm(c->pool->env, &c->timer, c->settings->cfg.probe.timeout_ms);
	return rc;
}

static void
prober_on_timer(struct timer *t)
{
	struct prober_check *c = CONTAINER_OF(t, struct prober_check, timer);
	struct prober *p = c->pool->prober;

	if (is_running(c)) {
		prober_failed(
		    c, ETIMEDOUT, c->connected ? "no expected answer within timeout" : "no answer within timeout");
		return;
	}
	if (p->running >= PROBES_AT_ONCE) {
		env_arm(c->pool->env, t, BUSY_MS);
		return;
	}
	int rc = (asks_peer(&c->settings->cfg) ? prober_ask : prober_dial)(c);
	p->running += is_running(c);
	if (rc != 0)
		prober_failed(c, -rc, rc == -EAGAIN ? "its backlog is full" : NULL);
	/* Last, as this check may end with its address. */
	if (p->changes != atomic_load(&c->pool->place.targets->changes))
		prober_follow(c->pool);
}

/* -- what is probed -- */

static void
prober_drop(struct prober_check *c)
{
	prober_end(c);
	timerq_unreserve(&c->pool->env->timers, 1);
	settings_put(c->settings);
	list_remove(&c->node);
	free(c);
}

static void
take_settings(struct prober_check *c, struct settings *st)
{
	st->refs++;
	if (c->settings != NULL)
		settings_put(c->settings);
	c->settings = st;
}

/* The state that the address has already, in the service or by a check that is going to end. */
static struct health
known_health(const struct session_pool *pool, const struct endpoint *e)
{
	if (e->health.state != HEALTH_NONE)
		return e->health;
	LIST_EACH(const struct prober_check, c, &pool->prober->checks, node)
		if (addr_same_place(&c->addr, &e->addr))
			return c->health;
	return (struct health){ .state = HEALTH_UNKNOWN, .since_ns = pool->env->now_ns };
}

static void
prober_want(struct session_pool *pool, struct settings *st, const struct endpoint *e)
{
	struct prober_check *c = LIST_FIND(struct prober_check, one, &pool->prober->checks, node,
	    addr_same_place(&one->addr, &e->addr) && is_alike(&one->settings->cfg, &st->cfg));

	if (c == NULL) {
		c = calloc(1, sizeof(*c));
		if (c == NULL || timerq_reserve(&pool->env->timers, 1) != 0) {
			free(c);
			return;
		}
		c->pool = pool;
		c->addr = e->addr;
		c->health = known_health(pool, e);
		c->health.row = 0;
		leg_init(&c->leg, prober_on_leg);
		timer_init(&c->timer, prober_on_timer);
		list_push(&pool->prober->checks, &c->node);
	}
	if (c->settings != st && !c->wanted)
		take_settings(c, st);
	if (!timer_armed(&c->timer) && !is_running(c))
		prober_arm(c, true);
	c->wanted = true;
	(void)prober_share(c, st);
}

static bool
is_probed(const struct session_pool *pool)
{
	return !pool->draining &&
	    LIST_FIND(const struct service, s, &pool->services, node,
	        s->settings->cfg.probe.kind != CONFIG_PROBE_OFF) != NULL;
}

void
prober_follow(struct session_pool *pool)
{
	struct endpoint e;

	if (pool->place.nr != 0 || (pool->prober == NULL && !is_probed(pool)))
		return;
	if (pool->prober == NULL) {
		pool->prober = calloc(1, sizeof(*pool->prober));
		if (pool->prober == NULL) {
			log_msg(LOG_LVL_ERROR, "out of memory: targets are not probed until a reload");
			return;
		}
		list_init(&pool->prober->checks);
	}
	pool->prober->changes = atomic_load(&pool->place.targets->changes);
	LIST_EACH(struct prober_check, c, &pool->prober->checks, node)
		c->wanted = false;
	if (!pool->draining)
		LIST_EACH(struct service, svc, &pool->services, node)
			for (unsigned i = 0; svc->settings->cfg.probe.kind != CONFIG_PROBE_OFF &&
			     targets_address(svc->settings->targets, i, &e);
			     i++)
				prober_want(pool, svc->settings, &e);
	LIST_EACH(struct prober_check, c, &pool->prober->checks, node)
		if (!c->wanted)
			prober_drop(c);
}

void
prober_inherit(struct session_pool *pool, const struct targets_known_list *known)
{
	if (pool->prober == NULL)
		return;
	LIST_EACH(struct prober_check, c, &pool->prober->checks, node) {
		for (unsigned i = 0; i < known->cnt && c->health.probed_ns == 0; i++) {
			if (!addr_same_place(&known->at[i].addr, &c->addr))
				continue;
			c->health = known->at[i].health;
			prober_spread(c, NULL);
			break;
		}
	}
}

void
prober_stop(struct session_pool *pool)
{
	if (pool->prober == NULL)
		return;
	LIST_EACH(struct prober_check, c, &pool->prober->checks, node)
		prober_drop(c);
	free(pool->prober);
	pool->prober = NULL;
}
