/*
 * The event loop, on libevent and one nested epoll descriptor. Owns both, the
 * signal events and the turn functions; the watched descriptors stay their
 * owners'. Called by everything in the daemon that waits.
 *
 * A turn: libevent sleeps (EVLOOP_ONCE), its callbacks run, then the turn
 * functions, always: with libevent's priorities a flush event starves behind
 * busy sockets. Sockets are not libevent events, because EV_READ misses a lone
 * urgent byte, no event at all misses a reset, EV_CLOSED spins on one, and
 * with EV_ET it misses it again.
 */
#include "daemon/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/minmax.h"

#define BATCH 256 /* epoll events taken a turn; more wait for the next turn */
#define TURNS_MAX 8
#define SIGS_MAX 8
#define NS_PER_US 1000
#define US_PER_S 1000000

struct turn {
	int64_t (*fn)(void *arg, int64_t now_ns);
	void (*clock)(void *arg, int64_t now_ns); /* NULL: it needs no time before its turn */
	void *arg;
};

struct loop_sig {
	struct loop *loop;
	struct event *ev;
	void (*cb)(void *arg);
	void *arg;
};

struct loop {
	struct event_base *base;
	struct event *ep_ev;
	struct event *timer;
	struct loop_sig sigs[SIGS_MAX];
	unsigned sig_cnt;
	int ep;
	bool stop;
	bool again;
	bool ticked; /* now_ns was read in this turn */
	int64_t now_ns;
	int64_t timer_at; /* what the timer is armed for; INT64_MAX = not armed */
	struct turn turns[TURNS_MAX];
	unsigned turn_cnt;
	/* The events being delivered: loop_del() blanks those of its descriptor. */
	struct epoll_event batch[BATCH];
	unsigned batch_pos, batch_len;
};

static int64_t
clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
tick(struct loop *l)
{
	if (l->ticked)
		return;
	l->ticked = true;
	l->now_ns = clock_ns();
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].fn != NULL && l->turns[i].clock != NULL)
			l->turns[i].clock(l->turns[i].arg, l->now_ns);
}

static void
on_epoll(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;

	(void)fd;
	(void)what;
	tick(l);
	int n = epoll_wait(l->ep, l->batch, BATCH, 0);
	l->batch_len = n > 0 ? (unsigned)n : 0;
	for (l->batch_pos = 0; l->batch_pos < l->batch_len;) {
		struct epoll_event *ev = &l->batch[l->batch_pos++];
		struct loop_io *io = ev->data.ptr;

		if (io != NULL)
			io->cb(io, ev->events);
	}
	l->batch_pos = l->batch_len = 0;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;

	(void)fd;
	(void)what;
	l->timer_at = INT64_MAX;
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct loop_sig *s = arg;

	(void)fd;
	(void)what;
	tick(s->loop);
	s->cb(s->arg);
}

struct loop *
loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->now_ns = clock_ns();
	l->timer_at = INT64_MAX;
	l->base = event_base_new();
	l->ep = epoll_create1(EPOLL_CLOEXEC);
	if (l->base == NULL || l->ep < 0)
		goto fail;
	l->ep_ev = event_new(l->base, l->ep, EV_READ | EV_PERSIST, on_epoll, l);
	l->timer = evtimer_new(l->base, on_timer, l);
	if (l->ep_ev == NULL || l->timer == NULL || event_add(l->ep_ev, NULL) != 0)
		goto fail;
	return l;
fail:
	loop_free(l);
	return NULL;
}

void
loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	for (unsigned i = 0; i < l->sig_cnt; i++)
		event_free(l->sigs[i].ev);
	if (l->ep_ev != NULL)
		event_free(l->ep_ev);
	if (l->timer != NULL)
		event_free(l->timer);
	if (l->base != NULL)
		event_base_free(l->base);
	if (l->ep >= 0)
		close(l->ep);
	free(l);
}

int
loop_add(struct loop *l, struct loop_io *io)
{
	struct epoll_event ev = {
		.events = LOOP_READ | LOOP_WRITE | LOOP_URGENT | LOOP_RDHUP | LOOP_ERR | LOOP_HUP | EPOLLET,
		.data.ptr = io,
	};

	return epoll_ctl(l->ep, EPOLL_CTL_ADD, io->fd, &ev) == 0 ? 0 : -errno;
}

void
loop_del(struct loop *l, struct loop_io *io)
{
	(void)epoll_ctl(l->ep, EPOLL_CTL_DEL, io->fd, NULL);
	for (unsigned i = l->batch_pos; i < l->batch_len; i++)
		if (l->batch[i].data.ptr == io)
			l->batch[i].data.ptr = NULL;
}

int
loop_signal(struct loop *l, int signo, void (*cb)(void *arg), void *arg)
{
	struct loop_sig *s = &l->sigs[l->sig_cnt];

	if (l->sig_cnt == SIGS_MAX)
		return -ENOSPC;
	*s = (struct loop_sig){ .loop = l, .cb = cb, .arg = arg };
	s->ev = evsignal_new(l->base, signo, on_signal, s);
	if (s->ev == NULL || evsignal_add(s->ev, NULL) != 0) {
		if (s->ev != NULL)
			event_free(s->ev);
		return -ENOMEM;
	}
	l->sig_cnt++;
	return 0;
}

int
loop_add_turn(struct loop *l, int64_t (*fn)(void *arg, int64_t now_ns), void *arg)
{
	if (l->turn_cnt == TURNS_MAX)
		return -ENOSPC;
	l->turns[l->turn_cnt++] = (struct turn){ .fn = fn, .arg = arg };
	return 0;
}

void
loop_set_clock(struct loop *l, void (*fn)(void *arg, int64_t now_ns), void *arg)
{
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].arg == arg)
			l->turns[i].clock = fn;
}

void
loop_del_turn(struct loop *l, int64_t (*fn)(void *arg, int64_t now_ns), void *arg)
{
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].fn == fn && l->turns[i].arg == arg)
			l->turns[i].fn = NULL;
}

int64_t
loop_now(const struct loop *l)
{
	return l->now_ns;
}

static int64_t
run_turns(struct loop *l)
{
	int64_t next = INT64_MAX;
	unsigned kept = 0;

	tick(l);
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].fn != NULL)
			next = min_i64(next, l->turns[i].fn(l->turns[i].arg, l->now_ns));
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].fn != NULL)
			l->turns[kept++] = l->turns[i];
	l->turn_cnt = kept;
	l->ticked = false;
	if (l->again)
		next = INT64_MIN;
	l->again = false;
	return next;
}

int
loop_run(struct loop *l)
{
	int64_t next;

	l->stop = false;
	next = run_turns(l);
	while (!l->stop) {
		bool at_once = next <= l->now_ns;

		/* A timer that fires too early costs one turn, so it is moved only to fire earlier. */
		if (!at_once && next < l->timer_at) {
			int64_t us = (next - l->now_ns + NS_PER_US - 1) / NS_PER_US;
			const struct timeval tv = { .tv_sec = us / US_PER_S, .tv_usec = us % US_PER_S };

			if (evtimer_add(l->timer, &tv) != 0)
				return -ENOMEM;
			l->timer_at = next;
		}
		if (event_base_loop(l->base, EVLOOP_ONCE | (at_once ? EVLOOP_NONBLOCK : 0)) < 0)
			return -EIO;
		next = run_turns(l);
	}
	l->stop = false;
	return 0;
}

void
loop_again(struct loop *l)
{
	l->again = true;
}

void
loop_stop(struct loop *l)
{
	l->stop = true;
}
