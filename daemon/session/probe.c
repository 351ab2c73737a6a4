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
#include "daemon/session/peer_rule.h"
#include "wire/clc.h"

struct probe {
	struct conn_owner owner;
	struct list_node node; /* pool->probes or dead_probes */
	struct session_pool *pool;
	struct leg mid;
	struct dial dial;
	struct clc_in in;
	struct clc_out out;
	struct smcr_conn *conn;
	struct timer timer;
	unsigned events;         /* SMCR_EV_ not yet looked at */
	uint32_t group;          /* that the rendezvous has made or joined, 0 = none yet */
	char peer[ADDR_STR_MAX]; /* that is dialed */
	struct check_result result;
	struct probe_target target; /* its addresses are below */
	const char *hint;           /* on the TCP option, for when it fails; "" */
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
void
probe_cancel(struct probe *p)
{
	struct session_pool *pool = p->pool;

	if (p->conn != NULL)
		smcr_release(p->conn);
	p->conn = NULL;
	leg_close(&p->mid, pool->env->loop, false);
	timer_cancel(&pool->env->timers, &p->timer);
	timerq_unreserve(&pool->env->timers, 1);
	list_remove(&p->node);
	list_push(&pool->dead_probes, &p->node);
}

__attribute__((format(printf, 2, 3))) static void
verdict(struct probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(p->result.text, sizeof(p->result.text), fmt, ap);
	va_end(ap);
	probe_cancel(p);
	p->done(p->arg, &p->result);
}

static void
verdict_fallback(struct probe *p)
{
	const struct smcr_diag *d = &p->result.diag;
	char addr[ADDR_STR_MAX], offered[CLC_TRANSPORTS_STR_MAX];

	smcr_fallback(p->conn, &p->result.diag);
	clc_out_take(&p->out, p->conn);
	(void)clc_out_flush(&p->out, &p->mid);
	if (d->peer != 0) {
		clc_transports_str(d->offered, offered);
		verdict(p, "%s declined: %s (0x%08x)%s%s%s%s", p->peer, clc_diag_str(d->peer), d->peer,
		    d->over != NULL ? " over " : "", d->over != NULL ? d->over : "",
		    offered[0] != '\0' ? "; this side offers " : "", offered);
	} else {
		/* Our own reason, with the device's words and address where it has any. */
		bool at = d->detail != NULL && d->mpa_port != 0;

		verdict(p, "declined by this side: %s (0x%08x)%s%s%s%s%s%s%s%s", clc_diag_str(d->local), d->local,
		    d->over != NULL ? " over " : "", d->over != NULL ? d->over : "",
		    d->held_off ? ", held off after failures" : "", d->detail != NULL ? ": " : "",
		    d->detail != NULL ? d->detail : "", at ? " (" : "", at ? log_text_mpa_peer(d, addr) : "",
		    at ? ")" : "");
	}
}

/* It is possible, and in which way. The group may have ended since. */
static void
verdict_done(struct probe *p)
{
	struct smcr_group_info *g = &p->result.group;
	uint32_t pos = 0;

	p->result.possible = true;
	while (smcr_group_next(p->pool->env->eng, &pos, g) && g->id != p->group)
		continue;
	if (p->group == 0 || g->id != p->group) {
		*g = (struct smcr_group_info){ .id = 0 };
		verdict(p, "rendezvous with %s done", p->peer);
	} else if (g->peer.version == 1) {
		verdict(
		    p, "rendezvous with %s done: %s version 1", p->peer, g->peer.foreign ? "SMC-R" : "smcrd, SMC-R");
	} else {
		verdict(p, "rendezvous with %s done: SMC-R version 2.%u, EID %s, %s%s%s", p->peer, g->peer.release,
		    g->peer.eid, clc_os_str(g->peer.os), g->peer.host[0] != '\0' ? ", host " : "", g->peer.host);
	}
}

/* -- the steps -- */

static const char no_option[] = " (no SMC-R option in its SYN/ACK: its kernel has no SMC, or a middlebox drops it)";
static const char unused_option[] = " (this host could not use the SMC-R option, so that only an smcrd can answer)";

static void
dial_on(struct probe *p)
{
	int err = dial_next(&p->dial, p->pool->env->loop, &p->pool->keepalive, 0);

	(void)addr_format_port(dial_addr(&p->dial), p->peer, sizeof(p->peer));
	if (err != 0)
		verdict(p, "cannot connect to %s: %s", p->peer, strerror(-err));
}

/* Connected: begins the rendezvous, if the option lets us. */
static void
begin(struct probe *p)
{
	enum smcopt_state state = SMCOPT_UNKNOWN;
	struct smcr_open o = {
		.role = SMCR_CLIENT,
		.peer = p->target.peer,
		.app = &p->owner,
		.elem_size = p->target.elem_size,
	};
	int err;

	if (p->dial.option != NULL)
		state = smcopt_read(p->dial.option, p->mid.io.fd);
	const struct peer_rule *rule = peer_rule(CONFIG_INGRESS, p->target.peer, state);
	if (state == SMCOPT_MISSING)
		p->hint = no_option;
	else if (state == SMCOPT_UNKNOWN && rule->way != PEER_CLC)
		p->hint = unused_option;
	if (rule->way != PEER_CLC && !p->target.insist) {
		verdict(p, "%s: %s (0x%08x)%s%s", p->peer, clc_diag_str(rule->diag), rule->diag,
		    rule->detail != NULL ? ": " : "", rule->detail != NULL ? rule->detail : "");
		return;
	}
	if (rule->way != PEER_CLC)
		o.peer = SMCR_PEER_SMCRD;
	middle_describe(&p->mid, p->pool->devices, dial_addr(&p->dial), &o);
	p->conn = smcr_prewarm(p->pool->env->eng, &o, &err);
	if (p->conn == NULL)
		verdict(p, "no SMC-R connection is free: %s", strerror(-err));
}

static void
pump_dial(struct probe *p)
{
	int r = dial_check(&p->dial);

	if (r < 0)
		dial_on(p);
	else if (r > 0)
		begin(p);
}

static void
pump_rendezvous(struct probe *p)
{
	unsigned events = p->events;
	struct smcr_conn_info info;

	p->events = 0;
	smcr_conn_info(p->conn, &info);
	if (info.group_id != 0)
		p->group = info.group_id;
	if ((events & SMCR_EV_FALLBACK) != 0) {
		verdict_fallback(p);
	} else if ((events & SMCR_EV_CLOSED) != 0) {
		const char *detail;
		enum smcr_reason reason = smcr_closed(p->conn, &detail);

		if (reason == SMCR_OK)
			verdict_done(p);
		else
			verdict(p, "%s: %s%s%s%s", p->peer, smcr_reason_str(reason), detail[0] != '\0' ? ": " : "",
			    detail, p->hint);
	} else if (leg_broken(&p->mid) != 0) {
		smcr_tcp_event(p->conn, SMCR_TCP_RST);
	} else {
		clc_pump(&p->mid, p->conn, &p->in, &p->out);
	}
}

static void
on_timeout(struct timer *t)
{
	struct probe *p = CONTAINER_OF(t, struct probe, timer);

	verdict(p, "%s %s within %u ms%s", p->peer,
	    p->conn == NULL ? "did not answer" : "did not finish the rendezvous", p->target.timeout_ms, p->hint);
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
	p->hint = "";
	memcpy(p->addrs, t->addrs, t->addr_cnt * sizeof(p->addrs[0]));
	leg_init(&p->mid, on_mid);
	p->dial = (struct dial){
		.leg = &p->mid,
		.addrs = p->addrs,
		.cnt = t->addr_cnt,
		.ports = &pool->ports,
		.option = peer_rule_wants_option(t->peer) ? pool->option : NULL,
	};
	(void)addr_format_port(dial_addr(&p->dial), p->peer, sizeof(p->peer));
	timer_init(&p->timer, on_timeout);
	env_arm(pool->env, &p->timer, t->timeout_ms);
	list_push(&pool->probes, &p->node);
	loop_again(pool->env->loop);
	return p;
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
		if (p->conn != NULL)
			pump_rendezvous(p);
	}
}

void
probes_stop(struct session_pool *pool)
{
	LIST_EACH(struct probe, p, &pool->probes, node)
		verdict(p, "the daemon ends");
}

void
probes_reap(struct session_pool *pool)
{
	struct probe *p;

	while ((p = LIST_POP(struct probe, &pool->dead_probes, node)) != NULL)
		free(p);
}
