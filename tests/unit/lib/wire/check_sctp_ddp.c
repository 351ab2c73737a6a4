#include "wire/sctp_ddp.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"

static int
decode(const char *hex, enum sctp_ddp_profile profile, struct sctp_ddp_control *c)
{
	static uint8_t buf[1024];
	size_t len = unhex(hex, buf, sizeof(buf));

	return sctp_ddp_control_decode((struct span){ buf, len }, profile, c);
}

/* -- golden messages -- */

static unsigned seen[SCTP_DDP_PROFILE_CNT];

static void
check_message(const char *name, struct span message, enum sctp_ddp_profile profile)
{
	uint8_t buf[SCTP_DDP_CONTROL_MAX];
	struct sctp_ddp_control c, untouched;
	struct span body;
	uint16_t ssn;

	ck_assert_int_eq(sctp_ddp_ssn_decode(message, &ssn, &body), SCTP_DDP_SSN_LEN);
	ck_assert_uint_eq(ssn, message.ptr[0] << 8 | message.ptr[1]);
	ck_assert_ptr_eq(body.ptr, message.ptr + 2);
	ck_assert_uint_eq(body.len, message.len - 2);
	ck_assert_msg(sctp_ddp_control_decode(body, profile, &c) == 0, "%s", name);
	ck_assert_int_eq(c.has_block, sctp_ddp_is_enhanced(c.function));
	seen[profile] |= 1u << c.function;
	ck_assert_int_eq(sctp_ddp_control_encode(&c, profile, ssn, buf, sizeof(buf)), (int)message.len);
	ck_assert_mem_eq(buf, message.ptr, message.len);
	ck_assert_int_eq(sctp_ddp_control_encode(&c, profile, ssn, buf, message.len - 1), -ENOSPC);

	/* Cut anywhere: too short, or the same with less private data; an Enhanced Reject has no block then. */
	size_t least = c.has_block && c.function != SCTP_DDP_ENHANCED_REJECT ? 2 + ENHANCED_LEN : 2;
	enum sctp_ddp_function function = c.function;
	memset(&untouched, 0x5a, sizeof(untouched));
	for (size_t n = 0; n < body.len; n++) {
		c = untouched;
		int rc = sctp_ddp_control_decode((struct span){ body.ptr, n }, profile, &c);
		if (n < least) {
			ck_assert_int_eq(rc, -EPROTO);
			ck_assert_mem_eq(&c, &untouched, sizeof(c));
			continue;
		}
		ck_assert_int_eq(rc, 0);
		ck_assert_int_eq(c.function, function);
		ck_assert_int_eq(c.has_block, sctp_ddp_is_enhanced(function) && n >= 2 + ENHANCED_LEN);
		ck_assert_uint_eq(c.pd.len, n - 2 - (c.has_block ? ENHANCED_LEN : 0));
	}
}

static void
check_5043(const char *name, struct span message)
{
	check_message(name, message, SCTP_DDP_RFC5043);
}

static void
check_draft(const char *name, struct span message)
{
	check_message(name, message, SCTP_DDP_DRAFT00);
}

START_TEST(golden_control_messages)
{
	ck_assert_uint_eq(vectors_each_in("iwarp.txt", "sctp-5043", check_5043), 12);
	ck_assert_uint_eq(vectors_each_in("iwarp.txt", "sctp-draft", check_draft), 5);
	/* every function that a profile has */
	for (enum sctp_ddp_profile p = 0; p < SCTP_DDP_PROFILE_CNT; p++)
		for (enum sctp_ddp_function f = 0; f < SCTP_DDP_FUNCTION_CNT; f++)
			ck_assert_int_eq((seen[p] >> f & 1) != 0, sctp_ddp_has(p, f));
}

static void
check_segment(const char *name, struct span message)
{
	struct ddp_hdr h;
	struct span body;
	uint16_t ssn;

	(void)name;
	ck_assert_int_eq(sctp_ddp_ssn_decode(message, &ssn, &body), SCTP_DDP_SSN_LEN);
	ck_assert_uint_eq(ssn, 1);
	ck_assert_int_eq(ddp_decode(body, &h), DDP_UNTAGGED_LEN);
	ck_assert_uint_eq(h.ulp_ctrl, rdmap_ctrl(RDMAP_SEND));
	ck_assert_uint_eq(body.len, DDP_UNTAGGED_LEN + 5);
}

START_TEST(golden_segment)
{
	ck_assert_uint_eq(vectors_each_in("iwarp.txt", "sctp-seg", check_segment), 1);
}

START_TEST(too_short_for_a_number)
{
	const uint8_t bytes[2] = { 0x12, 0x34 };
	struct span body = { bytes, 77 };
	uint16_t ssn = 99;

	for (size_t n = 0; n < 2; n++)
		ck_assert_int_eq(sctp_ddp_ssn_decode((struct span){ bytes, n }, &ssn, &body), -EPROTO);
	ck_assert_uint_eq(ssn, 99);
	ck_assert_uint_eq(body.len, 77);
	ck_assert_int_eq(sctp_ddp_ssn_decode((struct span){ bytes, 2 }, &ssn, &body), 2);
	ck_assert_uint_eq(ssn, 0x1234);
	ck_assert_uint_eq(body.len, 0);
}

/* -- profiles -- */

START_TEST(profiles_differ_as_the_documents_do)
{
	const struct sctp_ddp_values *rfc = &sctp_ddp_values[SCTP_DDP_RFC5043],
	                             *draft = &sctp_ddp_values[SCTP_DDP_DRAFT00];

	ck_assert_uint_eq(rfc->adaptation, 1);
	ck_assert_uint_eq(rfc->ppid_segment, 16);
	ck_assert_uint_eq(rfc->ppid_control, 17);
	ck_assert_uint_eq(rfc->first_ssn, 0);
	ck_assert_uint_eq(draft->adaptation, 2);
	ck_assert_uint_eq(draft->ppid_segment, 1);
	ck_assert_uint_eq(draft->ppid_control, 2);
	ck_assert_uint_eq(draft->first_ssn, 1);
}

/* All codes: the known ones are what the table says, all others unknown. */
START_LOOP_TEST(every_function_code, 0, SCTP_DDP_PROFILE_CNT)
{
	static const enum sctp_ddp_function want[SCTP_DDP_PROFILE_CNT][8] = {
		[SCTP_DDP_RFC5043] = { SCTP_DDP_FUNCTION_CNT, SCTP_DDP_INITIATE, SCTP_DDP_ACCEPT, SCTP_DDP_REJECT,
		    SCTP_DDP_TERMINATE, SCTP_DDP_ENHANCED_INITIATE, SCTP_DDP_ENHANCED_ACCEPT,
		    SCTP_DDP_ENHANCED_REJECT },
		[SCTP_DDP_DRAFT00] = { SCTP_DDP_FUNCTION_CNT, SCTP_DDP_NEGOTIATE, SCTP_DDP_INITIATE, SCTP_DDP_ACCEPT,
		    SCTP_DDP_TERMINATE, SCTP_DDP_FUNCTION_CNT, SCTP_DDP_FUNCTION_CNT, SCTP_DDP_FUNCTION_CNT },
	};

	for (unsigned code = 0; code <= 0xffff; code++) {
		const uint8_t body[6] = { (uint8_t)(code >> 8), (uint8_t)code };
		enum sctp_ddp_function f = code < 8 ? want[_i][code] : SCTP_DDP_FUNCTION_CNT;
		struct sctp_ddp_control c;
		int rc = sctp_ddp_control_decode((struct span){ body, 6 }, (enum sctp_ddp_profile)_i, &c);

		ck_assert_int_eq(rc, f == SCTP_DDP_FUNCTION_CNT ? -ENOTSUP : 0);
		if (rc == 0)
			ck_assert_int_eq(c.function, f);
	}
}

/* -- private data -- */

START_TEST(private_data_at_its_limits)
{
	uint8_t body[1024] = { 0 }, out[1024];

	for (uint8_t code = 1; code <= 7; code++) {
		struct sctp_ddp_control c;

		body[1] = code;
		ck_assert_int_eq(sctp_ddp_control_decode((struct span){ body, 2 + 512 }, SCTP_DDP_RFC5043, &c), 0);
		ck_assert_uint_eq(c.pd.len, code == 4 ? 0 : code >= 5 ? 508 : 512);
		if (code != 4)
			ck_assert_int_eq(
			    sctp_ddp_control_encode(&c, SCTP_DDP_RFC5043, 7, out, sizeof(out)), SCTP_DDP_CONTROL_MAX);
		ck_assert_int_eq(sctp_ddp_control_decode((struct span){ body, 2 + 513 }, SCTP_DDP_RFC5043, &c),
		    code == 4 ? 0 : -EMSGSIZE);
	}
}

START_TEST(private_data_of_a_terminate_are_passed_over)
{
	struct sctp_ddp_control c;

	for (enum sctp_ddp_profile p = 0; p < SCTP_DDP_PROFILE_CNT; p++) {
		ck_assert_int_eq(decode("0004 6279650a", p, &c), 0);
		ck_assert_int_eq(c.function, SCTP_DDP_TERMINATE);
		ck_assert_uint_eq(c.pd.len, 0);
		ck_assert(!c.has_block);
	}
}

START_TEST(an_enhanced_reject_with_and_without_the_block)
{
	static const struct {
		const char *hex;
		bool has_block;
		size_t pd_len;
	} rows[] = {
		{ "0007", false, 0 },
		{ "0007 000800", false, 3 },
		{ "0007 00080001", true, 0 },
		{ "0007 00080001 534d4372", true, 4 },
		{ "0007 534d43720107", false, 6 }, /* "SMCr" */
		{ "0007 3fff3fff", true, 0 },
		{ "0007 40000000", false, 4 }, /* B, C, D without A */
		{ "0007 00008000", false, 4 },
		{ "0007 00004000", false, 4 },
		{ "0007 80000000", true, 0 },
		{ "0007 c000c000", true, 0 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct sctp_ddp_control c;

		ck_assert_int_eq(decode(rows[k].hex, SCTP_DDP_RFC5043, &c), 0);
		ck_assert_int_eq(c.function, SCTP_DDP_ENHANCED_REJECT);
		ck_assert_msg(c.has_block == rows[k].has_block, "row %u", k);
		ck_assert_uint_eq(c.pd.len, rows[k].pd_len);
	}
}

/* Initiate and Accept always have it, and bits without A are no reason to think otherwise. */
START_TEST(the_block_of_an_enhanced_initiate_and_accept)
{
	struct sctp_ddp_control c;

	for (unsigned k = 0; k < 2; k++) {
		ck_assert_int_eq(decode(k ? "0006 4001c0026869" : "0005 4001c0026869", SCTP_DDP_RFC5043, &c), 0);
		ck_assert(c.has_block);
		ck_assert_uint_eq(c.enh.model, 0);
		ck_assert_uint_eq(c.enh.ird, 1);
		ck_assert_uint_eq(c.enh.ord, 2);
		ck_assert_uint_eq(c.pd.len, 2);
		ck_assert_uint_eq(c.pd.ptr[0], 0x68);
		ck_assert_int_eq(decode(k ? "0006 400102" : "0005 400102", SCTP_DDP_RFC5043, &c), -EPROTO);
	}
}

START_TEST(encoder_refuses_values_out_of_range)
{
	static const uint8_t pd[513];
	static const struct {
		enum sctp_ddp_profile profile;
		struct sctp_ddp_control c;
	} bad[] = {
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_NEGOTIATE } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_FUNCTION_CNT } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_INITIATE, .pd = { pd, 513 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_ENHANCED_INITIATE, .pd = { pd, 509 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_ENHANCED_REJECT, .pd = { pd, 509 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_TERMINATE, .pd = { pd, 1 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_ENHANCED_ACCEPT, .enh = { .ird = 0x4000 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_ENHANCED_ACCEPT, .enh = { .ord = 0x4000 } } },
		{ SCTP_DDP_RFC5043, { .function = SCTP_DDP_ENHANCED_ACCEPT, .enh = { .model = RTR_READ } } },
		{ SCTP_DDP_DRAFT00, { .function = SCTP_DDP_REJECT } },
		{ SCTP_DDP_DRAFT00, { .function = SCTP_DDP_ENHANCED_INITIATE } },
		{ SCTP_DDP_DRAFT00, { .function = SCTP_DDP_ENHANCED_ACCEPT } },
		{ SCTP_DDP_DRAFT00, { .function = SCTP_DDP_ENHANCED_REJECT } },
		{ SCTP_DDP_DRAFT00, { .function = SCTP_DDP_TERMINATE, .pd = { pd, 1 } } },
	};

	for (unsigned k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		uint8_t out[1024];

		memset(out, 0x5a, sizeof(out));
		ck_assert_msg(
		    sctp_ddp_control_encode(&bad[k].c, bad[k].profile, 0, out, sizeof(out)) == -EINVAL, "row %u", k);
		for (unsigned i = 0; i < sizeof(out); i++)
			ck_assert_uint_eq(out[i], 0x5a);
	}
}
