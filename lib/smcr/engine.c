/*
 * The engine: one turn (poll, events, flush), what marks bring about, devices.
 * What the turn meets is handled in its rooms.
 */
#include "smcr/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/link_tx.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define CONNS_PER_CHUNK 64
#define RDVS_PER_CHUNK 16
#define WC_BATCH 16    /* small: a hardened build probes each page of the stack */
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
		.features = CLC_FEATURES,
		.sndbuf_bytes_max = 1ull << 30,
		.group_bytes_max = 1ull << 30,
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
		.last_link_ms = 900000,
		.group_idle_ms = 600000,
		.rmb_idle_ms = 60000,
		.close_ms = 60000,
		.abort_ms = 10000,
		.fin_grace_ms = 2000,
		.holdoff_ms = 1000,
		.holdoff_max_ms = 60000,
		.group_first = 1,
		.group_step = 1,
	};
	memset(cfg->host, ' ', sizeof(cfg->host));
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
	list_init(&eng->devices);
	list_init(&eng->lgrs);
	list_init(&eng->dead_lgrs);
	list_init(&eng->peers);
	list_init(&eng->events);
	list_init(&eng->dead_conns);
	list_init(&eng->busy_links);
	list_init(&eng->waiting_links);
	list_init(&eng->marked_lgrs);
	list_init(&eng->waiting_lgrs);
	list_init(&eng->marked_conns);
	list_init(&eng->marked_peers);
	/* A MAC of our own, locally administered, for devices without one; and with it the peer id: an
	 * instance number and a MAC (A.2.1). */
	rng->fill(rng, eng->mac, sizeof(eng->mac));
	eng->mac[0] = (uint8_t)((eng->mac[0] & 0xfc) | 0x02);
	rng->fill(rng, eng->peer_id, 2);
	memcpy(eng->peer_id + 2, eng->mac, sizeof(eng->mac));
	return eng;
}

/* -- marks -- */

void
engine_act_on_marks(struct smcr *eng)
{
	while (!list_empty(&eng->marked_conns) || !list_empty(&eng->marked_lgrs) || !list_empty(&eng->marked_peers)) {
		struct peer *peer = LIST_FIRST(struct peer, &eng->marked_peers, mark);
		if (peer != NULL)
			rdv_act_on_peer(eng, peer);
		struct conn_mark *conn = LIST_POP(struct conn_mark, &eng->marked_conns, node);
		if (conn != NULL)
			rdv_act_on_conn(conn);
		struct lgr *lgr = LIST_POP(struct lgr, &eng->marked_lgrs, marks.node);
		if (lgr == NULL)
			continue;
		rdv_act_on_contact(lgr);
		lgr_act_on_marks(lgr);
		rdv_act_on_rmb(lgr);
	}
}

/* Exchanges that waited for the end of another one start, one after the other in each group. */
static void
engine_settle(struct smcr *eng)
{
	struct list_node todo;
	struct lgr *lgr;

	engine_act_on_marks(eng);
	list_move_all(&todo, &eng->waiting_lgrs);
	while ((lgr = LIST_POP(struct lgr, &todo, marks.turn_node)) != NULL) {
		llc_next(lgr);
		engine_act_on_marks(eng);
	}
}

static void
free_dead(struct smcr *eng)
{
	struct smcr_conn *conn;
	struct list_node todo;
	struct lgr *lgr;

	while ((conn = LIST_POP(struct smcr_conn, &eng->dead_conns, event_node)) != NULL) {
		rdv_free(conn);
		conn_free(conn);
	}
	list_move_all(&todo, &eng->dead_lgrs);
	while ((lgr = LIST_POP(struct lgr, &todo, node)) != NULL)
		if (!lgr_free(lgr))
			list_push(&eng->dead_lgrs, &lgr->node);
}

void
smcr_free(struct smcr *eng)
{
	struct smcr_conn *conn;
	uint32_t pos = 0;

	if (eng == NULL)
		return;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		lgr_down(lgr, SMCR_R_SHUTDOWN, "the engine ends");
	engine_act_on_marks(eng);
	while ((conn = idtable_next(&eng->conns, &pos)) != NULL)
		smcr_release(conn);
	engine_act_on_marks(eng);
	free_dead(eng);
	while (eng->dev_cnt > 0)
		smcr_remove_device(eng, eng->devs[0]);
	if (smcr_has_devices(eng))
		return; /* a card may use the memory of links yet */
	peer_free_all(eng);
	timerq_fini(&eng->timers);
	idtable_fini(&eng->conns);
	slab_fini(&eng->conn_slab);
	slab_fini(&eng->rdv_slab);
	free(eng);
}

/* -- settings and devices -- */

void
smcr_reconfigure(struct smcr *eng, const struct smcr_config *cfg)
{
	struct smcr_config old = eng->cfg;

	eng->cfg = *cfg;
	/* Settings that live groups were built on stay. */
	eng->cfg.conns_max = old.conns_max;
	eng->cfg.sndbuf_size = old.sndbuf_size;
	eng->cfg.sq_depth = old.sq_depth;
	eng->cfg.rq_depth = old.rq_depth;
	if (eng->cfg.keepalive_ms == old.keepalive_ms)
		return;
	/* Links that live are tested at the new interval, or no longer. */
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (l->state == LINK_ACTIVE)
				llc_keepalive_arm(l);
}

/* Groups may have another link now. */
static void
device_is_there(struct smcr *eng)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		llc_device_appeared(lgr);
}

int
smcr_add_device(struct smcr *eng, struct rnic_dev *dev)
{
	if (eng->dev_cnt == SMCR_DEVS_MAX)
		return -ENOSPC;
	eng->devs[eng->dev_cnt++] = dev;
	list_push(&eng->devices, &dev->node);
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

static void
device_links_lost(struct smcr *eng, const struct rnic_dev *dev, const char *why)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (l->dev == dev)
				link_lost(l, why);
}

/* A queue pair of RoCE does not live through it. */
static bool
outlives_port(const struct link *link)
{
	return link->state == LINK_ACTIVE && link->lgr->state == LGR_ACTIVE && rnic_is_iwarp(link->info.transport);
}

/* A link of the group is heard that is on another device, whose port is up. */
static bool
has_other_way(const struct lgr *lgr, const struct rnic_dev *dev)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE && l->suspect == NULL && l->dev != dev &&
		    rnic_query(l->dev).port == RNIC_PORT_UP)
			return true;
	return false;
}

/* Connections move to another link of the group. Where there is none they wait, as those of TCP do, for the port or the end of
 * last_link_ms. */
static void
port_down(struct smcr *eng, const struct rnic_dev *dev)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		bool moves = has_other_way(lgr, dev);

		LGR_EACH_LINK(l, lgr) {
			if (l->dev != dev)
				continue;
			if (!moves && outlives_port(l))
				llc_suspect(l, "port down");
			else
				link_lost(l, "port down");
		}
	}
}

/* No link is to choose it, and its links are lost. */
static void
device_ends(struct smcr *eng, struct rnic_dev *dev, const char *why)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i] == dev)
			eng->devs[i--] = eng->devs[--eng->dev_cnt]; /* the order of the others does not count */
	device_links_lost(eng, dev, why);
}

bool
smcr_take_device_changes(struct smcr *eng)
{
	bool changed = eng->devs_changed;

	eng->devs_changed = false;
	return changed;
}

bool
smcr_device_gone(const struct smcr *eng, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i] == dev)
			return false;
	LIST_EACH(const struct rnic_dev, d, &eng->devices, node)
		if (d == dev)
			return true;
	return false;
}

bool
smcr_has_devices(const struct smcr *eng)
{
	return !list_empty(&eng->devices);
}

void
smcr_set_networks(struct smcr *eng, const struct smcr_subnet *nets, unsigned cnt)
{
	eng->net_cnt = cnt < SMCR_NETWORKS_MAX ? cnt : SMCR_NETWORKS_MAX;
	if (cnt > 0) /* none may be NULL */
		memcpy(eng->nets, nets, eng->net_cnt * sizeof(*nets));
}

/* -- the turn -- */

static void
qp_failed(struct link *link, const struct rnic_event *ev, const char *words)
{
	if (!link_has_ended(link))
		link->silent = ev->silent;
	link_lost(link, ev->why != NULL ? ev->why : words);
}

static void
device_event(struct smcr *eng, struct rnic_dev *dev, const struct rnic_event *ev)
{
	struct link *link = ev->ctx;

	switch (ev->type) {
	case RNIC_EV_CONNECTED:
		link_connected(link);
		if (link->order == 0)
			rdv_link_connected(link->lgr);
		break;
	case RNIC_EV_CONNECT_FAILED:
		qp_failed(link, ev, "queue pair could not be connected");
		break;
	case RNIC_EV_QP_ERROR:
		qp_failed(link, ev, "queue pair error");
		break;
	case RNIC_EV_SILENT:
		llc_suspect(link, "the peer does not answer");
		break;
	case RNIC_EV_CREDITS:
		link_schedule(link);
		break;
	case RNIC_EV_QP_FREED:
		link_qp_freed(link);
		break;
	case RNIC_EV_PORT_DOWN:
		eng->devs_changed = true;
		port_down(eng, dev);
		break;
	case RNIC_EV_DEV_GONE:
		eng->devs_changed = true;
		device_ends(eng, dev, "device gone");
		break;
	case RNIC_EV_PORT_UP:
		eng->devs_changed = true;
		device_is_there(eng);
		break;
	case RNIC_EV_TROUBLE:
		engine_log_device(eng, dev, ev->why);
		break;
	case RNIC_EV_DEV_FREED:
		break;
	}
}

/* The events of all devices; one whose last event comes is no more. */
static void
device_events(struct smcr *eng)
{
	struct list_node todo;
	struct rnic_dev *dev;

	list_move_all(&todo, &eng->devices);
	while ((dev = LIST_POP(struct rnic_dev, &todo, node)) != NULL) {
		struct rnic_event ev = { .type = RNIC_EV_TROUBLE };

		while (ev.type != RNIC_EV_DEV_FREED && dev->ops->poll_event(dev, &ev)) {
			device_event(eng, dev, &ev);
			engine_act_on_marks(eng);
		}
		if (ev.type != RNIC_EV_DEV_FREED)
			list_push(&eng->devices, &dev->node);
	}
}

/* Handles the completions of a device. False: there are more than one turn has time for. */
static bool
device_completions(struct smcr *eng, struct rnic_dev *dev)
{
	struct rnic_wc wc[WC_BATCH];
	unsigned cnt, total = 0;

	do {
		cnt = dev->ops->poll(dev, wc, WC_BATCH);
		for (unsigned i = 0; i < cnt; i++) {
			struct link *link = wc[i].qp->ctx;

			if (wc[i].op == RNIC_WC_RECV)
				link_recv(link, &wc[i]);
			else
				link_wc(link, &wc[i]);
			engine_act_on_marks(eng);
		}
		total += cnt;
	} while (cnt == WC_BATCH && total < WC_BUDGET);
	return cnt < WC_BATCH;
}

/* Messages that wait for others (link_recv). When all that has come was handled, and none of them may go on, the first waits in vain:
 * what it waits for was lost. Others may wait for what stands behind it, so they are asked again before the next is given up. */
static void
waiting_messages(struct smcr *eng, bool all_in)
{
	bool in_vain = false;

	while (!list_empty(&eng->waiting_links)) {
		struct list_node links, *n;
		bool taken = false;

		list_move_all(&links, &eng->waiting_links);
		while ((n = list_pop(&links)) != NULL) {
			struct link *link = CONTAINER_OF(n, struct link, wait_node);

			list_push(&eng->waiting_links, n);
			for (; link_recv_waiting(link, in_vain); in_vain = false, taken = true)
				engine_act_on_marks(eng);
		}
		if (!taken && !all_in)
			return;
		in_vain = !taken;
	}
}

/* True: there are no more. */
static bool
completions(struct smcr *eng)
{
	struct rnic_wc late[WC_BATCH];
	bool all_in = true;

	for (unsigned i = 0; i < eng->dev_cnt; i++)
		all_in = device_completions(eng, eng->devs[i]) && all_in;
	waiting_messages(eng, all_in);
	/* The links of other devices have ended. */
	LIST_EACH(struct rnic_dev, dev, &eng->devices, node)
		while (smcr_device_gone(eng, dev) && dev->ops->poll(dev, late, WC_BATCH) == WC_BATCH)
			continue;
	return all_in;
}

void
smcr_remove_device(struct smcr *eng, struct rnic_dev *dev)
{
	/* Messages that have arrived still count: the peer has their completions. */
	(void)completions(eng);
	device_ends(eng, dev, "device removed");
	engine_act_on_marks(eng);
	/* Its queue pairs take nothing more; a card may have acknowledged messages until just now. */
	lgr_last_look(eng, dev);
	while (!device_completions(eng, dev))
		continue;
	(void)completions(eng);
	waiting_messages(eng, true);
	engine_act_on_marks(eng);
	lgr_sweep(eng);
	free_dead(eng);
	dev->ops->free(dev);
	device_events(eng); /* devices of software end at once */
	free_dead(eng);
}

/* Links whose requests failed and whose device did not say why, or that take no more. */
static void
failed_links_lost(struct smcr *eng)
{
	if (!eng->links_failed)
		return;
	eng->links_failed = false;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (l->failed != NULL)
				link_lost(l, l->failed);
	engine_act_on_marks(eng);
}

void
smcr_set_now(struct smcr *eng, int64_t now_ns)
{
	eng->now_ns = now_ns;
	LIST_EACH(struct rnic_dev, dev, &eng->devices, node)
		dev->now_ns = now_ns;
}

void
smcr_stood_still(struct smcr *eng, int64_t total_ns)
{
	eng->stalled_ns = total_ns;
}

void
smcr_poll(struct smcr *eng, int64_t now_ns)
{
	smcr_set_now(eng, now_ns);
	LIST_EACH(struct rnic_dev, dev, &eng->devices, node)
		if (dev->ops->progress != NULL)
			dev->ops->progress(dev, now_ns);
	/* Completions first: what arrived before a QP broke still counts. */
	(void)completions(eng);
	device_events(eng);
	failed_links_lost(eng);
	timerq_run(&eng->timers, now_ns);
	engine_settle(eng);
}

struct smcr_conn *
smcr_next_event(struct smcr *eng, unsigned *events)
{
	struct smcr_conn *conn = LIST_POP(struct smcr_conn, &eng->events, event_node);

	if (conn == NULL)
		return NULL;
	*events = conn->events;
	conn->events = 0;
	return conn;
}

/*
 * A queue pair takes what arrives, and acknowledges it, until it has been stopped; its completions were handled before that.
 * What the peer knows to be here has to count, or it would be missed when the peer's connections come over another link.
 * False: not all of them have been handled.
 */
static bool
last_look(struct smcr *eng)
{
	if (!eng->links_to_free)
		return true;
	lgr_last_look(eng, NULL);
	return completions(eng);
}

bool
smcr_flush(struct smcr *eng)
{
	struct list_node again;
	struct link *link;
	bool more, looked;

	eng->unblocked = false;
	engine_act_on_marks(eng);
	looked = last_look(eng);
	engine_settle(eng);
	list_init(&again);
	while ((link = LIST_POP(struct link, &eng->busy_links, eng_node)) != NULL)
		if (link_turn(link))
			list_push(&again, &link->eng_node);
	more = !list_empty(&again);
	list_move_all(&eng->busy_links, &again);
	if (looked)
		lgr_sweep(eng);
	free_dead(eng);
	LIST_EACH(struct rnic_dev, dev, &eng->devices, node)
		if (dev->ops->flush != NULL)
			dev->ops->flush(dev);
	return more || eng->links_failed || !list_empty(&eng->waiting_lgrs) || !list_empty(&eng->marked_lgrs) ||
	    !list_empty(&eng->waiting_links) || eng->links_to_free || !list_empty(&eng->events);
}

void
smcr_flush_unblocked(struct smcr *eng)
{
	if (eng->unblocked)
		(void)smcr_flush(eng);
}

int64_t
smcr_deadline(const struct smcr *eng)
{
	int64_t at = timerq_next(&eng->timers);

	LIST_EACH(const struct rnic_dev, dev, &eng->devices, node)
		if (dev->ops->deadline != NULL)
			at = min_i64(at, dev->ops->deadline(dev));
	return at;
}

/* -- for its user -- */

const struct smcr_counters *
smcr_counters(const struct smcr *eng)
{
	return &eng->ctr;
}

const struct smcr_histograms *
smcr_histograms(const struct smcr *eng)
{
	return &eng->hist;
}

uint64_t
smcr_rmb_bytes_max(const struct smcr *eng)
{
	return eng->cfg.rmb_bytes_max;
}

uint64_t
smcr_sndbuf_bytes_max(const struct smcr *eng)
{
	return eng->cfg.sndbuf_bytes_max;
}

uint32_t
smcr_clc_ms(const struct smcr *eng)
{
	return eng->cfg.clc_ms;
}

void
smcr_drain(struct smcr *eng)
{
	eng->draining = true;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		if (lgr->state == LGR_ACTIVE && lgr_unused(lgr))
			lgr_delete(lgr, LLC_DELETE_OPERATOR);
}

void
smcr_undrain(struct smcr *eng)
{
	eng->draining = false;
}

bool
smcr_idle(const struct smcr *eng)
{
	return list_empty(&eng->lgrs) && list_empty(&eng->dead_lgrs);
}
