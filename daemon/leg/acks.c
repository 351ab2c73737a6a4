/* Sessions whose data is not acknowledged; see acks.h. */
#include "daemon/leg/acks.h"

#include <errno.h>

#include "base/minmax.h"
#include "daemon/net/net.h"
#include "daemon/state/session_state.h"

#define SESSIONS_PER_STEP 64
#define ROUNDS 8 /* per limit: expiry is detected at most an eighth of the limit late */

/* Arms the next step, unless there is no limit. A round takes as long as its steps. */
static void
arm(struct session_pool *pool)
{
	uint32_t steps = pool->sessions.used / SESSIONS_PER_STEP + 1, limit_s = net_ack_limit_s(&pool->cfg->keepalive);

	if (limit_s > 0)
		env_arm(pool->env, &pool->acks.timer, max_u32(limit_s * 1000 / ROUNDS / steps, 1));
}

void
acks_note(const struct session *s)
{
	if (((s->app.flags | s->mid.flags) & LEG_SENT) != 0 && !timer_armed(&s->pool->acks.timer))
		arm(s->pool);
}

void
acks_reload(struct session_pool *pool)
{
	if (timer_armed(&pool->acks.timer))
		arm(pool);
}

static bool
is_silent(struct session_pool *pool, struct leg *leg, uint32_t limit_s)
{
	bool silent = leg_is_silent(leg, pool->env->now_ns, limit_s * 1000 * NS_PER_MS, pool->cfg->keepalive.probes);

	pool->acks.waits |= (leg->flags & LEG_SENT) != 0;
	return silent;
}

/* With data on SMC-R nothing is sent on the CLC connection, and each step of the set-up has its own limit. */
static void
acks_look(struct session *s, uint32_t limit_s)
{
	if (s->state != SES_SMCR && s->state != SES_TCP)
		return;
	if (is_silent(s->pool, &s->app, limit_s)) {
		s->app.err = ETIMEDOUT;
		session_fail(s, SEV_APP_RESET,
		    session_kind(s) == CONFIG_INGRESS ? "client does not acknowledge" : "server does not acknowledge",
		    ETIMEDOUT);
	} else if (s->state == SES_TCP && is_silent(s->pool, &s->mid, limit_s)) {
		s->mid.err = ETIMEDOUT;
		session_fail(s, SEV_MID_RESET, "peer does not acknowledge", ETIMEDOUT);
	}
}

static void
acks_on_time(struct timer *t)
{
	struct session_pool *pool = CONTAINER_OF(t, struct session_pool, acks.timer);
	struct acks *a = &pool->acks;
	uint32_t limit_s = net_ack_limit_s(&pool->cfg->keepalive);
	struct session *s = NULL;

	for (unsigned n = 0; n < SESSIONS_PER_STEP && (s = idtable_next(&pool->sessions, &a->pos)) != NULL; n++)
		acks_look(s, limit_s);
	if (s == NULL) {
		a->pos = 0;
		if (!a->waits)
			return; /* the next session that sends arms the timer */
		a->waits = false;
	}
	arm(pool);
}

void
acks_init(struct acks *a)
{
	*a = (struct acks){ .pos = 0 };
	timer_init(&a->timer, acks_on_time);
}
