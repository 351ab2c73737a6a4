/* What fields of messages could say instead; see lie.h. */
#include "tests/scenario/lie.h"

#include <stdio.h>
#include <string.h>

#include "base/span.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"

const char *
lie_name(enum lie_proto proto, const uint8_t *msg, size_t len)
{
	const struct layout *l = layout_of(proto, msg, len);

	return l != NULL ? l->name : "message";
}

void
lie_init(struct lie_memory *m, struct rng *rng, bool v2)
{
	memset(m, 0, sizeof(*m));
	m->rng = rng;
	m->v2 = v2;
}

/* -- the memory -- */

static uint64_t
num_get(const uint8_t *p, size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++)
		v = v << 8 | p[i];
	return v;
}

static void
num_put(uint8_t *p, size_t len, uint64_t v)
{
	for (size_t i = len; i > 0; i--, v >>= 8)
		p[i - 1] = (uint8_t)v;
}

static void
remember_value(struct lie_values *vs, const uint8_t *v, uint8_t len)
{
	for (unsigned i = 0; i < vs->cnt; i++)
		if (memcmp(vs->v[i], v, len) == 0)
			return;
	memcpy(vs->v[vs->next], v, len);
	vs->len = len;
	vs->next = (uint8_t)((vs->next + 1) % LIE_VALUES);
	vs->cnt = vs->cnt < LIE_VALUES ? vs->cnt + 1 : LIE_VALUES;
}

static bool
worth_keeping(const struct field *f)
{
	return f->kind != LK_FLAGS && f->kind != LK_CODE && f->kind != LK_LEN && f->kind != LK_OTHER;
}

void
lie_note(struct lie_memory *m, enum lie_proto proto, const uint8_t *msg, size_t len, bool ours)
{
	const struct layout *l = layout_of(proto, msg, len);
	struct lie_old *o = &m->old[m->old_next];

	if (l == NULL || len > LIE_MSG_MAX)
		return;
	unsigned cnt = layout_fields(l, msg, len);
	for (unsigned i = 0; i < cnt; i++)
		if (worth_keeping(&l->f[i]) && (ours || l->f[i].kind != LK_SECRET))
			remember_value(&m->values[l->f[i].kind], msg + layout_at(l->f[i].off, msg, len), l->f[i].len);
	o->proto = proto;
	o->ours = ours;
	o->len = (uint16_t)len;
	memcpy(o->msg, msg, len);
	for (unsigned i = 0; i < cnt && !ours; i++)
		if (l->f[i].kind == LK_SECRET)
			memset(o->msg + l->f[i].off, 0, l->f[i].len);
	m->old_next = (m->old_next + 1) % LIE_OLD_MAX;
	m->old_cnt = m->old_cnt < LIE_OLD_MAX ? m->old_cnt + 1 : LIE_OLD_MAX;
}

bool
lie_value(struct lie_memory *m, enum lie_kind kind, void *out, size_t len)
{
	const struct lie_values *vs = &m->values[kind];

	if (vs->cnt == 0)
		return false;
	/* Numbers are in network byte order: a shorter one is the end of it. */
	memset(out, 0, len);
	if (len <= vs->len)
		memcpy(out, vs->v[rng_below(m->rng, vs->cnt)] + vs->len - len, len);
	else
		memcpy((uint8_t *)out + len - vs->len, vs->v[rng_below(m->rng, vs->cnt)], vs->len);
	return true;
}

size_t
lie_old(struct lie_memory *m, enum lie_proto proto, uint8_t msg[LIE_MSG_MAX])
{
	for (unsigned tries = 0; tries < 20 && m->old_cnt > 0; tries++) {
		const struct lie_old *o = &m->old[rng_below(m->rng, m->old_cnt)];

		if (o->proto != proto)
			continue;
		memcpy(msg, o->msg, o->len);
		return o->len;
	}
	return 0;
}

size_t
lie_last(struct lie_memory *m, enum lie_proto proto, uint8_t type, uint8_t msg[LIE_MSG_MAX])
{
	for (unsigned i = 0; i < m->old_cnt; i++) {
		const struct lie_old *o = &m->old[(m->old_next + LIE_OLD_MAX - 1 - i) % LIE_OLD_MAX];

		if (!o->ours || o->proto != proto || o->msg[proto == LIE_CLC ? 4 : 0] != type)
			continue;
		memcpy(msg, o->msg, o->len);
		return o->len;
	}
	return 0;
}

size_t
lie_others(struct lie_memory *m, enum lie_proto proto, uint8_t msg[LIE_MSG_MAX], size_t len)
{
	const struct layout *l = layout_of(proto, msg, len);

	for (unsigned tries = 0; tries < 20 && m->old_cnt > 0 && l != NULL; tries++) {
		const struct lie_old *o = &m->old[rng_below(m->rng, m->old_cnt)];

		if (o->ours || o->proto != proto || layout_of(proto, o->msg, o->len) != l)
			continue;
		memcpy(msg, o->msg, o->len);
		return o->len;
	}
	return 0;
}

void
lie_name_peer(uint8_t *msg, size_t len, uint32_t nr)
{
	const struct layout *l = layout_of(LIE_CLC, msg, len);

	for (unsigned i = 0; l != NULL && i < layout_fields(l, msg, len); i++)
		if (l->f[i].kind == LK_PEER_ID)
			num_put(msg + layout_at(l->f[i].off, msg, len), 2, nr);
}

/* -- changes -- */

/* Cursors and addresses are worth moving by what an element or a write has. */
static uint64_t
near(struct rng *r, uint64_t v)
{
	static const uint32_t by[] = { 1, 1, 1, 2, 3, 4, 8, 16, 255, 256, 4096, 16384, 16385, 32768, 65536, 1u << 31 };
	uint32_t d = by[rng_below(r, sizeof(by) / sizeof(by[0]))];

	return rng_below(r, 2) == 0 ? v + d : v - d;
}

static void
number_changed(struct lie_memory *m, const struct field *f, uint8_t *p, size_t len)
{
	uint64_t v = num_get(p, len);
	uint8_t known[FIELD_WIDEST];

	switch (rng_below(m->rng, 8)) {
	case 0:
	case 1:
		v = near(m->rng, v);
		break;
	case 2:
		v = 0;
		break;
	case 3:
		v = UINT64_MAX;
		break;
	case 4:
		v ^= 1ULL << rng_below(m->rng, (uint32_t)(8 * len));
		break;
	case 5:
		v = rng_below(m->rng, 12);
		break;
	default:
		if (!lie_value(m, f->kind, known, len))
			v = rng_u64(m->rng);
		else
			v = num_get(known, len);
		break;
	}
	num_put(p, len, v);
}

static void
bytes_changed(struct lie_memory *m, const struct field *f, uint8_t *p)
{
	uint8_t known[FIELD_WIDEST];

	switch (rng_below(m->rng, 6)) {
	case 0:
		memset(p, 0, f->len);
		break;
	case 1:
		p[rng_below(m->rng, f->len)] ^= (uint8_t)(1u << rng_below(m->rng, 8));
		break;
	case 2:
		for (unsigned i = 0; i < f->len; i++)
			p[i] = (uint8_t)rng_below(m->rng, 256);
		break;
	default:
		if (lie_value(m, f->kind, known, f->len))
			memcpy(p, known, f->len);
		break;
	}
}

static void
field_changed(struct lie_memory *m, const struct field *f, uint8_t *p)
{
	switch (f->kind) {
	case LK_PEER_ID:
	case LK_GID:
	case LK_MAC:
	case LK_SECRET:
	case LK_EID:
	case LK_OTHER:
		bytes_changed(m, f, p);
		break;
	case LK_FLAGS:
		*p ^= (uint8_t)(1u << rng_below(m->rng, 8));
		break;
	case LK_QPN:
	case LK_PSN:
	case LK_RKEY:
	case LK_VADDR:
	case LK_TOKEN:
	case LK_GRANTED:
	case LK_TICKET:
	case LK_LINK:
	case LK_INDEX:
	case LK_COUNT:
	case LK_SEQ:
	case LK_CURSOR:
	case LK_CODE:
	case LK_LEN:
	case LK_PORT:
	case LK_CNT:
		number_changed(m, f, p, f->len);
		break;
	}
}

/* Type and length are what every decoder looks at: less often. */
static const struct field *
pick_field(struct lie_memory *m, const struct layout *l, unsigned cnt)
{
	const struct field *f = &l->f[rng_below(m->rng, cnt)];

	if ((f->kind == LK_LEN || f->kind == LK_CODE) && rng_below(m->rng, 3) != 0)
		f = &l->f[rng_below(m->rng, cnt)];
	return f;
}

/* Says what in text, from byte at on: where the next may go on. */
static int
change(struct lie_memory *m, const struct field *f, uint8_t *p, char text[LIE_TEXT], int at)
{
	size_t num = f->len <= 8 ? f->len : 8;
	uint64_t was = num_get(p, num);

	field_changed(m, f, p);
	if (at >= LIE_TEXT)
		return at;
	return at +
	    snprintf(text + at, (size_t)(LIE_TEXT - at), " %s %llx -> %llx", f->name, (unsigned long long)was,
	        (unsigned long long)num_get(p, num));
}

void
lie_change(struct lie_memory *m, enum lie_proto proto, uint8_t *msg, size_t len, unsigned n, char text[LIE_TEXT])
{
	const struct layout *l = layout_of(proto, msg, len);
	unsigned cnt = l != NULL ? layout_fields(l, msg, len) : 0;
	int at = snprintf(text, LIE_TEXT, "%s:", l != NULL ? l->name : "message");

	for (; n > 0 && cnt > 0; n--) {
		const struct field *f = pick_field(m, l, cnt);
		size_t off = layout_at(f->off, msg, len);

		/* An offset may have been changed before. */
		if (off + f->len <= len)
			at = change(m, f, msg + off, text, at);
	}
	if (cnt == 0 && len > 0)
		msg[rng_below(m->rng, (uint32_t)len)] ^= (uint8_t)(1u << rng_below(m->rng, 8));
}

void
lie_change_one(struct lie_memory *m, enum lie_proto proto, uint8_t *msg, size_t len, unsigned nr, char text[LIE_TEXT])
{
	const struct layout *l = layout_of(proto, msg, len);
	unsigned cnt = l != NULL ? layout_fields(l, msg, len) : 0;
	int at = snprintf(text, LIE_TEXT, "%s:", l != NULL ? l->name : "message");

	if (cnt > 0)
		(void)change(m, &l->f[nr % cnt], msg + layout_at(l->f[nr % cnt].off, msg, len), text, at);
}

/* -- forged messages -- */

static void
fill_known(struct lie_memory *m, const struct layout *l, uint8_t *msg)
{
	for (unsigned i = 0; i < layout_fields(l, msg, l->len); i++)
		if (worth_keeping(&l->f[i]))
			(void)lie_value(m, l->f[i].kind, msg + layout_at(l->f[i].off, msg, l->len), l->f[i].len);
}

static void
clc_ends(const struct layout *l, uint8_t *msg)
{
	static const uint8_t eye[] = { 0xe2, 0xd4, 0xc3, 0xd9 };

	memcpy(msg, eye, sizeof(eye));
	memcpy(msg + l->len - sizeof(eye), eye, sizeof(eye));
	msg[4] = l->type;
	num_put(msg + 5, 2, l->len);
}

/* Version 1. */
static size_t
new_v1(struct lie_memory *m, const struct layout *l, uint8_t *msg)
{
	fill_known(m, l, msg);
	if (l->proto == LIE_CLC) {
		clc_ends(l, msg);
		msg[7] = (uint8_t)(0x10 | (rng_below(m->rng, 2) << 3));
		return l->len;
	}
	msg[0] = l->type;
	msg[1] = LLC_LEN;
	if (l->type != CDC_TYPE)
		msg[3] = (uint8_t)(rng_below(m->rng, 2) << 7 | rng_below(m->rng, 4) << 5);
	else
		msg[24 + rng_below(m->rng, 2)] = (uint8_t)(1u << rng_below(m->rng, 8));
	return LLC_LEN;
}

/* Version 2, with what else has to be right for a message to get anywhere. */
static size_t
new_v2(struct lie_memory *m, const struct layout *l, uint8_t *msg)
{
	if (l->proto == LIE_LINK) {
		fill_known(m, l, msg);
		msg[0] = l->type;
		num_put(msg + 1, 2, l->len);
		msg[3] = (uint8_t)(rng_below(m->rng, 2) << 7 | rng_below(m->rng, 4) << 5);
		const struct list_field *list = layout_list(LIE_LINK, msg, l->len);
		if (list != NULL)
			msg[list->cnt_off + list->cnt_len - 1] = (uint8_t)((l->len - list->off) / list->elem_len);
		return l->len;
	}
	if (l->type == CLC_PROPOSAL)
		num_put(msg + 50, 2, 28);
	fill_known(m, l, msg);
	clc_ends(l, msg);
	msg[7] = (uint8_t)(0x20 | (rng_below(m->rng, 2) << 3));
	if (l->type == CLC_PROPOSAL) {
		msg[7] = 0x20 | CLC_PATH_NONE;
		msg[layout_at(V2_EXT | 0, msg, l->len)] = 1;
		msg[layout_at(V2_EXT | 3, msg, l->len)] = (uint8_t)(rng_below(m->rng, 2) << 4);
		num_put(msg + 50, 2, 28);
	} else if (l->type != CLC_DECLINE) {
		msg[50] = 5;
		msg[105] = (uint8_t)(0x20 | rng_below(m->rng, 2));
		msg[156] = l->type == CLC_CONFIRM ? 2 : msg[156];
	}
	return l->len;
}

size_t
lie_new(struct lie_memory *m, enum lie_proto proto, uint8_t msg[LIE_MSG_MAX])
{
	bool v2 = m->v2 && rng_below(m->rng, 10) != 0;
	const struct layout *l, *all;
	size_t cnt = layouts_all(v2, &all);

	do
		l = &all[rng_below(m->rng, (uint32_t)cnt)];
	while (l->proto != proto);
	memset(msg, 0, LIE_MSG_MAX);
	return v2 ? new_v2(m, l, msg) : new_v1(m, l, msg);
}

size_t
lie_new_llc(struct lie_memory *m, uint8_t type, uint8_t msg[LIE_MSG_MAX])
{
	const struct layout *l = layout_of(LIE_LINK, (uint8_t[CLC_HDR_LEN]){ type }, CLC_HDR_LEN);

	memset(msg, 0, LIE_MSG_MAX);
	return new_v2(m, l, msg);
}

/* -- lists, lengths, byte orders of version 2 -- */

static bool
is_llc_v2(const uint8_t *msg, size_t len)
{
	return len >= 4 && (msg[0] & 0xf0) == 0x20;
}

static void
turn(uint8_t *p)
{
	uint8_t first = p[0];

	p[0] = p[1];
	p[1] = first;
}

void
lie_turn_bytes(uint8_t *msg, size_t len)
{
	const struct list_field *list = layout_list(LIE_LINK, msg, len);

	if (!is_llc_v2(msg, len))
		return;
	turn(msg + 1);
	if (list != NULL && list->cnt_len == 2 && len > list->cnt_off + 1u)
		turn(msg + list->cnt_off);
}

/* One that was there before, a known value, or nonsense. */
static void
fill_elem(struct lie_memory *m, const struct list_field *list, uint8_t *first, size_t had, size_t i)
{
	uint8_t *p = first + i * list->elem_len;
	size_t num = list->kind == LK_RKEY ? LLC_RKEY_LEN : list->elem_len;
	uint32_t how = rng_below(m->rng, 10);

	if (how < 4 && had > 0) {
		memcpy(p, first + rng_below(m->rng, (uint32_t)had) * list->elem_len, list->elem_len);
		return;
	}
	for (unsigned k = 0; k < list->elem_len; k++)
		p[k] = (uint8_t)rng_below(m->rng, 256);
	if (how < 8)
		(void)lie_value(m, list->kind, p, num);
	if (how < 8 && list->elem_len == LLC_PAIR_LEN && list->kind == LK_RKEY) {
		(void)lie_value(m, LK_RKEY, p + 4, 4);
		(void)lie_value(m, LK_VADDR, p + 8, 8);
	}
}

/* What the message says of its length and of the number of elements: mostly the truth. */
static void
tell_list(struct lie_memory *m, enum lie_proto proto, const struct list_field *list, uint8_t *msg, size_t len, size_t n)
{
	size_t said = rng_below(m->rng, 5) == 0 ? near(m->rng, n) : n;
	size_t said_len = rng_below(m->rng, 12) == 0 ? near(m->rng, len) : len;

	num_put(msg + (proto == LIE_CLC ? 5 : 1), 2, said_len);
	num_put(msg + layout_at(list->cnt_off, msg, len), list->cnt_len, said);
}

/* Half of them near what a message may have: 2 links, 8 EIDs and GIDs. */
static size_t
draw_count(struct lie_memory *m, size_t room)
{
	static const uint16_t cnts[] = { 9, 16, 30, 59, 60, 124, 125, 253, 254, 255, 256, 505, 2048 };
	size_t n = rng_below(m->rng, 2) == 0 ? rng_below(m->rng, 11)
	                                     : cnts[rng_below(m->rng, sizeof(cnts) / sizeof(cnts[0]))];

	return n < room ? n : room;
}

size_t
lie_list(struct lie_memory *m, enum lie_proto proto, uint8_t *msg, size_t len, size_t cap)
{
	const struct list_field *list = layout_list(proto, msg, len);
	const size_t eye = proto == LIE_CLC ? 4 : 0;
	size_t at, n, had, new_len;
	uint8_t end[4] = { 0 };

	if (list == NULL)
		return len;
	at = layout_at(list->off, msg, len);
	if (at + eye > len || at + eye > cap)
		return len;
	memcpy(end, msg + len - eye, eye);
	n = draw_count(m, (cap - at - eye) / list->elem_len);
	had = (len - eye - at) / list->elem_len;
	for (size_t i = had < n && rng_below(m->rng, 3) != 0 ? had : 0; i < n; i++)
		fill_elem(m, list, msg + at, had < n ? had : n, i);
	new_len = at + n * list->elem_len + eye;
	if (proto == LIE_LINK && new_len < LLC_LEN) {
		memset(msg + new_len, 0, LLC_LEN - new_len);
		new_len = LLC_LEN;
	}
	memcpy(msg + new_len - eye, end, eye);
	tell_list(m, proto, list, msg, new_len, n);
	return new_len;
}

size_t
lie_stretch(struct lie_memory *m, uint8_t *msg, size_t len, size_t cap)
{
	static const uint16_t lens[] = { 44, 45, 48, 60, 64, 65, 72, 255, 256, 300, 4096, 8190, 8191, 8192, 8193 };
	size_t to = lens[rng_below(m->rng, sizeof(lens) / sizeof(lens[0]))];

	if (!is_llc_v2(msg, len))
		return len;
	if (to > cap)
		to = cap;
	if (to > len)
		memset(msg + len, (int)rng_below(m->rng, 2) * 0xff, to - len);
	num_put(msg + 1, 2, to);
	return to;
}
