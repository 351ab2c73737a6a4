/* DDP segment headers; see ddp.h. One length check and fixed offsets: runs for every FPDU. */
#include "wire/ddp.h"

enum { CTRL_TAGGED = 0x80, CTRL_LAST = 0x40, CTRL_VERSION = 0x03 };

int
ddp_decode(struct span in, struct ddp_hdr *out)
{
	const uint8_t *p = in.ptr;
	size_t len;

	if (in.len == 0)
		return 0;
	len = (p[0] & CTRL_TAGGED) != 0 ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	if (in.len < len)
		return 0;
	*out = (struct ddp_hdr){
		.tagged = (p[0] & CTRL_TAGGED) != 0,
		.last = (p[0] & CTRL_LAST) != 0,
		.version = p[0] & CTRL_VERSION,
		.ulp_ctrl = p[1],
	};
	if (out->tagged) {
		out->stag = be32_get(p + 2);
		out->to = be64_get(p + 6);
	} else {
		out->ulp_word = be32_get(p + 2);
		out->qn = be32_get(p + 6);
		out->msn = be32_get(p + 10);
		out->mo = be32_get(p + 14);
	}
	return (int)len;
}

size_t
ddp_encode(const struct ddp_hdr *h, uint8_t out[DDP_HDR_MAX])
{
	out[0] = (uint8_t)((h->tagged ? CTRL_TAGGED : 0) | (h->last ? CTRL_LAST : 0) | DDP_VERSION);
	out[1] = h->ulp_ctrl;
	if (h->tagged) {
		be32_put(out + 2, h->stag);
		be64_put(out + 6, h->to);
		return DDP_TAGGED_LEN;
	}
	be32_put(out + 2, h->ulp_word);
	be32_put(out + 6, h->qn);
	be32_put(out + 10, h->msn);
	be32_put(out + 14, h->mo);
	return DDP_UNTAGGED_LEN;
}
