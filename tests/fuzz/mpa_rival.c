/* See mpa_rival.h. */
#include "mpa_rival.h"

#include <string.h>

#include "fuzz.h"
#include "sockets.h"

static const struct twist_field frame_fields[] = { { 0, 1 }, { 16, 1 }, { 17, 1 }, { 18, 2 }, { 20, 2 }, { 22, 2 },
	{ 24, 4 }, { 28, 1 }, { 29, 1 }, { 30, 2 }, { 32, 4 }, { 36, 4 }, { 40, 8 }, { 48, 4 }, { 52, 4 }, { 0, 0 } };

/* -- what the device sends -- */

static void
take_fpdus(struct mpa_rival *r)
{
	size_t off = 0, need;
	struct span ulpdu;
	ssize_t n;

	while ((n = fpdu_rx_next(&r->rx, r->in + off, r->in_len - off, &ulpdu, &need)) > 0) {
		ddp_rival_hear(&r->ddp, ulpdu);
		off += (size_t)n;
	}
	FUZZ_CHECK(n == 0);
	memmove(r->in, r->in + off, r->in_len - off);
	r->in_len -= off;
}

static void
begin(struct mpa_rival *r)
{
	if (r->started || !r->said || !r->heard)
		return;
	r->started = true;
	r->rx = (struct fpdu_rx){ .crc = r->crc, .markers = r->markers_rx };
}

static void
take_frame(struct mpa_rival *r)
{
	int n = mpa_frame_decode((struct span){ r->in, r->in_len }, r->active ? MPA_REPLY : MPA_REQUEST, &r->frame);

	FUZZ_CHECK(n >= 0);
	if (n == 0)
		return;
	(void)mpa_pdata_decode(r->frame.pd, &r->pdata);
	memmove(r->in, r->in + n, r->in_len - (size_t)n);
	r->in_len -= (size_t)n;
	r->heard = true;
	r->crc = r->crc || (r->frame.flags & MPA_CRC) != 0;
	r->markers_tx = (r->frame.flags & MPA_MARKERS) != 0;
	begin(r);
}

bool
mpa_rival_turn(struct mpa_rival *r)
{
	size_t n;
	bool news = false;

	if (r->fd < 0)
		return false;
	while ((n = sockets_recv(r->fd, r->in + r->in_len, sizeof(r->in) - r->in_len)) > 0) {
		r->in_len += n;
		news = true;
		if (!r->heard)
			take_frame(r);
		if (r->started)
			take_fpdus(r);
	}
	return news;
}

/* -- start-up -- */

void
mpa_rival_frame(struct mpa_rival *r, unsigned opts, unsigned rtr, struct twists *tw,
    void (*gather)(struct lore *, void *), void *ctx)
{
	struct mpa_pdata d = { .recv_depth = 16,
		.qpn = r->active ? r->ddp.qpn : r->pdata.from_qpn,
		.psn = r->ddp.psn,
		.token = r->ddp.token,
		.from_qpn = r->active ? 77 : r->pdata.qpn,
		.ulpdu_max = 16384 };
	struct mpa_frame f = { .kind = r->active ? MPA_REQUEST : MPA_REPLY,
		.rev = (opts & FRAME_REV_1) != 0 ? 1 : 2,
		.flags = ((opts & FRAME_NO_CRC) != 0 ? 0u : MPA_CRC) |
		    ((opts & FRAME_MARKERS) != 0 ? MPA_MARKERS : 0u) | ((opts & FRAME_REJECT) != 0 ? MPA_REJECT : 0u) |
		    ((opts & FRAME_REV_1) != 0 ? 0u : MPA_ENHANCED),
		.enh = { .model = (opts & FRAME_NO_P2P) != 0 ? 0u : ENHANCED_P2P | rtr, .ird = 4, .ord = 4 } };
	uint8_t pd[MPA_PDATA_LEN], out[MPA_FRAME_MAX + 8];

	if ((opts & FRAME_REV_1) != 0)
		f.enh = (struct enhanced){ 0 };
	mpa_pdata_encode(&d, pd);
	if ((opts & FRAME_NO_PDATA) == 0)
		f.pd = (struct span){ pd, sizeof(pd) };
	int n = mpa_frame_encode(&f, out, MPA_FRAME_MAX);
	if (n < 0)
		return;
	twist_apply(tw, frame_fields, 0, out, (size_t)n, gather, ctx);
	r->crc = r->crc || (out[MPA_KEY_LEN] & MPA_CRC) != 0;
	r->markers_rx = (out[MPA_KEY_LEN] & MPA_MARKERS) != 0;
	if ((opts & FRAME_MORE) != 0) {
		memset(out + n, 0, 8);
		n += 8;
	}
	(void)sockets_send(r->fd, out, (size_t)n - ((opts & FRAME_CUT) != 0 ? 3 : 0));
	r->said = true;
	begin(r);
}

/* -- FPDUs -- */

/* With markers where the device wants them (RFC 5044 4.3), and the check value over all of it. */
static void
send_fpdu(struct mpa_rival *r, const uint8_t *ulpdu, size_t len, unsigned how)
{
	static uint8_t plain[MPA_FPDU_MAX + 16], out[MPA_FPDU_MAX + 16];
	size_t total = MPA_LEN_LEN + len + mpa_pad(len), n = 0, start = 0;
	bool first = true;

	memset(plain, 0, total);
	be16_put(plain, (uint16_t)(len + ((how & FPDU_BAD_LEN) != 0 ? 5 : 0)));
	memcpy(plain + MPA_LEN_LEN, ulpdu, len);
	for (size_t i = 0; i < total + MPA_CRC_LEN; i++) {
		if (r->markers_tx && (r->pos + n) % MPA_MARKER_STEP == 0 && (how & FPDU_NO_MARKER) == 0) {
			/* A marker in front of it belongs to the FPDU, too. */
			be32_put(out + n, first ? 0 : (uint32_t)(n - start));
			n += MPA_MARKER_LEN;
			if (first)
				start = n;
		}
		first = false;
		if (i == total) {
			uint32_t sum = mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, out, n));

			mpa_crc_put(plain + total, r->crc ? sum + ((how & FPDU_BAD_SUM) != 0) : 0);
		}
		out[n++] = plain[i];
	}
	r->pos += (uint32_t)n;
	(void)sockets_send(r->fd, out, n - ((how & FPDU_CUT) != 0 ? n / 3 : 0));
}

void
mpa_rival_fpdu(struct mpa_rival *r, unsigned kind, unsigned how, size_t len, uint32_t mo, struct twists *tw,
    void (*gather)(struct lore *, void *), void *ctx)
{
	static uint8_t ulpdu[MPA_ULPDU_MAX];
	size_t n = ddp_rival_say(&r->ddp, kind, (how & FPDU_NOT_LAST) == 0, len, mo, tw, gather, ctx, ulpdu);

	if (n > 0)
		send_fpdu(r, ulpdu, n, how);
}
