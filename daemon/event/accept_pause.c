/* Reports of pauses of accept(); see accept_pause.h. */
#include "daemon/event/accept_pause.h"

#include <stdio.h>
#include <string.h>

#include "base/minmax.h"

void
accept_pauses_init(struct accept_pauses *all, struct event_history *news)
{
	*all = (struct accept_pauses){ .news = news, .limit = TELL_LIMIT };
	(void)pthread_mutex_init(&all->lock, NULL);
}

void
accept_pauses_fini(struct accept_pauses *all)
{
	(void)pthread_mutex_destroy(&all->lock);
}

static struct event
accept_pause_event_of(const struct accept_pauses *all, enum event_kind kind, const struct pause_place *at)
{
	struct event e = { .kind = kind, .failures = all->failures };

	(void)snprintf(e.service, sizeof(e.service), "%s", at->service);
	return e;
}

/* Rate limited. */
static void
pause_report_start(struct accept_pauses *all, const struct pause_place *at)
{
	struct event e = accept_pause_event_of(all, EVENT_ACCEPTING_PAUSED, at);
	uint64_t left_out; /* not reported: the event has the number of failures */

	all->reported_ns = at->now_ns;
	if (!log_limit_take(&all->limit, at->now_ns, &left_out))
		return;
	all->reported = true;
	(void)snprintf(e.reason, sizeof(e.reason), "%s", strerror(all->err));
	event_report(all->news, at->now_ns, at->worker, &e);
}

void
accept_pauses_failed(struct accept_pauses *all, struct accept_pause *me, const struct pause_place *at, int err)
{
	(void)pthread_mutex_lock(&all->lock);
	bool begins = all->paused == 0, other = begins || err != all->err;
	if (begins) {
		all->since_ns = at->now_ns;
		all->failures = 0;
		all->reported = false;
	}
	all->paused += !me->on;
	me->on = true;
	all->err = err;
	all->failures++;
	/* Under the lock, so that the end is not reported first. */
	if (other || at->now_ns - all->reported_ns >= TELL_AGAIN_NS)
		pause_report_start(all, at);
	(void)pthread_mutex_unlock(&all->lock);
}

void
accept_pauses_over(struct accept_pauses *all, struct accept_pause *me, const struct pause_place *at)
{
	if (!me->on)
		return;
	me->on = false;
	(void)pthread_mutex_lock(&all->lock);
	if (--all->paused == 0 && all->reported) {
		struct event e = accept_pause_event_of(all, EVENT_ACCEPTING_GOES_ON, at);

		/* The pause may have begun in the turn of another thread, later than this turn. */
		e.after_ms = (uint64_t)max_i64(at->now_ns - all->since_ns, 0) / 1000000;
		event_report(all->news, at->now_ns, at->worker, &e);
	}
	(void)pthread_mutex_unlock(&all->lock);
}

void
accept_pauses_forget(struct accept_pauses *all, struct accept_pause *me)
{
	if (!me->on)
		return;
	me->on = false;
	(void)pthread_mutex_lock(&all->lock);
	all->paused--;
	(void)pthread_mutex_unlock(&all->lock);
}
