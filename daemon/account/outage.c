/* Outages; see outage.h. */
#include "daemon/account/outage.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/net/net.h"
#include "daemon/account/peer_name.h"
#include "daemon/state/service_state.h"

void
outage_init(struct outage *o)
{
	*o = (struct outage){ .failed = LASTING_INIT };
	(void)pthread_mutex_init(&o->lock, NULL);
}

void
outage_fini(struct outage *o)
{
	(void)pthread_mutex_destroy(&o->lock);
}

static void
outage_describe(const struct outage *o, char *buf, size_t cap)
{
	static const char *const words[] = {
		[OUTAGE_NONE] = "",
		[OUTAGE_CONNECT] = "cannot be connected",
		[OUTAGE_RESET] =
		    "closed the connection during set-up; its server may be down, or refuse this host: see its log",
		[OUTAGE_NO_SMC] = "is no SMC-R peer",
		[OUTAGE_TLS] = "no TLS",
		[OUTAGE_SETUP] = "the set-up failed",
		[OUTAGE_ANSWERS] = "",
	};
	const char *more = o->err != 0 ? strerror(o->err) : o->why;

	(void)snprintf(
	    buf, cap, "%s%s%s", words[o->kind], words[o->kind][0] != '\0' && more[0] != '\0' ? ": " : "", more);
}

static void
outage_report(struct service *svc, const struct outage *o, bool begins, const union net_addr *far)
{
	const bool ingress = svc->settings->cfg.kind == CONFIG_INGRESS;
	const struct sockaddr_storage there = net_addr_get(far);
	struct event e = {
		.kind = ingress ? (begins ? EVENT_PEER_UNREACHABLE : EVENT_PEER_REACHABLE)
		                : (begins ? EVENT_SERVER_UNREACHABLE : EVENT_SERVER_REACHABLE),
		.connections = o->failed.cnt,
	};

	(void)snprintf(e.service, sizeof(e.service), "%s", svc->settings->cfg.name);
	net_addr_str(far, ingress ? e.peer : e.server, ADDR_STR_MAX);
	(void)snprintf(e.host, sizeof(e.host), "%s", peer_name_of(svc, &there));
	if (begins)
		outage_describe(o, e.reason, sizeof(e.reason));
	else
		e.after_ms = (uint64_t)lasting_age_ns(&o->failed, svc->pool->env->now_ns) / NS_PER_MS;
	session_pool_report(svc->pool, &e);
}

void
outage_failed(
    struct service *svc, struct outage *o, enum outage_kind kind, const union net_addr *far, const char *why, int err)
{
	if (svc->settings == NULL) /* no longer configured */
		return;
	(void)pthread_mutex_lock(&o->lock);
	/* The words of OUTAGE_ANSWERS have the client, another one each time. */
	bool begins = o->kind == OUTAGE_NONE,
	     other = o->kind != kind || o->err != err || (kind != OUTAGE_ANSWERS && strcmp(o->why, why) != 0);
	o->kind = kind;
	o->err = err;
	(void)snprintf(o->why, sizeof(o->why), "%s", why);
	if (lasting_add(&o->failed, svc->pool->env->now_ns, begins, other))
		outage_report(svc, o, true, far);
	(void)pthread_mutex_unlock(&o->lock);
}

void
outage_forget(struct outage *o)
{
	(void)pthread_mutex_lock(&o->lock);
	o->kind = OUTAGE_NONE;
	(void)pthread_mutex_unlock(&o->lock);
}

void
outage_end(struct service *svc, struct outage *o, unsigned kinds, const union net_addr *far)
{
	if (atomic_load_explicit(&o->kind, memory_order_relaxed) == OUTAGE_NONE)
		return;
	(void)pthread_mutex_lock(&o->lock);
	bool ends = o->kind != OUTAGE_NONE && (kinds & 1u << o->kind) != 0;
	if (ends)
		o->kind = OUTAGE_NONE;
	if (ends && o->failed.told && svc->settings != NULL)
		outage_report(svc, o, false, far);
	(void)pthread_mutex_unlock(&o->lock);
}

void
outage_look(const struct service *svc, struct outage *o, struct outage_info *out)
{
	*out = (struct outage_info){ .text = "" };
	(void)pthread_mutex_lock(&o->lock);
	if (o->kind != OUTAGE_NONE) {
		outage_describe(o, out->text, sizeof(out->text));
		out->failed = o->failed.cnt;
		out->age_ns = lasting_age_ns(&o->failed, svc->pool->env->now_ns);
	}
	(void)pthread_mutex_unlock(&o->lock);
}

void
outage_unknown_peer(struct service *svc, const union net_addr *from, const char *why)
{
	struct event e = { .kind = EVENT_UNKNOWN_PEER };

	if (svc->settings == NULL)
		return;
	(void)snprintf(e.service, sizeof(e.service), "%s", svc->settings->cfg.name);
	(void)snprintf(e.reason, sizeof(e.reason), "%s", why);
	net_addr_str(from, e.peer, sizeof(e.peer));
	session_pool_report(svc->pool, &e);
}
