/* GRANT and OPEN, written by hand from the table of doc/open.md. */
#include "wire/open.h"

#include <errno.h>

#include "hex.h"
#include "unit.h"
#include "wire/llc.h"

static const struct {
	const char *name, *hex;
	struct open_msg msg;
} golden[] = {
	{ "GRANT of one",
	    "812c0100"
	    "01020304"
	    "05060708"
	    "090a0b0c0d0e0f10"
	    "1102"
	    "00000000000000000000000000000000000000000000",
	    { .type = OPEN_GRANT,
	        .cnt = 1,
	        .granted = { { .token = 0x01020304,
	            .rkey = 0x05060708,
	            .vaddr = 0x090a0b0c0d0e0f10,
	            .idx = 0x11,
	            .size_code = 2 } } } },
	{ "GRANT of two",
	    "812c0200"
	    "01020304"
	    "05060708"
	    "090a0b0c0d0e0f10"
	    "1102"
	    "21222324"
	    "25262728"
	    "292a2b2c2d2e2f30"
	    "ff0f"
	    "00000000",
	    { .type = OPEN_GRANT,
	        .cnt = 2,
	        .granted = { { .token = 0x01020304,
	                         .rkey = 0x05060708,
	                         .vaddr = 0x090a0b0c0d0e0f10,
	                         .idx = 0x11,
	                         .size_code = 2 },
	            { .token = 0x21222324,
	                .rkey = 0x25262728,
	                .vaddr = 0x292a2b2c2d2e2f30,
	                .idx = 0xff,
	                .size_code = 15 } } } },
	{ "OPEN",
	    "822c0700"
	    "01020304"
	    "05060708"
	    "11121314"
	    "15161718"
	    "191a1b1c1d1e1f20"
	    "2103"
	    "0904"
	    "32333435"
	    "3637"
	    "38393a3b"
	    "0000",
	    { .type = OPEN_CONN,
	        .cnt = 7,
	        .granted_token = 0x01020304,
	        .ticket = 0x05060708,
	        .own = { .token = 0x11121314,
	            .rkey = 0x15161718,
	            .vaddr = 0x191a1b1c1d1e1f20,
	            .idx = 0x21,
	            .size_code = 3 },
	        .hops = 9,
	        .origin = 0x32333435,
	        .client = { .kind = CLC_CLIENT_V4, .port = 0x3637, .value = 0x38393a3b } } },
};

#define GOLDEN (int)(sizeof(golden) / sizeof(golden[0]))
enum { GRANT_ONE, GRANT_TWO, OPEN };

static void
bytes_of(int n, uint8_t b[OPEN_LEN])
{
	ck_assert_uint_eq(unhex(golden[n].hex, b, OPEN_LEN), OPEN_LEN);
}

static void
expect(const uint8_t *b, size_t len, int err)
{
	struct open_msg out, before;

	memset(&out, 0xa5, sizeof(out));
	before = out;
	ck_assert_int_eq(open_decode((struct span){ b, len }, &out), err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static void
expect_encode_fails(const struct open_msg *m, size_t cap, int err)
{
	uint8_t b[OPEN_LEN], before[OPEN_LEN];

	memset(b, 0x5a, sizeof(b));
	memcpy(before, b, sizeof(b));
	ck_assert_int_eq(open_encode(m, b, cap), err);
	ck_assert_mem_eq(b, before, sizeof(b));
}

static void
expect_elem(const struct open_elem *e, const struct open_elem *want)
{
	ck_assert_uint_eq(e->token, want->token);
	ck_assert_uint_eq(e->rkey, want->rkey);
	ck_assert_uint_eq(e->vaddr, want->vaddr);
	ck_assert_uint_eq(e->idx, want->idx);
	ck_assert_uint_eq(e->size_code, want->size_code);
}

START_LOOP_TEST(every_field_at_its_place, 0, GOLDEN)
{
	const struct open_msg *want = &golden[_i].msg;
	uint8_t b[OPEN_LEN], made[OPEN_LEN];
	struct open_msg m;

	bytes_of(_i, b);
	ck_assert_int_eq(open_encode(want, made, sizeof(made)), OPEN_LEN);
	ck_assert_mem_eq(made, b, OPEN_LEN);
	ck_assert_int_eq(open_decode((struct span){ b, OPEN_LEN }, &m), OPEN_LEN);
	ck_assert_uint_eq(m.type, want->type);
	ck_assert_uint_eq(m.cnt, want->cnt);
	for (unsigned i = 0; i < OPEN_GRANT_ELEMS; i++)
		expect_elem(&m.granted[i], &want->granted[i]);
	ck_assert_uint_eq(m.granted_token, want->granted_token);
	ck_assert_uint_eq(m.ticket, want->ticket);
	expect_elem(&m.own, &want->own);
	ck_assert_uint_eq(m.hops, want->hops);
	ck_assert_uint_eq(m.origin, want->origin);
	ck_assert_uint_eq(m.client.kind, want->client.kind);
	ck_assert_uint_eq(m.client.port, want->client.port);
	ck_assert_uint_eq(m.client.value, want->client.value);
}

START_LOOP_TEST(every_other_length, 0, GOLDEN)
{
	uint8_t b[OPEN_LEN + 1] = { 0 };

	bytes_of(_i, b);
	expect(b, 0, -EOPNOTSUPP);
	for (size_t len = 1; len <= OPEN_LEN + 1; len++)
		if (len != OPEN_LEN)
			expect(b, len, -EBADMSG);
	for (unsigned n = 0; n < 256; n++) {
		b[1] = (uint8_t)n;
		if (n != OPEN_LEN)
			expect(b, OPEN_LEN, -EBADMSG);
	}
}

START_TEST(other_types_are_other_messages)
{
	uint8_t b[OPEN_LEN];

	bytes_of(OPEN, b);
	for (unsigned type = 0; type < 256; type++) {
		b[0] = (uint8_t)type;
		if (type != 0x81 && type != 0x82)
			expect(b, OPEN_LEN, -EOPNOTSUPP);
	}
}

/* RFC 7609 A.3: an LLC type whose two high bits are 10 is ignored by who does not know it. */
START_LOOP_TEST(who_does_not_know_them_ignores_them, 0, GOLDEN)
{
	uint8_t b[OPEN_LEN];
	struct llc_msg m;

	bytes_of(_i, b);
	ck_assert_uint_eq(b[0] & 0xc0, 0x80);
	ck_assert_int_eq(llc_decode((struct span){ b, sizeof(b) }, LLC_VERSION, &m), -EOPNOTSUPP);
	ck_assert_int_eq(llc_decode((struct span){ b, sizeof(b) }, LLC_VERSION_2, &m), -EOPNOTSUPP);
}

START_LOOP_TEST(a_grant_has_one_element_or_two, 0, 256)
{
	uint8_t b[OPEN_LEN];
	struct open_msg m;

	bytes_of(GRANT_TWO, b);
	b[2] = (uint8_t)_i;
	if (_i != 1 && _i != 2)
		expect(b, sizeof(b), -EBADMSG);
	else
		ck_assert_int_eq(open_decode((struct span){ b, sizeof(b) }, &m), OPEN_LEN);
	/* An OPEN has any number left. */
	bytes_of(OPEN, b);
	b[2] = (uint8_t)_i;
	ck_assert_int_eq(open_decode((struct span){ b, sizeof(b) }, &m), OPEN_LEN);
	ck_assert_uint_eq(m.cnt, (unsigned)_i);
}

/* What is wrong with an element at its offset, in each place where one is. */
static const struct {
	int golden;
	unsigned at;
} places[] = { { GRANT_ONE, 4 }, { GRANT_TWO, 4 }, { GRANT_TWO, 22 }, { OPEN, 12 } };

START_LOOP_TEST(an_element_has_a_token_an_index_and_a_size, 0, 4)
{
	int n = places[_i].golden;
	unsigned at = places[_i].at;
	uint8_t b[OPEN_LEN];
	struct open_msg m;

	bytes_of(n, b);
	memset(b + at, 0, 4);
	expect(b, sizeof(b), -EBADMSG);
	bytes_of(n, b);
	b[at + 16] = 0;
	expect(b, sizeof(b), -EBADMSG);
	for (unsigned code = 0; code < 256; code++) {
		bytes_of(n, b);
		b[at + 17] = (uint8_t)code;
		if (code > 15)
			expect(b, sizeof(b), -EBADMSG);
		else
			ck_assert_int_eq(open_decode((struct span){ b, sizeof(b) }, &m), OPEN_LEN);
	}
}

START_LOOP_TEST(reserved_bytes_do_not_count, 0, GOLDEN)
{
	static const struct {
		unsigned from, to;
	} reserved[][3] = {
		[GRANT_ONE] = { { 3, 4 }, { 22, 44 } },
		[GRANT_TWO] = { { 3, 4 }, { 40, 44 } },
		[OPEN] = { { 3, 4 }, { 42, 44 } },
	};
	uint8_t b[OPEN_LEN], again[OPEN_LEN], want[OPEN_LEN];
	struct open_msg m;

	bytes_of(_i, b);
	bytes_of(_i, want);
	for (unsigned k = 0; k < 3; k++)
		memset(b + reserved[_i][k].from, 0xff, reserved[_i][k].to - reserved[_i][k].from);
	ck_assert_int_eq(open_decode((struct span){ b, sizeof(b) }, &m), OPEN_LEN);
	ck_assert_int_eq(open_encode(&m, again, sizeof(again)), OPEN_LEN);
	ck_assert_mem_eq(again, want, OPEN_LEN);
}

START_TEST(what_cannot_be_said_is_not_encoded)
{
	struct open_msg m = golden[GRANT_TWO].msg;

	for (size_t cap = 0; cap < OPEN_LEN; cap++)
		expect_encode_fails(&m, cap, -ENOSPC);
	m.cnt = 0;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
	m.cnt = 3;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
	m = golden[GRANT_TWO].msg;
	m.granted[1].idx = 0;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
	m = golden[OPEN].msg;
	m.own.token = 0;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
	m = golden[OPEN].msg;
	m.own.size_code = 16;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
	m = golden[OPEN].msg;
	m.type = (enum open_type)0x83;
	expect_encode_fails(&m, OPEN_LEN, -EINVAL);
}

/* Of every kind: only those with room in the message are valid, an IPv4 client only with a port. */
START_LOOP_TEST(kinds_of_clients, 0, 256)
{
	uint8_t b[OPEN_LEN];
	struct open_msg m;

	bytes_of(OPEN, b);
	b[31] = (uint8_t)_i;
	if (_i == CLC_CLIENT_NONE || _i == CLC_CLIENT_UNIX || _i == CLC_CLIENT_V4)
		ck_assert_int_eq(open_decode((struct span){ b, OPEN_LEN }, &m), OPEN_LEN);
	else
		expect(b, OPEN_LEN, -EBADMSG);
	memset(b + 36, 0, 2);
	if (_i == CLC_CLIENT_V4)
		expect(b, OPEN_LEN, -EBADMSG);
}

START_TEST(clients_with_room_and_without)
{
	static const struct clc_client all[] = { { .kind = CLC_CLIENT_NONE }, { .kind = CLC_CLIENT_UNIX, .uid = 70000 },
		{ .kind = CLC_CLIENT_V4, .port = 5330, .addr = { 203, 0, 113, 9 } } };
	const struct clc_client v6 = { .kind = CLC_CLIENT_V6, .port = 1, .addr = { 0x20 } };
	struct open_client packed;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		ck_assert(open_client_make(&all[i], &packed));
		const struct clc_client again = open_client_get(&packed);
		ck_assert_mem_eq(&again, &all[i], sizeof(again));
	}
	ck_assert_uint_eq(packed.value, 0xcb007109);
	ck_assert(!open_client_make(&v6, &packed));
}
