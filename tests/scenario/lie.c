/* Fields of messages, and what else they could say; see lie.h. Offsets are those of RFC 7609 A.2 to A.4. */
#include "tests/scenario/lie.h"

#include <stdio.h>
#include <string.h>

#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"

struct field {
	uint8_t off, len;
	enum lie_kind kind;
	const char *name;
};

#define FIELDS_MAX 20

struct layout {
	enum lie_proto proto;
	uint8_t type;
	uint8_t len; /* as the codecs write it */
	const char *name;
	struct field f[FIELDS_MAX];
};

#define CLC_HEAD                                               \
	{ 4, 1, LK_CODE, "type" }, { 5, 2, LK_LEN, "length" }, \
	{                                                      \
		7, 1, LK_FLAGS, "version and flags"            \
	}
#define LLC_HEAD                                               \
	{ 0, 1, LK_CODE, "type" }, { 1, 1, LK_LEN, "length" }, \
	{                                                      \
		3, 1, LK_FLAGS, "flags"                        \
	}
#define CLC_ACCEPT_FIELDS                                                                                           \
	CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },             \
	    { 38, 3, LK_QPN, "QPN" }, { 41, 4, LK_RKEY, "rkey" }, { 45, 1, LK_INDEX, "element" },                   \
	    { 46, 4, LK_TOKEN, "alert token" }, { 50, 1, LK_CODE, "size and MTU" }, { 52, 8, LK_VADDR, "address" }, \
	    { 61, 3, LK_PSN, "PSN" }, { 64, 5, LK_OTHER, "extension" }, { 69, 2, LK_CODE, "version, transports" },  \
	    { 72, 2, LK_PORT, "MPA port" }, { 74, 2, LK_COUNT, "receive depth" },                                   \
	{                                                                                                           \
		76, 8, LK_SECRET, "token"                                                                           \
	}

static const struct layout layouts[] = {
	{ LIE_CLC, CLC_PROPOSAL, 92, "Proposal",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },
	        { 38, 2, LK_LEN, "offset" }, { 52, 5, LK_OTHER, "extension" }, { 57, 1, LK_CODE, "version" },
	        { 58, 1, LK_FLAGS, "transports" }, { 60, 2, LK_PORT, "MPA port" }, { 62, 2, LK_COUNT, "receive depth" },
	        { 64, 8, LK_SECRET, "token" }, { 80, 4, LK_OTHER, "subnet" }, { 84, 1, LK_CODE, "prefix" },
	        { 87, 1, LK_COUNT, "prefixes" } } },
	{ LIE_CLC, CLC_ACCEPT, 96, "Accept", { CLC_ACCEPT_FIELDS } },
	{ LIE_CLC, CLC_CONFIRM, 96, "Confirm", { CLC_ACCEPT_FIELDS } },
	{ LIE_CLC, CLC_DECLINE, 28, "Decline",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 4, LK_CODE, "diagnosis" } } },
	{ LIE_LINK, LLC_CONFIRM_LINK, LLC_LEN, "CONFIRM LINK",
	    { LLC_HEAD, { 4, 6, LK_MAC, "MAC" }, { 10, 16, LK_GID, "GID" }, { 26, 3, LK_QPN, "QPN" },
	        { 29, 1, LK_LINK, "link" }, { 30, 4, LK_OTHER, "user id" }, { 34, 1, LK_COUNT, "most links" } } },
	{ LIE_LINK, LLC_ADD_LINK, LLC_LEN, "ADD LINK",
	    { LLC_HEAD, { 2, 1, LK_CODE, "reason" }, { 4, 6, LK_MAC, "MAC" }, { 12, 16, LK_GID, "GID" },
	        { 28, 3, LK_QPN, "QPN" }, { 31, 1, LK_LINK, "link" }, { 32, 1, LK_CODE, "MTU" },
	        { 33, 3, LK_PSN, "PSN" }, { 36, 2, LK_PORT, "MPA port" } } },
	{ LIE_LINK, LLC_ADD_LINK_CONT, LLC_LEN, "ADD LINK CONTINUATION",
	    { LLC_HEAD, { 4, 1, LK_LINK, "link" }, { 5, 1, LK_COUNT, "count" }, { 8, 4, LK_RKEY, "old rkey" },
	        { 12, 4, LK_RKEY, "new rkey" }, { 16, 8, LK_VADDR, "address" }, { 24, 4, LK_RKEY, "2nd old rkey" },
	        { 28, 4, LK_RKEY, "2nd new rkey" }, { 32, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_DELETE_LINK, LLC_LEN, "DELETE LINK",
	    { LLC_HEAD, { 4, 1, LK_LINK, "link" }, { 5, 4, LK_CODE, "reason" } } },
	{ LIE_LINK, LLC_CONFIRM_RKEY, LLC_LEN, "CONFIRM RKEY",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 4, LK_RKEY, "rkey" }, { 9, 8, LK_VADDR, "address" },
	        { 17, 1, LK_LINK, "link" }, { 18, 4, LK_RKEY, "its rkey" }, { 22, 8, LK_VADDR, "its address" },
	        { 30, 1, LK_LINK, "2nd link" }, { 31, 4, LK_RKEY, "2nd rkey" }, { 35, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_CONFIRM_RKEY_CONT, LLC_LEN, "CONFIRM RKEY CONTINUATION",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 1, LK_LINK, "link" }, { 6, 4, LK_RKEY, "rkey" },
	        { 10, 8, LK_VADDR, "address" }, { 18, 1, LK_LINK, "2nd link" }, { 19, 4, LK_RKEY, "2nd rkey" },
	        { 23, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_DELETE_RKEY, LLC_LEN, "DELETE RKEY",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 1, LK_FLAGS, "mask" }, { 8, 4, LK_RKEY, "rkey" },
	        { 12, 4, LK_RKEY, "2nd rkey" }, { 36, 4, LK_RKEY, "8th rkey" } } },
	{ LIE_LINK, LLC_TEST_LINK, LLC_LEN, "TEST LINK", { LLC_HEAD, { 4, 16, LK_OTHER, "data" } } },
	{ LIE_LINK, CDC_TYPE, CDC_LEN, "CDC",
	    { { 0, 1, LK_CODE, "type" }, { 1, 1, LK_LEN, "length" }, { 2, 2, LK_SEQ, "sequence" },
	        { 4, 4, LK_TOKEN, "alert token" }, { 10, 2, LK_COUNT, "producer wrap" },
	        { 12, 4, LK_CURSOR, "producer" }, { 18, 2, LK_COUNT, "consumer wrap" },
	        { 20, 4, LK_CURSOR, "consumer" }, { 24, 1, LK_FLAGS, "producer flags" },
	        { 25, 1, LK_FLAGS, "connection flags" } } },
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

static const struct layout *
layout_of(enum lie_proto proto, const uint8_t *msg, size_t len)
{
	if (len < CLC_HDR_LEN)
		return NULL;
	uint8_t type = proto == LIE_CLC ? msg[4] : msg[0];
	for (size_t i = 0; i < LAYOUTS; i++)
		if (layouts[i].proto == proto && layouts[i].type == type)
			return &layouts[i];
	return NULL;
}

static unsigned
field_cnt(const struct layout *l, size_t len)
{
	unsigned n = 0;

	while (n < FIELDS_MAX && l->f[n].len > 0 && l->f[n].off + l->f[n].len <= len)
		n++;
	return n;
}

const char *
lie_name(enum lie_proto proto, const uint8_t *msg, size_t len)
{
	const struct layout *l = layout_of(proto, msg, len);

	return l != NULL ? l->name : "message";
}

void
lie_init(struct lie_memory *m, struct rng *rng)
{
	memset(m, 0, sizeof(*m));
	m->rng = rng;
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
	unsigned cnt = field_cnt(l, len);
	for (unsigned i = 0; i < cnt; i++)
		if (worth_keeping(&l->f[i]) && (ours || l->f[i].kind != LK_SECRET))
			remember_value(&m->values[l->f[i].kind], msg + l->f[i].off, l->f[i].len);
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

	for (unsigned i = 0; l != NULL && i < field_cnt(l, len); i++)
		if (l->f[i].kind == LK_PEER_ID)
			num_put(msg + l->f[i].off, 2, nr);
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
	uint8_t known[16];

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
	uint8_t known[16];

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
field_changed(struct lie_memory *m, const struct field *f, uint8_t *msg)
{
	uint8_t *p = msg + f->off;

	switch (f->kind) {
	case LK_PEER_ID:
	case LK_GID:
	case LK_MAC:
	case LK_SECRET:
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
change(struct lie_memory *m, const struct field *f, uint8_t *msg, char text[LIE_TEXT], int at)
{
	size_t num = f->len <= 8 ? f->len : 8;
	uint64_t was = num_get(msg + f->off, num);

	field_changed(m, f, msg);
	if (at >= LIE_TEXT)
		return at;
	return at +
	    snprintf(text + at, (size_t)(LIE_TEXT - at), " %s %llx -> %llx", f->name, (unsigned long long)was,
	        (unsigned long long)num_get(msg + f->off, num));
}

void
lie_change(struct lie_memory *m, enum lie_proto proto, uint8_t *msg, size_t len, unsigned n, char text[LIE_TEXT])
{
	const struct layout *l = layout_of(proto, msg, len);
	unsigned cnt = l != NULL ? field_cnt(l, len) : 0;
	int at = snprintf(text, LIE_TEXT, "%s:", l != NULL ? l->name : "message");

	for (; n > 0 && cnt > 0; n--)
		at = change(m, pick_field(m, l, cnt), msg, text, at);
	if (cnt == 0 && len > 0)
		msg[rng_below(m->rng, (uint32_t)len)] ^= (uint8_t)(1u << rng_below(m->rng, 8));
}

void
lie_change_one(struct lie_memory *m, enum lie_proto proto, uint8_t *msg, size_t len, unsigned nr, char text[LIE_TEXT])
{
	const struct layout *l = layout_of(proto, msg, len);
	unsigned cnt = l != NULL ? field_cnt(l, len) : 0;
	int at = snprintf(text, LIE_TEXT, "%s:", l != NULL ? l->name : "message");

	if (cnt > 0)
		(void)change(m, &l->f[nr % cnt], msg, text, at);
}

size_t
lie_new(struct lie_memory *m, enum lie_proto proto, uint8_t msg[LIE_MSG_MAX])
{
	static const uint8_t eye[] = { 0xe2, 0xd4, 0xc3, 0xd9 };
	const struct layout *l;

	do
		l = &layouts[rng_below(m->rng, LAYOUTS)];
	while (l->proto != proto);
	memset(msg, 0, LIE_MSG_MAX);
	for (unsigned i = 0; i < field_cnt(l, l->len); i++)
		if (worth_keeping(&l->f[i]))
			(void)lie_value(m, l->f[i].kind, msg + l->f[i].off, l->f[i].len);
	if (proto == LIE_CLC) {
		memcpy(msg, eye, sizeof(eye));
		memcpy(msg + l->len - sizeof(eye), eye, sizeof(eye));
		msg[4] = l->type;
		num_put(msg + 5, 2, l->len);
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
