/* Link groups: creation, marks, idle end, freeing; operator requests. See lgr.h. */
#include "smcr/group/lgr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/grant.h"
#include "smcr/data/rmb.h"
#include "smcr/data/sndbuf.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/group/topology.h"
#include "smcr/proof.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define CLIENT_EXTRA_MS 10000 /* the server ends an idle group; the client only if the server does not (3.5.4) */
#define LGR_TIMERS (6 + LLC_FLOW_CNT + 2 * LINK_SLOTS)

static void
idle_fired(struct timer *t)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, idle);

	if (lgr->state == LGR_ACTIVE && lgr_unused(lgr))
		lgr_delete(lgr, LLC_DELETE_PROGRAM);
}

static void
rmb_idle_fired(struct timer *t)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, rmb_idle);

	rmb_cool_down(lgr);
	rmb_give_back(lgr);
	sndbuf_give_back(lgr);
	LGR_EACH_LINK(l, lgr)
		if (l->state != LINK_FREE && l->qp != NULL && l->dev->ops->rest != NULL)
			l->dev->ops->rest(l->qp);
	/* Another timer of this turn may have lost the last link, which is handled after the timers. */
	if (lgr_pick_link(lgr) != NULL)
		llc_delete_idle_rmb(lgr);
	engine_arm(lgr->eng, &lgr->rmb_idle, lgr->eng->cfg.rmb_idle_ms);
}

static void
rkey_retry_fired(struct timer *t)
{
	mark_exchanges(CONTAINER_OF(t, struct lgr, rkey_retry));
}

static void
lgr_hold_proof(const struct lgr *lgr, bool on)
{
	if (lgr->eng->hold_proof != NULL && lgr->owner.remote.proof != NULL)
		lgr->eng->hold_proof(lgr->owner.remote.proof, on);
}

struct lgr *
lgr_new(struct smcr *eng, enum smcr_role role, const struct owner *owner)
{
	struct lgr *lgr = calloc(1, sizeof(*lgr));

	if (lgr == NULL || timerq_reserve(&eng->timers, LGR_TIMERS) < 0) {
		free(lgr);
		eng->ctr.refused_memory++;
		return NULL;
	}
	lgr->eng = eng;
	lgr->id = eng->cfg.group_first + eng->lgrs_made++ * eng->cfg.group_step;
	lgr->role = role;
	lgr->version = LLC_VERSION;
	lgr->conns_limit = SMCR_CONNS_PER_GROUP;
	lgr->rfc_cursors = eng->cfg.rfc_cursors;
	lgr->born_ns = eng->now_ns;
	lgr->next_link_number = 1;
	lgr->owner = *owner;
	memcpy(lgr->peer_id, owner->peer_id, sizeof(lgr->peer_id));
	struct list_node *lists[] = { &lgr->rmbs, &lgr->dead_rmbs, &lgr->remote_rmbs, &lgr->conns, &lgr->wait_rmb,
		&lgr->spares, &lgr->marks.node, &lgr->marks.turn_node };
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		list_init(lists[i]);
	sndbuf_init(lgr);
	timer_init(&lgr->idle, idle_fired);
	timer_init(&lgr->rmb_idle, rmb_idle_fired);
	timer_init(&lgr->add_retry, llc_add_retry_fired);
	timer_init(&lgr->rkey_retry, rkey_retry_fired);
	timer_init(&lgr->cont_timer, llc_cont_fired);
	timer_init(&lgr->moves, failover_moves_fired);
	LGR_EACH_LINK(l, lgr)
		l->slot = (unsigned)(l - lgr->links);
	for (unsigned i = 0; i < LLC_FLOW_CNT; i++) {
		lgr->flow[i].lgr = lgr;
		timer_init(&lgr->flow[i].timer, llc_flow_fired);
	}
	list_push(&eng->lgrs, &lgr->node);
	lgr_hold_proof(lgr, true);
	return lgr;
}

void
lgr_renew_proof(struct lgr *lgr, void *proof)
{
	if (proof == NULL || proof == lgr->owner.remote.proof)
		return;
	lgr_hold_proof(lgr, false);
	lgr->owner.remote.proof = proof;
	lgr_hold_proof(lgr, true);
}

void
lgr_set_active(struct lgr *lgr)
{
	lgr_set_state(lgr, LGR_ACTIVE, NULL);
	lgr->active_ns = lgr->eng->now_ns;
	engine_arm(lgr->eng, &lgr->rmb_idle, lgr->eng->cfg.rmb_idle_ms);
	engine_log(SMCR_LOG_GROUP_UP, lgr, NULL, 0, lgr->role == SMCR_CLIENT ? "client" : "server");
	if (lgr->role == SMCR_SERVER && lgr->active_cnt > 1 && topology_can_add(lgr))
		llc_want_link(lgr);
}

void
lgr_delete(struct lgr *lgr, uint32_t reason)
{
	lgr_set_state(lgr, LGR_DELETING, NULL);
	llc_delete_group(lgr, reason);
}

/* The group ends before the peer has answered an OPEN. A peer that ends a group in order has no connection there; else
 * its program may have any data that a CDC message has announced. */
static bool
was_not_opened(const struct smcr_conn *conn, enum smcr_reason reason)
{
	return conn_is_unanswered(conn) && !conn->reported && (reason == SMCR_R_GROUP_DELETED || !conn->tx.any);
}

void
lgr_down(struct lgr *lgr, enum smcr_reason reason, const char *why)
{
	struct timer *timers[] = { &lgr->idle, &lgr->rmb_idle, &lgr->add_retry, &lgr->rkey_retry, &lgr->cont_timer,
		&lgr->moves };
	bool was_active = lgr->state != LGR_FORMING;

	if (lgr->state == LGR_DEAD)
		return;
	llc_done(lgr, LLC_FLOW_LINK);
	llc_done(lgr, LLC_FLOW_RKEY);
	LGR_EACH_LINK(l, lgr) {
		if (lgr->state == LGR_DELETING || l->state == LINK_LOST)
			link_retire(l, why);
		else
			link_lost(l, why);
	}
	for (unsigned i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		timer_cancel(&lgr->eng->timers, timers[i]);
	lgr_set_state(lgr, LGR_DEAD, why);
	list_remove(&lgr->node);
	list_push(&lgr->eng->dead_lgrs, &lgr->node);
	if (lgr->contact.conn != NULL)
		mark_contact(lgr, CONTACT_BROKEN, 0, reason, why);
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		if (conn->state == CONN_RENDEZVOUS) /* after our Accept: no other way (C.1) */
			mark_conn_end(lgr->eng, conn->mark, true, reason, why);
		else
			conn_end(conn, was_not_opened(conn, reason) ? SMCR_R_NOT_OPENED : reason, why, false);
	}
	grant_end(lgr);
	mark_lgr(lgr)->rmb = RMB_REFUSED;
	if (was_active) {
		lgr->eng->ctr.groups_deleted++;
		engine_log(SMCR_LOG_GROUP_DOWN, lgr, NULL, 0, why);
	}
}

bool
lgr_free(struct lgr *lgr)
{
	bool leaving = false;

	if (lgr->conn_cnt > 0 || lgr->rdv_cnt > 0)
		return false;
	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_FREE)
			link_free(l);
		leaving = leaving || l->leaving;
	}
	if (leaving || lgr->reader_cnt > 0)
		return false;
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		rmb_free(rmb);
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node)
		remote_rmb_free(lgr, rr);
	sndbuf_free_all(lgr);
	list_remove(&lgr->node);
	list_remove(&lgr->marks.node);
	list_remove(&lgr->marks.turn_node);
	timerq_unreserve(&lgr->eng->timers, LGR_TIMERS);
	explicit_bzero(lgr->secret, sizeof(lgr->secret));
	lgr_hold_proof(lgr, false);
	free(lgr);
	return true;
}

/* -- marks -- */

/* A link has ended outside LLC exchanges: connections move, or the group ends with its last link. */
static void
react_to_loss(struct link *link)
{
	struct lgr *lgr = link->lgr;

	link->loss_marked = false;
	if (lgr->state == LGR_DEAD || llc_link_lost(link))
		return;
	if (lgr->state == LGR_FORMING && link->order == 0) {
		mark_contact(lgr, CONTACT_FAILED, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, link->down_why);
	} else if (lgr->state == LGR_FORMING || !link->was_active) {
		return; /* an abandoned attempt at another link */
	} else if (lgr_pick_link(lgr) == NULL) {
		lgr_down(lgr, lgr->state == LGR_DELETING ? SMCR_R_GROUP_DELETED : SMCR_R_LINK_LOST,
		    lgr->state == LGR_DELETING ? lgr->delete_why : link->down_why);
	} else if (lgr->state == LGR_ACTIVE) {
		failover_link(link);
		llc_link_gone(link);
	}
}

void
lgr_act_on_marks(struct lgr *lgr)
{
	struct smcr *eng = lgr->eng;
	struct lgr_marks *m = &lgr->marks;
	bool links = m->links, delete_sent = m->delete_sent, conn_left = m->conn_left;

	m->links = m->delete_sent = m->conn_left = false;
	if (links)
		LGR_EACH_LINK(l, lgr)
			if (l->loss_marked)
				react_to_loss(l);
	if (delete_sent && lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_DELETE_LINK_SENT)
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
	if (!conn_left || lgr->state != LGR_ACTIVE || !lgr_unused(lgr))
		return;
	if (eng->draining)
		lgr_delete(lgr, LLC_DELETE_OPERATOR);
	else if (lgr->end_wanted || quarantine_is_full(lgr))
		lgr_delete(lgr, LLC_DELETE_PROGRAM);
	else if (!timer_armed(&lgr->idle)) { /* deleting an idle RMB is no use of the group */
		lgr->idle_since_ns = eng->now_ns;
		engine_arm(eng, &lgr->idle, eng->cfg.group_idle_ms + (lgr->role == SMCR_CLIENT ? CLIENT_EXTRA_MS : 0));
	}
}

void
lgr_last_look(struct smcr *eng, const struct rnic_dev *dev)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (link_has_ended(l) && (dev == NULL || l->dev == dev))
				l->looked = true;
}

void
lgr_sweep(struct smcr *eng)
{
	if (!eng->links_to_free)
		return;
	eng->links_to_free = false;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			link_sweep(l);
}

/* -- may connections join -- */

void
lgr_mark_suspect(struct lgr *lgr)
{
	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE)
			continue;
		l->is_suspect = true;
		link_request_ack(l);
	}
}

bool
lgr_is_suspect(const struct lgr *lgr)
{
	return LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && l->is_suspect);
}

/* -- operator requests -- */

/* Moves connections above the average of their link to the link with the fewest; pending moves count as done. */
static uint32_t
lgr_rebalance(struct lgr *lgr)
{
	uint32_t will_have[LINK_SLOTS], links = 0, most = lgr->conn_cnt, moved = 0;

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		will_have[i] = lgr->links[i].conn_cnt;
		links += lgr->links[i].state == LINK_ACTIVE && !lgr->links[i].retiring;
	}
	if (links > 0)
		most = (lgr->conn_cnt + links - 1) / links;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		struct link *to = NULL;

		if (conn->tx.move_to != 0 || will_have[conn->link->slot] <= most)
			continue;
		LGR_EACH_LINK(l, lgr) {
			if (l->state == LINK_ACTIVE && !l->retiring && will_have[l->slot] < most &&
			    (to == NULL || will_have[l->slot] < will_have[to->slot]))
				to = l;
		}
		if (to == NULL)
			break;
		will_have[conn->link->slot]--;
		will_have[to->slot]++;
		failover_ask(conn, to);
		moved++;
	}
	lgr->eng->ctr.rebalanced += moved;
	return moved;
}

int
smcr_rebalance(struct smcr *eng, uint32_t group_id)
{
	bool found = group_id == 0;
	uint32_t moved = 0;

	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		if (lgr->state == LGR_ACTIVE && (group_id == 0 || lgr->id == group_id)) {
			moved += lgr_rebalance(lgr);
			found = true;
		}
	return found ? (int)moved : -ENOENT;
}

struct lgr *
lgr_find(const struct smcr *eng, uint32_t id)
{
	return LIST_FIND(struct lgr, lgr, &eng->lgrs, node, lgr->id == id);
}

int
smcr_link_delete(struct smcr *eng, uint32_t group_id, uint8_t number)
{
	struct lgr *lgr = lgr_find(eng, group_id);

	if (lgr == NULL || lgr->state != LGR_ACTIVE)
		return -ENOENT;
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE && l->number == number)
			return lgr->active_cnt > 1 ? llc_retire_link(l, LLC_DELETE_OPERATOR) : -EBUSY;
	return -ENOENT;
}

bool
smcr_end_group(struct smcr *eng, uint32_t group_id, const char *why)
{
	struct lgr *lgr = lgr_find(eng, group_id);

	if (lgr != NULL)
		lgr_down(lgr, SMCR_R_OPERATOR, why);
	return lgr != NULL;
}

int
smcr_link_add(struct smcr *eng, uint32_t group_id)
{
	struct lgr *lgr = lgr_find(eng, group_id);

	if (lgr == NULL || lgr->state != LGR_ACTIVE)
		return -ENOENT;
	if (topology_symmetric_cnt(lgr) >= lgr->links_limit)
		return -EMLINK;
	if ((lgr->role == SMCR_SERVER ? topology_device_to_offer(lgr) : topology_spare_device(lgr)) == NULL)
		return -ENODEV;
	llc_ask_now(lgr);
	return 0;
}
