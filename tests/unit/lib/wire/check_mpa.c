#include "wire/mpa.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

/* -- start-up frames -- */

static void
check_frame(enum mpa_kind kind, struct span bytes)
{
	uint8_t buf[MPA_FRAME_MAX];
	struct mpa_frame f;

	ck_assert_int_eq(mpa_frame_decode(bytes, kind, &f), (int)bytes.len);
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), (int)bytes.len);
	ck_assert_mem_eq(buf, bytes.ptr, bytes.len);
	ck_assert_int_eq(mpa_frame_encode(&f, buf, bytes.len - 1), -ENOSPC);
	memset(&f, 0x5a, sizeof(f));
	struct mpa_frame untouched = f;
	for (size_t n = 0; n < bytes.len; n++)
		ck_assert_int_eq(mpa_frame_decode((struct span){ bytes.ptr, n }, kind, &f), 0);
	ck_assert_int_eq(mpa_frame_decode(bytes, kind == MPA_REQUEST ? MPA_REPLY : MPA_REQUEST, &f), -EPROTO);
	ck_assert_mem_eq(&f, &untouched, sizeof(f));
}

static void
check_request(const char *name, struct span bytes)
{
	(void)name;
	check_frame(MPA_REQUEST, bytes);
}

static void
check_reply(const char *name, struct span bytes)
{
	(void)name;
	check_frame(MPA_REPLY, bytes);
}

START_TEST(golden_frames)
{
	ck_assert_uint_eq(vectors_each_in("iwarp.txt", "mpa-req", check_request), 5);
	ck_assert_uint_eq(vectors_each_in("iwarp.txt", "mpa-rep", check_reply), 5);
}

static size_t
frame_bytes(uint8_t *buf, uint8_t flags, uint8_t rev, unsigned pd_len)
{
	memcpy(buf, "MPA ID Req Frame", 16);
	buf[16] = flags;
	buf[17] = rev;
	buf[18] = (uint8_t)(pd_len >> 8);
	buf[19] = (uint8_t)pd_len;
	for (unsigned i = 0; i < pd_len; i++)
		buf[20 + i] = (uint8_t)i;
	return 20 + pd_len;
}

START_TEST(private_data_is_behind_the_enhanced_block)
{
	uint8_t buf[1024];
	struct mpa_frame f;
	size_t len = frame_bytes(buf, MPA_ENHANCED | MPA_CRC, 2, 6);

	memset(buf + 20, 0xff, 4);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, len }, MPA_REQUEST, &f), (int)len);
	ck_assert_uint_eq(f.enh.model, ENHANCED_P2P | RTR_ANY);
	ck_assert_uint_eq(f.enh.ird, DEPTH_NONE);
	ck_assert_uint_eq(f.enh.ord, DEPTH_NONE);
	ck_assert_uint_eq(f.pd.len, 2);
	ck_assert_uint_eq(f.pd.ptr[0], 4);
}

START_TEST(private_data_length_at_its_limits)
{
	uint8_t buf[1024];
	struct mpa_frame f;

	frame_bytes(buf, MPA_CRC, 1, 512);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, sizeof(buf) }, MPA_REQUEST, &f), 532);
	ck_assert_uint_eq(f.pd.len, 512);
	frame_bytes(buf, MPA_CRC, 1, 513);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, sizeof(buf) }, MPA_REQUEST, &f), -EPROTO);
	/* told by the header alone */
	buf[18] = buf[19] = 0xff;
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 20 }, MPA_REQUEST, &f), -EPROTO);
	/* no place for the enhanced block */
	frame_bytes(buf, MPA_ENHANCED, 2, 3);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 23 }, MPA_REQUEST, &f), -EPROTO);
	frame_bytes(buf, MPA_ENHANCED, 2, 0);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 20 }, MPA_REQUEST, &f), -EPROTO);
	frame_bytes(buf, MPA_ENHANCED, 2, 4);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 24 }, MPA_REQUEST, &f), 24);
	ck_assert_uint_eq(f.pd.len, 0);
	/* for revision 1 the S bit is a reserved one */
	frame_bytes(buf, 0x1f, 1, 3);
	ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 23 }, MPA_REQUEST, &f), 23);
	ck_assert_uint_eq(f.flags, 0);
	ck_assert_uint_eq(f.pd.len, 3);
}

START_TEST(a_wrong_key_is_reported_at_its_first_wrong_byte)
{
	uint8_t buf[20];
	struct mpa_frame f;

	for (unsigned i = 0; i < 16; i++) {
		frame_bytes(buf, 0, 1, 0);
		buf[i] ^= 0x20;
		ck_assert_int_eq(mpa_frame_decode((struct span){ buf, i }, MPA_REQUEST, &f), 0);
		ck_assert_int_eq(mpa_frame_decode((struct span){ buf, i + 1 }, MPA_REQUEST, &f), -EPROTO);
		ck_assert_int_eq(mpa_frame_decode((struct span){ buf, 20 }, MPA_REQUEST, &f), -EPROTO);
	}
}

START_TEST(encoder_refuses_values_out_of_range)
{
	uint8_t buf[1024], pd[513] = { 0 };
	struct mpa_frame good = { .kind = MPA_REQUEST, .flags = MPA_ENHANCED, .rev = 2, .enh = { 0, 1, 1 } }, f;

	ck_assert_int_eq(mpa_frame_encode(&good, buf, sizeof(buf)), 24);
	f = good, f.enh.ird = 0x4000;
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.enh.ord = 0x4000;
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.rev = 1;
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.enh.model = RTR_SEND;
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.flags |= 1;
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.pd = (struct span){ pd, 509 };
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
	f = good, f.pd = (struct span){ pd, 508 };
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), 532);
	f = (struct mpa_frame){ .kind = MPA_REPLY, .rev = 1, .pd = { pd, 513 } };
	ck_assert_int_eq(mpa_frame_encode(&f, buf, sizeof(buf)), -EINVAL);
}

/* -- FPDUs -- */

START_TEST(sizes)
{
	ck_assert_uint_eq(mpa_fpdu_len(18), 24);
	ck_assert_uint_eq(mpa_fpdu_len(19), 28);
	ck_assert_uint_eq(mpa_fpdu_len(22), 28);
	ck_assert_uint_eq(mpa_fpdu_len(23), 32);
	ck_assert_uint_eq(mpa_pad(42), 0);
	ck_assert_uint_eq(mpa_pad(41), 1);
	/* RFC 5044 4.5; a segment of Ethernet with and without markers */
	ck_assert_uint_eq(mpa_mulpdu(1460, false), 1454);
	ck_assert_uint_eq(mpa_mulpdu(1460, true), 1442);
	ck_assert_uint_eq(mpa_mulpdu(1461, false), 1454);
	ck_assert_uint_eq(mpa_mulpdu(100, false), 128);
	ck_assert_uint_eq(mpa_mulpdu(0, true), 128);
	ck_assert_uint_eq(mpa_mulpdu(65483, false), MPA_ULPDU_MAX);
	/* what fits a MULPDU fits the segment, with any number of markers it may catch */
	for (size_t emss = 536; emss < 9100; emss++) {
		size_t m = mpa_mulpdu(emss, true);

		for (uint32_t pos = 0; pos < 512; pos += 4) {
			size_t len = mpa_fpdu_len(m);

			ck_assert_uint_le(len + 4 * mpa_marker_cnt(pos, len), emss);
		}
	}
}

/* The number of markers against a walk byte by byte. */
START_TEST(marker_count)
{
	for (uint32_t pos = 0; pos < 1024; pos += 4)
		for (size_t len = 4; len < 3000; len += 4) {
			uint32_t p = pos;
			size_t left = len, cnt = 0;

			while (left > 0) {
				if (p % 512 == 0) {
					p += 4;
					cnt++;
				} else {
					p += 4;
					left -= 4;
				}
			}
			ck_assert_uint_eq(mpa_marker_cnt(pos, len), cnt);
		}
}

struct crc_case {
	const char *hex;
	uint32_t want;
};

START_TEST(crc)
{
	static const struct crc_case cases[] = {
		{ "313233343536373839", 0xe3069283 },
		{ "0000000000000000000000000000000000000000000000000000000000000000", 0x8a9136aa },
		{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", 0x62a8ab43 },
		{ "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 0x46dd794e },
		{ "1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100", 0x113fdb5c },
		{ "01c000000000000000000000000000001400000000000400000000140000001828000000000000000200000000000000",
		    0xd9963a56 },
		{ "", 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t in[64], wire[4];
		size_t len = unhex(cases[i].hex, in, sizeof(in));

		for (size_t cut = 0; cut <= len; cut++) {
			uint32_t c = mpa_crc_update(MPA_CRC_INIT, in, cut);

			ck_assert_uint_eq(mpa_crc_value(mpa_crc_update(c, in + cut, len - cut)), cases[i].want);
		}
		mpa_crc_put(wire, cases[i].want);
		ck_assert_uint_eq(wire[0], cases[i].want & 0xff);
		ck_assert_uint_eq(mpa_crc_get(wire), cases[i].want);
	}
}
