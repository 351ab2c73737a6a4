/* Work in a thread; see job.h. */
#include "daemon/loop/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"

/* Shared by the loop and the thread; the last user frees it, so the daemon need not wait for what blocks. */
struct job {
	atomic_int refs;
	struct loop_io io; /* readable when the thread is done */
	struct loop *loop;
	const struct job_ops *ops;
	void *arg;
};

static void
job_put(struct job *j)
{
	if (atomic_fetch_sub(&j->refs, 1) > 1)
		return;
	close(j->io.fd);
	j->ops->drop(j->arg);
	free(j);
}

static void *
job_run(void *arg)
{
	struct job *j = arg;
	const uint64_t one = 1;

	j->ops->work(j->arg);
	(void)!write(j->io.fd, &one, sizeof(one));
	job_put(j);
	return NULL;
}

static void
job_on_done(struct loop_io *io, unsigned events)
{
	struct job *j = CONTAINER_OF(io, struct job, io);
	uint64_t cnt;

	(void)events;
	if (read(io->fd, &cnt, sizeof(cnt)) != (ssize_t)sizeof(cnt))
		return;
	atomic_thread_fence(memory_order_acquire);
	loop_del(j->loop, &j->io);
	j->ops->done(j->arg);
	job_put(j);
}

static int
job_start_thread(struct job *j)
{
	sigset_t all, before;
	pthread_t thread;

	/* The loop handles the signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = -pthread_create(&thread, NULL, job_run, j);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return rc;
}

int
job_start(struct loop *loop, const struct job_ops *ops, void *arg, struct job **out)
{
	struct job *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return -ENOMEM;
	atomic_init(&j->refs, 2);
	j->loop = loop;
	j->ops = ops;
	j->arg = arg;
	j->io.cb = job_on_done;
	j->io.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = j->io.fd < 0 ? -errno : loop_add(loop, &j->io);
	if (rc == 0) {
		rc = job_start_thread(j);
		if (rc == 0) {
			*out = j;
			return 0;
		}
		loop_del(loop, &j->io);
	}
	if (j->io.fd >= 0)
		close(j->io.fd);
	free(j);
	return rc;
}

void
job_cancel(struct job *j)
{
	if (j == NULL)
		return;
	loop_del(j->loop, &j->io);
	job_put(j);
}
