#include "wire/clc_tlvs.h"

#include <errno.h>

#include "clc_bytes.h"
#include "unit.h"

#define LIST_AT 80 /* of a Proposal: behind the growth area that smcrd sends */

static const struct clc_tlvs all[] = {
	{ .client = { .kind = CLC_CLIENT_V4, .port = 5330, .addr = { 203, 0, 113, 9 } } },
	{ .client = { .kind = CLC_CLIENT_V6, .port = 1, .addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 7 } } },
	{ .client = { .kind = CLC_CLIENT_UNIX, .uid = 1000 } },
	{ .dest = { .kind = CLC_DEST_V4, .port = 5432, .addr = { 10, 0, 5, 9 } } },
	{ .dest = { .kind = CLC_DEST_V6, .port = 65535, .addr = { 0xfe, 0x80, [15] = 7 } } },
	{ .client = { .kind = CLC_CLIENT_V4, .port = 5330, .addr = { 203, 0, 113, 9 } },
	    .dest = { .kind = CLC_DEST_V6, .port = 1, .addr = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 } } },
};

static const char *const lists[] = {
	"736d72740009"
	"810704"
	"14d2"
	"cb007109",
	"736d72740015"
	"811306"
	"0001"
	"20010db8000000000000000000000007",
	"736d72740007"
	"810501"
	"000003e8",
	"736d72740009"
	"820704"
	"1538"
	"0a000509",
	"736d72740015"
	"821306"
	"ffff"
	"fe800000000000000000000000000007",
	"736d7274001e"
	"810704"
	"14d2"
	"cb007109"
	"821306"
	"0001"
	"20010db8000000000000000000000009",
};

#define LISTS (int)(sizeof(lists) / sizeof(lists[0]))

static struct clc_msg
a_proposal_of(const struct clc_tlvs *tlvs)
{
	struct clc_msg m = a_proposal();

	m.proposal.ext = an_ext;
	m.proposal.ext.features |= CLC_FEATURE_TLVS;
	m.proposal.tlvs = *tlvs;
	return m;
}

/* A Proposal with this list, in hexadecimal, in place of the encoder's. */
static struct buf
with_list(const char *hex)
{
	struct clc_msg m = a_proposal_of(&(struct clc_tlvs){ .unknown = 0 });
	struct buf whole = encoded(&m), list = from_hex(hex);

	memmove(whole.b + LIST_AT + list.len, whole.b + LIST_AT, whole.len - LIST_AT);
	memcpy(whole.b + LIST_AT, list.b, list.len);
	whole.len += list.len;
	set_len(&whole, (unsigned)whole.len);
	whole.b[39] = (uint8_t)(CLC_GROWTH_LEN + list.len);
	return whole;
}

START_LOOP_TEST(tlvs_in_a_proposal, 0, LISTS)
{
	struct clc_msg m = a_proposal_of(&all[_i]);
	struct buf in = encoded(&m), golden = with_list(lists[_i]);

	ck_assert_uint_eq(in.len, golden.len);
	ck_assert_mem_eq(in.b, golden.b, in.len);
	m = expect_ok(&in);
	ck_assert_mem_eq(&m.proposal.tlvs, &all[_i], sizeof(all[_i]));
	ck_assert_uint_eq(m.proposal.growth_len, CLC_GROWTH_LEN + clc_tlvs_len(&all[_i]));
	check_again(&in, &m);
	check_truncations(&in);
}

static size_t
tlvs_of(const struct buf *in)
{
	const struct clc_msg m = expect_ok(in);

	return clc_tlvs_len(&m.proposal.tlvs);
}

/* The list cut at each byte, in a message whose lengths fit: only a whole list, or none, is valid. */
START_LOOP_TEST(lists_that_are_cut, 0, LISTS)
{
	const size_t whole = strlen(lists[_i]);

	for (size_t n = 2; n < whole; n += 2) {
		char cut[128] = "";

		memcpy(cut, lists[_i], n);
		struct buf in = with_list(cut);
		if (n >= 12)
			expect(&in, -EBADMSG);
		else
			ck_assert_uint_eq(tlvs_of(&in), 0);
	}
}

START_TEST(lists_that_are_malformed)
{
	static const char *const bad[] = {
		"736d72740009810704"
		"0000"
		"cb007109", /* port 0 */
		"736d72740009810705"
		"14d2"
		"cb007109", /* family 5 */
		"736d72740009810700"
		"14d2"
		"cb007109", /* family 0 */
		"736d72740009810706"
		"14d2"
		"cb007109", /* IPv6 of 4 bytes */
		"736d7274000a810804"
		"14d2"
		"cb00710900", /* too long a value */
		"736d72740008810604"
		"14d2"
		"cb0071", /* too short a value */
		"736d72740012"
		"8107"
		"0414d2cb007109"
		"8107"
		"0414d2cb007109", /* twice */
		"736d72740009810804"
		"14d2"
		"cb007109", /* longer than its list */
		"736d7274000a810704"
		"14d2"
		"cb007109"
		"81", /* a type without a length */
		"736d72740015811306"
		"0001"
		"00000000000000000000ffff7f000001", /* IPv4 in IPv6 */
		"736d72740009820704"
		"0000"
		"0a000509", /* likewise of a destination: port 0 */
		"736d72740009820701"
		"1538"
		"0a000509", /* family 1 */
		"736d72740009820700"
		"1538"
		"0a000509", /* family 0 */
		"736d72740009820706"
		"1538"
		"0a000509", /* IPv6 of 4 bytes */
		"736d7274000a820804"
		"1538"
		"0a00050900", /* too long a value */
		"736d72740008820604"
		"1538"
		"0a0005",           /* too short a value */
		"736d727400028200", /* no value */
		"736d72740012"
		"8207"
		"0415380a000509"
		"8207"
		"0415380a000509", /* twice */
		"736d72740015821306"
		"1538"
		"00000000000000000000ffff7f000001", /* IPv4 in IPv6 */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf in = with_list(bad[i]);

		expect(&in, -EBADMSG);
	}
}

/* 128 bytes are read, 129 not. */
START_TEST(lists_that_are_long)
{
	for (unsigned len = CLC_TLVS_MAX; len <= CLC_TLVS_MAX + 1; len++) {
		char hex[2 * (CLC_TLVS_MAX + 1) + 13] = "";
		int n = snprintf(hex, sizeof(hex), "736d727400%02x01%02x", len, len - 2);

		memset(hex + n, 'a', 2 * ((size_t)len - 2));
		struct buf in = with_list(hex);
		if (len == CLC_TLVS_MAX)
			ck_assert_int_eq(expect_ok(&in).proposal.tlvs.unknown, 0);
		else
			expect(&in, -EBADMSG);
	}
}

START_TEST(types_that_are_unknown)
{
	struct buf in = with_list(
	    "736d7274000d"
	    "0102aaaa"
	    "8107"
	    "0414d2cb007109");

	ck_assert_int_eq(expect_ok(&in).proposal.tlvs.client.kind, CLC_CLIENT_V4);
	ck_assert_uint_eq(expect_ok(&in).proposal.tlvs.unknown, 0);
	in = with_list(
	    "736d72740006"
	    "8301aa"
	    "8f01aa");
	ck_assert_uint_eq(expect_ok(&in).proposal.tlvs.unknown, 0x83);
}

/* Another magic, and a list without the feature: somebody else's, and no error. */
START_TEST(lists_of_others)
{
	struct buf in = with_list(lists[0]);

	in.b[LIST_AT] ^= 1;
	ck_assert_int_eq(expect_ok(&in).proposal.tlvs.client.kind, CLC_CLIENT_NONE);
	in.b[LIST_AT] ^= 1;
	in.b[59] &= (uint8_t)~CLC_FEATURE_TLVS;
	ck_assert_int_eq(expect_ok(&in).proposal.tlvs.client.kind, CLC_CLIENT_NONE);
}

START_TEST(tlvs_that_cannot_be_sent)
{
	struct clc_msg m = a_proposal_of(&all[0]);

	REFUSE(m, proposal.tlvs.client.port, 0);
	REFUSE(m, proposal.tlvs.unknown, 0x83);
	REFUSE(m, proposal.ext.features, 0);
	REFUSE(m, proposal.ext.present, false);
	m = a_proposal_of(&all[3]);
	REFUSE(m, proposal.tlvs.dest.port, 0);
	REFUSE(m, proposal.ext.features, 0);
	REFUSE(m, proposal.ext.uses, 0x02);
}

/* Each answer has its own bit, in a byte that others and older smcrds leave 0. */
START_LOOP_TEST(answers_in_a_decline, 0, 16)
{
	struct clc_msg m = { .type = CLC_DECLINE,
		.version = (uint8_t)(1 + (_i >> 3)),
		.decline = {
		    .client_used = (_i & 1) != 0, .dest_used = (_i & 2) != 0, .dest_refused = (_i & 4) != 0 } };
	struct buf in = encoded(&m);

	ck_assert_uint_eq(in.b[23], _i & 7);
	in.b[23] |= 0xf8;
	m = expect_ok(&in);
	ck_assert(m.decline.client_used == ((_i & 1) != 0));
	ck_assert(m.decline.dest_used == ((_i & 2) != 0));
	ck_assert(m.decline.dest_refused == ((_i & 4) != 0));
	in.b[23] &= 7;
	m = expect_ok(&in);
	check_again(&in, &m);
}

/* The byte of an Accept behind that of the server, which older smcrds leave 0. */
START_TEST(answer_in_an_accept)
{
	struct clc_msg m = { .type = CLC_ACCEPT,
		.version = 1,
		.accept = { .rmbe_idx = 1, .size_code = 1, .mtu_code = 3, .ext = an_ext } };
	struct buf in = encoded(&m);
	ck_assert_uint_eq(in.b[85], 0);
	ck_assert_uint_eq(expect_ok(&in).accept.ext.uses, 0);
	in.b[85] = 0xff;
	ck_assert_uint_eq(expect_ok(&in).accept.ext.uses, CLC_USES_DEST);
	in.b[85] = CLC_USES_DEST;
	m = expect_ok(&in);
	check_again(&in, &m);
}
