/* RNIC devices on the event loop; see devices.h. */
#include "daemon/device/devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/device/devices_priv.h"
#include "daemon/device/memlock.h"
#include "daemon/worker/mpa_clients.h"
#include "daemon/device/netwatch.h"

#define GONE_MS 10000  /* an address may come back: its device keeps its name and port so long */
#define RETRY_MS 10000 /* a device that did not open is tried again */
/* Cards come and go without a word of the network: how often they are listed while an entry has none, and otherwise. */
#define WATCH_MS 1000 /* so often it is asked whether those in use are still there */
#define LOOK_MS 2000
#define LOOK_IDLE_MS 10000
#define SETTLE_MS 1000 /* GIDs follow addresses a little later; also: no two lists within this time */

/* Why follow() is called. */
enum occasion {
	AT_START,
	AT_RELOAD,
	AT_NEWS, /* of interfaces or devices */
	AT_TIMER,
};

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

static int
open_siw(struct devices *d, const struct device_want *want, struct device *me, const char **why)
{
	const struct rnic_loop loop = device_watches_loop(&d->watches);
	struct siw_config siw = want->cfg->siw;
	int rc;

	memcpy(siw.name, me->name, sizeof(siw.name));
	siw.addr = me->addr = want->addr;
	siw.may_connect = mpa_clients_allow;
	siw.may_connect_ctx = d->w;
	me->placed = want->place != DEVICE_PLACE_UNKNOWN;
	rc = siw_open(&siw, &loop, &d->w->rng, &me->dev, why);
	/* Before the engine has it: a port that is down from the start is no loss. */
	if (rc == 0 && want->place == DEVICE_PLACE_DOWN)
		siw_set_port_state(me->dev, RNIC_PORT_DOWN);
	return rc;
}

static int
open_verbs(struct devices *d, const struct device_want *want, struct device *me, const char **why)
{
	const struct rnic_loop loop = device_watches_loop(&d->watches);
	struct verbs_config verbs = want->cfg->verbs;

	if (!d->memlock_seen)
		memlock_check(d->cfg);
	d->memlock_seen = true;
	memcpy(verbs.name, me->name, sizeof(verbs.name));
	memcpy(verbs.dev, want->port->dev, sizeof(verbs.dev));
	memcpy(me->card, want->port->dev, sizeof(me->card));
	verbs.port = me->port = want->port->port;
	verbs.gid = me->gid = want->gid->gid;
	verbs.gid_type = me->gid_type = want->gid->type;
	me->ifindex = want->gid->ifindex;
	verbs.addr = want->cfg->addr; /* of an iWARP card; unspecified where the entry names none */
	return verbs_open(&verbs, &loop, &d->w->rng, &me->dev, why);
}

/* 0, or -errno with *why a static text about what is at fault. */
static int
open_one(struct devices *d, const struct device_want *want, const char **why)
{
	struct device *me = &d->devs[d->cnt];
	char where[DEVICE_WHERE_MAX];
	int rc;

	*why = "more devices than the engine takes";
	if (d->full || d->cnt == DEVICES_MAX)
		return -ENOSPC;
	*me = (struct device){ 0 };
	choose_name(d, want->base, me->name);
	rc = want->port != NULL ? open_verbs(d, want, me, why) : open_siw(d, want, me, why);
	if (rc != 0)
		return rc;
	rc = smcr_add_device(d->w->eng, me->dev);
	if (rc != 0) {
		*why = "more devices than the engine takes";
		d->full = true;
		me->dev->ops->free(me->dev);
		return rc;
	}
	d->cnt++;
	me->state = rnic_query(me->dev).port;
	log_msg(LOG_LVL_INFO, "device opened: device=%s %s port=%s", me->name,
	    device_where(want, "=", where, sizeof(where)), me->state == RNIC_PORT_UP ? "up" : "down");
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
log_port(const struct device *me, enum rnic_port_state to, const char *why)
{
	char text[ADDR_STR_MAX];

	log_msg(to == RNIC_PORT_UP ? LOG_LVL_NOTICE : LOG_LVL_WARNING, "device port %s: device=%s %s=%s%s%s%s",
	    to == RNIC_PORT_UP ? "up" : "down", me->name, device_is_verbs(me) ? "gid" : "address",
	    device_is_verbs(me) ? device_gid_format(&me->gid, text) : addr_format(&me->addr, text, sizeof(text)),
	    why[0] != '\0' ? " reason=\"" : "", why, why[0] != '\0' ? "\"" : "");
}

static void
set_port(struct device *me, enum rnic_port_state to, const char *why)
{
	if (rnic_query(me->dev).port == to)
		return;
	siw_set_port_state(me->dev, to);
	log_port(me, to, why);
}

/* -- what becomes of an open device -- */

/* The one that this device is. */
static const struct device_want *
find_want(const struct device *me, const struct device_want *want, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		const struct device_want *w = &want[i];

		if (w->port == NULL && !device_is_verbs(me) && addr_same_host(&w->addr, &me->addr))
			return w;
		if (w->port != NULL && strcmp(w->port->dev, me->card) == 0 && w->port->port == me->port &&
		    w->gid->type == me->gid_type && memcmp(&w->gid->gid, &me->gid, sizeof(me->gid)) == 0)
			return w;
	}
	return NULL;
}

static bool
is_open(const struct devices *d, const struct device_want *want)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (find_want(&d->devs[i], want, 1) != NULL)
			return true;
	return false;
}

static bool
gone_for(struct device *me, int64_t now_ns, int64_t ms)
{
	if (me->gone_ns == 0)
		me->gone_ns = now_ns;
	return now_ns - me->gone_ns >= ms * NS_PER_MS;
}

/* What has become of the device's address: why the device is to be closed, or NULL. */
static const char *
follow_siw(struct device *me, const struct device_want *want, int64_t now_ns)
{
	enum device_place place = want != NULL ? want->place : DEVICE_PLACE_UNKNOWN;

	if (place != DEVICE_PLACE_UNKNOWN) {
		me->placed = true;
		me->gone_ns = 0;
		set_port(me, place == DEVICE_PLACE_UP ? RNIC_PORT_UP : RNIC_PORT_DOWN,
		    place == DEVICE_PLACE_UP ? "" : "the interface is down or has no carrier");
		return NULL;
	}
	if (!me->placed)
		return NULL;
	set_port(me, RNIC_PORT_DOWN, "the address is gone");
	return gone_for(me, now_ns, GONE_MS) ? "its address is gone" : NULL;
}

/* The same for a card: its device knows by itself when the port is down or the GID gone. */
static const char *
follow_verbs(struct devices *d, struct device *me, const struct device_want *want, int64_t now_ns)
{
	struct rnic_info info = rnic_query(me->dev);
	bool present = verbs_gid_present(me->dev);

	if (info.port != me->state)
		log_port(me, info.port,
		    info.port == RNIC_PORT_UP ? ""
		        : present             ? "the port is down"
		                              : "the GID is gone");
	me->state = info.port;
	/* Some drivers wait for us to let go before the card goes, and have no other word for it. The second look is
	 * for a list that was made while names changed. */
	if (!verbs_card_listed(me->card)) {
		d->unsettled = true;
		return gone_for(me, now_ns, SETTLE_MS) ? "the card is gone" : NULL;
	}
	if (!present)
		return gone_for(me, now_ns, GONE_MS) ? "its GID is gone" : NULL;
	me->gone_ns = 0;
	return d->cards.listed && d->cards.rc == 0 && want == NULL && info.qp_cnt == 0 ? "another GID is better" : NULL;
}

static void
follow_open(struct devices *d, const struct device_want *want, unsigned cnt)
{
	int64_t now_ns = d->w->now_ns;

	for (unsigned i = d->cnt; i-- > 0;) {
		struct device *me = &d->devs[i];
		const struct device_want *mine = find_want(me, want, cnt);
		const char *why = device_is_verbs(me) ? follow_verbs(d, me, mine, now_ns)
		                                      : follow_siw(me, mine, now_ns);

		if (why == NULL)
			continue;
		log_msg(LOG_LVL_NOTICE, "device closed: device=%s reason=\"%s\"", me->name, why);
		close_one(d, i);
	}
}

/* Those that told the engine so. What is known of cards is no longer true then. */
static void
close_gone(struct devices *d)
{
	for (unsigned i = d->cnt; i-- > 0;) {
		if (!smcr_device_gone(d->w->eng, d->devs[i].dev))
			continue;
		log_msg(LOG_LVL_WARNING, "device closed: device=%s reason=\"the card is gone\"", d->devs[i].name);
		close_one(d, i);
		device_cards_forget(&d->cards);
	}
}

/* -- what is missing -- */

static void __attribute__((format(printf, 2, 3))) warn(FILE *err, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (err != NULL)
		fprintf(err, "warning: %s\n", text);
	else
		log_msg(LOG_LVL_WARNING, "%s", text);
}

/* Says once why a device does not open, until there is another reason. */
static void
note_failure(struct devices *d, const struct device_want *want, int rc, const char *why, FILE *err)
{
	char where[DEVICE_WHERE_MAX];
	struct failure *f = NULL;

	device_where(want, " ", where, sizeof(where));
	for (unsigned i = 0; i < d->failure_cnt; i++)
		if (strcmp(d->failures[i].where, where) == 0)
			f = &d->failures[i];
	if (f == NULL && d->failure_cnt < WANTS_MAX) {
		f = &d->failures[d->failure_cnt++];
		*f = (struct failure){ 0 };
		memcpy(f->where, where, sizeof(f->where));
	}
	if (f == NULL)
		return;
	f->seen = true;
	if (f->rc == rc)
		return;
	f->rc = rc;
	warn(err, "device %s at %s is not there: %s: %s", want->base, where, why, strerror(-rc));
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

/* A daemon that cannot have the address it is told is of no use; what may come later is waited for. */
static bool
is_fatal(const struct device_want *want, int rc)
{
	return want->port == NULL && rc != -EADDRNOTAVAIL && want->cfg->interface[0] == '\0';
}

/* Opens what is missing. 0, or at start -errno with the reason in err. */
static int
open_missing(struct devices *d, const struct device_want *want, unsigned cnt, enum occasion when, FILE *err)
{
	char where[DEVICE_WHERE_MAX];
	const char *why;

	for (unsigned i = 0; i < cnt; i++) {
		int rc;

		if (!want[i].open || is_open(d, &want[i]))
			continue;
		rc = open_one(d, &want[i], &why);
		if (rc == 0)
			continue;
		if (when == AT_START && is_fatal(&want[i], rc)) {
			fprintf(err, "device %s at %s: %s: %s\n", want[i].base,
			    device_where(&want[i], " ", where, sizeof(where)), why, strerror(-rc));
			return rc;
		}
		note_failure(d, &want[i], rc, why, err);
	}
	forget_failures(d);
	return 0;
}

static bool
has_device(const struct config_device *cfg, const struct device_want *want, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (want[i].cfg == cfg && want[i].open)
			return true;
	return false;
}

/* An entry without any device is worth a word to who wrote it; later, interfaces and cards come and go as they like. */
static void
warn_of_idle_entries(
    const struct devices *d, const struct device_view *view, const struct device_want *want, unsigned cnt, FILE *err)
{
	char text[DEVICE_WHERE_MAX];

	for (unsigned i = 0; i < d->cfg->device_cnt; i++) {
		const struct config_device *cfg = &d->cfg->devices[i];

		if (has_device(cfg, want, cnt))
			continue;
		/* That there are no cards at all is said once for all entries. */
		if (cfg->type == CONFIG_DEVICE_VERBS && d->cards.rc == 0)
			warn(err, "no RDMA device for %s now: %s", device_entry_name(cfg, text, sizeof(text)),
			    device_plan_why_not(cfg, view));
		else if (cfg->type == CONFIG_DEVICE_SIW && cfg->interface[0] != '\0')
			warn(err, "no address for a device on interface \"%s\" now", cfg->interface);
	}
}

/* -- cards -- */

static void
list_cards(struct devices *d, enum occasion when, FILE *err)
{
	int64_t age_ns = d->w->now_ns - d->cards.at_ns;

	if (!device_plan_has_verbs(d->cfg)) {
		device_cards_forget(&d->cards);
		d->cards_rc = 0;
		return;
	}
	if (when == AT_NEWS && d->cards.listed && age_ns < SETTLE_MS * NS_PER_MS)
		return;
	device_cards_list(&d->cards, d->w->now_ns);
	if (d->cards.rc != 0 && (d->cards.rc != d->cards_rc || when == AT_RELOAD))
		warn(err, "no RDMA devices now: %s", d->cards.why);
	d->cards_rc = d->cards.rc;
}

/* Is there an entry of type "verbs" that has no device? */
static bool
lacks_card(const struct devices *d, const struct device_want *want, unsigned cnt)
{
	for (unsigned i = 0; i < d->cfg->device_cnt; i++)
		if (d->cfg->devices[i].type == CONFIG_DEVICE_VERBS && !has_device(&d->cfg->devices[i], want, cnt))
			return true;
	for (unsigned i = 0; i < d->cnt; i++)
		if (device_is_verbs(&d->devs[i]) && d->devs[i].gone_ns != 0)
			return true;
	return false;
}

/* -- all devices -- */

static void
sooner(int64_t *at, int64_t than)
{
	if (than < *at)
		*at = than;
}

static void
arm_timer(struct devices *d)
{
	int64_t at = d->look_ns;

	for (unsigned i = 0; i < d->cnt; i++)
		if (device_is_verbs(&d->devs[i]))
			sooner(&at, d->w->now_ns + WATCH_MS * NS_PER_MS);
	if (at != INT64_MAX)
		timer_arm(&d->w->timers, &d->timer, at);
	else
		timer_cancel(&d->w->timers, &d->timer);
}

/* When to look again though nobody says that there is news: at everything, and before that at whether cards are there. */
static void
arm_again(struct devices *d, bool lacks)
{
	int64_t now_ns = d->w->now_ns, at = INT64_MAX;

	for (unsigned i = 0; i < d->cnt; i++)
		if (d->devs[i].gone_ns != 0 && !device_is_verbs(&d->devs[i]))
			sooner(&at, d->devs[i].gone_ns + GONE_MS * NS_PER_MS);
	if (d->failure_cnt > 0)
		sooner(&at, now_ns + RETRY_MS * NS_PER_MS);
	if (device_plan_has_verbs(d->cfg)) {
		sooner(&at, now_ns + (lacks ? LOOK_MS : LOOK_IDLE_MS) * NS_PER_MS);
		if (d->unsettled)
			sooner(&at, now_ns + SETTLE_MS * NS_PER_MS);
	}
	d->look_ns = at;
	arm_timer(d);
}

static int
follow(struct devices *d, enum occasion when, FILE *err)
{
	struct device_want want[WANTS_MAX];
	struct device_view view;
	unsigned cnt;
	int rc;

	close_gone(d);
	list_cards(d, when, err);
	d->unsettled = when == AT_NEWS;
	view = (struct device_view){
		.ifs = d->w->netwatch != NULL ? netwatch_table(d->w->netwatch) : NULL,
		.ports = d->cards.ports,
		.port_cnt = d->cards.cnt,
	};
	cnt = device_plan(d->cfg, &view, want, WANTS_MAX);
	follow_open(d, want, cnt);
	if (when == AT_START || when == AT_RELOAD)
		warn_of_idle_entries(d, &view, want, cnt, err);
	rc = open_missing(d, want, cnt, when, err);
	arm_again(d, lacks_card(d, want, cnt));
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

	if (d == NULL || timerq_reserve(&w->timers, 1) != 0) {
		fprintf(err, "devices: out of memory\n");
		free(d);
		return -ENOMEM;
	}
	timer_init(&d->timer, on_timer);
	device_watches_init(&d->watches, w->loop);
	device_cards_init(&d->cards);
	w->devices = d;
	d->w = w;
	d->cfg = cfg;
	rc = follow(d, AT_START, err);
	if (rc != 0)
		devices_close(w);
	return rc;
}

/* The timer: true when a whole round is due. */
static bool
look_is_due(struct devices *d)
{
	if (d->w->now_ns >= d->look_ns)
		return true;
	for (unsigned i = 0; i < d->cnt; i++)
		if (device_is_verbs(&d->devs[i]) && !verbs_card_listed(d->devs[i].card))
			return true;
	arm_timer(d);
	return false;
}

bool
devices_follow(struct worker *w)
{
	bool news = w->netwatch != NULL && netwatch_take_news(w->netwatch);
	struct devices *d = w->devices;

	if (d->due && !news && !d->news)
		d->due = look_is_due(d);
	if (!news && !d->news && !d->due)
		return false;
	(void)follow(d, d->due ? AT_TIMER : AT_NEWS, NULL);
	d->due = d->news = false;
	return news;
}

bool
devices_listen(struct worker *w)
{
	if (smcr_take_device_news(w->eng))
		w->devices->news = true;
	return w->devices->news;
}

void
devices_reload(struct worker *w, const struct config *next, FILE *err)
{
	w->devices->cfg = next;
	(void)follow(w->devices, AT_RELOAD, err);
}

void
devices_close(struct worker *w)
{
	struct devices *d = w->devices;

	if (d == NULL)
		return;
	while (d->cnt > 0)
		close_one(d, d->cnt - 1);
	device_watches_fini(&d->watches);
	device_cards_fini(&d->cards);
	timer_cancel(&w->timers, &d->timer);
	timerq_unreserve(&w->timers, 1);
	free(d);
	w->devices = NULL;
}
