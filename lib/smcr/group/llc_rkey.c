/*
 * CONFIRM RKEY and DELETE RKEY: RMBs come and go (RFC 7609 3.5.5.2). Each side
 * manages its own; one exchange of ours at a time, the peer's may overlap.
 */
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/llc_impl.h"

#define RKEY_RETRY_MS 20 /* a few round trips: what the peer is at takes about as long */

/* Fills out with the RMB's RTokens on up to max active links other than `over`, from slot *slot on; returns their number. */
static unsigned
other_links(const struct rmb *rmb, const struct link *over, unsigned *slot, struct llc_link_rkey *out, unsigned max)
{
	unsigned n = 0;

	for (; *slot < LINK_SLOTS && n < max; (*slot)++) {
		const struct link *l = &rmb->lgr->links[*slot];

		if (l == over || l->state != LINK_ACTIVE)
			continue;
		out[n++] = (struct llc_link_rkey){
			.link_num = l->number,
			.rkey = rmb->mr[l->slot]->rkey,
			.vaddr = rmb->mr[l->slot]->addr,
		};
	}
	return n;
}

static int
send_confirm_rkey(struct link *over, struct rmb *rmb)
{
	struct lgr *lgr = over->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY };
	struct llc_confirm_rkey *m = &msg.confirm_rkey;

	m->rkey = rmb->mr[over->slot]->rkey;
	m->vaddr = rmb->mr[over->slot]->addr;
	m->other_cnt = (uint8_t)(lgr->active_cnt - 1);
	f->next_slot = 0;
	f->left = m->other_cnt - min_u8(m->other_cnt, LLC_LINKS_INLINE);
	(void)other_links(rmb, over, &f->next_slot, m->others, LLC_LINKS_INLINE);
	return link_send_llc(over, &msg);
}

static int
send_confirm_rkey_cont(struct link *over, struct rmb *rmb)
{
	struct llc_flow *f = &over->lgr->flow[LLC_FLOW_RKEY];
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY_CONT };
	struct llc_confirm_rkey_cont *m = &msg.confirm_rkey_cont;

	m->left_cnt = f->left;
	/* By count, though a link may have been lost since it was counted: its place stays empty. */
	f->left -= min_u8(f->left, LLC_LINKS_PER_CONT);
	(void)other_links(rmb, over, &f->next_slot, m->others, LLC_LINKS_PER_CONT);
	return link_send_llc(over, &msg);
}

/* An RMB whose exchange did not come to its end; the peer may know it or not. */
static struct rmb *
unconfirmed(struct lgr *lgr, uint32_t elem_size)
{
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		if (rmb->state == RMB_NEW && rmb->elem_size == elem_size)
			return rmb;
	}
	return NULL;
}

static int
confirm_rmb(struct link *over, struct rmb *rmb)
{
	struct lgr *lgr = over->lgr;
	int err = send_confirm_rkey(over, rmb);

	if (err < 0)
		return err; /* it stays for the next attempt */
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_RKEY].rmb = rmb;
	return 0;
}

int
llc_add_rmb(struct lgr *lgr, uint32_t elem_size)
{
	struct link *over = lgr_pick_link(lgr);
	struct rmb *rmb;

	/* One at a time: who waits asks again when this one is through. */
	if (!llc_may_begin_rkey(lgr) || timer_armed(&lgr->rkey_retry))
		return 0;
	if (over == NULL || lgr->state != LGR_ACTIVE)
		return -ENOTCONN;
	rmb = unconfirmed(lgr, elem_size);
	if (rmb == NULL && lgr->rmb_cnt >= SMCR_RMBS_PER_GROUP) {
		lgr->eng->ctr.refused_rmbs_max++;
		return -ENOSPC;
	}
	if (rmb == NULL)
		rmb = rmb_new(lgr, elem_size, rmb_next_cnt(lgr, elem_size));
	return rmb != NULL ? confirm_rmb(over, rmb) : -ENOMEM;
}

static void
add_rmb_done(struct lgr *lgr, bool ok)
{
	struct rmb *rmb = lgr->flow[LLC_FLOW_RKEY].rmb;

	llc_done(lgr, LLC_FLOW_RKEY);
	if (ok)
		rmb_set_state(rmb, RMB_CONFIRMED, NULL);
	else
		rmb_free(rmb);
	mark_rmb(lgr, ok ? RMB_READY : RMB_REFUSED);
}

/* The peer is changing the links: once more, with the links as they are then (3.5.5.3.1). */
static void
confirm_later(struct lgr *lgr)
{
	lgr->eng->ctr.rkey_retries++;
	llc_done(lgr, LLC_FLOW_RKEY);
	/* Not in step with attempts of the peer that come at their own interval. */
	engine_arm(lgr->eng, &lgr->rkey_retry, RKEY_RETRY_MS + (uint32_t)(rng_u64(lgr->eng->rng) % RKEY_RETRY_MS));
}

/* The answer to one message of our CONFIRM RKEY. */
static void
confirm_rkey_answered(struct link *link, bool negative, bool retry)
{
	struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (negative && retry)
		confirm_later(link->lgr);
	else if (negative)
		add_rmb_done(link->lgr, false);
	else if (f->left == 0)
		add_rmb_done(link->lgr, true);
	else if (send_confirm_rkey_cont(link, f->rmb) < 0)
		link_lost(link, "CONFIRM RKEY CONTINUATION could not be sent");
	else
		llc_start(link->lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, link, link->lgr->eng->cfg.llc_ms);
}

/* An answer that is none to what is under way: of an exchange that we have given up, or a protocol error. */
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
	not_awaited(link, "RKEY response that was not asked for");
	return false;
}

void
llc_confirm_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (!awaits(link, LLC_WAIT_CONFIRM_RKEY_RSP))
		return;
	if (msg->confirm_rkey.rkey != f->rmb->mr[link->slot]->rkey)
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

/* -- the peer's RMBs -- */

static void
note_others(struct lgr *lgr, struct remote_rmb *rr, const struct llc_link_rkey *others, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct link *l = llc_link_by_number(lgr, others[i].link_num);

		if (l == NULL)
			continue;
		rr->on[l->slot].known = true;
		rr->on[l->slot].rkey = others[i].rkey;
		rr->on[l->slot].addr = others[i].vaddr;
	}
}

/* A link for which the peer did not give an RKey has failed (C.7.1). */
static void
links_without(struct lgr *lgr, const struct remote_rmb *rr)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE && !rr->on[l->slot].known)
			link_lost(l, "no RKey for this link in CONFIRM RKEY");
}

/* The peer's CONFIRM RKEY goes on in CONTINUATIONs, and `left` links are to come; NULL: it has ended. */
static void
await_cont(struct lgr *lgr, struct remote_rmb *rr, uint8_t left)
{
	if (lgr->cont_rmb != NULL)
		remote_rmb_set_state(lgr->cont_rmb, REMOTE_RMB_CONFIRMED, NULL);
	lgr->cont_rmb = left > 0 ? rr : NULL;
	lgr->cont_left = left;
	if (lgr->cont_rmb == NULL) {
		timer_cancel(&lgr->eng->timers, &lgr->cont_timer);
		return;
	}
	remote_rmb_set_state(rr, REMOTE_RMB_CONTINUES, NULL);
	engine_arm(lgr->eng, &lgr->cont_timer, lgr->eng->cfg.llc_ms);
}

/* A part of its RTokens is as good as none, and our exchanges need not wait. */
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

void
llc_confirm_rkey_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_confirm_rkey *m = &msg->confirm_rkey;
	struct remote_rmb *rr = NULL;
	struct llc_msg rsp = *msg;

	if (lgr->state == LGR_ACTIVE)
		rr = remote_rmb_add(lgr, link, m->rkey, m->vaddr);
	rsp.response = true;
	rsp.confirm_rkey.negative = rr == NULL;
	rsp.confirm_rkey.retry = false;
	await_cont(lgr, NULL, 0);
	if (rr != NULL) {
		unsigned here = min_u8(m->other_cnt, LLC_LINKS_INLINE);

		note_others(lgr, rr, m->others, here);
		await_cont(lgr, rr, (uint8_t)(m->other_cnt - here));
	}
	(void)link_send_llc(link, &rsp);
	if (rr != NULL && lgr->cont_rmb == NULL)
		links_without(lgr, rr);
}

/* An exchange of ours is in its way (3.5.5.3.1): the peer tries again. */
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
	unsigned here = min_u8(m->left_cnt, LLC_LINKS_PER_CONT);

	if (rr == NULL || m->left_cnt != lgr->cont_left) {
		llc_protocol_error(link, "CONFIRM RKEY CONTINUATION out of sequence");
		return;
	}
	note_others(lgr, rr, m->others, here);
	await_cont(lgr, rr, (uint8_t)(lgr->cont_left - here));
	rsp.response = true;
	(void)link_send_llc(link, &rsp);
	if (lgr->cont_left == 0) {
		mark_exchanges(lgr);
		links_without(lgr, rr);
	}
}

/* -- DELETE RKEY -- */

static void
delete_rmb(struct rmb *rmb)
{
	struct lgr *lgr = rmb->lgr;
	struct link *over = lgr_pick_link(lgr);
	struct llc_msg msg = { .type = LLC_DELETE_RKEY };

	msg.delete_rkey.cnt = 1;
	msg.delete_rkey.rkeys[0] = rmb->mr[over->slot]->rkey;
	if (link_send_llc(over, &msg) < 0)
		return;
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_DELETE_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_RKEY].rmb = rmb;
	lgr->flow[LLC_FLOW_RKEY].deleting_new = rmb->state == RMB_NEW;
	rmb_set_state(rmb, RMB_DELETING, NULL);
}

void
llc_delete_idle_rmb(struct lgr *lgr)
{
	int64_t limit = lgr->eng->now_ns - lgr->eng->cfg.rmb_idle_ms * MS;
	struct rmb *idle = NULL;

	if (lgr->state != LGR_ACTIVE || !llc_may_begin_rkey(lgr))
		return;
	/* The group keeps one RMB. */
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		if (lgr->rmb_cnt > 1 && rmb->state == RMB_CONFIRMED && rmb->used == 0 && rmb->idle_since_ns <= limit)
			idle = rmb;
	}
	if (idle != NULL)
		delete_rmb(idle);
}

void
llc_delete_unconfirmed(struct lgr *lgr)
{
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		if (rmb->state != RMB_NEW || rmb->used > 0)
			continue;
		delete_rmb(rmb);
		return;
	}
}

/*
 * It was not sure to know the RMB, so that this may be what it says, or that it cannot do without it now. CONFIRM RKEY
 * settles it: then the RMB is as any other, and is deleted when it has been idle.
 */
static void
deletion_refused(struct link *link, struct rmb *rmb)
{
	rmb_set_state(rmb, RMB_NEW, "the peer refused its deletion");
	rmb->idle_since_ns = link->lgr->eng->now_ns;
	(void)confirm_rmb(link, rmb);
}

void
llc_delete_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct rmb *rmb = lgr->flow[LLC_FLOW_RKEY].rmb;
	bool in_doubt = lgr->flow[LLC_FLOW_RKEY].deleting_new;

	if (!awaits(link, LLC_WAIT_DELETE_RKEY_RSP))
		return;
	if (msg->delete_rkey.cnt != 1 || msg->delete_rkey.rkeys[0] != rmb->mr[link->slot]->rkey) {
		not_awaited(link, "DELETE RKEY response names another RMB");
		return;
	}
	llc_done(lgr, LLC_FLOW_RKEY);
	if (!msg->delete_rkey.negative)
		rmb_free(rmb);
	else if (in_doubt)
		deletion_refused(link, rmb);
	else
		rmb_set_state(rmb, RMB_CONFIRMED, "the peer still holds it"); /* asked again after the idle time */
	/* Connections may have asked for an RMB meanwhile. */
	mark_rmb(lgr, RMB_READY);
}

void
llc_delete_rkey_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_msg rsp = *msg;
	struct llc_delete_rkey *m = &rsp.delete_rkey;

	rsp.response = true;
	m->error_mask = 0;
	for (unsigned i = 0; i < m->cnt; i++) {
		struct remote_rmb *rr = remote_rmb_find(lgr, link, m->rkeys[i], NULL);

		if (rr == NULL || rr->used > 0)
			m->error_mask |= (uint8_t)(0x80u >> i);
		else
			remote_rmb_free(lgr, rr);
	}
	m->negative = m->error_mask != 0;
	(void)link_send_llc(link, &rsp);
}

void
llc_delete_rkey_refuse(struct link *link, const struct llc_msg *msg)
{
	struct llc_msg rsp = *msg;

	rsp.response = rsp.delete_rkey.negative = true;
	rsp.delete_rkey.error_mask = 0;
	for (unsigned i = 0; i < rsp.delete_rkey.cnt; i++)
		rsp.delete_rkey.error_mask |= (uint8_t)(0x80u >> i);
	(void)link_send_llc(link, &rsp);
}

void
llc_rkey_lost(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_RKEY];

	/* Whether the peer got it is not known: an RMB that was to be deleted is confirmed anew before it is used again. */
	if (f->rmb != NULL && f->rmb->state == RMB_DELETING)
		rmb_set_state(f->rmb, RMB_NEW, "its deletion has no outcome");
	lgr->eng->ctr.rkey_retries++;
	llc_done(lgr, LLC_FLOW_RKEY);
}

void
llc_rkey_timeout(struct lgr *lgr)
{
	struct link *over = lgr->flow[LLC_FLOW_RKEY].link;

	llc_rkey_lost(lgr);
	if (over->late_rkeys < UINT8_MAX)
		over->late_rkeys++;
	llc_doubt(over, "RKEY exchange without an answer");
}
