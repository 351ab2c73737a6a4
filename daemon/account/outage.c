/* Outages; see outage.h. */
#include "daemon/account/outage.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/net/net.h"
#include "daemon/account/peer_name.h"
#include "daemon/state/service_state.h"

void
outage_init(struct outage *o)
{
	*o = (struct outage){ .limit = TELL_LIMIT };
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
		[OUTAGE_SETUP] = "the set-up failed",
	};
	const char *more = o->err != 0 ? strerror(o->err) : o->why;

	(void)snprintf(buf, cap, "%s%s%s", words[o->kind], more[0] != '\0' ? ": " : "", more);
}

static struct event
outage_event_of(const struct service *svc, bool begins, const union net_addr *far)
{
	const bool ingress = svc->settings->cfg.kind == CONFIG_INGRESS;
	struct sockaddr_storage there;
	struct event e = {
		.kind = ingress ? (begins ? EVENT_PEER_UNREACHABLE : EVENT_PEER_REACHABLE)
		                : (begins ? EVENT_SERVER_UNREACHABLE : EVENT_SERVER_REACHABLE),
		.connections = svc->outage->failed,
	};

	(void)snprintf(e.service, sizeof(e.service), "%s", svc->settings->cfg.name);
	net_addr_str(far, ingress ? e.peer : e.server, ADDR_STR_MAX);
	net_addr_get(far, &there);
	(void)snprintf(e.host, sizeof(e.host), "%s", peer_name_of(svc, &there));
	return e;
}

/* Not negative: the outage may have begun in another worker's turn, which may be later than this one. */
static int64_t
age_of(const struct service *svc)
{
	return max_i64(svc->pool->env->now_ns - svc->outage->since_ns, 0);
}

/* Fills in the event; false: suppressed by the limit. */
static bool
may_begin(struct service *svc, const union net_addr *far, struct event *e)
{
	struct outage *o = svc->outage;
	uint64_t left_out; /* unused: the event has the number of connections */

	o->told_ns = svc->pool->env->now_ns;
	if (!log_limit_take(&o->limit, o->told_ns, &left_out))
		return false;
	o->told = true;
	*e = outage_event_of(svc, true, far);
	outage_describe(o, e->reason, sizeof(e->reason));
	return true;
}

void
outage_failed(struct service *svc, enum outage_kind kind, const union net_addr *far, const char *why, int err)
{
	struct outage *o = svc->outage;
	int64_t now_ns = svc->pool->env->now_ns;
	struct event e;

	if (svc->settings == NULL) /* no longer configured */
		return;
	(void)pthread_mutex_lock(&o->lock);
	bool other = o->kind != kind || o->err != err || strcmp(o->why, why) != 0;
	if (o->kind == OUTAGE_NONE) {
		o->since_ns = now_ns;
		o->failed = 0;
		o->told = false;
	}
	o->kind = kind;
	o->err = err;
	o->why = why;
	o->failed++;
	atomic_store_explicit(&o->is, true, memory_order_relaxed);
	/* Under the lock, so that the end is not reported first. */
	if ((other || now_ns - o->told_ns >= TELL_AGAIN_NS) && may_begin(svc, far, &e))
		session_pool_report(svc->pool, &e);
	(void)pthread_mutex_unlock(&o->lock);
}

static void
set_over(struct outage *o)
{
	o->kind = OUTAGE_NONE;
	atomic_store_explicit(&o->is, false, memory_order_relaxed);
}

void
outage_forget(struct service *svc)
{
	(void)pthread_mutex_lock(&svc->outage->lock);
	set_over(svc->outage);
	(void)pthread_mutex_unlock(&svc->outage->lock);
}

void
outage_end(struct service *svc, unsigned kinds, const union net_addr *far)
{
	struct outage *o = svc->outage;

	if (!atomic_load_explicit(&o->is, memory_order_relaxed))
		return;
	(void)pthread_mutex_lock(&o->lock);
	bool ends = o->kind != OUTAGE_NONE && (kinds & 1u << o->kind) != 0;
	if (ends)
		set_over(o);
	if (ends && o->told && svc->settings != NULL) {
		struct event e = outage_event_of(svc, false, far);

		e.after_ms = (uint64_t)age_of(svc) / NS_PER_MS;
		session_pool_report(svc->pool, &e);
	}
	(void)pthread_mutex_unlock(&o->lock);
}

void
outage_look(const struct service *svc, struct outage_info *out)
{
	struct outage *o = svc->outage;

	*out = (struct outage_info){ .text = "" };
	(void)pthread_mutex_lock(&o->lock);
	if (o->kind != OUTAGE_NONE) {
		outage_describe(o, out->text, sizeof(out->text));
		out->failed = o->failed;
		out->age_ns = age_of(svc);
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
