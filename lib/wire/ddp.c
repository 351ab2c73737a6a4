/* DDP segment headers; see ddp.h. */
#include "wire/ddp.h"

enum {
	CTRL_TAGGED = 0x80,
	CTRL_LAST = 0x40,
	CTRL_VERSION = 0x03,
};

int
ddp_decode(struct span in, struct ddp_hdr *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	struct ddp_hdr h = { 0 };
	uint8_t ctrl = rcur_u8(&r);

	h.tagged = (ctrl & CTRL_TAGGED) != 0;
	h.last = (ctrl & CTRL_LAST) != 0;
	h.version = ctrl & CTRL_VERSION;
	h.ulp_ctrl = rcur_u8(&r);
	if (h.tagged) {
		h.stag = rcur_be32(&r);
		h.to = rcur_be64(&r);
	} else {
		h.ulp_word = rcur_be32(&r);
		h.qn = rcur_be32(&r);
		h.msn = rcur_be32(&r);
		h.mo = rcur_be32(&r);
	}
	if (r.failed)
		return 0;
	*out = h;
	return h.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

size_t
ddp_encode(const struct ddp_hdr *h, uint8_t out[DDP_HDR_MAX])
{
	struct wcur w = wcur_make(out, DDP_HDR_MAX);

	wcur_u8(&w, (uint8_t)((h->tagged ? CTRL_TAGGED : 0) | (h->last ? CTRL_LAST : 0) | DDP_VERSION));
	wcur_u8(&w, h->ulp_ctrl);
	if (h->tagged) {
		wcur_be32(&w, h->stag);
		wcur_be64(&w, h->to);
		return DDP_TAGGED_LEN;
	}
	wcur_be32(&w, h->ulp_word);
	wcur_be32(&w, h->qn);
	wcur_be32(&w, h->msn);
	wcur_be32(&w, h->mo);
	return DDP_UNTAGGED_LEN;
}
