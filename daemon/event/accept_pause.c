/* Reports of pauses of accept(); see accept_pause.h. */
#include "daemon/event/accept_pause.h"

#include <stdio.h>
#include <string.h>

void
accept_pauses_init(struct accept_pauses *all, struct event_history *news)
{
	*all = (struct accept_pauses){ .news = news, .failures = LASTING_INIT };
	(void)pthread_mutex_init(&all->lock, NULL);
}

void
accept_pauses_fini(struct accept_pauses *all)
{
	(void)pthread_mutex_destroy(&all->lock);
}

static void
report_pause(const struct accept_pauses *all, enum event_kind kind, const struct pause_place *at)
{
	struct event e = { .kind = kind, .failures = all->failures.cnt };

	(void)snprintf(e.service, sizeof(e.service), "%s", at->service);
	if (kind == EVENT_ACCEPTING_PAUSED)
		(void)snprintf(e.reason, sizeof(e.reason), "%s", strerror(all->err));
	else
		e.after_ms = (uint64_t)lasting_age_ns(&all->failures, at->now_ns) / 1000000;
	event_report(all->news, at->now_ns, at->worker, &e);
}

void
accept_pauses_failed(struct accept_pauses *all, struct accept_pause *me, const struct pause_place *at, int err)
{
	(void)pthread_mutex_lock(&all->lock);
	bool begins = all->paused == 0, other = err != all->err;
	all->paused += !me->on;
	me->on = true;
	all->err = err;
	if (lasting_add(&all->failures, at->now_ns, begins, other))
		report_pause(all, EVENT_ACCEPTING_PAUSED, at);
	(void)pthread_mutex_unlock(&all->lock);
}

void
accept_pauses_over(struct accept_pauses *all, struct accept_pause *me, const struct pause_place *at)
{
	if (!me->on)
		return;
	me->on = false;
	(void)pthread_mutex_lock(&all->lock);
	if (--all->paused == 0 && all->failures.told && at != NULL)
		report_pause(all, EVENT_ACCEPTING_GOES_ON, at);
	(void)pthread_mutex_unlock(&all->lock);
}
