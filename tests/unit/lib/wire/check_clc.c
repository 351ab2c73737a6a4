#include "wire/clc.h"

#include <errno.h>

#include "clc_bytes.h"
#include "unit.h"
#include "vectors.h"

#define PROPOSAL_V1                                                        \
	"e2d4c3d901003410000102000000000100000000000000000000ffff0a000001" \
	"02000000000100000a00000018000000e2d4c3d9"
#define ACCEPT_V1                                                          \
	"e2d4c3d902004418000202000000000200000000000000000000ffff0a000002" \
	"02000000000200001100001a2b0100000100230000007f000000100000123456e2d4c3d9"
#define DECLINE_V1 "e2d4c3d904001c1000010200000000010303000000000000e2d4c3d9"

static void
check_vector(const char *name, struct span in)
{
	struct buf m = { .len = in.len };

	ck_assert_msg(in.len > 0 && in.len <= CLC_MAX_LEN, "%s", name);
	memcpy(m.b, in.ptr, in.len);
	struct clc_msg msg = expect_ok(&m);
	check_again(&m, &msg);
	check_truncations(&m);
}

START_TEST(vectors_decode_and_encode_to_the_same_bytes)
{
	ck_assert_uint_ge(vectors_each("clc", check_vector), 15);
	ck_assert_uint_ge(vectors_each_in("smc2.txt", "clc", check_vector), 28);
}

START_TEST(proposal_fields)
{
	struct buf in = from_hex(PROPOSAL_V1);
	struct clc_msg m = expect_ok(&in);

	ck_assert_int_eq(m.type, CLC_PROPOSAL);
	ck_assert_uint_eq(m.version, 1);
	ck_assert_int_eq(m.proposal.typev1, CLC_PATH_R);
	ck_assert_int_eq(m.proposal.typev2, CLC_PATH_NONE);
	ck_assert_mem_eq(m.proposal.peer_id, "\0\1\2\0\0\0\0\1", 8);
	ck_assert_uint_eq(m.proposal.gid[15], 1);
	ck_assert_mem_eq(m.proposal.mac, "\2\0\0\0\0\1", 6);
	ck_assert_uint_eq(m.proposal.growth_len, 0);
	ck_assert_uint_eq(m.proposal.ipv4_subnet, 0x0a000000);
	ck_assert_uint_eq(m.proposal.ipv4_len, 24);
	ck_assert_uint_eq(m.proposal.ipv6_cnt, 0);
	ck_assert(!m.proposal.ext.present);
}

START_TEST(accept_fields)
{
	struct buf in = from_hex(ACCEPT_V1);
	struct clc_msg m = expect_ok(&in);

	ck_assert_int_eq(m.type, CLC_ACCEPT);
	ck_assert(m.accept.first_contact);
	ck_assert_uint_eq(m.accept.qpn, 0x11);
	ck_assert_uint_eq(m.accept.rkey, 0x1a2b);
	ck_assert_uint_eq(m.accept.rmbe_idx, 1);
	ck_assert_uint_eq(m.accept.alert_token, 0x100);
	ck_assert_uint_eq(clc_size_bytes(m.accept.size_code), 65536);
	ck_assert_uint_eq(clc_mtu_bytes(m.accept.mtu_code), 1024);
	ck_assert_uint_eq(m.accept.vaddr, 0x7f0000001000);
	ck_assert_uint_eq(m.accept.psn, 0x123456);
	ck_assert(!m.accept.ext.present);
}

START_TEST(decline_fields)
{
	struct buf in = from_hex(DECLINE_V1);
	struct clc_msg m = expect_ok(&in);

	ck_assert_int_eq(m.type, CLC_DECLINE);
	ck_assert_uint_eq(m.decline.diag, CLC_DIAG_NO_DEVICE);
	ck_assert(!m.decline.out_of_sync);
	in.b[7] |= 0x08;
	m = expect_ok(&in);
	ck_assert(m.decline.out_of_sync);
	check_again(&in, &m);
}

/* What follows the message on the TCP stream is not its business. */
START_TEST(takes_only_its_own_bytes)
{
	struct buf in = from_hex(ACCEPT_V1 "474554202f");
	struct clc_msg m;

	ck_assert_int_eq(clc_peek_len((struct span){ in.b, in.len }), 68);
	ck_assert_int_eq(decode(&in, &m), 68);
}

/* A foreign first byte is noticed without waiting for eight. */
START_TEST(peek_refuses_other_protocols_at_once)
{
	struct buf in = from_hex(PROPOSAL_V1);

	ck_assert_int_eq(clc_peek_len((struct span){ (const uint8_t *)"G", 1 }), -EBADMSG);
	ck_assert_int_eq(clc_peek_len((struct span){ NULL, 0 }), 0);
	for (size_t i = 0; i < 5; i++) {
		struct buf bad = in;

		bad.b[i] ^= 0x80;
		ck_assert_int_eq(clc_peek_len((struct span){ bad.b, i + 1 }), -EBADMSG);
		expect(&bad, -EBADMSG);
	}
	in.b[4] = 0;
	expect(&in, -EBADMSG);
	in.b[4] = 5;
	expect(&in, -EBADMSG);
	in = from_hex(PROPOSAL_V1);
	in.b[7] = 0x00;
	expect(&in, -EBADMSG);
}

START_TEST(trailing_eye_catcher_is_checked)
{
	static const char *const msgs[] = { PROPOSAL_V1, ACCEPT_V1, DECLINE_V1 };

	for (size_t i = 0; i < 3; i++)
		for (size_t back = 1; back <= 4; back++) {
			struct buf in = from_hex(msgs[i]);

			in.b[in.len - back] ^= 1;
			expect(&in, -EBADMSG);
		}
}

/* Room behind the message, so that a longer length is judged and not awaited. */
static void
length_case(const char *hex, unsigned len, int err)
{
	struct buf in = from_hex(hex);

	memset(in.b + in.len, 0, sizeof(in.b) - in.len);
	if (len >= 4 && len <= CLC_MAX_LEN)
		memcpy(in.b + len - 4, "\xe2\xd4\xc3\xd9", 4);
	in.len = sizeof(in.b);
	set_len(&in, len);
	expect(&in, err);
}

START_TEST(total_length_at_its_limits)
{
	static const unsigned all[] = { 0, 1, 7, 8, 27, 51, CLC_MAX_LEN + 1, 0xffff };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		length_case(PROPOSAL_V1, all[i], -EBADMSG);
		length_case(ACCEPT_V1, all[i], -EBADMSG);
		length_case(DECLINE_V1, all[i], -EBADMSG);
	}
	length_case(PROPOSAL_V1, 53, -EBADMSG);
	length_case(ACCEPT_V1, 67, -EBADMSG);
	length_case(DECLINE_V1, 29, -EBADMSG);
	length_case(DECLINE_V1, 44, -EBADMSG); /* version 2 alone has this form */
}

START_TEST(growth_offset_at_its_limits)
{
	static const unsigned offs[] = { 1, 0x7fff, 0xffff };
	struct buf in = from_hex(PROPOSAL_V1);

	for (size_t i = 0; i < 3; i++) {
		in.b[38] = (uint8_t)(offs[i] >> 8);
		in.b[39] = (uint8_t)offs[i];
		expect(&in, -EBADMSG);
	}
}

/* A longer growth area than Linux's is skipped; its first 40 bytes are kept. */
START_TEST(long_growth_area_is_skipped)
{
	struct clc_msg m = a_proposal();
	struct buf in = encoded(&m);

	memmove(in.b + 40 + 60, in.b + 40, in.len - 40);
	for (uint8_t i = 0; i < 60; i++)
		in.b[40 + i] = i;
	in.b[39] = 60;
	in.len += 60;
	set_len(&in, (unsigned)in.len);
	m = expect_ok(&in);
	ck_assert_uint_eq(m.proposal.growth_len, 60);
	ck_assert_uint_eq(m.proposal.growth[39], 39);
	ck_assert_uint_eq(m.proposal.ipv4_subnet, 0x0a630100);
	expect_encode_fails(&m, CLC_MAX_SENT_LEN, -EINVAL);
}

START_TEST(ipv6_prefixes)
{
	for (uint8_t n = 0; n <= CLC_MAX_IPV6; n++) {
		struct clc_msg m = a_proposal();

		m.proposal.ipv4_subnet = m.proposal.ipv4_len = 0;
		m.proposal.ipv6_cnt = n;
		for (uint8_t i = 0; i < n; i++) {
			memset(m.proposal.ipv6[i].addr, i + 1, 16);
			m.proposal.ipv6[i].len = (uint8_t)(128 - i);
		}
		struct buf in = encoded(&m);
		ck_assert_uint_eq(in.len, 52u + 17u * n);
		check_truncations(&in);
		m = expect_ok(&in);
		ck_assert_uint_eq(m.proposal.ipv6_cnt, n);
		if (n > 0)
			ck_assert_uint_eq(m.proposal.ipv6[n - 1].addr[15], n);
		check_again(&in, &m);
		in.b[47]++; /* one prefix more than there are */
		expect(&in, -EBADMSG);
	}
}

START_TEST(prefix_fields_out_of_range)
{
	static const uint8_t counts[] = { 1, 9, 0xff };
	struct clc_msg m = a_proposal();
	struct buf in = from_hex(PROPOSAL_V1);

	for (size_t i = 0; i < 3; i++) {
		in.b[47] = counts[i];
		expect(&in, -EBADMSG);
	}
	in = from_hex(PROPOSAL_V1);
	in.b[44] = 32;
	expect_ok(&in);
	in.b[44] = 33;
	expect(&in, -EBADMSG);
	m.proposal.ipv6_cnt = 1;
	m.proposal.ipv6[0].len = 64;
	in = encoded(&m);
	in.b[in.len - 5] = 129;
	expect(&in, -EBADMSG);
}

/* Version 2 with extensions behind the prefixes, and version 2 without version 1. */
START_TEST(version_2_proposals)
{
	struct clc_msg m = a_proposal();

	m.version = 2;
	m.proposal.growth_len = CLC_GROWTH_LEN;
	struct buf in = encoded(&m);
	ck_assert_uint_eq(in.len, 92);
	ck_assert_uint_eq(in.b[7], 0x28);
	memset(in.b + in.len - 4, 0x11, 72);
	memcpy(in.b + in.len - 4 + 72, "\xe2\xd4\xc3\xd9", 4);
	in.len += 72;
	set_len(&in, (unsigned)in.len);
	expect(&in, -EBADMSG); /* 0x28 says that there is no version 2 part */
	in.b[7] = 0x2c;
	m = expect_ok(&in);
	ck_assert_int_eq(m.proposal.typev1, CLC_PATH_R);
	ck_assert_int_eq(m.proposal.typev2, CLC_PATH_BOTH);
	in.b[7] = 0x22;
	expect(&in, -EPROTO);
	ck_assert_uint_eq(clc_bad_value_diag((struct span){ in.b, in.len }), CLC_DIAG_NO_V2_EXT);
	in.b[7] = 0x26; /* SMC-D alone */
	expect(&in, -EPROTO);
	ck_assert_uint_eq(clc_bad_value_diag((struct span){ in.b, in.len }), CLC_DIAG_MODE_MISMATCH);
	in.b[7] = 0x2a; /* nothing */
	expect(&in, -EPROTO);
	in.b[7] = 0x30; /* a version of the future: the lowest common one counts */
	ck_assert_uint_eq(expect_ok(&in).version, 3);
}

START_TEST(accept_fields_out_of_range)
{
	struct buf in = from_hex(ACCEPT_V1);

	in.b[45] = 0; /* RMBE index */
	expect(&in, -EBADMSG);
	in.b[45] = 255;
	expect_ok(&in);
	for (unsigned code = 0; code < 256; code++) {
		unsigned mtu = code & 0x0f;

		in.b[50] = (uint8_t)code;
		in.b[7] = 0x18;
		if (mtu < 1 || mtu > 5)
			expect(&in, -EPROTO);
		else
			ck_assert_uint_eq(expect_ok(&in).accept.size_code, code >> 4);
		in.b[7] = 0x10; /* not the first contact: not to be looked at */
		ck_assert_uint_eq(expect_ok(&in).accept.mtu_code, mtu);
	}
	ck_assert_uint_eq(clc_bad_value_diag((struct span){ in.b, in.len }), CLC_DIAG_CONFIG);
}

/* Nobody may answer with more than we know. */
START_TEST(later_version_of_an_accept_is_declined)
{
	static const unsigned lens[] = { 68, 108, 160, 164, 180 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct buf in = from_hex(ACCEPT_V1);

		memset(in.b + 64, 0, lens[i] - 64);
		memcpy(in.b + lens[i] - 4, "\xe2\xd4\xc3\xd9", 4);
		in.len = lens[i];
		set_len(&in, lens[i]);
		in.b[7] = 0x38;
		expect(&in, -EPROTO);
		ck_assert_uint_eq(clc_bad_value_diag((struct span){ in.b, in.len }), CLC_DIAG_VERSION_MISMATCH);
	}
}

START_TEST(extension_in_a_proposal)
{
	static const char golden[] =
	    "000000000000000000000000"
	    "736d72641c010201"
	    "12b70200"
	    "0123456789abcdef"
	    "0000000000000000";
	struct clc_msg m = a_proposal();
	uint8_t growth[CLC_GROWTH_LEN];

	ck_assert_uint_eq(unhex(golden, growth, sizeof(growth)), CLC_GROWTH_LEN);
	m.proposal.ext = an_ext;
	struct buf in = encoded(&m);
	ck_assert_uint_eq(in.len, 92);
	ck_assert_uint_eq(in.b[39], 40);
	ck_assert_mem_eq(in.b + 40, growth, sizeof(growth));
	m = expect_ok(&in);
	check_ext(&m.proposal.ext);
	check_again(&in, &m);
	check_truncations(&in);
	m.proposal.growth_len = 50; /* as from a peer that has more; ours is always 40 */
	check_again(&in, &m);
}

START_TEST(transports_in_words)
{
	static const struct {
		unsigned transports;
		const char *text;
	} rows[] = { { 0, "" }, { 0x01, "roce" }, { 0x02, "iwarp" }, { 0x08, "iwarp-sctp-udp" },
		{ 0x9f, "roce,iwarp,iwarp-sctp,iwarp-sctp-udp,iwarp-tls" }, { 0xe0, "" }, { 0x84, "iwarp-sctp" } };
	char text[CLC_TRANSPORTS_STR_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		clc_transports_str(rows[i].transports, text);
		ck_assert_str_eq(text, rows[i].text);
	}
	ck_assert_str_eq(clc_transport_str(CLC_TRANSPORT_IWARP_SCTP), "iwarp-sctp");
	ck_assert_ptr_null(clc_transport_str(CLC_TRANSPORT_PREWARM));
	ck_assert_ptr_null(clc_transport_str(3));
}

/* What may be on offer, and what an smcrd that does not know SCTP sees of it, in the same place of a message of the same
 * length. */
START_TEST(transports_of_an_extension)
{
	static const struct {
		uint8_t transports, older;
	} rows[] = { { CLC_TRANSPORT_IWARP_SCTP, 0 }, { CLC_TRANSPORT_IWARP_SCTP_UDP, 0 }, { 0x0e, 0x02 },
		{ 0x0f, 0x03 }, { 0x8c, 0x80 } };
	struct buf v1 = from_hex(ACCEPT_V1);
	struct clc_msg accept = expect_ok(&v1);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct clc_msg m = a_proposal();

		m.proposal.ext = an_ext;
		m.proposal.ext.transports = rows[i].transports;
		struct buf in = encoded(&m);
		ck_assert_uint_eq(in.len, 92);
		ck_assert_uint_eq(in.b[58], rows[i].transports);
		ck_assert_uint_eq(in.b[58] & 0x83, rows[i].older);
		m = expect_ok(&in);
		ck_assert_uint_eq(m.proposal.ext.transports, rows[i].transports);
		check_truncations(&in);
		accept.accept.ext = m.proposal.ext;
		in = encoded(&accept);
		ck_assert_uint_eq(in.len, 96);
		ck_assert_uint_eq(in.b[70], rows[i].transports);
		ck_assert_uint_eq(expect_ok(&in).accept.ext.transports, rows[i].transports);
		check_truncations(&in);
	}
}

/* Whatever is not ours to the letter is somebody else's and no error. */
START_TEST(foreign_growth_areas_are_no_extension)
{
	static const uint8_t at[] = { 40, 49, 52, 55, 56 }; /* ISM GID, CHID, magic, length */
	struct clc_msg m = a_proposal();
	struct buf in;

	m.proposal.ext = an_ext;
	for (size_t i = 0; i < sizeof(at); i++) {
		in = encoded(&m);
		in.b[at[i]] ^= 1;
		ck_assert(!expect_ok(&in).proposal.ext.present);
	}
	in = encoded(&m);
	in.b[57] = 0; /* extension version */
	ck_assert(!expect_ok(&in).proposal.ext.present);
	in.b[57] = 9;
	in.b[58] = 0xff; /* transports of the future */
	ck_assert_uint_eq(expect_ok(&in).proposal.ext.transports, 0x9f);
	in.b[59] = 0xff; /* features of the future */
	ck_assert_uint_eq(expect_ok(&in).proposal.ext.features, CLC_FEATURES_KNOWN);
	in.b[59] = 0; /* of a smcrd before there were any */
	ck_assert(expect_ok(&in).proposal.ext.present && expect_ok(&in).proposal.ext.features == 0);
}

START_TEST(extension_in_an_accept)
{
	struct buf in = from_hex(ACCEPT_V1);
	struct clc_msg m = expect_ok(&in);

	m.accept.ext = an_ext;
	in = encoded(&m);
	ck_assert_uint_eq(in.len, 96);
	m = expect_ok(&in);
	check_ext(&m.accept.ext);
	check_again(&in, &m);
	check_truncations(&in);
	m.type = CLC_CONFIRM;
	in = encoded(&m);
	m = expect_ok(&in);
	check_ext(&m.accept.ext);
}

START_TEST(extension_length_in_an_accept)
{
	static const uint8_t bad[] = { 0, 1, 4, 5, 27, 29, 0x7f, 0xff };
	struct buf in = from_hex(ACCEPT_V1);
	struct clc_msg m = expect_ok(&in);

	m.accept.ext = an_ext;
	in = encoded(&m);
	for (size_t i = 0; i < sizeof(bad); i++) {
		in.b[68] = bad[i];
		expect(&in, -EBADMSG);
	}
	in.b[68] = 28;
	in.b[69] = 0; /* extension version */
	expect(&in, -EBADMSG);
	in.b[69] = 2; /* a later one, 6 bytes longer */
	struct buf longer = in;
	memset(longer.b + 92, 0x77, 6);
	memcpy(longer.b + 98, in.b + 92, 4);
	longer.len += 6;
	longer.b[68] = 34;
	set_len(&longer, (unsigned)longer.len);
	ck_assert_uint_eq(expect_ok(&longer).accept.ext.mpa_port, 4791);
}

/* Where a daemon without it has zeros. */
START_TEST(a_proposal_has_the_way_so_far)
{
	struct clc_msg m = a_proposal();

	m.proposal.ext = (struct clc_smcrd_ext){
		.present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP, .hops = 7, .origin = 0x01020304
	};
	struct buf in = encoded(&m);
	const uint8_t *ext = memmem(in.b, in.len, "smrd", 4);
	ck_assert_ptr_nonnull(ext);
	ck_assert_mem_eq(ext + 20, "\x07\0\0\0\x01\x02\x03\x04", 8);
	struct clc_msg out = expect_ok(&in);
	ck_assert_uint_eq(out.proposal.ext.hops, 7);
	ck_assert_uint_eq(out.proposal.ext.origin, 0x01020304);
}

/* Where a daemon without it has a zero; any number is read. */
START_LOOP_TEST(an_accept_says_what_is_behind_it, 0, 256)
{
	struct buf in = from_hex(ACCEPT_V1);
	struct clc_msg m = expect_ok(&in);

	m.accept.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .server = (uint8_t)_i };
	in = encoded(&m);
	const uint8_t *ext = memmem(in.b, in.len, "smrd", 4);
	ck_assert_ptr_nonnull(ext);
	ck_assert_uint_eq(ext[20], (unsigned)_i);
	ck_assert_uint_eq(expect_ok(&in).accept.ext.server, (unsigned)_i);
	ck_assert_int_eq(clc_server_str((unsigned)_i)[0] == '\0', _i == CLC_SERVER_UNSAID);
}

START_TEST(unknown_content_in_an_accept_is_skipped)
{
	for (unsigned more = 1; more <= 64; more++) {
		struct buf in = from_hex(ACCEPT_V1);

		memset(in.b + 64, 's', more);
		memcpy(in.b + 64 + more, "\xe2\xd4\xc3\xd9", 4);
		in.len += more;
		set_len(&in, (unsigned)in.len);
		ck_assert(!expect_ok(&in).accept.ext.present);
	}
}

START_TEST(encoder_refuses_values_out_of_range)
{
	struct buf in = from_hex(ACCEPT_V1);
	struct clc_msg acc = expect_ok(&in), prop = a_proposal();

	REFUSE(acc, version, 2); /* without an EID */
	REFUSE(acc, version, 3);
	REFUSE(acc, version, 0);
	REFUSE(acc, type, (enum clc_type)0);
	REFUSE(acc, type, (enum clc_type)5);
	REFUSE(acc, accept.qpn, 0x1000000);
	REFUSE(acc, accept.psn, 0x1000000);
	REFUSE(acc, accept.rmbe_idx, 0);
	REFUSE(acc, accept.size_code, 9);
	REFUSE(acc, accept.mtu_code, 0);
	REFUSE(acc, accept.mtu_code, 6);
	acc.accept.ext = an_ext;
	REFUSE(acc, accept.ext.version, 0);
	REFUSE(acc, accept.ext.transports, 0x20);
	REFUSE(prop, version, 3);
	REFUSE(prop, proposal.growth_len, 41);
	REFUSE(prop, proposal.ipv4_len, 33);
	REFUSE(prop, proposal.ipv6_cnt, 9);
	prop.proposal.ipv6_cnt = 8;
	REFUSE(prop, proposal.ipv6[7].len, 129);
	prop.version = 2;
	REFUSE(prop, proposal.typev1, CLC_PATH_NONE);
	REFUSE(prop, proposal.typev1, (enum clc_path)4);
	REFUSE(prop, proposal.typev2, (enum clc_path)4);
	in = from_hex(DECLINE_V1);
	struct clc_msg dec = expect_ok(&in);
	REFUSE(dec, version, 3);
	REFUSE(dec, decline.os, 16);
}

/* The longest message we can build, and the bound on it. */
START_TEST(longest_message_fits_the_announced_bound)
{
	struct clc_msg m = a_proposal();

	m.version = 2;
	m.proposal.typev2 = CLC_PATH_R;
	m.proposal.ipv6_cnt = CLC_MAX_IPV6;
	m.proposal.ext = an_ext;
	m.proposal.v2.present = true;
	m.proposal.v2.eid_cnt = CLC_MAX_EIDS;
	for (unsigned i = 0; i < CLC_MAX_EIDS; i++)
		memset(m.proposal.v2.eids[i].b, 'A', CLC_EID_LEN);
	ck_assert_uint_eq(encoded(&m).len, CLC_MAX_SENT_LEN);
}

START_TEST(size_and_mtu_codes)
{
	for (int code = 0; code < 16; code++)
		ck_assert_int_eq(clc_size_code(clc_size_bytes((unsigned)code)), code);
	ck_assert_uint_eq(clc_size_bytes(0), 16384);
	ck_assert_uint_eq(clc_size_bytes(15), 512u << 20);
	ck_assert_uint_eq(clc_size_bytes(16), 0);
	ck_assert_uint_eq(clc_size_bytes(UINT32_MAX), 0);
	ck_assert_int_eq(clc_size_code(0), -EINVAL);
	ck_assert_int_eq(clc_size_code(16385), -EINVAL);
	ck_assert_uint_eq(clc_mtu_bytes(1), 256);
	ck_assert_uint_eq(clc_mtu_bytes(5), 4096);
	ck_assert_uint_eq(clc_mtu_bytes(0), 0);
	ck_assert_uint_eq(clc_mtu_bytes(6), 0);
}

START_TEST(diagnosis_in_words)
{
	ck_assert_str_eq(clc_diag_str(0x03030000), "no RDMA device");
	ck_assert_str_eq(clc_diag_str(0x09990003), "memory registration failed");
	ck_assert_str_eq(clc_diag_str(0), "unknown code");
	ck_assert_str_eq(clc_diag_str(UINT32_MAX), "unknown code");
}
