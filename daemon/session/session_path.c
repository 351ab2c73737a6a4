/* Sessions that cannot use SMC-R: TCP, a retry or a refusal; and the end of the set-up. See session.h. */
#include "daemon/session/session.h"

#include <string.h>

#include "base/addr.h"
#include "daemon/log/log_text.h"
#include "wire/clc.h"

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
	service_stats_no_smc(s, s->diag.local, s->diag.peer);
	/* With peer = "auto" a plain peer is no fallback to report. */
	bool expected = s->path == PATH_TCP && s->settings->cfg.peer == SMCR_PEER_AUTO &&
	    s->diag.local == CLC_DIAG_PEER_NO_SMC;
	if (!expected && s->path != PATH_NONE)
		fallback_period_note(svc, &s->mid_peer, &s->diag);
	log_limited(&pool->lim_failed, pool->env->now_ns, LOG_LVL_INFO,
	    "no SMC-R: id=%llu service=%s peer=%s fallback=%s%s", session_number(s), s->settings->cfg.name,
	    net_addr_str(&s->mid_peer, peer, sizeof(peer)), words[s->path], log_text_diag(&s->diag, why, sizeof(why)));
}

/* After a fallback: releases the engine's connection, unless the peer's Decline may still arrive. Holds the peer's data
 * that was read in search of a Decline or after it. False, with an event raised: no memory for that data. */
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
			session_fail(s, SEV_MID_RESET, "out of memory", 0);
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
	service_stats_no_smc(s, 0, s->diag.peer);
	return leave_engine(s) && s->conn == NULL && setup_finish(s);
}

void
setup_take_path(struct session *s)
{
	if (s->path == PATH_REFUSED) {
		session_fail(s, SEV_REFUSED, "no SMC-R, and fallback is forbidden", 0);
		return;
	}
	if (!way_is_taken(s))
		return;
	if (session_kind(s) == CONFIG_INGRESS)
		target_good(s->settings, &s->setup->pick, true);
	bool connected = s->app.io.fd >= 0 && !s->setup->dial.busy;
	session_set_state(s, connected ? SES_TCP : SES_TCP_CONNECT);
	if (s->app.io.fd < 0 && !setup_dialing(s))
		setup_dial(s);
}

/* Drops the bytes if the peer has reset the CLC connection; its earlier data is still read. */
static void
flush_clc(struct session *s)
{
	if (clc_out_flush(&s->setup->out, &s->mid) == 0)
		return;
	s->setup->out.len = 0;
	session_schedule(s);
}

/* A probe of the peer's daemon gets the Decline, and the session ends, as there is no client. */
static void
turn_probe_away(struct session *s)
{
	char peer[ADDR_STR_MAX], why[LOG_TEXT_MAX];

	log_limited(&s->pool->lim_failed, s->pool->env->now_ns, LOG_LVL_INFO,
	    "no SMC-R for a probe by the peer's daemon: service=%s peer=%s%s", s->settings->cfg.name,
	    net_addr_str(&s->mid_peer, peer, sizeof(peer)), log_text_diag(&s->diag, why, sizeof(why)));
	clc_out_take(&s->setup->out, s->conn);
	(void)clc_out_flush(&s->setup->out, &s->mid);
	session_fail(s, SEV_ENGINE_OK, "SMC-R is not possible", 0);
}

void
setup_fall_back(struct session *s)
{
	smcr_fallback(s->conn, &s->diag);
	if ((s->flags & SF_PROBE) != 0) {
		turn_probe_away(s);
		return;
	}
	if (s->way == NULL && smcr_dest_is_refused(s->conn)) {
		requested_refused(s);
		return;
	}
	/* The engine may have declined at once. */
	if (session_kind(s) == CONFIG_EGRESS && !circle_proposed(s)) {
		session_raise(s, SEV_CIRCLE);
		return;
	}
	if (session_kind(s) == CONFIG_INGRESS && s->diag.peer != 0)
		outage_end(s->settings->svc, session_outage(s), OUTAGE_ENDED_DECLINED, &s->mid_peer);
	/* One that is out of sync may be tried again. */
	if (!s->diag.out_of_sync && !way_is_taken(s))
		return;
	setup_choose_path(s);
	clc_out_take(&s->setup->out, s->conn);
	if (s->path == PATH_TCP && !client_is_passed_on(s))
		return;
	if (s->path != PATH_TCP) {
		smcr_release(s->conn);
		s->conn = NULL;
	}
	if (s->conn != NULL && !leave_engine(s))
		return;
	flush_clc(s);
	if (s->path == PATH_NONE) {
		/* After an out-of-sync Decline the group has ended on both sides: a new connection makes a new one
		 * (C.4). FIN, not RST, which could overtake the Decline. */
		s->flags |= SF_RETRIED;
		s->setup->tried = 0;
		setup_dial_again(s, false);
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
	/* Beside data on SMC-R the CLC connection carries nothing. */
	if (s->path == PATH_SMCR && (s->flags & SF_PROBE) == 0)
		leg_tls_end(&s->mid);
	slab_put(&s->pool->setup_slab, s->setup);
	s->setup = NULL;
	return true;
}
