/* Targets of services, shared by threads; see targets.h. */
#include "daemon/target/targets.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

struct target {
	struct config_target spec; /* addrs: none */
	bool known;                /* the name was resolved at least once */
	char why[ENDPOINT_WHY_MAX];
};

struct targets {
	struct list_node node;
	unsigned refs;
	enum config_kind kind;
	char name[CONFIG_NAME_MAX]; /* of the service */
	struct targets_all *all;
	struct config_probe probe;
	atomic_bool down;     /* read without the lock */
	pthread_mutex_t lock; /* of the members below */
	struct endpoints endpoints;
	unsigned cnt;
	struct target target[];
};

/* -- list -- */

void
targets_all_init(struct targets_all *all)
{
	*all = (struct targets_all){ .changed = NULL };
	(void)pthread_mutex_init(&all->lock, NULL);
	list_init(&all->list);
}

void
targets_all_fini(struct targets_all *all)
{
	assert(list_empty(&all->list));
	(void)pthread_mutex_destroy(&all->lock);
}

static bool
is_of(struct targets *t, const struct config_service *cfg)
{
	if (t->kind != cfg->kind || strcmp(t->name, cfg->name) != 0 || t->cnt != cfg->to_cnt ||
	    t->endpoints.policy != cfg->policy || memcmp(&t->probe, &cfg->probe, sizeof(t->probe)) != 0 ||
	    t->endpoints.watched != (cfg->when_down == CONFIG_DOWN_CLOSE_LISTENER))
		return false;
	for (unsigned i = 0; i < t->cnt; i++) {
		if (!config_target_same(&t->target[i].spec, &cfg->to[i]))
			return false;
		/* When the daemon does not resolve names at run time, their addresses are settings. */
		for (unsigned k = 0; !config_names_wait() && k < cfg->to[i].addr_cnt; k++) {
			const struct endpoint *e = endpoints_find(&t->endpoints, &cfg->to[i].addrs[k]);

			if (e == NULL || e->target != i)
				return false;
		}
	}
	return true;
}

static void
set_addresses(struct targets *t, unsigned nr, bool by_weight, const struct target_addr *addrs, unsigned cnt)
{
	(void)endpoints_set(&t->endpoints, nr, by_weight, addrs, cnt);
	t->target[nr].known = true;
	t->target[nr].why[0] = '\0';
}

static void
load(struct targets *t, const struct config_service *cfg)
{
	struct target_addr addrs[CONFIG_TARGET_ADDRS_MAX];

	for (unsigned i = 0; i < t->cnt; i++) {
		const struct config_target *to = &cfg->to[i];

		for (unsigned k = 0; k < to->addr_cnt; k++)
			addrs[k] = (struct target_addr){ .ss = to->addrs[k] };
		if (to->addr_cnt > 0)
			set_addresses(t, i, false, addrs, to->addr_cnt);
	}
}

static struct targets *
make(struct targets_all *all, const struct config_service *cfg)
{
	struct targets *t = calloc(1, sizeof(*t) + cfg->to_cnt * sizeof(t->target[0]));

	if (t == NULL)
		return NULL;
	t->all = all;
	t->kind = cfg->kind;
	memcpy(t->name, cfg->name, sizeof(t->name));
	t->endpoints.policy = cfg->policy;
	t->endpoints.watched = cfg->when_down == CONFIG_DOWN_CLOSE_LISTENER;
	t->probe = cfg->probe;
	t->cnt = cfg->to_cnt;
	(void)pthread_mutex_init(&t->lock, NULL);
	for (unsigned i = 0; i < t->cnt; i++) {
		const struct config_target *to = &cfg->to[i];

		t->target[i].spec = *to;
		t->endpoints.backups |= (uint32_t)to->backup << i;
		t->target[i].spec.addrs = NULL;
		t->target[i].spec.addr_cnt = 0;
	}
	load(t, cfg);
	return t;
}

struct targets *
targets_get(struct targets_all *all, const struct config_service *cfg)
{
	(void)pthread_mutex_lock(&all->lock);
	struct targets *t = LIST_FIND(struct targets, known, &all->list, node, is_of(known, cfg));
	if (t == NULL && (t = make(all, cfg)) != NULL)
		list_push(&all->list, &t->node);
	if (t != NULL)
		t->refs++;
	(void)pthread_mutex_unlock(&all->lock);
	return t;
}

static bool
targets_is_pending(const struct targets *t)
{
	bool pending = false;

	for (unsigned i = 0; i < t->cnt && config_names_wait(); i++)
		pending = pending || (!t->target[i].known && t->target[i].why[0] == '\0');
	return pending && endpoints_count(&t->endpoints) == 0;
}

struct endpoints *
targets_lock(struct targets *t)
{
	(void)pthread_mutex_lock(&t->lock);
	return &t->endpoints;
}

void
targets_unlock(struct targets *t)
{
	bool down = t->endpoints.watched && endpoints_down(&t->endpoints) && !targets_is_pending(t);
	bool changed = atomic_exchange(&t->down, down) != down;

	(void)pthread_mutex_unlock(&t->lock);
	if (changed && t->all->changed != NULL)
		t->all->changed(t->all->arg);
}

bool
targets_down(const struct targets *t)
{
	return atomic_load(&t->down);
}

void
targets_load(struct targets *t, const struct config_service *cfg)
{
	(void)pthread_mutex_lock(&t->lock);
	load(t, cfg);
	targets_unlock(t);
}

void
targets_put(struct targets_all *all, struct targets *t)
{
	(void)pthread_mutex_lock(&all->lock);
	assert(t->refs > 0);
	bool last = --t->refs == 0;
	if (last)
		list_remove(&t->node);
	(void)pthread_mutex_unlock(&all->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&t->lock);
	free(t);
}

/* -- names -- */

bool
targets_set(struct targets *t, unsigned nr, bool by_weight, const struct target_addr *addrs, unsigned cnt)
{
	bool none = endpoints_count(targets_lock(t)) == 0;

	set_addresses(t, nr, by_weight, addrs, cnt);
	targets_unlock(t);
	atomic_fetch_add(&t->all->changes, 1);
	return none;
}

bool
targets_unresolved(struct targets *t, unsigned nr, const char *why)
{
	bool none = endpoints_count(targets_lock(t)) == 0;

	(void)snprintf(t->target[nr].why, sizeof(t->target[nr].why), "%s", why);
	targets_unlock(t);
	return none;
}

const char *
targets_waiting(struct targets *t, char buf[TARGETS_WAIT_MAX])
{
	(void)pthread_mutex_lock(&t->lock);
	buf[0] = '\0';
	for (unsigned i = 0; i < t->cnt && endpoints_count(&t->endpoints) == 0; i++) {
		const struct target *one = &t->target[i];

		if (one->known && one->why[0] == '\0')
			continue;
		(void)snprintf(buf, TARGETS_WAIT_MAX, "waiting for the name %s%s%s: %s", one->spec.host,
		    t->cnt > 1 ? " and others" : "", one->spec.srv ? " (SRV)" : "",
		    one->why[0] != '\0' ? one->why : "no answer yet");
		break;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return buf;
}

bool
targets_pending(struct targets *t)
{
	(void)pthread_mutex_lock(&t->lock);
	bool pending = targets_is_pending(t);
	(void)pthread_mutex_unlock(&t->lock);
	return pending;
}

const char *
targets_name_error(struct targets *t, unsigned nr, char buf[ENDPOINT_WHY_MAX])
{
	(void)pthread_mutex_lock(&t->lock);
	memcpy(buf, t->target[nr].why, ENDPOINT_WHY_MAX);
	if (buf[0] == '\0' && !t->target[nr].known)
		(void)snprintf(buf, ENDPOINT_WHY_MAX, "no answer yet");
	(void)pthread_mutex_unlock(&t->lock);
	return buf;
}

/* -- look-ups -- */

bool
targets_find(struct targets *t, const struct sockaddr_storage *there, unsigned *target)
{
	const struct endpoints *es = &t->endpoints;
	unsigned first = t->cnt;

	(void)pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++)
		if ((es->used >> i & 1) != 0 && es->at[i].target < first && addr_matches(there, &es->at[i].addr))
			first = es->at[i].target;
	(void)pthread_mutex_unlock(&t->lock);
	if (first == t->cnt)
		return false;
	*target = first;
	return true;
}

static bool
knows(const struct targets_known_list *known, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < known->cnt; i++)
		if (addr_same_place(&known->at[i].addr, addr))
			return true;
	return false;
}

void
targets_known(struct targets_all *all, struct targets_known_list *out, unsigned cap)
{
	(void)pthread_mutex_lock(&all->lock);
	LIST_EACH(struct targets, t, &all->list, node) {
		(void)pthread_mutex_lock(&t->lock);
		for (unsigned i = 0; i < ENDPOINTS_MAX && out->cnt < cap; i++) {
			const struct endpoint *e = &t->endpoints.at[i];

			if ((t->endpoints.used >> i & 1) != 0 && e->health.state != HEALTH_NONE &&
			    !knows(out, &e->addr))
				out->at[out->cnt++] = (struct targets_known){ e->addr, e->health };
		}
		(void)pthread_mutex_unlock(&t->lock);
	}
	(void)pthread_mutex_unlock(&all->lock);
}

enum clc_server
targets_server(struct targets *t)
{
	const struct endpoints *es = &t->endpoints;
	enum clc_server down = CLC_SERVER_UNSAID;
	bool up = false, unknown = false;

	(void)pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
		const struct health *h = &es->at[i].health;

		if ((es->used >> i & 1) == 0)
			continue;
		up = up || h->state == HEALTH_UP;
		unknown = unknown || (h->state != HEALTH_UP && h->state != HEALTH_DOWN);
		if (h->state == HEALTH_DOWN)
			down = h->server;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return up ? CLC_SERVER_UP : unknown ? CLC_SERVER_UNSAID : down;
}

bool
targets_address(struct targets *t, unsigned nth, struct endpoint *out)
{
	const struct endpoints *es = &t->endpoints;
	bool found = false;

	(void)pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < ENDPOINTS_MAX && !found; i++) {
		const struct endpoint *e = &es->at[i], *other = es->at;
		unsigned before = 0;

		for (unsigned k = 0; k < ENDPOINTS_MAX; k++, other++)
			before += (es->used >> k & 1) != 0 &&
			    (other->target < e->target || (other->target == e->target && other->order < e->order));
		found = (es->used >> i & 1) != 0 && before == nth;
		if (found)
			*out = *e;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return found;
}
