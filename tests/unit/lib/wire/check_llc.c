#include "wire/llc.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

static const enum llc_type types[] = {
	LLC_CONFIRM_LINK,
	LLC_ADD_LINK,
	LLC_ADD_LINK_CONT,
	LLC_DELETE_LINK,
	LLC_CONFIRM_RKEY,
	LLC_TEST_LINK,
	LLC_CONFIRM_RKEY_CONT,
	LLC_DELETE_RKEY,
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

static int
decode(const uint8_t *b, size_t len, struct llc_msg *out)
{
	return llc_decode((struct span){ b, len }, LLC_VERSION, out);
}

static void
expect(const uint8_t *b, size_t len, int err)
{
	struct llc_msg out;

	memset(&out, 0xa5, sizeof(out));
	struct llc_msg before = out;
	ck_assert_int_eq(decode(b, len, &out), err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static struct llc_msg
expect_ok(const char *hex)
{
	uint8_t b[LLC_LEN] = { 0 };
	struct llc_msg m;

	unhex(hex, b, sizeof(b));
	ck_assert_int_eq(decode(b, LLC_LEN, &m), LLC_LEN);
	return m;
}

static void
expect_encode_fails(const struct llc_msg *m, size_t cap, int err)
{
	uint8_t b[LLC_LEN], before[LLC_LEN];

	memset(b, 0x5a, sizeof(b));
	memcpy(before, b, sizeof(b));
	ck_assert_int_eq(llc_encode(m, LLC_VERSION, b, cap), err);
	ck_assert_mem_eq(b, before, sizeof(b));
}

/* The message encodes to the hex, zeros behind it, and comes back the same. */
static void
check_golden(const struct llc_msg *m, const char *hex)
{
	uint8_t golden[LLC_LEN] = { 0 }, b[LLC_LEN], again[LLC_LEN];
	struct llc_msg out;

	unhex(hex, golden, sizeof(golden));
	ck_assert_int_eq(llc_encode(m, LLC_VERSION, b, sizeof(b)), LLC_LEN);
	ck_assert_mem_eq(b, golden, LLC_LEN);
	ck_assert_int_eq(decode(b, LLC_LEN, &out), LLC_LEN);
	ck_assert_int_eq(out.type, m->type);
	ck_assert_int_eq(out.response, m->response);
	ck_assert_int_eq(llc_encode(&out, LLC_VERSION, again, sizeof(again)), LLC_LEN);
	ck_assert_mem_eq(again, golden, LLC_LEN);
	for (size_t cap = 0; cap < LLC_LEN; cap++)
		expect_encode_fails(m, cap, -ENOSPC);
}

/* Every value of a count: from least to most the message is head, count, tail, and as many of the items (of item_len
 * digits, `fit` of which have room); any other count is refused in both directions. */
static void
each_count(struct llc_msg *m, uint8_t *count, unsigned least, unsigned most, const char *head, const char *tail,
    const char *items, unsigned item_len, unsigned fit)
{
	char hex[100];

	for (unsigned cnt = 0; cnt < 256; cnt++) {
		uint8_t b[LLC_LEN] = { 0 };

		*count = (uint8_t)cnt;
		snprintf(hex, sizeof(hex), "%s%02x%s%.*s", head, cnt, tail, (int)((cnt < fit ? cnt : fit) * item_len),
		    items);
		if (cnt >= least && cnt <= most) {
			check_golden(m, hex);
			continue;
		}
		expect_encode_fails(m, LLC_LEN, -EINVAL);
		unhex(hex, b, sizeof(b));
		expect(b, LLC_LEN, -EBADMSG);
	}
}

static void
check_vector(const char *name, struct span in)
{
	uint8_t again[LLC_LEN];
	struct llc_msg m;

	ck_assert_msg(llc_decode(in, LLC_VERSION, &m) == LLC_LEN, "%s", name);
	ck_assert_int_eq(llc_encode(&m, LLC_VERSION, again, sizeof(again)), LLC_LEN);
	ck_assert_msg(memcmp(again, in.ptr, LLC_LEN) == 0, "%s", name);
}

START_TEST(vectors_decode_and_encode_to_the_same_bytes)
{
	ck_assert_uint_ge(vectors_each("llc", check_vector), 50);
}

START_TEST(confirm_link)
{
	struct llc_msg m = { .type = LLC_CONFIRM_LINK,
		.response = true,
		.confirm_link = {
		    .qpn = 0x010203, .link_num = 4, .link_uid = 0x05060708, .max_links = 2, .no_eyecatcher = true } };
	struct llc_confirm_link *l = &m.confirm_link;

	memset(l->mac, 0xaa, sizeof(l->mac));
	memset(l->gid, 0xbb, sizeof(l->gid));
	check_golden(&m,
	    "012c0083"
	    "aaaaaaaaaaaa"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "05060708"
	    "02");
	l->no_eyecatcher = m.response = false;
	check_golden(&m,
	    "012c0000"
	    "aaaaaaaaaaaa"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "05060708"
	    "02");
	m = expect_ok("012c0001");
	ck_assert(m.confirm_link.no_eyecatcher);
	m.confirm_link.qpn = 0x1000000;
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
}

START_TEST(add_link)
{
	struct llc_msg m = { .type = LLC_ADD_LINK,
		.response = true,
		.add_link = { .qpn = 0x010203,
		    .link_num = 4,
		    .mtu_code = 3,
		    .psn = 0x050607,
		    .rejected = true,
		    .reject_reason = LLC_REJECT_BAD_MTU } };
	struct llc_add_link *a = &m.add_link;

	memset(a->mac, 0xaa, sizeof(a->mac));
	memset(a->gid, 0xbb, sizeof(a->gid));
	check_golden(&m,
	    "022c02c0"
	    "aaaaaaaaaaaa"
	    "0000"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "03"
	    "050607");
	a->rejected = m.response = false; /* then the reason is not sent */
	check_golden(&m,
	    "022c0000"
	    "aaaaaaaaaaaa"
	    "0000"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "03"
	    "050607");
	struct llc_msg ok = m;
	m = expect_ok("022cf240 000000000000 ffff 00000000000000000000000000000000 000000 00 f9");
	ck_assert(m.add_link.rejected);
	ck_assert_uint_eq(m.add_link.reject_reason, 2);
	ck_assert_uint_eq(m.add_link.mtu_code, 9); /* for the engine to reject */
	m = ok;
	m.add_link.psn = 0x1000000;
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
	m = ok;
	m.add_link.mtu_code = 16;
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
	m = ok;
	m.add_link.reject_reason = 16;
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
}

START_TEST(add_link_cont)
{
	static const char two[] =
	    "00000001"
	    "00000002"
	    "0000000000000003"
	    "00000004"
	    "00000005"
	    "0000000000000006";
	struct llc_msg m = { .type = LLC_ADD_LINK_CONT,
		.add_link_cont = { .link_num = 9, .pairs = { { 1, 2, 3 }, { 4, 5, 6 } } } };
	char hex[100];

	for (unsigned left = 0; left < 256; left++) {
		m.add_link_cont.left_cnt = (uint8_t)left;
		snprintf(hex, sizeof(hex),
		    "032c0000"
		    "09%02x0000"
		    "%.*s",
		    left, left >= 2 ? 64 : (int)left * 32, two);
		check_golden(&m, hex);
	}
	m.response = true;
	m.add_link_cont.left_cnt = 0;
	check_golden(&m, "032c0080 09");
	m = expect_ok("032c0000 0901ffff ffffffffffffffffffffffffffffffff ffffffffffffffff");
	ck_assert_uint_eq(m.add_link_cont.pairs[0].old_rkey, UINT32_MAX);
	ck_assert_uint_eq(m.add_link_cont.pairs[1].old_rkey, 0);
}

START_TEST(delete_link)
{
	struct llc_msg m = { .type = LLC_DELETE_LINK,
		.delete_link = { .link_num = 3, .reason = LLC_DELETE_LOST_PATH } };

	check_golden(&m, "042c0000 03 00010000");
	m.delete_link.orderly = true;
	check_golden(&m, "042c0020 03 00010000");
	m.delete_link.all = true;
	m.delete_link.link_num = 0;
	m.delete_link.reason = LLC_DELETE_UNKNOWN_GROUP;
	m.response = true;
	check_golden(&m, "042c00e0 00 00200000");
}

START_TEST(confirm_rkey)
{
	struct llc_msg m = { .type = LLC_CONFIRM_RKEY,
		.confirm_rkey = { .rkey = 1, .vaddr = 2, .others = { { 2, 3, 4 }, { 5, 6, 7 } } } };

	each_count(&m, &m.confirm_rkey.other_cnt, 0, LLC_MAX_LINKS - 1, "062c0000", "000000010000000000000002",
	    "02000000030000000000000004"
	    "05000000060000000000000007",
	    26, 2);
	m.confirm_rkey.other_cnt = 0;
	m.confirm_rkey.negative = m.response = true;
	check_golden(&m, "062c00a0 00 00000001 0000000000000002");
	m.confirm_rkey.retry = true;
	check_golden(&m, "062c00b0 00 00000001 0000000000000002");
}

START_TEST(confirm_rkey_cont)
{
	struct llc_msg m = { .type = LLC_CONFIRM_RKEY_CONT,
		.confirm_rkey_cont = { .others = { { 2, 3, 4 }, { 5, 6, 7 }, { 8, 9, 10 } } } };

	each_count(&m, &m.confirm_rkey_cont.left_cnt, 1, LLC_MAX_LINKS - 1, "082c0000", "",
	    "02000000030000000000000004"
	    "05000000060000000000000007"
	    "0800000009000000000000000a",
	    26, 3);
	m.confirm_rkey_cont.left_cnt = 1;
	m.confirm_rkey_cont.negative = m.response = true;
	check_golden(&m, "082c00a0 01 02 00000003 0000000000000004");
}

START_TEST(delete_rkey)
{
	uint8_t rkeys[LLC_MAX_DELETE_RKEYS * LLC_RKEY_LEN];
	struct llc_msg m = { .type = LLC_DELETE_RKEY, .delete_rkey = { .rkeys = rkeys } };

	for (unsigned i = 0; i < LLC_MAX_DELETE_RKEYS; i++)
		llc_rkey_put(rkeys, i, i + 1);
	each_count(&m, &m.delete_rkey.cnt, 1, LLC_MAX_DELETE_RKEYS, "092c0000", "000000",
	    "0000000100000002000000030000000400000005000000060000000700000008", 8, 8);
	m.delete_rkey.cnt = 2;
	m.delete_rkey.error_mask = 0x40;
	m.delete_rkey.negative = m.response = true;
	check_golden(&m, "092c00a0 02400000 0000000100000002");
	m.delete_rkey.error_mask = 0x20; /* the third of two */
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
	m = expect_ok("092c00a0 02ff0000 0000000100000002");
	ck_assert_uint_eq(m.delete_rkey.error_mask, 0xc0);
	m = expect_ok("092c00a0 08ff0000 0000000100000002");
	ck_assert_uint_eq(m.delete_rkey.error_mask, 0xff);
}

START_TEST(test_link)
{
	struct llc_msg m = { .type = LLC_TEST_LINK, .response = true };

	memcpy(m.test_link.user_data, "0123456789abcdef", LLC_TEST_LEN);
	check_golden(&m, "072c0080 30313233343536373839616263646566");
}

START_TEST(wrong_length_is_malformed)
{
	static const uint8_t lens[] = { 0, 43, 45, 0xff };

	for (size_t t = 0; t < N_TYPES; t++) {
		uint8_t b[LLC_LEN + 1] = { [0] = (uint8_t)types[t], [1] = LLC_LEN, [4] = 1 };
		struct llc_msg m;

		ck_assert_int_eq(decode(b, LLC_LEN, &m), LLC_LEN);
		for (size_t len = 0; len < LLC_LEN; len++)
			expect(b, len, -EBADMSG);
		expect(b, LLC_LEN + 1, -EBADMSG);
		for (size_t i = 0; i < sizeof(lens); i++) {
			b[1] = lens[i];
			expect(b, LLC_LEN, -EBADMSG);
		}
	}
	expect(NULL, 0, -EBADMSG);
}

static bool
is_known(unsigned type)
{
	for (size_t t = 0; t < N_TYPES; t++)
		if ((unsigned)types[t] == type)
			return true;
	return false;
}

/* The two high bits say what to do with a type that we do not know (A.3). */
START_TEST(unknown_types)
{
	for (unsigned type = 0; type < 256; type++) {
		uint8_t b[LLC_LEN] = { [0] = (uint8_t)type, [1] = LLC_LEN };
		int err = (type & 0xc0) == 0x80 ? -EOPNOTSUPP : -EPROTO;

		if (is_known(type))
			continue;
		expect(b, LLC_LEN, err);
		expect(b, 1, err);
	}
}

START_TEST(other_versions_are_not_spoken)
{
	uint8_t b[LLC_LEN] = { [0] = LLC_TEST_LINK, [1] = LLC_LEN };
	struct llc_msg m = { .type = LLC_TEST_LINK };

	ck_assert_int_eq(llc_decode((struct span){ b, LLC_LEN }, 0, &m), -ENOTSUP);
	ck_assert_int_eq(llc_decode((struct span){ b, LLC_LEN }, 3, &m), -ENOTSUP);
	ck_assert_int_eq(llc_encode(&m, 0, b, LLC_LEN), -ENOTSUP);
	ck_assert_int_eq(llc_encode(&m, 3, b, LLC_LEN), -ENOTSUP);
	m.type = LLC_REQUEST_ADD_LINK; /* version 2 */
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
	m.type = (enum llc_type)0xfe;
	expect_encode_fails(&m, LLC_LEN, -EINVAL);
}
