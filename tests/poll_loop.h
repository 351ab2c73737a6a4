/* A small event loop over epoll for test programs that drive RNIC devices: edge-triggered, as struct rnic_loop wants
 * it. Not for the daemon. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "rnic/rnic.h"

#define POLL_LOOP_FDS 4096

struct poll_loop {
	int ep;
	/* The time for devices; 0: the clock's. For what has to come within a time limit, however busy the machine. */
	int64_t stands_ns;

	struct {
		rnic_io_cb cb;
		void *arg;
	} fds[POLL_LOOP_FDS]; /* by descriptor */
};

static inline int64_t
poll_loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int
poll_loop_watch(void *ctx, int fd, rnic_io_cb cb, void *arg)
{
	struct poll_loop *l = ctx;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd };

	if (fd >= POLL_LOOP_FDS)
		return -EMFILE;
	l->fds[fd].cb = cb;
	l->fds[fd].arg = arg;
	return epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static inline void
poll_loop_unwatch(void *ctx, int fd)
{
	struct poll_loop *l = ctx;

	if (l->fds[fd].cb == NULL)
		return;
	l->fds[fd].cb = NULL;
	(void)epoll_ctl(l->ep, EPOLL_CTL_DEL, fd, NULL);
}

static inline void
poll_loop_init(struct poll_loop *l)
{
	*l = (struct poll_loop){ .ep = epoll_create1(EPOLL_CLOEXEC) };
	if (l->ep < 0)
		abort();
}

static inline void
poll_loop_fini(struct poll_loop *l)
{
	close(l->ep);
}

static inline struct rnic_loop
poll_loop_rnic(struct poll_loop *l)
{
	return (struct rnic_loop){ .ctx = l, .watch = poll_loop_watch, .unwatch = poll_loop_unwatch };
}

/* One turn: progress, readiness (waits at most max_ms), flush. */
static inline void
poll_loop_turn(struct poll_loop *l, struct rnic_dev *const *devs, unsigned n, int max_ms)
{
	struct epoll_event ev[64];
	int64_t now = l->stands_ns != 0 ? l->stands_ns : poll_loop_now();
	int wait = max_ms;

	for (unsigned i = 0; i < n; i++) {
		devs[i]->now_ns = now;
		devs[i]->ops->flush(devs[i]);
		if (devs[i]->ops->deadline(devs[i]) <= now) {
			wait = 0;
		} else if (devs[i]->ops->deadline(devs[i]) != INT64_MAX) {
			int64_t ms = (devs[i]->ops->deadline(devs[i]) - now) / 1000000 + 1;

			if (ms < wait)
				wait = (int)ms;
		}
	}
	int got = epoll_wait(l->ep, ev, 64, wait);
	now = l->stands_ns != 0 ? l->stands_ns : poll_loop_now();
	for (unsigned i = 0; i < n; i++)
		devs[i]->now_ns = now;
	for (int i = 0; i < got; i++) {
		int fd = ev[i].data.fd;
		unsigned what = (ev[i].events & EPOLLIN ? RNIC_IO_READ : 0u) |
		    (ev[i].events & EPOLLOUT ? RNIC_IO_WRITE : 0u) |
		    (ev[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? RNIC_IO_HUP : 0u);

		if (l->fds[fd].cb != NULL)
			l->fds[fd].cb(l->fds[fd].arg, what);
	}
	for (unsigned i = 0; i < n; i++) {
		devs[i]->ops->progress(devs[i], now);
		devs[i]->ops->flush(devs[i]);
	}
}
