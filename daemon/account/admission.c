/* Connection counts and limits of a service over all workers; see admission.h. */
#include "daemon/account/admission.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/rng.h"

void
admissions_init(struct admissions *all)
{
	(void)pthread_mutex_init(&all->lock, NULL);
	list_init(&all->list);
	dest_tickets_init(&all->dest_tickets);
}

void
admissions_fini(struct admissions *all)
{
	assert(list_empty(&all->list));
	(void)pthread_mutex_destroy(&all->lock);
	dest_tickets_fini(&all->dest_tickets);
}

struct admission *
admission_get(struct admissions *all, const struct config_service *cfg)
{
	struct admission *a = NULL;
	struct rng rng;

	(void)pthread_mutex_lock(&all->lock);
	LIST_EACH(struct admission, one, &all->list, node)
		if (one->kind == cfg->kind && strcmp(one->name, cfg->name) == 0)
			a = one;
	if (a == NULL && (a = calloc(1, sizeof(*a))) != NULL) {
		a->kind = cfg->kind;
		memcpy(a->name, cfg->name, sizeof(a->name));
		rng_init_kernel(&rng);
		a->ticket = (uint32_t)rng_u64(&rng);
		(void)pthread_mutex_init(&a->lock, NULL);
		outage_init(&a->outage);
		far_ends_init(&a->far_ends);
		fallback_periods_init(&a->fallback_periods);
		list_push(&all->list, &a->node);
	}
	if (a != NULL)
		a->refs++;
	(void)pthread_mutex_unlock(&all->lock);
	return a;
}

void
admission_retire(struct admissions *all, struct admission *a)
{
	(void)pthread_mutex_lock(&all->lock);
	list_remove(&a->node);
	(void)pthread_mutex_unlock(&all->lock);
}

void
admission_put(struct admissions *all, struct admission *a)
{
	(void)pthread_mutex_lock(&all->lock);
	assert(a->refs > 0);
	bool last = --a->refs == 0;
	if (last)
		list_remove(&a->node);
	(void)pthread_mutex_unlock(&all->lock);
	if (!last)
		return;
	assert(a->connections == 0);
	source_count_fini(&a->sources);
	outage_fini(&a->outage);
	far_ends_fini(&a->far_ends);
	fallback_periods_fini(&a->fallback_periods);
	(void)pthread_mutex_destroy(&a->lock);
	free(a);
}

uint32_t
admission_ticket(const struct admission *a, const struct config_service *cfg)
{
	char addr[ADDR_STR_MAX];

	if (cfg->kind == CONFIG_INGRESS || cfg->elem_size != 0)
		return 0;
	addr_format_port(&cfg->listen, addr, sizeof(addr));
	const uint32_t nr = (a->ticket ^ hash_mix(HASH_START, addr, strlen(addr))) & ~DEST_TICKET_BIT;
	return nr != 0 ? nr : 1;
}

enum admission_verdict
admission_take(struct admission *a, const struct config_service *cfg, const union net_addr *source)
{
	enum admission_verdict v;

	(void)pthread_mutex_lock(&a->lock);
	if (a->connections >= cfg->max_connections)
		v = ADMISSION_MAX;
	else if (cfg->max_per_peer > 0 && source_count_of(&a->sources, source) >= cfg->max_per_peer)
		v = ADMISSION_PER_PEER;
	else
		v = source_count_add(&a->sources, source) > 0 ? ADMISSION_OK : ADMISSION_UNCOUNTED;
	if (v == ADMISSION_OK || v == ADMISSION_UNCOUNTED)
		a->connections++;
	(void)pthread_mutex_unlock(&a->lock);
	return v;
}

void
admission_give(struct admission *a, const union net_addr *source)
{
	(void)pthread_mutex_lock(&a->lock);
	assert(a->connections > 0);
	a->connections--;
	if (source != NULL)
		source_count_remove(&a->sources, source);
	(void)pthread_mutex_unlock(&a->lock);
}
