#include "iwarp/fpdu.h"

#include "iwarp/txq.h"
#include "unit.h"
#include "vectors.h"

/* RFC 5044 4.4, figure 5 */
static const uint8_t fig5[] = { 0, 0, 0, 0, 0x00, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x52, 0x23, 0x99, 0x83 };
/* Figure 6, at stream position 0x1ec. */
static const uint8_t fig6[] = { 0x00, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x00, 0x00,
	0x00, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x84, 0x92, 0x58, 0x98 };

START_TEST(examples_of_rfc_5044)
{
	struct fpdu_rx rx;
	uint8_t buf[64];
	struct span u;
	size_t need;

	rx = (struct fpdu_rx){ .crc = true, .markers = true };
	memcpy(buf, fig5, sizeof(fig5));
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, sizeof(fig5), &u, &need), sizeof(fig5));
	ck_assert_uint_eq(u.len, 42);
	ck_assert_mem_eq(u.ptr, fig5 + 6, 42);
	ck_assert_uint_eq(rx.pos, sizeof(fig5));
	rx.pos = 0x1ec;
	memcpy(buf, fig6, sizeof(fig6));
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, sizeof(fig6), &u, &need), sizeof(fig6));
	ck_assert_uint_eq(u.len, 42);
	ck_assert_uint_eq(u.ptr[13], 2);
	ck_assert_uint_eq(rx.pos, 0x1ec + sizeof(fig6));
}

static bool with_crc;

static void
check_vector(const char *name, struct span fpdu)
{
	struct fpdu_rx rx;
	uint8_t buf[VECTOR_MAX_LEN];
	struct span u;
	size_t need;

	rx = (struct fpdu_rx){ .crc = with_crc };
	memcpy(buf, fpdu.ptr, fpdu.len);
	for (size_t n = 0; n < fpdu.len; n++) {
		ck_assert_int_eq(fpdu_rx_next(&rx, buf, n, &u, &need), 0);
		ck_assert_uint_gt(need, n);
		ck_assert_uint_le(need, fpdu.len);
	}
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, fpdu.len, &u, &need), (ssize_t)fpdu.len);
	ck_assert_msg(u.ptr == buf + 2, "%s", name);
	ck_assert_uint_eq(mpa_fpdu_len(u.len), fpdu.len);
	/* a wrong bit anywhere but in the length is the CRC's */
	size_t total = fpdu.len;
	for (size_t i = 2; with_crc && i < total; i++) {
		rx = (struct fpdu_rx){ .crc = true };
		buf[i] ^= 0x10;
		ck_assert_int_eq(fpdu_rx_next(&rx, buf, total, &u, &need), FPDU_BAD_CRC);
		buf[i] ^= 0x10;
	}
}

START_TEST(golden_fpdus)
{
	with_crc = true;
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-crc", check_vector), 30);
	with_crc = false;
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-nocrc", check_vector), 20);
}

START_TEST(length_field_at_its_limits)
{
	static uint8_t buf[MPA_FPDU_MAX];
	struct fpdu_rx rx;
	struct span u;
	size_t need;

	rx = (struct fpdu_rx){ 0 };
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 4, &u, &need), FPDU_BAD_LENGTH);
	buf[1] = 1;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 4, &u, &need), 0);
	ck_assert_uint_eq(need, 8);
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 8, &u, &need), 8);
	buf[0] = MPA_ULPDU_MAX >> 8;
	buf[1] = MPA_ULPDU_MAX & 0xff;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 4, &u, &need), 0);
	ck_assert_uint_le(need, MPA_FPDU_MAX);
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, need, &u, &need), (ssize_t)mpa_fpdu_len(MPA_ULPDU_MAX));
	buf[1]++;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 4, &u, &need), FPDU_BAD_LENGTH);
	buf[0] = buf[1] = 0xff;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 4, &u, &need), FPDU_BAD_LENGTH);
	/* the same behind a marker */
	rx = (struct fpdu_rx){ .markers = true };
	memset(buf, 0, 8);
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 8, &u, &need), FPDU_BAD_LENGTH);
	memset(buf + 4, 0xff, 2);
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, 8, &u, &need), FPDU_BAD_LENGTH);
}

/* The largest FPDU, at any place of the marker grid, fits MPA_FPDU_MAX. */
START_TEST(the_longest_fpdu_fits)
{
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		size_t len = mpa_fpdu_len(MPA_ULPDU_MAX);

		ck_assert_uint_le(len + 4 * mpa_marker_cnt(pos, len), MPA_FPDU_MAX);
	}
}

START_TEST(a_marker_that_points_elsewhere)
{
	struct fpdu_rx rx;
	uint8_t buf[64];
	struct span u;
	size_t need;

	/* CRC off: or it would be seen first */
	rx = (struct fpdu_rx){ .markers = true };
	memcpy(buf, fig5, sizeof(fig5));
	buf[3] = 4;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, sizeof(fig5), &u, &need), FPDU_BAD_LENGTH);
	rx = (struct fpdu_rx){ .markers = true };
	rx.pos = 0x1ec;
	memcpy(buf, fig6, sizeof(fig6));
	buf[23] = 0x10;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, sizeof(fig6), &u, &need), FPDU_BAD_LENGTH);
	/* its reserved half is not looked at */
	rx = (struct fpdu_rx){ .markers = true };
	rx.pos = 0x1ec;
	memcpy(buf, fig6, sizeof(fig6));
	buf[20] = 0xaa;
	ck_assert_int_eq(fpdu_rx_next(&rx, buf, sizeof(fig6), &u, &need), sizeof(fig6));
}

/* -- a stream of many FPDUs, in pieces -- */

#define STREAM_MAX (1u << 20)

struct made {
	uint8_t bytes[STREAM_MAX];
	size_t len;
	unsigned cnt;
	size_t payload_len[4096];
};
static struct made made;
static uint8_t content[70000];

static void
drain(struct txq *q)
{
	struct iovec iov[TXQ_SEGS];
	unsigned n = txq_gather(q, iov, TXQ_SEGS);

	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_le(made.len + iov[i].iov_len, STREAM_MAX);
		memcpy(made.bytes + made.len, iov[i].iov_base, iov[i].iov_len);
		made.len += iov[i].iov_len;
		txq_sent(q, iov[i].iov_len);
	}
	ck_assert(txq_empty(q));
	ck_assert_uint_eq(q->bytes, 0);
}

static void
make_stream(bool crc, bool markers, size_t step, size_t max)
{
	struct txq q;

	ck_assert_int_eq(txq_init(&q, 128 * 1024), 0);
	txq_start(&q, crc, markers);
	made.len = made.cnt = 0;
	for (size_t len = 0; len <= max && made.len < STREAM_MAX / 2; len += step) {
		struct ddp_hdr h = { .tagged = len & 1, .last = true, .stag = (uint32_t)len, .msn = (uint32_t)len };
		struct txq_payload p = {
			.cnt = 2,
			.len = len,
			.v = { { content, len / 3 }, { content + len / 3, len - len / 3 } },
		};

		ck_assert(txq_room(&q, len));
		txq_put(&q, &h, &p);
		made.payload_len[made.cnt++] = len;
		drain(&q);
	}
	txq_fini(&q);
}

/* Gives the stream in pieces of `piece` bytes and checks what comes out. */
static void
take_stream(bool crc, bool markers, size_t piece)
{
	static uint8_t buf[2 * MPA_FPDU_MAX];
	struct fpdu_rx rx;
	size_t have = 0, given = 0;
	unsigned cnt = 0;

	rx = (struct fpdu_rx){ .crc = crc, .markers = markers };
	while (given < made.len) {
		size_t n = made.len - given < piece ? made.len - given : piece, off = 0;
		struct span u;
		size_t need;
		ssize_t used;

		memcpy(buf + have, made.bytes + given, n);
		given += n;
		have += n;
		while ((used = fpdu_rx_next(&rx, buf + off, have - off, &u, &need)) > 0) {
			struct ddp_hdr h;
			int hdr = ddp_decode(u, &h);
			size_t want = made.payload_len[cnt++];

			ck_assert_uint_eq(u.len, (size_t)hdr + want);
			ck_assert_uint_eq(h.tagged ? h.stag : h.msn, want);
			ck_assert_mem_eq(u.ptr + hdr, content, want);
			off += (size_t)used;
		}
		ck_assert_int_eq(used, 0);
		memmove(buf, buf + off, have - off);
		have -= off;
	}
	ck_assert_uint_eq(have, 0);
	ck_assert_uint_eq(cnt, made.cnt);
	ck_assert_uint_eq(rx.pos, made.len);
}

START_LOOP_TEST(any_segmentation, 0, 4)
{
	static const size_t pieces[] = { 1, 2, 3, 5, 64, 511, 512, 513, 1460, 65536 };
	bool crc = _i & 1, markers = _i & 2;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 31 + i / 255);
	make_stream(crc, markers, 1, 1300);
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		take_stream(crc, markers, pieces[i]);
	make_stream(crc, markers, 997, 32000);
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		take_stream(crc, markers, pieces[i]);
}
