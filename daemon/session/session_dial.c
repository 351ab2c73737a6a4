/* Connects the CLC connection of an ingress or the app leg of an egress; see session.h. */
#include "daemon/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/net/net.h"

#define DIAL_PAUSE_MIN_MS 5
#define DIAL_PAUSE_MAX_MS 100

static const char backlog_full[] = "its backlog is full";
static const char no_name[] = "its name has no address so far";

bool
setup_dialing(const struct session *s)
{
	return s->setup != NULL && s->setup->dial.busy;
}

/* Arms the deadline of the address. A wait for backlog space or a name polls, with a pause that doubles. */
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

static bool
lacks_descriptor(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* A fault of this host, not of the target. */
static bool
is_our_own(int err)
{
	return lacks_descriptor(err) || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL || err == EADDRINUSE ||
	    err == EPERM;
}

/* A UNIX socket reports a full backlog as EAGAIN. */
static bool
is_full(const struct dial *d)
{
	return d->err == EAGAIN && d->addr != NULL && d->addr->ss_family == AF_UNIX;
}

struct smcr_open
setup_describe(const struct session *s)
{
	const struct config_service *cfg = &s->settings->cfg;
	bool ingress = cfg->kind == CONFIG_INGRESS;

	struct smcr_open o = {
		.role = ingress ? SMCR_CLIENT : SMCR_SERVER,
		.peer = cfg->peer,
		.app = (void *)(uintptr_t)&s->owner,
		.elem_size = cfg->elem_size,
		.rmb_size_hint = s->settings->svc->rmb_size_hint.bytes,
		.hops = (uint8_t)(s->hops + 1),
		.origin = s->origin,
		.wants_dest = cfg->to_word == CONFIG_TO_REQUESTED,
		.ticket = cfg->to_word == CONFIG_TO_REQUESTED ? 0 : s->settings->ticket, /* see requested_settle */
	};
	client_describe(s, &o);
	way_describe(s, &o);
	return o;
}

/* Over a link to this address, as if it were connected. */
static bool
opens_over_link(struct session *s, const struct sockaddr_storage *to)
{
	struct smcr_open o = setup_describe(s);

	if (o.role != SMCR_CLIENT || o.peer == SMCR_PEER_LINUX || (s->flags & SF_NOT_OPENED) != 0 ||
	    !leg_tls_scope(s->settings, to, &o.scope))
		return false;
	clc_stream_name(to, &o);
	s->conn = smcr_open_over_link(s->pool->env->eng, &o);
	if (s->conn != NULL)
		secure_over_link(s);
	return s->conn != NULL;
}

static bool
pick_target(struct session *s)
{
	struct setup *setup = s->setup;
	struct endpoints *es = targets_lock(s->settings->targets);
	const bool more = endpoints_pick(es, s->pool->env->now_ns, &s->pool->env->rng, &setup->tried, &setup->pick);

	targets_unlock(s->settings->targets);
	return more;
}

/* The next address that may be connected; false: all were tried. */
static bool
pick_next(struct session *s)
{
	struct setup *setup = s->setup;
	bool more = setup->tried == 0, fits = true;

	if (s->way != NULL) {
		setup->tried = 1;
		setup->pick = (struct endpoint_pick){ .addr = s->way->peer->at };
		return more;
	}
	do {
		if (!fits && setup->dial.addr == NULL)
			setup->dial.err = EAFNOSUPPORT;
		more = s->settings->cfg.to_word == CONFIG_TO_TARGETS ? pick_target(s) : setup->tried == 0;
		setup->tried |= s->settings->cfg.to_word != CONFIG_TO_TARGETS;
		fits = !more || session_kind(s) == CONFIG_INGRESS || client_is_source(s, &setup->pick.addr);
	} while (!fits);
	return more;
}

#define OPENED 1

/* Ends the running attempt and starts the next one: 0; OPENED: over a link; or -errno: no target or no descriptor is
 * left. */
static int
dial_on(struct session *s, int why)
{
	struct session_pool *pool = s->pool;
	struct setup *setup = s->setup;
	struct dial *d = &setup->dial;

	dial_end(d, pool->env->loop);
	if (why != 0)
		d->err = why;
	while (!lacks_descriptor(d->err)) {
		if (d->addr != NULL && !is_our_own(d->err))
			target_bad(
			    s->settings, &setup->pick, ENDPOINT_CONNECT, is_full(d) ? backlog_full : strerror(d->err));
		if (!pick_next(s))
			break;
		if (opens_over_link(s, &setup->pick.addr))
			return OPENED;
		if (dial_start(d, pool->env->loop, &pool->cfg->keepalive, &setup->pick.addr) == 0)
			return 0;
	}
	return -d->err;
}

/* net_addr_set points to a UNIX path (net/net.h): returns the copy in the settings, which outlives the session. */
static const struct sockaddr_storage *
lasting(const struct session *s, const struct sockaddr_storage *addr)
{
	const struct config_service *cfg = &s->settings->cfg;

	for (unsigned i = 0; i < cfg->to_cnt && addr->ss_family == AF_UNIX; i++)
		if (cfg->to[i].addr_cnt > 0 && addr_same_place(&cfg->to[i].addrs[0], addr))
			return &cfg->to[i].addrs[0];
	return addr;
}

/* A lack of descriptors is no fault of a target: sessions and accepting wait until connections end. */
static void
wait_for_descriptor(struct session *s)
{
	struct setup *setup = s->setup;
	int64_t now_ns = s->pool->env->now_ns;

	setup->dial.addr = NULL;
	setup->dial.err = EADDRNOTAVAIL;
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
	const char *words = is_full(d) ? backlog_full : d->addr == NULL ? no_name : NULL;

	if (err == OPENED) {
		net_addr_set(far, &s->setup->pick.addr);
		env_arm(s->pool->env, &s->timer, setup_answer_ms(s));
		session_set_state(s, SES_OPENING);
		return;
	}
	if (d->addr != NULL)
		net_addr_set(far, lasting(s, d->addr));
	if (lacks_descriptor(-err)) {
		wait_for_descriptor(s);
		return;
	}
	if (err != 0 && d->addr == NULL && s->pool->env->now_ns < s->setup->dial_until_ns &&
	    targets_pending(s->settings->targets)) {
		/* The first lookup of the name is in progress, as after the start. */
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
	if (client_ends_dial(s, -err))
		return;
	/* One of many servers that does not work is no outage of the service. */
	if (s->settings->cfg.to_word != CONFIG_TO_REQUESTED)
		outage_failed(s->settings->svc, session_outage(s), OUTAGE_CONNECT, far, words != NULL ? words : "",
		    words != NULL ? 0 : -err);
	if (setup_probe_failed(s, words == no_name ? 0 : -err))
		return;
	s->settings->svc->ctr.refused_connect += !session_opens(s);
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

	if (d->addr == NULL)
		setup_dial_next(s, 0);
	else if (!d->waits || s->pool->env->now_ns >= s->setup->dial_until_ns)
		setup_dial_next(s, d->waits ? EAGAIN : ETIMEDOUT);
	else if (dial_start(d, s->pool->env->loop, &s->pool->cfg->keepalive, d->addr) == 0)
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
	if (!to_peer && (!requested_settle(s) || !client_settle(s)))
		return;
	s->setup->dial = (struct dial){
		.leg = to_peer ? &s->mid : &s->app,
		.ports = to_peer ? &s->pool->ports : NULL,
		.circles = s->pool->place.circles,
		.circle = &s->circle,
		.option = to_peer && peer_mode_wants_option(cfg->peer) ? s->pool->option : NULL,
		.err = EADDRNOTAVAIL, /* no target has an address */
	};
	s->setup->dial_until_ns = s->pool->env->now_ns + cfg->connect_ms * NS_PER_MS;
	s->setup->dial_pause_ms = 0;
	setup_dial_next(s, 0);
}

void
setup_dial_again(struct session *s, bool reset)
{
	leg_close(&s->mid, s->pool->env->loop, reset);
	s->flags &= ~(unsigned)SF_SECURED;
	tls_proof_put(s->proof);
	s->proof = NULL;
	s->setup->in.off = s->setup->in.len = s->setup->out.len = 0;
	session_set_state(s, SES_CONNECT);
	setup_dial(s);
}
