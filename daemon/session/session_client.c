/* The program's client between the gateways (doc/transparent.md): an ingress forwards its address, and an egress connects
 * to the server in its name. No connection that lacks a client goes on by the gateway's own address, which the server may
 * trust. See session.h. */
#include "daemon/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/leg/proxy_header.h"

static struct clc_client
forwarded(const union net_addr *from)
{
	struct clc_client c = { .kind = CLC_CLIENT_UNIX };
	struct sockaddr_storage ss;

	if (from->sa.sa_family == AF_UNIX) {
		c.uid = from->un.uid;
		return c;
	}
	ss = net_addr_get(from);
	c.port = addr_port(&ss);
	if (ss.ss_family == AF_INET) {
		c.kind = CLC_CLIENT_V4;
		memcpy(c.addr, &from->in4.sin_addr, sizeof(from->in4.sin_addr));
	} else {
		c.kind = CLC_CLIENT_V6;
		addr_to_v6(&ss, c.addr);
	}
	return c;
}

void
client_describe(const struct session *s, struct smcr_open *o)
{
	o->takes_client = s->settings->cfg.client_address != CONFIG_CLIENT_OFF;
	if (s->settings->cfg.forward_client != CONFIG_FORWARD_OFF)
		o->client = forwarded(&s->app_peer);
}

bool
client_is_passed_on(struct session *s)
{
	const enum config_forward forward = s->settings->cfg.forward_client;

	if (forward == CONFIG_FORWARD_OFF || (s->conn != NULL && smcr_client_is_used(s->conn)))
		return true;
	s->settings->svc->ctr.clients_unused++;
	if (forward == CONFIG_FORWARD_ON)
		return true;
	session_fail(s, SEV_CLIENT, "the peer does not pass client addresses on", 0);
	return false;
}

static void
as_address(const struct clc_client *c, union net_addr *out)
{
	struct sockaddr_storage ss;

	*out = (union net_addr){ .sa.sa_family = AF_UNSPEC };
	switch (c->kind) {
	case CLC_CLIENT_NONE:
		break;
	case CLC_CLIENT_UNIX:
		out->un = (struct net_unix){ .family = AF_UNIX, .uid = c->uid };
		break;
	case CLC_CLIENT_V4:
		out->in4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(c->port) };
		memcpy(&out->in4.sin_addr, c->addr, sizeof(out->in4.sin_addr));
		break;
	case CLC_CLIENT_V6:
		addr_from_v6(c->addr, c->port, &ss);
		net_addr_set(out, &ss);
		break;
	}
}

/* The address itself is in clients, not only a network of it. */
static bool
client_is_listed(const struct config_service *cfg, const struct sockaddr_storage *ss)
{
	uint8_t addr[16];

	addr_to_v6(ss, addr);
	for (unsigned i = 0; i < cfg->clients_cnt; i++)
		if (cfg->clients[i].prefix_len == 128 && addr_same_prefix(cfg->clients[i].addr, addr, 128))
			return true;
	return false;
}

/* Why this client cannot be the server's; NULL: it can. */
static const char *
objection(const struct session *s, const struct clc_client *c)
{
	const struct config_service *cfg = &s->settings->cfg;
	const bool connects = cfg->client_address == CONFIG_CLIENT_CONNECT;

	if (c->kind == CLC_CLIENT_NONE)
		return "the peer names no client, and client_address is set here";
	if (c->kind == CLC_CLIENT_UNIX && connects)
		return cfg->client_fallback ? NULL
		                            : "the peer's client is on a UNIX socket, so has no address to connect by";
	if (c->kind == CLC_CLIENT_UNIX)
		return cfg->clients_cnt > 0 ? "the peer's client is on a UNIX socket, so not in clients" : NULL;
	const struct sockaddr_storage ss = net_addr_get(s->client);
	if (addr_is_any(&ss) || addr_is_multicast(&ss))
		return "the peer names a client with an address that none can have";
	if (!net_allowed(cfg->clients, cfg->clients_cnt, &ss))
		return "the peer names a client that is not in clients";
	/* No network includes them: a server may trust its own host. */
	if (connects && !client_is_listed(cfg, &ss) && (config_addr_is_special(&ss) || config_addr_is_ours(&ss)))
		return "the peer names a client with a special address or one of this host, which clients does not list by itself";
	return NULL;
}

static void
client_refuse(struct session *s, const char *why)
{
	char client[ADDR_STR_MAX], peer[ADDR_STR_MAX];

	if (!session_opens(s)) { /* else it comes again by a rendezvous, which is counted and logged */
		s->settings->svc->ctr.refused_allow++;
		log_limited(&s->pool->lim_refused, s->pool->env->now_ns, LOG_LVL_NOTICE,
		    "client refused: id=%llu service=%s peer=%s client=%s reason=\"%s\"", session_number(s),
		    s->settings->cfg.name, net_addr_str(&s->mid_peer, peer, sizeof(peer)),
		    net_addr_str(s->client, client, sizeof(client)), why);
		outage_unknown_peer(s->settings->svc, &s->mid_peer, why);
	}
	session_fail(s, SEV_CLIENT, why, 0);
}

bool
client_settle(struct session *s)
{
	const struct config_service *cfg = &s->settings->cfg;
	const struct clc_client *c = &s->setup->in.tlvs.client;

	if ((s->flags & SF_PROBE) != 0)
		return true;
	if (cfg->client_address == CONFIG_CLIENT_OFF) {
		/* An OPEN has one because it was used here, before a reload. The Accept of a rendezvous says otherwise. */
		const bool relied = session_opens(s) && c->kind != CLC_CLIENT_NONE;

		if (relied)
			session_fail(s, SEV_CLIENT, "clients are no longer used here", 0);
		return !relied;
	}
	if (s->client == NULL)
		s->client = malloc(sizeof(*s->client));
	if (s->client == NULL) {
		session_fail(s, SEV_CLIENT, "out of memory", 0);
		return false;
	}
	as_address(c, s->client);
	const char *why = objection(s, c);
	if (why != NULL)
		client_refuse(s, why);
	return why == NULL;
}

bool
client_is_source(struct session *s, const struct sockaddr_storage *to)
{
	const struct config_service *cfg = &s->settings->cfg;
	const bool connects = cfg->client_address == CONFIG_CLIENT_CONNECT && (s->flags & SF_PROBE) == 0,
	           can = connects && s->client->sa.sa_family == to->ss_family;

	if (connects && !can && !cfg->client_fallback)
		return false;
	s->setup->dial.source = (struct net_source){ .addr = can ? s->client : NULL, .mark = cfg->socket_mark };
	return true;
}

bool
client_ends_dial(struct session *s, int err)
{
	const struct dial *d = &s->setup->dial;
	char client[ADDR_STR_MAX], why[sizeof(s->settings->svc->outage->why)];

	if (d->addr == NULL && err == EAFNOSUPPORT) {
		client_refuse(s, "the peer names a client of another family than the server's address");
	} else if (d->addr == NULL || d->source.addr == NULL) {
		return false;
	} else if (err == EADDRNOTAVAIL || err == EADDRINUSE) {
		s->settings->svc->ctr.client_bind_failed += !session_opens(s);
		session_fail(s, SEV_CLIENT, "no connection is possible by the client's address", err);
	} else if (err == ETIMEDOUT) {
		const struct sockaddr_storage ss = net_addr_get(d->source.addr);

		(void)snprintf(why, sizeof(why),
		    "the server's answers to %s do not come back here: see smcrctl routes %s",
		    addr_format(&ss, client, sizeof(client)), s->settings->cfg.name);
		/* Of servers that peers choose, those of other hosts may be down: no outage of the service. */
		if (s->settings->cfg.to_word == CONFIG_TO_TARGETS || config_addr_is_ours(d->addr))
			outage_failed(s->settings->svc, session_outage(s), OUTAGE_ANSWERS, &s->app_peer, why, 0);
		s->settings->svc->ctr.refused_connect += !session_opens(s);
		session_fail(
		    s, SEV_CLIENT, "the server's answers to the client do not come back here: see smcrctl routes", 0);
	} else {
		return false;
	}
	return true;
}

bool
client_announce(struct session *s)
{
	const enum config_proxy version = s->settings->cfg.client_address == CONFIG_CLIENT_PROXY_V1 ? CONFIG_PROXY_V1
	    : s->settings->cfg.client_address == CONFIG_CLIENT_PROXY_V2                             ? CONFIG_PROXY_V2
	                                                                                            : CONFIG_PROXY_OFF;
	uint8_t buf[PROXY_HEADER_MAX];
	union net_addr to;

	if (version == CONFIG_PROXY_OFF || (s->flags & SF_PROBE) != 0)
		return true;
	net_addr_set(&to, &s->settings->cfg.listen);
	struct iovec iov = { buf, proxy_header(version, s->client, &to, buf) };
	/* The first bytes of a connection always fit. */
	if (leg_write(&s->app, &iov, 1, false) == (ssize_t)iov.iov_len)
		return true;
	session_raise(s, SEV_APP_RESET);
	return false;
}
