/* The engine: its life, one turn (poll, events, flush) and marks. Its rooms handle completions and messages. */
#include "smcr/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/link_tx.h"
#include "smcr/device.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/proof.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define CONNS_PER_CHUNK 64
#define RDVS_PER_CHUNK 16
#define WC_BATCH 16    /* small: a hardened build probes each page of the stack */
#define WC_BUDGET 8192 /* completions handled in one poll, per device */

/* The turn of this timer reports the lines that were lost meanwhile. */
static void
log_pause_over(struct timer *t)
{
	(void)t;
}

struct smcr *
smcr_new(const struct smcr_config *cfg, struct rng *rng, int64_t now_ns)
{
	struct smcr *eng = calloc(1, sizeof(*eng));

	if (eng == NULL)
		return NULL;
	timerq_init(&eng->timers);
	if (timerq_reserve(&eng->timers, 1) < 0) {
		free(eng);
		return NULL;
	}
	timer_init(&eng->log_pause, log_pause_over);
	eng->cfg = *cfg;
	eng->rng = rng;
	eng->now_ns = now_ns;
	idtable_init(&eng->conns, cfg->conns_max < IDTABLE_MAX ? cfg->conns_max : IDTABLE_MAX);
	slab_init(&eng->conn_slab, sizeof(struct smcr_conn), CONNS_PER_CHUNK);
	slab_init(&eng->rdv_slab, sizeof(struct rdv), RDVS_PER_CHUNK);
	struct list_node *lists[] = { &eng->devices, &eng->lgrs, &eng->dead_lgrs, &eng->peers, &eng->events,
		&eng->dead_conns, &eng->busy_links, &eng->waiting_links, &eng->marked_lgrs, &eng->waiting_lgrs,
		&eng->marked_conns, &eng->marked_peers };
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		list_init(lists[i]);
	/* Our own MAC, locally administered, for devices without one; peer ID: instance number and this MAC (A.2.1). */
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
		rdv_act_on_open(lgr);
		rdv_act_on_contact(lgr);
		lgr_act_on_marks(lgr);
		rdv_act_on_rmb(lgr);
	}
}

/* Starts exchanges that waited for the end of another one, one at a time in each group. */
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
		lgr_down(lgr, SMCR_R_SHUTDOWN, "engine shutdown");
	engine_act_on_marks(eng);
	while ((conn = idtable_next(&eng->conns, &pos)) != NULL)
		smcr_release(conn);
	engine_act_on_marks(eng);
	free_dead(eng);
	while (eng->dev_cnt > 0)
		smcr_remove_device(eng, eng->devs[0]);
	if (smcr_has_devices(eng))
		return; /* a card may still use the memory of links */
	peer_free_all(eng);
	timerq_fini(&eng->timers);
	idtable_fini(&eng->conns);
	slab_fini(&eng->conn_slab);
	slab_fini(&eng->rdv_slab);
	free(eng);
}

/* -- settings -- */

void
smcr_reconfigure(struct smcr *eng, const struct smcr_config *cfg)
{
	struct smcr_config old = eng->cfg;

	eng->cfg = *cfg;
	/* Settings that live groups depend on stay. */
	eng->cfg.conns_max = old.conns_max;
	eng->cfg.sndbuf_size = old.sndbuf_size;
	eng->cfg.sq_depth = old.sq_depth;
	eng->cfg.rq_depth = old.rq_depth;
	if (eng->cfg.keepalive_ms == old.keepalive_ms)
		return;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (l->state == LINK_ACTIVE)
				llc_keepalive_arm(l);
}

void
smcr_set_dial_policy(
    struct smcr *eng, bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle), void *ctx)
{
	eng->may_dial = may;
	eng->may_dial_ctx = ctx;
}

void
smcr_set_proofs(struct smcr *eng, void (*hold)(void *proof, bool on))
{
	eng->hold_proof = hold;
}

void
smcr_set_networks(struct smcr *eng, const struct smcr_subnet *nets, unsigned cnt)
{
	eng->net_cnt = cnt < SMCR_NETWORKS_MAX ? cnt : SMCR_NETWORKS_MAX;
	if (cnt > 0) /* nets may be NULL */
		memcpy(eng->nets, nets, eng->net_cnt * sizeof(*nets));
}

/* -- the turn -- */

/* Handles completions of a device. False: more than the budget of one turn. */
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

/* Handles messages that wait for others (link_recv). With all received ones handled, the first waits for a lost one: it
 * is processed as is. Messages of other links may wait for its successors: all are tried before the next is forced. */
static void
waiting_messages(struct smcr *eng, bool all_in)
{
	bool in_vain = false;

	while (!list_empty(&eng->waiting_links)) {
		struct list_node links;
		struct link *link;
		bool taken = false;

		list_move_all(&links, &eng->waiting_links);
		while ((link = LIST_POP(struct link, &links, wait_node)) != NULL) {
			list_push(&eng->waiting_links, &link->wait_node);
			for (; link_recv_waiting(link, in_vain); in_vain = false, taken = true)
				engine_act_on_marks(eng);
		}
		if (!taken && !all_in)
			return;
		in_vain = !taken;
	}
}

/* True: none left. */
static bool
completions(struct smcr *eng)
{
	struct rnic_wc late[WC_BATCH];
	bool all_in = true;

	for (unsigned i = 0; i < eng->dev_cnt; i++)
		all_in = device_completions(eng, eng->devs[i]) && all_in;
	waiting_messages(eng, all_in);
	/* The links of devices that are gone have ended. */
	LIST_EACH(struct rnic_dev, dev, &eng->devices, node)
		while (smcr_device_gone(eng, dev) && dev->ops->poll(dev, late, WC_BATCH) == WC_BATCH)
			continue;
	return all_in;
}

/* The last event of a device is its end. */
static void
device_events(struct smcr *eng)
{
	struct list_node todo;
	struct rnic_dev *dev;

	list_move_all(&todo, &eng->devices);
	while ((dev = LIST_POP(struct rnic_dev, &todo, node)) != NULL) {
		struct rnic_event ev = { .type = RNIC_EV_TROUBLE };

		while (ev.type != RNIC_EV_DEV_FREED && dev->ops->poll_event(dev, &ev)) {
			engine_device_event(eng, dev, &ev);
			engine_act_on_marks(eng);
		}
		if (ev.type != RNIC_EV_DEV_FREED)
			list_push(&eng->devices, &dev->node);
	}
}

void
smcr_remove_device(struct smcr *eng, struct rnic_dev *dev)
{
	/* Messages that have arrived count: the peer has their completions. */
	(void)completions(eng);
	engine_device_ends(eng, dev, "device removed");
	engine_act_on_marks(eng);
	/* Its queue pairs receive nothing more; a card may have acknowledged messages until now. */
	lgr_last_look(eng, dev);
	while (!device_completions(eng, dev))
		continue;
	(void)completions(eng);
	waiting_messages(eng, true);
	engine_act_on_marks(eng);
	lgr_sweep(eng);
	free_dead(eng);
	dev->ops->free(dev);
	device_events(eng); /* software devices end at once */
	free_dead(eng);
}

/* Ends links that cannot post, or with failed requests and no reason from the device. */
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
	/* Completions first: data that arrived before a QP error counts. */
	(void)completions(eng);
	device_events(eng);
	failed_links_lost(eng);
	timerq_run(&eng->timers, now_ns);
	engine_settle(eng);
	if (eng->unblocked) /* else the wire would be idle while programs are served */
		(void)smcr_flush(eng);
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

bool
smcr_flush(struct smcr *eng)
{
	struct list_node again;
	struct link *link;
	bool more, looked = true;

	eng->unblocked = false;
	engine_act_on_marks(eng);
	/* A queue pair receives and acknowledges until it is stopped, after its completions were handled. Messages
	 * that the peer knows to have arrived must count, or its moved connections would lack them. */
	if (eng->links_to_free) {
		lgr_last_look(eng, NULL);
		looked = completions(eng);
	}
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

int64_t
smcr_deadline(const struct smcr *eng)
{
	int64_t at = timerq_next(&eng->timers);

	LIST_EACH(const struct rnic_dev, dev, &eng->devices, node)
		if (dev->ops->deadline != NULL)
			at = min_i64(at, dev->ops->deadline(dev));
	return at;
}

/* -- queries and operation -- */

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

const struct smcr_config *
smcr_settings(const struct smcr *eng)
{
	return &eng->cfg;
}

void
smcr_drain(struct smcr *eng, bool on)
{
	eng->draining = on;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		if (on && lgr->state == LGR_ACTIVE && lgr_unused(lgr))
			lgr_delete(lgr, LLC_DELETE_OPERATOR);
}

bool
smcr_idle(const struct smcr *eng)
{
	return list_empty(&eng->lgrs) && list_empty(&eng->dead_lgrs);
}
