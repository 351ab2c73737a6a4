/* Settings and reference count of a service; see service.h. */
#include "daemon/state/service_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void
service_put(struct service *svc)
{
	assert(svc->refs > 0);
	if (--svc->refs > 0)
		return;
	timerq_unreserve(&svc->pool->env->timers, SERVICE_TIMERS);
	list_remove(&svc->node);
	if (svc->admission != NULL)
		admission_put(svc->pool->place.admissions, svc->admission);
	history_drop(svc);
	free(svc->stats.reasons);
	free(svc);
}

static void
copy_targets(struct settings *s, const struct config_service *cfg)
{
	struct sockaddr_storage *addrs = s->addrs;

	for (unsigned i = 0; i < cfg->to_cnt; i++) {
		s->cfg.to[i] = cfg->to[i];
		s->cfg.to[i].addrs = addrs;
		for (unsigned k = 0; k < cfg->to[i].addr_cnt; k++)
			*addrs++ = cfg->to[i].addrs[k];
	}
}

/* The nets follow their entries. */
static void
copy_vias(struct config_via *to, const struct config_service *cfg)
{
	struct config_dest *nets = (void *)(to + cfg->via_cnt);

	for (unsigned i = 0; i < cfg->via_cnt; i++) {
		to[i] = cfg->via[i];
		to[i].nets = memcpy(nets, cfg->via[i].nets, to[i].net_cnt * sizeof(*nets));
		nets += to[i].net_cnt;
	}
}

static size_t
vias_len(const struct config_service *cfg)
{
	size_t len = cfg->via_cnt * sizeof(*cfg->via);

	for (unsigned i = 0; i < cfg->via_cnt; i++)
		len += cfg->via[i].net_cnt * sizeof(*cfg->via[i].nets);
	return (len + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

/* One allocation with all that cfg points to. */
struct settings *
settings_new(struct service *svc, const struct config_service *cfg)
{
	size_t to_len = cfg->to_cnt * sizeof(*cfg->to), allow_len = cfg->allow_cnt * sizeof(*cfg->allow);
	size_t users_len = cfg->allow_users_cnt * sizeof(*cfg->allow_users);
	size_t clients_len = cfg->clients_cnt * sizeof(*cfg->clients);
	size_t proxy_len = cfg->accept_proxy_cnt * sizeof(*cfg->accept_proxy);
	size_t to_allow_len = cfg->to_allow_cnt * sizeof(*cfg->to_allow);
	unsigned addr_cnt = 0;

	for (unsigned i = 0; i < cfg->to_cnt; i++)
		addr_cnt += cfg->to[i].addr_cnt;
	struct settings *s = malloc(sizeof(*s) + addr_cnt * sizeof(s->addrs[0]) + vias_len(cfg) + to_len + users_len +
	    allow_len + clients_len + proxy_len + to_allow_len);
	struct targets *targets = s != NULL ? targets_get(svc->pool->place.targets, cfg) : NULL;

	if (targets == NULL) {
		free(s);
		return NULL;
	}
	*s = (struct settings){ .cfg = *cfg, .svc = svc, .targets = targets, .refs = 1 };
	s->ticket = admission_ticket(svc->admission, cfg);
	s->cfg.via = (void *)(s->addrs + addr_cnt);
	copy_vias(s->cfg.via, cfg);
	s->cfg.to = (void *)((char *)s->cfg.via + vias_len(cfg));
	s->cfg.allow_users = (void *)(s->cfg.to + cfg->to_cnt);
	s->cfg.to_allow = (void *)(s->cfg.allow_users + cfg->allow_users_cnt);
	s->cfg.allow = (void *)(s->cfg.to_allow + cfg->to_allow_cnt); /* bytes: behind what is aligned */
	s->cfg.clients = s->cfg.allow + cfg->allow_cnt;
	s->cfg.accept_proxy = s->cfg.clients + cfg->clients_cnt;
	copy_targets(s, cfg);
	if (users_len > 0)
		memcpy(s->cfg.allow_users, cfg->allow_users, users_len);
	if (allow_len > 0)
		memcpy(s->cfg.allow, cfg->allow, allow_len);
	if (clients_len > 0)
		memcpy(s->cfg.clients, cfg->clients, clients_len);
	if (proxy_len > 0)
		memcpy(s->cfg.accept_proxy, cfg->accept_proxy, proxy_len);
	if (to_allow_len > 0)
		memcpy(s->cfg.to_allow, cfg->to_allow, to_allow_len);
	svc->refs++;
	return s;
}

void
settings_put(struct settings *s)
{
	struct service *svc = s->svc;

	assert(s->refs > 0);
	if (--s->refs > 0)
		return;
	targets_put(svc->pool->place.targets, s->targets);
	free(s);
	service_put(svc);
}
