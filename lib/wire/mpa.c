/* MPA start-up frames, FPDU arithmetic and CRC; see mpa.h. */
#include "wire/mpa.h"

#include <errno.h>
#include <isa-l/crc.h>

#include "base/minmax.h"

static const char keys[][MPA_KEY_LEN + 1] = {
	[MPA_REQUEST] = "MPA ID Req Frame",
	[MPA_REPLY] = "MPA ID Rep Frame",
};

#define FLAGS_KNOWN (MPA_MARKERS | MPA_CRC | MPA_REJECT | MPA_ENHANCED)

int
mpa_frame_decode(struct span in, enum mpa_kind kind, struct mpa_frame *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	struct mpa_frame f = { .kind = kind };
	size_t pd_len, key_len = min_size(in.len, MPA_KEY_LEN);

	if (key_len > 0 && memcmp(in.ptr, keys[kind], key_len) != 0)
		return -EPROTO;
	if (in.len < MPA_HDR_LEN)
		return 0;
	rcur_skip(&r, MPA_KEY_LEN);
	f.flags = rcur_u8(&r) & FLAGS_KNOWN;
	f.rev = rcur_u8(&r);
	pd_len = rcur_be16(&r);
	if (f.rev < 2)
		f.flags &= ~(unsigned)MPA_ENHANCED;
	if (pd_len > MPA_PD_MAX || (f.flags & MPA_ENHANCED && pd_len < ENHANCED_LEN))
		return -EPROTO;
	r = rcur_sub(&r, pd_len);
	if (r.failed)
		return 0;
	if (f.flags & MPA_ENHANCED)
		f.enh = enhanced_decode(rcur_take(&r, ENHANCED_LEN));
	f.pd = (struct span){ .ptr = r.p, .len = rcur_left(&r) };
	*out = f;
	return (int)(MPA_HDR_LEN + pd_len);
}

int
mpa_frame_encode(const struct mpa_frame *f, void *buf, size_t cap)
{
	struct wcur w = wcur_make(buf, cap);
	bool enhanced = (f->flags & MPA_ENHANCED) != 0;
	size_t pd_len = f->pd.len + (enhanced ? ENHANCED_LEN : 0);
	uint8_t block[ENHANCED_LEN] = { 0 };

	if (f->flags & ~(unsigned)FLAGS_KNOWN || pd_len > MPA_PD_MAX)
		return -EINVAL;
	if (enhanced && (f->rev < 2 || enhanced_encode(&f->enh, block) < 0))
		return -EINVAL;
	if (cap < MPA_HDR_LEN + pd_len)
		return -ENOSPC;
	wcur_bytes(&w, keys[f->kind], MPA_KEY_LEN);
	wcur_u8(&w, (uint8_t)f->flags);
	wcur_u8(&w, f->rev);
	wcur_be16(&w, (uint16_t)pd_len);
	if (enhanced)
		wcur_bytes(&w, block, sizeof(block));
	wcur_bytes(&w, f->pd.ptr, f->pd.len);
	return (int)(MPA_HDR_LEN + pd_len);
}

size_t
mpa_marker_cnt(uint32_t pos, size_t fpdu_len)
{
	size_t before = -pos % MPA_MARKER_STEP; /* bytes before the next marker */

	if (fpdu_len <= before)
		return 0;
	return 1 + (fpdu_len - before - 1) / (MPA_MARKER_STEP - MPA_MARKER_LEN);
}

size_t
mpa_mulpdu(size_t emss, bool markers)
{
	size_t extra = MPA_LEN_LEN + MPA_CRC_LEN + emss % 4;

	if (markers)
		extra += MPA_MARKER_LEN * ((emss + MPA_MARKER_STEP - 1) / MPA_MARKER_STEP);
	if (emss < extra + 128)
		return 128;
	return min_size(emss - extra, MPA_ULPDU_MAX);
}

uint32_t
mpa_crc_update(uint32_t crc, const void *buf, size_t len)
{
	/* ISA-L leaves initial value and final inversion to the caller; it does not write to the buffer. */
	return crc32_iscsi((unsigned char *)(uintptr_t)buf, (int)len, crc);
}

void
mpa_crc_put(uint8_t at[MPA_CRC_LEN], uint32_t value)
{
	for (unsigned i = 0; i < MPA_CRC_LEN; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

uint32_t
mpa_crc_get(const uint8_t at[MPA_CRC_LEN])
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
