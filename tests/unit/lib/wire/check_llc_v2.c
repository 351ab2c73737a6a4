/* LLC messages of version 2, in both byte orders of the 16-bit numbers: as Linux writes them on x86, and on s390. */
#include "wire/llc.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

#define ADD_LINK_LEN 72 /* without pairs */
#define CNT_AT 70       /* num_rkeys of ADD LINK */

static const enum llc_type types[] = {
	LLC_CONFIRM_LINK,
	LLC_ADD_LINK,
	LLC_DELETE_LINK,
	LLC_REQUEST_ADD_LINK,
	LLC_CONFIRM_RKEY,
	LLC_TEST_LINK,
	LLC_DELETE_RKEY,
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

static int
decode(const uint8_t *b, size_t len, struct llc_msg *out)
{
	return llc_decode((struct span){ b, len }, LLC_VERSION_2, out);
}

static void
expect(const uint8_t *b, size_t len, int err)
{
	struct llc_msg out, before;

	memset(&out, 0xa5, sizeof(out));
	memcpy(&before, &out, sizeof(out));
	ck_assert_int_eq(decode(b, len, &out), err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static void
expect_encode_fails(const struct llc_msg *m, size_t cap, int err)
{
	uint8_t b[LLC_MAX_SENT_LEN], before[LLC_MAX_SENT_LEN];

	memset(b, 0x5a, sizeof(b));
	memcpy(before, b, sizeof(b));
	ck_assert_int_eq(llc_encode(m, LLC_VERSION_2, b, cap), err);
	ck_assert_mem_eq(b, before, sizeof(b));
}

static void
swap(uint8_t *at)
{
	uint8_t first = at[0];

	at[0] = at[1];
	at[1] = first;
}

/* The same message from a host of the other byte order. */
static void
swap_order(uint8_t *b, size_t len)
{
	swap(b + 1);
	if ((b[0] & 0x0f) == LLC_ADD_LINK && len > LLC_LEN)
		swap(b + CNT_AT);
}

/* These bytes are a message, which encodes to them. */
static struct llc_msg
check_bytes(const uint8_t *b, size_t len)
{
	uint8_t again[LLC_MAX_SENT_LEN];
	struct llc_msg m;

	ck_assert_int_eq(decode(b, len, &m), (int)len);
	ck_assert_int_eq(llc_encode(&m, LLC_VERSION_2, again, sizeof(again)), (int)len);
	ck_assert_mem_eq(again, b, len);
	for (size_t cap = 0; cap < len; cap += cap < LLC_LEN - 1 ? 1 : len - 1 - cap > 0 ? len - 1 - cap : 1)
		expect_encode_fails(&m, cap, -ENOSPC);
	return m;
}

/* The message encodes to the hex (written little-endian) with zeros up to len, and in the other order. */
static void
check_golden(const struct llc_msg *m, size_t len, const char *hex)
{
	uint8_t golden[LLC_MAX_SENT_LEN] = { 0 }, b[LLC_MAX_SENT_LEN];
	struct llc_msg msg = *m, out;

	unhex(hex, golden, sizeof(golden));
	for (int little = 1; little >= 0; little--) {
		msg.little = little;
		ck_assert_int_eq(llc_encode(&msg, LLC_VERSION_2, b, sizeof(b)), (int)len);
		ck_assert_mem_eq(b, golden, len);
		out = check_bytes(golden, len);
		ck_assert_int_eq(out.type, m->type);
		ck_assert_int_eq(out.response, m->response);
		ck_assert_int_eq(out.little, little);
		swap_order(golden, len);
	}
}

static void
check_malformed(size_t len, const char *hex)
{
	uint8_t b[LLC_MAX_LEN] = { 0 };

	unhex(hex, b, sizeof(b));
	expect(b, len, -EBADMSG);
	swap_order(b, len);
	expect(b, len, -EBADMSG);
}

/* -- what Linux sends -- */

static void
check_vector(const char *name, struct span in)
{
	uint8_t s390[VECTOR_MAX_LEN];
	struct llc_msg m = check_bytes(in.ptr, in.len);

	ck_assert_msg(m.little, "%s", name);
	memcpy(s390, in.ptr, in.len);
	swap_order(s390, in.len);
	m = check_bytes(s390, in.len);
	ck_assert_msg(!m.little, "%s", name);
	ck_assert_int_eq(llc_decode(in, LLC_VERSION, &m), -EPROTO);
	ck_assert_uint_eq(llc_version_of(in), LLC_VERSION_2);
}

START_TEST(vectors_decode_and_encode_to_the_same_bytes)
{
	ck_assert_uint_ge(vectors_each_in("smc2.txt", "llc", check_vector), 50);
}

static void
check_version_1(const char *name, struct span in)
{
	ck_assert_msg(in.len == LLC_LEN, "%s", name);
	expect(in.ptr, in.len, -EPROTO);
	ck_assert_uint_eq(llc_version_of(in), LLC_VERSION);
}

START_TEST(messages_of_version_1_are_a_protocol_error)
{
	ck_assert_uint_ge(vectors_each("llc", check_version_1), 50);
}

/* -- the messages -- */

START_TEST(confirm_link)
{
	struct llc_msg m = { .type = LLC_CONFIRM_LINK,
		.confirm_link = { .qpn = 0x010203,
		    .link_num = 4,
		    .link_uid = 0x05060708,
		    .max_links = 2,
		    .max_conns = 255,
		    .no_eyecatcher = true } };

	memset(m.confirm_link.mac, 0xaa, sizeof(m.confirm_link.mac));
	memset(m.confirm_link.gid, 0xbb, sizeof(m.confirm_link.gid));
	check_golden(&m, LLC_LEN,
	    "212c0003"
	    "aaaaaaaaaaaa"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "05060708"
	    "02"
	    "ff");
}

static struct llc_msg
some_add_link(void)
{
	struct llc_msg m = { .type = LLC_ADD_LINK,
		.add_link = { .qpn = 0x010203, .link_num = 4, .mtu_code = 3, .psn = 0x050607, .direct = true } };

	memset(m.add_link.mac, 0xaa, sizeof(m.add_link.mac));
	memset(m.add_link.gid, 0xbb, sizeof(m.add_link.gid));
	memset(m.add_link.client_gid, 0xcc, sizeof(m.add_link.client_gid));
	return m;
}

START_TEST(add_link)
{
	struct llc_rkey_pair pair = { 1, 2, 3 };
	uint8_t pairs[LLC_PAIR_LEN];
	struct llc_msg m = some_add_link();

	llc_pair_put(pairs, 0, &pair);
	m.add_link.pair_cnt = 1;
	m.add_link.pairs = pairs;
	check_golden(&m, ADD_LINK_LEN + LLC_PAIR_LEN,
	    "22580000"
	    "aaaaaaaaaaaa"
	    "0000"
	    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "010203"
	    "04"
	    "03"
	    "050607"
	    "0000000000000000"
	    "80"
	    "00"
	    "cccccccccccccccccccccccccccccccc"
	    "0000000000000000"
	    "0100"
	    "00000001"
	    "00000002"
	    "0000000000000003");
	m.add_link.pairs = NULL;
	expect_encode_fails(&m, LLC_MAX_SENT_LEN, -EINVAL);
}

/* With 124 pairs the length is 0x0808: then the number of pairs has to tell the byte order. */
START_TEST(add_link_of_every_number_of_pairs)
{
	uint8_t pairs[LLC_MAX_PAIRS * LLC_PAIR_LEN], b[LLC_MAX_SENT_LEN];
	struct llc_msg m = some_add_link();

	for (unsigned i = 0; i < LLC_MAX_PAIRS; i++)
		llc_pair_put(pairs, i, &(struct llc_rkey_pair){ i, ~i, (uint64_t)i << 32 });
	m.add_link.pairs = pairs;
	for (unsigned i = 0; i < 2 * (LLC_MAX_PAIRS + 1); i++) {
		unsigned cnt = i / 2;
		size_t len = ADD_LINK_LEN + cnt * LLC_PAIR_LEN;

		m.little = i % 2;
		m.add_link.pair_cnt = (uint8_t)cnt;
		ck_assert_int_eq(llc_encode(&m, LLC_VERSION_2, b, sizeof(b)), (int)len);
		struct llc_msg out = check_bytes(b, len);
		ck_assert_int_eq(out.little, m.little);
		ck_assert_uint_eq(out.add_link.pair_cnt, cnt);
		ck_assert(out.add_link.direct);
		ck_assert_mem_eq(out.add_link.client_gid, m.add_link.client_gid, 16);
		for (unsigned k = 0; k < cnt; k++) {
			struct llc_rkey_pair p = llc_pair_get(out.add_link.pairs, k);

			ck_assert(p.old_rkey == k && p.new_rkey == ~k && p.new_vaddr == (uint64_t)k << 32);
		}
	}
}

/* A rejection echoes the head alone; the reason would lie in the length. */
START_TEST(add_link_rejection)
{
	struct llc_msg m = some_add_link();
	uint8_t b[ADD_LINK_LEN] = { 0 };

	m.response = m.add_link.rejected = true;
	m.add_link.reject_reason = LLC_REJECT_NO_ALT_PATH;
	m.add_link.pair_cnt = 200;
	check_golden(&m, LLC_LEN, "222c00c0 aaaaaaaaaaaa 0000 bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 010203 04 03 050607");
	unhex("222c00c0", b, sizeof(b));
	m = check_bytes(b, LLC_LEN);
	ck_assert(m.add_link.rejected && m.add_link.pair_cnt == 0 && m.add_link.pairs == NULL);
	ck_assert_uint_eq(m.add_link.reject_reason, 0);
	/* A request is none, whatever its flags. */
	check_malformed(LLC_LEN, "222c0040");
	unhex("22480040", b, sizeof(b));
	m = check_bytes(b, ADD_LINK_LEN);
}

/* Linux counts its connections and sends a pair for each RMB in use. A number above 255 is none. */
START_TEST(add_link_with_fewer_pairs_than_it_says)
{
	uint8_t b[ADD_LINK_LEN + LLC_PAIR_LEN] = { 0x22, sizeof(b) };
	uint8_t shorter[ADD_LINK_LEN + LLC_PAIR_LEN - 1] = { 0x22, sizeof(shorter), [CNT_AT] = 1 };

	check_malformed(LLC_LEN, "222c0000");
	check_malformed(LLC_LEN, "222c0080");
	check_malformed(ADD_LINK_LEN - 1, "22470000");
	for (unsigned cnt = 0; cnt < 0x10000; cnt += cnt < 0x200 ? 1 : 0xff) {
		struct llc_msg m;

		b[CNT_AT] = (uint8_t)cnt;
		b[CNT_AT + 1] = (uint8_t)(cnt >> 8);
		if ((cnt & 0xff) != 0 && cnt > 0xff) {
			expect(b, sizeof(b), -EBADMSG);
			continue;
		}
		ck_assert_int_eq(decode(b, sizeof(b), &m), sizeof(b));
		ck_assert_uint_eq(m.add_link.pair_cnt, cnt > 0);
		ck_assert(m.add_link.pairs == (cnt > 0 ? b + ADD_LINK_LEN : NULL));
		ck_assert_int_eq(decode(shorter, sizeof(shorter), &m), sizeof(shorter));
		ck_assert_uint_eq(m.add_link.pair_cnt, 0);
	}
}

START_TEST(request_add_link)
{
	uint8_t gids[LLC_MAX_GIDS][16], b[256];
	struct llc_msg m = { .type = LLC_REQUEST_ADD_LINK, .request_add_link.gids = gids[0] };
	char hex[100];

	for (unsigned i = 0; i < LLC_MAX_GIDS; i++)
		memset(gids[i], (int)i + 1, 16);
	m.request_add_link.gid_cnt = 2;
	check_golden(&m, 60,
	    "253c0000"
	    "0000000000000000000000000000000000000000"
	    "02000000"
	    "01010101010101010101010101010101"
	    "02020202020202020202020202020202");
	/* The answer of a server that makes nothing of it. */
	struct llc_msg no = { .type = LLC_REQUEST_ADD_LINK, .response = true };
	check_golden(&no, LLC_LEN, "252c0080 00");
	for (unsigned cnt = 0; cnt < 256; cnt++) {
		size_t len = 28 + cnt * 16;

		m.request_add_link.gid_cnt = (uint8_t)cnt;
		if (cnt >= 1 && cnt <= LLC_MAX_GIDS) {
			ck_assert_int_eq(llc_encode(&m, LLC_VERSION_2, b, sizeof(b)), (int)len);
			struct llc_msg out = check_bytes(b, len);
			ck_assert_uint_eq(out.request_add_link.gid_cnt, cnt);
			ck_assert_mem_eq(out.request_add_link.gids, gids, cnt * 16);
			b[24]++;
			expect(b, len, -EBADMSG);
			continue;
		}
		expect_encode_fails(&m, LLC_MAX_SENT_LEN, -EINVAL);
		snprintf(hex, sizeof(hex), "259c0000 0000000000000000000000000000000000000000 %02x", cnt);
		check_malformed(28 + LLC_MAX_GIDS * 16, hex);
	}
	ck_assert_int_eq(llc_encode(&m, LLC_VERSION, b, sizeof(b)), -EINVAL);
}

START_TEST(delete_link)
{
	struct llc_msg m = { .type = LLC_DELETE_LINK,
		.response = true,
		.delete_link = { .reason = LLC_DELETE_PROGRAM, .all = true, .orderly = true } };

	check_golden(&m, LLC_LEN, "242c00e0 00 00030000");
}

/* No CONTINUATION follows: more than two other links are malformed. */
START_TEST(confirm_rkey)
{
	static const char two[] =
	    "02000000030000000000000004"
	    "05000000060000000000000007";
	struct llc_msg m = { .type = LLC_CONFIRM_RKEY,
		.confirm_rkey = { .rkey = 1, .vaddr = 2, .others = { { 2, 3, 4 }, { 5, 6, 7 } } } };
	char hex[100];

	for (unsigned cnt = 0; cnt < 256; cnt++) {
		m.confirm_rkey.other_cnt = (uint8_t)cnt;
		snprintf(hex, sizeof(hex), "262c0000 %02x 00000001 0000000000000002 %.*s", cnt,
		    (int)(cnt < 2 ? cnt : 2) * 26, two);
		if (cnt <= 2) {
			check_golden(&m, LLC_LEN, hex);
			continue;
		}
		expect_encode_fails(&m, LLC_LEN, -EINVAL);
		check_malformed(LLC_LEN, hex);
	}
	m.response = m.confirm_rkey.negative = m.confirm_rkey.retry = true;
	m.confirm_rkey.other_cnt = 0;
	check_golden(&m, LLC_LEN, "262c00b0 00 00000001 0000000000000002");
}

START_TEST(delete_rkey)
{
	uint8_t rkeys[LLC_MAX_DELETE_RKEYS_V2 * LLC_RKEY_LEN], b[LLC_MAX_SENT_LEN];
	struct llc_msg m = { .type = LLC_DELETE_RKEY, .little = true, .delete_rkey.rkeys = rkeys };

	for (unsigned i = 0; i < LLC_MAX_DELETE_RKEYS_V2; i++)
		llc_rkey_put(rkeys, i, 0xabcd0000u + i);
	expect_encode_fails(&m, sizeof(b), -EINVAL);
	check_malformed(LLC_LEN, "292c0000 00");
	m.delete_rkey.cnt = 2;
	check_golden(&m, LLC_LEN, "292c0000 02000000 abcd0000 abcd0001");
	m.delete_rkey.cnt = 10;
	check_malformed(LLC_LEN, "292c0000 0a");
	for (unsigned cnt = 1; cnt <= LLC_MAX_DELETE_RKEYS_V2; cnt++) {
		size_t len = cnt <= 9 ? LLC_LEN : 8 + cnt * LLC_RKEY_LEN;

		m.delete_rkey.cnt = (uint8_t)cnt;
		ck_assert_int_eq(llc_encode(&m, LLC_VERSION_2, b, sizeof(b)), (int)len);
		struct llc_msg out = check_bytes(b, len);
		ck_assert(out.little);
		ck_assert_uint_eq(out.delete_rkey.cnt, cnt);
		ck_assert_mem_eq(out.delete_rkey.rkeys, rkeys, cnt * LLC_RKEY_LEN);
		ck_assert_uint_eq(llc_rkey_get(out.delete_rkey.rkeys, cnt - 1), 0xabcd0000u + cnt - 1);
	}
	m.delete_rkey.rkeys = NULL;
	expect_encode_fails(&m, sizeof(b), -EINVAL);
}

/* 44 bytes for any number of keys, and zeros in their place; an echo of the request becomes one. */
START_TEST(delete_rkey_response)
{
	uint8_t rkeys[LLC_MAX_DELETE_RKEYS_V2 * LLC_RKEY_LEN] = { 1 }, b[LLC_LEN] = { 0 };
	struct llc_msg m = { .type = LLC_DELETE_RKEY,
		.response = true,
		.delete_rkey = { .cnt = 255, .error_mask = 0xff, .invalid_cnt = 7, .rkeys = rkeys, .negative = true } };

	check_golden(&m, LLC_LEN, "292c00a0 ff 07 0000 00000000");
	unhex("292c0080 01 00 0000 12345678", b, sizeof(b));
	ck_assert_int_eq(decode(b, sizeof(b), &m), LLC_LEN);
	ck_assert_uint_eq(m.delete_rkey.cnt, 1);
	ck_assert_ptr_null(m.delete_rkey.rkeys);
}

START_TEST(test_link)
{
	struct llc_msg m = { .type = LLC_TEST_LINK, .response = true };

	memcpy(m.test_link.user_data, "0123456789abcdef", LLC_TEST_LEN);
	check_golden(&m, LLC_LEN, "272c0080 30313233343536373839616263646566");
}

/* -- the header -- */

static size_t
least_of(enum llc_type type, uint8_t *b)
{
	b[0] = (uint8_t)(0x20 | type);
	b[4] = type == LLC_DELETE_RKEY;
	b[24] = type == LLC_REQUEST_ADD_LINK;
	return type == LLC_ADD_LINK ? ADD_LINK_LEN : LLC_LEN;
}

/* It has to be that of the Send in one of the orders. */
START_TEST(wrong_length_is_malformed)
{
	for (size_t t = 0; t < N_TYPES; t++) {
		uint8_t b[LLC_MAX_LEN] = { 0 };
		size_t least = least_of(types[t], b);

		for (unsigned said = 0; said < 0x10000; said++) {
			struct llc_msg m;

			b[1] = (uint8_t)(said >> 8);
			b[2] = (uint8_t)said;
			if (said == least || said == least << 8) {
				ck_assert_int_eq(decode(b, least, &m), (int)least);
				ck_assert_int_eq(m.little, said != least);
			} else {
				expect(b, least, -EBADMSG);
			}
		}
		for (size_t len = 1; len < least; len++) {
			b[1] = (uint8_t)len;
			b[2] = 0;
			expect(b, len, -EBADMSG);
		}
	}
	expect(NULL, 0, -EBADMSG);
}

/* What a later release may add is skipped, as reserved bytes are. */
START_TEST(what_follows_the_known_fields_is_ignored)
{
	for (size_t t = 0; t < N_TYPES; t++) {
		uint8_t b[LLC_MAX_LEN + 1] = { 0 };
		size_t least = least_of(types[t], b);
		struct llc_msg m;

		memset(b + least, 0xff, sizeof(b) - least);
		for (size_t len = least; len <= LLC_MAX_LEN; len++) {
			b[1] = (uint8_t)(len >> 8);
			b[2] = (uint8_t)len;
			ck_assert_int_eq(decode(b, len, &m), (int)len);
			ck_assert(!m.little || b[1] == b[2]);
		}
		b[1] = LLC_MAX_LEN >> 8;
		b[2] = 1;
		expect(b, LLC_MAX_LEN + 1, -EBADMSG);
	}
}

static bool
is_known(unsigned type)
{
	for (size_t t = 0; t < N_TYPES; t++)
		if ((0x20u | types[t]) == type)
			return true;
	return false;
}

START_TEST(unknown_types)
{
	struct llc_msg m = { .type = LLC_ADD_LINK_CONT };

	for (unsigned type = 0; type < 256; type++) {
		uint8_t b[LLC_LEN] = { [0] = (uint8_t)type, [1] = LLC_LEN };
		int err = (type & 0xc0) == 0x80 ? -EOPNOTSUPP : -EPROTO;

		if (is_known(type))
			continue;
		expect(b, LLC_LEN, err);
		expect(b, 1, err);
	}
	ck_assert_uint_eq(llc_version_of((struct span){ NULL, 0 }), LLC_VERSION);
	expect_encode_fails(&m, LLC_MAX_SENT_LEN, -EINVAL);
	m = (struct llc_msg){ .type = LLC_CONFIRM_RKEY_CONT, .confirm_rkey_cont.left_cnt = 1 };
	expect_encode_fails(&m, LLC_MAX_SENT_LEN, -EINVAL);
}
