/* Connections of an ingress without targets (to = "original"): where the program wanted to go, the gateway that leads
 * there, and whether that one goes there. No byte passes before it has said so: another one, or an earlier version,
 * would connect to its own server. See session.h. */
#include "daemon/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"

#define PROOF_PORT 9

static const char not_taken[] =
    "the peer does not take destinations: it must be an smcrd of this version, with to = 'requested'";

/* The destination of an accepted connection; false: nothing has captured it. */
static bool
find_destination(const struct service *svc, int fd, struct sockaddr_storage *to)
{
	struct sockaddr_storage at = net_local_addr(fd);
	union net_addr addr;

	/* A dual-stack listener has IPv4 connections as well. */
	net_addr_set(&addr, &at);
	*to = at = net_addr_get(&addr);
	if (svc->settings->cfg.capture == CONFIG_CAPTURE_TPROXY)
		return !config_leads_to(to, &svc->settings->cfg.listen);
	return net_original_dest(fd, at.ss_family, to) && !addr_same_place(to, &at);
}

/* Why no peer may be asked for this destination; NULL: it may. */
static const char *
way_objection(const struct session_pool *pool, const struct sockaddr_storage *to)
{
	if (config_is_ours(pool->cfg, to) || config_leads_to(to, &pool->cfg->metrics.listen))
		return "its destination is a listening socket of this daemon";
	if (addr_is_any(to) || addr_is_multicast(to))
		return "no server can have its destination";
	return addr_is_loopback(to) ? "its destination is a loopback address, which is another host's elsewhere" : NULL;
}

/* smcrd-run's destinations, which no host has: RFC 7600's dummy address, and one of the discard prefix (RFC 6666). */
static bool
is_proof(const struct sockaddr_storage *to)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, [15] = 8 }, v6[16] = { 1, [15] = 8 };
	uint8_t addr[16];

	addr_to_v6(to, addr);
	return addr_port(to) == PROOF_PORT &&
	    (memcmp(addr, v4, sizeof(addr)) == 0 || memcmp(addr, v6, sizeof(addr)) == 0);
}

/* The service's name proves that rules lead connections here. */
static void
answer_proof(const struct service *svc, int fd)
{
	char text[CONFIG_NAME_MAX + 8];
	const int len = snprintf(text, sizeof(text), "smcrd %s\n", svc->settings->cfg.name);

	/* The first bytes of a connection always fit. */
	(void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
	close(fd);
}

struct way *
way_find(struct service *svc, int fd, char why[WAY_WHY_MAX], uint64_t **counter)
{
	struct service_info *ctr = &svc->ctr;
	struct sockaddr_storage to, peer;
	char text[ADDR_STR_MAX];
	const char *words;
	struct way *way;

	*counter = &ctr->not_captured;
	if (!find_destination(svc, fd, &to)) {
		(void)snprintf(why, WAY_WHY_MAX, "it came to the port itself: no rule has captured it");
		return NULL;
	}
	if (is_proof(&to)) {
		answer_proof(svc, fd);
		*counter = NULL;
		return NULL;
	}
	addr_format_port(&to, text, sizeof(text));
	*counter = &ctr->dest_own;
	if ((words = way_objection(svc->pool, &to)) != NULL) {
		(void)snprintf(why, WAY_WHY_MAX, "%s: %s", words, text);
		return NULL;
	}
	*counter = &ctr->no_via;
	if (config_via_find(&svc->settings->cfg, &to, &peer) == NULL) {
		(void)snprintf(why, WAY_WHY_MAX, "no via for %s", text);
		return NULL;
	}
	*counter = &ctr->refused_max;
	way = malloc(sizeof(*way));
	if (way != NULL)
		way->peer = far_end_get(&svc->admission->far_ends, &peer);
	if (way != NULL && way->peer != NULL) {
		net_addr_set(&way->to, &to);
		return way;
	}
	(void)snprintf(why, WAY_WHY_MAX, way == NULL ? "out of memory" : "%u peers have connections", FAR_ENDS_MAX);
	free(way);
	return NULL;
}

void
way_free(struct service *svc, struct way *way)
{
	if (way != NULL)
		far_end_put(&svc->admission->far_ends, way->peer);
	free(way);
}

const char *
way_text(const struct session *s, char buf[WAY_TEXT_MAX])
{
	char to[ADDR_STR_MAX];

	buf[0] = '\0';
	if (s->way != NULL)
		(void)snprintf(buf, WAY_TEXT_MAX, " destination=%s", net_addr_str(&s->way->to, to, sizeof(to)));
	return buf;
}

void
way_describe(const struct session *s, struct smcr_open *o)
{
	if (s->way == NULL)
		return;
	const struct sockaddr_storage to = net_addr_get(&s->way->to);
	o->dest = (struct clc_dest){ .kind = to.ss_family == AF_INET ? CLC_DEST_V4 : CLC_DEST_V6,
		.port = addr_port(&to) };
	if (to.ss_family == AF_INET)
		memcpy(o->dest.addr, &s->way->to.in4.sin_addr, sizeof(s->way->to.in4.sin_addr));
	else
		addr_to_v6(&to, o->dest.addr);
}

bool
way_is_taken(struct session *s)
{
	struct service *svc = s->settings->svc;
	char to[ADDR_STR_MAX], peer[ADDR_STR_MAX];

	if (s->way == NULL || (s->flags & SF_DEST_TAKEN) != 0)
		return true;
	if (s->conn != NULL && smcr_dest_is_used(s->conn)) {
		s->flags |= SF_DEST_TAKEN;
		svc->ctr.dest_taken++;
		outage_end(svc, session_outage(s), 1 << OUTAGE_SETUP, &s->mid_peer);
		return true;
	}
	if (s->conn != NULL && smcr_dest_is_refused(s->conn)) {
		svc->ctr.dest_refused++;
		log_limited(&s->pool->lim_refused, s->pool->env->now_ns, LOG_LVL_NOTICE,
		    "peer refuses the destination: id=%llu service=%s peer=%s destination=%s", session_number(s),
		    s->settings->cfg.name, net_addr_str(&s->mid_peer, peer, sizeof(peer)),
		    net_addr_str(&s->way->to, to, sizeof(to)));
		session_fail(s, SEV_DEST, "the peer refuses the destination", 0);
		return false;
	}
	svc->ctr.dest_unused++;
	svc->ctr.refused_connect++;
	outage_failed(svc, session_outage(s), OUTAGE_SETUP, &s->mid_peer, not_taken, 0);
	session_fail(s, SEV_DEST, not_taken, 0);
	return false;
}
