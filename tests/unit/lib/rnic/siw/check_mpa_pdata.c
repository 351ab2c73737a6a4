#include "rnic/mpa_pdata.h"

#include <errno.h>

#include "hex.h"
#include "unit.h"

static const struct mpa_pdata sample = {
	.verdict = MPA_USED,
	.recv_depth = 0x1234,
	.qpn = 0xabcdef,
	.psn = 0x010203,
	.token = 0x1122334455667788,
	.from_qpn = 0x00fedc,
	.ulpdu_max = 16384,
	.read_stag = 0xa1b2c3d4,
	.read_to = 0x8877665544332211,
	.flags = 0x99aabbcc,
};
static const char sample_hex[] =
    "534d4372 01 03 1234 00abcdef 00010203 1122334455667788 0000fedc 00004000"
    "a1b2c3d4 8877665544332211 99aabbcc";

START_TEST(format)
{
	uint8_t want[MPA_PDATA_LEN], got[MPA_PDATA_LEN];
	struct mpa_pdata d;

	ck_assert_uint_eq(unhex(sample_hex, want, sizeof(want)), MPA_PDATA_LEN);
	mpa_pdata_encode(&sample, got);
	ck_assert_mem_eq(got, want, sizeof(want));
	ck_assert_int_eq(mpa_pdata_decode((struct span){ want, sizeof(want) }, &d), 0);
	ck_assert_uint_eq(d.verdict, sample.verdict);
	ck_assert_uint_eq(d.recv_depth, sample.recv_depth);
	ck_assert_uint_eq(d.qpn, sample.qpn);
	ck_assert_uint_eq(d.psn, sample.psn);
	ck_assert_uint_eq(d.token, sample.token);
	ck_assert_uint_eq(d.from_qpn, sample.from_qpn);
	ck_assert_uint_eq(d.ulpdu_max, sample.ulpdu_max);
	ck_assert_uint_eq(d.read_stag, sample.read_stag);
	ck_assert_uint_eq(d.read_to, sample.read_to);
	ck_assert_uint_eq(d.flags, sample.flags);
}

START_TEST(others_are_distinguished)
{
	uint8_t buf[MPA_PDATA_LEN + 8] = { 0 };
	struct mpa_pdata d;

	memset(&d, 0x5a, sizeof(d));
	mpa_pdata_encode(&sample, buf);
	for (size_t n = 0; n < MPA_PDATA_MIN; n++)
		ck_assert_int_eq(mpa_pdata_decode((struct span){ buf, n }, &d), -EPROTO);
	for (unsigned i = 0; i < 5; i++) {
		buf[i] ^= 0x40;
		ck_assert_int_eq(mpa_pdata_decode((struct span){ buf, MPA_PDATA_LEN }, &d), -EPROTO);
		buf[i] ^= 0x40;
	}
	ck_assert_uint_eq(d.qpn, 0x5a5a5a5a);
	/* a later one may be longer */
	ck_assert_int_eq(mpa_pdata_decode((struct span){ buf, sizeof(buf) }, &d), 0);
}

START_TEST(what_older_peers_leave_out)
{
	uint8_t buf[MPA_PDATA_LEN];
	struct mpa_pdata d;

	mpa_pdata_encode(&sample, buf);
	for (size_t n = MPA_PDATA_MIN; n < MPA_PDATA_LEN; n++) {
		ck_assert_int_eq(mpa_pdata_decode((struct span){ buf, n }, &d), 0);
		ck_assert_uint_eq(d.ulpdu_max, sample.ulpdu_max);
		ck_assert_uint_eq(d.read_stag, n < MPA_PDATA_LEN - 4 ? 0 : sample.read_stag);
		ck_assert_uint_eq(d.flags, 0);
	}
}

START_TEST(every_verdict_has_words)
{
	for (unsigned v = 0; v < 256; v++)
		ck_assert_int_eq(strncmp(mpa_verdict_str(v), "rejected by the peer", 20), 0);
	ck_assert_str_eq(mpa_verdict_str(MPA_BAD_TOKEN), "rejected by the peer: wrong token");
}
