/* The sessions of a worker; see session_pool.h. */
#include "daemon/service/session_pool.h"

#include "daemon/service/accept_balance.h"
#include "daemon/service/arrival.h"
#include "daemon/probe/probe.h"
#include "daemon/probe/prober.h"
#include "daemon/service/service.h"
#include "daemon/session/session.h"

#define SESSIONS_PER_CHUNK 64

void
session_pool_init(struct session_pool *pool, struct env *env, const struct worker_place *place,
    const struct config *cfg, const struct tcp_option *option)
{
	static const struct log_limit limit = { .burst = 20, .interval_ms = 1000 };
	static const struct log_limit strangers = { .burst = 20, .interval_ms = 10000 };

	*pool = (struct session_pool){
		.env = env,
		.place = *place,
		.option = option,
		.cfg = cfg,
		.tls_ctx = tls_ctx_get(cfg->tls_ctx),
		.lim_refused = strangers,
		.lim_failed = limit,
		.lim_target = limit,
		.lim_middle = limit,
	};
	acks_init(&pool->acks);
	place->all[place->nr].pool = pool;
	handshake_rate_init(&pool->handshakes, (uint32_t)rng_u64(&env->rng));
	worker_ports_init(&pool->ports, place->nr, place->cnt, (uint32_t)rng_u64(&env->rng));
	slab_init(&pool->session_slab, sizeof(struct session), SESSIONS_PER_CHUNK);
	slab_init(&pool->setup_slab, sizeof(struct setup), SESSIONS_PER_CHUNK);
	idtable_init(&pool->sessions, IDTABLE_MAX);
	list_init(&pool->services);
	list_init(&pool->old_services);
	list_init(&pool->accepting);
	list_init(&pool->arrivals);
	list_init(&pool->scheduled);
	list_init(&pool->dead);
	list_init(&pool->probes);
	list_init(&pool->dead_probes);
}

void
session_pool_fini(struct session_pool *pool)
{
	pool->place.all[pool->place.nr].pool = NULL;
	tls_ctx_put(pool->tls_ctx);
	bufpool_fini(&pool->bufs);
	slab_fini(&pool->session_slab);
	slab_fini(&pool->setup_slab);
	idtable_fini(&pool->sessions);
}

/* A first contact has ended that sessions may wait for. */
static bool
turn_has_come(const struct session_pool *pool)
{
	return pool->turns_wait && smcr_contacts_over(pool->env->eng) != pool->contacts_over;
}

bool
session_pool_has_work(const struct session_pool *pool)
{
	return !list_empty(&pool->scheduled) || turn_has_come(pool);
}

void
session_pool_pump(struct session_pool *pool)
{
	struct list_node batch;
	struct session *s;
	struct smcr_conn *conn;
	unsigned events;

	while ((conn = smcr_next_event(pool->env->eng, &events)) != NULL) {
		struct conn_owner *owner = smcr_app(conn) != NULL ? smcr_app(conn) : listener_opened(pool, conn);

		if (owner != NULL)
			owner->on_event(owner, events);
	}
	probes_pump(pool);
	if (turn_has_come(pool)) {
		pool->turns_wait = false;
		for (uint32_t pos = 0; (s = idtable_next(&pool->sessions, &pos)) != NULL;)
			if (s->state == SES_LOOK)
				session_schedule(s);
	}
	pool->contacts_over = smcr_contacts_over(pool->env->eng);
	/* A session that requests another round gets it in the next turn. */
	list_move_all(&batch, &pool->scheduled);
	while ((s = LIST_POP(struct session, &batch, node)) != NULL)
		session_pump(s);
}

void
session_pool_reap(struct session_pool *pool)
{
	struct session *s;

	while ((s = LIST_POP(struct session, &pool->dead, node)) != NULL)
		session_free(s);
	probes_reap(pool);
}

int
session_pool_drain(struct session_pool *pool, bool on)
{
	int rc = 0;

	pool->draining = on;
	LIST_EACH(struct service, svc, &pool->services, node) {
		int err = service_follow(svc);

		rc = err != 0 ? err : rc;
	}
	prober_follow(pool);
	return rc;
}

void
session_pool_stop(struct session_pool *pool)
{
	struct session *s;

	prober_stop(pool);
	LIST_EACH(struct service, svc, &pool->services, node)
		service_stop(svc);
	arrivals_stop(pool);
	probes_stop(pool);
	/* The first round notifies the peers, the second one ends the sessions. */
	for (int round = 0; round < 2; round++) {
		for (uint32_t pos = 0; (s = idtable_next(&pool->sessions, &pos)) != NULL;)
			session_stop(s);
		(void)smcr_flush(pool->env->eng);
	}
	session_pool_reap(pool);
	LIST_EACH(struct service, svc, &pool->services, node)
		service_drop(svc);
}
