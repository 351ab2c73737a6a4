/*
 * The verbs device: the thread for transitions that may wait; see verbs_int.h.
 * Taking a RoCE QP to RTR makes the kernel ask for the peer's MAC address, and
 * wait for about a second when nobody answers; the event loop must not. One
 * thread a device, from its first connection on, one transition at a time.
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

#include "rnic/verbs_int.h"

/* -- in the thread -- */

static void
run_job(struct verbs_job *job)
{
	job->err = ibv_modify_qp(job->hw, &job->rtr, job->rtr_mask);
	if (job->err == 0 && job->to_rts)
		job->err = ibv_modify_qp(job->hw, &job->rts, job->rts_mask);
}

static void
stop_job(struct verbs_job *job)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	(void)ibv_modify_qp(job->hw, &attr, IBV_QP_STATE);
}

/* Called with the lock, which it gives up meanwhile. */
static void
next_job(struct verbs_cm *cm)
{
	struct verbs_job *job = CONTAINER_OF(list_pop(&cm->todo), struct verbs_job, node);
	const uint64_t one = 1;
	bool cancelled;

	cm->running = job;
	pthread_mutex_unlock(&cm->lock);
	run_job(job);
	pthread_mutex_lock(&cm->lock);
	cancelled = job->cancelled;
	pthread_mutex_unlock(&cm->lock);
	if (cancelled)
		stop_job(job);
	pthread_mutex_lock(&cm->lock);
	cm->running = NULL;
	list_push(&cm->done, &job->node);
	(void)!write(cm->evfd, &one, sizeof(one)); /* full: it is readable all the more */
}

static void
cm_destroy(struct verbs_cm *cm)
{
	close(cm->evfd);
	pthread_cond_destroy(&cm->more);
	pthread_mutex_destroy(&cm->lock);
}

static void *
cm_main(void *arg)
{
	struct verbs_dev *dev = arg;
	struct verbs_cm *cm = &dev->cm;
	bool last;

	pthread_mutex_lock(&cm->lock);
	while (!cm->quit) {
		if (list_empty(&cm->todo))
			pthread_cond_wait(&cm->more, &cm->lock);
		else
			next_job(cm);
	}
	last = cm->last_one_out;
	pthread_mutex_unlock(&cm->lock);
	if (last) {
		cm_destroy(cm);
		verbs_teardown(dev);
	}
	return NULL;
}

/* -- in the loop -- */

static void
results_io(void *arg, int fd, unsigned events, int64_t now_ns)
{
	struct verbs_dev *dev = arg;
	struct list_node done, *n;
	uint64_t cnt;

	(void)events;
	verbs_set_now(dev, now_ns);
	(void)!read(fd, &cnt, sizeof(cnt));
	pthread_mutex_lock(&dev->cm.lock);
	list_move_all(&done, &dev->cm.done);
	pthread_mutex_unlock(&dev->cm.lock);
	while ((n = list_pop(&done)) != NULL)
		verbs_qp_job_done(CONTAINER_OF(n, struct verbs_qp, job.node));
}

int
verbs_cm_init(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;
	int rc;

	list_init(&cm->todo);
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
	pthread_cond_init(&cm->more, NULL);
	return 0;
}

/* Signals are for the others. */
static int
start_thread(struct verbs_dev *dev)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->cm.thread, NULL, cm_main, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	dev->cm.started = err == 0;
	return -err;
}

int
verbs_cm_submit(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;
	int rc = cm->started ? 0 : start_thread(qp->dev);

	if (rc < 0)
		return rc;
	qp->job.hw = qp->hw;
	qp->job_state = VERBS_JOB_GIVEN;
	pthread_mutex_lock(&cm->lock);
	list_push(&cm->todo, &qp->job.node);
	pthread_cond_signal(&cm->more);
	pthread_mutex_unlock(&cm->lock);
	return 0;
}

void
verbs_cm_cancel(struct verbs_qp *qp)
{
	struct verbs_cm *cm = &qp->dev->cm;

	pthread_mutex_lock(&cm->lock);
	if (cm->running == &qp->job) {
		qp->job.cancelled = true;
	} else {
		list_remove(&qp->job.node); /* of those to do, or of those done */
		qp->job_state = VERBS_JOB_NONE;
	}
	pthread_mutex_unlock(&cm->lock);
}

bool
verbs_cm_fini(struct verbs_dev *dev)
{
	struct verbs_cm *cm = &dev->cm;
	bool waits;

	if (!cm->started) {
		cm_destroy(cm);
		return true;
	}
	pthread_mutex_lock(&cm->lock);
	cm->quit = true;
	waits = cm->last_one_out = cm->running != NULL;
	pthread_cond_signal(&cm->more);
	pthread_mutex_unlock(&cm->lock);
	if (waits) {
		pthread_detach(cm->thread); /* it may be a second until the kernel gives up: nobody waits for that */
		return false;
	}
	pthread_join(cm->thread, NULL);
	cm_destroy(cm);
	return true;
}
