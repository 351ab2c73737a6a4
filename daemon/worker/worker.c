/*
 * The worker: puts engine, devices, services and sessions together and runs
 * their turn. What happens to a connection is session.c's business. See
 * worker.h and worker_priv.h.
 */
#include "daemon/worker/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/device/devices.h"
#include "daemon/worker/listener.h"
#include "daemon/log_text.h"
#include "daemon/worker/mpa_peers.h"
#include "daemon/device/netwatch.h"
#include "daemon/session/prewarm.h"
#include "daemon/session/probe.h"
#include "daemon/worker/reload.h"
#include "daemon/session/session.h"
#include "daemon/worker/worker_priv.h"

#define SESSIONS_PER_CHUNK 64
#define FREE_BUFS_KEPT 64

/* -- the turn -- */

/* Hands the engine's news to sessions and probes: they only take notes. */
static void
take_events(struct worker *w)
{
	struct smcr_conn *conn;
	unsigned events;

	while ((conn = smcr_next_event(w->eng, &events)) != NULL) {
		struct conn_owner *owner = smcr_app(conn);

		owner->on_event(owner, events);
	}
}

/* Each session with news once: those that want more wait for the next turn. */
static void
pump_dirty(struct worker *w)
{
	struct list_node batch, *n;

	list_move_all(&batch, &w->dirty);
	while ((n = list_pop(&batch)) != NULL)
		session_pump(CONTAINER_OF(n, struct session, node));
}

static void
reap(struct worker *w)
{
	struct list_node *n;

	while ((n = list_pop(&w->dead)) != NULL)
		session_free(CONTAINER_OF(n, struct session, node));
	probes_reap(w);
}

static void
log_engine(struct worker *w)
{
	struct smcr_log l;
	char text[LOG_TEXT_MAX];

	while (smcr_next_log(w->eng, &l)) {
		enum log_level level = log_text_engine(&l, text, sizeof(text));

		if (l.type == SMCR_LOG_STATE)
			log_msg(level, "%s", text);
		else
			log_limited(&w->lim_engine[l.type], w->now_ns, level, "%s", text);
	}
	smcr_log_states(w->eng, log_is_on(LOG_LVL_DEBUG));
}

static int
read_subnets(struct worker *w)
{
	struct smcr_subnet nets[SMCR_NETWORKS_MAX];
	int rc = subnets_refresh(&w->subnets);

	if (rc == 0)
		smcr_set_networks(w->eng, nets, subnets_all(&w->subnets, nets));
	return rc;
}

static void
read_subnets_anew(struct worker *w)
{
	int rc = read_subnets(w);

	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "cannot list the network interfaces anew: error=\"%s\"", strerror(-rc));
}

static void
follow_interfaces(struct worker *w)
{
	if (devices_follow(w))
		read_subnets_anew(w);
}

static bool
drained(const struct worker *w)
{
	return w->sessions.used == 0 && smcr_idle(w->eng);
}

/* Whatever runs first in this turn, a signal's callback or the control socket's turn, finds the right time. */
static void
worker_clock(void *arg, int64_t now_ns)
{
	struct worker *w = arg;

	w->now_ns = now_ns;
	smcr_set_now(w->eng, now_ns);
}

static int64_t
sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
worker_turn(void *arg, int64_t now_ns)
{
	struct worker *w = arg;
	bool more;
	int64_t at;

	w->stats.turns++;
	follow_interfaces(w);
	smcr_poll(w->eng, now_ns);
	timerq_run(&w->timers, now_ns);
	more = devices_listen(w);
	if (listeners_accept(w))
		more = true;
	take_events(w);
	probes_pump(w);
	pump_dirty(w);
	if (smcr_flush(w->eng))
		more = true;
	reap(w);
	log_engine(w);
	at = sooner(smcr_deadline(w->eng), devices_log(w));
	at = sooner(at, timerq_next(&w->timers));
	if (more || !list_empty(&w->dirty))
		at = INT64_MIN;
	if (w->drain.done != NULL && drained(w)) {
		void (*done)(void *) = w->drain.done;

		w->drain.done = NULL;
		done(w->drain.arg);
	}
	return at;
}

/* -- life -- */

static void
on_drain_timeout(struct timer *t, int64_t now_ns)
{
	struct worker *w = CONTAINER_OF(t, struct worker, drain.timer);
	void (*done)(void *) = w->drain.done;

	(void)now_ns;
	w->drain.done = NULL;
	if (done != NULL)
		done(w->drain.arg);
}

static struct worker *
worker_alloc(struct loop *loop, const struct config *cfg)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->loop = loop;
	w->now_ns = w->stats.started_ns = loop_now(loop);
	w->keepalive = cfg->keepalive;
	rng_init_kernel(&w->rng);
	timerq_init(&w->timers);
	subnets_init(&w->subnets);
	bufpool_init(&w->bufs, FREE_BUFS_KEPT);
	slab_init(&w->session_slab, sizeof(struct session), SESSIONS_PER_CHUNK);
	slab_init(&w->setup_slab, sizeof(struct setup), SESSIONS_PER_CHUNK);
	idtable_init(&w->sessions, IDTABLE_MAX);
	list_init(&w->services);
	list_init(&w->old_services);
	list_init(&w->accepting);
	list_init(&w->dirty);
	list_init(&w->dead);
	list_init(&w->probes);
	list_init(&w->dead_probes);
	w->lim_refused = (struct log_limit){ .burst = 20, .interval_ms = 1000 };
	w->lim_failed = (struct log_limit){ .burst = 20, .interval_ms = 1000 };
	w->lim_outage = w->lim_outage_over = w->lim_stranger = (struct log_limit){ .burst = 20, .interval_ms = 1000 };
	for (unsigned i = 0; i < SMCR_LOG_TYPE_CNT; i++)
		w->lim_engine[i] = (struct log_limit){ .burst = 20, .interval_ms = 1000 };
	timer_init(&w->drain.timer, on_drain_timeout);
	return w;
}

/* Without it the devices stay as they are at start. */
static void
watch_interfaces(struct worker *w)
{
	int rc = netwatch_new(w->loop, &w->netwatch);

	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "network interfaces are not followed: error=\"%s\"", strerror(-rc));
}

static void
take_mpa_lists(struct worker *w, const struct config *cfg)
{
	w->mpa_peers = cfg->mpa_peers;
	w->mpa_peers_cnt = cfg->mpa_peers_cnt;
	w->mpa_clients = cfg->mpa_clients;
	w->mpa_clients_cnt = cfg->mpa_clients_cnt;
}

int
worker_new(struct loop *loop, const struct config *cfg, const int *fds, unsigned fd_cnt, FILE *err, struct worker **out)
{
	struct worker *w = worker_alloc(loop, cfg);
	int rc = -ENOMEM;

	if (w == NULL || timerq_reserve(&w->timers, 1) != 0)
		goto fail;
	w->eng = smcr_new(&cfg->smcr, &w->rng, w->now_ns);
	if (w->eng == NULL)
		goto fail;
	take_mpa_lists(w, cfg);
	smcr_set_dial_policy(w->eng, mpa_peers_allow, w);
	rc = read_subnets(w);
	if (rc != 0) {
		fprintf(err, "cannot list the network interfaces: %s\n", strerror(-rc));
		goto fail_told;
	}
	watch_interfaces(w);
	rc = devices_open(w, cfg, err);
	if (rc != 0)
		goto fail_told;
	rc = services_apply(w, cfg, fds, fd_cnt, err);
	if (rc != 0)
		goto fail_told;
	rc = loop_add_turn(loop, worker_turn, w);
	if (rc != 0)
		goto fail;
	loop_set_clock(loop, worker_clock, w);
	*out = w;
	return 0;
fail:
	fprintf(err, "worker: %s\n", strerror(-rc));
fail_told:
	worker_free(w);
	return rc;
}

int
worker_reload(struct worker *w, const struct config *next, FILE *err)
{
	struct config_keepalive old = w->keepalive;
	int rc;

	if (w->stats.draining) {
		fprintf(err, "the daemon is ending: no reload\n");
		return -ESHUTDOWN;
	}
	w->keepalive = next->keepalive;
	rc = services_apply(w, next, NULL, 0, err);
	if (rc != 0) {
		w->keepalive = old;
		return rc;
	}
	take_mpa_lists(w, next);
	smcr_reconfigure(w->eng, &next->smcr);
	devices_reload(w, next, err);
	read_subnets_anew(w);
	loop_again(w->loop);
	return 0;
}

static void
stop_accepting(struct worker *w)
{
	LIST_FOREACH(n, &w->services) {
		struct service *svc = CONTAINER_OF(n, struct service, node);
		int fd = listener_stop(svc);

		prewarm_stop(svc);
		if (fd >= 0)
			close(fd);
	}
}

void
worker_drain(struct worker *w, uint32_t deadline_ms, void (*done)(void *arg), void *arg)
{
	stop_accepting(w);
	smcr_drain(w->eng);
	w->stats.draining = true;
	w->drain.done = done;
	w->drain.arg = arg;
	worker_arm(w, &w->drain.timer, deadline_ms);
	loop_again(w->loop);
}

static void
stop_sessions(struct worker *w)
{
	uint32_t pos = 0;
	struct session *s;

	while ((s = idtable_next(&w->sessions, &pos)) != NULL)
		session_event(s, SEV_STOP);
}

void
worker_free(struct worker *w)
{
	struct list_node *n;

	if (w == NULL)
		return;
	loop_del_turn(w->loop, worker_turn, w);
	stop_accepting(w);
	if (w->eng != NULL) {
		/* First every peer is told, then what is left is cut off. */
		stop_sessions(w);
		(void)smcr_flush(w->eng);
		stop_sessions(w);
		probes_stop(w);
		reap(w);
		(void)smcr_flush(w->eng);
		log_engine(w);
	}
	while ((n = list_first(&w->services)) != NULL)
		service_drop(CONTAINER_OF(n, struct service, node));
	if (w->eng != NULL)
		devices_close(w);
	netwatch_free(w->netwatch);
	smcr_free(w->eng);
	timerq_fini(&w->timers);
	subnets_fini(&w->subnets);
	bufpool_fini(&w->bufs);
	slab_fini(&w->session_slab);
	slab_fini(&w->setup_slab);
	idtable_fini(&w->sessions);
	free(w);
}
