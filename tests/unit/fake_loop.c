/* A loop turned by hand; see fake_loop.h. */
#include "fake_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define TURNS_MAX 4
#define IOS_MAX 64

struct loop {
	int ep;
	int64_t now_ns, next_ns;

	struct {
		int64_t (*fn)(void *, int64_t);
		void (*clock)(void *, int64_t);
		void *arg;
	} turns[TURNS_MAX];

	unsigned turn_cnt;
	struct loop_io *ios[IOS_MAX]; /* those not deleted */
};

struct loop *
loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));

	l->ep = epoll_create1(EPOLL_CLOEXEC);
	l->now_ns = 1000000000;
	return l;
}

void
loop_free(struct loop *l)
{
	close(l->ep);
	free(l);
}

int
loop_add(struct loop *l, struct loop_io *io)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };

	for (unsigned i = 0; i < IOS_MAX; i++) {
		if (l->ios[i] != NULL)
			continue;
		l->ios[i] = io;
		ev.data.u32 = i;
		return epoll_ctl(l->ep, EPOLL_CTL_ADD, io->fd, &ev) == 0 ? 0 : -errno;
	}
	return -ENOSPC;
}

void
loop_del(struct loop *l, struct loop_io *io)
{
	epoll_ctl(l->ep, EPOLL_CTL_DEL, io->fd, NULL);
	for (unsigned i = 0; i < IOS_MAX; i++)
		if (l->ios[i] == io)
			l->ios[i] = NULL;
}

int
loop_add_turn(struct loop *l, int64_t (*fn)(void *arg, int64_t now_ns), void *arg)
{
	if (l->turn_cnt == TURNS_MAX)
		return -ENOSPC;
	l->turns[l->turn_cnt].fn = fn;
	l->turns[l->turn_cnt].clock = NULL;
	l->turns[l->turn_cnt++].arg = arg;
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
	for (unsigned i = 0; i < l->turn_cnt; i++) {
		if (l->turns[i].fn == fn && l->turns[i].arg == arg) {
			l->turns[i] = l->turns[--l->turn_cnt];
			return;
		}
	}
}

int64_t
loop_now(const struct loop *l)
{
	return l->now_ns;
}

int64_t
loop_stalled(const struct loop *l)
{
	(void)l;
	return 0;
}

bool
fake_loop_turn(struct loop *l)
{
	struct epoll_event ev[IOS_MAX];
	int n = epoll_wait(l->ep, ev, IOS_MAX, 0);

	for (unsigned i = 0; i < l->turn_cnt; i++)
		if (l->turns[i].clock != NULL)
			l->turns[i].clock(l->turns[i].arg, l->now_ns);
	for (int i = 0; i < n; i++) {
		struct loop_io *io = l->ios[ev[i].data.u32];
		unsigned e = ev[i].events, bits = 0;

		bits |= (e & EPOLLIN) != 0 ? LOOP_READ : 0u;
		bits |= (e & EPOLLOUT) != 0 ? LOOP_WRITE : 0u;
		bits |= (e & EPOLLRDHUP) != 0 ? LOOP_RDHUP : 0u;
		bits |= (e & EPOLLHUP) != 0 ? LOOP_HUP : 0u;
		bits |= (e & EPOLLERR) != 0 ? LOOP_ERR : 0u;
		if (io != NULL)
			io->cb(io, bits);
	}
	l->next_ns = INT64_MAX;
	for (unsigned i = 0; i < l->turn_cnt; i++) {
		int64_t at = l->turns[i].fn(l->turns[i].arg, l->now_ns);

		if (at < l->next_ns)
			l->next_ns = at;
	}
	return l->next_ns <= l->now_ns;
}

void
fake_loop_advance(struct loop *l, int64_t ns)
{
	l->now_ns += ns;
}

int64_t
fake_loop_next(const struct loop *l)
{
	return l->next_ns;
}

void
loop_again(struct loop *l)
{
	(void)l;
}
