/* An egress for many destinations (to = "requested"): the peer's Proposal names the server. It is judged before anything is
 * connected, on the way to SMC-R, to TCP and over a link alike. See session.h and doc/transparent.md. */
#include "daemon/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/device/devices.h"

static struct sockaddr_storage
dest_address(const struct clc_dest *d)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	uint8_t v6[16] = { [10] = 0xff, [11] = 0xff };

	if (d->kind == CLC_DEST_NONE)
		return ss;
	memcpy(d->kind == CLC_DEST_V4 ? v6 + 12 : v6, d->addr, d->kind == CLC_DEST_V4 ? 4 : sizeof(v6));
	addr_from_v6(v6, d->port, &ss);
	return ss;
}

/* A soft iWARP device of some worker may listen there. */
static bool
is_mpa_port(const struct session_pool *pool, const struct sockaddr_storage *to)
{
	uint8_t addr[16];
	bool at_device = false, in_range = false;
	struct rnic_dev *dev;

	addr_to_v6(to, addr);
	for (unsigned i = 0; (dev = devices_get(pool->devices, i)) != NULL; i++)
		at_device = at_device || memcmp(rnic_query(dev).gid.b, addr, sizeof(addr)) == 0;
	for (unsigned i = 0; i < pool->cfg->device_cnt; i++) {
		const struct config_device *d = &pool->cfg->devices[i];

		in_range = in_range ||
		    (d->type == CONFIG_DEVICE_SIW && addr_port(to) >= d->siw.port_min &&
		        addr_port(to) <= d->siw.port_max);
	}
	return at_device && in_range;
}

static const char *
requested_objection(const struct session *s, const struct sockaddr_storage *to)
{
	const struct config_service *cfg = &s->settings->cfg;

	if (to->ss_family == AF_UNSPEC)
		return "the peer names no destination";
	const char *why = config_dest_objection(cfg->to_allow, cfg->to_allow_cnt, to);
	if (why == NULL && (config_listens_on(s->pool->cfg, to) || is_mpa_port(s->pool, to)))
		why = "this daemon itself listens there";
	return why;
}

bool
requested_settle(struct session *s)
{
	const struct clc_dest *dest = &s->setup->in.tlvs.dest;

	if (s->settings->cfg.to_word != CONFIG_TO_REQUESTED)
		return true;
	const struct sockaddr_storage to = dest_address(dest);
	const char *why = requested_objection(s, &to);
	if (why != NULL && s->state == SES_RENDEZVOUS && !session_opens(s)) {
		s->why_detail = why;
		smcr_refuse_dest(s->conn); /* the peer is notified; requested_refused() follows */
		return false;
	}
	if (why != NULL) { /* over a link it comes again by a rendezvous */
		session_fail(s, SEV_DEST, why, 0);
		return false;
	}
	s->setup->pick = (struct endpoint_pick){ .addr = to };
	if (session_opens(s))
		return true; /* its ticket is that of an earlier Proposal */
	s->settings->svc->ctr.dest_taken++;
	if (s->conn != NULL)
		smcr_take_dest(
		    s->conn, dest_tickets_get(&s->pool->place.admissions->dest_tickets, s->settings->ticket, dest));
	return true;
}

void
requested_refused(struct session *s)
{
	const bool ingress = session_kind(s) == CONFIG_INGRESS;
	const struct sockaddr_storage to = dest_address(&s->setup->in.tlvs.dest);
	const char *why = s->why_detail != NULL ? s->why_detail
	    : ingress                           ? "the peer wants a destination: to = 'requested' there"
	                                        : s->diag.detail;
	char peer[ADDR_STR_MAX], dest[ADDR_STR_MAX] = "none", reason[256];

	if (to.ss_family != AF_UNSPEC)
		addr_format_port(&to, dest, sizeof(dest));
	s->settings->svc->ctr.dest_refused++;
	log_limited(&s->pool->lim_refused, s->pool->env->now_ns, LOG_LVL_NOTICE,
	    "destination refused: id=%llu service=%s peer=%s destination=%s reason=\"%s\"", session_number(s),
	    s->settings->cfg.name, net_addr_str(&s->mid_peer, peer, sizeof(peer)), dest, why);
	if (ingress) {
		session_fail(s, SEV_DEST, why, 0);
		return;
	}
	(void)snprintf(reason, sizeof(reason), "it wants %s: %s", dest, why);
	outage_unknown_peer(s->settings->svc, &s->mid_peer, reason);
	clc_out_take(&s->setup->out, s->conn);
	(void)clc_out_flush(&s->setup->out, &s->mid);
	session_fail(s, SEV_ENGINE_OK, "destination refused", 0); /* FIN: a reset could overtake the Decline */
}
