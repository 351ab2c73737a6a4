/* One open device; see device.h. */
#include "daemon/device/device.h"

#include <string.h>

#include "base/addr.h"
#include "base/log.h"

#define CARD_GONE_NS (1000 * NS_PER_MS)

int
device_open(struct device *me, const struct device_want *want, const struct device_needs *needs, const char **why)
{
	struct verbs_config verbs = want->cfg->verbs;
	struct siw_config *siw = &me->siw;
	int rc;

	if (want->port != NULL) {
		memcpy(verbs.name, me->name, sizeof(verbs.name));
		memcpy(verbs.dev, want->port->dev, sizeof(verbs.dev));
		memcpy(me->card, want->port->dev, sizeof(me->card));
		verbs.port = me->port = want->port->port;
		me->gid = *want->gid;
		verbs.gid = me->gid.gid;
		verbs.gid_type = me->gid.type;
		verbs.addr = want->cfg->addr; /* of an iWARP card; unspecified if the entry has no address */
		rc = verbs_open(&verbs, &needs->loop, needs->rng, &me->dev, why);
	} else {
		*siw = want->cfg->siw;
		memcpy(siw->name, me->name, sizeof(siw->name));
		siw->addr = want->addr;
		siw->may_connect = needs->gate.may_connect;
		siw->may_connect_ctx = needs->gate.ctx;
		me->placed = want->place != DEVICE_PLACE_UNKNOWN;
		rc = siw_open(siw, &needs->loop, needs->rng, &me->dev, why);
		/* Before the engine has it: a port that is down from the start is not a lost port. */
		if (rc == 0 && want->place == DEVICE_PLACE_DOWN)
			siw_set_port_state(me->dev, RNIC_PORT_DOWN);
	}
	if (rc == 0)
		me->state = rnic_query(me->dev).port;
	return rc;
}

const struct device_want *
device_find(const struct device *me, const struct device_want *want, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		const struct device_want *w = &want[i];

		if (w->port == NULL && !device_is_verbs(me) && addr_same_host(&w->addr, &me->siw.addr) &&
		    siw_same_llp(&w->cfg->siw, &me->siw))
			return w;
		if (w->port != NULL && strcmp(w->port->dev, me->card) == 0 && w->port->port == me->port &&
		    w->gid->type == me->gid.type && memcmp(&w->gid->gid, &me->gid.gid, sizeof(me->gid.gid)) == 0)
			return w;
	}
	return NULL;
}

/* -- changes of address, card and port -- */

static void
log_port(const struct device *me, enum rnic_port_state to, const char *why)
{
	char text[ADDR_STR_MAX];

	log_msg(to == RNIC_PORT_UP ? LOG_LVL_NOTICE : LOG_LVL_WARNING, "device port %s: device=%s %s=%s%s%s%s",
	    to == RNIC_PORT_UP ? "up" : "down", me->name, device_is_verbs(me) ? "gid" : "address",
	    device_is_verbs(me) ? device_gid_format(&me->gid.gid, text)
	                        : addr_format(&me->siw.addr, text, sizeof(text)),
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

static bool
gone_for(struct device *me, int64_t now_ns, int64_t ns)
{
	if (me->gone_ns == 0)
		me->gone_ns = now_ns;
	return now_ns - me->gone_ns >= ns;
}

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
	/* The last links of groups wait for it (smcr.last_link_timeout). */
	if (rnic_query(me->dev).qp_cnt > 0)
		me->gone_ns = now_ns;
	return gone_for(me, now_ns, DEVICE_GONE_NS) ? "its address is gone" : NULL;
}

/* The device of a card detects by itself that the port is down or the GID gone. */
static const char *
follow_verbs(struct device *me, const struct device_want *want, struct device_round *r)
{
	struct rnic_info info = rnic_query(me->dev);
	bool present = verbs_gid_present(me->dev);

	if (info.port != me->state)
		log_port(me, info.port,
		    info.port == RNIC_PORT_UP ? ""
		        : present             ? "the port is down"
		                              : "the GID is gone");
	me->state = info.port;
	/* Some drivers wait until we release the card before they remove it, and send no other event. The second check
	 * is for a list that was made while names changed. */
	if (!verbs_card_listed(me->card)) {
		r->unsettled = true;
		return gone_for(me, r->now_ns, CARD_GONE_NS) ? "the card is gone" : NULL;
	}
	if (!present)
		return gone_for(me, r->now_ns, DEVICE_GONE_NS) ? "its GID is gone" : NULL;
	me->gone_ns = 0;
	return r->cards_known && want == NULL && info.qp_cnt == 0 ? "another GID is better" : NULL;
}

const char *
device_follow(struct device *me, struct device_round *r)
{
	const struct device_want *want = device_find(me, r->want, r->want_cnt);

	return device_is_verbs(me) ? follow_verbs(me, want, r) : follow_siw(me, want, r->now_ns);
}

static const struct {
	const char *counter, *words;
} watched[DEVICE_LOGGED_CNT] = {
	{ "mpa_refused_address", "iWARP connections from addresses that may not connect" },
	{ "mpa_bad", "iWARP connections without a proper request" },
	{ "mpa_refused_token", "iWARP connections refused: not from a peer, or no link waits for one" },
	{ "mpa_refused_parked", "iWARP connections refused: not expected" },
	{ "crc_errors", "CRC errors" },
	{ "terminates_sent", "streams ended because of the peer's errors" },
	{ "terminates_received", "streams ended by the peer because of errors" },
	{ "accept_pauses", "accepting paused: out of descriptors" },
	{ "strangers_limited", "SCTP packets without an association, over the limit" },
	{ "no_memory", "out of memory" },
};

/* Logs the increase of a counter since its last line. The address is that of the last refused connection. */
static void
log_counter(const struct device *me, const struct rnic_stat *stat, uint64_t before, const char *words)
{
	const struct rnic_ops *ops = me->dev->ops;
	struct sockaddr_storage from;
	char text[ADDR_STR_MAX] = "";

	if (ops->last_refused != NULL && ops->last_refused(me->dev, stat->name, &from))
		(void)addr_format_port(&from, text, sizeof(text));
	log_msg(LOG_LVL_NOTICE, "%s: device=%s count=%llu total=%llu%s%s", words, me->name,
	    (unsigned long long)(stat->value - before), (unsigned long long)stat->value,
	    text[0] != '\0' ? " from=" : "", text);
}

void
device_log_counters(struct device *me)
{
	struct rnic_stat stats[RNIC_STATS_MAX];
	unsigned cnt = me->dev->ops->stats != NULL ? me->dev->ops->stats(me->dev, stats) : 0;

	for (unsigned i = 0; i < DEVICE_LOGGED_CNT; i++) {
		for (unsigned k = 0; k < cnt; k++) {
			if (strcmp(stats[k].name, watched[i].counter) != 0 || stats[k].value == me->logged[i])
				continue;
			log_counter(me, &stats[k], me->logged[i], watched[i].words);
			me->logged[i] = stats[k].value;
		}
	}
}
