#include "wire/describe.h"

#include <stdint.h>
#include <stdio.h>

#include "unit.h"
#include "vectors.h"
#include "wire/clc.h"

typedef int (*describe_fn)(struct span, char *, size_t);

static char text[WIRE_DESCRIBE_LEN];

static const char *
describe(describe_fn fn, const char *hex)
{
	uint8_t b[256] = { 0 };
	size_t len = unhex(hex, b, sizeof(b));
	int n = fn((struct span){ b, fn == wire_describe_clc || len == 0 || len > 44 ? len : 44 }, text, sizeof(text));

	ck_assert_int_eq(n, (int)strlen(text));
	return text;
}

START_TEST(clc_lines)
{
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d902004418000202000000000200000000000"
	                     "000000000ffff0a00000202000000000200001100001a2b0100000100230000007f00000010000012"
	                     "3456e2d4c3d9"),
	    "CLC Accept v1 len=68 first-contact peer=0002020000000002 gid=::ffff:10.0.0.2 "
	    "mac=02:00:00:00:00:02 qpn=000011 idx=1 token=00000100 size=65536 mtu=1024 "
	    "vaddr=00007f0000001000 psn=123456");
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d901003410000102000000000100000000000"
	                     "000000000ffff0a00000102000000000100000a00000018000000e2d4c3d9"),
	    "CLC Proposal v1 len=52 offers=smc-r v2=none peer=0001020000000001 "
	    "gid=::ffff:10.0.0.1 mac=02:00:00:00:00:01 growth=0 subnet=10.0.0.0/24");
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d904001c1800010200000000010303000000"
	                     "000000e2d4c3d9"),
	    "CLC Decline v1 len=28 out-of-sync peer=0001020000000001 diag=03030000 "
	    "(no RDMA device) os=0");
}

/* Of an ingress that forwards its client: IPv4 behind the growth area, and an answer that uses it. */
START_TEST(clc_lines_with_a_client)
{
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d901006b10000102000000000100000000000000000000ffff0a000001020000000001"
	                     "0037000000000000000000000000736d72641c0102210000020000000000000000000000000000000000"
	                     "736d7274000981070414d2cb0071090a00000018000000e2d4c3d9"),
	    "CLC Proposal v1 len=107 offers=smc-r v2=none peer=0001020000000001 gid=::ffff:10.0.0.1 "
	    "mac=02:00:00:00:00:01 growth=55 subnet=10.0.0.0/24 smcrd=v1,iwarp mpa-port=0 recv-depth=512 "
	    "client=203.0.113.9:5330");
	ck_assert_str_eq(describe(wire_describe_clc, "e2d4c3d904001c1000010200000000010303000000000001e2d4c3d9"),
	    "CLC Decline v1 len=28 peer=0001020000000001 diag=03030000 (no RDMA device) os=0 client-used");
}

/* As Linux 6.12 sent them. */
START_TEST(clc_lines_of_version_2)
{
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d901009c220000000000000000000000000000000000000000000000000000000000000000"
	                     "00000000000000000000001c00000000000000000000000000000000000000000000000000000000"
	                     "010000100000000000000000000000000000ffff0a630101ff020001000000000000000000000000"
	                     "564d4c41422e554549442e312020202020202020202020202020202020202020e2d4c3d9"),
	    "CLC Proposal v2 len=156 offers=none v2=smc-r peer=0000000000000000 gid=:: mac=00:00:00:00:00:00 "
	    "growth=40 subnet=0.0.0.0/0 v2-gid=::ffff:10.99.1.1 release=1 max-conns=255 max-links=2 features=0001 "
	    "eid=VMLAB.UEID.1");
	ck_assert_str_eq(describe(wire_describe_clc,
	                     "e2d4c3d90300b428363152540001006100000000000000000000ffff0a6301015254000100610000"
	                     "11000003b501000000012300ff3a13928588000000b775f9564d4c41422e554549442e3120202020"
	                     "20202020202020202020202020202020000000000000000080210000612020202020202020202020"
	                     "2020202020202020202020202020202020202020ff02000100000000000000000000000001000000"
	                     "00000000000000000000ffff0a630101e2d4c3d9"),
	    "CLC Confirm v2 len=180 first-contact peer=3631525400010061 gid=::ffff:10.99.1.1 "
	    "mac=52:54:00:01:00:61 qpn=000011 idx=1 token=00000001 size=65536 mtu=1024 vaddr=ff3a139285880000 "
	    "psn=b775f9 eid=VMLAB.UEID.1 direct os=2 (Linux) host=a release=1 max-conns=255 max-links=2 "
	    "features=0001 other-gid=::ffff:10.99.1.1");
}

/* Bytes of a peer are one word whatever they are: no blanks, no line ends. */
START_TEST(host_name_of_a_peer_is_one_word)
{
	struct clc_msg m = { .type = CLC_ACCEPT,
		.version = 2,
		.accept = { .first_contact = true,
		    .rmbe_idx = 1,
		    .mtu_code = 3,
		    .first = { .present = true, .os = 9, .host = "a b\nc\x1bx\xff=d" } } };
	uint8_t b[CLC_MAX_SENT_LEN];

	ck_assert_int_eq(clc_eid_parse("X", &m.accept.eid), 0);
	int n = clc_encode(&m, b, sizeof(b));
	ck_assert_int_gt(n, 0);
	wire_describe_clc((struct span){ b, (size_t)n }, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, " eid=X os=9 (unknown) host=a?b?c?x?=d release=0"));
}

START_TEST(llc_lines)
{
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "012c008302000000000100000000000000000000fff"
	                     "f0a0000010000120100000102020000"),
	    "LLC CONFIRM LINK response link=1 gid=::ffff:10.0.0.1 mac=02:00:00:00:00:01 "
	    "qpn=000012 uid=00000102 max-links=2 no-eyecatcher");
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "022c01c0 020000000001 0000 "
	                     "00000000000000000000ffff0a000001 000012 02 03 abcdef"),
	    "LLC ADD LINK response rejected=1 (no alternate path) link=2 gid=::ffff:10.0.0.1 "
	    "mac=02:00:00:00:00:01 qpn=000012 mtu=1024 psn=abcdef");
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "032c0000 0201 0000 11111111 22222222 "
	                     "0000000000003000"),
	    "LLC ADD LINK CONTINUATION request link=2 left=1 new-vaddr=0000000000003000");
	ck_assert_str_eq(describe(wire_describe_llc, "042c0060 00 00020000"),
	    "LLC DELETE LINK request all orderly link=0 reason=00020000 (operator)");
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "062c00b0 01 11111111 0000000000001000 "
	                     "02 22222222 0000000000002000"),
	    "LLC CONFIRM RKEY response negative retry vaddr=0000000000001000 others=1 "
	    "link=2 vaddr=0000000000002000");
	ck_assert_str_eq(describe(wire_describe_llc, "082c0020 01 02 22222222 0000000000002000"),
	    "LLC CONFIRM RKEY CONTINUATION request negative left=1 link=2 vaddr=0000000000002000");
	ck_assert_str_eq(describe(wire_describe_llc, "092c00a0 02 40 0000 11111111 22222222"),
	    "LLC DELETE RKEY response negative count=2 errors=40");
	ck_assert_str_eq(describe(wire_describe_llc, "072c0000 30313233343536373839616263646566"),
	    "LLC TEST LINK request data=30313233343536373839616263646566");
}

START_TEST(llc_lines_of_version_2)
{
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "212c0083 020000000001 00000000000000000000ffff0a000001 000012 01 00000102 02 ff"),
	    "LLC CONFIRM LINK response version=2 little-endian link=1 gid=::ffff:10.0.0.1 mac=02:00:00:00:00:01 qpn=000012 "
	    "uid=00000102 max-links=2 max-conns=255 no-eyecatcher");
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "22005800 020000000001 0000 00000000000000000000ffff0a000001 000012 02 03 123456 "
	                     "0000000000000000 80 00 00000000000000000000ffff0a000002 0000000000000000 0001 "
	                     "11111111 22222222 0000000000001000"),
	    "LLC ADD LINK request version=2 big-endian link=2 gid=::ffff:10.0.0.1 mac=02:00:00:00:00:01 qpn=000012 mtu=1024 "
	    "psn=123456 direct client-gid=::ffff:10.0.0.2 rtokens=1 new-vaddr=0000000000001000");
	ck_assert_str_eq(describe(wire_describe_llc, "222c00c0 020000000001 0000"),
	    "LLC ADD LINK response version=2 little-endian rejected link=0 gid=:: mac=02:00:00:00:00:01 qpn=000000 "
	    "mtu=0 psn=000000");
	ck_assert_str_eq(describe(wire_describe_llc,
	                     "253c0000 0000000000000000000000000000000000000000 02000000 "
	                     "00000000000000000000ffff0a000001 00000000000000000000ffff0a000002"),
	    "LLC REQUEST ADD LINK request version=2 little-endian gid=::ffff:10.0.0.1 gid=::ffff:10.0.0.2");
	ck_assert_str_eq(describe(wire_describe_llc, "292c00a0 ff 02 0000"),
	    "LLC DELETE RKEY response version=2 little-endian negative count=255 invalid=2");
}

START_TEST(cdc_lines)
{
	ck_assert_str_eq(describe(wire_describe_cdc,
	                     "fe2c0102 00000100 0000 0002 00000005 "
	                     "0000 0001 00000007 f8e0"),
	    "CDC seq=258 token=00000100 prod=2/5 cons=1/7 write-blocked urgent-pending "
	    "urgent-present update-requested failover sending-done closed abort");
	ck_assert_str_eq(
	    describe(wire_describe_cdc, "fe2c0001 00000100"), "CDC seq=1 token=00000100 prod=0/0 cons=0/0");
}

START_TEST(what_does_not_decode)
{
	ck_assert_str_eq(describe(wire_describe_clc, ""), "CLC incomplete len=0");
	ck_assert_str_eq(describe(wire_describe_clc, "47455420"), "CLC malformed len=4");
	ck_assert_str_eq(describe(wire_describe_llc, "812c"), "LLC unknown type, to be ignored len=44 type=81");
	ck_assert_str_eq(describe(wire_describe_llc, "232c"), "LLC unknown type or value len=44 type=23");
	ck_assert_str_eq(describe(wire_describe_llc, "222c"), "LLC malformed len=44 type=22");
	ck_assert_str_eq(describe(wire_describe_llc, "0900"), "LLC malformed len=44 type=09");
	ck_assert_str_eq(describe(wire_describe_llc, ""), "LLC malformed len=0");
	ck_assert_str_eq(describe(wire_describe_cdc, "0100"), "CDC malformed len=44");
}

/* Every byte of every rkey field is 0x5e here and nothing else is. */
START_TEST(rkeys_and_the_token_never_appear)
{
	static const char *const llc[] = {
		"032c0000 0202 0000 5e5e5e5e 5e5e5e5e 0000000000000000 5e5e5e5e 5e5e5e5e",
		"062c0000 02 5e5e5e5e 0000000000000000 02 5e5e5e5e 0000000000000000 03 5e5e5e5e",
		"082c0000 03 01 5e5e5e5e 0000000000000000 02 5e5e5e5e 0000000000000000 03 5e5e5e5e",
		"092c0000 08 00 0000 5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e",
		"0900 5e5e5e5e5e5e5e5e",
		("22580000 000000000000 0000 00000000000000000000000000000000 000000 00 00 000000 0000000000000000 "
		 "00 00 00000000000000000000000000000000 0000000000000000 0100 5e5e5e5e 5e5e5e5e 0000000000000000"),
		"292c0000 0200 0000 5e5e5e5e5e5e5e5e",
	};
	struct clc_msg m = { .type = CLC_ACCEPT,
		.version = 1,
		.accept = { .rkey = 0x5e5e5e5e,
		    .rmbe_idx = 1,
		    .mtu_code = 3,
		    .ext = { .present = true,
		        .version = 1,
		        .transports = 3,
		        .mpa_port = 5045,
		        .recv_depth = 64,
		        .token = 0x5e5e5e5e5e5e5e5e } } };
	uint8_t b[CLC_MAX_SENT_LEN];
	int n = clc_encode(&m, b, sizeof(b));

	for (size_t i = 0; i < sizeof(llc) / sizeof(llc[0]); i++)
		ck_assert_ptr_null(strstr(describe(wire_describe_llc, llc[i]), "5e"));
	ck_assert_int_gt(n, 0);
	wire_describe_clc((struct span){ b, (size_t)n }, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "5e"));
	ck_assert_ptr_nonnull(strstr(text, "smcrd=v1,roce,iwarp mpa-port=5045 recv-depth=64"));
	m.accept.ext.transports = CLC_TRANSPORT_IWARP_SCTP | CLC_TRANSPORT_IWARP_SCTP_UDP;
	n = clc_encode(&m, b, sizeof(b));
	wire_describe_clc((struct span){ b, (size_t)n }, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "smcrd=v1,iwarp-sctp,iwarp-sctp-udp mpa-port=5045 recv-depth=64"));
}

/* The longest line fits the announced size; smaller buffers cut it cleanly. */
START_TEST(cut_at_every_size)
{
	struct clc_msg m = { .type = CLC_PROPOSAL,
		.version = 2,
		.proposal = { .ipv4_len = 32,
		    .typev1 = CLC_PATH_BOTH,
		    .typev2 = CLC_PATH_BOTH,
		    .ipv4_subnet = UINT32_MAX,
		    .ipv6_cnt = CLC_MAX_IPV6,
		    .ext = { .present = true,
		        .version = 255,
		        .transports = 3,
		        .mpa_port = UINT16_MAX,
		        .recv_depth = UINT16_MAX },
		    .v2 = { .present = true,
		        .eid_cnt = CLC_MAX_EIDS,
		        .release = CLC_RELEASE,
		        .max_conns = UINT8_MAX,
		        .max_links = CLC_MAX_MAX_LINKS,
		        .features = UINT16_MAX } } };
	char whole[WIRE_DESCRIBE_LEN];
	uint8_t b[CLC_MAX_SENT_LEN];

	memset(m.proposal.gid, 0xff, sizeof(m.proposal.gid));
	memset(m.proposal.v2.gid, 0xff, sizeof(m.proposal.v2.gid));
	memset(m.proposal.v2.eids, 'W', sizeof(m.proposal.v2.eids));
	for (unsigned i = 0; i < CLC_MAX_IPV6; i++) {
		memset(m.proposal.ipv6[i].addr, 0xff, 16);
		m.proposal.ipv6[i].len = 128;
	}
	int n = clc_encode(&m, b, sizeof(b));
	ck_assert_int_gt(n, 0);
	int len = wire_describe_clc((struct span){ b, (size_t)n }, whole, sizeof(whole));
	ck_assert_int_lt(len, WIRE_DESCRIBE_LEN - 1);
	ck_assert_ptr_nonnull(strstr(whole, "recv-depth=65535"));
	for (size_t cap = 1; cap <= (size_t)len + 1; cap++) {
		memset(text, 'x', sizeof(text));
		ck_assert_int_eq(wire_describe_clc((struct span){ b, (size_t)n }, text, cap), (int)cap - 1);
		ck_assert_int_eq(memcmp(text, whole, cap - 1), 0);
		ck_assert_int_eq(text[cap - 1], '\0');
		ck_assert_int_eq(text[cap], 'x');
	}
}

static void
check_clc_vector(const char *name, struct span in)
{
	ck_assert_msg(wire_describe_clc(in, text, sizeof(text)) > 40, "%s: %s", name, text);
	ck_assert_msg(strstr(text, "peer=") != NULL, "%s: %s", name, text);
}

static void
check_llc_vector(const char *name, struct span in)
{
	ck_assert_msg(wire_describe_llc(in, text, sizeof(text)) > 20, "%s: %s", name, text);
	ck_assert_msg(strstr(text, "unknown") == NULL || strstr(text, "unknown link") != NULL, "%s: %s", name, text);
}

static void
check_cdc_vector(const char *name, struct span in)
{
	ck_assert_msg(wire_describe_cdc(in, text, sizeof(text)) > 40, "%s: %s", name, text);
}

START_TEST(captured_messages)
{
	ck_assert_uint_gt(vectors_each("clc", check_clc_vector), 0);
	ck_assert_uint_gt(vectors_each_in("smc2.txt", "clc", check_clc_vector), 0);
	ck_assert_uint_gt(vectors_each("llc", check_llc_vector), 0);
	ck_assert_uint_gt(vectors_each_in("smc2.txt", "llc", check_llc_vector), 0);
	ck_assert_uint_gt(vectors_each("cdc", check_cdc_vector), 0);
}
