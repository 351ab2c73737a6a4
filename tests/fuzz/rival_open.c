/* The rival's GRANT and OPEN messages; see rival.h. */
#include <string.h>

#include "fuzz.h"
#include "rival.h"

static void
send_msg(struct rival_link *over, const struct open_msg *msg)
{
	struct rival *r = over->of;
	uint8_t buf[OPEN_LEN];

	FUZZ_CHECK(open_encode(msg, buf, sizeof(buf)) == OPEN_LEN);
	rival_twist_llc(r, buf, sizeof(buf));
	memcpy(r->last_llc, buf, sizeof(buf));
	r->last_llc_len = sizeof(buf);
	rival_send(over, buf, sizeof(buf));
}

/* The element of this slot, as its Accept names it. */
static struct open_elem
elem_of(const struct rival_link *l, unsigned slot)
{
	return (struct open_elem){ .token = RIVAL_TOKEN + slot,
		.rkey = l->rmb[0]->rkey,
		.vaddr = l->rmb[0]->addr,
		.idx = (uint8_t)(slot + 1) };
}

void
rival_grant(struct rival_mid *m, struct rival_link *over, unsigned cnt)
{
	struct open_msg msg = { .type = OPEN_GRANT, .cnt = (uint8_t)cnt };

	for (unsigned i = 0; i < cnt; i++)
		msg.granted[i] = elem_of(over, (m->slot + i) % RIVAL_MIDS);
	send_msg(over, &msg);
}

void
rival_say_open(struct rival_mid *m, struct rival_link *over, unsigned n, unsigned left)
{
	struct rival *r = over->of;

	if (r->granted_cnt == 0)
		return;
	r->opened = r->granted[n % r->granted_cnt];
	r->opened_over = over;
	r->opener = m->slot;
	send_msg(over,
	    &(struct open_msg){ .type = OPEN_CONN,
	        .cnt = (uint8_t)left,
	        .granted_token = r->opened.token,
	        .ticket = RIVAL_TICKET,
	        .own = elem_of(over, m->slot) });
}

/* The engine opens a connection with an element that was granted to it. */
static void
opened(struct rival_link *l, const struct open_msg *msg)
{
	if (msg->granted_token < RIVAL_TOKEN || msg->granted_token - RIVAL_TOKEN >= RIVAL_MIDS)
		return;
	struct rival_mid *m = &l->of->mid[msg->granted_token - RIVAL_TOKEN];
	m->theirs = (struct clc_accept){
		.rkey = msg->own.rkey, .vaddr = msg->own.vaddr, .rmbe_idx = msg->own.idx, .alert_token = msg->own.token
	};
	m->has_theirs = true;
	m->link = l;
}

void
rival_heard_open(struct rival_link *l, struct span in)
{
	struct rival *r = l->of;
	struct open_msg msg;

	if (open_decode(in, &msg) <= 0)
		return;
	if (msg.type == OPEN_CONN)
		opened(l, &msg);
	for (unsigned i = 0; msg.type == OPEN_GRANT && i < msg.cnt; i++) {
		unsigned at = r->granted_cnt < RIVAL_GRANTS ? r->granted_cnt++ : msg.granted[i].idx % RIVAL_GRANTS;

		r->granted[at] = msg.granted[i];
	}
}
