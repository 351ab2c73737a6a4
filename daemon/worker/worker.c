/* Combines environment, engine, devices, services and sessions, and runs their turn. session.c handles connections. */
#include "daemon/worker/worker.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/log/log_text.h"
#include "daemon/account/peer_name.h"
#include "daemon/service/service.h"
#include "daemon/session/session.h"
#include "daemon/worker/worker_int.h"
#include "smcr/proof.h"

#define END_MS 5000 /* a card that keeps queue pairs after this time has them until the process ends */
#define TRIM_MS 2000

/* By the configuration, which may know more than the peer has sent. */
static void
name_peer(const struct worker *w, struct event *e)
{
	struct sockaddr_storage ss;
	bool is_target = addr_parse_port(e->peer, &ss) == 0;
	unsigned cnt;

	if (!is_target && addr_parse(e->peer, &ss) != 0)
		return;
	const struct service *svc = peer_name_find(&w->sessions, &ss, &cnt);
	if (svc == NULL)
		return;
	if (is_target && cnt == 1)
		(void)snprintf(e->service, sizeof(e->service), "%s", svc->settings->cfg.name);
	if (peer_name_of(svc, &ss)[0] != '\0')
		(void)snprintf(e->host, sizeof(e->host), "%s", peer_name_of(svc, &ss));
}

static void
log_engine(struct worker *w)
{
	struct smcr_log l;
	struct event e;
	char text[LOG_TEXT_MAX];

	while (smcr_next_log(w->env.eng, &l)) {
		if (log_text_event(&l, &e)) {
			name_peer(w, &e);
			session_pool_report(&w->sessions, &e);
		} else {
			log_msg(log_text_engine(&l, text, sizeof(text)), "%s", text);
		}
	}
	smcr_log_states(w->env.eng, log_is_on(LOG_LVL_DEBUG));
}

/* Before the first callback of a turn, including signals and the control socket. */
static void
worker_clock(void *arg, int64_t now_ns)
{
	struct worker *w = arg;

	w->env.now_ns = now_ns;
	smcr_set_now(w->env.eng, now_ns);
	smcr_stood_still(w->env.eng, loop_stalled(w->env.loop));
	history_follow(&w->sessions, now_ns + loop_stalled(w->env.loop));
}

static void
on_drain_timeout(struct timer *t)
{
	struct worker *w = CONTAINER_OF(t, struct worker, drain.timer);
	void (*done)(void *) = w->drain.done;

	w->drain.done = NULL;
	if (done != NULL)
		done(w->drain.arg);
}

/* A stream of TLS takes tens of KiB. What many at once have freed, malloc would keep. */
static void
on_trim(struct timer *t)
{
	(void)t;
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}

static int64_t
worker_turn(void *arg, int64_t now_ns)
{
	struct worker *w = arg;

	w->turns++;
	devices_follow(w->devices);
	smcr_poll(w->env.eng, now_ns);
	timerq_run(&w->env.timers, now_ns);
	bool more = devices_listen(w->devices);
	more = session_pool_accept(&w->sessions) || more;
	session_pool_pump(&w->sessions);
	more = smcr_flush(w->env.eng) || more;
	session_pool_reap(&w->sessions);
	const uint64_t freed = tls_counts()->freed;
	if (w->tls_freed != freed && !timer_armed(&w->trim))
		env_arm(&w->env, &w->trim, TRIM_MS);
	w->tls_freed = freed;
	log_engine(w);
	int64_t at = min_i64(smcr_deadline(w->env.eng), devices_log(w->devices));
	at = min_i64(at, timerq_next(&w->env.timers));
	if (more || session_pool_has_work(&w->sessions))
		at = INT64_MIN;
	if (w->drain.done != NULL && w->sessions.sessions.used == 0 && w->sessions.arrivals_cnt == 0 &&
	    smcr_idle(w->env.eng))
		on_drain_timeout(&w->drain.timer);
	return at;
}

static struct smcr_config
engine_config(const struct worker *w, const struct config *cfg)
{
	const uint32_t cnt = w->sessions.place.cnt;
	struct smcr_config smcr = cfg->smcr;

	smcr.features = CLC_FEATURES;
	if (!cfg->open_over_link)
		smcr.features &= (uint8_t)~CLC_FEATURE_OPEN;
	memcpy(smcr.host, w->host, sizeof(smcr.host));
	/* Memory limits are divided, as workers do not share memory. */
	smcr.rmb_bytes_max /= cnt;
	smcr.sndbuf_bytes_max /= cnt;
	smcr.conns_max = (smcr.conns_max + cnt - 1) / cnt;
	smcr.group_first = w->sessions.place.nr + 1;
	smcr.group_step = cnt;
	return smcr;
}

/* On a single processor the awaited event cannot occur during a poll. */
static int64_t
spin_ns(const struct config *cfg)
{
	cpu_set_t cpus;

	if (cfg->spin_us != CONFIG_SPIN_AUTO)
		return cfg->spin_us * 1000LL;
	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1 ? SPIN_AUTO_NS : 0;
}

static void
close_unused(const struct worker *w, struct listen_socket *socks, unsigned cnt)
{
	char text[ADDR_STR_MAX];

	for (unsigned i = 0; i < cnt; i++) {
		if (socks[i].fd < 0)
			continue;
		const struct sockaddr_storage ss = net_local_addr(socks[i].fd);
		if (w->sessions.place.nr == 0)
			log_msg(LOG_LVL_WARNING, "passed socket is not a listener of a service, closed: address=%s",
			    addr_format_port(&ss, text, sizeof(text)));
		listen_socket_close(&socks[i]);
	}
}

static void
worker_hold_proof(void *proof, bool on)
{
	if (on)
		(void)tls_proof_get(proof);
	else
		tls_proof_put(proof);
}

/* Engine, devices, services: 0, or -errno with the reason in err. */
static int
start(struct worker *w, const struct config *cfg, struct listen_socket *socks, unsigned sock_cnt, FILE *err)
{
	const struct devices_gate gate = { mpa_may_connect, &w->sessions };
	const struct smcr_config smcr = engine_config(w, cfg);
	int rc = timerq_reserve(&w->env.timers, 3); /* drain, trim, sessions.acks */

	if (rc == 0)
		w->env.eng = smcr_new(&smcr, &w->env.rng, w->env.now_ns);
	if (w->env.eng == NULL) {
		fprintf(err, "worker: %s\n", strerror(ENOMEM));
		return -ENOMEM;
	}
	smcr_set_dial_policy(w->env.eng, mpa_may_dial, &w->sessions);
	smcr_set_proofs(w->env.eng, worker_hold_proof);
	rc = devices_new(&w->env, cfg, &gate, err, &w->devices);
	if (rc != 0)
		return rc;
	w->sessions.devices = w->devices;
	rc = services_prepare(&w->sessions, cfg, socks, sock_cnt, true, err, &w->plan);
	if (rc != 0)
		return rc;
	rc = loop_add_turn(w->env.loop, worker_turn, w);
	if (rc != 0) {
		fprintf(err, "worker: %s\n", strerror(-rc));
		worker_abort(w, NULL);
		return rc;
	}
	loop_set_clock(w->env.loop, worker_clock, w);
	loop_set_spin(w->env.loop, spin_ns(cfg));
	services_commit(w->plan, err);
	w->plan = NULL;
	close_unused(w, socks, sock_cnt);
	return 0;
}

int
worker_new(struct loop *loop, const struct worker_place *place, const struct config *cfg,
    const struct tcp_option *option, struct listen_socket *socks, unsigned sock_cnt, FILE *err, struct worker **out)
{
	struct worker *w = calloc(1, sizeof(*w));
	char name[256] = "";

	if (w == NULL) {
		fprintf(err, "worker: %s\n", strerror(ENOMEM));
		return -ENOMEM;
	}
	w->env = (struct env){ .loop = loop, .now_ns = loop_now(loop) };
	w->started_ns = w->env.now_ns;
	/* Padded with blanks; truncated if too long, as in Linux. */
	memset(w->host, ' ', sizeof(w->host));
	if (gethostname(name, sizeof(name) - 1) == 0)
		memcpy(w->host, name, strnlen(name, sizeof(w->host)));
	rng_init_kernel(&w->env.rng);
	timerq_init(&w->env.timers);
	timer_init(&w->drain.timer, on_drain_timeout);
	timer_init(&w->trim, on_trim);
	session_pool_init(&w->sessions, &w->env, place, cfg, option);
	int rc = start(w, cfg, socks, sock_cnt, err);
	if (rc != 0)
		worker_free(w);
	else
		*out = w;
	return rc;
}

int
worker_prepare(struct worker *w, const struct config *next, struct listen_socket *socks, unsigned sock_cnt, FILE *err)
{
	if (w->draining) {
		fprintf(err, "the daemon is ending: no reload\n");
		return -ESHUTDOWN;
	}
	return services_prepare(&w->sessions, next, socks, sock_cnt, false, err, &w->plan);
}

int
worker_share(const struct worker *w, struct listen_socket_list *socks)
{
	return services_share(w->plan, socks);
}

void
worker_commit(struct worker *w, const struct config *next, FILE *err)
{
	const struct smcr_config smcr = engine_config(w, next);

	w->sessions.cfg = next;
	tls_ctx_put(w->sessions.tls_ctx);
	w->sessions.tls_ctx = tls_ctx_get(next->tls_ctx);
	acks_reload(&w->sessions);
	services_commit(w->plan, err);
	w->plan = NULL;
	trust_judge(&w->sessions);
	smcr_reconfigure(w->env.eng, &smcr);
	devices_reload(w->devices, next, err);
	loop_set_spin(w->env.loop, spin_ns(next));
	loop_again(w->env.loop);
}

void
worker_use_tls(struct worker *w, void *tls_ctx)
{
	if (w->sessions.place.nr == 0)
		w->sessions.stats.tls_reread++;
	tls_ctx_put(w->sessions.tls_ctx);
	w->sessions.tls_ctx = tls_ctx_get(tls_ctx);
	trust_judge(&w->sessions);
	loop_again(w->env.loop);
}

void
worker_count_tls_refused(struct worker *w, void *unused)
{
	(void)unused;
	w->sessions.stats.tls_refused++;
}

void
worker_abort(struct worker *w, void *unused)
{
	(void)unused;
	services_abort(w->plan);
	w->plan = NULL;
}

void
worker_drain(struct worker *w, uint32_t limit_ms, void (*done)(void *arg), void *arg)
{
	(void)session_pool_drain(&w->sessions, true);
	smcr_drain(w->env.eng, true);
	w->draining = true;
	w->drain.done = done;
	w->drain.arg = arg;
	if (done != NULL && limit_ms != WORKER_NO_LIMIT)
		env_arm(&w->env, &w->drain.timer, limit_ms);
	loop_again(w->env.loop);
}

void
worker_limit_drain(struct worker *w, void *limit_ms)
{
	if (w->drain.done == NULL)
		return;
	if (*(uint32_t *)limit_ms == WORKER_NO_LIMIT)
		timer_cancel(&w->env.timers, &w->drain.timer);
	else
		env_arm(&w->env, &w->drain.timer, *(uint32_t *)limit_ms);
	loop_again(w->env.loop);
}

int
worker_undrain(struct worker *w)
{
	w->draining = false;
	w->drain.done = NULL;
	timer_cancel(&w->env.timers, &w->drain.timer);
	smcr_drain(w->env.eng, false);
	loop_again(w->env.loop);
	return session_pool_drain(&w->sessions, false);
}

/* Cards may need time to release queue pairs. */
static int64_t
ending_turn(void *arg, int64_t now_ns)
{
	struct worker *w = arg;

	smcr_poll(w->env.eng, now_ns);
	(void)smcr_flush(w->env.eng);
	if (!smcr_has_devices(w->env.eng) || now_ns >= w->ends_ns)
		loop_stop(w->env.loop);
	return min_i64(smcr_deadline(w->env.eng), w->ends_ns);
}

void
worker_free(struct worker *w)
{
	if (w == NULL)
		return;
	loop_del_turn(w->env.loop, worker_turn, w);
	if (w->env.eng != NULL) {
		session_pool_stop(&w->sessions);
		log_engine(w);
	}
	if (w->devices != NULL)
		devices_close(w->devices);
	if (w->env.eng != NULL && smcr_has_devices(w->env.eng)) {
		w->ends_ns = w->env.now_ns + END_MS * NS_PER_MS;
		if (loop_add_turn(w->env.loop, ending_turn, w) == 0) {
			(void)loop_run(w->env.loop);
			loop_del_turn(w->env.loop, ending_turn, w);
		}
	}
	devices_free(w->devices);
	smcr_free(w->env.eng);
	timerq_fini(&w->env.timers);
	session_pool_fini(&w->sessions);
	free(w);
}
