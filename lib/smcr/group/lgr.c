/* Link groups: birth, choice of links, idle end, death. See lgr.h. */
#include "smcr/group/lgr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/engine.h"
#include "smcr/data/quarantine.h"
#include "smcr/rendezvous/rendezvous.h"

#define CLIENT_EXTRA_MS 10000 /* the server ends an idle group; the client only if it does not (3.5.4) */
#define LGR_TIMERS (5 + LLC_FLOW_CNT + 2 * LINK_SLOTS)

static void
idle_fired(struct timer *t, int64_t now_ns)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, idle);

	(void)now_ns;
	if (lgr->state == LGR_ACTIVE && lgr_unused(lgr))
		lgr_delete(lgr, LLC_DELETE_PROGRAM);
}

static void
rmb_idle_fired(struct timer *t, int64_t now_ns)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, rmb_idle);
	rmb_cool_down(lgr, now_ns);
	llc_delete_idle_rmb(lgr);
	engine_arm(lgr->eng, &lgr->rmb_idle, lgr->eng->cfg.rmb_idle_ms);
}

static void
add_retry_fired(struct timer *t, int64_t now_ns)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, add_retry);

	(void)now_ns;
	lgr->eng->ctr.add_link_retries++;
	llc_device_appeared(lgr);
}

static void
rkey_retry_fired(struct timer *t, int64_t now_ns)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, rkey_retry);

	(void)now_ns;
	lgr_settle(lgr);
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
	lgr->id = ++eng->lgr_next_id;
	lgr->role = role;
	lgr->version = LLC_VERSION;
	lgr->rfc_cursors = eng->cfg.rfc_cursors;
	lgr->born_ns = eng->now_ns;
	lgr->next_link_number = 1;
	lgr->owner = *owner;
	list_init(&lgr->rmbs);
	list_init(&lgr->remote_rmbs);
	list_init(&lgr->sndbuf_slabs);
	list_init(&lgr->sndbuf_free);
	list_init(&lgr->conns);
	list_init(&lgr->wait_rmb);
	timer_init(&lgr->idle, idle_fired);
	timer_init(&lgr->rmb_idle, rmb_idle_fired);
	timer_init(&lgr->add_retry, add_retry_fired);
	timer_init(&lgr->rkey_retry, rkey_retry_fired);
	timer_init(&lgr->cont_timer, llc_cont_fired);
	llc_init(lgr);
	list_push(&eng->lgrs, &lgr->node);
	return lgr;
}

void
lgr_set_active(struct lgr *lgr)
{
	lgr->state = LGR_ACTIVE;
	engine_arm(lgr->eng, &lgr->rmb_idle, lgr->eng->cfg.rmb_idle_ms);
	engine_log(lgr->eng, SMCR_LOG_GROUP_UP, lgr, NULL, lgr->role == SMCR_CLIENT ? "client" : "server");
	llc_group_active(lgr);
}

void
lgr_down(struct lgr *lgr, enum smcr_reason reason, const char *why)
{
	struct list_node *n;
	bool was_active = lgr->state != LGR_FORMING;
	bool graceful = lgr->state == LGR_DELETING;

	if (lgr->state == LGR_DEAD)
		return;
	lgr->state = LGR_DEAD;
	lgr->down_why = why;
	timer_cancel(&lgr->eng->timers, &lgr->idle);
	timer_cancel(&lgr->eng->timers, &lgr->rmb_idle);
	timer_cancel(&lgr->eng->timers, &lgr->add_retry);
	timer_cancel(&lgr->eng->timers, &lgr->rkey_retry);
	timer_cancel(&lgr->eng->timers, &lgr->cont_timer);
	llc_fini(lgr);
	/* Freed at the end of the turn. */
	list_remove(&lgr->node);
	list_push(&lgr->eng->dead_lgrs, &lgr->node);
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state != LINK_FREE)
			link_stop(&lgr->links[i], LINK_DOWN, why, graceful);
	if (lgr->first_conn != NULL)
		rdv_end(lgr->first_conn, reason, why);
	while ((n = list_first(&lgr->conns)) != NULL) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct smcr_conn, lgr_node);

		if (conn->state == CONN_RENDEZVOUS)
			rdv_end(conn, reason, why); /* past our Accept: nothing else is left (C.1) */
		else
			conn_link_lost(conn, reason, why);
	}
	rdv_rmb_ready(lgr, false);
	if (was_active) {
		lgr->eng->ctr.groups_deleted++;
		engine_log(lgr->eng, SMCR_LOG_GROUP_DOWN, lgr, NULL, why);
	}
}

bool
lgr_free(struct lgr *lgr)
{
	struct list_node *n;

	if (lgr->conn_cnt > 0 || lgr->rdv_cnt > 0)
		return false;
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state != LINK_FREE)
			link_free(&lgr->links[i]);
	while ((n = list_first(&lgr->rmbs)) != NULL)
		rmb_free(CONTAINER_OF(n, struct rmb, node));
	while ((n = list_first(&lgr->remote_rmbs)) != NULL)
		remote_rmb_free(lgr, CONTAINER_OF(n, struct remote_rmb, node));
	sndbuf_free_all(lgr);
	list_remove(&lgr->node);
	timerq_unreserve(&lgr->eng->timers, LGR_TIMERS);
	free(lgr);
	return true;
}

struct link *
lgr_pick_link(struct lgr *lgr)
{
	struct link *best = NULL;

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *l = &lgr->links[i];

		if (l->state != LINK_ACTIVE)
			continue;
		if (best == NULL || (best->retiring && !l->retiring) ||
		    (best->retiring == l->retiring && l->conn_cnt < best->conn_cnt))
			best = l;
	}
	return best;
}

static bool
number_in_use(const struct lgr *lgr, uint8_t number)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state != LINK_FREE && lgr->links[i].number == number)
			return true;
	return false;
}

uint8_t
lgr_next_number(struct lgr *lgr)
{
	uint8_t number;

	do {
		number = lgr->next_link_number++;
	} while (number == 0 || number_in_use(lgr, number));
	return number;
}

void
lgr_settle(struct lgr *lgr)
{
	lgr->settle = true;
	lgr->eng->lgrs_to_settle = true;
}

void
lgr_link_down(struct lgr *lgr, struct link *link)
{
	if (lgr->state == LGR_DEAD || llc_link_lost(link))
		return;
	if (lgr->state == LGR_DELETING) {
		if (lgr_pick_link(lgr) == NULL)
			lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
		return;
	}
	if (lgr->state == LGR_FORMING) {
		rdv_group_failed(lgr, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, link->down_why);
		return;
	}
	if (lgr_pick_link(lgr) == NULL) {
		lgr_down(lgr, SMCR_R_LINK_LOST, link->down_why);
		return;
	}
	failover_link(link);
	llc_link_gone(link);
}

void
lgr_last_look(struct smcr *eng, const struct rnic_dev *dev)
{
	LIST_FOREACH(n, &eng->lgrs) {
		struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS; i++)
			if (link_has_ended(&lgr->links[i]) && (dev == NULL || lgr->links[i].dev == dev))
				lgr->links[i].looked = true;
	}
}

static void
sweep_link(struct link *link)
{
	if (link->state != LINK_DOWN && link->state != LINK_LOST)
		return;
	if (!link->looked)
		link->lgr->eng->links_to_free = true;
	else if (link->state == LINK_DOWN)
		link_bury(link);
	else
		link_release(link);
}

void
lgr_sweep(struct smcr *eng)
{
	if (!eng->links_to_free)
		return;
	eng->links_to_free = false;
	LIST_FOREACH(n, &eng->lgrs)
		for (unsigned i = 0; i < LINK_SLOTS; i++)
			sweep_link(&CONTAINER_OF(n, struct lgr, node)->links[i]);
}

bool
lgr_unused(const struct lgr *lgr)
{
	return lgr->conn_cnt == 0 && list_empty(&lgr->wait_rmb) && lgr->first_conn == NULL;
}

bool
lgr_takes_conns(const struct lgr *lgr)
{
	return !lgr->end_wanted && !quarantine_is_full(lgr);
}

bool
lgr_has_place(const struct lgr *lgr, uint32_t elem_size)
{
	if (lgr->rmb_cnt < SMCR_RMBS_PER_GROUP)
		return true;
	LIST_FOREACH(n, &lgr->rmbs) {
		const struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		if (rmb->state == RMB_CONFIRMED && rmb->elem_size == elem_size && rmb->used < rmb->elem_cnt)
			return true;
	}
	return false;
}

void
lgr_conn_gone(struct lgr *lgr)
{
	struct smcr *eng = lgr->eng;

	if (lgr->state != LGR_ACTIVE || !lgr_unused(lgr))
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
lgr_doubt(struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *link = &lgr->links[i];

		if (link->state != LINK_ACTIVE)
			continue;
		link->doubted = true;
		link_want_proof(link);
	}
}

bool
lgr_is_doubted(const struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state == LINK_ACTIVE && lgr->links[i].doubted)
			return true;
	return false;
}

void
lgr_delete(struct lgr *lgr, uint32_t reason)
{
	lgr->state = LGR_DELETING;
	llc_delete_group(lgr, reason);
}

uint64_t
lgr_remote_addr(const struct remote_rmb *rr, const struct link *link, uint32_t elem_size, uint8_t idx)
{
	return rr->on[link->slot].addr + (uint64_t)elem_size * (idx - 1u);
}

void
lgr_peer_name(const struct lgr *lgr, char *buf, size_t cap)
{
	char id[17];

	engine_hex_id(lgr->owner.peer_id, id);
	if (lgr->role == SMCR_CLIENT && lgr->peer_key[0] != '\0')
		snprintf(buf, cap, "%s", lgr->peer_key);
	else
		snprintf(buf, cap, "%s", id);
}
