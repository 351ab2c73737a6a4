/* State changes, scheduling and cause of the end of a session; see session_state.h. */
#include "daemon/state/session_state.h"

void
session_schedule(struct session *s)
{
	if (list_empty(&s->node))
		list_push(&s->pool->scheduled, &s->node);
}

_Static_assert(SEV_EVENT_CNT <= 32, "raised has a bit for each event");

void
session_raise(struct session *s, enum session_event event)
{
	s->raised |= 1u << event;
	if ((s->flags & SF_PUMPED) == 0)
		session_schedule(s);
}

void
session_fail(struct session *s, enum session_event event, const char *why, int err)
{
	if (s->why == NULL) {
		s->why = why;
		s->err = err;
	}
	session_raise(s, event);
}

void
session_idles(struct session *s)
{
	if (s->settings->cfg.idle_ms > 0)
		env_arm(s->pool->env, &s->timer, s->settings->cfg.idle_ms);
}

void
session_is_client(struct session *s)
{
	if (session_opens(s) || session_comes_again(s))
		return;
	s->settings->svc->ctr.accepted += (s->flags & SF_UNCOUNTED) != 0;
	s->flags &= ~(unsigned)SF_UNCOUNTED;
}

void
session_set_state(struct session *s, enum session_state state)
{
	log_msg(LOG_LVL_DEBUG, "session state: id=%llu from=\"%s\" to=\"%s\"", session_number(s),
	    session_state_str(s->state), session_state_str(state));
	s->state = state;
	if (state != SES_RENDEZVOUS && state != SES_LOOK && state != SES_SECURE && (s->flags & SF_PROBE) == 0)
		session_is_client(s);
	if (state != SES_DEAD)
		service_stats_travels(s, session_mode(s));
	if (state == SES_SMCR || state == SES_TCP)
		session_idles(s);
}

enum session_mode
session_mode(const struct session *s)
{
	if (s->path == PATH_SMCR)
		return SESSION_SMCR;
	return s->state == SES_TCP || s->state == SES_TCP_DRAINING ? SESSION_TCP : SESSION_SETUP;
}
