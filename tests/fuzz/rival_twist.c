/* The rival's lies in CLC, LLC and CDC messages: which fields there are, and values of others that fit. */
#include "rival.h"
#include "tests/unit/smcr_help.h"
#include "witness.h"

/* Offsets: RFC 7609 A.2 to A.4 and lib/wire. Zero length ends a table. */
static const struct twist_field proposal[] = { { 4, 1 }, { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 16 }, { 32, 6 }, { 38, 2 },
	{ 52, 4 }, { 56, 1 }, { 57, 1 }, { 58, 1 }, { 60, 2 }, { 62, 2 }, { 64, 8 }, { 80, 4 }, { 84, 1 }, { 87, 1 },
	{ 0, 0 } };
static const struct twist_field accept[] = { { 4, 1 }, { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 16 }, { 32, 6 }, { 38, 3 },
	{ 41, 4 }, { 45, 1 }, { 46, 4 }, { 50, 1 }, { 52, 8 }, { 61, 3 }, { 64, 4 }, { 69, 1 }, { 70, 1 }, { 72, 2 },
	{ 74, 2 }, { 76, 8 }, { 0, 0 } };
static const struct twist_field decline[] = { { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 4 }, { 0, 0 } };
static const struct twist_field confirm_link[] = { { 0, 1 }, { 3, 1 }, { 4, 6 }, { 10, 16 }, { 26, 3 }, { 29, 1 },
	{ 30, 4 }, { 34, 1 }, { 1, 1 }, { 0, 0 } };
static const struct twist_field add_link[] = { { 0, 1 }, { 3, 1 }, { 4, 6 }, { 12, 16 }, { 28, 3 }, { 31, 1 },
	{ 32, 1 }, { 33, 3 }, { 36, 2 }, { 2, 1 }, { 0, 0 } };
static const struct twist_field add_cont[] = { { 0, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 8, 4 }, { 12, 4 }, { 16, 8 },
	{ 24, 4 }, { 28, 4 }, { 32, 8 }, { 0, 0 } };
static const struct twist_field delete_link[] = { { 0, 1 }, { 3, 1 }, { 4, 1 }, { 5, 4 }, { 0, 0 } };
static const struct twist_field confirm_rkey[] = { { 0, 1 }, { 3, 1 }, { 4, 1 }, { 5, 4 }, { 9, 8 }, { 17, 1 },
	{ 18, 4 }, { 22, 8 }, { 30, 1 }, { 31, 4 }, { 35, 8 }, { 0, 0 } };
static const struct twist_field test_link[] = { { 0, 1 }, { 3, 1 }, { 4, 8 }, { 0, 0 } };
static const struct twist_field rkey_cont[] = { { 0, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 6, 4 }, { 10, 8 }, { 18, 1 },
	{ 19, 4 }, { 23, 8 }, { 0, 0 } };
static const struct twist_field delete_rkey[] = { { 0, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 8, 4 }, { 12, 4 },
	{ 16, 4 }, { 0, 0 } };
static const struct twist_field grant[] = { { 0, 1 }, { 2, 1 }, { 4, 4 }, { 8, 4 }, { 12, 8 }, { 20, 1 }, { 21, 1 },
	{ 22, 4 }, { 26, 4 }, { 30, 8 }, { 38, 1 }, { 39, 1 }, { 0, 0 } };
static const struct twist_field open_conn[] = { { 0, 1 }, { 2, 1 }, { 4, 4 }, { 8, 4 }, { 12, 4 }, { 16, 4 }, { 20, 8 },
	{ 28, 1 }, { 29, 1 }, { 30, 1 }, { 32, 4 }, { 0, 0 } };
static const struct twist_field cdc[] = { { 2, 2 }, { 4, 4 }, { 10, 2 }, { 12, 4 }, { 18, 2 }, { 20, 4 }, { 24, 1 },
	{ 25, 1 }, { 0, 0 } };

/* Version 2. A Proposal of it alone has its extension at 80; one of both, 8 bytes behind that at least. */
static const struct twist_field proposal_v2[] = { { 4, 1 }, { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 16 }, { 32, 6 },
	{ 38, 2 }, { 50, 2 }, { 80, 1 }, { 81, 1 }, { 83, 1 }, { 86, 2 }, { 88, 16 }, { 104, 1 }, { 105, 1 },
	{ 106, 2 }, { 120, 1 }, { 152, 1 }, { 87, 1 }, { 91, 1 }, { 0, 0 } };
static const struct twist_field accept_v2[] = { { 4, 1 }, { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 16 }, { 32, 6 },
	{ 38, 3 }, { 41, 4 }, { 45, 1 }, { 46, 4 }, { 50, 1 }, { 52, 8 }, { 61, 3 }, { 64, 1 }, { 95, 1 }, { 104, 1 },
	{ 105, 1 }, { 108, 1 }, { 140, 1 }, { 141, 1 }, { 142, 2 }, { 156, 1 }, { 160, 16 }, { 176, 16 }, { 0, 0 } };
static const struct twist_field decline_v2[] = { { 5, 2 }, { 7, 1 }, { 8, 8 }, { 16, 4 }, { 20, 1 }, { 0, 0 } };
static const struct twist_field confirm_link_v2[] = { { 0, 1 }, { 3, 1 }, { 4, 6 }, { 10, 16 }, { 26, 3 }, { 29, 1 },
	{ 30, 4 }, { 34, 1 }, { 1, 2 }, { 35, 1 }, { 0, 0 } };
static const struct twist_field add_link_v2[] = { { 0, 1 }, { 3, 1 }, { 4, 6 }, { 12, 16 }, { 28, 3 }, { 31, 1 },
	{ 32, 1 }, { 33, 3 }, { 1, 2 }, { 44, 1 }, { 46, 16 }, { 70, 2 }, { 71, 1 }, { 72, 4 }, { 76, 4 }, { 80, 8 },
	{ 88, 4 }, { 92, 4 }, { 96, 8 }, { 0, 0 } };
static const struct twist_field request_add_link[] = { { 0, 1 }, { 3, 1 }, { 1, 2 }, { 24, 1 }, { 28, 16 }, { 44, 16 },
	{ 60, 16 }, { 0, 0 } };
static const struct twist_field delete_rkey_v2[] = { { 0, 1 }, { 3, 1 }, { 1, 2 }, { 4, 1 }, { 5, 1 }, { 8, 4 },
	{ 12, 4 }, { 16, 4 }, { 40, 4 }, { 0, 0 } };

#define V2(type) (0x20 | (type))

static const struct twist_field *
llc_table(uint8_t type)
{
	switch (type) {
	case V2(LLC_CONFIRM_LINK):
		return confirm_link_v2;
	case V2(LLC_ADD_LINK):
		return add_link_v2;
	case V2(LLC_REQUEST_ADD_LINK):
		return request_add_link;
	case V2(LLC_DELETE_RKEY):
		return delete_rkey_v2;
	case V2(LLC_DELETE_LINK):
		return delete_link;
	case V2(LLC_CONFIRM_RKEY):
		return confirm_rkey;
	case LLC_CONFIRM_LINK:
		return confirm_link;
	case LLC_ADD_LINK:
		return add_link;
	case LLC_ADD_LINK_CONT:
		return add_cont;
	case LLC_DELETE_LINK:
		return delete_link;
	case LLC_CONFIRM_RKEY:
		return confirm_rkey;
	case LLC_CONFIRM_RKEY_CONT:
		return rkey_cont;
	case LLC_DELETE_RKEY:
		return delete_rkey;
	case OPEN_GRANT:
		return grant;
	case OPEN_CONN:
		return open_conn;
	case CDC_TYPE:
		return cdc;
	default:
		return test_link;
	}
}

static const struct twist_field *
clc_table(const uint8_t *msg)
{
	bool v2 = msg[7] >> 4 == 2;

	switch (msg[4]) {
	case CLC_PROPOSAL:
		return v2 ? proposal_v2 : proposal;
	case CLC_DECLINE:
		return v2 ? decline_v2 : decline;
	default:
		return v2 ? accept_v2 : accept;
	}
}

static void
lore_accept(struct lore *l, const struct clc_accept *a)
{
	lore_num(l, a->qpn, 3);
	lore_num(l, a->psn, 3);
	lore_num(l, a->rkey, 4);
	lore_num(l, a->alert_token, 4);
	lore_num(l, a->vaddr, 8);
	lore_num(l, a->ext.token, 8);
	lore_num(l, a->ext.mpa_port, 2);
	lore_num(l, a->rmbe_idx, 1);
	lore_bytes(l, a->peer_id, 8);
	lore_bytes(l, a->gid, 16);
	lore_bytes(l, a->mac, 6);
}

static void
lore_engine(struct lore *l, const struct smcr *eng)
{
	struct smcr_conn_info c;
	struct smcr_link_info k;
	struct smcr_group_info g;
	uint32_t pos = 0;

	while (smcr_conn_next(eng, &pos, &c)) {
		lore_num(l, c.id, 4);
		lore_num(l, c.elem_size, 4);
		lore_num(l, c.rx_produced % RIVAL_ELEM, 4);
		lore_num(l, c.tx_sent % RIVAL_ELEM, 4);
	}
	for (pos = 0; smcr_link_next(eng, &pos, &k);) {
		lore_num(l, k.qpn, 3);
		lore_num(l, k.peer_qpn, 3);
		lore_num(l, k.number, 1);
		lore_bytes(l, k.gid.b, 16);
		lore_bytes(l, k.peer_gid.b, 16);
		lore_bytes(l, k.mac, 6);
		lore_bytes(l, k.peer_mac, 6);
	}
	for (pos = 0; smcr_group_next(eng, &pos, &g);)
		lore_bytes(l, g.peer_id, 8);
}

static void
lore_rival(struct lore *l, struct rival *r)
{
	for (unsigned i = 0; i < RIVAL_MIDS; i++)
		if (r->mid[i].has_theirs)
			lore_accept(l, &r->mid[i].theirs);
	for (unsigned i = 0; i < RIVAL_LINKS; i++) {
		const struct rival_link *k = &r->link[i];

		if (!k->used)
			continue;
		lore_num(l, k->qp->qpn, 3);
		lore_num(l, k->rmb[0]->rkey, 4);
		lore_num(l, k->rmb[1]->rkey, 4);
		lore_num(l, k->rmb[0]->addr, 8);
	}
	for (unsigned i = 0; i < r->granted_cnt; i++)
		lore_num(l, r->granted[i].token, 4);
}

static void
lore_witness(struct lore *l, const struct witness *w)
{
	struct clc_msg msg;

	for (size_t off = 0; off < w->accept_len;) {
		int n = clc_decode((struct span){ w->accept + off, w->accept_len - off }, &msg);

		if (n <= 0)
			return;
		if (msg.type == CLC_ACCEPT || msg.type == CLC_CONFIRM)
			lore_accept(l, &msg.accept);
		off += (size_t)n;
	}
}

static void
gather(struct lore *l, void *ctx)
{
	struct rival *r = ctx;

	lore_rival(l, r);
	lore_engine(l, r->arena->eng);
	lore_witness(l, r->arena->witness);
}

void
rival_twist_clc(struct rival *r, uint8_t *msg, size_t len)
{
	twist_apply(&r->twists, clc_table(msg), msg[4], msg, len, gather, r);
}

void
rival_twist_llc(struct rival *r, uint8_t *msg, size_t len)
{
	twist_apply(&r->twists, llc_table(msg[0]), msg[0], msg, len, gather, r);
}
