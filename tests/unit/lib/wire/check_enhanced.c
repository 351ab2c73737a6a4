#include "wire/enhanced.h"

#include <errno.h>

#include "unit.h"

/* Every flag and every bit of both depths, alone. */
START_TEST(the_block_is_read_by_its_bits)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t word = 1u << bit;
		const uint8_t in[ENHANCED_LEN] = { (uint8_t)(word >> 24), (uint8_t)(word >> 16), (uint8_t)(word >> 8),
			(uint8_t)word };
		struct enhanced e = enhanced_decode(in);

		/* B, C and D without A are ignored (RFC 6581 9.2) */
		ck_assert_uint_eq(e.model, bit == 31 ? ENHANCED_P2P : 0);
		ck_assert_uint_eq(e.ird, bit >= 16 && bit < 30 ? 1u << (bit - 16) : 0);
		ck_assert_uint_eq(e.ord, bit < 14 ? 1u << bit : 0);
	}
}

START_TEST(each_kind_of_rtr_has_its_bit)
{
	static const struct {
		uint8_t bytes[ENHANCED_LEN];
		struct enhanced e;
	} rows[] = {
		{ { 0x00, 0x10, 0x00, 0x08 }, { 0, 16, 8 } },
		{ { 0x80, 0x01, 0x00, 0x02 }, { ENHANCED_P2P, 1, 2 } },
		{ { 0xc0, 0x01, 0x00, 0x02 }, { ENHANCED_P2P | RTR_SEND, 1, 2 } },
		{ { 0x80, 0x01, 0x80, 0x02 }, { ENHANCED_P2P | RTR_WRITE, 1, 2 } },
		{ { 0x80, 0x01, 0x40, 0x02 }, { ENHANCED_P2P | RTR_READ, 1, 2 } },
		{ { 0xff, 0xff, 0xff, 0xff }, { ENHANCED_P2P | RTR_ANY, DEPTH_NONE, DEPTH_NONE } },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct enhanced e = enhanced_decode(rows[k].bytes);
		uint8_t out[ENHANCED_LEN];

		ck_assert_uint_eq(e.model, rows[k].e.model);
		ck_assert_uint_eq(e.ird, rows[k].e.ird);
		ck_assert_uint_eq(e.ord, rows[k].e.ord);
		ck_assert_int_eq(enhanced_encode(&e, out), ENHANCED_LEN);
		ck_assert_mem_eq(out, rows[k].bytes, ENHANCED_LEN);
	}
}

START_TEST(encoder_refuses_values_out_of_range)
{
	static const struct enhanced bad[] = {
		{ 0, 0x4000, 1 },
		{ 0, 1, 0x4000 },
		{ 0, 0xffff, 1 },
		{ 0, 1, 0xffff },
		{ RTR_SEND, 1, 1 },
		{ RTR_WRITE | RTR_READ, 1, 1 },
		{ ENHANCED_P2P | RTR_READ << 1, 1, 1 },
	};

	for (unsigned k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		uint8_t out[ENHANCED_LEN] = { 1, 2, 3, 4 };

		ck_assert_int_eq(enhanced_encode(&bad[k], out), -EINVAL);
		ck_assert_mem_eq(out, ((const uint8_t[]){ 1, 2, 3, 4 }), ENHANCED_LEN);
	}
}
