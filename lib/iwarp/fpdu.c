/* FPDU decoder; see fpdu.h. */
#include "iwarp/fpdu.h"

int
fpdu_rx_peek(const uint8_t *buf)
{
	size_t n = be16_get(buf);

	return n == 0 || n > MPA_ULPDU_MAX ? FPDU_BAD_LENGTH : (int)n;
}

/* Removes the markers from a complete FPDU in buf: the bytes after each move up. False if a marker does not point to
 * the length field. The CRC is no longer needed and is overwritten. */
static bool
strip_markers(struct fpdu_rx *rx, uint8_t *buf, size_t total, uint8_t **start)
{
	size_t at = -rx->pos % MPA_MARKER_STEP;     /* of the next marker */
	size_t base = at == 0 ? MPA_MARKER_LEN : 0; /* of the length field */
	uint8_t *dst = buf + base;
	size_t from = base;
	bool good = true;

	*start = dst;
	for (; at < total; at += MPA_MARKER_STEP) {
		size_t want = at < base ? 0 : at - base;

		good = good && be16_get(buf + at + 2) == want;
		if (at > from) {
			memmove(dst, buf + from, at - from);
			dst += at - from;
		}
		from = at + MPA_MARKER_LEN;
	}
	if (total > from)
		memmove(dst, buf + from, total - from);
	return good;
}

ssize_t
fpdu_rx_next(struct fpdu_rx *rx, uint8_t *buf, size_t len, struct span *ulpdu, size_t *need)
{
	size_t lead = rx->markers && rx->pos % MPA_MARKER_STEP == 0 ? MPA_MARKER_LEN : 0;
	uint8_t *start = buf;

	*need = lead + 4;
	if (len < *need)
		return 0;
	int n = fpdu_rx_peek(buf + lead);
	if (n < 0)
		return n;
	size_t total = mpa_fpdu_len((size_t)n);
	if (rx->markers)
		total += MPA_MARKER_LEN * mpa_marker_cnt(rx->pos, total);
	*need = total;
	if (len < total)
		return 0;
	size_t covered = total - MPA_CRC_LEN;
	if (rx->crc && mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, buf, covered)) != mpa_crc_get(buf + covered))
		return FPDU_BAD_CRC;
	if (rx->markers && !strip_markers(rx, buf, total, &start))
		return FPDU_BAD_LENGTH;
	*ulpdu = (struct span){ .ptr = start + MPA_LEN_LEN, .len = (size_t)n };
	rx->pos += (uint32_t)total;
	return (ssize_t)total;
}
