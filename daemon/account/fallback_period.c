/* Fallback periods; see fallback_period.h. */
#include "daemon/account/fallback_period.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/log/log_text.h"
#include "daemon/account/peer_name.h"
#include "daemon/state/service_state.h"
#include "wire/clc.h"

/* Of one peer; kept after the end of the period for its log limit. */
struct fallback_period {
	struct list_node node;
	struct sockaddr_storage peer; /* at an egress without port */
	bool on;
	uint32_t code; /* enum clc_diag, of either end */
	char reason[EVENT_REASON_MAX];
	char mpa[ADDR_STR_MAX]; /* reported MPA port; "": none */
	int64_t mpa_ns;
	struct lasting connections;
};

void
fallback_periods_init(struct fallback_periods *all)
{
	*all = (struct fallback_periods){ 0 };
	list_init(&all->list);
	(void)pthread_mutex_init(&all->lock, NULL);
}

void
fallback_periods_fini(struct fallback_periods *all)
{
	for (struct fallback_period *s; (s = LIST_POP(struct fallback_period, &all->list, node)) != NULL;)
		free(s);
	(void)pthread_mutex_destroy(&all->lock);
}

static struct sockaddr_storage
key_of(const struct service *svc, const union net_addr *peer)
{
	struct sockaddr_storage ss = net_addr_get(peer);

	if (svc->settings->cfg.kind == CONFIG_EGRESS)
		addr_set_port(&ss, 0);
	return ss;
}

static struct fallback_period *
find(const struct fallback_periods *all, const struct sockaddr_storage *peer)
{
	LIST_EACH(struct fallback_period, s, &all->list, node)
		if (addr_same_place(&s->peer, peer))
			return s;
	return NULL;
}

/* A new entry, not on; NULL: out of memory. */
static struct fallback_period *
add(struct fallback_periods *all, const struct sockaddr_storage *peer)
{
	struct fallback_period *s = NULL;

	if (all->known == FALLBACK_PERIODS_MAX) {
		s = LIST_POP(struct fallback_period, &all->list, node);
		if (s->on)
			atomic_fetch_sub_explicit(&all->cnt, 1, memory_order_relaxed);
		all->known--;
	} else {
		s = malloc(sizeof(*s));
	}
	if (s == NULL)
		return NULL;
	*s = (struct fallback_period){ .peer = *peer, .connections = LASTING_INIT };
	list_init(&s->node);
	list_push(&all->list, &s->node);
	all->known++;
	return s;
}

static struct event
event_of(const struct service *svc, const struct fallback_period *s, enum event_kind kind)
{
	const struct config_service *cfg = &svc->settings->cfg;
	const struct service *named = svc;
	struct event e = { .kind = kind };
	unsigned cnt;

	(void)snprintf(e.service, sizeof(e.service), "%s", cfg->name);
	if (cfg->kind == CONFIG_EGRESS) {
		named = peer_name_find(svc->pool, &s->peer, &cnt);
		addr_format(&s->peer, e.peer, sizeof(e.peer));
	} else {
		addr_format_port(&s->peer, e.peer, sizeof(e.peer));
	}
	(void)snprintf(e.host, sizeof(e.host), "%s", named != NULL ? peer_name_of(named, &s->peer) : "");
	return e;
}

static void
tell_mpa(struct service *svc, struct fallback_period *s, const struct smcr_diag *diag)
{
	struct event e = event_of(svc, s, EVENT_MPA_BLOCKED);
	const char *mine = diag->detail != NULL ? diag->detail : clc_diag_str(diag->local);

	log_text_mpa_peer(diag, e.mpa);
	(void)snprintf(e.reason, sizeof(e.reason), "%s",
	    diag->local != 0 ? mine : "the peer could not connect to it or rejected the answer: see its log");
	memcpy(s->mpa, e.mpa, sizeof(s->mpa));
	s->mpa_ns = svc->pool->env->now_ns;
	session_pool_report(svc->pool, &e);
}

static void
fallback_period_describe(const struct smcr_diag *diag, char buf[EVENT_REASON_MAX])
{
	const char *code = clc_diag_str(diag->local != 0 ? diag->local : diag->peer);

	if (diag->local == 0)
		(void)snprintf(buf, EVENT_REASON_MAX, "declined by the peer: %s", code);
	else
		(void)snprintf(buf, EVENT_REASON_MAX, "%s%s%s%s", code, diag->detail != NULL ? ": " : "",
		    diag->detail != NULL ? diag->detail : "", diag->held_off ? ": held off after failures" : "");
}

/* Reports a new period or a new reason. */
static void
report_fallback_period(struct service *svc, struct fallback_period *s, const struct smcr_diag *diag)
{
	struct event e;

	if (diag->mpa_port != 0 && s->mpa[0] == '\0')
		tell_mpa(svc, s, diag);
	e = event_of(svc, s, EVENT_FALLBACK_BEGINS);
	e.connections = s->connections.cnt;
	(void)snprintf(e.reason, sizeof(e.reason), "%s", s->reason);
	(void)snprintf(e.fallback, sizeof(e.fallback), "%s",
	    svc->settings->cfg.fallback == CONFIG_FALLBACK_REFUSE ? "refuse" : "tcp");
	session_pool_report(svc->pool, &e);
}

static void
note(struct service *svc, struct fallback_period *s, const struct smcr_diag *diag)
{
	uint32_t code = diag->local != 0 ? diag->local : diag->peer;
	bool begins = !s->on;

	if (begins) {
		s->on = true;
		s->mpa[0] = '\0';
		atomic_fetch_add_explicit(&svc->fallback_periods->cnt, 1, memory_order_relaxed);
	}
	/* Neither a hold-off after the failure nor the same code from the other end is a new reason. */
	bool other = begins || (code != CLC_DIAG_NO_ACTIVE_LINK && code != s->code);
	if (other) {
		s->code = code;
		fallback_period_describe(diag, s->reason);
	}
	if (lasting_add(&s->connections, svc->pool->env->now_ns, begins, other))
		report_fallback_period(svc, s, diag);
}

void
fallback_period_note(struct service *svc, const union net_addr *peer, const struct smcr_diag *diag)
{
	if (svc->settings == NULL) /* no longer configured */
		return;
	const struct sockaddr_storage key = key_of(svc, peer);
	(void)pthread_mutex_lock(&svc->fallback_periods->lock);
	struct fallback_period *s = find(svc->fallback_periods, &key);
	if (s == NULL)
		s = add(svc->fallback_periods, &key);
	if (s != NULL)
		note(svc, s, diag);
	(void)pthread_mutex_unlock(&svc->fallback_periods->lock);
}

static void
end(struct service *svc, struct fallback_period *s)
{
	int64_t now_ns = svc->pool->env->now_ns;
	struct event e;

	s->on = false;
	atomic_fetch_sub_explicit(&svc->fallback_periods->cnt, 1, memory_order_relaxed);
	if (!s->connections.told)
		return;
	if (s->mpa[0] != '\0') {
		e = event_of(svc, s, EVENT_MPA_OPEN);
		memcpy(e.mpa, s->mpa, sizeof(e.mpa));
		e.after_ms = (uint64_t)max_i64(now_ns - s->mpa_ns, 0) / NS_PER_MS;
		session_pool_report(svc->pool, &e);
	}
	e = event_of(svc, s, EVENT_FALLBACK_ENDS);
	e.connections = s->connections.cnt;
	e.after_ms = (uint64_t)lasting_age_ns(&s->connections, now_ns) / NS_PER_MS;
	session_pool_report(svc->pool, &e);
}

void
fallback_period_end(struct service *svc, const union net_addr *peer)
{
	if (svc->settings == NULL || atomic_load_explicit(&svc->fallback_periods->cnt, memory_order_relaxed) == 0)
		return;
	const struct sockaddr_storage key = key_of(svc, peer);
	(void)pthread_mutex_lock(&svc->fallback_periods->lock);
	struct fallback_period *s = find(svc->fallback_periods, &key);
	if (s != NULL && s->on)
		end(svc, s);
	(void)pthread_mutex_unlock(&svc->fallback_periods->lock);
}
