/* Probes; see probe.h. */
#include "daemon/probe/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/leg/leg.h"
#include "daemon/probe/measure.h"
#include "daemon/leg/clc_stream.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/state/service_state.h"
#include "wire/clc.h"

enum probe_stage {
	STAGE_DIAL,
	STAGE_TLS,
	STAGE_RENDEZVOUS,
	STAGE_TEST,
	STAGE_BULK,
	STAGE_CLOSE, /* measured; the connection is closing */
};

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
	unsigned events; /* SMCR_EV_ not yet handled */
	uint32_t group;  /* id of the link group, 0 = none yet */
	uint8_t link;    /* number of the link under test */
	enum probe_stage stage;
	enum check_path path; /* STAGE_BULK */
	struct measure measure;
	char peer[ADDR_STR_MAX]; /* the dialed address */
	struct check_result result;
	struct probe_target target; /* its addrs are copied below */
	unsigned next;              /* of addrs: the next to try */
	const char *hint;           /* on the TCP option, for a failure; or "" */
	void (*done)(void *arg, const struct check_result *);
	void *arg;
	struct sockaddr_storage addrs[];
};

static void
probe_on_mid(struct loop_io *io, unsigned events)
{
	leg_latch(&CONTAINER_OF(io, struct probe, mid.io)->mid, events);
}

static void
probe_on_engine(struct conn_owner *owner, unsigned events)
{
	CONTAINER_OF(owner, struct probe, owner)->events |= events;
}

static void
leave_middle(struct probe *p)
{
	if (p->conn != NULL)
		smcr_release(p->conn);
	p->conn = NULL;
	leg_close(&p->mid, p->pool->env->loop, false);
}

/* Releases all but the memory. */
void
probe_cancel(struct probe *p)
{
	struct session_pool *pool = p->pool;

	leave_middle(p);
	timer_cancel(&pool->env->timers, &p->timer);
	timerq_unreserve(&pool->env->timers, 1);
	if (p->target.secure != NULL)
		settings_put(p->target.secure);
	list_remove(&p->node);
	list_push(&pool->dead_probes, &p->node);
}

/* Ends the probe with the verdict in p->result. */
static void
probe_end(struct probe *p)
{
	check_end(&p->result, p->pool->env->now_ns);
	probe_cancel(p);
	p->done(p->arg, &p->result);
}

__attribute__((format(printf, 3, 4))) static void
verdict(struct probe *p, enum check_finding finding, const char *fmt, ...)
{
	va_list ap;

	p->result.finding = finding;
	va_start(ap, fmt);
	(void)vsnprintf(p->result.text, sizeof(p->result.text), fmt, ap);
	va_end(ap);
	probe_end(p);
}

/* Success. The group may have ended since. */
static void
verdict_done(struct probe *p)
{
	struct smcr_group_info *g = &p->result.group;
	uint32_t pos = 0;

	while (smcr_group_next(p->pool->env->eng, &pos, g) && g->id != p->group)
		continue;
	if (p->group == 0 || g->id != p->group)
		*g = (struct smcr_group_info){ .id = 0 };
	check_say_done(&p->result, p->peer);
	if (p->target.insist)
		check_say_server(&p->result, p->peer, p->pool->env->now_ns);
	probe_end(p);
}

/* -- the steps -- */

static const char no_option[] = " (no SMC-R option in its SYN/ACK: its kernel has no SMC, or a middlebox drops it)";
static const char unused_option[] =
    " (tried without SMC-R's TCP option: enough for an smcrd, but not for an AF_SMC peer)";

static void
probe_dial_on(struct probe *p)
{
	int err = -p->dial.err;

	while (p->next < p->target.addr_cnt &&
	    (err = dial_start(&p->dial, p->pool->env->loop, &p->pool->cfg->keepalive, &p->addrs[p->next++])) != 0)
		continue;
	(void)addr_format_port(p->dial.addr, p->peer, sizeof(p->peer));
	if (err == -ECONNRESET)
		verdict(p, CHECK_CLOSED,
		    "%s reset the connection at once: an smcrd that refuses this host (allow, max_connections), or a "
		    "firewall: see its log",
		    p->peer);
	else if (err != 0)
		verdict(p, CHECK_UNREACHABLE, "cannot connect to %s: %s", p->peer, strerror(-err));
}

/* Connected, and in TLS where that is wanted: starts the rendezvous, if the TCP option permits it. */
static void
begin(struct probe *p)
{
	enum tcp_option_state state = TCP_OPTION_UNKNOWN;
	struct smcr_open o = { .role = SMCR_CLIENT,
		.peer = p->target.peer,
		.app = &p->owner,
		.elem_size = p->target.elem_size,
		.insist = p->target.insist,
		.measure = p->target.bulk > 0,
		.ask_server = p->target.ask_server || p->target.insist,
		.prewarm = true };
	int err;

	if (p->dial.option != NULL)
		state = tcp_option_read(p->dial.option, p->mid.io.fd);
	const struct peer_mode *rule = peer_mode(CONFIG_INGRESS, p->target.peer, state);
	if (state == TCP_OPTION_MISSING)
		p->hint = no_option;
	else if (state == TCP_OPTION_UNKNOWN && rule->way != PEER_CLC)
		p->hint = unused_option;
	if (rule->way != PEER_CLC && !p->target.insist) {
		verdict(p, CHECK_NO_OPTION, "%s: %s (0x%08x)%s%s", p->peer, clc_diag_str(rule->diag), rule->diag,
		    rule->detail != NULL ? ": " : "", rule->detail != NULL ? rule->detail : "");
		return;
	}
	if (rule->way != PEER_CLC)
		o.peer = SMCR_PEER_SMCRD;
	clc_stream_describe(&p->mid, p->pool->devices, p->dial.addr, &o);
	leg_tls_describe(&p->mid, p->target.secure, &o);
	check_step(&p->result, CHECK_CLC, p->pool->env->now_ns, NULL);
	p->result.held_off_ns = smcr_held_off_ns(p->pool->env->eng, o.peer_key);
	p->conn = smcr_open(p->pool->env->eng, &o, &err);
	explicit_bzero(o.secret, sizeof(o.secret));
	p->stage = STAGE_RENDEZVOUS;
	if (p->conn == NULL)
		verdict(p, CHECK_NOT_TRIED, "no SMC-R connection is free: %s", strerror(-err));
}

static void
probe_begin_tls(struct probe *p)
{
	p->stage = STAGE_TLS;
	if (!leg_tls_dial(&p->mid, p->target.secure, p->dial.addr))
		verdict(p, CHECK_NOT_TRIED, "TLS cannot start: out of memory, or no PSK for this peer");
}

static void
probe_pump_tls(struct probe *p)
{
	int n = leg_handshake(&p->mid);

	p->pool->stats.tls_handshakes += n > 0;
	p->pool->stats.tls_failed += n < 0;
	if (n < 0)
		verdict(p, CHECK_NO_TLS, "%s: no TLS: %s", p->peer, leg_tls_why(&p->mid));
	else if (n > 0)
		begin(p);
}

static const char has_group[] = "there was a link group already";

static void
probe_look(struct probe *p)
{
	static const enum check_step steps[] = {
		[SMCR_PHASE_NONE] = CHECK_CLC,
		[SMCR_PHASE_TURN] = CHECK_CLC,
		[SMCR_PHASE_CLC] = CHECK_CLC,
		[SMCR_PHASE_CONNECT] = CHECK_CONNECT,
		[SMCR_PHASE_LINK] = CHECK_LINK,
	};
	struct smcr_conn_info info;

	smcr_conn_info(p->conn, &info);
	p->result.server = smcr_server(p->conn);
	if (info.group_id != 0)
		p->group = info.group_id;
	check_step(&p->result, steps[info.phase], p->pool->env->now_ns, has_group);
}

/* Ends a measurement early, with what was measured. */
static void
stop_bulk(struct probe *p, const char *why)
{
	p->result.bulk_text = why;
	verdict_done(p);
}

/* Starts in the next turn, which it requests. */
static void
begin_bulk(struct probe *p, enum check_path path)
{
	p->stage = STAGE_BULK;
	p->path = path;
	measure_ask(&p->measure, p->target.bulk, p->target.bulk, p->pool->env->now_ns);
	loop_again(p->pool->env->loop);
}

/* After the rendezvous. An established connection is for a measurement. */
static void
begin_test(struct probe *p, bool established)
{
	struct env *env = p->pool->env;

	if (!established)
		leave_middle(p);
	if (!p->target.insist) {
		verdict_done(p);
		return;
	}
	if (p->target.bulk > 0 && !established)
		p->result.bulk_text = "the peer does not support measurements: it is not an smcrd, or an older one";
	check_step(&p->result, CHECK_TEST, env->now_ns, has_group);
	p->stage = STAGE_TEST;
	p->link = smcr_test_link(env->eng, p->group);
	if (p->link == 0) {
		p->result.steps[CHECK_TEST].result = CHECK_STEP_SKIPPED;
		p->result.steps[CHECK_TEST].text = "the link group has ended";
		verdict_done(p);
	}
}

static void
pump_test(struct probe *p)
{
	struct smcr_link_info l;
	uint32_t pos = 0;

	while (smcr_link_next(p->pool->env->eng, &pos, &l)) {
		if (l.group_id != p->group || l.number != p->link || !l.is_active)
			continue;
		if (!l.is_tested && p->conn == NULL) {
			verdict_done(p);
		} else if (!l.is_tested) {
			check_step_end(&p->result, CHECK_STEP_OK, p->pool->env->now_ns);
			begin_bulk(p, CHECK_SMCR);
		}
		return;
	}
	verdict(p, CHECK_LINK_FAILED, "%s: the link was lost during its TEST LINK", p->peer);
}

static void
pump_bulk(struct probe *p)
{
	struct env *env = p->pool->env;
	struct measure *m = &p->measure;

	if ((p->events & SMCR_EV_CLOSED) != 0) {
		stop_bulk(p, "the connection ended during the measurement");
		return;
	}
	int more = measure_pump(m, p->path == CHECK_SMCR ? p->conn : NULL, &p->mid, env->now_ns);
	if (more < 0 || leg_broken(&p->mid) != 0) {
		stop_bulk(p, "the measurement failed");
	} else if (m->phase != MEASURE_DONE) {
		if (more > 0)
			loop_again(env->loop);
	} else {
		p->result.bulk[p->path] = (struct check_bulk){ p->target.bulk, m->turned_ns - m->begun_ns,
			m->done_ns - m->turned_ns };
		if (p->path == CHECK_SMCR) {
			begin_bulk(p, CHECK_MIDDLE);
			return;
		}
		p->stage = STAGE_CLOSE;
		smcr_close(p->conn);
	}
}

static void
probe_pump_rendezvous(struct probe *p)
{
	unsigned events = p->events;
	const char *detail;

	p->events = 0;
	probe_look(p);
	if ((events & SMCR_EV_FALLBACK) != 0) {
		smcr_fallback(p->conn, &p->result.diag);
		clc_out_take(&p->out, p->conn);
		(void)clc_out_flush(&p->out, &p->mid);
		check_say_declined(&p->result, p->peer);
		probe_end(p);
	} else if ((events & SMCR_EV_CLOSED) != 0) {
		enum smcr_reason reason = smcr_closed(p->conn, &detail);
		const struct check_break b = { reason, detail, &p->in, net_is_acked(p->mid.io.fd), p->hint,
			p->mid.tls != NULL ? leg_tls_why(&p->mid) : NULL };

		if (reason == SMCR_OK) {
			begin_test(p, false);
			return;
		}
		smcr_fallback(p->conn, &p->result.diag);
		check_say_broken(&p->result, p->peer, &b);
		probe_end(p);
	} else if (leg_broken(&p->mid) != 0) {
		smcr_tcp_event(p->conn, SMCR_TCP_RST);
	} else {
		clc_pump(&p->mid, p->conn, &p->in, &p->out);
		probe_look(p);
		if ((events & SMCR_EV_ESTABLISHED) != 0)
			begin_test(p, true);
	}
}

static void
pump(struct probe *p)
{
	/* The first attempt: not in probe_start, as it may fail at once. */
	int dialed = p->stage != STAGE_DIAL ? 0 : p->dial.busy ? dial_check(&p->dial) : -1;

	if (dialed < 0)
		probe_dial_on(p);
	else if (dialed > 0)
		(p->target.secure != NULL ? probe_begin_tls : begin)(p);
	if (p->stage == STAGE_TLS && p->mid.tls != NULL)
		probe_pump_tls(p);
	if (p->stage == STAGE_RENDEZVOUS && p->conn != NULL)
		probe_pump_rendezvous(p);
	else if (p->stage == STAGE_TEST)
		pump_test(p);
	else if (p->stage == STAGE_BULK)
		pump_bulk(p);
	else if (p->stage == STAGE_CLOSE && (p->events & SMCR_EV_CLOSED) != 0)
		verdict_done(p);
}

static void
on_timeout(struct timer *t)
{
	struct probe *p = CONTAINER_OF(t, struct probe, timer);
	static const char *const what[CHECK_STEP_CNT] = {
		[CHECK_TCP] = "did not answer",
		[CHECK_CLC] = "did not finish the rendezvous",
		[CHECK_CONNECT] = "did not finish the rendezvous: the queue pair is not connected",
		[CHECK_LINK] = "did not finish the rendezvous: the link is not confirmed",
		[CHECK_TEST] = "did not answer TEST LINK",
	};
	enum check_step step = p->result.step;

	if (p->stage == STAGE_BULK || p->stage == STAGE_CLOSE) {
		stop_bulk(p, "the measurement took too long");
		return;
	}
	verdict(p, step == CHECK_TCP ? CHECK_UNREACHABLE : CHECK_TIMEOUT, "%s %s within %u ms%s", p->peer, what[step],
	    p->target.timeout_ms, p->hint);
}

/* -- start and list -- */

struct probe *
probe_start(struct session_pool *pool, const struct probe_target *t,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	struct probe *p = calloc(1, sizeof(*p) + t->addr_cnt * sizeof(p->addrs[0]));

	if (p == NULL || timerq_reserve(&pool->env->timers, 1) != 0) {
		free(p);
		return NULL;
	}
	*p = (struct probe){
		.owner = { probe_on_engine }, .pool = pool, .target = *t, .done = done, .arg = arg, .hint = ""
	};
	if (t->secure != NULL)
		t->secure->refs++;
	check_begin(&p->result, pool->env->now_ns);
	memcpy(p->addrs, t->addrs, t->addr_cnt * sizeof(p->addrs[0]));
	leg_init(&p->mid, probe_on_mid);
	p->dial = (struct dial){
		.leg = &p->mid, .ports = &pool->ports, .option = peer_mode_wants_option(t->peer) ? pool->option : NULL
	};
	(void)addr_format_port(p->addrs, p->peer, sizeof(p->peer));
	timer_init(&p->timer, on_timeout);
	env_arm(pool->env, &p->timer, t->timeout_ms);
	list_push(&pool->probes, &p->node);
	loop_again(pool->env->loop);
	return p;
}

void
probes_pump(struct session_pool *pool)
{
	LIST_EACH(struct probe, p, &pool->probes, node)
		pump(p);
}

void
probes_stop(struct session_pool *pool)
{
	LIST_EACH(struct probe, p, &pool->probes, node)
		verdict(p, CHECK_NOT_TRIED, "the daemon ends");
}

void
probes_reap(struct session_pool *pool)
{
	struct probe *p;

	while ((p = LIST_POP(struct probe, &pool->dead_probes, node)) != NULL)
		free(p);
}
