/*
 * The verbs device: the threads for what may wait; see verbs_int.h.
 * Taking a RoCE QP to RTR makes the kernel ask for the peer's MAC address, and
 * wait for about a second when nobody answers; the event loop must not. One
 * thread a device, from its first connection on, one transition at a time.
 * Destroying a QP takes soft RoCE up to three seconds, while packets of it wait
 * for an address: another thread, so that connecting does not wait for that.
 * Connecting iWARP may wait for TCP, minutes: each such job has its own thread.
 *
 * A device that is freed is that other thread's: it waits until it is the last
 * one, and takes what is left from the card. The caller waits for it only where
 * nothing is under way.
 *
 * What is shared: the lists of struct verbs_cm, its flags and the job's
 * `cancelled`, all under the lock. A job that was given is the thread's alone
 * until it is in `done`.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rnic/verbs/verbs_int.h"

/* -- in the thread -- */

static void
run_job(struct verbs_job *job)
{
	if (job->run != NULL) {
		job->run(job);
		return;
	}
	job->err = ibv_modify_qp(job->hw, &job->rtr, job->rtr_mask);
	if (job->err == 0 && job->to_rts)
		job->err = ibv_modify_qp(job->hw, &job->rts, job->rts_mask);
}

/* Called with the lock, which it gives up meanwhile. */
static void
next_job(struct verbs_worker *w)
{
	struct verbs_cm *cm = &w->dev->cm;
	struct verbs_job *job = CONTAINER_OF(list_pop(&w->todo), struct verbs_job, node);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	const uint64_t one = 1;
	bool cancelled;

	w->running = job;
	pthread_mutex_unlock(&cm->lock);
	run_job(job);
	pthread_mutex_lock(&cm->lock);
	cancelled = job->cancelled;
	pthread_mutex_unlock(&cm->lock);
	if (cancelled)
		(void)ibv_modify_qp(job->hw, &error, IBV_QP_STATE);
	pthread_mutex_lock(&cm->lock);
	w->running = NULL;
	list_push(&cm->done, &job->node);
	(void)!write(cm->evfd, &one, sizeof(one)); /* full: it is readable all the more */
}

static void
cm_destroy(struct verbs_cm *cm)
{
	close(cm->evfd);
	pthread_cond_destroy(&cm->connects.more);
	pthread_cond_destroy(&cm->ends.more);
	pthread_mutex_destroy(&cm->lock);
}

/* Returns with the lock when the device is freed. */
static void
work(struct verbs_worker *w)
{
	struct verbs_cm *cm = &w->dev->cm;

	pthread_mutex_lock(&cm->lock);
	while (!cm->quit) {
		if (list_empty(&w->todo))
			pthread_cond_wait(&w->more, &cm->lock);
		else
			next_job(w);
	}
}

static void *
connects_main(void *arg)
{
	struct verbs_cm *cm = &((struct verbs_dev *)arg)->cm;

	work(&cm->connects);
	cm->connects.started = false;
	pthread_cond_signal(&cm->ends.more);
	pthread_mutex_unlock(&cm->lock);
	return NULL;
}

static void *
ends_main(void *arg)
{
	struct verbs_dev *dev = arg;
	struct verbs_cm *cm = &dev->cm;

	work(&cm->ends);
	while (cm->connects.started || cm->alone > 0)
		pthread_cond_wait(&cm->ends.more, &cm->lock);
	pthread_mutex_unlock(&cm->lock);
	cm_destroy(cm);
	verbs_teardown(dev);
	return NULL;
}

static void *
alone_main(void *arg)
{
	struct verbs_job *job = arg;
	struct verbs_cm *cm = &job->dev->cm;
	const uint64_t one = 1;

	run_job(job);
	pthread_mutex_lock(&cm->lock);
	cm->alone--;
	list_push(&cm->done, &job->node);
	(void)!write(cm->evfd, &one, sizeof(one));
	pthread_cond_signal(&cm->ends.more);
	pthread_mutex_unlock(&cm->lock);
	return NULL;
}

/* -- in the loop -- */

static void
take_results(struct verbs_dev *dev)
{
	struct list_node done, *n;

	pthread_mutex_lock(&dev->cm.lock);
	list_move_all(&done, &dev->cm.done);
	pthread_mutex_unlock(&dev->cm.lock);
	while ((n = list_pop(&done)) != NULL) {
		struct verbs_job *job = CONTAINER_OF(n, struct verbs_job, node);

		job->done(job);
	}
}

static void
results_io(void *arg, int fd, unsigned events)
{
	struct verbs_dev *dev = arg;
	uint64_t cnt;

	(void)events;
	(void)!read(fd, &cnt, sizeof(cnt));
	take_results(dev);
}

/* Signals are for the others. */
static int
start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static int
worker_start(struct verbs_worker *w, void *(*fn)(void *))
{
	int rc = start(&w->thread, fn, w->dev);

	w->started = rc == 0;
	return rc;
}

static void
worker_init(struct verbs_dev *dev, struct verbs_worker *w)
{
	w->dev = dev;
	list_init(&w->todo);
	pthread_cond_init(&w->more, NULL);
}

static void
worker_give(struct verbs_worker *w, struct verbs_job *job)
{
	struct verbs_cm *cm = &w->dev->cm;

	pthread_mutex_lock(&cm->lock);
	list_push(&w->todo, &job->node);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&cm->lock);
}

int
verbs_cm_init(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;
	int rc;

	list_init(&cm->done);
	cm->evfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (cm->evfd < 0)
		return -errno;
	rc = dev->loop.watch(dev->loop.ctx, cm->evfd, results_io, dev);
	if (rc < 0) {
		close(cm->evfd);
		return rc;
	}
	pthread_mutex_init(&cm->lock, NULL);
	worker_init(dev, &cm->connects);
	worker_init(dev, &cm->ends);
	/* Now: when a queue pair has to go, there must be a thread for it. */
	rc = worker_start(&cm->ends, ends_main);
	if (rc < 0) {
		dev->loop.unwatch(dev->loop.ctx, cm->evfd);
		cm_destroy(cm);
	}
	return rc;
}

static void
transition_done(struct verbs_job *job)
{
	verbs_qp_job_done(CONTAINER_OF(job, struct verbs_qp, job));
}

int
verbs_cm_submit(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;
	int rc = cm->connects.started ? 0 : worker_start(&cm->connects, connects_main);

	if (rc < 0)
		return rc;
	qp->job.hw = qp->hw;
	qp->job.done = transition_done;
	worker_give(&cm->connects, &qp->job);
	return 0;
}

void
verbs_cm_end(struct verbs_dev *dev, struct verbs_job *job)
{
	dev->end_cnt++;
	worker_give(&dev->cm.ends, job);
}

int
verbs_cm_submit_alone(struct verbs_dev *dev, struct verbs_job *job)
{
	struct verbs_cm *cm = &dev->cm;
	pthread_t thread;
	int rc;

	job->dev = dev;
	pthread_mutex_lock(&cm->lock);
	cm->alone++;
	rc = start(&thread, alone_main, job);
	if (rc < 0)
		cm->alone--;
	else
		pthread_detach(thread);
	pthread_mutex_unlock(&cm->lock);
	return rc;
}

bool
verbs_cm_cancel(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;
	bool running;

	pthread_mutex_lock(&cm->lock);
	running = cm->connects.running == &qp->job;
	if (running)
		qp->job.cancelled = true;
	else
		list_remove(&qp->job.node); /* of those to do, or of those done */
	pthread_mutex_unlock(&cm->lock);
	return !running;
}

/* May taking the rest from the card wait, though no thread is at it? */
static bool
rest_waits(const struct verbs_dev *dev)
{
	return !list_empty(&dev->qps) || !list_empty(&dev->dead_mrs) ||
	    (dev->connect->pending != NULL && dev->connect->pending(dev));
}

void
verbs_cm_fini(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;
	pthread_t threads[2];
	unsigned cnt = 0;
	bool waits;

	take_results(dev); /* less is left then */
	pthread_mutex_lock(&cm->lock);
	cm->quit = true;
	waits = cm->connects.running != NULL || cm->ends.running != NULL || cm->alone > 0 || rest_waits(dev);
	if (cm->connects.started)
		threads[cnt++] = cm->connects.thread;
	threads[cnt++] = cm->ends.thread;
	pthread_cond_signal(&cm->connects.more);
	pthread_cond_signal(&cm->ends.more);
	pthread_mutex_unlock(&cm->lock);
	for (unsigned i = 0; i < cnt; i++) {
		if (waits)
			pthread_detach(threads[i]); /* it may be long until the kernel is done: nobody waits */
		else
			pthread_join(threads[i], NULL);
	}
}
