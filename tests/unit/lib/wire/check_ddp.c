#include "wire/ddp.h"

#include "unit.h"
#include "vectors.h"

#define FPDU_LEN_LEN 2
#define FPDU_CRC_LEN 4

/* Each vector is an FPDU: its DDP header decodes, and encodes to the same bytes. */
static void
check_vector(const char *name, struct span fpdu)
{
	struct span ulpdu = { fpdu.ptr + FPDU_LEN_LEN, (size_t)fpdu.ptr[0] << 8 | fpdu.ptr[1] };
	struct ddp_hdr h;
	uint8_t out[DDP_HDR_MAX];
	int n = ddp_decode(ulpdu, &h);

	ck_assert_msg(n == DDP_TAGGED_LEN || n == DDP_UNTAGGED_LEN, "%s", name);
	ck_assert_uint_eq(h.version, DDP_VERSION);
	ck_assert_uint_eq(ddp_encode(&h, out), (size_t)n);
	ck_assert_mem_eq(out, ulpdu.ptr, (size_t)n);
	memset(&h, 0x5a, sizeof(h));
	struct ddp_hdr untouched = h;
	for (size_t cut = 0; cut < (size_t)n; cut++)
		ck_assert_int_eq(ddp_decode((struct span){ ulpdu.ptr, cut }, &h), 0);
	ck_assert_mem_eq(&h, &untouched, sizeof(h));
}

START_TEST(golden_headers)
{
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-crc", check_vector), 30);
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-nocrc", check_vector), 20);
}

START_TEST(fields)
{
	static const uint8_t tagged[] = { 0xfd, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	static const uint8_t untagged[] = { 0x3e, 0x46, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
	struct ddp_hdr h;
	uint8_t out[DDP_HDR_MAX];

	/* reserved bits are set here: to be ignored, and zero when sent */
	ck_assert_int_eq(ddp_decode((struct span){ tagged, sizeof(tagged) }, &h), DDP_TAGGED_LEN);
	ck_assert(h.tagged && h.last);
	ck_assert_uint_eq(h.version, 1);
	ck_assert_uint_eq(h.ulp_ctrl, 0x42);
	ck_assert_uint_eq(h.stag, 0x01020304);
	ck_assert_uint_eq(h.to, 0x05060708090a0b0cu);
	ddp_encode(&h, out);
	ck_assert_uint_eq(out[0], 0xc1);
	ck_assert_int_eq(ddp_decode((struct span){ untagged, sizeof(untagged) }, &h), DDP_UNTAGGED_LEN);
	ck_assert(!h.tagged && !h.last);
	ck_assert_uint_eq(h.version, 2);
	ck_assert_uint_eq(h.ulp_word, 0x01020304);
	ck_assert_uint_eq(h.qn, 0x05060708);
	ck_assert_uint_eq(h.msn, 0x090a0b0c);
	ck_assert_uint_eq(h.mo, 0x0d0e0f10);
}
