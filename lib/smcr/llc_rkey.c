/*
 * CONFIRM RKEY and DELETE RKEY: RMBs come and go (RFC 7609 3.5.5.2). Each side
 * manages its own; one exchange of ours at a time, the peer's may overlap.
 */
#include <errno.h>
#include <string.h>

#include "smcr/llc_impl.h"
#include "smcr/rendezvous.h"

/* The RMB's RToken on the next active links other than `over`, from slot *slot on: up to max, how many. */
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
	f->left = m->other_cnt - (uint8_t)other_links(rmb, over, &f->next_slot, m->others, LLC_LINKS_INLINE);
	return link_send_llc(over, &msg);
}

static int
send_confirm_rkey_cont(struct link *over, struct rmb *rmb)
{
	struct llc_flow *f = &over->lgr->flow[LLC_FLOW_RKEY];
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY_CONT };
	struct llc_confirm_rkey_cont *m = &msg.confirm_rkey_cont;

	m->left_cnt = f->left;
	f->left -= (uint8_t)other_links(rmb, over, &f->next_slot, m->others, LLC_LINKS_PER_CONT);
	return link_send_llc(over, &msg);
}

int
llc_add_rmb(struct lgr *lgr, uint32_t elem_size)
{
	struct link *over = lgr_pick_link(lgr);
	struct rmb *rmb;
	int err;

	/* One at a time: who waits asks again when this one is through. */
	if (lgr->flow[LLC_FLOW_RKEY].step != LLC_IDLE)
		return 0;
	if (over == NULL || lgr->state != LGR_ACTIVE)
		return -ENOTCONN;
	if (lgr->rmb_cnt >= SMCR_RMBS_PER_GROUP) {
		lgr->eng->ctr.refused_rmbs_max++;
		return -ENOSPC;
	}
	rmb = rmb_new(lgr, elem_size, rmb_next_cnt(lgr, elem_size));
	if (rmb == NULL)
		return -ENOMEM;
	err = send_confirm_rkey(over, rmb);
	if (err < 0) {
		rmb_free(rmb);
		return err;
	}
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_RKEY].rmb = rmb;
	return 0;
}

static void
add_rmb_done(struct lgr *lgr, bool ok)
{
	struct rmb *rmb = lgr->flow[LLC_FLOW_RKEY].rmb;

	llc_done(lgr, LLC_FLOW_RKEY);
	if (ok)
		rmb->state = RMB_CONFIRMED;
	else
		rmb_free(rmb);
	rdv_rmb_ready(lgr, ok);
}

/* The answer to one message of our CONFIRM RKEY; rkey is what it should echo. */
static void
confirm_rkey_answered(struct link *link, bool negative)
{
	struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (negative)
		add_rmb_done(link->lgr, false);
	else if (f->left == 0)
		add_rmb_done(link->lgr, true);
	else if (send_confirm_rkey_cont(link, f->rmb) < 0)
		link_down(link, "CONFIRM RKEY CONTINUATION could not be sent");
	else
		llc_start(link->lgr, LLC_FLOW_RKEY, LLC_WAIT_CONFIRM_RKEY_RSP, link, link->lgr->eng->cfg.llc_ms);
}

static bool
awaits(struct link *link, enum llc_step step)
{
	const struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (f->step == step && f->link == link)
		return true;
	llc_protocol_error(link, "RKEY response that was not asked for");
	return false;
}

void
llc_confirm_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	struct llc_flow *f = &link->lgr->flow[LLC_FLOW_RKEY];

	if (!awaits(link, LLC_WAIT_CONFIRM_RKEY_RSP))
		return;
	if (msg->confirm_rkey.rkey != f->rmb->mr[link->slot]->rkey)
		llc_protocol_error(link, "CONFIRM RKEY response names another RMB");
	else
		confirm_rkey_answered(link, msg->confirm_rkey.negative);
}

void
llc_confirm_rkey_cont_rsp(struct link *link, const struct llc_msg *msg)
{
	if (awaits(link, LLC_WAIT_CONFIRM_RKEY_RSP))
		confirm_rkey_answered(link, msg->confirm_rkey_cont.negative);
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

static unsigned
at_most(unsigned n, unsigned max)
{
	return n < max ? n : max;
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
	lgr->cont_rmb = NULL;
	lgr->cont_left = 0;
	if (rr != NULL) {
		unsigned here = at_most(m->other_cnt, LLC_LINKS_INLINE);

		note_others(lgr, rr, m->others, here);
		lgr->cont_left = (uint8_t)(m->other_cnt - here);
		lgr->cont_rmb = lgr->cont_left > 0 ? rr : NULL;
	}
	(void)link_send_llc(link, &rsp);
}

void
llc_confirm_rkey_cont_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_confirm_rkey_cont *m = &msg->confirm_rkey_cont;
	struct llc_msg rsp = *msg;
	unsigned here = at_most(m->left_cnt, LLC_LINKS_PER_CONT);

	if (lgr->cont_rmb == NULL || m->left_cnt != lgr->cont_left) {
		llc_protocol_error(link, "CONFIRM RKEY CONTINUATION out of sequence");
		return;
	}
	note_others(lgr, lgr->cont_rmb, m->others, here);
	lgr->cont_left -= (uint8_t)here;
	if (lgr->cont_left == 0)
		lgr->cont_rmb = NULL;
	rsp.response = true;
	(void)link_send_llc(link, &rsp);
}

/* -- DELETE RKEY -- */

void
llc_delete_idle_rmb(struct lgr *lgr)
{
	struct link *over = lgr_pick_link(lgr);
	int64_t limit = lgr->eng->now_ns - lgr->eng->cfg.rmb_idle_ms * MS;
	struct llc_msg msg = { .type = LLC_DELETE_RKEY };
	struct rmb *idle = NULL;

	if (over == NULL || lgr->state != LGR_ACTIVE || lgr->flow[LLC_FLOW_RKEY].step != LLC_IDLE)
		return;
	/* The group keeps one RMB. */
	LIST_FOREACH(n, &lgr->rmbs) {
		struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		if (lgr->rmb_cnt > 1 && rmb->state == RMB_CONFIRMED && rmb->used == 0 && rmb->idle_since_ns <= limit)
			idle = rmb;
	}
	if (idle == NULL)
		return;
	msg.delete_rkey.cnt = 1;
	msg.delete_rkey.rkeys[0] = idle->mr[over->slot]->rkey;
	if (link_send_llc(over, &msg) < 0)
		return;
	idle->state = RMB_DELETING;
	llc_start(lgr, LLC_FLOW_RKEY, LLC_WAIT_DELETE_RKEY_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_RKEY].rmb = idle;
}

void
llc_delete_rkey_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct rmb *rmb = lgr->flow[LLC_FLOW_RKEY].rmb;

	if (!awaits(link, LLC_WAIT_DELETE_RKEY_RSP))
		return;
	if (msg->delete_rkey.cnt != 1 || msg->delete_rkey.rkeys[0] != rmb->mr[link->slot]->rkey) {
		llc_protocol_error(link, "DELETE RKEY response names another RMB");
		return;
	}
	llc_done(lgr, LLC_FLOW_RKEY);
	if (msg->delete_rkey.negative)
		rmb->state = RMB_CONFIRMED; /* the peer still holds it: asked again after the idle time */
	else
		rmb_free(rmb);
	/* Connections may have asked for an RMB meanwhile. */
	rdv_rmb_ready(lgr, true);
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
		struct remote_rmb *rr = remote_rmb_find(lgr, link, m->rkeys[i]);

		/* During first contact the first connection holds an element that it has not claimed yet. */
		if (rr == NULL || rr->used > 0 || lgr->state == LGR_FORMING)
			m->error_mask |= (uint8_t)(0x80u >> i);
		else
			remote_rmb_free(lgr, rr);
	}
	m->negative = m->error_mask != 0;
	(void)link_send_llc(link, &rsp);
}

void
llc_rkey_timeout(struct lgr *lgr)
{
	struct link *link = lgr->flow[LLC_FLOW_RKEY].link;

	/* C.7.1: the link over which it was sent has failed. */
	link_down(link, "RKEY exchange without an answer");
	if (lgr->state != LGR_DEAD && lgr->flow[LLC_FLOW_RKEY].step == LLC_WAIT_CONFIRM_RKEY_RSP)
		add_rmb_done(lgr, false);
	else if (lgr->state != LGR_DEAD)
		llc_done(lgr, LLC_FLOW_RKEY);
}
