/* A peer of a soft iWARP device that lies, as far as it is the same over every LLP: the DDP segments and RDMAP headers that it
 * says, right from what the device has said, and then with some fields changed (twist.h). */
#pragma once

#include "base/span.h"
#include "siw_arena.h"
#include "twist.h"
#include "wire/rdmap.h"

#define DDP_RIVAL_READS 32
#define DDP_RIVAL_SEGMENT_MAX 64768

struct ddp_rival {
	/* whom we talk to: the queue pair of the device, the secret of its link, and a region of it that we may use */
	uint32_t qpn, psn;
	uint64_t token;
	uint32_t stag;
	uint64_t base;
	uint32_t msn[RDMAP_QN_CNT];               /* next one of ours */
	struct rdmap_read reads[DDP_RIVAL_READS]; /* of the device, not answered */
	unsigned read_cnt;
};

enum {
	SEGMENT_WRITE,
	SEGMENT_SEND,
	SEGMENT_READ,
	SEGMENT_ANSWER,
	SEGMENT_TERMINATE,
	SEGMENT_SEND_SE,
	SEGMENT_SEND_INV,
	SEGMENT_EMPTY_WRITE,
	SEGMENT_KIND_CNT,
};

/* As announced by CLC. */
void ddp_rival_meet(struct ddp_rival *, const struct siw_arena *, unsigned link);
/* A segment of the device. */
void ddp_rival_hear(struct ddp_rival *, struct span segment);
/* One of ours: its length, at most DDP_RIVAL_SEGMENT_MAX, 0 = nothing to say. mo: of an untagged one, or the offset in the
 * region. */
size_t ddp_rival_say(struct ddp_rival *, unsigned kind, bool last, size_t len, uint32_t mo, struct twists *,
    void (*gather)(struct lore *, void *), void *ctx, uint8_t *out);
