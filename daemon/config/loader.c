/* Loads a configuration in a thread; see loader.h. Called by process/reload_job.c. */
#include "daemon/config/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"

/* Shared by the loop and the thread; the last user frees it, so the daemon need not wait for the resolver. */
struct loader {
	atomic_int refs;
	struct loop_io io; /* readable when the thread is done */
	struct loop *loop;
	loader_done done;
	void *arg;
	char path[CONFIG_HOST_MAX];
	const char *instance;
	/* Owned by the thread until it is done. */
	int rc;
	struct config *cfg;
	char *msgs;
};

static void
loader_put(struct loader *l)
{
	if (atomic_fetch_sub(&l->refs, 1) > 1)
		return;
	close(l->io.fd);
	config_free(l->cfg);
	free(l->msgs);
	free(l);
}

static void *
loader_load(void *arg)
{
	struct loader *l = arg;
	const uint64_t one = 1;
	size_t len;
	FILE *err = open_memstream(&l->msgs, &len);

	if (err == NULL) {
		l->rc = -ENOMEM;
	} else {
		l->rc = config_load(l->path, l->instance, err, &l->cfg);
		if (fclose(err) != 0 && l->rc == 0)
			l->rc = -ENOMEM;
	}
	(void)!write(l->io.fd, &one, sizeof(one));
	loader_put(l);
	return NULL;
}

static void
loader_on_loaded(struct loop_io *io, unsigned events)
{
	struct loader *l = CONTAINER_OF(io, struct loader, io);
	uint64_t cnt;

	(void)events;
	if (read(io->fd, &cnt, sizeof(cnt)) != (ssize_t)sizeof(cnt))
		return;
	atomic_thread_fence(memory_order_acquire);
	loop_del(l->loop, &l->io);
	l->done(l->arg, l->rc, l->rc == 0 ? l->cfg : NULL, l->msgs != NULL ? l->msgs : "out of memory\n");
	if (l->rc == 0)
		l->cfg = NULL;
	loader_put(l);
}

int
loader_start(
    struct loop *loop, const char *path, const char *instance, loader_done done, void *arg, struct loader **out)
{
	struct loader *l;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (strlen(path) >= sizeof(l->path))
		return -ENAMETOOLONG;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	atomic_init(&l->refs, 2);
	l->loop = loop;
	l->done = done;
	l->arg = arg;
	strcpy(l->path, path);
	l->instance = instance;
	l->io.cb = loader_on_loaded;
	l->io.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = l->io.fd < 0 ? -errno : loop_add(loop, &l->io);
	if (rc == 0) {
		/* The loop handles the signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		rc = -pthread_create(&thread, NULL, loader_load, l);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (rc == 0) {
			pthread_detach(thread);
			*out = l;
			return 0;
		}
		loop_del(loop, &l->io);
	}
	if (l->io.fd >= 0)
		close(l->io.fd);
	free(l);
	return rc;
}

void
loader_cancel(struct loader *l)
{
	if (l == NULL)
		return;
	loop_del(l->loop, &l->io);
	loader_put(l);
}
