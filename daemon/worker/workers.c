/* Workers in threads; see workers.h. */
#include "daemon/worker/workers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "daemon/leg/circle.h"
#include "daemon/account/admission.h"
#include "daemon/service/accept_balance.h"
#include "daemon/target/targets.h"

#define PATIENCE_S 10 /* a worker that does not answer is logged at this interval */

struct member {
	struct workers *all;
	unsigned nr;
	struct loop *loop;
	struct mailbox mail; /* to it */
	struct worker *worker;
	pthread_t thread;
	bool running; /* main's: the thread exists */
	bool stop;    /* the thread's: it has to end */
	struct mail stopped, drained, failed;
	int err; /* of its loop */
};

struct workers {
	struct workers_hooks hooks;
	struct mailbox mail; /* to main */
	struct admissions admissions;
	struct targets_all targets;
	struct circles circles;
	struct accept_pauses pauses;
	struct mail follow; /* targets have changed: pending while following */
	atomic_bool following;
	void (*drained)(void *arg);
	void *drained_arg;
	pthread_mutex_t gate; /* a thread passes it before its loop */
	bool held;            /* main's: it holds the gate, no loop turns */
	unsigned draining;    /* workers that have not finished */
	bool ending;          /* no hook is called after this; set with the gate held */
	struct worker_peer *peers;
	unsigned cnt;
	struct member member[];
};

/* -- calls -- */

struct call {
	struct mail mail;
	struct worker *worker;
	void (*fn)(struct worker *, void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t over_cond;
	bool over;
};

static void
on_call(struct mail *mail)
{
	struct call *c = CONTAINER_OF(mail, struct call, mail);

	c->fn(c->worker, c->arg);
	(void)pthread_mutex_lock(&c->lock);
	c->over = true;
	/* Under the lock: main, which owns the call, cannot return earlier. */
	(void)pthread_cond_signal(&c->over_cond);
	(void)pthread_mutex_unlock(&c->lock);
}

static void
wait_for(struct call *c, unsigned nr)
{
	struct timespec until;
	unsigned waited_s = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	(void)pthread_mutex_lock(&c->lock);
	while (!c->over) {
		int rc = pthread_cond_clockwait(&c->over_cond, &c->lock, CLOCK_MONOTONIC, &until);

		if (rc != ETIMEDOUT || c->over)
			continue;
		until.tv_sec += PATIENCE_S;
		waited_s += PATIENCE_S;
		log_msg(LOG_LVL_ERROR, "worker does not answer: worker=%u seconds=%u", nr + 1, waited_s);
	}
	(void)pthread_mutex_unlock(&c->lock);
}

void
workers_call(struct workers *ws, unsigned nr, void (*fn)(struct worker *, void *arg), void *arg)
{
	struct member *m = &ws->member[nr];
	struct call c = { .mail = { .fn = on_call },
		.worker = m->worker,
		.fn = fn,
		.arg = arg,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.over_cond = PTHREAD_COND_INITIALIZER };

	if (!m->running || ws->held) {
		fn(m->worker, arg);
		return;
	}
	mailbox_post(&m->mail, &c.mail);
	wait_for(&c, nr);
	(void)pthread_cond_destroy(&c.over_cond);
	(void)pthread_mutex_destroy(&c.lock);
}

void
workers_call_all(struct workers *ws, void (*fn)(struct worker *, void *arg), void *arg)
{
	for (unsigned i = 0; i < ws->cnt; i++)
		workers_call(ws, i, fn, arg);
}

unsigned
workers_cnt(const struct workers *ws)
{
	return ws->cnt;
}

unsigned
workers_of_group(const struct workers *ws, uint32_t group_id)
{
	return (group_id - 1) % ws->cnt; /* engine_config */
}

struct mailbox *
workers_mailbox(struct workers *ws)
{
	return &ws->mail;
}

struct targets_all *
workers_targets(struct workers *ws)
{
	return &ws->targets;
}

struct accept_pauses *
workers_accept_pauses(struct workers *ws)
{
	return &ws->pauses;
}

/* -- messages about a configuration: those of the first worker, and of another only when it fails -- */

struct msgs {
	FILE *to, *err;
	char *text;
	size_t len;
};

static void
msgs_begin(struct msgs *t, FILE *err, unsigned nr)
{
	*t = (struct msgs){ .to = err, .err = err };
	if (nr > 0)
		t->err = open_memstream(&t->text, &t->len);
	if (t->err == NULL)
		t->err = err;
}

static void
msgs_end(struct msgs *t, int rc)
{
	if (t->err == t->to)
		return;
	(void)fclose(t->err);
	if (rc != 0 && t->text != NULL)
		fputs(t->text, t->to);
	free(t->text);
}

unsigned
workers_wanted(const struct config *cfg)
{
	cpu_set_t set;
	int cnt = 1;

	if (cfg->workers != 0)
		return cfg->workers;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cnt = CPU_COUNT(&set);
	return cnt < CONFIG_WORKERS_MAX ? (unsigned)cnt : CONFIG_WORKERS_MAX;
}

static void
on_stop(struct mail *mail)
{
	struct member *m = CONTAINER_OF(mail, struct member, stopped);

	m->stop = true;
	loop_stop(m->loop);
}

static void
on_failed(struct mail *mail)
{
	const struct member *m = CONTAINER_OF(mail, struct member, failed);

	if (!m->all->ending)
		m->all->hooks.failed(m->all->hooks.arg, m->nr, m->err);
}

static void
on_all_drained(struct mail *mail)
{
	struct workers *ws = CONTAINER_OF(mail, struct member, drained)->all;

	if (--ws->draining == 0 && !ws->ending && ws->drained != NULL)
		ws->drained(ws->drained_arg);
}

static void *
workers_run(void *arg)
{
	struct member *m = arg;
	char name[16];

	(void)snprintf(name, sizeof(name), "smcrd-worker-%u", m->nr + 1);
	(void)pthread_setname_np(pthread_self(), name);
	(void)pthread_mutex_lock(&m->all->gate);
	bool runs = !m->all->ending;
	(void)pthread_mutex_unlock(&m->all->gate);
	if (runs)
		m->err = loop_run(m->loop);
	if (m->err != 0)
		mailbox_post(&m->all->mail, &m->failed);
	while (!m->stop)
		mailbox_wait(&m->mail);
	worker_free(m->worker);
	return NULL;
}

static int
member_init(struct member *m, const struct config *cfg, const struct tcp_option *option, struct listen_socket *socks,
    unsigned sock_cnt, FILE *err)
{
	const struct worker_place place = {
		.nr = m->nr,
		.cnt = m->all->cnt,
		.admissions = &m->all->admissions,
		.targets = &m->all->targets,
		.circles = &m->all->circles,
		.all = m->all->peers,
		.pauses = &m->all->pauses,
		.news = m->all->hooks.news,
	};
	int rc = -ENOMEM;

	m->loop = loop_new();
	if (m->loop != NULL)
		rc = mailbox_init(&m->mail, m->loop);
	m->all->peers[m->nr].mail = &m->mail;
	if (rc != 0)
		fprintf(err, "worker: cannot create an event loop: %s\n", strerror(-rc));
	else
		rc = worker_new(m->loop, &place, cfg, option, socks, sock_cnt, err, &m->worker);
	return rc;
}

/* One worker after the other: those that share a port have to listen again in their order. */
static void
on_follow(struct mail *mail)
{
	struct workers *ws = CONTAINER_OF(mail, struct workers, follow);

	atomic_store(&ws->following, false);
	if (!ws->ending)
		workers_call_all(ws, worker_follow_targets, NULL);
}

static void
on_targets_changed(void *arg)
{
	struct workers *ws = arg;

	if (!atomic_exchange(&ws->following, true))
		mailbox_post(&ws->mail, &ws->follow);
}

int
workers_new(struct loop *loop, unsigned cnt, const struct config *cfg, const struct tcp_option *option,
    struct listen_socket *socks, unsigned sock_cnt, const struct workers_hooks *hooks, FILE *err, struct workers **out)
{
	struct workers *ws = calloc(1, sizeof(*ws) + cnt * sizeof(ws->member[0]));
	struct worker_peer *peers = calloc(cnt, sizeof(*peers));
	int rc = ws == NULL || peers == NULL ? -ENOMEM : mailbox_init(&ws->mail, loop);

	if (rc != 0) {
		fprintf(err, "worker: %s\n", strerror(-rc));
		free(peers);
		free(ws);
		return rc;
	}
	ws->peers = peers;
	ws->hooks = *hooks;
	ws->cnt = cnt;
	(void)pthread_mutex_init(&ws->gate, NULL);
	admissions_init(&ws->admissions);
	targets_all_init(&ws->targets);
	ws->targets.changed = on_targets_changed;
	ws->targets.arg = ws;
	ws->follow.fn = on_follow;
	circles_init(&ws->circles);
	accept_pauses_init(&ws->pauses, hooks->news);
	for (unsigned i = 0; i < cnt && rc == 0; i++) {
		struct member *m = &ws->member[i];
		struct msgs msgs;

		*m = (struct member){
			.all = ws, .nr = i, .stopped.fn = on_stop, .drained.fn = on_all_drained, .failed.fn = on_failed
		};
		msgs_begin(&msgs, err, i);
		rc = member_init(m, cfg, option, socks + (size_t)i * sock_cnt, sock_cnt, msgs.err);
		msgs_end(&msgs, rc);
	}
	if (rc != 0)
		workers_free(ws);
	else
		*out = ws;
	return rc;
}

static void
hold(struct workers *ws)
{
	if (ws->held)
		return;
	(void)pthread_mutex_lock(&ws->gate);
	ws->held = true;
}

int
workers_start(struct workers *ws)
{
	sigset_t all, before;
	int rc = 0;

	hold(ws);
	/* Main handles the signals. SIGSYS is delivered to the thread that made the refused call. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGSYS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; i < ws->cnt && rc == 0; i++) {
		rc = -pthread_create(&ws->member[i].thread, NULL, workers_run, &ws->member[i]);
		ws->member[i].running = rc == 0;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void
workers_release(struct workers *ws)
{
	if (!ws->held)
		return;
	ws->held = false;
	(void)pthread_mutex_unlock(&ws->gate);
}

void
workers_free(struct workers *ws)
{
	if (ws == NULL)
		return;
	/* Threads that still wait at the gate do not start, as their sockets may be lent. */
	hold(ws);
	ws->ending = true;
	workers_release(ws);
	for (unsigned i = 0; i < ws->cnt; i++)
		if (ws->member[i].running)
			mailbox_post(&ws->member[i].mail, &ws->member[i].stopped);
	for (unsigned i = 0; i < ws->cnt; i++)
		if (ws->member[i].running)
			(void)pthread_join(ws->member[i].thread, NULL);
		else
			worker_free(ws->member[i].worker);
	/* The last mails between them: connections to be reset. */
	for (unsigned i = 0; i < ws->cnt; i++)
		if (ws->member[i].mail.loop != NULL)
			mailbox_run(&ws->member[i].mail);
	for (unsigned i = 0; i < ws->cnt; i++) {
		mailbox_fini(&ws->member[i].mail);
		loop_free(ws->member[i].loop);
	}
	/* Their last mails to main: checks of control clients have memory to free. */
	mailbox_run(&ws->mail);
	mailbox_fini(&ws->mail);
	admissions_fini(&ws->admissions);
	targets_all_fini(&ws->targets);
	circles_fini(&ws->circles);
	accept_pauses_fini(&ws->pauses);
	(void)pthread_mutex_destroy(&ws->gate);
	free(ws->peers);
	free(ws);
}

/* -- reload and drain -- */

struct reload {
	const struct config *next;
	struct listen_socket_list socks; /* copies of the first worker's new sockets, for the next one */
	FILE *err;
	int rc;
};

static void
prepare(struct worker *w, void *arg)
{
	struct reload *r = arg;

	r->rc = worker_prepare(w, r->next, r->socks.v, r->socks.cnt, r->err);
}

static void
share(struct worker *w, void *arg)
{
	struct reload *r = arg;

	r->rc = worker_share(w, &r->socks);
	if (r->rc != 0)
		fprintf(r->err, "worker: cannot share UNIX sockets: %s\n", strerror(-r->rc));
}

/* Prepares one worker after the other; those after the first use its UNIX sockets. Returns how many are ready. */
static unsigned
prepare_all(struct workers *ws, struct reload *r, FILE *err)
{
	struct msgs msgs;
	unsigned ready = 0;

	while (ready < ws->cnt && r->rc == 0) {
		msgs_begin(&msgs, err, ready);
		r->err = msgs.err;
		if (ready > 0)
			workers_call(ws, 0, share, r);
		if (r->rc == 0)
			workers_call(ws, ready, prepare, r);
		msgs_end(&msgs, r->rc);
		listen_socket_list_fini(&r->socks);
		ready += r->rc == 0;
	}
	return ready;
}

static void
commit(struct worker *w, void *arg)
{
	const struct reload *r = arg;

	worker_commit(w, r->next, r->err);
}

int
workers_reload(struct workers *ws, const struct config *next, FILE *err)
{
	struct reload r = { .next = next };
	const unsigned ready = prepare_all(ws, &r, err);
	struct msgs msgs;

	for (unsigned i = 0; i < ready && r.rc != 0; i++)
		workers_call(ws, i, worker_abort, NULL);
	for (unsigned i = 0; i < ws->cnt && r.rc == 0; i++) {
		msgs_begin(&msgs, err, i);
		r.err = msgs.err;
		workers_call(ws, i, commit, &r);
		msgs_end(&msgs, 0);
	}
	return r.rc;
}

struct drain {
	struct workers *all;
	uint32_t limit_ms;
	unsigned nr;
};

static void
post_drained(void *arg)
{
	struct member *m = arg;

	mailbox_post(&m->all->mail, &m->drained);
}

static void
drain(struct worker *w, void *arg)
{
	struct drain *d = arg;

	worker_drain(w, d->limit_ms, d->all->drained != NULL ? post_drained : NULL, &d->all->member[d->nr++]);
}

void
workers_drain(struct workers *ws, uint32_t limit_ms, void (*done)(void *arg), void *arg)
{
	struct drain d = { .all = ws, .limit_ms = limit_ms };

	ws->drained = done;
	ws->drained_arg = arg;
	ws->draining = ws->cnt;
	workers_call_all(ws, drain, &d);
}

static void
undrain(struct worker *w, void *arg)
{
	int *err = arg, rc = worker_undrain(w);

	*err = rc != 0 ? rc : *err;
}

int
workers_undrain(struct workers *ws)
{
	int rc = 0;

	ws->drained = NULL;
	workers_call_all(ws, undrain, &rc);
	/* A worker that had drained may have a pending mail, which is part of the worker and needed again. */
	mailbox_run(&ws->mail);
	ws->draining = 0;
	return rc;
}
