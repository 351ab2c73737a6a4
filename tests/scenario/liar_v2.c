/* The liar's part of version 2; see liar_v2.h. */
#include "tests/scenario/liar_v2.h"

#include <string.h>

#include "base/span.h"
#include "wire/clc.h"
#include "wire/llc.h"

#define V2(type) (0x20 | (type))
#define KEYS_AT 8 /* in DELETE RKEY */

static uint32_t
below(struct liar *l, uint32_t n)
{
	return rng_below(&l->rng, n);
}

bool
liar_v2_draws(struct liar *l, enum lie_proto proto, const uint8_t *msg, size_t len)
{
	if (l->p->af_smc < 2 || len == 0)
		return false;
	if (proto == LIE_CLC ? layout_list(proto, msg, len) == NULL : (msg[0] & 0xf0) != V2(0))
		return false;
	return l->by_habit ? l->p->habit_v2 != LIE_V2_NONE : below(l, 4) == 0;
}

void
liar_v2_orders(struct liar *l, uint8_t *msg, size_t len)
{
	if (l->p->liar_order == LIAR_ORDER_ENGINES || len < LLC_LEN)
		return;
	if (l->p->liar_order == LIAR_LITTLE ? be16_get(msg + 1) == len : below(l, 2) == 0)
		lie_turn_bytes(msg, len);
}

bool
liar_v2_says(struct liar *l, struct sim_forgery *f)
{
	uint8_t msg[LIE_LONG_MAX];
	enum lie_v2 what = l->by_habit ? (enum lie_v2)l->p->habit_v2 : (enum lie_v2)(1 + below(l, LIE_V2_CNT - 1));
	size_t len = f->len;

	if (len > sizeof(msg))
		return true;
	memcpy(msg, f->data, len);
	if (what == LIE_V2_LIST)
		len = lie_list(&l->mem, LIE_LINK, msg, len, sizeof(msg));
	if (what == LIE_V2_STRETCH || (what == LIE_V2_LIST && len == f->len))
		len = lie_stretch(&l->mem, msg, len, sizeof(msg));
	else if (what == LIE_V2_TURN)
		lie_turn_bytes(msg, len);
	liar_forge(l, f->from, f->qpn, msg, len, "of another length or order");
	return false;
}

size_t
liar_v2_clc(struct liar *l, uint8_t *buf, size_t len, size_t cap)
{
	size_t most = below(l, 4) == 0 || cap < CLC_MAX_LEN ? cap : CLC_MAX_LEN;
	size_t new_len = lie_list(&l->mem, LIE_CLC, buf, len, most);

	world_log(l->w, "liar: %s of %zu bytes, not %zu", lie_name(LIE_CLC, buf, new_len), new_len, len);
	return new_len;
}

/* -- sequences -- */

/* Each with other ports. */
static void
ask_for_links(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t msg[LIE_LONG_MAX];

	for (uint32_t n = 1 + below(l, 100); n > 0; n--) {
		size_t len = lie_new_llc(&l->mem, V2(LLC_REQUEST_ADD_LINK), msg);

		msg[3] = 0;
		if (below(l, 3) == 0)
			len = lie_list(&l->mem, LIE_LINK, msg, len, sizeof(msg));
		liar_forge(l, dev, qpn, msg, len, "of a flood");
	}
}

/* A key of the sequence: mostly one of its own, else one that is known. */
static uint32_t
draw_key(struct liar *l, uint32_t base, uint32_t cnt)
{
	uint8_t known[LLC_RKEY_LEN];

	if (below(l, 20) == 0 && lie_value(&l->mem, LK_RKEY, known, sizeof(known)))
		return be32_get(known);
	return base + below(l, cnt);
}

static void
delete_keys(struct liar *l, struct rnic_dev *dev, uint32_t qpn, uint32_t base, uint32_t cnt)
{
	static const uint8_t cnts[] = { 1, 8, 9, 16, 128, 254, 255 };
	uint8_t msg[KEYS_AT + UINT8_MAX * LLC_RKEY_LEN] = { V2(LLC_DELETE_RKEY) };
	uint8_t keys = cnts[below(l, sizeof(cnts))];
	size_t len = KEYS_AT + (size_t)keys * LLC_RKEY_LEN;

	if (len < LLC_LEN)
		len = LLC_LEN;
	be16_put(msg + 1, (uint16_t)len);
	msg[4] = keys;
	for (unsigned i = 0; i < keys; i++)
		llc_rkey_put(msg + KEYS_AT, i, draw_key(l, base, cnt));
	liar_forge(l, dev, qpn, msg, len, "of a sequence");
}

/* RMBs that come, up to more than a group may have, and go, all at once and more often than they came. */
static void
come_and_go(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	static const uint16_t cnts[] = { 1, 2, 8, 40, 254, 255, 256, 300 };
	uint32_t base = (uint32_t)rng_u64(&l->rng), cnt = cnts[below(l, sizeof(cnts) / sizeof(cnts[0]))];
	uint8_t msg[LIE_MSG_MAX];

	for (uint32_t i = 0; i < cnt; i++) {
		size_t len = lie_new_llc(&l->mem, V2(LLC_CONFIRM_RKEY), msg);

		msg[3] = 0;
		msg[4] = (uint8_t)below(l, 3);
		be32_put(msg + 5, base + i);
		liar_forge(l, dev, qpn, msg, len, "of a sequence");
	}
	for (uint32_t n = below(l, 4); n > 0; n--)
		delete_keys(l, dev, qpn, base, cnt);
}

static const uint8_t llc_types[] = { LLC_CONFIRM_LINK, LLC_ADD_LINK, LLC_DELETE_LINK, LLC_REQUEST_ADD_LINK,
	LLC_CONFIRM_RKEY, LLC_TEST_LINK, LLC_DELETE_RKEY };

static void
answer_unasked(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t msg[LIE_MSG_MAX];

	for (uint32_t n = 1 + below(l, 7); n > 0; n--) {
		size_t len = lie_new_llc(&l->mem, V2(llc_types[below(l, sizeof(llc_types))]), msg);

		msg[3] |= 0x80;
		liar_forge(l, dev, qpn, msg, len, "unasked");
	}
}

/* Links are offered and confirmed, as if there were any. */
static void
offer_links(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t msg[LIE_LONG_MAX];
	char text[LIE_TEXT];
	uint8_t number = (uint8_t)below(l, 256);

	for (uint32_t n = 1 + below(l, 12); n > 0; n--) {
		size_t len = lie_new_llc(&l->mem, V2(LLC_ADD_LINK), msg);

		msg[3] = below(l, 8) == 0 ? 0x80 : 0;
		msg[31] = number;
		msg[32] = 5;
		if (below(l, 2) == 0)
			len = lie_list(&l->mem, LIE_LINK, msg, len, sizeof(msg));
		if (below(l, 4) == 0)
			lie_change(&l->mem, LIE_LINK, msg, len, 1, text);
		liar_forge(l, dev, qpn, msg, len, "of a sequence");
		number = (uint8_t)(number + below(l, 2));
	}
	size_t len = lie_new_llc(&l->mem, V2(LLC_CONFIRM_LINK), msg);
	msg[3] = 0x03;
	msg[29] = number;
	liar_forge(l, dev, qpn, msg, len, "of a sequence");
}

/* One of each type, or only of one, of any length. */
static void
speak_at_length(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	uint8_t msg[LIE_LONG_MAX], type = llc_types[below(l, sizeof(llc_types))];
	bool same = below(l, 2) == 0;

	for (uint32_t n = 1 + below(l, 60); n > 0; n--) {
		if (!same)
			type = llc_types[n % sizeof(llc_types)];
		size_t len = lie_new_llc(&l->mem, V2(type), msg);

		len = below(l, 2) == 0 ? lie_list(&l->mem, LIE_LINK, msg, len, sizeof(msg))
		                       : lie_stretch(&l->mem, msg, len, sizeof(msg));
		liar_forge(l, dev, qpn, msg, len, "of a sequence");
	}
}

void
liar_v2_acts(struct liar *l, struct rnic_dev *dev, uint32_t qpn)
{
	static void (*const acts[])(struct liar *, struct rnic_dev *, uint32_t) = { ask_for_links, come_and_go,
		come_and_go, answer_unasked, offer_links, speak_at_length };

	acts[below(l, sizeof(acts) / sizeof(acts[0]))](l, dev, qpn);
}
