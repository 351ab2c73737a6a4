/* CONFIRM RKEY and DELETE RKEY for RMBs (RFC 7609 3.5.5.2). Each side has one exchange at a time for its own RMBs. */
#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "smcr/data/grant.h"
#include "smcr/group/llc_impl.h"

#define RKEY_RETRY_MS 20 /* a few round trips: about as long as the peer's exchange */

/* RTokens of the RMB on up to max further active links. An entry is empty if its link was lost since it was counted. */
static void
other_links(struct llc_flow *f, const struct rmb *rmb, const struct link *over, struct llc_link_rkey *out, uint8_t max)
{
	unsigned n = 0;

	f->left -= min_u8(f->left, max);
	for (; f->next_slot < LINK_SLOTS && n < max; f->next_slot++) {
		const struct link *l = &f->lgr->links[f->next_slot];

		if (l == over || l->state != LINK_ACTIVE)
			continue;
		out[n++] = (struct llc_link_rkey){ l->number, rmb->mr[l->slot]->rkey, rmb->mr[l->slot]->addr };
	}
}

/* 0 or a negative errno; the RMB is kept for the next attempt. */
static int
confirm_rmb(struct link *over, struct rmb *rmb)
{
	struct lgr *lgr = over->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY };
	struct llc_confirm_rkey *m = &msg.confirm_rkey;

	m->rkey = rmb->mr[over->slot]->rkey;
	m->vaddr = rmb->mr[over->slot]->addr;
	m->other_cnt = f->left = (uint8_t)(lgr->active_cnt - 1);
	f->next_slot = 0;
	other_links(f, rmb, over, m->others, LLC_LINKS_INLINE);
	int err = link_send_llc(over, &msg);
	if (err < 0)
		return err;
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	f->rmb = rmb;
	f->overtaken = false;
	return 0;
}

int
llc_add_rmb(struct lgr *lgr, uint32_t elem_size)
{
	struct link *over = lgr_pick_link(lgr);

	/* One at a time: waiting connections request again after this one. */
	if (!llc_may_begin_rkey(lgr) || timer_armed(&lgr->rkey_retry))
		return 0;
	if (over == NULL || lgr->state != LGR_ACTIVE)
		return -ENOTCONN;
	/* One with an incomplete exchange counts: the peer may know it or not. */
	struct rmb *rmb = LIST_FIND(struct rmb, r, &lgr->rmbs, node, r->state == RMB_NEW && r->elem_size == elem_size);
	if (rmb == NULL && lgr->rmb_cnt >= SMCR_RMBS_PER_GROUP) {
		lgr->eng->ctr.refused_rmbs_max++;
		return -ENOSPC;
	}
	if (rmb == NULL)
		rmb = rmb_new(lgr, elem_size, window_next_cnt(lgr, elem_size));
	return rmb != NULL ? confirm_rmb(over, rmb) : -ENOMEM;
}

/* The peer no longer has the RMB. With an OPEN for one of its elements in flight it would have refused the deletion, unless
 * that connection has ended there, or it lies: then the RMB lasts as long as the connection. */
static void
rmb_is_gone(struct rmb *rmb)
{
	grant_end_rmb(rmb);
	if (rmb->used == 0)
		rmb_free(rmb);
	else if (rmb->state != RMB_NEW)
		rmb_set_state(rmb, RMB_NEW, "a connection was opened in it");
}

/* Response to one message of our CONFIRM RKEY. */
static void
confirm_rkey_answered(struct link *link, bool negative, bool retry)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];
	struct rmb *rmb = f->rmb;

	if (!negative && f->left > 0) {
		struct llc_msg msg = { .type = LLC_CONFIRM_RKEY_CONT, .confirm_rkey_cont.left_cnt = f->left };

		other_links(f, rmb, link, msg.confirm_rkey_cont.others, LLC_LINKS_PER_CONT);
		if (link_send_llc(link, &msg) < 0)
			link_lost(link, "CONFIRM RKEY CONTINUATION could not be sent");
		else
			llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, link, lgr->eng->cfg.llc_ms);
		return;
	}
	llc_done(lgr, LLC_FLOW_RKEY);
	if (negative && retry) {
		/* The peer is changing the links: retry with the new ones (3.5.5.3.1), at random to avoid lockstep. */
		lgr->eng->ctr.rkey_retries++;
		engine_arm(
		    lgr->eng, &lgr->rkey_retry, RKEY_RETRY_MS + (uint32_t)(rng_u64(lgr->eng->rng) % RKEY_RETRY_MS));
	} else if (negative) {
		rmb_is_gone(rmb);
		mark_lgr(lgr)->rmb = RMB_REFUSED;
	} else if (f->overtaken) {
		/* Linux refuses nothing: earlier RTokens for the new link were of an RMB unknown to it. */
		lgr->eng->ctr.rkey_retries++;
	} else {
		rmb_set_state(rmb, RMB_CONFIRMED, NULL);
		mark_lgr(lgr)->rmb = RMB_READY;
	}
}

/* An unexpected response: to an exchange that we have abandoned, or a protocol error. */
static void
not_awaited(struct link *link, const char *what)
{
	if (link->late_rkeys == 0) {
		llc_protocol_error(link, what);
		return;
	}
	link->late_rkeys--;
	link->lgr->eng->ctr.llc_ignored++;
}

static bool
awaits(struct link *link, enum llc_step step)
{
	const struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (f->step == step && f->link == link)
		return true;
	not_awaited(link, "unexpected RKEY response");
	return false;
}

void
llc_confirm_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	if (!awaits(link, LLC_WAIT_CONFIRM_RKEY_RSP))
		return;
	if (msg->confirm_rkey.rkey != link->lgr->flow[LLC_FLOW_RKEY].rmb->mr[link->slot]->rkey)
		not_awaited(link, "CONFIRM RKEY response names another RMB");
	else
		confirm_rkey_answered(link, msg->confirm_rkey.negative, msg->confirm_rkey.retry);
}

void
llc_confirm_rkey_cont_rsp(struct link *link, const struct llc_msg *msg)
{
	if (awaits(link, LLC_WAIT_CONFIRM_RKEY_RSP))
		confirm_rkey_answered(link, msg->confirm_rkey_cont.negative, false);
}

/* -- remote RMBs -- */

/* A link without an RKey from the peer has failed (C.7.1). */
static void
links_without(struct lgr *lgr, const struct remote_rmb *rr)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE && !rr->on[l->slot].known)
			link_lost(l, "no RKey for this link in CONFIRM RKEY");
}

/* The peer's CONFIRM RKEY continues in CONTINUATIONs with `left` links to come; NULL: it has ended. */
static void
await_cont(struct lgr *lgr, struct remote_rmb *rr, uint8_t left)
{
	if (lgr->cont_rmb != NULL) {
		remote_rmb_set_state(lgr->cont_rmb, REMOTE_RMB_CONFIRMED, NULL);
		mark_exchanges(lgr); /* they have waited */
	}
	lgr->cont_rmb = left > 0 ? rr : NULL;
	lgr->cont_left = left;
	if (lgr->cont_rmb == NULL) {
		timer_cancel(&lgr->eng->timers, &lgr->cont_timer);
		return;
	}
	remote_rmb_set_state(rr, REMOTE_RMB_CONTINUES, NULL);
	engine_arm(lgr->eng, &lgr->cont_timer, lgr->eng->cfg.llc_ms);
}

/* Takes the RTokens of one message: up to max of the `left` links to come. */
static void
take_others(struct lgr *lgr, struct remote_rmb *rr, const struct llc_link_rkey *others, uint8_t left, uint8_t max)
{
	uint8_t here = min_u8(left, max);

	for (unsigned i = 0; i < here; i++) {
		struct link *l = lgr_link_by_number(lgr, others[i].link_num);

		if (l == NULL)
			continue;
		rr->on[l->slot] = (struct rtoken){ true, others[i].rkey, others[i].vaddr };
	}
	await_cont(lgr, rr, (uint8_t)(left - here));
}

/* Incomplete RTokens are useless, and our exchanges need not wait. */
void
llc_cont_fired(struct timer *t)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, cont_timer);
	struct remote_rmb *rr = lgr->cont_rmb;

	lgr->eng->ctr.llc_timeouts++;
	await_cont(lgr, NULL, 0);
	if (rr != NULL && rr->used == 0)
		remote_rmb_free(lgr, rr);
	mark_exchanges(lgr);
}

/* Neither the message nor its continuations include this link, as far as their count shows. */
static bool
lacks(const struct llc_confirm_rkey *m, const struct link *l)
{
	if (m->other_cnt > LLC_LINKS_INLINE)
		return m->other_cnt + 1u < l->lgr->active_cnt;
	for (unsigned i = 0; i < m->other_cnt; i++)
		if (m->others[i].link_num == l->number)
			return false;
	return true;
}

/* Sent before the peer knew of an existing link: ADD LINK overtook it on another link, with RTokens of unknown RMBs. */
static bool
was_overtaken(struct link *link, const struct llc_confirm_rkey *m)
{
	struct remote_rmb *rr = remote_rmb_find(link->lgr, link, m->rkey, &m->vaddr);

	LGR_EACH_LINK(l, link->lgr) {
		if (l == link || l->state != LINK_ACTIVE || l->rtokens_ahead == 0 || !lacks(m, l) ||
		    (rr != NULL && rr->on[l->slot].known))
			continue;
		l->rtokens_ahead--;
		return true;
	}
	return false;
}

void
llc_confirm_rkey_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_confirm_rkey *m = &msg->confirm_rkey;
	struct remote_rmb *rr = NULL;
	struct llc_msg rsp = *msg;

	if (lgr->state == LGR_ACTIVE && was_overtaken(link, m)) {
		lgr->eng->ctr.llc_collisions++;
		llc_confirm_rkey_refuse(link, msg); /* it is repeated with the new link (3.5.5.3.1) */
		return;
	}
	if (lgr->state == LGR_ACTIVE)
		rr = remote_rmb_add(lgr, link, m->rkey, m->vaddr);
	rsp.response = true;
	rsp.confirm_rkey.negative = rr == NULL;
	rsp.confirm_rkey.retry = false;
	if (rr != NULL)
		take_others(lgr, rr, m->others, m->other_cnt, LLC_LINKS_INLINE);
	else
		await_cont(lgr, NULL, 0);
	(void)link_send_llc(link, &rsp);
	if (rr != NULL && lgr->cont_rmb == NULL)
		links_without(lgr, rr);
}

/* It collides with our exchange (3.5.5.3.1): the peer retries. */
void
llc_confirm_rkey_refuse(struct link *link, const struct llc_msg *msg)
{
	struct llc_msg rsp = *msg;

	await_cont(link->lgr, NULL, 0);
	rsp.response = rsp.confirm_rkey.negative = rsp.confirm_rkey.retry = true;
	(void)link_send_llc(link, &rsp);
}

void
llc_confirm_rkey_cont_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_confirm_rkey_cont *m = &msg->confirm_rkey_cont;
	struct llc_msg rsp = *msg;
	struct remote_rmb *rr = lgr->cont_rmb;

	if (rr == NULL || m->left_cnt != lgr->cont_left) {
		llc_protocol_error(link, "CONFIRM RKEY CONTINUATION out of sequence");
		return;
	}
	take_others(lgr, rr, m->others, m->left_cnt, LLC_LINKS_PER_CONT);
	rsp.response = true;
	(void)link_send_llc(link, &rsp);
	if (lgr->cont_left == 0)
		links_without(lgr, rr);
}

/* -- DELETE RKEY -- */

static void
delete_rmb(struct rmb *rmb)
{
	struct lgr *lgr = rmb->lgr;
	struct link *over = lgr_pick_link(lgr);
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];
	uint8_t rkey[LLC_RKEY_LEN];
	struct llc_msg msg = { .type = LLC_DELETE_RKEY, .delete_rkey = { .cnt = 1, .rkeys = rkey } };

	llc_rkey_put(rkey, 0, rmb->mr[over->slot]->rkey);
	if (link_send_llc(over, &msg) < 0)
		return;
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_DELETE_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	f->rmb = rmb;
	f->deleting_new = rmb->state == RMB_NEW;
	rmb_set_state(rmb, RMB_DELETING, NULL);
}

void
llc_delete_idle_rmb(struct lgr *lgr)
{
	int64_t limit = lgr->eng->now_ns - lgr->eng->cfg.rmb_idle_ms * MS;
	struct rmb *idle = NULL;
	/* An abandoned RKEY exchange over a link may still arrive: after DELETE RKEY over another link it would
	 * recreate a deleted RMB at the peer. The test of the link, sent after it, settles that. */
	bool may_be_overtaken = LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && l->late_rkeys > 0 && l->test_pending);

	if (lgr->state != LGR_ACTIVE || !llc_may_begin_rkey(lgr) || may_be_overtaken)
		return;
	/* The group keeps one RMB. */
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		if (lgr->rmb_cnt > 1 && rmb->state == RMB_CONFIRMED && rmb->used == rmb->spare &&
		    rmb->idle_since_ns <= limit)
			idle = rmb;
	if (idle != NULL)
		delete_rmb(idle);
}

void
llc_delete_unconfirmed(struct lgr *lgr)
{
	struct rmb *rmb = LIST_FIND(struct rmb, r, &lgr->rmbs, node, r->state == RMB_NEW && r->used == r->spare);

	if (rmb != NULL)
		delete_rmb(rmb);
}

void
llc_delete_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct rmb *rmb = lgr->flow[LLC_FLOW_RKEY].rmb;
	bool in_doubt = lgr->flow[LLC_FLOW_RKEY].deleting_new;

	/* A version 2 response names nothing: responses come in the order of the requests. */
	if (link->owed_deletes > 0) {
		link->owed_deletes--;
		not_awaited(link, "unexpected DELETE RKEY response");
		return;
	}
	if (!awaits(link, LLC_WAIT_DELETE_RKEY_RSP))
		return;
	if (lgr->version == LLC_VERSION &&
	    (msg->delete_rkey.cnt != 1 || llc_rkey_get(msg->delete_rkey.rkeys, 0) != rmb->mr[link->slot]->rkey)) {
		not_awaited(link, "DELETE RKEY response names another RMB");
		return;
	}
	llc_done(lgr, LLC_FLOW_RKEY);
	if (!msg->delete_rkey.negative) {
		rmb_is_gone(rmb);
	} else if (!in_doubt) {
		rmb_set_state(rmb, RMB_CONFIRMED, "the peer still holds it"); /* repeated after the idle time */
	} else {
		/* The peer may not have known the RMB, so this response may mean that, or that the RMB is in use.
		 * CONFIRM RKEY settles it: afterwards the RMB is like any other, and deleted when idle. */
		rmb_set_state(rmb, RMB_NEW, "the peer refused its deletion");
		rmb->idle_since_ns = lgr->eng->now_ns;
		grant_in_doubt(lgr);
		if (lgr->state == LGR_ACTIVE) /* else DELETE LINK for all is in progress, and nothing may follow it */
			(void)confirm_rmb(link, rmb);
	}
	/* Connections may have requested an RMB in the meantime. */
	mark_lgr(lgr)->rmb = RMB_READY;
}

/* Reports all of them as deleted. */
static struct llc_msg
delete_rkey_answer(const struct llc_msg *req)
{
	struct llc_msg rsp = *req;

	rsp.response = true;
	rsp.delete_rkey.negative = false;
	rsp.delete_rkey.error_mask = rsp.delete_rkey.invalid_cnt = 0;
	return rsp;
}

/* Reports the i-th as not deleted. */
static void
refuse_rkey(const struct lgr *lgr, struct llc_delete_rkey *m, unsigned i)
{
	m->negative = true;
	if (lgr->version == LLC_VERSION)
		m->error_mask |= (uint8_t)(0x80u >> i);
	else
		m->invalid_cnt++;
}

/* A key named by the peer, maybe several times: equal ones are adjacent, and only the first is used. */
struct named_rkey {
	uint32_t rkey;
	uint8_t nr;      /* position in the message */
	uint8_t deleted; /* number of them that have deleted an RMB */
	bool in_use;     /* the next RMB with this key is not deleted */
};

static int
by_rkey(const void *a, const void *b)
{
	const struct named_rkey *x = a, *y = b;

	return x->rkey != y->rkey ? (x->rkey > y->rkey) - (x->rkey < y->rkey) : x->nr - y->nr;
}

/* The first with this key; NULL: none. */
static struct named_rkey *
find_named(struct named_rkey *named, unsigned cnt, uint32_t rkey)
{
	unsigned low = 0, high = cnt;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (named[mid].rkey < rkey)
			low = mid + 1;
		else
			high = mid;
	}
	return low < cnt && named[low].rkey == rkey ? &named[low] : NULL;
}

/* One pass over the RMBs, regardless of the number of keys. */
static void
delete_named(struct link *link, struct llc_delete_rkey *m)
{
	struct named_rkey named[LLC_MAX_DELETE_RKEYS_V2], *end = named + m->cnt;
	struct lgr *lgr = link->lgr;

	for (unsigned i = 0; i < m->cnt; i++)
		named[i] = (struct named_rkey){ .rkey = llc_rkey_get(m->rkeys, i), .nr = (uint8_t)i };
	qsort(named, m->cnt, sizeof(named[0]), by_rkey);
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node) {
		struct named_rkey *n = rr->on[link->slot].known ? find_named(named, m->cnt, rr->on[link->slot].rkey)
		                                                : NULL;

		if (n == NULL || n->in_use || n + n->deleted == end || n[n->deleted].rkey != n->rkey)
			continue;
		/* It may be deleted despite a connection that has not ended here. */
		if (rr->used == 0 || lgr->dialect.delete_rkey_is_final) {
			n->deleted++;
			remote_rmb_free(lgr, rr);
		} else {
			n->in_use = true;
		}
	}
	for (const struct named_rkey *n = named, *first = named; n < end; n++) {
		first = n->rkey == first->rkey ? first : n;
		if (n - first >= first->deleted)
			refuse_rkey(lgr, m, n->nr);
	}
}

void
llc_delete_rkey_req(struct link *link, const struct llc_msg *msg)
{
	struct llc_msg rsp = delete_rkey_answer(msg);

	delete_named(link, &rsp.delete_rkey);
	(void)link_send_llc(link, &rsp);
}

void
llc_delete_rkey_refuse(struct link *link, const struct llc_msg *msg)
{
	struct llc_msg rsp = delete_rkey_answer(msg);

	for (unsigned i = 0; i < rsp.delete_rkey.cnt; i++)
		refuse_rkey(link->lgr, &rsp.delete_rkey, i);
	(void)link_send_llc(link, &rsp);
}

void
llc_rkey_lost(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];

	/* The peer may not have received it: an RMB to be deleted is confirmed again before its next use. */
	if (f->rmb != NULL && f->rmb->state == RMB_DELETING)
		rmb_set_state(f->rmb, RMB_NEW, "the outcome of its deletion is unknown");
	lgr->eng->ctr.rkey_retries++;
	llc_done(lgr, LLC_FLOW_RKEY);
}

void
llc_rkey_timeout(struct lgr *lgr)
{
	struct link *over = lgr->flow[LLC_FLOW_RKEY].link;
	bool unnamed = lgr->version == LLC_VERSION_2 && lgr->flow[LLC_FLOW_RKEY].step == LLC_WAIT_DELETE_RKEY_RSP;

	llc_rkey_lost(lgr);
	if (over->late_rkeys < UINT8_MAX) {
		over->late_rkeys++;
		over->owed_deletes += unnamed;
		over->test_again = over->test_again || (unnamed && over->test_pending);
	}
	llc_ask_alive(over, "RKEY exchange without an answer");
}
