/* Descriptors that devices watch; see device_watch.h. */
#include "daemon/device/device_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

struct watch {
	struct loop_io io;
	rnic_io_cb cb;
	void *arg;
};

static void
on_device_io(struct loop_io *io, unsigned events)
{
	struct watch *me = CONTAINER_OF(io, struct watch, io);
	unsigned rnic = 0;

	if ((events & (LOOP_READ | LOOP_RDHUP)) != 0)
		rnic |= RNIC_IO_READ;
	if ((events & LOOP_WRITE) != 0)
		rnic |= RNIC_IO_WRITE;
	if ((events & (LOOP_HUP | LOOP_ERR | LOOP_RDHUP)) != 0)
		rnic |= RNIC_IO_HUP;
	me->cb(me->arg, rnic);
}

static int
watch_fd(void *ctx, int fd, rnic_io_cb cb, void *arg)
{
	struct device_watches *d = ctx;
	int cap = d->cap > 0 ? d->cap : 64;

	while (cap <= fd)
		cap *= 2;
	if (cap > d->cap) {
		struct watch **watches = realloc(d->watches, (size_t)cap * sizeof(struct watch *));
		if (watches == NULL)
			return -ENOMEM;
		memset(watches + d->cap, 0, (size_t)(cap - d->cap) * sizeof(struct watch *));
		d->watches = watches;
		d->cap = cap;
	}
	if (d->watches[fd] != NULL)
		return -EEXIST;
	struct watch *me = malloc(sizeof(*me));
	if (me == NULL)
		return -ENOMEM;
	*me = (struct watch){ .io = { .fd = fd, .cb = on_device_io }, .cb = cb, .arg = arg };
	int err = loop_add(d->loop, &me->io);
	if (err != 0)
		free(me);
	else
		d->watches[fd] = me;
	return err;
}

/* The device's own callback may call this; it does not use the watch afterwards. */
static void
unwatch_fd(void *ctx, int fd)
{
	struct device_watches *d = ctx;
	struct watch *me = fd >= 0 && fd < d->cap ? d->watches[fd] : NULL;

	if (me == NULL)
		return;
	loop_del(d->loop, &me->io);
	d->watches[fd] = NULL;
	free(me);
}

struct rnic_loop
device_watches_init(struct device_watches *d, struct loop *loop)
{
	*d = (struct device_watches){ .loop = loop };
	return (struct rnic_loop){ .ctx = d, .watch = watch_fd, .unwatch = unwatch_fd };
}

void
device_watches_fini(struct device_watches *d)
{
	for (int fd = 0; fd < d->cap; fd++)
		unwatch_fd(d, fd);
	free(d->watches);
	*d = (struct device_watches){ .loop = d->loop };
}
