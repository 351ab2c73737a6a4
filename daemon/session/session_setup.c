/* Set-up of a session: the rendezvous, and connected legs; see session.h. */
#include "daemon/session/session.h"

#include "daemon/net/net.h"

/* The outage that an aborted rendezvous proves; OUTAGE_NONE for the other reasons. */
static const enum outage_kind outage_kinds[SMCR_R_NOT_OPENED + 1] = {
	[SMCR_R_TCP_RESET] = OUTAGE_RESET,
	[SMCR_R_TCP_FIN] = OUTAGE_RESET,
	[SMCR_R_PROTOCOL] = OUTAGE_NO_SMC,
	[SMCR_R_CLC_TIMEOUT] = OUTAGE_NO_SMC,
	[SMCR_R_LINK_LOST] = OUTAGE_SETUP,
	[SMCR_R_GROUP_DELETED] = OUTAGE_SETUP,
	[SMCR_R_LLC_TIMEOUT] = OUTAGE_SETUP,
	[SMCR_R_PEER_ABORT] = OUTAGE_SETUP,
	[SMCR_R_PEER_CLOSED] = OUTAGE_SETUP,
	[SMCR_R_CLOSE_TIMEOUT] = OUTAGE_SETUP,
	[SMCR_R_ELEM_CONFLICT] = OUTAGE_SETUP,
};

/* The fault that an aborted rendezvous proves, and its text. */
static enum outage_kind
fault_of(const struct session *s, const char **detail)
{
	const char *tls = leg_tls_why(&s->mid);
	enum smcr_reason reason = smcr_closed(s->conn, detail);
	bool hello = session_kind(s) == CONFIG_EGRESS && s->setup != NULL && s->setup->in.len > 0 &&
	    s->setup->in.buf[0] == TLS_HANDSHAKE_BYTE;

	if ((*detail)[0] == '\0')
		*detail = smcr_reason_str(reason);
	if (outage_kinds[reason] == OUTAGE_NO_SMC && hello)
		*detail = "it speaks TLS, and secure is \"off\" here";
	if (outage_kinds[reason] == OUTAGE_NONE || tls[0] == '\0')
		return outage_kinds[reason];
	*detail = tls;
	return OUTAGE_TLS;
}

void
setup_note_outage(struct session *s)
{
	struct service *svc = s->settings->svc;
	const char *detail;
	/* Over a link an abort is the server program's. */
	bool by_program = s->state == SES_OPENING && smcr_closed(s->conn, NULL) == SMCR_R_PEER_ABORT;
	enum outage_kind kind = by_program ? OUTAGE_NONE : fault_of(s, &detail);

	if (kind == OUTAGE_NONE)
		return;
	if (session_kind(s) == CONFIG_EGRESS) {
		if (kind == OUTAGE_NO_SMC || kind == OUTAGE_TLS)
			outage_unknown_peer(svc, &s->mid_peer, detail);
		return;
	}
	/* The client is refused because the peer was not reached, as after a failed connect. */
	svc->ctr.refused_connect++;
	outage_failed(svc, session_outage(s), kind, &s->mid_peer, kind == OUTAGE_RESET ? "" : detail, 0);
}

/* Another connection to the peer, or to another target. */
static void
leave_conn(struct session *s)
{
	smcr_release(s->conn);
	s->conn = NULL;
	s->events = 0;
	s->flags &= ~(unsigned)SF_MID_FIN;
	setup_dial_again(s, true);
}

bool
setup_target_failed(struct session *s, const char *why)
{
	target_bad(s->settings, &s->setup->pick, ENDPOINT_SETUP, why);
	bool other = endpoints_have_other(targets_lock(s->settings->targets), s->setup->tried);
	targets_unlock(s->settings->targets);
	return other;
}

/* How long a connection waits that opens over a link: the server's daemon answers within its own connect_timeout, unless
 * it stands still. */
uint32_t
setup_answer_ms(const struct session *s)
{
	return s->settings->cfg.connect_ms + smcr_settings(s->pool->env->eng)->clc_ms;
}

/* Waited for a peer that stands still as long as an OPEN would have. */
static bool
has_waited(const struct session *s)
{
	return s->pool->env->now_ns >= s->born_ns + setup_answer_ms(s) * NS_PER_MS;
}

void
setup_unanswered(struct session *s)
{
	static const char why[] = "no answer to its OPEN";

	(void)setup_target_failed(s, why);
	s->settings->svc->ctr.refused_connect++;
	outage_failed(s->settings->svc, session_outage(s), OUTAGE_SETUP, &s->mid_peer, why, 0);
	s->why_detail = why;
	session_raise(s, SEV_TIMEOUT);
}

/* No byte of the client has reached a program: it comes by a CLC connection. The engine gives a reason unless the peer
 * has refused it. */
static void
leave_link(struct session *s, const char *why)
{
	char peer[ADDR_STR_MAX];

	if (why[0] != '\0')
		log_limited(&s->pool->lim_middle, s->pool->env->now_ns, LOG_LVL_NOTICE,
		    "connection not opened over its link, begins again: id=%llu service=%s peer=%s reason=\"%s\"",
		    session_number(s), s->settings->cfg.name, net_addr_str(&s->mid_peer, peer, sizeof(peer)), why);
	s->flags |= SF_NOT_OPENED;
	s->setup->tried = 0;
	leave_conn(s);
}

bool
setup_redial(struct session *s)
{
	const struct setup *setup = s->setup;
	const char *detail;

	if (session_kind(s) != CONFIG_INGRESS || (s->state != SES_RENDEZVOUS && s->state != SES_OPENING) ||
	    setup == NULL)
		return false;
	enum smcr_reason reason = smcr_closed(s->conn, &detail);
	if (reason == SMCR_R_NOT_OPENED) {
		leave_link(s, detail);
		return true;
	}
	/* Over a link the first bytes may have reached the server. */
	if (s->state == SES_OPENING || fault_of(s, &detail) == OUTAGE_NONE)
		return false;
	bool other = setup_target_failed(s, detail);
	if (!other && reason == SMCR_R_CLC_TIMEOUT && (s->flags & SF_NOT_OPENED) != 0 && !has_waited(s)) {
		s->setup->tried = 0;
		other = true;
	}
	if (other)
		leave_conn(s);
	return other;
}

/* A probe of the peer's daemon asks for the server, which is in this state. */
static void
answer_probe(struct session *s, enum clc_server server)
{
	leg_close(&s->app, s->pool->env->loop, false);
	smcr_admit_asking(s->conn, server);
}

/* The server is connected. */
static void
admit_connected(struct session *s)
{
	if ((s->flags & SF_PROBE) != 0)
		answer_probe(s, CLC_SERVER_UP);
	else
		smcr_admit(s->conn);
}

bool
setup_probe_failed(struct session *s, int err)
{
	if ((s->flags & SF_PROBE) != 0)
		answer_probe(s, health_server(err));
	return (s->flags & SF_PROBE) != 0;
}

/* A connected leg continues the set-up; a failed attempt is followed by the next address. */
static void
pump_dial(struct session *s)
{
	int r = s->setup->dial.busy ? dial_check(&s->setup->dial) : 0;

	if (r < 0)
		setup_dial_next(s, 0);
	if (r <= 0)
		return;
	timer_cancel(&s->pool->env->timers, &s->timer);
	target_good(s->settings, &s->setup->pick, false);
	service_stats_connected(s);
	if (session_kind(s) == CONFIG_INGRESS) {
		detect_peer(s);
		return;
	}
	if (!client_announce(s))
		return;
	if (s->app_peer.sa.sa_family == AF_UNIX)
		net_addr_add_peer(&s->app_peer, s->app.io.fd);
	outage_end(s->settings->svc, session_outage(s),
	    s->setup->dial.source.addr != NULL ? OUTAGE_ENDED_ANSWERED : OUTAGE_ENDED_CONNECTED, &s->app_peer);
	if (s->state == SES_RENDEZVOUS)
		admit_connected(s); /* no effect before the Proposal has arrived */
	else if (s->state == SES_TCP_CONNECT)
		session_set_state(s, SES_TCP);
	else if (s->state == SES_LOOK)
		session_idles(s);
}

static void
is_on_smcr(struct session *s)
{
	s->path = PATH_SMCR;
	if (session_kind(s) == CONFIG_INGRESS) {
		outage_end(s->settings->svc, session_outage(s), OUTAGE_ENDED_SMCR, &s->mid_peer);
		target_good(s->settings, &s->setup->pick, true);
	}
	fallback_period_end(s->settings->svc, &s->mid_peer);
}

/* The client's first bytes go at once, and are held until the peer has answered. Its other events wait for that. */
static void
pump_opening(struct session *s)
{
	if ((s->events & SMCR_EV_ESTABLISHED) != 0) {
		timer_cancel(&s->pool->env->timers, &s->timer);
		bufpool_put(&s->pool->bufs, s->held[WAY_FROM_APP]);
		s->held[WAY_FROM_APP] = NULL;
		target_good(s->settings, &s->setup->pick, false);
		service_stats_connected(s);
		if (!way_is_taken(s))
			return;
		is_on_smcr(s);
		session_set_state(s, SES_SMCR);
		return;
	}
	session_pump_first(s);
}

static void
pump_rendezvous(struct session *s)
{
	clc_pump(&s->mid, s->conn, &s->setup->in, &s->setup->out);
	if ((s->events & SMCR_EV_ESTABLISHED) != 0) {
		if (!way_is_taken(s))
			return;
		is_on_smcr(s);
		if (!client_is_passed_on(s))
			return;
		clc_out_take(&s->setup->out, s->conn);
		if (s->mid.io.fd >= 0)
			net_tune_idle_middle(s->mid.io.fd, &s->pool->cfg->keepalive);
		if (smcr_may_reset_middle(s->conn) && (s->flags & SF_PROBE) == 0)
			s->flags |= SF_MID_RST;
		if ((s->flags & SF_PROBE) != 0)
			measure_begin(s);
		else
			session_set_state(s, SES_SMCR);
	} else if ((s->events & SMCR_EV_PROPOSAL) != 0) {
		const struct clc_tlvs tlvs = smcr_proposed_tlvs(s->conn);
		s->setup->in.tlvs.client = tlvs.client;
		if (!session_opens(s)) /* otherwise its ticket had it */
			s->setup->in.tlvs.dest = tlvs.dest;
		if ((s->flags & SF_PROBE) == 0)
			session_is_client(s);
		if (!circle_proposed(s)) {
			session_raise(s, SEV_CIRCLE);
			return;
		}
		/* After SES_LOOK the server is connected or connecting already. */
		const bool probe = (s->flags & SF_PROBE) != 0;
		const enum clc_server known = probe ? targets_server(s->settings->targets) : CLC_SERVER_UNSAID;
		/* A probe wants no destination: its answer says that there is no server to ask. */
		if (known != CLC_SERVER_UNSAID || (probe && s->settings->cfg.to_word == CONFIG_TO_REQUESTED))
			answer_probe(s, known);
		else if (s->app.io.fd >= 0 && !s->setup->dial.busy)
			admit_connected(s);
		else if (!s->setup->dial.busy)
			setup_dial(s);
	}
}

void
setup_pump(struct session *s)
{
	pump_dial(s);
	if (s->raised == 0 && s->state == SES_SECURE)
		secure_pump(s);
	if (s->raised == 0 && s->state == SES_LOOK)
		detect_look(s);
	if (s->raised != 0)
		return;
	if (s->state == SES_OPENING)
		pump_opening(s);
	else if (s->state == SES_RENDEZVOUS)
		pump_rendezvous(s);
	else if (s->state == SES_LEAVING)
		setup_fall_back(s);
}
