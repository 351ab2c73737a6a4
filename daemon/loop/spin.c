/* When the loop polls before it sleeps; see loop/spin.h. */
#include "daemon/loop/spin.h"

#include "base/minmax.h"

#define EARN_DIV 10     /* polls without an event may take this part of the time */
#define BUDGET_MAX 20   /* and this many polls in a row */
#define WAIT_MAX 4      /* a wait counts for at most this many times max_ns */
#define WEIGHT_DIV 8    /* weight of one wait in the average */
#define OFF_NS 10000000 /* pause after other tasks needed the processor */

void
spin_init(struct spin *s, int64_t max_ns, int64_t now_ns)
{
	s->max_ns = max_ns;
	s->wait_ns = max_ns * WAIT_MAX;
	s->budget_ns = 0;
	s->earned_ns = s->off_ns = now_ns;
}

int64_t
spin_begin(struct spin *s, int64_t now_ns)
{
	if (s->max_ns == 0 || s->wait_ns > s->max_ns || now_ns < s->off_ns)
		return 0;
	s->budget_ns = min_i64(s->budget_ns + (now_ns - s->earned_ns) / EARN_DIV, s->max_ns * BUDGET_MAX);
	s->earned_ns = now_ns;
	return s->budget_ns >= s->max_ns ? s->max_ns : 0;
}

void
spin_ended(struct spin *s, int64_t from_ns, int64_t now_ns, enum spin_end end)
{
	s->spun_ns += now_ns - from_ns;
	s->ctr.spun_us = (uint64_t)s->spun_ns / 1000;
	s->ctr.spins++;
	s->ctr.hits += end == SPIN_HIT;
	s->ctr.wanted += end == SPIN_WANTED;
	if (end != SPIN_HIT)
		s->budget_ns -= now_ns - from_ns;
	if (end == SPIN_WANTED)
		s->off_ns = now_ns + OFF_NS;
}

void
spin_waited(struct spin *s, int64_t from_ns, int64_t now_ns)
{
	int64_t ns = min_i64(now_ns - from_ns, s->max_ns * WAIT_MAX);

	s->wait_ns += (ns - s->wait_ns) / WEIGHT_DIV;
}
