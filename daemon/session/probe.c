/* A rendezvous of the daemon's own; see probe.h. */
#include "daemon/session/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/session/leg.h"
#include "daemon/log_text.h"
#include "daemon/session/middle.h"
#include "wire/clc_diag.h"

struct probe {
	struct conn_owner owner;
	struct list_node node; /* pool->probes or dead_probes */
	struct session_pool *pool;
	struct leg mid;
	struct dial dial;
	struct clc_out out;
	struct smcr_conn *conn;
	struct timer timer;
	unsigned events; /* SMCR_EV_ not yet looked at */
	bool ended;
	struct probe_target target; /* its addresses are below */
	void (*done)(void *arg, const struct check_result *);
	void *arg;
	struct sockaddr_storage addrs[];
};

static void
on_mid(struct loop_io *io, unsigned events)
{
	leg_latch(&CONTAINER_OF(io, struct probe, mid.io)->mid, events);
}

static void
on_engine(struct conn_owner *owner, unsigned events)
{
	CONTAINER_OF(owner, struct probe, owner)->events |= events;
}

/* Gives all back but the memory. */
static void
probe_end(struct probe *p)
{
	struct session_pool *pool = p->pool;

	p->ended = true;
	if (p->conn != NULL)
		smcr_release(p->conn);
	p->conn = NULL;
	leg_close(&p->mid, pool->env->loop, false);
	timer_cancel(&pool->env->timers, &p->timer);
	timerq_unreserve(&pool->env->timers, 1);
	list_remove(&p->node);
	list_push(&pool->dead_probes, &p->node);
}

static void
verdict(struct probe *p, const struct check_result *r)
{
	if (p->ended)
		return;
	probe_end(p);
	p->done(p->arg, r);
}

static const char *
peer_str(const struct probe *p, char *buf, size_t cap)
{
	return addr_format_port(dial_addr(&p->dial), buf, cap);
}

__attribute__((format(printf, 2, 3))) static void
verdict_no(struct probe *p, const char *fmt, ...)
{
	struct check_result r = { .possible = false };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(r.text, sizeof(r.text), fmt, ap);
	va_end(ap);
	verdict(p, &r);
}

static void
verdict_fallback(struct probe *p)
{
	struct check_result r = { .possible = false };
	const struct smcr_diag *d = &r.diag;
	char addr[ADDR_STR_MAX];
	int n;

	smcr_fallback(p->conn, &r.diag);
	if (d->peer != 0) {
		(void)snprintf(r.text, sizeof(r.text), "%s declined: %s (0x%08x)", peer_str(p, addr, sizeof(addr)),
		    clc_diag_str(d->peer), d->peer);
	} else {
		/* Our own reason, with the device's words and address where it has any. */
		n = snprintf(r.text, sizeof(r.text), "declined by this side: %s (0x%08x)%s", clc_diag_str(d->local),
		    d->local, d->held_off ? ", held off after failures" : "");
		if (d->detail != NULL && (size_t)n < sizeof(r.text))
			(void)snprintf(r.text + n, sizeof(r.text) - (size_t)n, ": %s%s%s%s", d->detail,
			    d->mpa_port != 0 ? " (" : "", d->mpa_port != 0 ? log_text_mpa_peer(d, addr) : "",
			    d->mpa_port != 0 ? ")" : "");
	}
	clc_out_take(&p->out, p->conn);
	(void)clc_out_flush(&p->out, &p->mid);
	verdict(p, &r);
}

static void
verdict_closed(struct probe *p)
{
	struct check_result r = { .possible = true };
	const char *detail;
	enum smcr_reason reason = smcr_closed(p->conn, &detail);
	char peer[ADDR_STR_MAX];

	(void)peer_str(p, peer, sizeof(peer));
	if (reason != SMCR_OK) {
		verdict_no(p, "%s: %s%s%s", peer, smcr_reason_str(reason), detail[0] != '\0' ? ": " : "", detail);
		return;
	}
	(void)snprintf(r.text, sizeof(r.text), "rendezvous with %s done", peer);
	verdict(p, &r);
}

/* -- the steps -- */

static void
dial_on(struct probe *p)
{
	int err = dial_next(&p->dial, p->pool->env->loop, &p->pool->keepalive, 0);
	char peer[ADDR_STR_MAX];

	if (err != 0)
		verdict_no(p, "cannot connect to %s: %s", peer_str(p, peer, sizeof(peer)), strerror(-err));
}

static void
pump_dial(struct probe *p)
{
	struct smcr_open o = { .role = SMCR_CLIENT, .app = &p->owner, .elem_size = p->target.elem_size };
	int r = dial_check(&p->dial), err;

	if (r < 0)
		dial_on(p);
	if (r <= 0)
		return;
	middle_describe(&p->mid, p->pool->devices, dial_addr(&p->dial), &o);
	p->conn = smcr_prewarm(p->pool->env->eng, &o, &err);
	if (p->conn == NULL)
		verdict_no(p, "no SMC-R connection is free: %s", strerror(-err));
}

static void
pump_rendezvous(struct probe *p)
{
	unsigned events = p->events;

	p->events = 0;
	if ((events & SMCR_EV_FALLBACK) != 0) {
		verdict_fallback(p);
		return;
	}
	if ((events & SMCR_EV_CLOSED) != 0) {
		verdict_closed(p);
		return;
	}
	if (leg_broken(&p->mid) != 0)
		smcr_tcp_event(p->conn, SMCR_TCP_RST);
	else
		clc_pump(&p->mid, p->conn, &p->out);
}

static void
on_timeout(struct timer *t)
{
	struct probe *p = CONTAINER_OF(t, struct probe, timer);
	char peer[ADDR_STR_MAX];

	verdict_no(p, "%s %s within %u ms", peer_str(p, peer, sizeof(peer)),
	    p->conn == NULL ? "did not answer" : "did not finish the rendezvous", p->target.timeout_ms);
}

/* -- all of them -- */

struct probe *
probe_start(struct session_pool *pool, const struct probe_target *t,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	struct probe *p = calloc(1, sizeof(*p) + t->addr_cnt * sizeof(p->addrs[0]));

	if (p == NULL || timerq_reserve(&pool->env->timers, 1) != 0) {
		free(p);
		return NULL;
	}
	p->owner.on_event = on_engine;
	p->pool = pool;
	p->target = *t;
	p->done = done;
	p->arg = arg;
	memcpy(p->addrs, t->addrs, t->addr_cnt * sizeof(p->addrs[0]));
	leg_init(&p->mid, on_mid);
	dial_init(&p->dial, &p->mid, p->addrs, t->addr_cnt);
	timer_init(&p->timer, on_timeout);
	env_arm(pool->env, &p->timer, t->timeout_ms);
	list_push(&pool->probes, &p->node);
	loop_again(pool->env->loop);
	return p;
}

void
probe_cancel(struct probe *p)
{
	if (!p->ended)
		probe_end(p);
}

void
probes_pump(struct session_pool *pool)
{
	LIST_EACH(struct probe, p, &pool->probes, node) {
		/* An address without a route fails before anything is watched. */
		if (!p->dial.busy && p->conn == NULL)
			dial_on(p);
		else if (p->dial.busy)
			pump_dial(p);
		if (!p->ended && p->conn != NULL)
			pump_rendezvous(p);
	}
}

void
probes_stop(struct session_pool *pool)
{
	LIST_EACH(struct probe, p, &pool->probes, node)
		verdict_no(p, "the daemon ends");
}

void
probes_reap(struct session_pool *pool)
{
	struct probe *p;

	while ((p = LIST_POP(struct probe, &pool->dead_probes, node)) != NULL)
		free(p);
}
