/* Choice among the addresses of a service's targets; see endpoints.h. Called under the lock of targets.c. */
#include "daemon/target/endpoints.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"

/* An endpoint whose probe is overdue by this much may be tried by a connection. */
#define FORGOTTEN_NS (60 * INT64_C(1000000000))

#define BIT(place) (UINT64_C(1) << (place))

static bool
is_used(const struct endpoints *es, unsigned place)
{
	return (es->used & BIT(place)) != 0;
}

unsigned
endpoints_count(const struct endpoints *es)
{
	return (unsigned)__builtin_popcountll(es->used);
}

/* -- addresses -- */

struct endpoint *
endpoints_find(struct endpoints *es, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (is_used(es, i) && addr_same_place(&es->at[i].addr, addr))
			return &es->at[i];
	return NULL;
}

static bool
is_listed(const struct sockaddr_storage *addr, const struct target_addr *addrs, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (addr_same_place(&addrs[i].ss, addr))
			return true;
	return false;
}

unsigned
endpoints_set(struct endpoints *es, unsigned target, bool by_weight, const struct target_addr *addrs, unsigned cnt)
{
	unsigned there = 0;

	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (es->at[i].target == target && !is_listed(&es->at[i].addr, addrs, cnt))
			es->used &= ~BIT(i);
	for (unsigned i = 0; i < cnt; i++) {
		struct endpoint *e = endpoints_find(es, &addrs[i].ss);

		if (e != NULL && e->target != target)
			continue;
		if (e == NULL) {
			if (~es->used == 0)
				break;
			e = &es->at[__builtin_ctzll(~es->used)];
			*e = (struct endpoint){ .addr = addrs[i].ss, .target = target, .id = ++es->last_id };
			es->used |= BIT(e - es->at);
		}
		e->order = i;
		e->by_weight = by_weight;
		e->priority = addrs[i].priority;
		e->weight = addrs[i].weight;
		there++;
	}
	return there;
}

/* -- the choice -- */

/* As far as probes say. */
static bool
may_work(const struct endpoint *e)
{
	return e->health.state != HEALTH_DOWN;
}

static bool
is_good(const struct endpoint *e, int64_t now_ns)
{
	return may_work(e) && (e->fault == ENDPOINT_OK || e->trial || now_ns - e->due_ns > FORGOTTEN_NS);
}

/* The part of the set without backups; all of it if that is empty. */
static uint64_t
without_backups(const struct endpoints *es, uint64_t set)
{
	uint64_t out = set;

	for (unsigned i = 0; i < ENDPOINTS_MAX && es->backups != 0; i++)
		if ((set & BIT(i)) != 0 && (es->backups >> es->at[i].target & 1) != 0)
			out &= ~BIT(i);
	return out != 0 ? out : set;
}

/* The part of the set that belongs to the next target of the policy. */
static uint64_t
of_one_target(struct endpoints *es, uint64_t set)
{
	uint64_t by_target[CONFIG_TARGETS_MAX] = { 0 };
	unsigned cnt = 0, nth, t = 0;

	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if ((set & BIT(i)) != 0)
			by_target[es->at[i].target] |= BIT(i);
	for (unsigned i = 0; i < CONFIG_TARGETS_MAX; i++)
		cnt += by_target[i] != 0;
	nth = es->policy == CONFIG_POLICY_SPREAD ? es->turn++ % cnt : 0;
	while (by_target[t] == 0 || nth-- > 0)
		t++;
	return by_target[t];
}

static uint64_t
of_best_priority(const struct endpoints *es, uint64_t set)
{
	uint16_t best = UINT16_MAX;
	uint64_t out = 0;

	for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
		if ((set & BIT(i)) == 0 || es->at[i].priority > best)
			continue;
		out = BIT(i) | (es->at[i].priority == best ? out : 0);
		best = es->at[i].priority;
	}
	return out;
}

/* RFC 2782: in proportion to the weights; weight 0 has a very small chance. */
static unsigned
by_weight(const struct endpoints *es, uint64_t set, struct rng *rng)
{
	uint32_t sum = 0, nth;
	unsigned last = 0;

	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if ((set & BIT(i)) != 0)
			sum += es->at[i].weight * 256u + 1;
	nth = rng_below(rng, sum);
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
		if ((set & BIT(i)) == 0)
			continue;
		last = i;
		if (nth < es->at[i].weight * 256u + 1)
			break;
		nth -= es->at[i].weight * 256u + 1;
	}
	return last;
}

/* The nth endpoint of the set in the order of the answer. */
static unsigned
by_order(const struct endpoints *es, uint64_t set, unsigned nth)
{
	unsigned at = 0;

	do {
		unsigned best = UINT32_MAX;

		for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
			if ((set & BIT(i)) != 0 && es->at[i].order < best) {
				best = es->at[i].order;
				at = i;
			}
		}
		set &= ~BIT(at);
	} while (nth-- > 0);
	return at;
}

static unsigned
choose(struct endpoints *es, uint64_t set, struct rng *rng)
{
	set = of_best_priority(es, of_one_target(es, set));
	if (es->at[__builtin_ctzll(set)].by_weight)
		return by_weight(es, set, rng);
	return by_order(
	    es, set, es->policy == CONFIG_POLICY_SPREAD ? es->addr_turn++ % (unsigned)__builtin_popcountll(set) : 0);
}

/* Order of policy "first", including SRV priorities. */
static bool
is_before(const struct endpoint *a, const struct endpoint *b)
{
	if (a->target != b->target)
		return a->target < b->target;
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->by_weight || a->order < b->order;
}

/* Counts endpoints that could have been chosen if they were good. */
static void
count_passed_over(struct endpoints *es, uint64_t set, const struct endpoint *chosen)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if ((set & BIT(i)) != 0 && (es->policy == CONFIG_POLICY_SPREAD || is_before(&es->at[i], chosen)))
			es->at[i].passed_over++;
}

bool
endpoints_pick(struct endpoints *es, int64_t now_ns, struct rng *rng, uint64_t *tried, struct endpoint_pick *out)
{
	const uint64_t all = es->used & ~*tried;
	uint64_t good = 0;

	if (all == 0)
		return false;
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if ((all & BIT(i)) != 0 && is_good(&es->at[i], now_ns))
			good |= BIT(i);
	unsigned i = choose(es, without_backups(es, good != 0 ? good : all), rng);
	struct endpoint *e = &es->at[i];
	if (good != 0)
		count_passed_over(es, all & ~good, e);
	e->trial = false;
	/* No longer overdue: the next connection waits for the result of this one. */
	if (now_ns - e->due_ns > FORGOTTEN_NS)
		e->due_ns = now_ns;
	*tried |= BIT(i);
	*out = (struct endpoint_pick){ .addr = e->addr, .place = i, .id = e->id };
	return true;
}

bool
endpoints_down(const struct endpoints *es)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (is_used(es, i) && may_work(&es->at[i]) && (es->at[i].fault == ENDPOINT_OK || es->at[i].trial))
			return false;
	return true;
}

bool
endpoints_have_other(const struct endpoints *es, uint64_t tried)
{
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if (is_used(es, i) && (tried & BIT(i)) == 0 && es->at[i].fault == ENDPOINT_OK && may_work(&es->at[i]))
			return true;
	return false;
}

/* -- results -- */

/* NULL: the address was removed. */
static struct endpoint *
picked(struct endpoints *es, const struct endpoint_pick *p)
{
	struct endpoint *e = &es->at[p->place];

	return is_used(es, p->place) && e->id == p->id ? e : NULL;
}

bool
endpoints_good(struct endpoints *es, const struct endpoint_pick *p, bool served)
{
	struct endpoint *e = picked(es, p);

	if (e == NULL)
		return false;
	e->connections += !served;
	if (e->fault == ENDPOINT_OK || (e->fault == ENDPOINT_SETUP && !served))
		return false;
	e->fault = ENDPOINT_OK;
	e->trial = false;
	return true;
}

bool
endpoints_bad(struct endpoints *es, const struct endpoint_pick *p, enum endpoint_fault fault, const char *why,
    int64_t now_ns, int64_t due_ns, unsigned prober)
{
	struct endpoint *e = picked(es, p);

	if (e == NULL)
		return false;
	bool news = e->fault == ENDPOINT_OK;
	e->failures++;
	if (news) {
		e->since_ns = now_ns;
		e->prober = prober;
	}
	e->fault = fault;
	e->trial = false;
	e->due_ns = due_ns;
	(void)snprintf(e->why, sizeof(e->why), "%s", why);
	return news;
}

/* A single endpoint is tried by each connection, so it needs a probe only while connections are refused (watched). */
static bool
is_looked_at(const struct endpoints *es, unsigned place, unsigned prober)
{
	const struct endpoint *e = &es->at[place];

	return is_used(es, place) && (es->watched || endpoints_count(es) > 1) && e->fault != ENDPOINT_OK && !e->trial &&
	    e->prober == prober;
}

bool
endpoints_due(const struct endpoints *es, unsigned prober, int64_t now_ns, struct endpoint_pick *out, int64_t *at_ns)
{
	const struct endpoint *first = NULL;

	*at_ns = INT64_MAX;
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
		const struct endpoint *e = &es->at[i];

		if (!is_looked_at(es, i, prober) || e->due_ns >= *at_ns)
			continue;
		*at_ns = e->due_ns;
		first = e;
	}
	if (first == NULL || first->due_ns > now_ns)
		return false;
	*out = (struct endpoint_pick){ .addr = first->addr, .place = (unsigned)(first - es->at), .id = first->id };
	return true;
}

unsigned
endpoints_retry_now(struct endpoints *es, unsigned prober, const struct sockaddr_storage *peer, int64_t now_ns)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
		struct endpoint *e = &es->at[i];

		if (!is_looked_at(es, i, prober) || (peer != NULL && !addr_matches(peer, &e->addr)))
			continue;
		e->due_ns = now_ns;
		cnt++;
	}
	return cnt;
}

bool
endpoints_looked(struct endpoints *es, const struct endpoint_pick *p, bool connected, int64_t due_ns)
{
	struct endpoint *e = picked(es, p);

	if (e == NULL || e->fault == ENDPOINT_OK)
		return false;
	e->due_ns = due_ns;
	/* Only a connection can prove that it serves. */
	e->trial = connected && e->fault == ENDPOINT_SETUP;
	if (!connected || e->fault == ENDPOINT_SETUP)
		return false;
	e->fault = ENDPOINT_OK;
	return true;
}

void
endpoints_probed(struct endpoints *es, const struct sockaddr_storage *addr, const struct health *h, bool up_serves)
{
	struct endpoint *e = endpoints_find(es, addr);

	if (e == NULL)
		return;
	e->health = *h;
	if (h->state != HEALTH_UP || e->fault == ENDPOINT_OK || h->row > 0)
		return;
	/* As of a probe of failed targets. */
	e->trial = !up_serves && e->fault == ENDPOINT_SETUP;
	if (!e->trial)
		e->fault = ENDPOINT_OK;
}
