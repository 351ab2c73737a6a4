/* When the liar lies, and how; see liar.h. */
#include "tests/scenario/liar.h"

#include <stdio.h>
#include <string.h>

#include "base/span.h"
#include "base/list.h"
#include "smcr/data/conn.h"
#include "smcr/state/engine.h"
#include "tests/scenario/liar_v2.h"
#include "tests/scenario/session.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"
#include "tests/seeded_rng.h"

/* More of them: more often. */
static const enum lie lies[] = { LIE_FIELDS, LIE_FIELDS, LIE_FIELDS, LIE_FIELDS, LIE_FIELDS, LIE_FIELDS, LIE_FIELDS,
	LIE_FIELDS, LIE_OMIT, LIE_DOUBLE, LIE_SWAP, LIE_INSTEAD, LIE_BEHIND, LIE_BEHIND, LIE_ELSEWHERE, LIE_CUT,
	LIE_MUTE };

static uint32_t
below(struct liar *l, uint32_t n)
{
	return rng_below(&l->rng, n);
}

static bool
chance(struct liar *l, uint32_t per_mille)
{
	return below(l, 1000) < per_mille;
}

static enum lie
draw_lie(struct liar *l)
{
	return l->by_habit ? (enum lie)l->p->habit_lie : lies[below(l, sizeof(lies) / sizeof(lies[0]))];
}

static bool
lies_now(struct liar *l, uint32_t kind)
{
	l->spoken++;
	l->by_habit = l->p->habit != 0 && l->p->habit == kind && l->spoken > l->p->lies_from &&
	    chance(l, l->p->habit_per_mille);
	if (l->by_habit)
		return true;
	if (l->spoken <= l->p->lies_from || l->lied >= l->p->lies_max || !chance(l, l->p->lie_per_mille))
		return false;
	l->lied++;
	return true;
}

/* A few fields; many are hardly ever better than one. */
static unsigned
draw_fields(struct liar *l)
{
	return chance(l, 700) ? 1 : 2 + below(l, 3);
}

/* Fields of a message that is about to be sent. */
static void
change_fields(struct liar *l, enum lie_proto proto, uint8_t *msg, size_t len, char text[LIE_TEXT])
{
	if (l->by_habit && l->p->habit_field > 0)
		lie_change_one(&l->mem, proto, msg, len, l->p->habit_field, text);
	else
		lie_change(&l->mem, proto, msg, len, draw_fields(l), text);
}

/* A forged message, or one at a wrong time. */
static size_t
draw_message(struct liar *l, enum lie_proto proto, uint8_t msg[LIE_MSG_MAX])
{
	char text[LIE_TEXT];
	size_t len = chance(l, 500) ? lie_old(&l->mem, proto, msg) : 0;

	if (len == 0)
		len = lie_new(&l->mem, proto, msg);
	if (chance(l, 400))
		lie_change(&l->mem, proto, msg, len, draw_fields(l), text);
	return len;
}

/* -- links -- */

/* One of the liar's devices. */
static struct rnic_dev *
draw_dev(struct liar *l)
{
	struct host_dev *hd = l->h->dev_cnt > 0 ? &l->h->dev[below(l, l->h->dev_cnt)] : NULL;

	return hd != NULL ? hd->dev : NULL;
}

void
liar_forge(struct liar *l, struct rnic_dev *dev, uint32_t qpn, uint8_t *msg, size_t len, const char *why)
{
	struct sim_forgery f = { .op = RNIC_WR_SEND, .data = msg, .len = len };

	if (l->mute)
		return;
	liar_v2_orders(l, msg, len);
	if (!sim_forge(dev, qpn, &f))
		return;
	world_log(l->w, "liar: %s at qp %06x, %s", lie_name(LIE_LINK, msg, len), qpn, why);
}

/* The same message again and again. */
static void
forge_flood(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t msg[LIE_MSG_MAX];
	size_t len = draw_message(l, LIE_LINK, msg);

	for (uint32_t n = 1 + below(l, 100); n > 0; n--)
		liar_forge(l, dev, qpn, msg, len, "of a flood");
}

/* OPENs or GRANTs like the last one, each with something else in one field or two: of what was granted, for a start. */
static void
forge_opens(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t last[LIE_MSG_MAX], msg[LIE_MSG_MAX], type = chance(l, 700) ? OPEN_CONN : OPEN_GRANT;
	size_t len = lie_last(&l->mem, LIE_LINK, type, last);
	char text[LIE_TEXT];

	for (uint32_t n = 1 + below(l, 100); n > 0 && len > 0; n--) {
		memcpy(msg, last, len);
		if (type == OPEN_CONN)
			(void)lie_value(&l->mem, LK_GRANTED, msg + 4, 4);
		if (chance(l, 500))
			lie_change(&l->mem, LIE_LINK, msg, len, draw_fields(l), text);
		liar_forge(l, dev, qpn, msg, len, "of many");
	}
	l->mute = l->mute || chance(l, 50); /* OPEN, then silence */
}

static void
forge_something(struct liar *l, struct rnic_dev *dev, uint32_t qpn, const char *why)
{
	uint8_t msg[LIE_MSG_MAX];
	size_t len = draw_message(l, LIE_LINK, msg);

	liar_forge(l, dev, qpn, msg, len, why);
}

/* Into memory that the liar knows of, or near it. */
static void
forge_write(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t data[64], v[8];
	struct sim_forgery f = { .op = RNIC_WR_WRITE, .data = data, .len = 1 + below(l, sizeof(data)) };

	if (l->mute || !lie_value(&l->mem, LK_RKEY, v, 4))
		return;
	f.rkey = be32_get(v);
	if (lie_value(&l->mem, LK_VADDR, v, 8))
		f.raddr = be64_get(v) + (chance(l, 500) ? below(l, 1 << 18) : 0) - (chance(l, 100) ? 1 : 0);
	memset(data, 0xee, sizeof(data));
	if (sim_forge(dev, qpn, &f))
		world_log(l->w, "liar: write of %zu bytes at qp %06x", f.len, qpn);
}

static void
trouble_fire(struct timer *t)
{
	struct liar *l = CONTAINER_OF(t, struct liar, trouble);

	for (unsigned i = 0; i < l->h->dev_cnt && !l->gone; i++)
		if (l->h->dev[i].dev == l->trouble_dev && l->trouble_dev != NULL) {
			world_log(l->w, "liar: breaks qp %06x", l->trouble_qpn);
			(void)sim_break_qp(l->trouble_dev, l->trouble_qpn, (enum sim_cut)below(l, 3));
		}
}

/* A lie is often believed only when something else happens soon. */
static void
maybe_trouble(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	if (timer_armed(&l->trouble) || !chance(l, 200))
		return;
	l->trouble_dev = dev;
	l->trouble_qpn = qpn;
	world_arm(l->w, &l->trouble, l->w->now_ns + below(l, 3000) * US);
}

static void
resend_kept(struct liar *l, struct rnic_dev *dev)
{
	if (!l->has_kept)
		return;
	l->has_kept = false;
	liar_forge(l, dev, l->kept_qpn, l->kept, l->kept_len, "late");
}

static bool
keep(struct liar *l, const struct sim_forgery *f)
{
	if (l->has_kept || f->len > sizeof(l->kept))
		return true;
	l->has_kept = true;
	l->kept_qpn = f->qpn;
	l->kept_len = f->len;
	memcpy(l->kept, f->data, f->len);
	return false;
}

/* False: the message itself does not go. */
static bool
send_lie(struct liar *l, struct sim_forgery *f)
{
	char text[LIE_TEXT];
	uint8_t msg[LIE_MSG_MAX];
	uint32_t qpn;

	if (liar_v2_draws(l, LIE_LINK, f->data, f->len))
		return liar_v2_says(l, f);
	switch (draw_lie(l)) {
	case LIE_FIELDS:
		change_fields(l, LIE_LINK, f->data, f->len, text);
		world_log(l->w, "liar: qp %06x %s", f->qpn, text);
		return true;
	case LIE_OMIT:
		world_log(l->w, "liar: qp %06x leaves out %s", f->qpn, lie_name(LIE_LINK, f->data, f->len));
		return false;
	case LIE_DOUBLE:
		liar_forge(l, f->from, f->qpn, f->data, f->len, "doubled");
		return true;
	case LIE_SWAP:
		world_log(l->w, "liar: qp %06x keeps %s", f->qpn, lie_name(LIE_LINK, f->data, f->len));
		return keep(l, f);
	case LIE_INSTEAD:
		forge_something(l, f->from, f->qpn, "instead");
		return false;
	case LIE_BEHIND:
		/* In front of it, to be exact: it is queued when this returns. */
		forge_something(l, f->from, f->qpn, "beside");
		return true;
	case LIE_ELSEWHERE:
		memcpy(msg, f->data, f->len < sizeof(msg) ? f->len : sizeof(msg));
		if (sim_nth_qp_of(f->from, below(l, 16), &qpn) && qpn != f->qpn)
			liar_forge(l, f->from, qpn, msg, f->len < sizeof(msg) ? f->len : sizeof(msg), "elsewhere");
		return false;
	case LIE_CUT:
		f->len = chance(l, 800) ? below(l, (uint32_t)f->len) : f->len + 1 + below(l, 40);
		if (f->len > f->cap)
			f->len = f->cap;
		world_log(l->w, "liar: qp %06x message of %zu bytes", f->qpn, f->len);
		return true;
	case LIE_MUTE:
		l->mute = chance(l, 200);
		world_log(l->w, "liar: leaves out %s", l->mute ? "all from now on" : "one");
		return false;
	case LIE_CNT:
		break;
	}
	return true;
}

static bool
write_lie(struct liar *l, struct sim_forgery *f)
{
	uint8_t v[8];

	world_log(l->w, "liar: qp %06x another write", f->qpn);
	switch (below(l, 6)) {
	case 0:
		return false;
	case 1:
		if (lie_value(&l->mem, LK_VADDR, v, 8))
			f->raddr = be64_get(v);
		return true;
	case 2:
		if (lie_value(&l->mem, LK_RKEY, v, 4))
			f->rkey = be32_get(v);
		return true;
	case 3:
		f->raddr += chance(l, 500) ? below(l, 1 << 17) : -(uint64_t)below(l, 1 << 17);
		return true;
	case 4:
		f->len = 1 + below(l, (uint32_t)f->len);
		return true;
	default:
		f->data[below(l, (uint32_t)f->len)] ^= 0xff;
		return true;
	}
}

static bool
is_mine(const struct liar *l, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < l->h->dev_cnt; i++)
		if (dev != NULL && l->h->dev[i].dev == dev)
			return true;
	return false;
}

/* The liar may hear another message than was sent. */
static bool
misheard(struct liar *l, struct sim_forgery *f)
{
	char text[LIE_TEXT];

	if (l->spoken < l->p->lies_from || l->lied >= l->p->lies_max || !chance(l, l->p->mishear_per_mille))
		return true;
	l->lied++;
	if (chance(l, 200))
		return false;
	lie_change(&l->mem, LIE_LINK, f->data, f->len, draw_fields(l), text);
	world_log(l->w, "liar: hears %s", text);
	return true;
}

bool
liar_tampers(struct liar *l, struct sim_forgery *f)
{
	bool mine = is_mine(l, f->from), heard = is_mine(l, f->to), goes = true;

	if (l->gone)
		return true;
	if (f->op == RNIC_WR_SEND)
		lie_note(&l->mem, LIE_LINK, f->data, f->len, mine || heard);
	if (!mine)
		return !heard || f->op != RNIC_WR_SEND || misheard(l, f);
	if (l->mute)
		return false;
	if (lies_now(l,
	        f->op != RNIC_WR_SEND || f->len == 0 ? 0
	            : f->data[0] == CDC_TYPE         ? LIAR_HABIT_CDC
	                                             : LIAR_HABIT_LLC(f->data[0]))) {
		goes = f->op == RNIC_WR_SEND ? send_lie(l, f) : write_lie(l, f);
		maybe_trouble(l, f->from, f->qpn);
	} else {
		resend_kept(l, f->from);
	}
	if (goes && f->op == RNIC_WR_SEND)
		liar_v2_orders(l, f->data, f->len);
	return goes;
}

/* -- TCP connections -- */

/* A message that begins well and has more to come than ever comes. */
static size_t
endless(struct liar *l, uint8_t *buf, size_t cap)
{
	static const uint8_t eye[] = { 0xe2, 0xd4, 0xc3, 0xd9 };
	static const uint16_t lens[] = { 28, 44, 68, 96, 228, 2048, 2049, 65535 };
	uint16_t total = lens[below(l, sizeof(lens) / sizeof(lens[0]))];
	size_t len = CLC_HDR_LEN + below(l, chance(l, 500) ? 60 : 1500);

	if (len > cap)
		len = cap;
	if (len < CLC_HDR_LEN)
		return 0;
	memset(buf, 0x5a, len);
	memcpy(buf, eye, sizeof(eye));
	buf[4] = (uint8_t)(1 + below(l, 5));
	buf[5] = (uint8_t)(total >> 8);
	buf[6] = (uint8_t)total;
	buf[7] = (uint8_t)(below(l, 3) << 4 | below(l, 16));
	world_log(l->w, "liar: %zu bytes of a CLC message of %u", len, total);
	return len;
}

/* Something behind a message: a whole one, or one that never ends. */
static size_t
clc_behind(struct liar *l, uint8_t *buf, size_t cap)
{
	uint8_t msg[LIE_MSG_MAX];

	if (chance(l, 400))
		return endless(l, buf, cap);
	size_t len = draw_message(l, LIE_CLC, msg);
	if (len > cap)
		return 0;
	memcpy(buf, msg, len);
	world_log(l->w, "liar: %s on a middle", lie_name(LIE_CLC, msg, len));
	return len;
}

static enum liar_end
draw_end(struct liar *l)
{
	static const enum liar_end ends[] = { LIAR_HUSH, LIAR_HUSH, LIAR_FIN, LIAR_RST };

	return ends[below(l, 4)];
}

static size_t
clc_lie(struct liar *l, uint8_t *buf, size_t len, size_t cap, enum liar_end *end)
{
	char text[LIE_TEXT];
	struct rnic_dev *dev = draw_dev(l);
	uint32_t qpn;

	if (dev != NULL && sim_nth_qp_of(dev, below(l, 16), &qpn))
		maybe_trouble(l, dev, qpn);
	if (liar_v2_draws(l, LIE_CLC, buf, len))
		return liar_v2_clc(l, buf, len, cap);
	switch (draw_lie(l)) {
	case LIE_FIELDS:
		change_fields(l, LIE_CLC, buf, len, text);
		world_log(l->w, "liar: %s", text);
		return len;
	case LIE_OMIT:
		world_log(l->w, "liar: leaves out %s", lie_name(LIE_CLC, buf, len));
		return 0;
	case LIE_DOUBLE:
		if (2 * len > cap)
			return len;
		memcpy(buf + len, buf, len);
		return 2 * len;
	case LIE_INSTEAD:
	case LIE_ELSEWHERE:
		return clc_behind(l, buf, cap);
	case LIE_SWAP:
	case LIE_BEHIND:
		return len + clc_behind(l, buf + len, cap - len);
	case LIE_CUT:
		len = below(l, (uint32_t)len);
		*end = draw_end(l);
		world_log(l->w, "liar: %zu bytes of a message, then end %d", len, (int)*end);
		return len;
	case LIE_MUTE:
		*end = draw_end(l);
		world_log(l->w, "liar: a message, then end %d", (int)*end);
		return len;
	case LIE_CNT:
		break;
	}
	return len;
}

/* A message of another host to an honest one. */
static size_t
pose(struct liar *l, uint8_t *buf, size_t len, size_t cap)
{
	size_t other = cap >= LIE_MSG_MAX ? lie_others(&l->mem, LIE_CLC, buf, len) : 0;

	if (other > 0)
		world_log(l->w, "liar: %s of another host", lie_name(LIE_CLC, buf, other));
	return other > 0 ? other : len;
}

size_t
liar_says(struct liar *l, uint32_t flow, uint8_t *buf, size_t len, size_t cap, enum liar_end *end)
{
	*end = LIAR_GO_ON;
	if (l->p->liar_ids != 0)
		lie_name_peer(buf, len, flow);
	lie_note(&l->mem, LIE_CLC, buf, len, true);
	if (l->p->pose_per_mille > 0 && chance(l, l->p->pose_per_mille))
		return pose(l, buf, len, cap);
	return lies_now(l, len > 4 ? LIAR_HABIT_CLC(buf[4]) : 0) ? clc_lie(l, buf, len, cap, end) : len;
}

void
liar_hears(struct liar *l, uint8_t *buf, size_t len)
{
	char text[LIE_TEXT];

	lie_note(&l->mem, LIE_CLC, buf, len, true);
	if (l->gone || l->spoken < l->p->lies_from || l->lied >= l->p->lies_max || !chance(l, l->p->mishear_per_mille))
		return;
	l->lied++;
	lie_change(&l->mem, LIE_CLC, buf, len, draw_fields(l), text);
	world_log(l->w, "liar: hears %s", text);
}

void
liar_overhears(struct liar *l, const uint8_t *buf, size_t len)
{
	lie_note(&l->mem, LIE_CLC, buf, len, false);
}

/* -- what it does of its own accord -- */

static struct session *
draw_session(struct liar *l)
{
	uint32_t cnt = 0;

	LIST_FOREACH(i, &l->h->sessions)
		cnt++;
	uint32_t n = cnt > 0 ? below(l, cnt) : 0;
	LIST_FOREACH(i, &l->h->sessions)
		if (n-- == 0)
			return CONTAINER_OF(i, struct session, node);
	return NULL;
}

/* Ends one of its connections, in one of several ways, or the way it should be ended. */
static void
end_session(struct liar *l)
{
	struct session *s = draw_session(l);

	if (s == NULL || s->mode == SESSION_DEAD || s->mode == SESSION_CONNECT)
		return;
	world_log(l->w, "liar: ends flow %u", s->f->nr);
	if (s->conn != NULL && chance(l, 500)) {
		smcr_set_now(l->h->eng, l->w->now_ns);
		smcr_abort(s->conn, SMCR_R_APP_RESET);
		host_wake(l->h);
	} else {
		session_cut(s, chance(l, 500));
	}
}

/* CLC messages of a connection past its rendezvous. */
static void
talk_on_middle(struct liar *l)
{
	struct session *s = draw_session(l);
	uint8_t buf[2048];

	if (s == NULL || s->mid == NULL || s->hushed || stcp_state(s->mid) != STCP_OPEN || stcp_is_shut(s->mid))
		return;
	size_t len = clc_behind(l, buf, sizeof(buf));
	(void)stcp_send(s->mid, buf, len, false);
}

/* Acts of the operator of the liar's host. */
static void
rearrange(struct liar *l)
{
	struct smcr_link_info li;
	uint32_t pos = 0;

	smcr_set_now(l->h->eng, l->w->now_ns);
	if (chance(l, 500))
		(void)smcr_rebalance(l->h->eng, 0);
	else if (smcr_link_next(l->h->eng, &pos, &li))
		(void)smcr_link_delete(l->h->eng, li.group_id, li.number);
	host_wake(l->h);
}

static void
act(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	if (l->p->af_smc >= 2 && chance(l, 300)) {
		liar_v2_acts(l, dev, qpn);
		return;
	}
	switch (below(l, l->p->opens >= 100 ? 16 : 14)) {
	case 0:
	case 1:
	case 2:
	case 3:
		forge_something(l, dev, qpn, "unasked");
		break;
	case 4:
		forge_write(l, dev, qpn);
		break;
	case 5:
		(void)sim_break_qp(dev, qpn, (enum sim_cut)below(l, 3));
		break;
	case 6:
	case 7:
		end_session(l);
		break;
	case 8:
		talk_on_middle(l);
		break;
	case 9:
		rearrange(l);
		break;
	case 10:
		sim_port(dev, rnic_query(dev).port == RNIC_PORT_UP ? RNIC_PORT_DOWN : RNIC_PORT_UP);
		break;
	case 11:
		forge_flood(l, dev, qpn);
		break;
	case 12:
		if (chance(l, 300))
			host_restart(l->h);
		else
			host_stall(l->h, l->w->now_ns + below(l, 1000) * MS);
		break;
	default:
		forge_opens(l, dev, qpn);
		break;
	}
}

static void
act_fire(struct timer *t)
{
	struct liar *l = CONTAINER_OF(t, struct liar, act);
	struct rnic_dev *dev = draw_dev(l);
	uint32_t qpn;

	if (l->gone || l->lied >= l->p->lies_max)
		return;
	world_arm(l->w, t, l->w->now_ns + (1 + below(l, 2 * l->p->act_us)) * US);
	if (dev == NULL || l->spoken < l->p->lies_from)
		return;
	l->lied++;
	if (sim_nth_qp_of(dev, below(l, 16), &qpn))
		act(l, dev, qpn);
	else if (chance(l, 300))
		end_session(l);
}

/* -- start and end -- */

void
liar_start(struct liar *l, struct world *w, const struct plan *p, struct host *h)
{
	*l = (struct liar){ .w = w, .p = p, .h = h };
	rng_init_seeded(&l->rng, plan_mix(p->seed ^ 0x6c696172));
	lie_init(&l->mem, &l->rng, p->af_smc >= 2);
	world_timer_init(w, &l->act, act_fire);
	world_timer_init(w, &l->trouble, trouble_fire);
	if (p->act_us > 0)
		world_arm(w, &l->act, w->now_ns + p->act_us * US);
}

void
liar_stop(struct liar *l)
{
	world_timer_fini(l->w, &l->act);
	world_timer_fini(l->w, &l->trouble);
}

void
liar_falls_silent(struct liar *l, int64_t until_ns)
{
	world_log(l->w, "liar: falls silent");
	l->mute = true;
	host_stall(l->h, until_ns);
}

void
liar_ends(struct liar *l)
{
	world_log(l->w, "liar: ends");
	l->gone = true;
	host_end(l->h);
}
