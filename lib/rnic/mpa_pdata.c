/* Private data of MPA connections; see mpa_pdata.h. */
#include "rnic/mpa_pdata.h"

#include <errno.h>

static const uint8_t magic[4] = { 'S', 'M', 'C', 'r' };

int
mpa_pdata_decode(struct span in, struct mpa_pdata *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	const uint8_t *m = rcur_take(&r, sizeof(magic));
	struct mpa_pdata d;

	if (m == NULL || memcmp(m, magic, sizeof(magic)) != 0 || rcur_u8(&r) != MPA_PDATA_VERSION)
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
	d.flags = rcur_be32(&r);
	if (r.failed)
		d.flags = 0;
	*out = d;
	return 0;
}

struct span
mpa_pdata_encode(const struct mpa_pdata *d, uint8_t out[MPA_PDATA_LEN])
{
	struct wcur w = wcur_make(out, MPA_PDATA_LEN);

	wcur_bytes(&w, magic, sizeof(magic));
	wcur_u8(&w, MPA_PDATA_VERSION);
	wcur_u8(&w, d->verdict);
	wcur_be16(&w, d->recv_depth);
	wcur_be32(&w, d->qpn);
	wcur_be32(&w, d->psn);
	wcur_be64(&w, d->token);
	wcur_be32(&w, d->from_qpn);
	wcur_be32(&w, d->ulpdu_max);
	wcur_be32(&w, d->read_stag);
	wcur_be64(&w, d->read_to);
	wcur_be32(&w, d->flags);
	return (struct span){ .ptr = out, .len = MPA_PDATA_LEN };
}

const char *
mpa_verdict_str(unsigned verdict)
{
	static const char *const text[MPA_VERDICT_CNT] = {
		[MPA_ACCEPTED] = "rejected by the peer",
		[MPA_UNKNOWN_PEER] = "rejected by the peer: unknown private data",
		[MPA_BAD_TOKEN] = "rejected by the peer: wrong token",
		[MPA_USED] = "rejected by the peer: link already connected",
		[MPA_NOT_EXPECTED] = "rejected by the peer: unexpected request",
		[MPA_BUSY] = "rejected by the peer: too many pending requests",
		[MPA_READ_DEPTH] = "rejected by the peer: our inbound Read depth is too small",
		[MPA_GONE] = "rejected by the peer: link aborted",
	};

	return verdict < MPA_VERDICT_CNT ? text[verdict] : "rejected by the peer";
}

const char *
mpa_connect_error(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "the peer's MPA port refuses connections";
	case ETIMEDOUT:
		return "the peer's MPA port does not answer";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "no route to the peer's RNIC";
	case EADDRNOTAVAIL:
		return "no local port or address for the MPA connection";
	default:
		return "the MPA connection failed";
	}
}
