/* The rival's LLC messages; see rival.h. */
#include <string.h>

#include "fuzz.h"
#include "rival.h"

unsigned
rival_llc_version(const struct rival *r)
{
	return (r->flags & RIVAL_V2) != 0 ? LLC_VERSION_2 : LLC_VERSION;
}

static void
send_msg(struct rival_link *over, const struct llc_msg *msg)
{
	struct rival *r = over->of;
	struct llc_msg m = *msg;
	uint8_t buf[RIVAL_SEND];

	m.little = (r->flags & RIVAL_LITTLE) != 0;
	int len = llc_encode(&m, rival_llc_version(r), buf, sizeof(buf));
	if (len <= 0)
		return;
	rival_twist_llc(r, buf, (size_t)len);
	memcpy(r->last_llc, buf, (size_t)len);
	r->last_llc_len = (size_t)len;
	rival_send(over, buf, (size_t)len);
}

static void
fill_confirm_link(struct rival_link *l, struct llc_confirm_link *m)
{
	struct rnic_info info = rnic_query(l->qp->dev);
	unsigned flags = l->of->flags;

	memcpy(m->mac, info.mac, sizeof(m->mac));
	memcpy(m->gid, info.gid.b, sizeof(m->gid));
	m->qpn = l->qp->qpn;
	m->link_num = l->number;
	m->link_uid = 0x5000u + l->number;
	m->max_links = (flags & RIVAL_LINKS_8) != 0 ? 8 : 2;
	m->max_conns = 255;
	m->no_eyecatcher = (flags & RIVAL_EYE) == 0 && !l->of->arena->cfg.rfc_cursors;
}

/* The i-th key of a list: one that there is, twice, or none. */
static uint32_t
key_of_list(const struct rival_link *l, unsigned i)
{
	return i % 16 == 15 ? 0xbad00000u + i : l->rmb[i % RIVAL_RMBS]->rkey;
}

/* In version 2: our RTokens for the new link; cnt is 0: those that there are, else so many. */
static void
fill_pairs(struct rival_link *over, struct rival_link *nl, struct llc_add_link *m, unsigned cnt)
{
	struct rival *r = over->of;

	m->pair_cnt = (uint8_t)(cnt != 0 ? cnt : over->group->rmbs_named);
	m->pairs = r->list;
	for (unsigned i = 0; i < m->pair_cnt; i++)
		llc_pair_put(r->list, i,
		    &(struct llc_rkey_pair){ .old_rkey = key_of_list(over, i),
		        .new_rkey = key_of_list(nl, i),
		        .new_vaddr = nl->rmb[i % RIVAL_RMBS]->addr });
}

static void
fill_request(const struct rival *r, uint8_t *list, struct llc_request_add_link *m, unsigned cnt)
{
	m->gid_cnt = (uint8_t)(cnt == 0 || cnt > LLC_MAX_GIDS ? RIVAL_DEVS : cnt);
	m->gids = list;
	for (unsigned i = 0; i < m->gid_cnt; i++)
		memcpy(list + (size_t)i * CLC_GID_LEN, rnic_query(r->dev[i % RIVAL_DEVS]).gid.b, CLC_GID_LEN);
}

static void
fill_delete_rkey(struct rival_link *l, struct llc_delete_rkey *m, unsigned how, unsigned cnt)
{
	bool v2 = rival_llc_version(l->of) == LLC_VERSION_2;

	m->cnt = (uint8_t)(v2 && cnt != 0 ? cnt : 1);
	m->rkeys = l->of->list;
	for (unsigned i = 0; i < m->cnt; i++)
		llc_rkey_put(l->of->list, i, key_of_list(l, how + i));
}

static void
fill_add_link(struct rival_link *nl, struct llc_add_link *m)
{
	struct rnic_info info = rnic_query(nl->qp->dev);

	memcpy(m->mac, info.mac, sizeof(m->mac));
	memcpy(m->gid, info.gid.b, sizeof(m->gid));
	m->qpn = nl->qp->qpn;
	m->psn = nl->qp->psn;
	m->link_num = nl->number;
	m->mtu_code = 5;
	m->mpa_port = info.mpa_port;
	m->direct = true;
	memcpy(m->client_gid, info.gid.b, sizeof(m->client_gid));
}

static struct rnic_remote
remote_of(const struct llc_add_link *m)
{
	struct rnic_remote r = { .qpn = m->qpn, .psn = m->psn, .mtu_code = m->mtu_code, .mpa_port = m->mpa_port };

	memcpy(r.gid.b, m->gid, sizeof(r.gid.b));
	memcpy(r.mac, m->mac, sizeof(r.mac));
	return r;
}

static void
fill_cont(struct rival_link *l, struct llc_add_link_cont *m)
{
	struct rival_link *nl = l->group->newest != NULL ? l->group->newest : l;

	m->link_num = nl->number;
	m->left_cnt = (uint8_t)l->group->rmbs_named;
	for (unsigned i = 0; i < l->group->rmbs_named && i < RIVAL_RMBS; i++) {
		m->pairs[i].old_rkey = l->rmb[i]->rkey;
		m->pairs[i].new_rkey = nl->rmb[i]->rkey;
		m->pairs[i].new_vaddr = nl->rmb[i]->addr;
	}
}

static uint8_t
fill_others(struct rival_link *l, struct llc_link_rkey *out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RIVAL_LINKS && n < max; i++) {
		const struct rival_link *o = &l->of->link[i];

		if (!o->used || o == l || o->group != l->group || !o->connected || o->broken)
			continue;
		out[n++] = (struct llc_link_rkey){ o->number, o->rmb[1]->rkey, o->rmb[1]->addr };
	}
	return (uint8_t)n;
}

static uint8_t
next_number(const struct rival_link *l)
{
	uint8_t n = 0;

	for (unsigned i = 0; i < RIVAL_LINKS; i++)
		if (l->of->link[i].used && l->of->link[i].group == l->group && l->of->link[i].number > n)
			n = l->of->link[i].number;
	return (uint8_t)(n + 1);
}

/* A queue pair for the engine's ADD LINK, or for ours. */
static struct rival_link *
new_link(struct rival_link *l, unsigned how, uint8_t number)
{
	struct rival_link *nl = rival_link_new(l->of, l->group, l->role, l->dev + 1 + (how & ANSWER_OTHER_DEV));

	if (nl != NULL)
		nl->number = number;
	return nl;
}

void
rival_llc(struct rival_link *l, enum llc_type type, bool response, unsigned how, unsigned cnt)
{
	struct llc_msg msg = { .type = type, .response = response };
	struct rival_link *nl;

	switch (type) {
	case LLC_CONFIRM_LINK:
		fill_confirm_link(l, &msg.confirm_link);
		break;
	case LLC_ADD_LINK:
		nl = new_link(l, how, next_number(l));
		if (nl == NULL)
			return;
		fill_add_link(nl, &msg.add_link);
		fill_pairs(l, nl, &msg.add_link, cnt);
		msg.add_link.rejected = (how & ANSWER_REJECT) != 0;
		break;
	case LLC_ADD_LINK_CONT:
		fill_cont(l, &msg.add_link_cont);
		break;
	case LLC_DELETE_LINK:
		msg.delete_link.all = (how & ANSWER_REJECT) != 0;
		msg.delete_link.link_num = msg.delete_link.all ? 0 : (uint8_t)(how % 4 == 0 ? l->number : how % 4);
		msg.delete_link.orderly = (how & ANSWER_NEGATIVE) != 0;
		msg.delete_link.reason = LLC_DELETE_OPERATOR;
		break;
	case LLC_CONFIRM_RKEY:
		msg.confirm_rkey.rkey = l->rmb[1]->rkey;
		msg.confirm_rkey.vaddr = l->rmb[1]->addr;
		msg.confirm_rkey.other_cnt = fill_others(l, msg.confirm_rkey.others, LLC_LINKS_INLINE);
		msg.confirm_rkey.negative = (how & ANSWER_NEGATIVE) != 0;
		msg.confirm_rkey.retry = (how & ANSWER_RETRY) != 0;
		l->group->rmbs_named = RIVAL_RMBS;
		break;
	case LLC_CONFIRM_RKEY_CONT:
		msg.confirm_rkey_cont.left_cnt = 1;
		(void)fill_others(l, msg.confirm_rkey_cont.others, 1);
		break;
	case LLC_DELETE_RKEY:
		fill_delete_rkey(l, &msg.delete_rkey, how, cnt);
		break;
	case LLC_REQUEST_ADD_LINK:
		fill_request(l->of, l->of->list, &msg.request_add_link, cnt);
		break;
	case LLC_TEST_LINK:
		memset(msg.test_link.user_data, (int)how, sizeof(msg.test_link.user_data));
		break;
	}
	send_msg(l, &msg);
}

void
rival_llc_start(struct rival_link *l)
{
	if (l->number == 0)
		l->number = next_number(l);
	rival_llc(l, LLC_CONFIRM_LINK, false, 0, 0);
}

/* -- answers -- */

static void
answer_add_link(struct rival_link *over, const struct llc_msg *req, unsigned how)
{
	struct llc_msg rsp = { .type = LLC_ADD_LINK, .response = true, .add_link = req->add_link };
	struct rival_link *nl = NULL;

	if ((how & ANSWER_REJECT) == 0)
		nl = new_link(over, how, req->add_link.link_num);
	if (nl == NULL) {
		rsp.add_link.rejected = true;
		rsp.add_link.reject_reason = LLC_REJECT_NO_ALT_PATH;
	} else {
		nl->remote = remote_of(&req->add_link);
		if ((over->of->flags & RIVAL_CONNECTS_LATE) == 0)
			rival_link_connect(nl);
		fill_add_link(nl, &rsp.add_link);
		fill_pairs(over, nl, &rsp.add_link, 0);
	}
	send_msg(over, &rsp);
}

/* The engine has answered our ADD LINK: its queue pair, then the RTokens. */
static void
go_on_adding(struct rival_link *over, const struct llc_msg *rsp)
{
	struct rival_link *nl = over->group->newest;

	if (rsp->add_link.rejected || nl == NULL)
		return;
	nl->remote = remote_of(&rsp->add_link);
	if ((over->of->flags & RIVAL_CONNECTS_LATE) == 0)
		rival_link_connect(nl);
	if (rival_llc_version(over->of) == LLC_VERSION)
		rival_llc(over, LLC_ADD_LINK_CONT, false, 0, 0);
	else if (nl->connected)
		rival_llc_start(nl);
	else
		nl->confirms = true;
}

static void
answer(struct rival_link *l, struct rival_link *over, const struct llc_msg *req, unsigned how)
{
	struct llc_msg rsp = *req;

	rsp.response = true;
	switch (req->type) {
	case LLC_CONFIRM_LINK:
		l->number = req->confirm_link.link_num;
		fill_confirm_link(l, &rsp.confirm_link);
		break;
	case LLC_ADD_LINK:
		answer_add_link(over, req, how);
		return;
	case LLC_ADD_LINK_CONT:
		fill_cont(over, &rsp.add_link_cont);
		break;
	case LLC_CONFIRM_RKEY:
		rsp.confirm_rkey.negative = (how & ANSWER_NEGATIVE) != 0;
		rsp.confirm_rkey.retry = (how & ANSWER_RETRY) != 0;
		break;
	case LLC_CONFIRM_RKEY_CONT:
		rsp.confirm_rkey_cont.negative = (how & ANSWER_NEGATIVE) != 0;
		break;
	case LLC_DELETE_RKEY:
		rsp.delete_rkey.negative = (how & ANSWER_NEGATIVE) != 0;
		rsp.delete_rkey.error_mask = (how & ANSWER_NEGATIVE) != 0 ? 0x80 : 0;
		rsp.delete_rkey.invalid_cnt = (how & ANSWER_NEGATIVE) != 0;
		break;
	case LLC_DELETE_LINK:
		/* A client only asks: the server's own DELETE LINK follows. */
		rsp.response = over->role == SMCR_SERVER;
		break;
	case LLC_REQUEST_ADD_LINK:
		if ((how & ANSWER_REJECT) == 0) {
			rival_llc(over, LLC_ADD_LINK, false, how & ANSWER_OTHER_DEV, 0);
			return;
		}
		rsp.request_add_link.gid_cnt = 0;
		break;
	case LLC_TEST_LINK:
		break;
	}
	send_msg(over, &rsp);
}

/* The step that a response of the engine allows next. */
static void
go_on(struct rival_link *over, const struct llc_msg *rsp)
{
	if (over->role != SMCR_CLIENT)
		return;
	if (rsp->type == LLC_ADD_LINK)
		go_on_adding(over, rsp);
	else if (rsp->type == LLC_ADD_LINK_CONT && over->group->newest != NULL)
		rival_llc_start(over->group->newest);
}

bool
rival_llc_answer(struct rival_link *l, struct rival_link *over, unsigned how)
{
	uint8_t buf[RIVAL_RECV];
	struct span in = { buf, l->todo[0].len };
	struct llc_msg msg;

	if (l->todo_cnt == 0)
		return false;
	memcpy(buf, l->todo[0].b, in.len);
	l->todo_cnt--;
	memmove(&l->todo[0], &l->todo[1], l->todo_cnt * sizeof(l->todo[0]));
	FUZZ_CHECK(llc_decode(in, rival_llc_version(l->of), &msg) > 0);
	if (msg.response)
		go_on(over, &msg);
	else
		answer(l, over, &msg, how);
	return true;
}
