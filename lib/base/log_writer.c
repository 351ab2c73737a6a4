/* The log writer thread; see log_writer.h. */
#include "base/log_writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum state {
	NO_THREAD,
	RUNS,
	STOPS, /* it ends after the last record */
	ENDED,
	GIVEN_UP, /* blocked on a reader at process exit */
};

static struct {
	pthread_mutex_t lock; /* guards all but `out`; held for the time of a copy */
	pthread_cond_t more;  /* signals the thread */
	pthread_cond_t ended; /* signals log_writer_stop */
	pthread_t thread;
	log_lost_fn report_lost;
	enum state state;
	char *in, *out; /* queued records, and records being written; the thread swaps them */
	size_t in_len;
	uint64_t lost; /* not yet reported */
	uint64_t total_lost;
} w = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

/* -- writer thread -- */

/* A descriptor is non-blocking if a process that shares it made it so. */
static bool
log_writer_write_line(const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, p, len);

		if (n >= 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd writable = { .fd = STDERR_FILENO, .events = POLLOUT };

			(void)poll(&writable, 1, -1);
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}

bool
log_write(const struct log_record *r)
{
	return (r->send != NULL && r->send(r->entry, r->entry_len)) || log_writer_write_line(r->line, r->line_len);
}

/* Writes the records in `out`; returns the number lost. */
static uint64_t
write_all(size_t len)
{
	struct log_record r;
	uint64_t lost = 0;

	for (const char *p = w.out; p < w.out + len; p = r.line + r.line_len) {
		memcpy(&r, p, sizeof(r));
		r.entry = p + sizeof(r);
		r.line = r.entry + r.entry_len;
		lost += !log_write(&r);
	}
	return lost;
}

static void *
run(void *arg)
{
	(void)arg;
	(void)pthread_setname_np(pthread_self(), "smcrd-log");
	(void)pthread_mutex_lock(&w.lock);
	for (;;) {
		while (w.in_len == 0 && w.state == RUNS)
			(void)pthread_cond_wait(&w.more, &w.lock);
		if (w.in_len == 0)
			break;
		char *full = w.in;
		size_t len = w.in_len;
		uint64_t lost = w.lost;

		w.in = w.out;
		w.out = full;
		w.in_len = 0;
		w.lost = 0;
		(void)pthread_mutex_unlock(&w.lock);
		uint64_t failed = write_all(len);
		lost += failed;
		if (lost > 0 && w.report_lost(lost))
			lost = 0;
		(void)pthread_mutex_lock(&w.lock);
		w.lost += lost;
		w.total_lost += failed;
	}
	w.state = ENDED;
	(void)pthread_cond_signal(&w.ended);
	(void)pthread_mutex_unlock(&w.lock);
	return NULL;
}

/* -- calling threads -- */

bool
log_writer_put(const struct log_record *r)
{
	const size_t len = sizeof(*r) + r->entry_len + r->line_len;

	(void)pthread_mutex_lock(&w.lock);
	bool taken = w.state != NO_THREAD;
	if (taken && (w.state == GIVEN_UP || len > LOG_WRITER_ROOM - w.in_len)) {
		w.lost++;
		w.total_lost++;
	} else if (taken) {
		char *p = w.in + w.in_len;

		memcpy(p, r, sizeof(*r));
		memcpy(p + sizeof(*r), r->entry, r->entry_len);
		memcpy(p + sizeof(*r) + r->entry_len, r->line, r->line_len);
		if (w.in_len == 0)
			(void)pthread_cond_signal(&w.more);
		w.in_len += len;
	}
	(void)pthread_mutex_unlock(&w.lock);
	return taken;
}

uint64_t
log_writer_lost(void)
{
	(void)pthread_mutex_lock(&w.lock);
	uint64_t lost = w.total_lost;
	(void)pthread_mutex_unlock(&w.lock);
	return lost;
}

static void
free_room(void)
{
	free(w.in);
	free(w.out);
	w.in = w.out = NULL;
}

int
log_writer_start(log_lost_fn report_lost)
{
	sigset_t all, before;

	w.in = malloc(LOG_WRITER_ROOM);
	w.out = malloc(LOG_WRITER_ROOM);
	if (w.in == NULL || w.out == NULL) {
		free_room();
		return -ENOMEM;
	}
	w.report_lost = report_lost;
	w.state = RUNS;
	/* The main thread handles signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&w.thread, NULL, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err != 0) {
		w.state = NO_THREAD;
		free_room();
	}
	return -err;
}

void
log_writer_stop(unsigned wait_s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_s;
	(void)pthread_mutex_lock(&w.lock);
	bool ran = w.state == RUNS;
	if (ran) {
		w.state = STOPS;
		(void)pthread_cond_signal(&w.more);
	}
	while (w.state == STOPS && pthread_cond_clockwait(&w.ended, &w.lock, CLOCK_MONOTONIC, &until) == 0)
		;
	bool ended = w.state == ENDED;
	if (w.state == STOPS)
		w.state = GIVEN_UP;
	(void)pthread_mutex_unlock(&w.lock);
	if (!ended)
		return;
	(void)pthread_join(w.thread, NULL);
	free_room();
	w.in_len = 0;
	w.state = NO_THREAD;
}
