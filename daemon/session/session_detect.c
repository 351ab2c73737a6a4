/* Detects SMC-R by its TCP option (peer_mode.h), at an egress without it by the first bytes, while it connects to the
 * server. The first bytes of either side decide: a plain client waits only for a first contact with its address. See
 * session.h. */
#include "daemon/session/session.h"

#include <string.h>

#include "base/minmax.h"
#include "base/span.h"
#include "daemon/leg/peer_mode.h"
#include "wire/clc.h"
#include "wire/tcpopt.h"

#define TURN_MS 500 /* after the end of a first contact: time for the Proposals that waited for it to arrive */

static const char stray_clc[] = "CLC message without the SMC-R option in the SYN";

/* -- TCP option -- */

/* Sets the diag of a connection that this rule makes plain TCP. */
static void
explain(struct session *s, const struct peer_mode *rule)
{
	bool egress = session_kind(s) == CONFIG_EGRESS;

	s->diag = (struct smcr_diag){ .local = rule->diag, .detail = rule->detail };
	if (rule->diag != CLC_DIAG_NO_OPTION)
		return;
	if (egress && tcp_option_usable(s->pool->option))
		s->diag.detail =
		    "the listening socket was opened without it, by systemd or before the service had "
		    "this peer: smcrd must open it, at its start";
	else if (egress && tcp_option_syn_had_it(s->mid.io.fd))
		s->diag.detail = "the peer's SYN had the option; smcrctl status shows what is missing here";
	else
		s->diag.detail = "smcrctl status shows what is missing";
}

/* SES_RENDEZVOUS: opens the engine's connection. */
static void
open_conn(struct session *s)
{
	struct smcr_open o = setup_describe(s);
	const struct sockaddr_storage peer = net_addr_get(&s->mid_peer);
	int err;

	clc_stream_describe(&s->mid, s->pool->devices, &peer, &o);
	leg_tls_describe(&s->mid, s->settings, &o);
	s->conn = smcr_open(s->pool->env->eng, &o, &err);
	explicit_bzero(o.secret, sizeof(o.secret));
	if (s->conn == NULL)
		session_fail(s, SEV_REFUSED, "no SMC-R connection is free", -err);
}

void
detect_peer(struct session *s)
{
	const struct config_service *cfg = &s->settings->cfg;
	struct worker_stats *stats = &s->pool->stats;
	enum tcp_option_state state = TCP_OPTION_UNKNOWN;

	if (cfg->secure != CONFIG_SECURE_OFF && (s->flags & SF_SECURED) == 0) {
		secure_begin(s);
		return;
	}
	if (peer_mode_wants_option(cfg->peer)) {
		state = tcp_option_read(s->pool->option, s->mid.io.fd);
		stats->option_agreed += state == TCP_OPTION_AGREED;
		stats->option_missing += state == TCP_OPTION_MISSING;
		stats->option_unknown += state == TCP_OPTION_UNKNOWN;
	}
	const struct peer_mode *rule = peer_mode(cfg->kind, cfg->peer, state);
	bool refuse = cfg->fallback == CONFIG_FALLBACK_REFUSE;

	if (rule->way == PEER_CLC || (rule->way == PEER_LOOK && refuse && rule->takes_clc)) {
		/* With fallback forbidden only a CLC message is acceptable. */
		session_set_state(s, SES_RENDEZVOUS);
		open_conn(s);
		return;
	}
	explain(s, rule);
	if (rule->way == PEER_LOOK && !refuse) {
		s->setup->rule = rule;
		session_set_state(s, SES_LOOK);
		setup_dial(s);
	} else {
		setup_choose_path(s);
		setup_take_path(s);
	}
}

/* -- first bytes -- */

enum first_bytes {
	FIRST_NONE, /* not arrived */
	FIRST_PLAIN,
	FIRST_CLC,
};

/* An smcrd sends its Proposal at once, so fewer bytes than the eye catcher are not part of one. */
static enum first_bytes
first_bytes(struct session *s)
{
	uint8_t got[4];
	ssize_t n = leg_peek(&s->mid, got, sizeof(got));

	if (n < 0)
		return FIRST_NONE;
	struct rcur r = rcur_make(got, (size_t)n);
	/* The eye catcher is the option's magic (RFC 7609 A.2.1). */
	return rcur_be32(&r) == TCPOPT_SMCR_MAGIC ? FIRST_CLC : FIRST_PLAIN;
}

static void
refuse_clc(struct session *s, const char *why)
{
	outage_unknown_peer(s->settings->svc, &s->mid_peer, why);
	session_fail(s, SEV_REFUSED, why, 0);
}

/* The server has sent data, but the client may be an smcrd whose Proposal waits for the first contact of another
 * connection. The server's bytes are held until TURN_MS after that, at most as long as a rendezvous waits for CLC. */
static bool
waits_for_turn(struct session *s)
{
	struct env *env = s->pool->env;

	if (!s->setup->rule->takes_clc)
		return false;
	const struct sockaddr_storage peer = net_addr_get(&s->mid_peer);
	struct smcr_identity remote = clc_stream_identity(&peer);
	int64_t met_ns = smcr_met_ns(env->eng, &remote);
	int64_t until_ns = s->born_ns + smcr_settings(env->eng)->clc_ms * NS_PER_MS;
	if (s->setup->met_ns == INT64_MAX)
		s->setup->met_ns = env->now_ns;
	s->setup->met_ns = max_i64(s->setup->met_ns, met_ns);
	if (met_ns != INT64_MAX)
		until_ns = min_i64(until_ns, s->setup->met_ns + TURN_MS * NS_PER_MS);
	if (s->setup->met_ns == 0 || until_ns <= env->now_ns)
		return false;
	s->pool->turns_wait = s->pool->turns_wait || met_ns == INT64_MAX;
	timer_arm(&env->timers, &s->timer, until_ns);
	return true;
}

void
detect_look(struct session *s)
{
	enum first_bytes first = first_bytes(s);
	bool server_spoke = !setup_dialing(s) && (s->app.flags & LEG_READABLE) != 0;

	if (server_spoke && first == FIRST_NONE)
		server_spoke = !waits_for_turn(s);

	if (first == FIRST_CLC) {
		s->pool->stats.option_stray_clc++;
		s->diag = (struct smcr_diag){ 0 };
		if (!s->setup->rule->takes_clc) {
			refuse_clc(s, stray_clc);
			return;
		}
		session_set_state(s, SES_RENDEZVOUS);
		open_conn(s);
	} else if (first == FIRST_PLAIN || server_spoke) {
		if (first == FIRST_NONE)
			s->flags |= SF_UNSEEN;
		if (!setup_dialing(s))
			timer_cancel(&s->pool->env->timers, &s->timer);
		setup_choose_path(s);
		setup_take_path(s);
	}
}

bool
detect_first_bytes_done(struct session *s)
{
	enum first_bytes first = first_bytes(s);

	if (first == FIRST_CLC) {
		/* The server's data was forwarded: too late for SMC-R. */
		s->pool->stats.option_stray_clc++;
		refuse_clc(s, "CLC message without the SMC-R option in the SYN, after data of the server");
		return false;
	}
	if (first == FIRST_PLAIN)
		s->flags &= ~(unsigned)SF_UNSEEN;
	return first == FIRST_PLAIN;
}
