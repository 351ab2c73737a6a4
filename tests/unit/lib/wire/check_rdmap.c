#include "wire/rdmap.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

static unsigned reads, terms;

static void
check_read(struct span body)
{
	struct rdmap_read r;
	uint8_t out[RDMAP_READ_LEN];

	reads++;
	ck_assert_uint_eq(body.len, RDMAP_READ_LEN);
	ck_assert_int_eq(rdmap_read_decode(body, &r), RDMAP_READ_LEN);
	rdmap_read_encode(&r, out);
	ck_assert_mem_eq(out, body.ptr, body.len);
	memset(&r, 0x5a, sizeof(r));
	struct rdmap_read untouched = r;
	for (size_t n = 0; n < body.len; n++)
		ck_assert_int_eq(rdmap_read_decode((struct span){ body.ptr, n }, &r), 0);
	ck_assert_mem_eq(&r, &untouched, sizeof(r));
}

static void
check_term(struct span body)
{
	struct rdmap_term t;
	uint8_t out[RDMAP_TERM_MAX];

	terms++;
	ck_assert_int_eq(rdmap_term_decode(body, &t), (int)body.len);
	ck_assert(!t.swapped);
	ck_assert_int_eq(rdmap_term_encode(&t, out), (int)body.len);
	ck_assert_mem_eq(out, body.ptr, body.len);
	memset(&t, 0x5a, sizeof(t));
	struct rdmap_term untouched = t;
	for (size_t n = 0; n < body.len; n++)
		ck_assert_int_eq(rdmap_term_decode((struct span){ body.ptr, n }, &t), -EPROTO);
	ck_assert_mem_eq(&t, &untouched, sizeof(t));
}

static void
check_vector(const char *name, struct span fpdu)
{
	struct span ulpdu = { fpdu.ptr + 2, (size_t)fpdu.ptr[0] << 8 | fpdu.ptr[1] };
	struct ddp_hdr h;
	int n = ddp_decode(ulpdu, &h);
	struct span body = { ulpdu.ptr + n, ulpdu.len - (size_t)n };

	ck_assert_msg(rdmap_ctrl_version(h.ulp_ctrl) == RDMAP_VERSION, "%s", name);
	ck_assert_uint_eq(h.ulp_ctrl, rdmap_ctrl(rdmap_ctrl_op(h.ulp_ctrl)));
	if (rdmap_ctrl_op(h.ulp_ctrl) == RDMAP_READ_REQ)
		check_read(body);
	if (rdmap_ctrl_op(h.ulp_ctrl) == RDMAP_TERMINATE)
		check_term(body);
}

START_TEST(golden_messages)
{
	vectors_each_in("iwarp.txt", "fpdu-crc", check_vector);
	vectors_each_in("iwarp.txt", "fpdu-nocrc", check_vector);
	ck_assert_uint_ge(reads, 8);
	ck_assert_uint_eq(terms, 4);
}

/* Linux siw swaps nibbles and flags on little-endian machines. */
START_TEST(terminate_of_siw_is_understood)
{
	static const uint8_t siw[] = { 0x21, 0x03, 0x03, 0x00, 0x00, 0x10, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		7, 0, 0, 0, 0 };
	struct rdmap_term t;

	ck_assert_int_eq(rdmap_term_decode((struct span){ siw, sizeof(siw) }, &t), sizeof(siw));
	ck_assert(t.swapped && t.has_len && t.has_ddp && !t.has_read);
	ck_assert_uint_eq(t.layer, 1);
	ck_assert_uint_eq(t.etype, 2);
	ck_assert_uint_eq(t.code, 3);
	ck_assert_uint_eq(t.seg_len, 16);
	ck_assert_uint_eq(t.ddp.msn, 7);
}

/* Without a flag only the meaning tells them apart: what both could say is read as the RFC has it. */
START_TEST(terminate_of_siw_without_flags)
{
	static const struct {
		uint8_t kind, code, layer, etype;
	} row[] = {
		{ 0x02, 0x02, 2, 0 },                       /* MPA: CRC error */
		{ 0x20, 0x02, 2, 0 }, { 0x02, 0x06, 0, 2 }, /* unexpected opcode, or MPA: insufficient IRD */
		{ 0x20, 0x06, 2, 0 }, { 0x02, 0x44, 0, 2 }, /* neither has a name */
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const uint8_t body[4] = { row[i].kind, row[i].code };
		struct rdmap_term t;

		ck_assert_int_eq(rdmap_term_decode((struct span){ body, sizeof(body) }, &t), sizeof(body));
		ck_assert_uint_eq(t.layer, row[i].layer);
		ck_assert_uint_eq(t.etype, row[i].etype);
		ck_assert_uint_eq(t.code, row[i].code);
		ck_assert(!t.has_len && !t.has_ddp && !t.has_read);
	}
}

START_TEST(terminate_encoder_refuses_what_cannot_be)
{
	uint8_t out[RDMAP_TERM_MAX];
	struct rdmap_term t = { .layer = 16 };

	ck_assert_int_eq(rdmap_term_encode(&t, out), -EINVAL);
	t = (struct rdmap_term){ .etype = 16 };
	ck_assert_int_eq(rdmap_term_encode(&t, out), -EINVAL);
	t = (struct rdmap_term){ .has_ddp = true };
	ck_assert_int_eq(rdmap_term_encode(&t, out), -EINVAL);
	t = (struct rdmap_term){ .has_len = true, .has_read = true };
	ck_assert_int_eq(rdmap_term_encode(&t, out), -EINVAL);
}

START_TEST(terminate_shows_the_wrong_version)
{
	uint8_t out[RDMAP_TERM_MAX];
	struct rdmap_term t = {
		.layer = 1,
		.etype = 1,
		.code = 4,
		.has_len = true,
		.has_ddp = true,
		.ddp = { .tagged = true, .version = 3 },
	};

	ck_assert_int_eq(rdmap_term_encode(&t, out), 20);
	ck_assert_uint_eq(out[6], 0x83);
}

START_TEST(every_code_has_words)
{
	ck_assert_str_eq(rdmap_term_str(2, 0, 7), "MPA: no matching RTR option");
	ck_assert_str_eq(rdmap_term_str(1, 2, 5), "DDP untagged buffer: message too long");
	ck_assert_str_eq(rdmap_term_str(0, 9, 9), "RDMAP error");
	ck_assert_str_eq(rdmap_term_str(15, 15, 255), "unknown error");
}
