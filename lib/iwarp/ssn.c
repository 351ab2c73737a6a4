/* Receive order by DDP-SSN; see ssn.h. */
#include "iwarp/ssn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/pages.h"
#include "iwarp/stream.h"

#define WINDOW_BYTES (SSN_WINDOW * sizeof(uint16_t))
#define WINDOW_PLACED UINT16_MAX

struct slot {
	uint16_t len;
	uint16_t free_next; /* of a free slot */
	enum ssn_kind kind;
	uint8_t bytes[];
};

static size_t
slot_size(const struct ssn *q)
{
	size_t align = _Alignof(struct slot);

	return (sizeof(struct slot) + q->cfg.held_len + align - 1) / align * align;
}

/* One more than held_max: for the message that is next in order. */
static size_t
slots_bytes(const struct ssn *q)
{
	return (q->cfg.held_max + 1u) * slot_size(q);
}

int
ssn_init(struct ssn *q, const struct ssn_config *cfg)
{
	assert(cfg->held_max < SSN_WINDOW);
	*q = (struct ssn){ .cfg = *cfg, .next = cfg->first };
	q->window = pages_alloc(WINDOW_BYTES);
	q->slots = pages_alloc(slots_bytes(q));
	return q->window == NULL || q->slots == NULL ? -ENOMEM : 0;
}

void
ssn_fini(struct ssn *q)
{
	pages_free(q->window, WINDOW_BYTES);
	pages_free(q->slots, slots_bytes(q));
}

/* -- the window and held messages; not touched while messages arrive in order -- */

static uint16_t *
window_at(const struct ssn *q, uint16_t number)
{
	return &q->window[number % SSN_WINDOW];
}

static struct slot *
slot_at(const struct ssn *q, uint16_t idx)
{
	return (struct slot *)(void *)(q->slots + idx * slot_size(q));
}

static void
set_ahead(struct ssn *q, uint16_t number, uint16_t what)
{
	*window_at(q, number) = what;
	q->ahead++;
	q->used = q->recent = true;
}

static void
ssn_hold(struct ssn *q, enum ssn_kind kind, uint16_t number, struct span bytes)
{
	uint16_t idx = q->slot_free != 0 ? q->slot_free : ++q->slot_cnt;
	struct slot *s = slot_at(q, (uint16_t)(idx - 1));

	q->slot_free = idx == q->slot_free ? s->free_next : 0;
	s->kind = kind;
	s->len = (uint16_t)bytes.len;
	if (bytes.len > 0)
		memcpy(s->bytes, bytes.ptr, bytes.len);
	q->held++;
	set_ahead(q, number, idx);
}

/* -- input -- */

/* Places a Write if it is valid. */
static bool
ssn_place(struct stream *stream, struct span segment)
{
	struct ddp_hdr h;
	int n = ddp_decode(segment, &h);
	uint8_t *at;

	if (n <= 0 || !stream_place_early(stream, &h, segment.len - (size_t)n, &at))
		return false;
	memcpy(at, segment.ptr + n, segment.len - (size_t)n);
	return true;
}

static int
ssn_refuse(const char **why, const char *text)
{
	*why = text;
	return -EPROTO;
}

int
ssn_in(struct ssn *q, struct stream *stream, enum ssn_kind kind, uint16_t number, struct span bytes, const char **why)
{
	uint16_t distance = (uint16_t)(number - q->next);

	assert(q->now == SSN_NONE);
	if (distance >= SSN_WINDOW)
		return ssn_refuse(why, "DDP-SSN outside the window");
	if (q->ahead > 0 && *window_at(q, number) != 0)
		return ssn_refuse(why, "duplicate DDP-SSN");
	if (distance == 0) {
		q->now = kind;
		q->now_bytes = bytes;
		return 0;
	}
	if (kind == SSN_SEGMENT && stream != NULL && ssn_place(stream, bytes)) {
		set_ahead(q, number, WINDOW_PLACED);
		q->early_placed++;
		return 0;
	}
	if (bytes.len > q->cfg.held_len)
		return ssn_refuse(why, "out-of-order message too long to hold");
	if (q->held >= q->cfg.held_max)
		return ssn_refuse(why, "too many out-of-order messages");
	ssn_hold(q, kind, number, bytes);
	q->early_held++;
	return 0;
}

int
ssn_settle(struct ssn *q, const char **why)
{
	enum ssn_kind kind = q->now;

	if (kind == SSN_NONE)
		return 0;
	q->now = SSN_NONE;
	if (q->now_bytes.len > q->cfg.held_len)
		return ssn_refuse(why, "deferred message too long to hold");
	ssn_hold(q, kind, q->next, q->now_bytes);
	return 0;
}

/* -- order -- */

enum ssn_kind
ssn_next(const struct ssn *q, struct span *bytes)
{
	if (q->now != SSN_NONE) {
		*bytes = q->now_bytes;
		return q->now;
	}
	if (q->ahead == 0)
		return SSN_NONE;
	uint16_t what = *window_at(q, q->next);
	if (what == 0)
		return SSN_NONE;
	if (what == WINDOW_PLACED)
		return SSN_PLACED;
	struct slot *s = slot_at(q, (uint16_t)(what - 1));
	*bytes = (struct span){ .ptr = s->bytes, .len = s->len };
	return s->kind;
}

void
ssn_advance(struct ssn *q)
{
	if (q->now != SSN_NONE) {
		q->now = SSN_NONE;
	} else {
		uint16_t *what = window_at(q, q->next);

		assert(q->ahead > 0 && *what != 0);
		if (*what != WINDOW_PLACED) {
			slot_at(q, (uint16_t)(*what - 1))->free_next = q->slot_free;
			q->slot_free = *what;
			q->held--;
		}
		*what = 0;
		q->ahead--;
	}
	q->next++;
}

void
ssn_rest(struct ssn *q)
{
	/* Nothing is ahead, otherwise recent would be set. */
	if (q->used && !q->recent) {
		pages_give_back(q->window, WINDOW_BYTES);
		pages_give_back(q->slots, q->slot_cnt * slot_size(q));
		q->slot_cnt = q->slot_free = 0;
		q->used = false;
	}
	q->recent = q->ahead > 0;
}
