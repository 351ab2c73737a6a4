/* Local RMBs with their elements, and remote RMBs; see rmb.h. */
#include "smcr/data/rmb.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/pages.h"
#include "smcr/state/conn.h"
#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "smcr/state/log.h"
#include "wire/cdc.h"

#define PAGE 4096u
#define COOL_NS (10 * 1000 * MS) /* exceeds the transit time over a link that its sender has reset */

/* "RMBE" in EBCDIC; the implementation may choose the value (4.2). */
static const uint8_t eye_catcher[4] = { 0xd9, 0xd4, 0xc2, 0xc5 };

#define BIT(state) (1u << (state))

const struct state_row rmb_states[RMB_STATE_CNT] = {
	[RMB_NEW] = { "being confirmed", BIT(RMB_CONFIRMED) | BIT(RMB_DELETING) },
	[RMB_CONFIRMED] = { "confirmed", BIT(RMB_DELETING) },
	[RMB_DELETING] = { "being deleted", BIT(RMB_NEW) | BIT(RMB_CONFIRMED) },
};
static const struct state_row remote_states[REMOTE_RMB_STATE_CNT] = {
	[REMOTE_RMB_CONFIRMED] = { "confirmed", BIT(REMOTE_RMB_CONTINUES) | BIT(REMOTE_RMB_LEFT) },
	[REMOTE_RMB_CONTINUES] = { "being confirmed", BIT(REMOTE_RMB_CONFIRMED) | BIT(REMOTE_RMB_LEFT) },
	[REMOTE_RMB_LEFT] = { "left", 0 },
};

static void
log_state(const struct lgr *lgr, const char *whose, uint32_t number, const char *from, const char *to, const char *why)
{
	char what[32];

	snprintf(what, sizeof(what), "%s %u", whose, number);
	engine_log_state(lgr, NULL, what, from, to, why);
}

void
rmb_set_state(struct rmb *rmb, enum rmb_state next, const char *why)
{
	assert((rmb_states[rmb->state].next & BIT(next)) != 0);
	log_state(rmb->lgr, "RMB", rmb->number, rmb_states[rmb->state].name, rmb_states[next].name, why);
	rmb->state = next;
}

void
remote_rmb_set_state(struct remote_rmb *rr, enum remote_rmb_state next, const char *why)
{
	assert((remote_states[rr->state].next & BIT(next)) != 0);
	log_state(rr->lgr, "peer's RMB", rr->number, remote_states[rr->state].name, remote_states[next].name, why);
	rr->state = next;
}

static size_t
rmb_bytes(const struct rmb *rmb)
{
	return (size_t)rmb->elem_size * rmb->elem_cnt;
}

int
rmb_register(struct rmb *rmb, struct link *link)
{
	if (rmb->mr[link->slot] != NULL)
		return 0;
	int err = link->dev->ops->mr_reg(
	    link->pd, rmb->buf, rmb_bytes(rmb), RNIC_ACCESS_REMOTE_WRITE, &rmb->mr[link->slot]);
	if (err == 0)
		rmb->mr[link->slot]->deny_unit = rmb->elem_size;
	if (err == 0)
		rmb->mr[link->slot]->units = rmb->units;
	return err;
}

static void
rmb_deregister(struct rmb *rmb, struct link *link)
{
	if (rmb->mr[link->slot] == NULL || link->leaving)
		return;
	link->dev->ops->mr_dereg(rmb->mr[link->slot]);
	rmb->mr[link->slot] = NULL;
}

/* Frees a maybe incomplete RMB, or waits for the queue pairs of ending links. */
static void
rmb_release(struct rmb *rmb)
{
	bool waits = false;

	for (uint32_t i = 0; i < rmb->elem_cnt; i++)
		rnic_unit_drop(&rmb->units[i]);
	LGR_EACH_LINK(l, rmb->lgr) {
		rmb_deregister(rmb, l);
		waits = waits || rmb->mr[l->slot] != NULL;
	}
	if (waits) {
		list_push(&rmb->lgr->dead_rmbs, &rmb->node);
		return;
	}
	rmb->lgr->eng->rmb_bytes -= rmb_bytes(rmb);
	rmb->lgr->rmb_bytes -= rmb_bytes(rmb);
	pages_free(rmb->buf, rmb_bytes(rmb));
	free(rmb);
}

struct rmb *
rmb_new(struct lgr *lgr, uint32_t elem_size, uint32_t elem_cnt)
{
	assert(elem_cnt >= 1 && elem_cnt <= 255);
	if (lgr->rmb_cnt == SMCR_RMBS_PER_GROUP)
		return NULL;
	if ((uint64_t)elem_size * elem_cnt > window_elem_room(lgr, true)) {
		lgr->eng->ctr.refused_rmb_memory++;
		return NULL;
	}
	/* Followed by the units. */
	struct rmb *rmb = calloc(1, sizeof(*rmb) + elem_cnt * (sizeof(rmb->elem[0]) + sizeof(rmb->units[0])));
	if (rmb == NULL) {
		lgr->eng->ctr.refused_memory++;
		return NULL;
	}
	rmb->lgr = lgr;
	rmb->elem_size = elem_size;
	rmb->elem_cnt = elem_cnt;
	rmb->units = (struct rnic_unit *)(rmb->elem + elem_cnt);
	for (uint32_t i = 0; i < elem_cnt; i++)
		rmb->free_map[i / 64] |= 1ULL << (i % 64);
	lgr->eng->rmb_bytes += rmb_bytes(rmb);
	lgr->rmb_bytes += rmb_bytes(rmb);
	rmb->buf = pages_alloc(rmb_bytes(rmb));
	int err = rmb->buf != NULL ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < elem_cnt && err == 0; i++)
		rmb->units[i].mem = rmb->buf + (size_t)elem_size * i;
	LGR_EACH_LINK(l, lgr)
		if (err == 0 && !link_has_ended(l))
			err = rmb_register(rmb, l);
	if (err < 0) {
		lgr->eng->ctr.refused_memory++;
		rmb_release(rmb);
		return NULL;
	}
	rmb->number = ++lgr->rmb_next_number;
	rmb->idle_since_ns = lgr->eng->now_ns;
	list_push(&lgr->rmbs, &rmb->node);
	lgr->rmb_cnt++;
	lgr->eng->ctr.rmbs_made++;
	return rmb;
}

void
rmb_free(struct rmb *rmb)
{
	list_remove(&rmb->node);
	rmb->lgr->rmb_cnt--;
	rmb->lgr->quarantined -= rmb->quarantined;
	rmb->lgr->eng->ctr.rmbs_deleted++;
	rmb_release(rmb);
}

void
rmb_deregister_all(struct lgr *lgr, struct link *link)
{
	struct list_node dead;
	struct rmb *rmb;

	LIST_EACH(struct rmb, r, &lgr->rmbs, node)
		rmb_deregister(r, link);
	list_move_all(&dead, &lgr->dead_rmbs);
	while ((rmb = LIST_POP(struct rmb, &dead, node)) != NULL)
		rmb_release(rmb);
}

/* -- elements -- */

static struct rmb_elem *
elem_at(struct rmb *rmb, uint8_t idx)
{
	assert(idx >= 1 && idx <= rmb->elem_cnt);
	return &rmb->elem[idx - 1];
}

void
rmb_elem_deny(struct rmb *rmb, uint8_t idx, const struct link *link)
{
	if (rmb->mr[link->slot] != NULL)
		rmb->mr[link->slot]->deny[(idx - 1) / 64] |= 1ULL << ((idx - 1) % 64);
}

void
rmb_allow_all(struct lgr *lgr, const struct link *link)
{
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		if (rmb->mr[link->slot] != NULL)
			memset(rmb->mr[link->slot]->deny, 0, sizeof(rmb->mr[link->slot]->deny));
}

bool
rmb_elem_denied(const struct rmb *rmb, uint8_t idx, const struct link *link)
{
	const struct rnic_mr *mr = rmb->mr[link->slot];

	return mr == NULL || (mr->deny[(idx - 1) / 64] >> ((idx - 1) % 64) & 1) != 0;
}

/* Its last connection was moved, and data for it may still arrive over an active link. */
static bool
is_hot(const struct rmb *rmb, uint8_t idx)
{
	return LGR_ANY_LINK(l, rmb->lgr, rmb->mr[l->slot] != NULL && rmb_elem_denied(rmb, idx, l));
}

uint8_t
rmb_elem_get_from(struct rmb *rmb)
{
	unsigned w = 0;

	/* Lowest index first: pages already in use. */
	while (w < 4 && rmb->free_map[w] == 0)
		w++;
	if (w == 4)
		return 0;
	unsigned bit = (unsigned)__builtin_ctzll(rmb->free_map[w]);
	uint8_t idx = (uint8_t)(w * 64 + bit + 1);
	struct rmb_elem *e = elem_at(rmb, idx);
	struct rnic_unit *u = &rmb->units[idx - 1];

	rmb->free_map[w] &= ~(1ULL << bit);
	rnic_unit_drop(u);
	/* Returning pinned pages would separate the RNIC's pages from ours. */
	if (window_is_pinned(rmb->lgr))
		memset(u->mem, 0, u->dirty);
	else
		pages_zero(u->mem, u->dirty);
	u->dirty = 0;
	u->placed = 0;
	e->rests = false;
	e->state = RMB_ELEM_USED;
	if (e->reused)
		rmb->lgr->eng->ctr.elems_reused++;
	e->reused = true;
	rmb->used++;
	return idx;
}

struct rmb *
rmb_find_place(const struct lgr *lgr, const struct smcr_open *want)
{
	uint32_t size = window_elem_size(lgr, want, NULL);
	struct rmb *best = NULL;

	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		if (rmb->state == RMB_CONFIRMED && rmb->used < rmb->elem_cnt &&
		    (rmb->elem_size == size || (want->elem_size == 0 && rmb->elem_size > size)) &&
		    (best == NULL || rmb->elem_size < best->elem_size))
			best = rmb;
	return best;
}

static void
set_free(struct rmb *rmb, uint8_t idx)
{
	elem_at(rmb, idx)->state = RMB_ELEM_FREE;
	rmb->free_map[(idx - 1) / 64] |= 1ULL << ((idx - 1) % 64);
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (rmb->mr[i] != NULL)
			rmb->mr[i]->deny[(idx - 1) / 64] &= ~(1ULL << ((idx - 1) % 64));
	if (--rmb->used == rmb->spare)
		rmb->idle_since_ns = rmb->lgr->eng->now_ns;
}

void
rmb_cool_down(struct lgr *lgr)
{
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		for (uint32_t i = 0; i < rmb->elem_cnt && rmb->cooling > 0; i++) {
			const struct rmb_elem *e = &rmb->elem[i];

			if (e->state != RMB_ELEM_COOLING ||
			    (is_hot(rmb, (uint8_t)(i + 1)) && lgr->eng->now_ns < e->cool_ns))
				continue;
			rmb->cooling--;
			set_free(rmb, (uint8_t)(i + 1));
		}
}

/* conn: of this element; NULL: free. Idle: all its data was announced and consumed, and the peer starts over. */
static void
elem_give_back(struct rmb *rmb, uint8_t idx, const struct smcr_conn *conn)
{
	struct rmb_elem *e = elem_at(rmb, idx);
	struct rnic_unit *u = &rmb->units[idx - 1];
	bool idle = conn == NULL ||
	    (conn->rx.head == conn->rx.tail && u->placed == conn->rx.head && conn->lgr->dialect.starts_over);

	uint32_t kept = rmb->lgr->eye_catcher ? PAGE : 0;
	if (e->rests && idle && u->dirty > kept) {
		pages_give_back(u->mem + kept, u->dirty - kept);
		rmb->lgr->eng->ctr.pages_given_back += u->dirty - kept;
		u->dirty = kept;
	}
	e->rests = true;
}

void
rmb_give_back(struct lgr *lgr)
{
	if (window_is_pinned(lgr))
		return;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node)
		elem_give_back(conn->rmb, conn->elem_idx, conn);
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		for (uint32_t i = 0; i < rmb->elem_cnt; i++)
			if (rmb->elem[i].state == RMB_ELEM_FREE)
				elem_give_back(rmb, (uint8_t)(i + 1), NULL);
}

void
rmb_elem_put(struct rmb *rmb, uint8_t idx)
{
	struct rmb_elem *e = elem_at(rmb, idx);

	assert(e->state == RMB_ELEM_USED);
	if (is_hot(rmb, idx)) {
		e->state = RMB_ELEM_COOLING;
		e->cool_ns = rmb->lgr->eng->now_ns + COOL_NS;
		rmb->cooling++;
		return;
	}
	set_free(rmb, idx);
}

void
rmb_elem_dirty(struct rmb *rmb, uint8_t idx, uint32_t len)
{
	struct rnic_unit *u = &rmb->units[idx - 1];

	u->dirty = max_u32(u->dirty, len);
	elem_at(rmb, idx)->rests = false;
}

void
rmb_elem_mark(struct rmb *rmb, uint8_t idx)
{
	if (!rmb->lgr->eye_catcher)
		return;
	memcpy(rmb->units[idx - 1].mem, eye_catcher, sizeof(eye_catcher));
	rmb_elem_dirty(rmb, idx, sizeof(eye_catcher));
}

bool
rmb_elem_intact(const struct rmb *rmb, uint8_t idx)
{
	if (!rmb->lgr->eye_catcher)
		return true;
	rnic_unit_place(&rmb->units[idx - 1]);
	return memcmp(rmb->units[idx - 1].mem, eye_catcher, sizeof(eye_catcher)) == 0;
}

/* -- quarantine -- */

bool
quarantine_is_full(const struct lgr *lgr)
{
	return lgr->quarantined >= lgr->eng->cfg.quarantine_max;
}

/* Frees it as at the end of its connection. */
static void
rmb_let_go(struct rmb *rmb, uint8_t idx)
{
	elem_at(rmb, idx)->state = RMB_ELEM_USED;
	rmb->quarantined--;
	rmb->lgr->quarantined--;
	rmb->lgr->eng->ctr.elems_let_go++;
	rmb_elem_put(rmb, idx);
}

/* The release did not come with the peer's writes, which may still be in flight. The links refuse them (if the device
 * supports that) until each has proven idle, or a time limit. */
static void
release_later(struct rmb *rmb, uint8_t idx)
{
	LGR_EACH_LINK(l, rmb->lgr) {
		if (l->state == LINK_FREE)
			continue;
		rmb_elem_deny(rmb, idx, l);
		if (l->state == LINK_ACTIVE)
			link_request_ack(l);
	}
	rmb_let_go(rmb, idx);
}

void
quarantine_elem(struct rmb *rmb, uint8_t idx, uint32_t token, struct remote_rmb *peer_rmb, uint8_t peer_idx)
{
	struct rmb_elem *e = elem_at(rmb, idx);

	e->state = RMB_ELEM_QUARANTINED;
	e->token = token;
	e->peer_rmb = peer_rmb != NULL ? peer_rmb->number : 0;
	e->peer_idx = peer_idx;
	rmb->quarantined++;
	rmb->lgr->quarantined++;
	rmb->lgr->eng->ctr.elems_quarantined++;
	if (peer_rmb != NULL && peer_rmb->state == REMOTE_RMB_LEFT)
		release_later(rmb, idx); /* its end released the element before the connection ended */
	else if (peer_rmb != NULL)
		peer_rmb->quarantined = true;
}

void
quarantine_release(struct lgr *lgr, const struct remote_rmb *rr, uint8_t peer_idx)
{
	if (lgr->quarantined == 0)
		return;
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		for (uint32_t i = 0; i < rmb->elem_cnt && rmb->quarantined > 0; i++) {
			const struct rmb_elem *e = &rmb->elem[i];

			if (e->state == RMB_ELEM_QUARANTINED && e->peer_rmb == rr->number &&
			    (peer_idx == 0 || e->peer_idx == peer_idx))
				release_later(rmb, (uint8_t)(i + 1));
		}
	}
}

bool
quarantine_take_flags(struct lgr *lgr, uint32_t token, uint8_t conn_flags)
{
	if (lgr->quarantined == 0 || (conn_flags & (CDC_CLOSED | CDC_ABORT)) == 0)
		return false;
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		for (uint32_t i = 0; i < rmb->elem_cnt && rmb->quarantined > 0; i++) {
			if (rmb->elem[i].state != RMB_ELEM_QUARANTINED || rmb->elem[i].token != token)
				continue;
			rmb_let_go(rmb, (uint8_t)(i + 1));
			return true;
		}
	}
	return false;
}

/* -- remote RMBs -- */

struct remote_rmb *
remote_rmb_find(struct lgr *lgr, const struct link *link, uint32_t rkey, const uint64_t *addr)
{
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node)
		if (rr->on[link->slot].known && rr->on[link->slot].rkey == rkey &&
		    (addr == NULL || rr->on[link->slot].addr == *addr))
			return rr;
	return NULL;
}

struct remote_rmb *
remote_rmb_add(struct lgr *lgr, const struct link *link, uint32_t rkey, uint64_t addr)
{
	struct remote_rmb *rr = remote_rmb_find(lgr, link, rkey, &addr);

	if (rr != NULL)
		return rr;
	if (lgr->remote_rmb_cnt == SMCR_RMBS_PER_GROUP) {
		lgr->eng->ctr.refused_rmbs_max++;
		return NULL;
	}
	rr = calloc(1, sizeof(*rr));
	if (rr == NULL) {
		lgr->eng->ctr.refused_memory++;
		return NULL;
	}
	rr->lgr = lgr;
	rr->number = ++lgr->remote_next_number;
	rr->on[link->slot] = (struct rtoken){ true, rkey, addr };
	list_push(&lgr->remote_rmbs, &rr->node);
	lgr->remote_rmb_cnt++;
	return rr;
}

void
remote_rmb_free(struct lgr *lgr, struct remote_rmb *rr)
{
	if (lgr->cont_rmb == rr)
		lgr->cont_rmb = NULL;
	if (rr->quarantined)
		quarantine_release(lgr, rr, 0);
	list_remove(&rr->node);
	lgr->remote_rmb_cnt--;
	memset(rr->on, 0, sizeof(rr->on));
	remote_rmb_set_state(rr, REMOTE_RMB_LEFT, NULL);
	if (rr->used == 0)
		free(rr);
}

void
remote_rmb_claim(struct remote_rmb *rr, uint8_t idx, uint32_t conn_id)
{
	rr->used++;
	rr->conn_id[idx] = conn_id;
}

void
remote_rmb_release(struct remote_rmb *rr, uint8_t idx, uint32_t conn_id)
{
	if (rr->conn_id[idx] == conn_id)
		rr->conn_id[idx] = 0;
	if (--rr->used == 0 && rr->state == REMOTE_RMB_LEFT)
		free(rr);
}
