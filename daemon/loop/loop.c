/* The event loop: one epoll descriptor for all sockets and signals. Owns it and the turn functions.
 *
 * A turn: one epoll_wait, the callbacks of ready descriptors, then always the turn functions. Not libevent: EV_READ
 * misses a lone urgent byte, EV_CLOSED spins on a reset or, with EV_ET, misses it, and with its priorities a flush event
 * starves behind busy sockets. Time and stalls: doc/daemon.md. CLOCK_BOOTTIME would also count a suspended host. */
#include "daemon/loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/minmax.h"

#define BATCH 256       /* epoll events taken per turn; the others wait for the next turn */
#define WANTED_NS 10000 /* a poll that takes longer: another task ran meanwhile */
#define TURNS_MAX 8
#define SIGS_MAX 8
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000
#define STALL_NS (1000LL * NS_PER_MS)       /* a turn starts this late: the thread was stalled */
#define STALL_COUNTS_NS (100LL * NS_PER_MS) /* this much of a stall counts, so slow turns do not stop the clock */
#define SLEEP_NS (10000LL * NS_PER_MS)      /* a longer sleep would hide a stall of that length */

struct turn {
	int64_t (*fn)(void *arg, int64_t now_ns);
	void (*clock)(void *arg, int64_t now_ns); /* NULL: not called with the time before its turn */
	void *arg;
};

struct loop_sig {
	struct loop_io io; /* a signalfd */
	void (*cb)(void *arg);
	void *arg;
};

struct loop {
	struct loop_sig sigs[SIGS_MAX];
	unsigned sig_cnt;
	sigset_t open; /* the thread's signal mask before the first loop_signal() */
	int ep;
	struct loop_io alarm; /* a timerfd that ends a sleep */
	int64_t alarm_ns;     /* CLOCK_MONOTONIC, with stalls */
	bool stop;
	bool again;
	bool ticked; /* now_ns was read in this turn */
	int64_t now_ns;
	int64_t stalled_ns; /* total stalled time, without the part that counts */
	int64_t asked_ns;   /* longest planned wait; -1: no wait */
	struct log_limit stall_log;
	struct spin spin;
	struct turn turns[TURNS_MAX];
	unsigned turn_cnt;
	/* The events being delivered: loop_del() clears those of its descriptor. */
	struct epoll_event batch[BATCH];
	unsigned batch_pos, batch_len;
};

static void
loop_tick(struct loop *l)
{
	int64_t late_ns;

	if (l->ticked)
		return;
	l->ticked = true;
	late_ns = clock_ns() - l->stalled_ns - l->now_ns;
	/* The start of the stall is unknown: all time since the last turn is left out. */
	if (l->asked_ns >= 0 && late_ns > l->asked_ns + STALL_NS) {
		l->stalled_ns += late_ns - STALL_COUNTS_NS;
		l->now_ns += STALL_COUNTS_NS;
		log_limited(&l->stall_log, l->now_ns, LOG_LVL_NOTICE, "thread stalled: for_ms=%lld",
		    (long long)(late_ns / NS_PER_MS));
	} else {
		l->now_ns += late_ns;
	}
	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].fn != NULL && l->turns[i].clock != NULL)
			l->turns[i].clock(l->turns[i].arg, l->now_ns);
}

/* It has ended the sleep, and is not set any longer. Not read: the next setting rearms the edge. */
static void
on_alarm(struct loop_io *io, unsigned events)
{
	(void)events;
	CONTAINER_OF(io, struct loop, alarm)->alarm_ns = 0;
}

/* It stays when an event ends the sleep earlier. A timeout of epoll_wait() would set the processor's timer at the begin
 * and the end of each sleep: 1 to 3 us on a virtual machine. In whole milliseconds, so that near times are one. */
static void
set_alarm(struct loop *l, int64_t until_ns)
{
	int64_t at_ns = (until_ns + l->stalled_ns + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;

	if (l->alarm_ns > l->now_ns + l->stalled_ns && l->alarm_ns <= at_ns)
		return;
	const struct itimerspec its = { .it_value = { .tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S } };

	l->alarm_ns = timerfd_settime(l->alarm.fd, TFD_TIMER_ABSTIME, &its, NULL) == 0 ? at_ns : 0;
}

/* To the end: the same signal may be pending for the thread and for the process, and the edge does not come again. */
static void
on_signal(struct loop_io *io, unsigned events)
{
	struct loop_sig *s = CONTAINER_OF(io, struct loop_sig, io);
	struct signalfd_siginfo info;

	(void)events;
	while (read(io->fd, &info, sizeof(info)) > 0)
		s->cb(s->arg);
}

struct loop *
loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->now_ns = clock_ns();
	l->asked_ns = -1;
	l->stall_log = (struct log_limit){ .burst = 3, .interval_ms = 60000 };
	l->ep = epoll_create1(EPOLL_CLOEXEC);
	l->alarm = (struct loop_io){ .fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
		.cb = on_alarm };
	if (l->ep >= 0 && l->alarm.fd >= 0 && loop_add(l, &l->alarm) == 0)
		return l;
	loop_free(l);
	return NULL;
}

void
loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	for (unsigned i = 0; i < l->sig_cnt; i++)
		close(l->sigs[i].io.fd);
	if (l->sig_cnt > 0)
		(void)pthread_sigmask(SIG_SETMASK, &l->open, NULL);
	if (l->alarm.fd >= 0)
		close(l->alarm.fd);
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
	sigset_t blocked, before;

	if (l->sig_cnt == SIGS_MAX)
		return -ENOSPC;
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, signo);
	int fd = signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*s = (struct loop_sig){ .io = { .fd = fd, .cb = on_signal }, .cb = cb, .arg = arg };
	int rc = loop_add(l, &s->io);
	if (rc != 0) {
		close(fd);
		return rc;
	}
	(void)pthread_sigmask(SIG_BLOCK, &blocked, &before);
	if (l->sig_cnt++ == 0)
		l->open = before;
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

int64_t
loop_stalled(const struct loop *l)
{
	return l->stalled_ns;
}

static int64_t
run_turns(struct loop *l)
{
	int64_t next = INT64_MAX;
	unsigned kept = 0;

	loop_tick(l);
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

/* Polls for ns at most without sleeping and yields between two polls. Returns the number of events. */
static int
look_awhile(struct loop *l, int64_t from_ns, int64_t ns)
{
	int64_t now = from_ns, before;
	int n;

	do {
		(void)sched_yield();
		before = now;
		n = epoll_wait(l->ep, l->batch, BATCH, 0);
		now = clock_ns();
	} while (n == 0 && now - from_ns < ns && now - before < WANTED_NS);
	spin_ended(&l->spin, from_ns, now, n > 0 ? SPIN_HIT : now - before >= WANTED_NS ? SPIN_WANTED : SPIN_MISS);
	return n;
}

/* Returns like epoll_wait(). */
static int
wait_until(struct loop *l, int64_t until_ns)
{
	const bool sleeps = until_ns > l->now_ns;
	int64_t from_ns = 0, ns = 0;
	int n = 0;

	if (sleeps)
		until_ns = min_i64(until_ns, l->now_ns + SLEEP_NS);
	if (l->spin.max_ns > 0 && sleeps) {
		from_ns = clock_ns();
		ns = spin_begin(&l->spin, from_ns);
	}
	l->asked_ns = ns + (sleeps ? until_ns - l->now_ns + NS_PER_MS : 0);
	if (ns > 0)
		n = look_awhile(l, from_ns, ns);
	if (n == 0 && sleeps)
		set_alarm(l, until_ns);
	if (n == 0)
		n = epoll_wait(l->ep, l->batch, BATCH, sleeps ? -1 : 0);
	if (from_ns != 0)
		spin_waited(&l->spin, from_ns, clock_ns());
	return n;
}

int
loop_run(struct loop *l)
{
	int64_t next;

	l->stop = false;
	l->asked_ns = -1;
	next = run_turns(l);
	while (!l->stop) {
		int n = wait_until(l, next);

		if (n < 0 && errno != EINTR)
			return -errno;
		l->batch_len = n > 0 ? (unsigned)n : 0;
		loop_tick(l);
		for (l->batch_pos = 0; l->batch_pos < l->batch_len;) {
			struct epoll_event *ev = &l->batch[l->batch_pos++];
			struct loop_io *io = ev->data.ptr;

			if (io != NULL)
				io->cb(io, ev->events);
		}
		l->batch_pos = l->batch_len = 0;
		next = run_turns(l);
	}
	l->stop = false;
	return 0;
}

void
loop_set_spin(struct loop *l, int64_t max_ns)
{
	spin_init(&l->spin, max_ns, clock_ns());
}

const struct spin_counters *
loop_spin_counters(const struct loop *l)
{
	return &l->spin.ctr;
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
