/* Peers that a reload, or changed files of `tls`, no longer permit: their connections and link groups end. See session.h.
 * A peer is judged once for each service, however many connections it has. */
#include "daemon/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "smcr/proof.h"

#define VERDICTS 32 /* kept at once */

/* Of a peer, as that of a service. */
struct verdict {
	const struct tls_proof *proof;
	const struct service *svc;
	enum config_kind kind;
	bool permitted;
	union net_addr peer; /* of the first connection that has ended */
	uint64_t ended;
	char why[TLS_WHY_MAX];
};

struct judging {
	struct session_pool *pool;
	struct verdict verdicts[VERDICTS];
	unsigned cnt;
};

static const char no_longer[] = "peer is no longer permitted";

/* The name, by the settings of a service as they are now. What it no longer leads to, or has without TLS now, stays. */
static bool
name_permitted(const struct settings *st, const struct tls_proof *proof, const struct sockaddr_storage *peer)
{
	if (st == NULL || st->cfg.secure == CONFIG_SECURE_OFF)
		return true;
	const char *host = st->cfg.peer_names[0] == '\0' ? leg_tls_host(st, peer) : "";

	return host == NULL || tls_proof_permitted(proof, st->cfg.peer_names, host);
}

bool
trust_holds(const struct session_pool *pool, const struct service *svc, enum config_kind kind,
    const struct tls_proof *proof, const struct sockaddr_storage *peer, char why[TLS_WHY_MAX])
{
	why[0] = '\0';
	if (pool->tls_ctx != NULL && !tls_proof_holds(proof, pool->tls_ctx, kind == CONFIG_INGRESS, why))
		return false;
	if (name_permitted(svc->settings, proof, peer))
		return true;
	(void)snprintf(why, TLS_WHY_MAX, "peer is '%s', not one of peer_names", tls_proof_who(proof)->name);
	return false;
}

static void
report_ended(struct session_pool *pool, const struct verdict *v)
{
	struct event e = { .kind = EVENT_PEER_ENDED, .connections = v->ended };

	if (v->ended == 0)
		return;
	pool->stats.tls_ended += v->ended;
	(void)snprintf(e.service, sizeof(e.service), "%s", v->svc->admission->name);
	const struct sockaddr_storage peer = net_addr_get(&v->peer);
	(void)(v->kind == CONFIG_INGRESS ? addr_format_port : addr_format)(&peer, e.peer, sizeof(e.peer));
	(void)snprintf(e.reason, sizeof(e.reason), "%s", v->why);
	session_pool_report(pool, &e);
}

static struct verdict *
judge_session(struct judging *j, struct session *s, const struct tls_proof *proof)
{
	const struct service *svc = s->settings->svc;
	const struct sockaddr_storage peer = net_addr_get(&s->mid_peer);
	struct verdict *v = j->verdicts;

	while (v < j->verdicts + VERDICTS && v->proof != NULL && (v->proof != proof || v->svc != svc))
		v++;
	if (v < j->verdicts + VERDICTS && v->proof != NULL)
		return v;
	if (v == j->verdicts + VERDICTS) {
		v = &j->verdicts[j->cnt++ % VERDICTS];
		report_ended(j->pool, v);
	}
	*v = (struct verdict){ .proof = proof, .svc = svc, .kind = session_kind(s), .peer = s->mid_peer };
	v->permitted = trust_holds(j->pool, svc, session_kind(s), proof, &peer, v->why);
	return v;
}

/* A connection that may stay. */
static bool
is_in_use(const struct session_pool *pool, uint32_t group)
{
	const struct session *s;

	for (uint32_t pos = 0; (s = idtable_next(&pool->sessions, &pos)) != NULL;)
		if (s->conn != NULL && smcr_conn_group(s->conn) == group && s->state != SES_ABORTING &&
		    (s->raised & 1u << SEV_OPERATOR) == 0)
			return true;
	return false;
}

/* Some service of this kind permits the peer. */
static bool
name_permitted_by_any(const struct session_pool *pool, enum config_kind kind, const struct tls_proof *proof)
{
	LIST_EACH(const struct service, svc, &pool->services, node) {
		const struct config_service *cfg = &svc->settings->cfg;

		if (cfg->kind != kind || cfg->secure == CONFIG_SECURE_OFF)
			continue;
		if (cfg->peer_names[0] != '\0' && tls_proof_permitted(proof, cfg->peer_names, ""))
			return true;
		for (unsigned i = 0; cfg->peer_names[0] == '\0' && i < cfg->to_cnt; i++)
			if (tls_proof_permitted(proof, "", cfg->tls_name[0] != '\0' ? cfg->tls_name : cfg->to[i].host))
				return true;
	}
	return false;
}

static void
judge_groups(struct session_pool *pool)
{
	const struct tls_ctx *ctx = pool->tls_ctx;
	struct smcr_group_info g;
	char why[TLS_WHY_MAX];

	for (uint32_t pos = 0; smcr_group_next(pool->env->eng, &pos, &g);) {
		const enum config_kind kind = g.role == SMCR_CLIENT ? CONFIG_INGRESS : CONFIG_EGRESS;

		if (g.proof == NULL ||
		    ((ctx == NULL || tls_proof_holds(g.proof, ctx, kind == CONFIG_INGRESS, why)) &&
		        (name_permitted_by_any(pool, kind, g.proof) || is_in_use(pool, g.id))))
			continue;
		if (smcr_end_group(pool->env->eng, g.id, no_longer))
			pos = 0;
	}
}

void
trust_judge(struct session_pool *pool)
{
	struct judging j = { .pool = pool };
	struct session *s;

	for (uint32_t pos = 0; (s = idtable_next(&pool->sessions, &pos)) != NULL;) {
		/* Of the peer's last rendezvous: keys and CAs may have changed since this connection's own. */
		const struct tls_proof *last = s->conn != NULL ? smcr_proof(s->conn) : NULL;
		const struct tls_proof *proof = last != NULL ? last : s->proof;
		struct verdict *v = proof != NULL ? judge_session(&j, s, proof) : NULL;

		if (v != NULL && !v->permitted && session_close(s, no_longer))
			v->ended++;
	}
	for (unsigned i = 0; i < VERDICTS; i++)
		report_ended(pool, &j.verdicts[i]);
	judge_groups(pool);
}
