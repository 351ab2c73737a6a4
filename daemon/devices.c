/* RNIC devices on the event loop; see devices.h. */
#include "daemon/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/device_plan.h"
#include "daemon/netwatch.h"

#define DEVICES_MAX 64
#define WANTS_MAX 64
#define GONE_MS 10000  /* an address may come back: its device keeps its name and port so long */
#define RETRY_MS 10000 /* a device that did not open is tried again */

/* A descriptor that a device watches. */
struct watch {
	struct loop_io io;
	struct loop *loop;
	rnic_io_cb cb;
	void *arg;
};

struct device {
	struct rnic_dev *dev;
	char name[RNIC_NAME_MAX];
	struct sockaddr_storage addr;
	bool placed;     /* an interface has, or had, this address: it is followed */
	int64_t gone_ns; /* the address is gone since then; 0 = it is there */
};

/* A device that is wanted and does not open. */
struct failure {
	struct sockaddr_storage addr;
	int rc;    /* told */
	bool seen; /* in this round */
};

struct devices {
	struct worker *w;
	const struct config *cfg; /* the worker's */
	struct watch **watches;   /* by descriptor */
	int watch_cap;
	struct device devs[DEVICES_MAX];
	unsigned cnt;
	bool full; /* the engine takes no more */
	struct failure failures[WANTS_MAX];
	unsigned failure_cnt;
	struct timer timer;
	bool due; /* the timer says so */
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

/* -- one device -- */

static bool
name_taken(const struct devices *d, const char *name)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (strcmp(d->devs[i].name, name) == 0)
			return true;
	return false;
}

/* base, or base:2, base:3, ... when that is taken. */
static void
choose_name(const struct devices *d, const char *base, char name[RNIC_NAME_MAX])
{
	(void)snprintf(name, RNIC_NAME_MAX, "%.*s", RNIC_NAME_MAX - 1, base);
	for (unsigned n = 2; name_taken(d, name); n++)
		(void)snprintf(name, RNIC_NAME_MAX, "%.*s:%u", RNIC_NAME_MAX - 5, base, n % 1000);
}

/* 0, or -errno with *why a static text about what is at fault. */
static int
open_one(struct devices *d, const struct device_want *want, const char **why)
{
	const struct rnic_loop loop = { .ctx = d, .watch = watch_fd, .unwatch = unwatch_fd };
	struct device *me = &d->devs[d->cnt];
	struct siw_config siw = want->cfg->siw;
	char addr[ADDR_STR_MAX];
	int rc;

	*why = "more devices than the engine takes";
	if (d->full || d->cnt == DEVICES_MAX)
		return -ENOSPC;
	*me = (struct device){ .addr = want->addr, .placed = want->place != DEVICE_PLACE_UNKNOWN };
	choose_name(d, want->base, me->name);
	memcpy(siw.name, me->name, sizeof(siw.name));
	siw.addr = want->addr;
	rc = siw_open(&siw, &loop, &d->w->rng, &me->dev, why);
	if (rc != 0)
		return rc;
	/* Before the engine has it: a port that is down from the start is no loss. */
	if (want->place == DEVICE_PLACE_DOWN)
		siw_set_port_state(me->dev, RNIC_PORT_DOWN);
	rc = smcr_add_device(d->w->eng, me->dev);
	if (rc != 0) {
		*why = "more devices than the engine takes";
		d->full = true;
		me->dev->ops->free(me->dev);
		return rc;
	}
	d->cnt++;
	log_msg(LOG_LVL_INFO, "device opened: device=%s address=%s port=%s", me->name,
	    addr_format(&me->addr, addr, sizeof(addr)), want->place == DEVICE_PLACE_DOWN ? "down" : "up");
	return 0;
}

static void
close_one(struct devices *d, unsigned i)
{
	smcr_remove_device(d->w->eng, d->devs[i].dev);
	d->devs[i].dev->ops->free(d->devs[i].dev);
	memmove(&d->devs[i], &d->devs[i + 1], (d->cnt - i - 1) * sizeof(d->devs[0]));
	d->cnt--;
	d->full = false;
}

static void
set_port(struct device *me, enum rnic_port_state to, const char *why)
{
	char addr[ADDR_STR_MAX];

	if (rnic_query(me->dev).port == to)
		return;
	siw_set_port_state(me->dev, to);
	log_msg(to == RNIC_PORT_UP ? LOG_LVL_NOTICE : LOG_LVL_WARNING, "device port %s: device=%s address=%s%s%s%s",
	    to == RNIC_PORT_UP ? "up" : "down", me->name, addr_format(&me->addr, addr, sizeof(addr)),
	    why[0] != '\0' ? " reason=\"" : "", why, why[0] != '\0' ? "\"" : "");
}

/* -- all devices -- */

static const struct device_want *
find_want(const struct device_want *want, unsigned cnt, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < cnt; i++)
		if (addr_same_host(&want[i].addr, addr))
			return &want[i];
	return NULL;
}

static bool
is_open(const struct devices *d, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (addr_same_host(&d->devs[i].addr, addr))
			return true;
	return false;
}

/* What has become of the device's address: true when it has been gone for so long that the device goes, too. */
static bool
follow_one(struct device *me, const struct device_want *want, int64_t now_ns)
{
	enum device_place place = want != NULL ? want->place : DEVICE_PLACE_UNKNOWN;

	if (place != DEVICE_PLACE_UNKNOWN) {
		me->placed = true;
		me->gone_ns = 0;
		set_port(me, place == DEVICE_PLACE_UP ? RNIC_PORT_UP : RNIC_PORT_DOWN,
		    place == DEVICE_PLACE_UP ? "" : "the interface is down or has no carrier");
		return false;
	}
	if (!me->placed)
		return false;
	set_port(me, RNIC_PORT_DOWN, "the address is gone");
	if (me->gone_ns == 0)
		me->gone_ns = now_ns;
	return now_ns - me->gone_ns >= GONE_MS * NS_PER_MS;
}

/* Says once why a device does not open, until there is another reason. */
static void
note_failure(struct devices *d, const struct device_want *want, int rc, const char *why, FILE *err)
{
	char addr[ADDR_STR_MAX], text[256];
	struct failure *f = NULL;

	for (unsigned i = 0; i < d->failure_cnt; i++)
		if (addr_same_host(&d->failures[i].addr, &want->addr))
			f = &d->failures[i];
	if (f == NULL && d->failure_cnt < WANTS_MAX) {
		f = &d->failures[d->failure_cnt++];
		*f = (struct failure){ .addr = want->addr };
	}
	if (f == NULL)
		return;
	f->seen = true;
	if (f->rc == rc)
		return;
	f->rc = rc;
	snprintf(text, sizeof(text), "device %s at %s is not there: %s: %s", want->base,
	    addr_format(&want->addr, addr, sizeof(addr)), why, strerror(-rc));
	if (err != NULL)
		fprintf(err, "warning: %s\n", text);
	else
		log_msg(LOG_LVL_WARNING, "%s", text);
}

static void
forget_failures(struct devices *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->failure_cnt; i++) {
		if (!d->failures[i].seen)
			continue;
		d->failures[n] = d->failures[i];
		d->failures[n++].seen = false;
	}
	d->failure_cnt = n;
}

/* Opens what is missing. first: at start, when a named device may lack its address but nothing else. 0, or -errno
 * with the reason in err. */
static int
open_missing(struct devices *d, const struct device_want *want, unsigned cnt, bool first, FILE *err)
{
	char addr[ADDR_STR_MAX];
	const char *why;

	for (unsigned i = 0; i < cnt; i++) {
		int rc;

		if (!want[i].open || is_open(d, &want[i].addr))
			continue;
		rc = open_one(d, &want[i], &why);
		if (rc == 0)
			continue;
		if (first && rc != -EADDRNOTAVAIL && want[i].cfg->interface[0] == '\0') {
			fprintf(err, "device %s at %s: %s: %s\n", want[i].base,
			    addr_format(&want[i].addr, addr, sizeof(addr)), why, strerror(-rc));
			return rc;
		}
		note_failure(d, &want[i], rc, why, err);
	}
	forget_failures(d);
	return 0;
}

/* When to look again though the interfaces say nothing. */
static void
arm_again(struct devices *d)
{
	int64_t now_ns = d->w->now_ns, at = INT64_MAX;

	for (unsigned i = 0; i < d->cnt; i++)
		if (d->devs[i].gone_ns != 0 && d->devs[i].gone_ns + GONE_MS * NS_PER_MS < at)
			at = d->devs[i].gone_ns + GONE_MS * NS_PER_MS;
	if (d->failure_cnt > 0 && now_ns + RETRY_MS * NS_PER_MS < at)
		at = now_ns + RETRY_MS * NS_PER_MS;
	if (at != INT64_MAX)
		timer_arm(&d->w->timers, &d->timer, at);
	else
		timer_cancel(&d->w->timers, &d->timer);
}

/* An entry without any device is worth a word to who wrote it; later, interfaces come and go as they like. */
static void
warn_of_idle_entries(const struct devices *d, const struct device_want *want, unsigned cnt, FILE *err)
{
	for (unsigned i = 0; i < d->cfg->device_cnt; i++) {
		const struct config_device *cfg = &d->cfg->devices[i];
		bool used = false;

		for (unsigned k = 0; k < cnt; k++)
			used = used || (want[k].cfg == cfg && want[k].open);
		if (!used && cfg->interface[0] != '\0')
			fprintf(err, "warning: no address for a device on interface \"%s\" now\n", cfg->interface);
	}
}

static int
follow(struct devices *d, bool first, FILE *err)
{
	const struct netifs *ifs = d->w->netwatch != NULL ? netwatch_table(d->w->netwatch) : NULL;
	struct device_want want[WANTS_MAX];
	unsigned cnt = device_plan(d->cfg, ifs, want, WANTS_MAX);
	int rc;

	for (unsigned i = d->cnt; i-- > 0;) {
		struct device *me = &d->devs[i];

		if (!follow_one(me, find_want(want, cnt, &me->addr), d->w->now_ns))
			continue;
		log_msg(LOG_LVL_NOTICE, "device closed: device=%s reason=\"its address is gone\"", me->name);
		close_one(d, i);
	}
	if (err != NULL)
		warn_of_idle_entries(d, want, cnt, err);
	rc = open_missing(d, want, cnt, first, err);
	arm_again(d);
	return rc;
}

static void
on_timer(struct timer *t, int64_t now_ns)
{
	struct devices *d = CONTAINER_OF(t, struct devices, timer);

	(void)now_ns;
	d->due = true;
	loop_again(d->w->loop);
}

int
devices_open(struct worker *w, const struct config *cfg, FILE *err)
{
	struct devices *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return -ENOMEM;
	if (timerq_reserve(&w->timers, 1) != 0) {
		free(d);
		return -ENOMEM;
	}
	timer_init(&d->timer, on_timer);
	w->devices = d;
	d->w = w;
	d->cfg = cfg;
	rc = follow(d, true, err);
	if (rc != 0)
		devices_close(w);
	return rc;
}

bool
devices_follow(struct worker *w)
{
	bool news = w->netwatch != NULL && netwatch_take_news(w->netwatch);

	if (!news && !w->devices->due)
		return false;
	w->devices->due = false;
	(void)follow(w->devices, false, NULL);
	return news;
}

void
devices_reload(struct worker *w, const struct config *next, FILE *err)
{
	w->devices->cfg = next;
	(void)follow(w->devices, false, err);
}

void
devices_close(struct worker *w)
{
	struct devices *d = w->devices;

	if (d == NULL)
		return;
	while (d->cnt > 0)
		close_one(d, d->cnt - 1);
	for (int fd = 0; fd < d->watch_cap; fd++)
		unwatch_fd(d, fd);
	timer_cancel(&w->timers, &d->timer);
	timerq_unreserve(&w->timers, 1);
	free(d->watches);
	free(d);
	w->devices = NULL;
}

struct rnic_dev *
devices_get(const struct worker *w, unsigned i)
{
	return i < w->devices->cnt ? w->devices->devs[i].dev : NULL;
}
