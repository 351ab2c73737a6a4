/*
 * The engine: one turn (poll, events, flush), its devices, log lines and trace.
 * What the turn meets is handled in link.c, llc.c, rendezvous.c and conn.c.
 */
#include "smcr/data/conn.h"
#include "smcr/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smcr/rendezvous/peer.h"
#include "smcr/rendezvous/rendezvous.h"

#define CONNS_PER_CHUNK 64
#define RDVS_PER_CHUNK 16
#define WC_BATCH 16    /* small: the stack has one a device, and a hardened build probes each page of it */
#define WC_BUDGET 8192 /* completions handled in one poll, per device */

void
smcr_config_init(struct smcr_config *cfg)
{
	*cfg = (struct smcr_config){
		.conns_max = 65536,
		.conns_per_group = SMCR_CONNS_PER_GROUP,
		.quarantine_max = 64,
		.groups_per_addr = 16,
		.rmb_bytes_max = 4ull << 30,
		.rmb_elems = 255,
		.links_max = 2,
		.sndbuf_size = 64 * 1024,
		.sq_depth = 1024,
		.rq_depth = 1024,
		.clc_ms = 6000,
		.llc_ms = 2000,
		.confirm_link_ms = 4000,
		.add_link_ms = 2000,
		.add_link_retry_ms = 10000,
		.add_link_retry_max_ms = 600000,
		.keepalive_ms = 30000,
		.keepalive_answer_ms = 2000,
		.group_idle_ms = 600000,
		.rmb_idle_ms = 60000,
		.close_ms = 60000,
		.abort_ms = 10000,
		.fin_grace_ms = 2000,
		.holdoff_ms = 1000,
		.holdoff_max_ms = 60000,
	};
}

struct smcr *
smcr_new(const struct smcr_config *cfg, struct rng *rng, int64_t now_ns)
{
	struct smcr *eng = calloc(1, sizeof(*eng));

	if (eng == NULL)
		return NULL;
	eng->cfg = *cfg;
	eng->rng = rng;
	eng->now_ns = now_ns;
	timerq_init(&eng->timers);
	idtable_init(&eng->conns, cfg->conns_max < IDTABLE_MAX ? cfg->conns_max : IDTABLE_MAX);
	slab_init(&eng->conn_slab, sizeof(struct smcr_conn), CONNS_PER_CHUNK);
	slab_init(&eng->rdv_slab, sizeof(struct rdv), RDVS_PER_CHUNK);
	list_init(&eng->lgrs);
	list_init(&eng->dead_lgrs);
	list_init(&eng->peers);
	list_init(&eng->events);
	list_init(&eng->dead_conns);
	list_init(&eng->busy_links);
	/* A MAC of our own, locally administered, for devices without one; and with it the peer id: an
	 * instance number and a MAC (A.2.1). */
	rng->fill(rng, eng->mac, sizeof(eng->mac));
	eng->mac[0] = (uint8_t)((eng->mac[0] & 0xfc) | 0x02);
	rng->fill(rng, eng->peer_id, 2);
	memcpy(eng->peer_id + 2, eng->mac, sizeof(eng->mac));
	return eng;
}

static void
free_dead(struct smcr *eng)
{
	struct list_node *n, held;

	while ((n = list_pop(&eng->dead_conns)) != NULL)
		conn_free(CONTAINER_OF(n, struct smcr_conn, event_node));
	list_init(&held);
	while ((n = list_pop(&eng->dead_lgrs)) != NULL)
		if (!lgr_free(CONTAINER_OF(n, struct lgr, node)))
			list_push(&held, n);
	while ((n = list_pop(&held)) != NULL)
		list_push(&eng->dead_lgrs, n);
}

void
smcr_free(struct smcr *eng)
{
	struct list_node *n;
	struct smcr_conn *conn;
	uint32_t pos = 0;

	if (eng == NULL)
		return;
	while ((n = list_first(&eng->lgrs)) != NULL)
		lgr_down(CONTAINER_OF(n, struct lgr, node), SMCR_R_SHUTDOWN, "the engine ends");
	while ((conn = idtable_next(&eng->conns, &pos)) != NULL)
		smcr_release(conn);
	free_dead(eng);
	peer_free_all(eng);
	timerq_fini(&eng->timers);
	idtable_fini(&eng->conns);
	slab_fini(&eng->conn_slab);
	slab_fini(&eng->rdv_slab);
	free(eng);
}

/* Links that live are tested at the new interval, or not any more. */
static void
keepalive_anew(struct smcr *eng)
{
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS; i++)
			if (lgr->links[i].state == LINK_ACTIVE)
				llc_keepalive_arm(&lgr->links[i]);
	}
}

void
smcr_reconfigure(struct smcr *eng, const struct smcr_config *cfg)
{
	struct smcr_config old = eng->cfg;

	eng->cfg = *cfg;
	/* What live groups were built on stays. */
	eng->cfg.conns_max = old.conns_max;
	eng->cfg.sndbuf_size = old.sndbuf_size;
	eng->cfg.sq_depth = old.sq_depth;
	eng->cfg.rq_depth = old.rq_depth;
	if (eng->cfg.keepalive_ms != old.keepalive_ms)
		keepalive_anew(eng);
}

/* Groups may have another link now. */
static void
device_is_there(struct smcr *eng)
{
	LIST_FOREACH(n, &eng->lgrs)
		llc_device_appeared(CONTAINER_OF(n, struct lgr, node));
}

int
smcr_add_device(struct smcr *eng, struct rnic_dev *dev)
{
	if (eng->dev_cnt + eng->gone_cnt == SMCR_DEVS_MAX)
		return -ENOSPC;
	eng->devs[eng->dev_cnt++] = dev;
	dev->ctx = eng;
	dev->now_ns = eng->now_ns;
	device_is_there(eng);
	return 0;
}

void
smcr_set_dial_policy(
    struct smcr *eng, bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle), void *ctx)
{
	eng->may_dial = may;
	eng->may_dial_ctx = ctx;
}

bool
engine_may_dial(struct smcr *eng, struct rnic_dev *dev, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	/* RoCE connects to nobody: its packets stay within the subnet, and find a queue pair or none. */
	if (eng->may_dial == NULL || rnic_query(dev).transport != RNIC_TRANSPORT_IWARP)
		return true;
	if (eng->may_dial(eng->may_dial_ctx, to, middle))
		return true;
	eng->ctr.refused_mpa_peers++;
	return false;
}

static void
device_links_down(struct smcr *eng, const struct rnic_dev *dev, const char *why)
{
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS; i++)
			if (lgr->links[i].dev == dev)
				link_down(&lgr->links[i], why);
	}
}

/* Out of the list: the order of the others does not count. */
static void
take_out(struct rnic_dev **devs, unsigned *cnt, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < *cnt; i++)
		if (devs[i] == dev)
			devs[i--] = devs[--*cnt];
}

/* It is to be removed by whoever added it; until then nobody is to choose it. */
static void
device_gone(struct smcr *eng, struct rnic_dev *dev)
{
	take_out(eng->devs, &eng->dev_cnt, dev);
	eng->gone_devs[eng->gone_cnt++] = dev;
	device_links_down(eng, dev, "device gone");
}

bool
smcr_take_device_news(struct smcr *eng)
{
	bool news = eng->dev_news;

	eng->dev_news = false;
	return news;
}

bool
smcr_device_gone(const struct smcr *eng, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < eng->gone_cnt; i++)
		if (eng->gone_devs[i] == dev)
			return true;
	return false;
}

void
smcr_set_networks(struct smcr *eng, const struct smcr_subnet *nets, unsigned cnt)
{
	eng->net_cnt = cnt < SMCR_NETWORKS_MAX ? cnt : SMCR_NETWORKS_MAX;
	memcpy(eng->nets, nets, eng->net_cnt * sizeof(*nets));
}

/* -- the turn -- */

static void
log_trouble(struct smcr *eng, struct rnic_dev *dev, const char *why)
{
	unsigned at = (eng->log_first + eng->log_cnt) % SMCR_LOG_MAX;
	bool full = eng->log_cnt == SMCR_LOG_MAX;

	engine_log(eng, SMCR_LOG_DEVICE, NULL, NULL, why);
	if (!full)
		memcpy(eng->log[at].device, rnic_query(dev).name, sizeof(eng->log[at].device));
}

static void
device_event(struct smcr *eng, struct rnic_dev *dev, const struct rnic_event *ev)
{
	struct link *link = ev->qp != NULL ? ev->qp->ctx : NULL;

	switch (ev->type) {
	case RNIC_EV_CONNECTED:
		link_connected(link);
		break;
	case RNIC_EV_CONNECT_FAILED:
		link_down(link, ev->why != NULL ? ev->why : "queue pair could not be connected");
		break;
	case RNIC_EV_QP_ERROR:
		link_down(link, ev->why != NULL ? ev->why : "queue pair error");
		break;
	case RNIC_EV_CREDITS:
		link_kick(link);
		break;
	case RNIC_EV_PORT_DOWN:
		eng->dev_news = true;
		device_links_down(eng, dev, "port down");
		break;
	case RNIC_EV_DEV_GONE:
		eng->dev_news = true;
		device_gone(eng, dev);
		break;
	case RNIC_EV_PORT_UP:
		eng->dev_news = true;
		device_is_there(eng);
		break;
	case RNIC_EV_TROUBLE:
		log_trouble(eng, dev, ev->why);
		break;
	}
}

/* What all devices have to say; one that is gone leaves the list while we walk it. */
static void
device_events(struct smcr *eng)
{
	struct rnic_event ev;

	for (unsigned i = 0; i < eng->dev_cnt;) {
		struct rnic_dev *dev = eng->devs[i];

		while (i < eng->dev_cnt && eng->devs[i] == dev && dev->ops->poll_event(dev, &ev))
			device_event(eng, dev, &ev);
		if (i < eng->dev_cnt && eng->devs[i] == dev)
			i++;
	}
}

/* Exchanges that waited for the end of another one start. */
static void
settle(struct smcr *eng)
{
	if (!eng->lgrs_to_settle)
		return;
	eng->lgrs_to_settle = false;
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		if (!lgr->settle)
			continue;
		lgr->settle = false;
		llc_next(lgr);
	}
}

/* Links whose requests failed and whose device did not say why, or that take no more. */
static void
failed_links_down(struct smcr *eng)
{
	eng->links_failed = false;
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS; i++)
			if (lgr->links[i].failed != NULL)
				link_down(&lgr->links[i], lgr->links[i].failed);
	}
}

/* Completions of a device under way. */
struct wc_batch {
	struct rnic_wc wc[WC_BATCH];
	unsigned cnt, at;
	unsigned total;
	bool done; /* nothing is left, or the budget is used up */
};

/* Handles completions of a device until none is left or one has to wait for those of other devices: how many. */
static unsigned
device_completions(struct rnic_dev *dev, struct wc_batch *b, bool last)
{
	unsigned handled = 0;

	while (!b->done) {
		for (; b->at < b->cnt; b->at++, handled++) {
			const struct rnic_wc *wc = &b->wc[b->at];
			struct link *link = wc->qp->ctx;

			if (wc->op != RNIC_WC_RECV)
				link_wc(link, wc);
			else if (!link_recv(link, wc, last))
				return handled;
		}
		b->done = (b->total > 0 && b->cnt < WC_BATCH) || b->total >= WC_BUDGET;
		if (b->done)
			break;
		b->cnt = dev->ops->poll(dev, b->wc, WC_BATCH);
		b->at = 0;
		b->total += b->cnt;
		b->done = b->cnt == 0;
	}
	return handled;
}

/* Those of some devices. A failover validation message may overtake, on its link, what the peer sent over another one and
 * has completions for (4.6.1): it waits until nothing else is left. */
static void
completions_of(struct rnic_dev *const *devs, unsigned cnt)
{
	struct wc_batch batch[SMCR_DEVS_MAX];
	bool last = false, left;
	unsigned handled;

	for (unsigned i = 0; i < cnt; i++)
		batch[i].cnt = batch[i].at = batch[i].total = batch[i].done = 0;
	do {
		handled = 0;
		left = false;
		for (unsigned i = 0; i < cnt; i++) {
			handled += device_completions(devs[i], &batch[i], last);
			left = left || !batch[i].done;
		}
		last = handled == 0;
	} while (left);
}

static void
completions(struct smcr *eng)
{
	completions_of(eng->devs, eng->dev_cnt);
}

void
smcr_remove_device(struct smcr *eng, struct rnic_dev *dev)
{
	/* What has arrived still counts: the peer has its completions. */
	completions(eng);
	/* Before its links go: who goes on when a group dies is not to choose it again. */
	take_out(eng->devs, &eng->dev_cnt, dev);
	take_out(eng->gone_devs, &eng->gone_cnt, dev);
	device_links_down(eng, dev, "device removed");
	/* Its queue pairs take nothing more; a card may have acknowledged messages until just now. */
	lgr_last_look(eng, dev);
	completions_of(&dev, 1);
	lgr_sweep(eng);
	free_dead(eng);
}

void
smcr_set_now(struct smcr *eng, int64_t now_ns)
{
	eng->now_ns = now_ns;
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		eng->devs[i]->now_ns = now_ns;
}

void
smcr_poll(struct smcr *eng, int64_t now_ns)
{
	smcr_set_now(eng, now_ns);
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i]->ops->progress != NULL)
			eng->devs[i]->ops->progress(eng->devs[i], now_ns);
	/* Completions first: what arrived before a QP broke still counts. */
	completions(eng);
	device_events(eng);
	if (eng->links_failed)
		failed_links_down(eng);
	timerq_run(&eng->timers, now_ns);
	settle(eng);
}

struct smcr_conn *
smcr_next_event(struct smcr *eng, unsigned *events)
{
	struct list_node *n = list_pop(&eng->events);
	struct smcr_conn *conn;

	if (n == NULL)
		return NULL;
	conn = CONTAINER_OF(n, struct smcr_conn, event_node);
	*events = conn->events;
	conn->events = 0;
	return conn;
}

/*
 * A queue pair takes what arrives, and acknowledges it, until it has been stopped; its completions were handled before that.
 * What the peer knows to be here has to count, or it would be missed when the peer's connections come over another link.
 */
static void
last_look(struct smcr *eng)
{
	if (!eng->links_to_free)
		return;
	lgr_last_look(eng, NULL);
	completions(eng);
}

bool
smcr_flush(struct smcr *eng)
{
	struct list_node *n;
	struct list_node again;
	bool more = false;

	list_init(&again);
	last_look(eng);
	settle(eng);
	while ((n = list_pop(&eng->busy_links)) != NULL) {
		struct link *link = CONTAINER_OF(n, struct link, eng_node);

		link_recv_repost(link);
		if (link_flush(link)) {
			list_push(&again, n);
			more = true;
		}
	}
	while ((n = list_pop(&again)) != NULL)
		list_push(&eng->busy_links, n);
	lgr_sweep(eng);
	free_dead(eng);
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i]->ops->flush != NULL)
			eng->devs[i]->ops->flush(eng->devs[i]);
	return more || eng->lgrs_to_settle || eng->links_to_free || !list_empty(&eng->events);
}

int64_t
smcr_deadline(const struct smcr *eng)
{
	int64_t at = timerq_next(&eng->timers);

	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		const struct rnic_dev *dev = eng->devs[i];
		int64_t dev_at = dev->ops->deadline != NULL ? dev->ops->deadline(dev) : INT64_MAX;

		if (dev_at < at)
			at = dev_at;
	}
	return at;
}

/* -- log and trace -- */

void
engine_log_peer(struct smcr *eng, enum smcr_log_type type, const char *peer, uint64_t value, const char *text)
{
	struct smcr_log *l;

	if (eng->log_cnt == SMCR_LOG_MAX) {
		eng->log_lost++;
		return;
	}
	l = &eng->log[(eng->log_first + eng->log_cnt++) % SMCR_LOG_MAX];
	*l = (struct smcr_log){ .type = type, .value = value };
	snprintf(l->peer, sizeof(l->peer), "%s", peer);
	snprintf(l->text, sizeof(l->text), "%s", text != NULL ? text : "");
}

void
engine_log(struct smcr *eng, enum smcr_log_type type, const struct lgr *lgr, const struct link *link, const char *text)
{
	unsigned at = (eng->log_first + eng->log_cnt) % SMCR_LOG_MAX;
	bool full = eng->log_cnt == SMCR_LOG_MAX;
	char peer[sizeof(eng->log[0].peer)] = "";

	if (lgr != NULL)
		lgr_peer_name(lgr, peer, sizeof(peer));
	engine_log_peer(eng, type, peer, 0, text);
	if (full)
		return;
	eng->log[at].group_id = lgr != NULL ? lgr->id : 0;
	eng->log[at].link = link != NULL ? link->number : 0;
}

void
engine_hex_id(const uint8_t id[8], char *buf)
{
	for (unsigned i = 0; i < 8; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
}

bool
smcr_next_log(struct smcr *eng, struct smcr_log *out)
{
	if (eng->log_cnt == 0 && eng->log_lost > 0) {
		*out = (struct smcr_log){ .type = SMCR_LOG_OVERRUN, .value = eng->log_lost };
		eng->log_lost = 0;
		return true;
	}
	if (eng->log_cnt == 0)
		return false;
	*out = eng->log[eng->log_first];
	eng->log_first = (eng->log_first + 1) % SMCR_LOG_MAX;
	eng->log_cnt--;
	return true;
}

void
smcr_set_trace(struct smcr *eng, void (*fn)(void *ctx, const struct smcr_trace *), void *ctx)
{
	eng->trace = fn;
	eng->trace_ctx = ctx;
}

void
engine_trace(struct smcr *eng, enum smcr_trace_kind kind, bool sent, const struct link *link, uint32_t conn_id,
    const uint8_t *msg, size_t len)
{
	struct smcr_trace t;

	if (eng->trace == NULL)
		return;
	t = (struct smcr_trace){
		.kind = kind,
		.sent = sent,
		.group_id = link != NULL ? link->lgr->id : 0,
		.link = link != NULL ? link->number : 0,
		.conn_id = conn_id,
		.msg = msg,
		.len = len,
	};
	eng->trace(eng->trace_ctx, &t);
}

const struct smcr_counters *
smcr_counters(const struct smcr *eng)
{
	return &eng->ctr;
}

uint64_t
smcr_rmb_bytes_max(const struct smcr *eng)
{
	return eng->cfg.rmb_bytes_max;
}

void
smcr_drain(struct smcr *eng)
{
	eng->draining = true;
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		if (lgr->state == LGR_ACTIVE && lgr_unused(lgr))
			lgr_delete(lgr, LLC_DELETE_OPERATOR);
	}
}

bool
smcr_idle(const struct smcr *eng)
{
	return list_empty(&eng->lgrs) && list_empty(&eng->dead_lgrs);
}
