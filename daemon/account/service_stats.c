/* Statistics of a service's sessions; see service_stats.h. */
#include "daemon/account/service_stats.h"

#include <stdlib.h>

#include "daemon/state/session_state.h"

static struct service_stats *
of(const struct session *s)
{
	return &s->settings->svc->stats;
}

static struct service_reasons *
reasons_of(const struct session *s)
{
	struct service_stats *f = of(s);

	if (f->reasons == NULL)
		f->reasons = calloc(1, sizeof(*f->reasons));
	return f->reasons;
}

void
service_stats_travels(struct session *s, enum session_mode mode)
{
	if (s->counted && s->mode == mode)
		return;
	if (s->counted)
		of(s)->modes[s->mode]--;
	if (s->counted && s->mode == SESSION_SETUP)
		histogram_add_time(&of(s)->setup, s->pool->env->now_ns - s->born_ns);
	of(s)->modes[mode]++;
	if (mode == SESSION_SMCR && s->conn != NULL)
		s->settings->svc->newest_group = smcr_conn_group(s->conn);
	s->counted = true;
	s->mode = mode;
}

void
service_stats_connected(struct session *s)
{
	/* connect_timeout runs from the start of each attempt. */
	int64_t began_ns = s->setup->dial_until_ns - s->settings->cfg.connect_ms * NS_PER_MS;

	histogram_add_time(&of(s)->connect, s->pool->env->now_ns - began_ns);
}

void
service_stats_no_smc(struct session *s, uint32_t local, uint32_t peer)
{
	struct service_reasons *of_both[] = { &s->pool->fallbacks, local != 0 || peer != 0 ? reasons_of(s) : NULL };

	for (unsigned i = 0; i < 2; i++) {
		if (of_both[i] != NULL && local != 0)
			tally_count(&of_both[i]->local, local);
		if (of_both[i] != NULL && peer != 0)
			tally_count(&of_both[i]->peer, peer);
	}
}

void
service_stats_ended(struct session *s, bool reset)
{
	if (s->counted)
		of(s)->modes[s->mode]--;
	s->counted = false;
	if ((s->flags & SF_PROBE) != 0 || session_comes_again(s)) /* no client's connection */
		return;
	struct service_reasons *r = reset ? reasons_of(s) : NULL;
	histogram_add_time(&of(s)->life, s->pool->env->now_ns - s->born_ns);
	if (r != NULL)
		tally_count(&r->reset, s->cause);
}
