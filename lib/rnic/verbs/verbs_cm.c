/* The verbs device: threads for blocking calls; see verbs_int.h. A RoCE QP's change to RTR makes the kernel resolve the
 * peer's MAC address, which blocks for about a second without answer. One thread per device, started with its first
 * connection, makes these changes one at a time. Destroying a QP takes soft RoCE up to three seconds while packets wait
 * for address resolution: a second thread, so that connecting is not delayed. Connecting iWARP may wait minutes for
 * TCP: each such job has a thread.
 * Shared under the lock: the lists of struct verbs_cm, its flag, and the job's `cancelled`. A submitted job belongs to
 * the thread until it is in `done`. At the end of a device no queue pair is left, and so no job. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rnic/verbs/verbs_int.h"

/* -- in the thread -- */

/* Requires the lock. */
static void
hand_back(struct verbs_cm *cm, struct verbs_job *job)
{
	const uint64_t one = 1;

	list_push(&cm->done, &job->node);
	(void)!write(cm->evfd, &one, sizeof(one)); /* full: the eventfd is readable already */
}

static void *
worker_main(void *arg)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct verbs_worker *w = arg;
	struct verbs_cm *cm = w->cm;

	pthread_mutex_lock(&cm->lock);
	while (!cm->quit) {
		struct verbs_job *job = w->running = LIST_POP(struct verbs_job, &w->todo, node);

		if (job == NULL) {
			pthread_cond_wait(&w->more, &cm->lock);
			continue;
		}
		pthread_mutex_unlock(&cm->lock);
		job->run(job);
		pthread_mutex_lock(&cm->lock);
		if (job->cancelled) {
			pthread_mutex_unlock(&cm->lock);
			(void)ibv_modify_qp(job->hw, &error, IBV_QP_STATE);
			pthread_mutex_lock(&cm->lock);
		}
		w->running = NULL;
		hand_back(cm, job);
	}
	pthread_mutex_unlock(&cm->lock);
	return NULL;
}

static void *
alone_main(void *arg)
{
	struct verbs_job *job = arg;
	struct verbs_cm *cm = job->cm;

	job->run(job);
	pthread_mutex_lock(&cm->lock);
	hand_back(cm, job);
	pthread_mutex_unlock(&cm->lock);
	return NULL;
}

/* -- in the loop -- */

static void
results_io(void *arg, unsigned events)
{
	struct verbs_dev *dev = arg;
	struct list_node done;
	struct verbs_job *job;
	uint64_t cnt;

	(void)events;
	(void)!read(dev->cm.evfd, &cnt, sizeof(cnt));
	pthread_mutex_lock(&dev->cm.lock);
	list_move_all(&done, &dev->cm.done);
	pthread_mutex_unlock(&dev->cm.lock);
	while ((job = LIST_POP(struct verbs_job, &done, node)) != NULL) {
		if (job->cm != NULL)
			(void)pthread_join(job->thread, NULL); /* it is about to return */
		job->done(job);
	}
}

/* Other threads handle signals. */
static int
verbs_cm_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static int
worker_start(struct verbs_worker *w)
{
	int rc = verbs_cm_start(&w->thread, worker_main, w);

	w->started = rc == 0;
	return rc;
}

static void
worker_init(struct verbs_cm *cm, struct verbs_worker *w)
{
	w->cm = cm;
	list_init(&w->todo);
	pthread_cond_init(&w->more, NULL);
}

void
verbs_cm_give(struct verbs_worker *w, struct verbs_job *job)
{
	pthread_mutex_lock(&w->cm->lock);
	list_push(&w->todo, &job->node);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->cm->lock);
}

static void
worker_fini(struct verbs_worker *w)
{
	if (w->started) {
		pthread_mutex_lock(&w->cm->lock);
		w->cm->quit = true;
		pthread_cond_signal(&w->more);
		pthread_mutex_unlock(&w->cm->lock);
		(void)pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->more);
}

void
verbs_cm_fini(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;

	dev->loop.unwatch(dev->loop.ctx, cm->evfd);
	worker_fini(&cm->connects);
	worker_fini(&cm->ends);
	close(cm->evfd);
	pthread_mutex_destroy(&cm->lock);
}

int
verbs_cm_init(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;

	list_init(&cm->done);
	cm->evfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (cm->evfd < 0)
		return -errno;
	pthread_mutex_init(&cm->lock, NULL);
	worker_init(cm, &cm->connects);
	worker_init(cm, &cm->ends);
	int rc = dev->loop.watch(dev->loop.ctx, cm->evfd, results_io, dev);
	/* Started now: the end of a queue pair must not fail for lack of a thread. */
	if (rc == 0)
		rc = worker_start(&cm->ends);
	if (rc < 0)
		verbs_cm_fini(dev);
	return rc;
}

int
verbs_cm_submit(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;
	int rc = cm->connects.started ? 0 : worker_start(&cm->connects);

	if (rc < 0)
		return rc;
	qp->job.hw = qp->hw;
	qp->job.done = verbs_qp_job_done;
	verbs_cm_give(&cm->connects, &qp->job);
	return 0;
}

int
verbs_cm_submit_alone(struct verbs_dev *dev, struct verbs_job *job)
{
	job->cm = &dev->cm;
	return verbs_cm_start(&job->thread, alone_main, job);
}

bool
verbs_cm_cancel(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;

	pthread_mutex_lock(&cm->lock);
	bool running = cm->connects.running == &qp->job;
	if (running)
		qp->job.cancelled = true;
	else
		list_remove(&qp->job.node); /* on `todo`, or on `done` */
	pthread_mutex_unlock(&cm->lock);
	return !running;
}
