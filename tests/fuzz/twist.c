/* See twist.h. */
#include "twist.h"

#include <string.h>

#include "base/span.h"

void
lore_bytes(struct lore *l, const void *p, unsigned len)
{
	if (len == l->len && l->cnt < LORE_MAX)
		memcpy(l->v[l->cnt++], p, len);
}

void
lore_num(struct lore *l, uint64_t n, unsigned len)
{
	uint8_t b[8];

	be64_put(b, n);
	lore_bytes(l, b + 8 - len, len);
}

static void
add(uint8_t *p, unsigned len, unsigned n)
{
	while (len-- > 0) {
		n += p[len];
		p[len] = (uint8_t)n;
		n >>= 8;
	}
}

static void
subtract(uint8_t *p, unsigned len, unsigned n)
{
	for (unsigned i = 0; i < len; i++)
		p[i] = (uint8_t)~p[i];
	add(p, len, n);
	for (unsigned i = 0; i < len; i++)
		p[i] = (uint8_t)~p[i];
}

static void
lie(struct twist t, const struct lore *l, uint8_t *p, const uint8_t *old, unsigned len)
{
	switch (t.source % 8) {
	case 0:
		add(p, len, 1 + t.value / 16);
		break;
	case 1:
		subtract(p, len, 1 + t.value / 16);
		break;
	case 2:
		memset(p, 0, len);
		break;
	case 3:
		memset(p, 0xff, len);
		break;
	case 4:
		memset(p, 0, len);
		p[len - 1] = t.value;
		break;
	case 5:
		if (l->cnt > 0)
			memcpy(p, l->v[t.value % l->cnt], len);
		break;
	case 6:
		if (old != NULL)
			memcpy(p, old, len);
		break;
	default:
		p[t.value / 8 % len] ^= (uint8_t)(1u << t.value % 8);
		break;
	}
}

static unsigned
table_len(const struct twist_field *table)
{
	unsigned n = 0;

	while (table[n].len != 0)
		n++;
	return n;
}

void
twist_add(struct twists *tw, struct twist t)
{
	if (tw->cnt < TWISTS_MAX)
		tw->list[tw->cnt++] = t;
}

void
twist_apply(struct twists *tw, const struct twist_field *table, unsigned type, uint8_t *msg, size_t len,
    void (*gather)(struct lore *, void *), void *ctx)
{
	uint8_t *old = tw->old[type % 8], was[TWIST_OLD] = { 0 };

	memcpy(was, msg, len < sizeof(was) ? len : sizeof(was));
	for (unsigned i = 0; i < tw->cnt; i++) {
		struct twist t = tw->list[i];
		struct twist_field f = t.field < 0x80 ? table[t.field % table_len(table)]
		                                      : (struct twist_field){ (uint8_t)((t.field - 0x80u) % len), 1 };
		struct lore l = { .len = f.len };

		if ((size_t)f.off + f.len > len)
			continue;
		if (t.source % 8 == 5)
			gather(&l, ctx);
		lie(t, &l, msg + f.off, (size_t)f.off + f.len <= sizeof(was) ? old + f.off : NULL, f.len);
	}
	tw->cnt = 0;
	memcpy(old, was, sizeof(was));
}
