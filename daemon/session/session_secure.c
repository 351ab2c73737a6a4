/* TLS with the peer, from the first byte of the CLC connection; see session.h and doc/secure.md. Nothing falls back to
 * clear: without TLS the session ends, or goes on to another target. */
#include "daemon/session/session.h"

#include "smcr/proof.h"

static const char not_tls[] = "not TLS, refused: secure is set here";

static void
secure_failed(struct session *s, const char *why)
{
	struct service *svc = s->settings->svc;

	s->pool->stats.tls_failed++;
	if (why == not_tls)
		tls_count(TLS_NOT_SPOKEN);
	if (session_kind(s) == CONFIG_EGRESS) {
		outage_unknown_peer(svc, &s->mid_peer, why);
		session_fail(s, SEV_REFUSED, why == not_tls ? not_tls : "no TLS with the peer", 0);
		return;
	}
	if (setup_target_failed(s, why)) {
		setup_dial_again(s, true);
		return;
	}
	svc->ctr.refused_connect++;
	outage_failed(svc, session_outage(s), OUTAGE_TLS, &s->mid_peer, why, 0);
	session_fail(s, SEV_REFUSED, "no TLS with the peer", 0);
}

void
secure_timeout(struct session *s)
{
	secure_failed(s, "peer does not finish the TLS handshake within clc_timeout");
}

/* SES_SECURE has ended: goes on with the rendezvous. */
static void
secure_done(struct session *s)
{
	timer_cancel(&s->pool->env->timers, &s->timer);
	s->flags |= SF_SECURED;
	detect_peer(s);
}

/* The first byte of a client. True: TLS may start. */
static bool
looks_like_tls(struct session *s)
{
	uint8_t first;
	ssize_t n = leg_peek(&s->mid, &first, 1);

	if (n < 0)
		return false;
	if (n == 0) /* a connection that only tries the port */
		session_raise(s, SEV_MID_RESET);
	else if (first == TLS_HANDSHAKE_BYTE)
		return true;
	else if (s->settings->cfg.secure != CONFIG_SECURE_ACCEPT)
		secure_failed(s, not_tls);
	else {
		s->pool->stats.tls_clear++;
		secure_done(s);
	}
	return false;
}

void
secure_over_link(struct session *s)
{
	s->proof = tls_proof_get(smcr_proof(s->conn));
}

void
secure_begin(struct session *s)
{
	session_set_state(s, SES_SECURE);
	env_arm(s->pool->env, &s->timer, smcr_settings(s->pool->env->eng)->clc_ms);
	if (session_kind(s) == CONFIG_INGRESS && !leg_tls_dial(&s->mid, s->settings, &s->setup->pick.addr))
		secure_failed(s, "TLS cannot start: out of memory, or no PSK for this peer");
	session_schedule(s);
}

/* A reload during the handshake may have taken the name away. */
static bool
still_permitted(const struct session *s, char why[TLS_WHY_MAX])
{
	const struct sockaddr_storage peer = net_addr_get(&s->mid_peer);

	return (tls_io_ctx(s->mid.tls) == s->pool->tls_ctx && s->settings == s->settings->svc->settings) ||
	    trust_holds(s->pool, s->settings->svc, session_kind(s), s->proof, &peer, why);
}

/* Of full handshakes by certificates at an egress. Others cost little. */
static uint32_t
handshakes_of(const struct session *s)
{
	const struct config_tls *tls = &s->pool->cfg->tls;

	return session_kind(s) == CONFIG_EGRESS && tls->psk[0] == '\0' ? tls->handshakes : 0;
}

void
secure_pump(struct session *s)
{
	if (s->mid.tls == NULL) {
		if (!looks_like_tls(s))
			return;
		if (!handshake_rate_take(&s->pool->handshakes, &s->mid_peer, handshakes_of(s), s->pool->env->now_ns)) {
			s->pool->stats.tls_limited++;
			secure_failed(s, "too many TLS handshakes of this source: tls.handshakes");
			return;
		}
		if (!leg_tls_accept(&s->mid, s->settings)) {
			secure_failed(s, "TLS cannot start: out of memory");
			return;
		}
	}
	char why[TLS_WHY_MAX];
	int n = leg_handshake(&s->mid);
	if (n < 0)
		secure_failed(s, leg_tls_why(&s->mid));
	if (n <= 0)
		return;
	tls_proof_put(s->proof);
	s->proof = tls_proof_get(tls_io_proof(s->mid.tls));
	if (!still_permitted(s, why)) {
		secure_failed(s, why);
		return;
	}
	s->pool->stats.tls_handshakes++;
	if (tls_io_is_resumed(s->mid.tls)) {
		s->pool->stats.tls_resumed++;
		handshake_rate_give(&s->pool->handshakes, &s->mid_peer, handshakes_of(s));
	}
	secure_done(s);
}
