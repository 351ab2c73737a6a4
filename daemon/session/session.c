/* Start, pump, events and end of a session; see session.h. */
#include "daemon/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/log/log_text.h"
#include "daemon/leg/acks.h"
#include "daemon/session/end_cause.h"

#define RESET_PAUSE_MAX_MS 64
#define RMB_SIZE_HINT_ROW 64

/* -- the end -- */

static bool
is_over_link(const struct session *s)
{
	struct smcr_conn_info info = { .over_link = false };

	if (s->conn != NULL)
		smcr_conn_info(s->conn, &info);
	return info.over_link;
}

static void
log_end(struct session *s)
{
	static const char *const paths[] = { "none", "SMC-R", "TCP", "refused" };
	char app[ADDR_STR_MAX], mid[ADDR_STR_MAX], dest[WAY_TEXT_MAX], start[LOG_TIME_LEN], diag[LOG_TEXT_MAX] = "";
	const char *word = session_kind(s) == CONFIG_INGRESS ? "client" : "server";
	const char *why = s->why != NULL ? s->why : "normal end";
	const char *detail = s->why_detail != NULL ? s->why_detail : leg_tls_why(&s->mid);
	bool quiet = s->bytes[WAY_FROM_APP] == 0 && s->bytes[WAY_TO_APP] == 0;
	struct log_limit unlimited = { .burst = 1 };
	int64_t now_ns = s->pool->env->now_ns;
	long long lasted_ms = (now_ns - s->born_ns) / NS_PER_MS;
	const bool asked = s->pool->cfg->log.connections;
	const enum log_level level = asked ? LOG_LVL_NOTICE : LOG_LVL_INFO;

	if ((s->flags & SF_PROBE) != 0) {
		log_limited(&s->pool->lim_failed, now_ns, LOG_LVL_INFO,
		    "probe by the peer's daemon ended: service=%s peer=%s duration_ms=%lld reason=\"%s\"",
		    s->settings->cfg.name, net_addr_str(&s->mid_peer, mid, sizeof(mid)), lasted_ms, why);
		return;
	}
	if (!log_is_on(level))
		return;
	if (s->path == PATH_TCP || s->path == PATH_REFUSED)
		log_text_diag(&s->diag, diag, sizeof(diag));
	else if (is_over_link(s))
		snprintf(diag, sizeof(diag), " over_link=yes");
	log_limited(quiet && !asked ? &s->pool->lim_failed : &unlimited, now_ns, level,
	    "connection closed: id=%llu service=%s %s=%s%s peer=%s mode=%s%s from_%s=%llu to_%s=%llu start=%s duration_ms=%lld "
	    "reason=\"%s%s%s%s%s\"",
	    session_number(s), s->settings->cfg.name, word, net_addr_str(&s->app_peer, app, sizeof(app)),
	    way_text(s, dest), net_addr_str(&s->mid_peer, mid, sizeof(mid)), paths[s->path], diag, word,
	    (unsigned long long)s->bytes[WAY_FROM_APP], word, (unsigned long long)s->bytes[WAY_TO_APP],
	    log_time(lasted_ms, start), lasted_ms, why, detail[0] != '\0' ? ": " : "", detail, s->err != 0 ? ": " : "",
	    s->err != 0 ? strerror(s->err) : "");
}

/* A connection limited by its window raises the hint at once; RMB_SIZE_HINT_ROW that needed less halve it. */
static void
rmb_size_hint_learn(struct rmb_size_hint *n, uint32_t need)
{
	if (need == 0)
		return;
	if (need >= n->bytes) {
		*n = (struct rmb_size_hint){ .bytes = need };
	} else if (++n->row == RMB_SIZE_HINT_ROW) {
		n->bytes /= 2;
		n->row = 0;
	}
}

/* The client has reset it after data both ways. At an egress the peer says no more than that it was reset. */
static bool
is_clients_reset(const struct session *s)
{
	const bool ingress = session_kind(s) == CONFIG_INGRESS;
	const bool by_client = s->cause ==
	        (ingress ? end_cause_event(SEV_APP_RESET) : end_cause_engine(SMCR_R_PEER_ABORT)) ||
	    (!ingress && s->cause == end_cause_event(SEV_MID_RESET));

	return by_client && s->bytes[WAY_FROM_APP] > 0 && s->bytes[WAY_TO_APP] > 0;
}

static void
session_end(struct session *s, bool reset)
{
	struct session_pool *pool = s->pool;
	struct service *svc = s->settings->svc;

	if (!session_comes_again(s))
		log_end(s);
	if (s->conn != NULL) {
		if ((s->flags & SF_PROBE) == 0)
			rmb_size_hint_learn(&svc->rmb_size_hint, smcr_elem_need(s->conn));
		smcr_release(s->conn);
	}
	s->conn = NULL;
	if ((s->flags & SF_PROBE) != 0)
		measure_end(s);
	leg_close(&s->app, pool->env->loop, reset);
	leg_close(&s->mid, pool->env->loop, reset ? (s->flags & SF_REASON_SENT) == 0 : (s->flags & SF_MID_RST) != 0);
	for (int i = 0; i < WAY_CNT; i++) {
		bufpool_put(&pool->bufs, s->held[i]);
		s->held[i] = NULL;
	}
	if (s->setup != NULL)
		slab_put(&pool->setup_slab, s->setup);
	s->setup = NULL;
	timer_cancel(&pool->env->timers, &s->timer);
	pool->stats.sessions_closed++;
	pool->stats.sessions_reset += reset;
	if (reset && (s->flags & SF_PROBE) == 0 && !session_comes_again(s)) {
		svc->ctr.resets++;
		svc->ctr.resets_client += is_clients_reset(s);
	}
	service_stats_ended(s, reset);
	circle_forget(s->pool->place.circles, &s->circle);
	svc->ctr.connections--;
	/* Counted by the address of the accepted leg. */
	const union net_addr *from = session_kind(s) == CONFIG_INGRESS ? &s->app_peer : &s->mid_peer;
	admission_give(svc->admission, (s->flags & SF_COUNTED) != 0 ? from : NULL);
	session_set_state(s, SES_DEAD);
	list_remove(&s->node);
	list_push(&pool->dead, &s->node);
}

void
session_free(struct session *s)
{
	struct session_pool *pool = s->pool;

	list_remove(&s->node);
	tls_proof_put(s->proof);
	free(s->client);
	way_free(s->settings->svc, s->way);
	idtable_del(&pool->sessions, s->id);
	timerq_unreserve(&pool->env->timers, 1);
	settings_put(s->settings);
	slab_put(&pool->session_slab, s);
}

/* -- events -- */

static const enum smcr_reason abort_reasons[SEV_EVENT_CNT] = {
	[SEV_APP_RESET] = SMCR_R_APP_RESET,
	[SEV_MID_RESET] = SMCR_R_TCP_RESET,
	[SEV_CONNECT_FAILED] = SMCR_R_REFUSED,
	[SEV_CIRCLE] = SMCR_R_REFUSED,
	[SEV_CLIENT] = SMCR_R_REFUSED,
	[SEV_DEST] = SMCR_R_REFUSED,
	[SEV_TIMEOUT] = SMCR_R_TIMEOUT,
	[SEV_OPERATOR] = SMCR_R_OPERATOR,
	[SEV_STOP] = SMCR_R_SHUTDOWN,
};

static void
blame_event(struct session *s, enum session_event event)
{
	const char *detail;

	if (s->cause == 0)
		s->cause = event == SEV_ENGINE_RESET ? end_cause_engine(smcr_closed(s->conn, NULL))
		                                     : end_cause_event(event);
	if (s->why != NULL)
		return;
	s->why = end_cause_of_event(event, session_kind(s));
	if (event == SEV_ENGINE_RESET) {
		s->why = smcr_reason_str(smcr_closed(s->conn, &detail));
		s->why_detail = detail[0] != '\0' ? detail : NULL;
	} else if (event == SEV_ENGINE_OK && s->state == SES_RENDEZVOUS) {
		s->why = "SMC-R is possible";
	}
}

/* FIN, unless both directions have ended: then the leg is closed at once. */
static void
pass_fin(struct session *s, struct leg *leg)
{
	if ((s->flags & SF_BOTH_DONE) != SF_BOTH_DONE)
		leg_shut(leg);
}

/* Polls the forwarding of bytes before a reset: without progress for reset_grace the session times out. */
static void
watch_drain(struct session *s)
{
	int64_t now_ns = s->pool->env->now_ns, until_ns = s->active_ns + s->pool->cfg->reset_grace_ms * NS_PER_MS;
	uint64_t at = session_reset_progress(s);

	if (at != s->reset_at) {
		s->reset_at = at;
		s->active_ns = now_ns;
		s->reset_pause_ms = 1;
	} else if (now_ns >= until_ns) {
		session_raise(s, SEV_TIMEOUT);
		return;
	}
	env_arm(s->pool->env, &s->timer, s->reset_pause_ms);
	s->reset_pause_ms = min_u32(2 * s->reset_pause_ms, RESET_PAUSE_MAX_MS);
	session_schedule(s);
}

static void
session_drain(struct session *s, enum session_event event)
{
	bool smcr = s->state == SES_SMCR;

	s->flags |= SF_RESETS;
	s->reset_way = event == SEV_APP_RESET ? WAY_FROM_APP : WAY_TO_APP;
	session_set_state(s, !smcr ? SES_TCP_DRAINING : event == SEV_APP_RESET ? SES_DRAINING : SES_DELIVERING);
	s->active_ns = s->pool->env->now_ns;
	s->reset_at = UINT64_MAX;
	watch_drain(s);
}

static void
carry_out(struct session *s, enum session_event event, unsigned act)
{
	if ((act & ACT_SEND_DONE) != 0)
		smcr_shutdown_wr(s->conn);
	if ((act & ACT_SEND_CLOSED) != 0)
		smcr_close(s->conn);
	if ((act & ACT_RESET) != 0)
		smcr_reset(s->conn);
	if ((act & ACT_ABORT) != 0 && session_opens(s))
		s->flags |= SF_NOT_OPENED;
	if ((act & ACT_ABORT) != 0)
		smcr_abort(s->conn, abort_reasons[event]);
	if ((act & ACT_PASS_FIN) != 0)
		smcr_tcp_event(s->conn, SMCR_TCP_FIN);
	if ((act & ACT_PASS_RST) != 0)
		smcr_tcp_event(s->conn, SMCR_TCP_RST);
	if ((act & ACT_FIN_APP) != 0)
		pass_fin(s, &s->app);
	if ((act & ACT_FIN_MID) != 0)
		pass_fin(s, &s->mid);
	if ((act & (ACT_CLOSE_APP | ACT_RESET_APP)) != 0)
		leg_close(&s->app, s->pool->env->loop, (act & ACT_RESET_APP) != 0);
	if ((act & ACT_CLOSE_MID) != 0)
		leg_close(&s->mid, s->pool->env->loop, true);
}

/* Performs the actions of the table. Earlier events may have led to a state without actions for this event, which is
 * then stale and dropped. In the state that it was raised in that is a defect of smcrd. */
static void
session_act_on(struct session *s, enum session_event event, enum session_state raised_in)
{
	unsigned act = session_table_actions(s->state, event);

	if (act == 0 && s->state != raised_in)
		return;
	if (event == SEV_ENGINE_RESET && setup_redial(s))
		return;
	if (act == 0) {
		log_msg(LOG_LVL_ERROR, "unexpected session event: id=%llu state=\"%s\" event=\"%s\"", session_number(s),
		    session_state_str(s->state), session_event_str(event));
		act = ACT_END_RESET;
	}
	if ((act & ACT_OUTAGE) != 0)
		setup_note_outage(s);
	if ((act & (ACT_ABORT | ACT_DRAIN | ACT_END | ACT_END_RESET)) != 0)
		blame_event(s, event);
	carry_out(s, event, act);
	if ((act & (ACT_END | ACT_END_RESET)) != 0)
		session_end(s, (act & ACT_END_RESET) != 0);
	else if ((act & ACT_SEND_CLOSED) != 0)
		session_set_state(s, SES_CLOSING);
	else if ((act & (ACT_ABORT | ACT_RESET)) != 0)
		session_set_state(s, SES_ABORTING);
	else if ((act & ACT_DRAIN) != 0)
		session_drain(s, event);
	else if ((act & ACT_LEAVE) != 0)
		session_set_state(s, SES_LEAVING);
}

/* Handles raised events in the order of enum session_event. No other function ends a session. False: it has ended. */
static bool
session_settle(struct session *s)
{
	const enum session_state raised_in = s->state;

	while (s->raised != 0 && s->state != SES_DEAD) {
		enum session_event event = (enum session_event)__builtin_ctz(s->raised);

		s->raised &= s->raised - 1;
		session_act_on(s, event, raised_in);
	}
	return s->state != SES_DEAD;
}

/* -- callbacks -- */

static void
on_app(struct loop_io *io, unsigned events)
{
	struct session *s = CONTAINER_OF(io, struct session, app.io);

	leg_latch(&s->app, events);
	session_schedule(s);
}

static void
on_mid(struct loop_io *io, unsigned events)
{
	struct session *s = CONTAINER_OF(io, struct session, mid.io);

	leg_latch(&s->mid, events);
	session_schedule(s);
}

static void
on_engine(struct conn_owner *owner, unsigned events)
{
	struct session *s = CONTAINER_OF(owner, struct session, owner);

	s->events |= events;
	if (s->state == SES_RENDEZVOUS && smcr_is_prewarm(s->conn))
		s->flags |= SF_PROBE;
	session_schedule(s);
}

static void
session_on_timer(struct timer *t)
{
	struct session *s = CONTAINER_OF(t, struct session, timer);
	int64_t idle_until = s->active_ns + s->settings->cfg.idle_ms * NS_PER_MS;
	bool idles = s->state == SES_SMCR || s->state == SES_TCP || (s->state == SES_LOOK && !setup_dialing(s));

	if ((s->flags & SF_RESETS) != 0)
		watch_drain(s);
	else if (s->state == SES_LOOK && !setup_dialing(s) && s->setup->met_ns != 0)
		session_schedule(s);
	else if (idles && idle_until > s->pool->env->now_ns)
		timer_arm(&s->pool->env->timers, &s->timer, idle_until);
	else if (s->state == SES_SECURE)
		secure_timeout(s);
	else if (s->state == SES_OPENING)
		setup_unanswered(s);
	else if (idles || s->state == SES_MEASURE)
		session_raise(s, SEV_TIMEOUT);
	else if (s->state != SES_ABORTING && setup_dialing(s))
		setup_dial_timeout(s);
}

/* -- the pump -- */

/* Raises fallback and end; the other events of the engine are for the steps that move bytes. */
static void
look_at_engine(struct session *s)
{
	const unsigned table = SMCR_EV_FALLBACK | SMCR_EV_CLOSED, events = s->events;

	if ((events & table) == 0)
		return;
	/* Established and closed in one turn, maybe with data. */
	if ((s->state == SES_RENDEZVOUS || s->state == SES_OPENING) && (events & SMCR_EV_ESTABLISHED) != 0 &&
	    (events & SMCR_EV_CLOSED) != 0)
		setup_pump(s);
	s->events &= ~table;
	if ((events & SMCR_EV_FALLBACK) != 0)
		session_raise(s, SEV_FALLBACK);
	else
		session_raise(s, smcr_closed(s->conn, NULL) == SMCR_OK ? SEV_ENGINE_OK : SEV_ENGINE_RESET);
}

/* The leg has bytes from before its end that will be read. */
static bool
will_read(const struct session *s, const struct leg *leg)
{
	bool is_app = leg == &s->app, sets_up = s->state < SES_SMCR || s->state == SES_TCP_CONNECT;

	if (!sets_up)
		return s->state == SES_TCP_DRAINING && is_app == (s->reset_way == WAY_FROM_APP);
	/* On a direct connection the other end would have got them. */
	if (!is_app && s->setup != NULL && s->setup->in.off < s->setup->in.len)
		return true;
	/* EPIPE: FIN came before the reset. */
	if (leg->err == EPIPE && (is_app || s->state == SES_TCP_CONNECT))
		return true;
	return leg_has_bytes(leg) || s->held[is_app ? WAY_FROM_APP : WAY_TO_APP] != NULL;
}

/* errno of a broken leg, or 0 if the dial handles it (connecting) or leg_read reports it (still to be read). */
static int
broken(struct session *s, struct leg *leg)
{
	int err = !setup_dialing(s) || s->setup->dial.leg != leg ? leg_broken(leg) : 0;

	return err != 0 && will_read(s, leg) ? 0 : err;
}

static void
look_at_app(struct session *s)
{
	if (broken(s, &s->app) != 0)
		session_raise(s, SEV_APP_RESET);
}

/* With data on SMC-R a network error of the CLC connection does not come from the peer (RFC 7609 4.5.3), which would
 * reset it: its packets may take another path than the links', or a firewall has dropped its state. But while the peer
 * may not have received our Confirm, the CLC connection is its only means to abort. */
static void
look_at_middle(struct session *s)
{
	/* The handshake finds it, with the reason. */
	int err = s->state != SES_SECURE || s->mid.tls == NULL ? broken(s, &s->mid) : 0;
	bool beside = s->path == PATH_SMCR &&
	    (s->state == SES_SMCR || s->state == SES_CLOSING || s->state == SES_DRAINING || s->state == SES_ABORTING);
	char peer[ADDR_STR_MAX];

	if (err == 0)
		return;
	if (!beside || err == ECONNRESET || err == EPIPE || !smcr_peer_is_there(s->conn)) {
		session_raise(s, SEV_MID_RESET);
		return;
	}
	log_limited(&s->pool->lim_middle, s->pool->env->now_ns, LOG_LVL_NOTICE,
	    "CLC connection lost, its link stays up: id=%llu service=%s peer=%s reason=\"%s\"", session_number(s),
	    s->settings->cfg.name, net_addr_str(&s->mid_peer, peer, sizeof(peer)), strerror(err));
	session_raise(s, SEV_MID_LOST);
}

static void (*const pumps[SES_STATE_CNT])(struct session *) = {
	[SES_CONNECT] = setup_pump,
	[SES_SECURE] = setup_pump,
	[SES_OPENING] = setup_pump,
	[SES_LOOK] = setup_pump,
	[SES_RENDEZVOUS] = setup_pump,
	[SES_LEAVING] = setup_pump,
	[SES_SMCR] = session_pump_smcr,
	[SES_MEASURE] = session_pump_measure,
	[SES_CLOSING] = session_pump_middle,
	[SES_DRAINING] = session_pump_draining,
	[SES_ABORTING] = session_pump_aborting,
	[SES_DELIVERING] = session_pump_delivering,
	[SES_TCP_CONNECT] = setup_pump,
	[SES_TCP] = session_pump_tcp,
	[SES_TCP_DRAINING] = session_pump_tcp_draining,
};

static bool
step(struct session *s, void (*fn)(struct session *))
{
	fn(s);
	return session_settle(s);
}

/* Each step runs in the state that the previous step's events have led to. Another round follows when the last step has
 * raised an event or changed the state. The rounds end, as a step raises an event without a state change only once. */
void
session_pump(struct session *s)
{
	bool again = true;

	s->flags |= SF_PUMPED;
	while (
	    session_settle(s) && again && step(s, look_at_engine) && step(s, look_at_app) && step(s, look_at_middle)) {
		enum session_state before = s->state;

		pumps[before](s);
		s->events = 0;
		again = s->raised != 0 || s->state != before;
	}
	s->flags &= ~(unsigned)SF_PUMPED;
	acks_note(s);
}

/* -- start, close and stop -- */

static struct session *
session_new(struct service *svc)
{
	struct session_pool *pool = svc->pool;
	struct session *s = slab_get(&pool->session_slab);

	if (s == NULL)
		return NULL;
	s->setup = slab_get(&pool->setup_slab);
	s->id = idtable_add(&pool->sessions, s);
	if (s->setup == NULL || s->id == 0 || timerq_reserve(&pool->env->timers, 1) != 0) {
		if (s->id != 0)
			idtable_del(&pool->sessions, s->id);
		if (s->setup != NULL)
			slab_put(&pool->setup_slab, s->setup);
		slab_put(&pool->session_slab, s);
		return NULL;
	}
	if (svc->settings->cfg.proxy_protocol != CONFIG_PROXY_OFF)
		s->flags = SF_HEADER_OWED;
	s->owner.on_event = on_engine;
	s->pool = pool;
	s->settings = svc->settings;
	s->settings->refs++;
	s->born_ns = s->active_ns = pool->env->now_ns;
	leg_init(&s->app, on_app);
	leg_init(&s->mid, on_mid);
	list_init(&s->node);
	timer_init(&s->timer, session_on_timer);
	svc->ctr.connections++;
	pool->stats.sessions_opened++;
	return s;
}

void
session_start(struct service *svc, int fd, const union net_addr *source, const union net_addr *peer, struct way *way,
    bool counted)
{
	bool ingress = svc->settings->cfg.kind == CONFIG_INGRESS;
	struct session *s = session_new(svc);

	if (s == NULL) {
		log_limited(&svc->pool->lim_refused, svc->pool->env->now_ns, LOG_LVL_WARNING,
		    "connection refused, out of memory or sessions: service=%s", svc->settings->cfg.name);
		svc->ctr.refused_max++;
		admission_give(svc->admission, counted ? peer : NULL);
		way_free(svc, way);
		net_reset(fd);
		return;
	}
	s->way = way;
	*(ingress ? &s->app_peer : &s->mid_peer) = *peer;
	circle_accepted(s, fd, source);
	if (counted)
		s->flags |= SF_COUNTED;
	if (!ingress)
		s->flags |= SF_UNCOUNTED;
	s->state = ingress ? SES_CONNECT : SES_RENDEZVOUS;
	service_stats_travels(s, session_mode(s));
	unsigned kind = peer->sa.sa_family == AF_UNIX ? LEG_UNIX : 0;
	int err = leg_open(ingress ? &s->app : &s->mid, s->pool->env->loop, fd, kind);
	if (err != 0) {
		session_fail(s, SEV_REFUSED, "socket cannot be watched", -err);
	} else {
		(ingress ? setup_dial : detect_peer)(s);
		session_schedule(s);
	}
	/* A session that ends at once frees its place for the next connection of this turn. */
	(void)session_settle(s);
}

bool
session_opened(
    struct service *svc, struct smcr_conn *conn, const struct clc_dest *dest, const union net_addr *peer, bool counted)
{
	struct session *s = session_new(svc);

	if (s == NULL)
		return false;
	s->mid_peer = *peer;
	s->setup->in.tlvs.dest = *dest;
	s->flags |= SF_UNCOUNTED | (counted ? SF_COUNTED : 0);
	s->conn = conn;
	smcr_set_app(conn, &s->owner);
	secure_over_link(s);
	s->state = SES_RENDEZVOUS;
	service_stats_travels(s, session_mode(s));
	return true;
}

bool
session_matches(const struct session *s, const struct close_filter *f)
{
	const struct sockaddr_storage peer = net_addr_get(&s->mid_peer);

	return (f->id == 0 || f->id == session_number(s)) &&
	    (f->service[0] == '\0' || strcmp(f->service, s->settings->cfg.name) == 0) &&
	    (f->peer.ss_family == AF_UNSPEC || addr_matches(&f->peer, &peer));
}

bool
session_close(struct session *s, const char *why)
{
	struct smcr_conn_info info;

	if (s->state == SES_DEAD || s->state == SES_ABORTING || (s->raised & 1u << SEV_OPERATOR) != 0)
		return false;
	if (s->state == SES_SMCR) {
		/* After FIN an smcrd waits for our A (fin_grace_ms), which has the reason. AF_SMC ignores it. */
		smcr_conn_info(s->conn, &info);
		s->flags |= info.peer.foreign ? 0 : SF_REASON_SENT;
	}
	s->pool->stats.sessions_closed_operator += why == NULL;
	session_fail(s, SEV_OPERATOR, why, 0);
	return true;
}

void
session_stop(struct session *s)
{
	session_raise(s, SEV_STOP);
	(void)session_settle(s);
}
