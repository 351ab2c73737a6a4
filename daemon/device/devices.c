/* The devices of a worker; see devices.h. */
#include "daemon/device/devices.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/log.h"
#include "base/minmax.h"
#include "daemon/device/device.h"
#include "daemon/device/device_watch.h"
#include "daemon/device/memlock.h"
#include "daemon/device/netwatch.h"

#define RETRY_MS 10000 /* interval of retries for a device that did not open */
/* No event reports new or removed cards: intervals of reading the list while an entry has no device, and otherwise. */
#define LOOK_MS 2000
#define LOOK_IDLE_MS 10000
#define WATCH_MS 1000  /* interval of checks that the used cards are present */
#define SETTLE_MS 1000 /* GIDs follow addresses with a delay; also the minimum time between two lists */
#define RANGE_MAX 40
#define LOG_PAUSE_MS 1000 /* interval of reading the counters */

/* The caller of follow(). */
enum occasion {
	AT_START,
	AT_RELOAD,
	AT_CHANGE, /* of interfaces or devices */
	AT_TIMER,
};

/* A wanted device that does not open. */
struct failure {
	char where[DEVICE_WHERE_MAX];
	int rc; /* as logged */
};

struct devices {
	struct env *env;
	const struct config *cfg; /* the worker's */
	struct device_needs needs;
	struct netwatch netwatch;
	struct device_watches watches;
	struct device_cards cards;
	int cards_rc; /* of the list, as logged */
	struct device devs[SMCR_DEVS_MAX];
	unsigned cnt;
	struct failure failures[DEVICE_WANTS_MAX];
	unsigned failure_cnt;
	unsigned cardless_cnt; /* entries of type "verbs" without a device */
	bool memlock_seen;     /* the limit was checked */
	int64_t look_ns;       /* when the next full check is due */
	int64_t log_ns;        /* the counters are not read earlier */
	struct timer timer;
	bool due;     /* the timer has fired */
	bool changed; /* the engine got a change from a device */
};

/* -- opening and closing -- */

static bool
name_taken(const struct devices *d, const char *name)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (strcmp(d->devs[i].name, name) == 0)
			return true;
	return false;
}

/* 0, or -errno with *why a static text for the failed part. */
static int
open_one(struct devices *d, const struct device_want *want, const char **why)
{
	struct device *me = &d->devs[d->cnt];
	char where[DEVICE_WHERE_MAX];

	*why = "more devices than the engine takes";
	if (d->cnt == SMCR_DEVS_MAX)
		return -ENOSPC;
	*me = (struct device){ 0 };
	/* base, or base:2, base:3, ... when that is taken. */
	(void)snprintf(me->name, RNIC_NAME_MAX, "%.*s", RNIC_NAME_MAX - 1, want->base);
	for (unsigned n = 2; name_taken(d, me->name); n++)
		(void)snprintf(me->name, RNIC_NAME_MAX, "%.*s:%u", RNIC_NAME_MAX - 5, want->base, n % 1000);
	if (want->port != NULL && !d->memlock_seen) {
		memlock_check(d->cfg);
		d->memlock_seen = true;
	}
	int rc = device_open(me, want, &d->needs, why);
	if (rc != 0)
		return rc;
	rc = smcr_add_device(d->env->eng, me->dev);
	assert(rc == 0);
	d->cnt++;
	log_msg(LOG_LVL_INFO, "device opened: device=%s %s transport=%s port=%s", me->name,
	    device_where(want, "=", where, sizeof(where)), rnic_transport_str(rnic_query(me->dev).transport),
	    me->state == RNIC_PORT_UP ? "up" : "down");
	return 0;
}

static void
devices_close_one(struct devices *d, unsigned i)
{
	smcr_remove_device(d->env->eng, d->devs[i].dev);
	memmove(&d->devs[i], &d->devs[i + 1], (d->cnt - i - 1) * sizeof(d->devs[0]));
	d->cnt--;
}

/* -- missing devices -- */

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

static bool
devices_is_open(const struct devices *d, const struct device_want *want)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (device_find(&d->devs[i], want, 1) != NULL)
			return true;
	return false;
}

/* The setting and its range, when no port of it is free; "" otherwise. */
static const char *
range_words(const struct device_want *want, int rc, char buf[RANGE_MAX])
{
	const uint16_t *range = want->port != NULL ? &want->cfg->verbs.mpa_port_min : &want->cfg->siw.port_min;

	buf[0] = '\0';
	if (rc == -EADDRINUSE && range[0] != 0)
		(void)snprintf(buf, RANGE_MAX, ", mpa_ports = \"%u-%u\"", range[0], range[1]);
	return buf;
}

/* Opens missing devices and logs failures, again only when the reason changes. 0, or at start -errno with the reason
 * in err: without an address of its configuration the daemon cannot serve, whereas other failures are retried. */
static int
open_missing(struct devices *d, const struct device_round *r, enum occasion when, FILE *err)
{
	struct failure failures[DEVICE_WANTS_MAX];
	char range[RANGE_MAX];
	unsigned cnt = 0;
	const char *why;

	for (unsigned i = 0; i < r->want_cnt; i++) {
		const struct device_want *want = &r->want[i];
		struct failure *f = &failures[cnt];
		int rc = !want->open || devices_is_open(d, want) ? 0 : open_one(d, want, &why), logged = 0;

		if (rc == 0)
			continue;
		f->rc = rc;
		device_where(want, " ", f->where, sizeof(f->where));
		if (when == AT_START && want->port == NULL && rc != -EADDRNOTAVAIL && want->cfg->interface[0] == '\0') {
			fprintf(err, "device %s at %s: %s%s: %s\n", want->base, f->where, why,
			    range_words(want, rc, range), strerror(-rc));
			return rc;
		}
		for (unsigned k = 0; k < d->failure_cnt; k++)
			if (strcmp(d->failures[k].where, f->where) == 0)
				logged = d->failures[k].rc;
		if (logged != rc)
			warn(err, "device %s at %s is not there: %s%s: %s", want->base, f->where, why,
			    range_words(want, rc, range), strerror(-rc));
		cnt++;
	}
	memcpy(d->failures, failures, cnt * sizeof(failures[0]));
	d->failure_cnt = cnt;
	return 0;
}

/* Warns of entries without a device at start and reload only; later, interfaces and cards come and go. */
static void
warn_of_idle_entries(const struct devices *d, const struct device_round *r, FILE *err)
{
	char text[DEVICE_WHERE_MAX];

	for (unsigned i = 0; i < d->cfg->device_cnt; i++) {
		const struct config_device *cfg = &d->cfg->devices[i];

		if (device_plan_serves(cfg, r->want, r->want_cnt))
			continue;
		/* The absence of all cards is logged once for all entries. */
		if (cfg->type == CONFIG_DEVICE_VERBS && d->cards.rc == 0)
			warn(err, "no RDMA device for %s now: %s", device_entry_name(cfg, text, sizeof(text)),
			    device_plan_why_not(cfg, &d->netwatch.table, &d->cards));
		else if (cfg->type == CONFIG_DEVICE_SIW && cfg->interface[0] != '\0')
			warn(err, "no address for a device on interface \"%s\" now", cfg->interface);
	}
}

static void
list_cards(struct devices *d, enum occasion when, FILE *err)
{
	int64_t age_ns = d->env->now_ns - d->cards.at_ns;

	if (!config_has_verbs(d->cfg)) {
		device_cards_forget(&d->cards);
		d->cards_rc = 0;
		return;
	}
	if (when == AT_CHANGE && d->cards.listed && age_ns < SETTLE_MS * NS_PER_MS)
		return;
	device_cards_list(&d->cards, d->env->now_ns);
	if (d->cards.rc != 0 && (d->cards.rc != d->cards_rc || when == AT_RELOAD))
		warn(err, "no RDMA devices now: %s", d->cards.why);
	d->cards_rc = d->cards.rc;
}

static void
arm_timer(struct devices *d)
{
	int64_t at = d->look_ns;

	for (unsigned i = 0; i < d->cnt; i++)
		if (device_is_verbs(&d->devs[i]))
			at = min_i64(at, d->env->now_ns + WATCH_MS * NS_PER_MS);
	if (at != INT64_MAX)
		timer_arm(&d->env->timers, &d->timer, at);
	else
		timer_cancel(&d->env->timers, &d->timer);
}

/* Sets the time of the next check without an event: of all devices, and earlier of the presence of cards. */
static void
arm_again(struct devices *d, const struct device_round *r)
{
	int64_t now_ns = d->env->now_ns, at = INT64_MAX;
	bool lacks_card = false;

	d->cardless_cnt = 0;
	for (unsigned i = 0; i < d->cnt; i++) {
		if (d->devs[i].gone_ns == 0)
			continue;
		if (device_is_verbs(&d->devs[i]))
			lacks_card = true;
		else
			at = min_i64(at, d->devs[i].gone_ns + DEVICE_GONE_NS);
	}
	for (unsigned i = 0; i < d->cfg->device_cnt; i++)
		d->cardless_cnt += d->cfg->devices[i].type == CONFIG_DEVICE_VERBS &&
		    !device_plan_serves(&d->cfg->devices[i], r->want, r->want_cnt);
	lacks_card |= d->cardless_cnt > 0;
	if (d->failure_cnt > 0)
		at = min_i64(at, now_ns + RETRY_MS * NS_PER_MS);
	if (config_has_verbs(d->cfg)) {
		at = min_i64(at, now_ns + (lacks_card ? LOOK_MS : LOOK_IDLE_MS) * NS_PER_MS);
		if (r->unsettled)
			at = min_i64(at, now_ns + SETTLE_MS * NS_PER_MS);
	}
	d->look_ns = at;
	arm_timer(d);
}

static int
follow(struct devices *d, enum occasion when, FILE *err)
{
	struct device_want want[DEVICE_WANTS_MAX];
	struct device_round r = { .now_ns = d->env->now_ns, .want = want, .unsettled = when == AT_CHANGE };

	/* The engine reports them as gone. The list of cards is then outdated. */
	for (unsigned i = d->cnt; i-- > 0;) {
		if (!smcr_device_gone(d->env->eng, d->devs[i].dev))
			continue;
		log_msg(LOG_LVL_WARNING, "device closed: device=%s reason=\"the card is gone\"", d->devs[i].name);
		devices_close_one(d, i);
		device_cards_forget(&d->cards);
	}
	list_cards(d, when, err);
	r.want_cnt = device_plan(d->cfg, &d->netwatch.table, &d->cards, want, DEVICE_WANTS_MAX);
	r.cards_known = d->cards.listed && d->cards.rc == 0;
	for (unsigned i = d->cnt; i-- > 0;) {
		const char *why = device_follow(&d->devs[i], &r);

		if (why == NULL)
			continue;
		log_msg(LOG_LVL_NOTICE, "device closed: device=%s reason=\"%s\"", d->devs[i].name, why);
		devices_close_one(d, i);
	}
	if (when == AT_START || when == AT_RELOAD)
		warn_of_idle_entries(d, &r, err);
	int rc = open_missing(d, &r, when, err);
	arm_again(d, &r);
	return rc;
}

static void
set_networks(struct devices *d)
{
	struct smcr_subnet nets[SMCR_NETWORKS_MAX];

	smcr_set_networks(d->env->eng, nets, netifs_networks(&d->netwatch.table, nets));
}

static void
devices_on_timer(struct timer *t)
{
	struct devices *d = CONTAINER_OF(t, struct devices, timer);

	d->due = true;
	loop_again(d->env->loop);
}

unsigned
devices_retry(struct devices *d)
{
	d->look_ns = d->env->now_ns;
	d->due = true;
	loop_again(d->env->loop);
	return d->failure_cnt + d->cardless_cnt;
}

int
devices_new(struct env *env, const struct config *cfg, const struct devices_gate *gate, FILE *err, struct devices **out)
{
	struct devices *d = calloc(1, sizeof(*d));

	if (d == NULL || timerq_reserve(&env->timers, 1) != 0) {
		fprintf(err, "devices: out of memory\n");
		free(d);
		return -ENOMEM;
	}
	d->env = env;
	d->cfg = cfg;
	timer_init(&d->timer, devices_on_timer);
	d->needs = (struct device_needs){ device_watches_init(&d->watches, env->loop), &env->rng, *gate };
	int rc = netwatch_init(&d->netwatch, env->loop);
	if (rc != 0) {
		fprintf(err, "cannot list the network interfaces: %s\n", strerror(-rc));
	} else {
		set_networks(d);
		rc = follow(d, AT_START, err);
	}
	if (rc != 0) {
		devices_free(d);
		return rc;
	}
	*out = d;
	return 0;
}

void
devices_follow(struct devices *d)
{
	bool moved = netwatch_take_change(&d->netwatch);

	if (d->due && !moved && !d->changed) {
		d->due = d->env->now_ns >= d->look_ns;
		for (unsigned i = 0; i < d->cnt && !d->due; i++)
			d->due = device_is_verbs(&d->devs[i]) && !verbs_card_listed(d->devs[i].card);
		if (!d->due)
			arm_timer(d);
	}
	if (!moved && !d->changed && !d->due)
		return;
	(void)follow(d, d->due ? AT_TIMER : AT_CHANGE, NULL);
	d->due = d->changed = false;
	if (moved)
		set_networks(d);
}

bool
devices_listen(struct devices *d)
{
	if (smcr_take_device_changes(d->env->eng))
		d->changed = true;
	return d->changed;
}

int64_t
devices_log(struct devices *d)
{
	if (d->env->now_ns < d->log_ns)
		return d->log_ns;
	d->log_ns = d->env->now_ns + LOG_PAUSE_MS * NS_PER_MS;
	for (unsigned i = 0; i < d->cnt; i++)
		device_log_counters(&d->devs[i]);
	return INT64_MAX;
}

void
devices_reload(struct devices *d, const struct config *next, FILE *err)
{
	d->cfg = next;
	netwatch_reload(&d->netwatch);
	(void)follow(d, AT_RELOAD, err);
}

void
devices_close(struct devices *d)
{
	while (d->cnt > 0)
		devices_close_one(d, d->cnt - 1);
}

void
devices_free(struct devices *d)
{
	if (d == NULL)
		return;
	devices_close(d);
	device_watches_fini(&d->watches);
	device_cards_forget(&d->cards);
	netwatch_fini(&d->netwatch);
	timer_cancel(&d->env->timers, &d->timer);
	timerq_unreserve(&d->env->timers, 1);
	free(d);
}

/* 0: unknown. */
static unsigned
ifindex_of(const struct devices *d, const struct sockaddr_storage *addr)
{
	const struct netif_addr *a = netifs_find(&d->netwatch.table, addr);

	return a != NULL ? a->index : 0;
}

void
devices_describe(const struct devices *d, const struct sockaddr_storage *local, struct smcr_open *o)
{
	const struct device *near = NULL;

	o->subnet_cnt = netifs_networks_of(&d->netwatch.table, local, o->subnet);
	addr_to_v6(local, o->local_addr.b);
	for (unsigned i = 0; i < d->cnt; i++) {
		const struct device *me = &d->devs[i];

		if (!device_is_verbs(me) || me->state != RNIC_PORT_UP)
			continue;
		if (memcmp(&me->gid.gid, &o->local_addr, sizeof(me->gid.gid)) == 0)
			return;
		/* Of the two devices of a port, the one with the RoCE v2 GID: peers have the same. */
		if ((near == NULL || near->gid.type == RNIC_GID_ROCE_V1) && me->gid.ifindex != 0 &&
		    me->gid.ifindex == ifindex_of(d, local))
			near = me;
	}
	if (near != NULL)
		o->local_addr = near->gid.gid;
}

bool
devices_near(const struct devices *d, const struct rnic_gid *gid)
{
	for (unsigned i = 0; i < d->cnt; i++)
		if (netifs_near(&d->netwatch.table, rnic_query(d->devs[i].dev).gid.b, gid->b))
			return true;
	return false;
}

struct rnic_dev *
devices_get(const struct devices *d, unsigned i)
{
	return i < d->cnt ? d->devs[i].dev : NULL;
}

int
devices_add_ports(const struct devices *d, struct listen_socket_list *out)
{
	int rc = 0;

	for (unsigned i = 0; i < d->cnt && rc == 0; i++) {
		const struct listen_socket port = listen_socket_of_fd(
		    device_is_verbs(&d->devs[i]) ? -1 : siw_listening(d->devs[i].dev));

		rc = listen_socket_list_add_copies(out, &port);
	}
	return rc;
}

void
devices_drop_port(struct devices *d, const struct sockaddr_storage *port)
{
	for (unsigned i = 0; i < d->cnt; i++) {
		const struct listen_socket own = listen_socket_of_fd(
		    device_is_verbs(&d->devs[i]) ? -1 : siw_listening(d->devs[i].dev));

		if (own.fd >= 0 && listen_socket_listens_at(&own, port))
			siw_stop_listening(d->devs[i].dev);
	}
}

bool
devices_info(const struct devices *d, unsigned i, struct device_info *info)
{
	const struct device *me = &d->devs[i];

	if (i >= d->cnt)
		return false;
	*info = (struct device_info){ .rnic = rnic_query(me->dev) };
	if (me->dev->ops->stats != NULL)
		info->stat_cnt = me->dev->ops->stats(me->dev, info->stats);
	if (device_is_verbs(me)) {
		info->card = verbs_port_of(me->dev);
		info->gid = (struct verbs_gid){ .gid = me->gid.gid, .type = me->gid.type };
		for (unsigned k = 0; k < info->card->gid_cnt; k++)
			if (info->card->gids[k].type == me->gid.type &&
			    memcmp(&info->card->gids[k].gid, &me->gid.gid, sizeof(me->gid.gid)) == 0)
				info->gid = info->card->gids[k];
	} else {
		info->more_addrs = &me->siw.more_addrs;
	}
	const unsigned index = device_is_verbs(me) ? info->gid.ifindex : ifindex_of(d, &me->siw.addr);
	const struct netif *netif = netifs_by_index(&d->netwatch.table, index);
	info->interface = netif != NULL ? netif->name : "";
	info->interface_mtu = netif != NULL ? netif->mtu : 0;
	return true;
}

bool
devices_have_addr(const struct devices *d, const struct sockaddr_storage *addr)
{
	return netifs_find(&d->netwatch.table, addr) != NULL;
}

const char *
devices_interface(const struct devices *d, unsigned index)
{
	const struct netif *i = netifs_by_index(&d->netwatch.table, index);

	return i != NULL ? i->name : "";
}
