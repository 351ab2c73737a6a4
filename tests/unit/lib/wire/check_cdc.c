#include "wire/cdc.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

static void
expect(const uint8_t *b, size_t len, int err)
{
	struct cdc_msg out;

	memset(&out, 0xa5, sizeof(out));
	struct cdc_msg before = out;
	ck_assert_int_eq(cdc_decode((struct span){ b, len }, &out), err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static void
expect_encode_fails(const struct cdc_msg *m, size_t cap, int err)
{
	uint8_t b[CDC_LEN], before[CDC_LEN];

	memset(b, 0x5a, sizeof(b));
	memcpy(before, b, sizeof(b));
	ck_assert_int_eq(cdc_encode(m, b, cap), err);
	ck_assert_mem_eq(b, before, sizeof(b));
}

static void
check_vector(const char *name, struct span in)
{
	uint8_t again[CDC_LEN];
	struct cdc_msg m;

	ck_assert_msg(cdc_decode(in, &m) == CDC_LEN, "%s", name);
	ck_assert_int_eq(cdc_encode(&m, again, sizeof(again)), CDC_LEN);
	ck_assert_mem_eq(again, in.ptr, CDC_LEN);
}

START_TEST(vectors_decode_and_encode_to_the_same_bytes)
{
	ck_assert_uint_ge(vectors_each("cdc", check_vector), 40);
}

static const struct cdc_msg all_fields = {
	.seq = 0x0102,
	.token = 0x03040506,
	.prod = { 0x0708, 0x090a0b0c },
	.cons = { 0x0d0e, 0x0f101112 },
	.prod_flags = CDC_PROD_FLAGS,
	.conn_flags = CDC_CONN_FLAGS,
};

static const char all_fields_hex[] =
    "fe2c0102"
    "03040506"
    "00000708"
    "090a0b0c"
    "00000d0e"
    "0f101112"
    "fef8"
    "000000000000000000000000000000000000";

START_TEST(every_field_at_its_place)
{
	uint8_t b[CDC_LEN], golden[CDC_LEN];
	struct cdc_msg m;

	ck_assert_uint_eq(unhex(all_fields_hex, golden, sizeof(golden)), CDC_LEN);
	ck_assert_int_eq(cdc_encode(&all_fields, b, sizeof(b)), CDC_LEN);
	ck_assert_mem_eq(b, golden, CDC_LEN);
	ck_assert_int_eq(cdc_decode((struct span){ b, CDC_LEN }, &m), CDC_LEN);
	ck_assert_uint_eq(m.seq, all_fields.seq);
	ck_assert_uint_eq(m.token, all_fields.token);
	ck_assert_uint_eq(m.prod.wrap, all_fields.prod.wrap);
	ck_assert_uint_eq(m.prod.count, all_fields.prod.count);
	ck_assert_uint_eq(m.cons.wrap, all_fields.cons.wrap);
	ck_assert_uint_eq(m.cons.count, all_fields.cons.count);
	ck_assert_uint_eq(m.prod_flags, CDC_PROD_FLAGS);
	ck_assert_uint_eq(m.conn_flags, CDC_CONN_FLAGS);
}

START_TEST(reserved_bits_are_ignored)
{
	uint8_t b[CDC_LEN];
	struct cdc_msg m;

	ck_assert_int_eq(cdc_encode(&all_fields, b, sizeof(b)), CDC_LEN);
	b[8] = b[9] = b[16] = b[17] = 0xff;
	memset(b + 24, 0xff, CDC_LEN - 24);
	ck_assert_int_eq(cdc_decode((struct span){ b, CDC_LEN }, &m), CDC_LEN);
	ck_assert_uint_eq(m.prod.wrap, all_fields.prod.wrap);
	ck_assert_uint_eq(m.prod_flags, CDC_PROD_FLAGS);
	ck_assert_uint_eq(m.conn_flags, CDC_CONN_FLAGS);
}

START_TEST(wrong_length_or_type_is_malformed)
{
	static const uint8_t lens[] = { 0, 43, 45, 0xff };
	uint8_t b[CDC_LEN + 1] = { 0 };

	ck_assert_int_eq(cdc_encode(&all_fields, b, sizeof(b)), CDC_LEN);
	for (size_t len = 0; len < CDC_LEN; len++)
		expect(b, len, -EBADMSG);
	expect(b, CDC_LEN + 1, -EBADMSG);
	expect(NULL, 0, -EBADMSG);
	for (size_t i = 0; i < sizeof(lens); i++) {
		b[1] = lens[i];
		expect(b, CDC_LEN, -EBADMSG);
	}
	b[1] = CDC_LEN;
	for (unsigned type = 0; type < CDC_TYPE; type++) {
		b[0] = (uint8_t)type;
		expect(b, CDC_LEN, -EBADMSG);
	}
}

START_TEST(encoder_refuses_unknown_flags_and_small_buffers)
{
	struct cdc_msg m = all_fields;

	for (size_t cap = 0; cap < CDC_LEN; cap++)
		expect_encode_fails(&m, cap, -ENOSPC);
	for (unsigned bit = 1; bit < 0x100; bit <<= 1) {
		m = all_fields;
		m.prod_flags = (uint8_t)bit;
		if ((bit & CDC_PROD_FLAGS) == 0)
			expect_encode_fails(&m, CDC_LEN, -EINVAL);
		m.prod_flags = 0;
		m.conn_flags = (uint8_t)bit;
		if ((bit & CDC_CONN_FLAGS) == 0)
			expect_encode_fails(&m, CDC_LEN, -EINVAL);
	}
}
