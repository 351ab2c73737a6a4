/* SES_MEASURE: serves smcrctl check --bulk of the peer, over SMC-R and then over the CLC connection, without a server.
 * Bounded in number, bytes (measure.h) and time. See session.h. */
#include "daemon/session/session.h"

#define MAX_MS 60000

static struct measuring *
session_measure_find(struct session_pool *pool, const struct session *s)
{
	for (unsigned i = 0; i < SESSION_MEASURES_MAX; i++)
		if (pool->measuring[i].by == s)
			return &pool->measuring[i];
	return NULL;
}

void
measure_begin(struct session *s)
{
	struct measuring *m = session_measure_find(s->pool, NULL);

	session_set_state(s, SES_MEASURE);
	if (m == NULL) {
		session_fail(s, SEV_TIMEOUT, "too many measurements", 0);
		return;
	}
	m->by = s;
	measure_serve(&m->smcr);
	measure_serve(&m->tcp);
	env_arm(s->pool->env, &s->timer, MAX_MS);
}

void
measure_end(const struct session *s)
{
	struct measuring *m = session_measure_find(s->pool, s);

	if (m != NULL)
		m->by = NULL;
}

void
session_pump_measure(struct session *s)
{
	struct measuring *m = session_measure_find(s->pool, s);
	int64_t now_ns = s->pool->env->now_ns;

	session_pump_middle(s);
	if (s->raised != 0)
		return;
	int smcr = measure_pump(&m->smcr, s->conn, NULL, now_ns), tcp = measure_pump(&m->tcp, NULL, &s->mid, now_ns);
	if (smcr < 0 || tcp < 0) {
		session_fail(s, SEV_MID_RESET, "protocol error in the peer's measurement", smcr < 0 ? -smcr : -tcp);
	} else if (smcr_rx_eof(s->conn)) {
		session_raise(s, SEV_BOTH_DONE);
	} else if (smcr > 0 || tcp > 0) {
		session_schedule(s);
	}
}
