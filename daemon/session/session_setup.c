/* Before data flows: connecting, rendezvous, the beginning of a fallback; see session.h. */
#include "daemon/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/log_text.h"
#include "daemon/net.h"
#include "wire/clc.h"

#define DIAL_PAUSE_MIN_MS 5
#define DIAL_PAUSE_MAX_MS 100

static const char backlog_full[] = "its backlog is full";
static const char no_name[] = "its name has no address so far";

bool
setup_dialing(const struct session *s)
{
	return s->setup != NULL && s->setup->dial.busy;
}

/* -- connecting -- */

/* Until the address is given up, or for a while that doubles where nobody tells that the wait is over: a place in the backlog, a
 * name that has just been asked for. */
static void
arm_dial(struct session *s)
{
	struct setup *setup = s->setup;
	int64_t at_ns = setup->dial_until_ns;

	if (setup->dial.waits) {
		setup->dial_pause_ms = min_u32(max_u32(2 * setup->dial_pause_ms, DIAL_PAUSE_MIN_MS), DIAL_PAUSE_MAX_MS);
		at_ns = min_i64(at_ns, s->pool->env->now_ns + setup->dial_pause_ms * NS_PER_MS);
	}
	timer_arm(&s->pool->env->timers, &s->timer, at_ns);
}

/* The process, or the host, has no descriptor left. */
static bool
lacks_descriptor(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* Of this host, not of the target. */
static bool
is_our_own(int err)
{
	return lacks_descriptor(err) || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL || err == EPERM;
}

/* Of a UNIX socket where nobody accepts, EAGAIN would be no word for that. */
static bool
is_full(const struct dial *d)
{
	return d->err == EAGAIN && d->cnt > 0 && dial_addr(d)->ss_family == AF_UNIX;
}

/* Takes the attempt that runs for failed, and starts the next one. 0, or -errno of the last one: no target is left, or no descriptor
 * for any. */
static int
dial_on(struct session *s, int why)
{
	struct session_pool *pool = s->pool;
	struct setup *setup = s->setup;
	struct dial *d = &setup->dial;
	int err = dial_next(d, pool->env->loop, &pool->keepalive, why);

	while (err != 0 && !lacks_descriptor(-err)) {
		if (d->cnt > 0 && !is_our_own(-err))
			retry_bad(
			    s->settings, &setup->pick, ENDPOINT_CONNECT, is_full(d) ? backlog_full : strerror(-err));
		if (!targets_pick(
		        s->settings->targets, pool->env->now_ns, &pool->env->rng, &setup->tried, &setup->pick))
			break;
		d->addrs = &setup->pick.addr;
		d->cnt = 1;
		d->next = 0;
		err = dial_next(d, pool->env->loop, &pool->keepalive, 0);
	}
	return err;
}

/* The path of a UNIX socket is pointed at for as long as the session lives (net.h): the settings have it, as they name it. */
static const struct sockaddr_storage *
lasting(const struct session *s, const struct sockaddr_storage *addr)
{
	const struct config_service *cfg = &s->settings->cfg;

	for (unsigned i = 0; i < cfg->to_cnt && addr->ss_family == AF_UNIX; i++)
		if (cfg->to[i].addr_cnt > 0 && addr_same_place(&cfg->to[i].addrs[0], addr))
			return &cfg->to[i].addrs[0];
	return addr;
}

/* It has been asked for, and there was no answer yet, as in the first moment after the start. */
static bool
waits_for_name(const struct session *s)
{
	return s->pool->env->now_ns < s->setup->dial_until_ns && targets_pending(s->settings->targets);
}

/* That there is no descriptor left is no fault of any target: whoever has come in waits, and who has not stays where it
 * is. Connections that end make room. */
static void
wait_for_descriptor(struct session *s)
{
	struct setup *setup = s->setup;
	int64_t now_ns = s->pool->env->now_ns;

	setup->dial.cnt = setup->dial.next = 0;
	setup->dial.err = 0;
	setup->dial.busy = setup->dial.waits = true;
	setup->tried = 0;
	setup->dial_until_ns = now_ns + s->settings->cfg.connect_ms * NS_PER_MS;
	s->pool->short_until_ns = now_ns + 2 * DIAL_PAUSE_MAX_MS * NS_PER_MS;
	arm_dial(s);
}

void
setup_dial_next(struct session *s, int why)
{
	union net_addr *far = session_kind(s) == CONFIG_INGRESS ? &s->mid_peer : &s->app_peer;
	struct dial *d = &s->setup->dial;
	int err = dial_on(s, why);
	const char *words = is_full(d) ? backlog_full : d->cnt == 0 ? no_name : NULL;

	if (d->cnt > 0)
		net_addr_set(far, lasting(s, dial_addr(d)));
	if (lacks_descriptor(-err)) {
		wait_for_descriptor(s);
		return;
	}
	if (err != 0 && d->cnt == 0 && waits_for_name(s)) {
		d->busy = d->waits = true;
		arm_dial(s);
		return;
	}
	if (err == 0) {
		s->setup->dial_until_ns = s->pool->env->now_ns + s->settings->cfg.connect_ms * NS_PER_MS;
		s->setup->dial_pause_ms = 0;
		arm_dial(s);
		return;
	}
	s->settings->svc->ctr.refused_connect++;
	outage_failed(s->settings->svc, OUTAGE_CONNECT, far, words != NULL ? words : "", words != NULL ? 0 : -err);
	if (s->why == NULL) {
		s->why_detail = words;
		s->err = words != NULL ? 0 : -err;
	}
	session_raise(s, SEV_CONNECT_FAILED);
}

void
setup_dial_timeout(struct session *s)
{
	struct dial *d = &s->setup->dial;

	if (d->cnt == 0)
		setup_dial_next(s, 0);
	else if (!d->waits || s->pool->env->now_ns >= s->setup->dial_until_ns)
		setup_dial_next(s, d->waits ? EAGAIN : ETIMEDOUT);
	else if (dial_again(d, s->pool->env->loop, &s->pool->keepalive) == 0)
		arm_dial(s);
	else
		setup_dial_next(s, 0);
}

void
setup_dial(struct session *s)
{
	const struct config_service *cfg = &s->settings->cfg;
	bool to_peer = cfg->kind == CONFIG_INGRESS;

	if (!circle_may_go_on(s)) {
		session_raise(s, SEV_CIRCLE);
		return;
	}
	s->setup->dial = (struct dial){
		.leg = to_peer ? &s->mid : &s->app,
		.ports = to_peer ? &s->pool->ports : NULL,
		.circles = s->pool->place.circles,
		.circle = &s->circle,
		.option = to_peer && peer_rule_wants_option(cfg->peer) ? s->pool->option : NULL,
	};
	s->setup->dial_until_ns = s->pool->env->now_ns + cfg->connect_ms * NS_PER_MS;
	s->setup->dial_pause_ms = 0;
	setup_dial_next(s, 0);
}

bool
setup_redial(struct session *s)
{
	struct setup *setup = s->setup;
	const char *detail;

	if (session_kind(s) != CONFIG_INGRESS || s->state != SES_RENDEZVOUS || setup == NULL)
		return false;
	enum smcr_reason reason = smcr_closed(s->conn, &detail);
	retry_bad(s->settings, &setup->pick, ENDPOINT_SETUP, detail[0] != '\0' ? detail : smcr_reason_str(reason));
	if (!targets_have_other(s->settings->targets, setup->tried))
		return false;
	smcr_release(s->conn);
	s->conn = NULL;
	s->events = 0;
	s->flags &= ~(unsigned)SF_MID_FIN;
	leg_close(&s->mid, s->pool->env->loop, true);
	setup->in.off = setup->in.len = setup->out.len = 0;
	session_set_state(s, SES_CONNECT);
	setup_dial(s);
	return true;
}

/* -- rendezvous -- */

void
setup_open_conn(struct session *s)
{
	struct smcr_open o = {
		.role = session_kind(s) == CONFIG_INGRESS ? SMCR_CLIENT : SMCR_SERVER,
		.peer = s->settings->cfg.peer,
		.app = &s->owner,
		.elem_size = s->settings->cfg.elem_size,
		.elem_need = s->settings->svc->elem_need.bytes,
		.hops = (uint8_t)(s->hops + 1),
		.origin = s->origin,
	};
	struct sockaddr_storage peer;
	int err;

	net_addr_get(&s->mid_peer, &peer);
	middle_describe(&s->mid, s->pool->devices, &peer, &o);
	s->conn = smcr_open(s->pool->env->eng, &o, &err);
	if (s->conn == NULL) {
		session_blame(s, "no SMC-R connection is free", -err);
		session_raise(s, SEV_REFUSED);
	}
}

void
setup_begin(struct session *s)
{
	if (session_kind(s) == CONFIG_INGRESS)
		setup_dial(s);
	else
		meet_peer(s);
	session_schedule(s);
}

/* -- fallback -- */

void
setup_choose_path(struct session *s)
{
	static const char *const words[] = { "retry", "", "tcp", "refuse" };
	struct service *svc = s->settings->svc;
	struct session_pool *pool = s->pool;
	char peer[ADDR_STR_MAX], why[LOG_TEXT_MAX];

	if (s->settings->cfg.fallback != CONFIG_FALLBACK_REFUSE)
		s->path = PATH_TCP;
	else if (session_kind(s) != CONFIG_INGRESS || !s->diag.out_of_sync || (s->flags & SF_RETRIED) != 0)
		s->path = PATH_REFUSED;
	svc->ctr.fallbacks += s->path == PATH_TCP;
	svc->ctr.refused_fallback += s->path == PATH_REFUSED;
	figures_no_smc(s, s->diag.local, s->diag.peer);
	/* With peer = "auto" plain ends are nothing to take note of. */
	bool expected = s->path == PATH_TCP && s->settings->cfg.peer == SMCR_PEER_AUTO &&
	    s->diag.local == CLC_DIAG_PEER_NO_SMC;
	if (!expected && s->path != PATH_NONE)
		spell_note(svc, &s->mid_peer, &s->diag);
	log_limited(&pool->lim_failed, pool->env->now_ns, LOG_LVL_INFO,
	    "no SMC-R: id=%llu service=%s peer=%s fallback=%s%s", session_number(s), s->settings->cfg.name,
	    net_addr_str(&s->mid_peer, peer, sizeof(peer)), words[s->path], log_text_diag(&s->diag, why, sizeof(why)));
}

/* After a fallback: releases the engine's connection, unless the peer's Decline may still come. False when memory is out for
 * bytes of the peer's data that were read already: the engine had to see that they are no Decline, or they came with one. */
static bool
leave_engine(struct session *s)
{
	struct clc_in *in = &s->setup->in;
	uint8_t bytes[SMCR_LEFTOVER_MAX + sizeof(in->buf)];

	if (smcr_clc_want(s->conn) > 0)
		return true;
	size_t n = smcr_clc_leftover(s->conn, bytes, SMCR_LEFTOVER_MAX), ahead = (size_t)(in->len - in->off);
	memcpy(bytes + n, in->buf + in->off, ahead);
	in->off = in->len;
	n += ahead;
	if (n > 0) {
		struct buf *b = bufpool_get(&s->pool->bufs);

		if (b == NULL) {
			session_blame(s, "out of memory", 0);
			return false;
		}
		memcpy(b->data, bytes, n);
		b->len = (uint32_t)n;
		s->held[WAY_TO_APP] = b;
		session_carried(s, WAY_TO_APP, n);
		s->pool->stats.tcp_bytes += n;
	}
	smcr_release(s->conn);
	s->conn = NULL;
	return true;
}

bool
setup_decline_done(struct session *s)
{
	ssize_t n;

	if (s->conn == NULL)
		return true;
	do {
		n = clc_read(&s->mid, s->conn, &s->setup->in);
	} while (n > 0);
	if (n < 0 || (s->mid.flags & LEG_EOF) != 0)
		smcr_tcp_event(s->conn, SMCR_TCP_FIN);
	smcr_fallback(s->conn, &s->diag);
	figures_no_smc(s, 0, s->diag.peer);
	if (!leave_engine(s)) {
		session_raise(s, SEV_MID_RESET);
		return false;
	}
	return s->conn == NULL && setup_finish(s);
}

void
setup_take_path(struct session *s)
{
	if (s->path == PATH_REFUSED) {
		session_blame(s, "no SMC-R, and fallback is forbidden", 0);
		session_raise(s, SEV_REFUSED);
		return;
	}
	if (session_kind(s) == CONFIG_INGRESS)
		retry_good(s->settings, &s->setup->pick, true);
	bool connected = s->app.io.fd >= 0 && !s->setup->dial.busy;
	session_set_state(s, connected ? SES_TCP : SES_TCP_CONNECT);
	if (s->app.io.fd < 0 && !setup_dialing(s))
		setup_dial(s);
}

/* To a peer that has reset the middle it need not go; what came before that still counts. */
static void
flush_clc(struct session *s)
{
	if (clc_out_flush(&s->setup->out, &s->mid) == 0)
		return;
	s->setup->out.len = 0;
	session_schedule(s);
}

/* The peer's daemon has asked for itself, and hears why not: there is no client to go on for. */
static void
turn_probe_away(struct session *s)
{
	char peer[ADDR_STR_MAX], why[LOG_TEXT_MAX];

	log_limited(&s->pool->lim_failed, s->pool->env->now_ns, LOG_LVL_NOTICE,
	    "no SMC-R, as a probe of the peer's daemon finds: service=%s peer=%s%s", s->settings->cfg.name,
	    net_addr_str(&s->mid_peer, peer, sizeof(peer)), log_text_diag(&s->diag, why, sizeof(why)));
	session_blame(s, "SMC-R is not possible", 0);
	clc_out_take(&s->setup->out, s->conn);
	(void)clc_out_flush(&s->setup->out, &s->mid);
	session_raise(s, SEV_ENGINE_OK);
}

static void
fall_back(struct session *s)
{
	smcr_fallback(s->conn, &s->diag);
	if ((s->flags & SF_PROBE) != 0) {
		turn_probe_away(s);
		return;
	}
	if (session_kind(s) == CONFIG_INGRESS && s->diag.peer != 0)
		outage_end(s->settings->svc, OUTAGE_ENDED_DECLINED, &s->mid_peer);
	setup_choose_path(s);
	clc_out_take(&s->setup->out, s->conn);
	if (s->path != PATH_TCP) {
		smcr_release(s->conn);
		s->conn = NULL;
	}
	if (s->conn != NULL && !leave_engine(s)) {
		session_raise(s, SEV_MID_RESET);
		return;
	}
	flush_clc(s);
	if (s->path == PATH_NONE) {
		/* The group is gone on both sides after a Decline that said out of sync: a new connection starts afresh
		 * (C.4). FIN, not RST, which could overtake the Decline. */
		s->flags |= SF_RETRIED;
		s->setup->tried = 0;
		leg_close(&s->mid, s->pool->env->loop, false);
		s->setup->in.off = s->setup->in.len = s->setup->out.len = 0;
		session_set_state(s, SES_CONNECT);
		setup_dial(s);
	} else {
		setup_take_path(s);
	}
}

bool
setup_finish(struct session *s)
{
	if (s->setup == NULL)
		return true;
	flush_clc(s);
	if (s->setup->out.len > 0)
		return false;
	if ((s->state == SES_TCP || s->state == SES_TCP_DRAINING) && s->conn != NULL)
		return true;
	slab_put(&s->pool->setup_slab, s->setup);
	s->setup = NULL;
	return true;
}

/* -- the turn -- */

/* A leg that is connected takes the session on; one that cannot be makes room for the next address. */
static void
pump_dial(struct session *s)
{
	int r = s->setup->dial.busy ? dial_check(&s->setup->dial) : 0;

	if (r < 0)
		setup_dial_next(s, 0);
	if (r <= 0)
		return;
	timer_cancel(&s->pool->env->timers, &s->timer);
	retry_good(s->settings, &s->setup->pick, false);
	figures_connected(s);
	if (session_kind(s) == CONFIG_INGRESS) {
		meet_peer(s);
		return;
	}
	if (s->app_peer.sa.sa_family == AF_UNIX)
		net_addr_add_peer(&s->app_peer, s->app.io.fd);
	outage_end(s->settings->svc, OUTAGE_ENDED_CONNECTED, &s->app_peer);
	if (s->state == SES_RENDEZVOUS)
		smcr_admit(s->conn); /* nothing happens if the Proposal is not in yet */
	else if (s->state == SES_TCP_CONNECT)
		session_set_state(s, SES_TCP);
	else if (s->state == SES_LOOK)
		session_idles(s);
}

static void
pump_rendezvous(struct session *s, unsigned events)
{
	clc_pump(&s->mid, s->conn, &s->setup->in, &s->setup->out);
	if ((events & SMCR_EV_ESTABLISHED) != 0) {
		s->path = PATH_SMCR;
		if (session_kind(s) == CONFIG_INGRESS) {
			outage_end(s->settings->svc, OUTAGE_ENDED_SMCR, &s->mid_peer);
			retry_good(s->settings, &s->setup->pick, true);
		}
		spell_end(s->settings->svc, &s->mid_peer);
		clc_out_take(&s->setup->out, s->conn);
		net_tune_idle_middle(s->mid.io.fd, &s->pool->keepalive);
		if (smcr_may_reset_middle(s->conn) && (s->flags & SF_PROBE) == 0)
			s->flags |= SF_MID_RST;
		if ((s->flags & SF_PROBE) != 0)
			measure_begin(s);
		else
			session_set_state(s, SES_SMCR);
	} else if ((events & SMCR_EV_PROPOSAL) != 0) {
		session_is_client(s);
		if (!circle_proposed(s)) {
			session_raise(s, SEV_CIRCLE);
			return;
		}
		/* It is there, or on its way, where the first bytes had to say what this is. */
		if (s->app.io.fd >= 0 && !s->setup->dial.busy)
			smcr_admit(s->conn);
		else if (!s->setup->dial.busy)
			setup_dial(s);
	}
}

void
setup_pump(struct session *s)
{
	unsigned events = s->events;

	s->events = 0;
	if (s->state != SES_ABORTING)
		pump_dial(s);
	if (s->raised == 0 && s->state == SES_LOOK)
		meet_look(s);
	if (s->raised != 0)
		return;
	if (s->state == SES_RENDEZVOUS)
		pump_rendezvous(s, events);
	else if (s->state == SES_LEAVING)
		fall_back(s);
	else if (s->state == SES_ABORTING && smcr_clc_want(s->conn) > 0)
		/* A server that has sent its Accept reads the Confirm before its connection ends (smcr_abort). */
		clc_pump(&s->mid, s->conn, &s->setup->in, &s->setup->out);
	else if (s->state == SES_ABORTING) {
		session_pump_middle(s);
		session_drop_received(s);
	}
}
