/* RNIC devices on the event loop; see devices.h. */
#include "daemon/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

/* A descriptor that a device watches. */
struct watch {
	struct loop_io io;
	struct loop *loop;
	rnic_io_cb cb;
	void *arg;
};

struct devices {
	struct worker *w;
	struct watch **watches; /* by descriptor */
	int watch_cap;
	struct rnic_dev **devs;
	unsigned cnt;
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
	me->cb(me->arg, io->fd, rnic, loop_now(me->loop));
}

static int
grow_watches(struct devices *d, int fd)
{
	int cap = d->watch_cap > 0 ? d->watch_cap : 64;
	struct watch **w;

	while (cap <= fd)
		cap *= 2;
	if (cap == d->watch_cap)
		return 0;
	w = realloc(d->watches, (size_t)cap * sizeof(struct watch *));
	if (w == NULL)
		return -ENOMEM;
	memset(w + d->watch_cap, 0, (size_t)(cap - d->watch_cap) * sizeof(struct watch *));
	d->watches = w;
	d->watch_cap = cap;
	return 0;
}

static int
watch_fd(void *ctx, int fd, rnic_io_cb cb, void *arg)
{
	struct devices *d = ctx;
	struct watch *me;
	int err = grow_watches(d, fd);

	if (err != 0)
		return err;
	if (d->watches[fd] != NULL)
		return -EEXIST;
	me = malloc(sizeof(*me));
	if (me == NULL)
		return -ENOMEM;
	*me = (struct watch){ .io = { .fd = fd, .cb = on_device_io }, .loop = d->w->loop, .cb = cb, .arg = arg };
	err = loop_add(d->w->loop, &me->io);
	if (err != 0) {
		free(me);
		return err;
	}
	d->watches[fd] = me;
	return 0;
}

/* May be called by the device's own callback, which does not touch the watch afterwards. */
static void
unwatch_fd(void *ctx, int fd)
{
	struct devices *d = ctx;
	struct watch *me = fd >= 0 && fd < d->watch_cap ? d->watches[fd] : NULL;

	if (me == NULL)
		return;
	loop_del(d->w->loop, &me->io);
	d->watches[fd] = NULL;
	free(me);
}

static int
open_one(struct devices *d, const struct config_device *cfg, FILE *err)
{
	const struct rnic_loop loop = { .ctx = d, .watch = watch_fd, .unwatch = unwatch_fd };
	char addr[ADDR_STR_MAX];
	struct rnic_dev *dev;
	const char *why;
	int rc;

	if (cfg->type != CONFIG_DEVICE_SIW) {
		fprintf(err, "device %s: this type is not supported yet\n", cfg->siw.name);
		return -ENOTSUP;
	}
	rc = siw_open(&cfg->siw, &loop, &d->w->rng, &dev, &why);
	if (rc != 0) {
		fprintf(err, "device %s at %s: %s: %s\n", cfg->siw.name,
		    addr_format(&cfg->siw.addr, addr, sizeof(addr)), why, strerror(-rc));
		return rc;
	}
	rc = smcr_add_device(d->w->eng, dev);
	if (rc != 0) {
		fprintf(err, "device %s: more devices than the engine takes\n", cfg->siw.name);
		dev->ops->free(dev);
		return rc;
	}
	d->devs[d->cnt++] = dev;
	return 0;
}

int
devices_open(struct worker *w, const struct config *cfg, FILE *err)
{
	struct devices *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	w->devices = d;
	d->w = w;
	d->devs = calloc(cfg->device_cnt + 1, sizeof(struct rnic_dev *));
	if (d->devs == NULL) {
		devices_close(w);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		int rc = open_one(d, &cfg->devices[i], err);

		if (rc != 0) {
			devices_close(w);
			return rc;
		}
	}
	return 0;
}

void
devices_close(struct worker *w)
{
	struct devices *d = w->devices;

	if (d == NULL)
		return;
	for (unsigned i = 0; i < d->cnt; i++) {
		smcr_remove_device(w->eng, d->devs[i]);
		d->devs[i]->ops->free(d->devs[i]);
	}
	for (int fd = 0; fd < d->watch_cap; fd++)
		unwatch_fd(d, fd);
	free(d->watches);
	free(d->devs);
	free(d);
	w->devices = NULL;
}

struct rnic_dev *
devices_get(const struct worker *w, unsigned i)
{
	return i < w->devices->cnt ? w->devices->devs[i] : NULL;
}
