/* Rings of samples; see history.h. */
#include "daemon/account/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "daemon/state/service_state.h"

#define GIVES_WAY_STEPS 12 /* a ring that has not moved for so long may be another service's */

/* -- a ring -- */

static struct history_sample *
ring_place(struct history *h, int64_t step)
{
	return &h->at[(uint64_t)step % HISTORY_SAMPLES];
}

/* The sample that follows this one when nothing happens. */
static struct history_sample
quiet_after(const struct history_sample *s)
{
	struct history_sample quiet = { .rtt_us = s->rtt_us };

	memcpy(quiet.modes, s->modes, sizeof(quiet.modes));
	return quiet;
}

void
history_put(struct history *h, int64_t step, const struct history_sample *s)
{
	const struct history_sample quiet = quiet_after(ring_place(h, h->end - 1));

	if (step < h->end)
		return;
	if (memcmp(&quiet, s, sizeof(quiet)) != 0)
		h->moved = step;
	for (int64_t i = step - h->end >= HISTORY_SAMPLES ? step - HISTORY_SAMPLES + 1 : h->end; i < step; i++)
		*ring_place(h, i) = quiet;
	*ring_place(h, step) = *s;
	h->end = step + 1;
}

struct history_sample
history_get(const struct history *h, int64_t step)
{
	const struct history_sample *at = h->at;

	if (step >= h->end)
		return quiet_after(&at[(uint64_t)(h->end - 1) % HISTORY_SAMPLES]);
	return step >= h->end - HISTORY_SAMPLES ? at[(uint64_t)step % HISTORY_SAMPLES] : (struct history_sample){ 0 };
}

void
history_add(struct history_sample *sum, const struct history_sample *one)
{
	for (unsigned i = 0; i < 2; i++)
		sum->bytes[i] += one->bytes[i];
	for (unsigned i = 0; i < 3; i++)
		sum->modes[i] += one->modes[i];
	sum->accepted += one->accepted;
	sum->refused += one->refused;
	sum->rtt_us = max_u32(sum->rtt_us, one->rtt_us);
}

/* -- of services -- */

void
history_drop(struct service *svc)
{
	svc->pool->history.rings -= svc->history != NULL;
	free(svc->history);
	svc->history = NULL;
}

/* The round trip of a link group, 0: of all groups. */
static uint32_t
rtt_us(const struct session_pool *pool, uint32_t group)
{
	const int64_t ns = smcr_rtt_ns(pool->env->eng, group);

	return ns > 0 ? (uint32_t)min_i64(max_i64(ns / 1000, 1), UINT32_MAX) : 0;
}

/* Of the step that ends. */
static struct history_sample
sample_of(struct service *svc)
{
	const struct service_info *c = &svc->ctr;
	const struct history_mark was = svc->history_mark;
	struct history_sample s = { .bytes = { 0 } };

	svc->history_mark = (struct history_mark){
		.accepted = c->accepted,
		.refused = c->refused_allow + c->refused_max + c->refused_per_peer + c->refused_connect +
		    c->refused_fallback + c->refused_disabled + c->refused_header + c->not_captured + c->no_via +
		    c->dest_own + c->dest_refused,
	};
	for (unsigned i = 0; i < 2; i++) {
		svc->history_mark.bytes[i] = svc->stats.bytes[i];
		s.bytes[i] = svc->history_mark.bytes[i] - was.bytes[i];
	}
	for (unsigned i = 0; i < 3; i++)
		s.modes[i] = (uint32_t)svc->stats.modes[i];
	s.accepted = (uint32_t)(svc->history_mark.accepted - was.accepted);
	s.refused = (uint32_t)(svc->history_mark.refused - was.refused);
	if (s.modes[SESSION_SMCR] > 0 && svc->newest_group != 0)
		s.rtt_us = rtt_us(svc->pool, svc->newest_group);
	return s;
}

/* A ring for the service, if need be of the one that has not moved for the longest time. */
static void
make_ring(struct service *svc, int64_t step)
{
	struct session_pool *pool = svc->pool;
	struct service *oldest = NULL;

	if (pool->history.rings == HISTORY_SERVICES_MAX && pool->history.full == step)
		return;
	if (pool->history.rings == HISTORY_SERVICES_MAX) {
		LIST_EACH(struct service, s, &pool->services, node)
			if (s->history != NULL && step - s->history->moved >= GIVES_WAY_STEPS &&
			    (oldest == NULL || s->history->moved < oldest->history->moved))
				oldest = s;
		if (oldest == NULL) {
			pool->history.full = step;
			return;
		}
		history_drop(oldest);
	}
	svc->history = calloc(1, sizeof(*svc->history));
	if (svc->history == NULL)
		return;
	pool->history.rings++;
	svc->history->end = svc->history->moved = step;
}

/* Without connections for as long as a ring lasts it is empty. */
static void
keep_sample(struct service *svc, int64_t step, const struct history_sample *s)
{
	static const struct history_sample nothing;
	const bool empty = memcmp(s, &nothing, sizeof(nothing)) == 0;

	if (svc->history == NULL && !empty)
		make_ring(svc, step);
	if (svc->history == NULL)
		return;
	history_put(svc->history, step, s);
	if (empty && step - svc->history->moved >= HISTORY_SAMPLES)
		history_drop(svc);
}

static void
close_step(struct session_pool *pool, struct list_node *services, struct history_sample *sum)
{
	LIST_EACH(struct service, svc, services, node) {
		const struct history_sample s = sample_of(svc);

		history_add(sum, &s);
		if (svc->settings != NULL)
			keep_sample(svc, pool->history.step, &s);
		else
			history_drop(svc); /* no longer configured */
	}
}

void
history_follow(struct session_pool *pool, int64_t clock_ns)
{
	struct history_pool *h = &pool->history;
	struct history_sample sum = { .bytes = { 0 } };

	if (clock_ns < h->next_ns)
		return;
	if (h->next_ns != 0) {
		close_step(pool, &pool->services, &sum);
		close_step(pool, &pool->old_services, &sum);
		sum.rtt_us = rtt_us(pool, 0);
		history_put(&h->all, h->step, &sum);
	}
	h->step = history_step(clock_ns);
	h->next_ns = (h->step + 1) * HISTORY_STEP_NS;
}
