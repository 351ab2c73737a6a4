/* Private data of MPA connections; see siw_pdata.h. */
#include "rnic/siw_pdata.h"

#include <errno.h>

static const uint8_t magic[4] = { 'S', 'M', 'C', 'r' };

int
siw_pdata_decode(struct span in, struct siw_pdata *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	const uint8_t *m = rcur_take(&r, sizeof(magic));
	struct siw_pdata d;

	if (m == NULL || memcmp(m, magic, sizeof(magic)) != 0 || rcur_u8(&r) != SIW_PDATA_VERSION)
		return -EPROTO;
	d.verdict = rcur_u8(&r);
	d.recv_depth = rcur_be16(&r);
	d.qpn = rcur_be32(&r);
	d.psn = rcur_be32(&r);
	d.token = rcur_be64(&r);
	d.from_qpn = rcur_be32(&r);
	d.ulpdu_max = rcur_be32(&r);
	if (r.failed)
		return -EPROTO;
	d.read_stag = rcur_be32(&r);
	d.read_to = rcur_be64(&r);
	if (r.failed)
		d.read_stag = 0;
	*out = d;
	return 0;
}

void
siw_pdata_encode(const struct siw_pdata *d, uint8_t out[SIW_PDATA_LEN])
{
	struct wcur w = wcur_make(out, SIW_PDATA_LEN);

	wcur_bytes(&w, magic, sizeof(magic));
	wcur_u8(&w, SIW_PDATA_VERSION);
	wcur_u8(&w, d->verdict);
	wcur_be16(&w, d->recv_depth);
	wcur_be32(&w, d->qpn);
	wcur_be32(&w, d->psn);
	wcur_be64(&w, d->token);
	wcur_be32(&w, d->from_qpn);
	wcur_be32(&w, d->ulpdu_max);
	wcur_be32(&w, d->read_stag);
	wcur_be64(&w, d->read_to);
}

const char *
siw_verdict_str(unsigned verdict)
{
	static const char *const text[SIW_VERDICT_CNT] = {
		[SIW_ACCEPTED] = "rejected by the peer",
		[SIW_STRANGER] = "rejected by the peer: not one of its peers",
		[SIW_BAD_TOKEN] = "rejected by the peer: wrong token",
		[SIW_USED] = "rejected by the peer: link already connected",
		[SIW_NOT_EXPECTED] = "rejected by the peer: not expected",
		[SIW_BUSY] = "rejected by the peer: too many requests wait there",
		[SIW_READ_DEPTH] = "rejected by the peer: our inbound Read depth is too small",
		[SIW_GONE] = "rejected by the peer: link given up there",
	};

	return verdict < SIW_VERDICT_CNT ? text[verdict] : "rejected by the peer";
}
