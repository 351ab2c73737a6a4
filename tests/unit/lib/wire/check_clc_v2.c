/* SMC version 2 in CLC messages: the fields, each length, each lie. What Linux sends is in vectors/smc2.txt and replayed by
 * check_clc.c. */
#include <errno.h>
#include <stdio.h>

#include "clc_bytes.h"
#include "unit.h"
#include "vectors.h"
#include "wire/clc.h"

/* Offsets in what Linux sends. */
#define V2_OFF_AT 50    /* Proposal: where the extension is, counted from byte 52 */
#define BOTH_EXT_AT 88  /* the extension in a Proposal of both versions with one subnet */
#define ALONE_EXT_AT 80 /* in one of version 2 alone */
#define EIDS_AT 40      /* in the extension */
#define FIRST_AT 104    /* Accept, Confirm: the first-contact extension */
#define GID_LIST_AT 156 /* Confirm */

static const char *wanted_name;
static struct buf found;

static void
take(const char *name, struct span in)
{
	if (strcmp(name, wanted_name) != 0)
		return;
	memcpy(found.b, in.ptr, in.len);
	found.len = in.len;
}

static struct buf
captured(const char *name)
{
	wanted_name = name;
	found.len = 0;
	vectors_each_in("smc2.txt", "clc", take);
	ck_assert_msg(found.len > 0, "%s", name);
	return found;
}

#define PROPOSAL_BOTH "av2-4-proposal"
#define PROPOSAL_ALONE "k612-a-4-proposal"
#define ACCEPT_FIRST "k612-a-6-accept"
#define CONFIRM_FIRST "k612-a-8-confirm"
#define CONFIRM_FIRST_0 "av2-8-confirm"
#define ACCEPT_AGAIN "bv2-10-accept"

/* The same message cut or filled with zeroes to that length, whole in itself. */
static struct buf
resized(const struct buf *in, size_t len)
{
	struct buf out = *in;

	if (len > in->len)
		memset(out.b + in->len - 4, 0, len - in->len);
	memcpy(out.b + len - 4, "\xe2\xd4\xc3\xd9", 4);
	out.len = len;
	set_len(&out, (unsigned)len);
	return out;
}

static void
put16(struct buf *m, size_t at, unsigned v)
{
	m->b[at] = (uint8_t)(v >> 8);
	m->b[at + 1] = (uint8_t)v;
}

static struct clc_eid
eid_of(const char *text)
{
	struct clc_eid eid;

	ck_assert_int_eq(clc_eid_parse(text, &eid), 0);
	return eid;
}

static void
check_eid(const struct clc_eid *eid, const char *wanted)
{
	char text[CLC_EID_LEN + 1];

	clc_field_str(eid->b, text);
	ck_assert_str_eq(text, wanted);
}

/* -- Proposals -- */

START_TEST(proposal_of_both_versions)
{
	struct buf in = captured(PROPOSAL_BOTH);
	struct clc_msg m = expect_ok(&in);
	const struct clc_proposal *p = &m.proposal;

	ck_assert_uint_eq(m.version, 2);
	ck_assert_int_eq(p->typev1, CLC_PATH_R);
	ck_assert_int_eq(p->typev2, CLC_PATH_R);
	ck_assert_uint_eq(p->gid[0], 0xfe);
	ck_assert_uint_eq(p->growth_len, 40);
	ck_assert_uint_eq(p->ipv4_subnet, 0x0a630100);
	ck_assert(p->v2.present);
	ck_assert_uint_eq(p->v2.release, 0);
	ck_assert_uint_eq(p->v2.max_conns, 0);
	ck_assert_mem_eq(p->v2.gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x63\x01\x01", 16);
	ck_assert_uint_eq(p->v2.eid_cnt, 1);
	check_eid(&p->v2.eids[0], "VMLAB.UEID.1");
	ck_assert(!p->ext.present);
}

START_TEST(proposal_of_version_2_alone)
{
	static const uint8_t zero[16];
	struct buf in = captured(PROPOSAL_ALONE);
	struct clc_msg m = expect_ok(&in);
	const struct clc_proposal *p = &m.proposal;

	ck_assert_int_eq(p->typev1, CLC_PATH_NONE);
	ck_assert_int_eq(p->typev2, CLC_PATH_R);
	ck_assert_mem_eq(p->peer_id, zero, sizeof(p->peer_id));
	ck_assert_mem_eq(p->gid, zero, sizeof(p->gid));
	ck_assert_mem_eq(p->mac, zero, sizeof(p->mac));
	ck_assert_uint_eq(p->ipv4_len, 0);
	ck_assert_uint_eq(p->ipv6_cnt, 0);
	ck_assert_uint_eq(p->v2.release, 1);
	ck_assert_uint_eq(p->v2.max_conns, 255);
	ck_assert_uint_eq(p->v2.max_links, 2);
	ck_assert_uint_eq(p->v2.features, 1);
	check_eid(&p->v2.eids[0], "VMLAB.UEID.1");
}

/* The extension needs its last byte; what follows it is of the future. */
START_TEST(each_length_of_a_proposal)
{
	static const char *const names[] = { PROPOSAL_BOTH, PROPOSAL_ALONE };

	for (size_t i = 0; i < 2; i++) {
		struct buf in = captured(names[i]);

		for (size_t len = 12; len < in.len + 200; len++) {
			struct buf out = resized(&in, len);

			if (len < in.len)
				expect(&out, -EBADMSG);
			else
				ck_assert_uint_eq(expect_ok(&out).proposal.v2.eid_cnt, 1);
		}
	}
}

START_TEST(offset_of_the_extension)
{
	struct buf both = captured(PROPOSAL_BOTH), alone = captured(PROPOSAL_ALONE);
	unsigned last_both = (unsigned)both.len - 4 - 52 - EIDS_AT, last_alone = (unsigned)alone.len - 4 - 52 - EIDS_AT;

	for (unsigned off = 1; off <= 0xffff; off++) {
		put16(&both, V2_OFF_AT, off);
		put16(&alone, V2_OFF_AT, off);
		if (off < 36 || off > last_both)
			expect(&both, -EBADMSG); /* in the prefixes, or beyond the end */
		if (off > last_alone)
			expect(&alone, -EBADMSG);
	}
	/* None: version 1 is left, or nothing. */
	put16(&both, V2_OFF_AT, 0);
	put16(&alone, V2_OFF_AT, 0);
	ck_assert(!expect_ok(&both).proposal.v2.present);
	expect(&alone, -EPROTO);
	ck_assert_uint_eq(clc_bad_value_diag((struct span){ alone.b, alone.len }), CLC_DIAG_NO_V2_EXT);
}

/* Linux has 40 bytes before the extension. Others are read, too, if only the offset is there; in front of an IP area it need not
 * be. */
START_TEST(growth_area_in_front_of_the_extension)
{
	struct buf in = captured(PROPOSAL_ALONE);
	struct clc_msg alone = expect_ok(&in);

	in = captured(PROPOSAL_BOTH);
	struct clc_msg both = expect_ok(&in);
	for (uint16_t n = 0; n <= CLC_GROWTH_LEN + 1; n++) {
		both.proposal.growth_len = alone.proposal.growth_len = n;
		if (n < 12 || n > CLC_GROWTH_LEN) {
			expect_encode_fails(&both, CLC_MAX_SENT_LEN, -EINVAL);
		} else {
			struct clc_msg m;

			in = encoded(&both);
			ck_assert_uint_eq(in.len, 124u + n);
			m = expect_ok(&in);
			ck_assert_uint_eq(m.proposal.growth_len, n);
			ck_assert(m.proposal.v2.present);
		}
		if (n <= 12 || n > CLC_GROWTH_LEN) { /* at 12 the offset would be 0 */
			expect_encode_fails(&alone, CLC_MAX_SENT_LEN, -EINVAL);
		} else {
			in = encoded(&alone);
			ck_assert_uint_eq(in.len, 116u + n);
			ck_assert_uint_eq(expect_ok(&in).proposal.growth_len, n);
		}
	}
	both.proposal.v2.present = false;
	both.proposal.growth_len = 11;
	in = encoded(&both);
	ck_assert(!expect_ok(&in).proposal.v2.present);
	both.proposal.growth_len = 0; /* "version 2, too", and no place for its offset */
	in = encoded(&both);
	ck_assert(!expect_ok(&in).proposal.v2.present);
}

START_TEST(eids_of_a_proposal)
{
	struct buf in = captured(PROPOSAL_ALONE);
	struct clc_msg m = expect_ok(&in);

	for (uint8_t n = 0; n <= CLC_MAX_EIDS; n++) {
		char text[16];

		if (n > 0) {
			snprintf(text, sizeof(text), "EID-%u", n);
			m.proposal.v2.eids[n - 1] = eid_of(text);
		}
		m.proposal.v2.eid_cnt = n;
		in = encoded(&m);
		ck_assert_uint_eq(in.len, 124u + 32u * n);
		struct clc_msg again = expect_ok(&in);
		ck_assert_uint_eq(again.proposal.v2.eid_cnt, n);
		if (n > 0)
			check_eid(&again.proposal.v2.eids[n - 1], text);
		check_again(&in, &again);
		for (unsigned lie = n + 1u; lie < 256; lie++) {
			in.b[ALONE_EXT_AT] = (uint8_t)lie;
			expect(&in, -EBADMSG);
		}
	}
	in = resized(&in, CLC_MAX_LEN); /* room for more than there may be */
	in.b[ALONE_EXT_AT] = CLC_MAX_EIDS + 1;
	expect(&in, -EBADMSG);
}

static const char *const no_eids[] = {
	"vmlab.ueid.1                    ",
	"VMLAB UEID                      ",
	" VMLAB                          ",
	"-VMLAB                          ",
	".VMLAB                          ",
	"VM..LAB                         ",
	"VM_LAB                          ",
	"VMLAB\0                          ",
	"VMLAB\xc1                          ",
	"VMLAB\n                          ",
	"                                ",
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
};

/* The others count, in their order: what is no EID equals none of ours. */
START_TEST(what_is_no_eid_is_left_out)
{
	struct buf in = captured(PROPOSAL_ALONE);
	struct clc_msg m = expect_ok(&in);

	m.proposal.v2.eid_cnt = 3;
	m.proposal.v2.eids[0] = eid_of("A");
	m.proposal.v2.eids[1] = eid_of("B");
	m.proposal.v2.eids[2] = eid_of("C");
	for (size_t i = 0; i < sizeof(no_eids) / sizeof(no_eids[0]); i++) {
		in = encoded(&m);
		memcpy(in.b + ALONE_EXT_AT + EIDS_AT + CLC_EID_LEN, no_eids[i], CLC_EID_LEN);
		struct clc_msg out = expect_ok(&in);
		ck_assert_uint_eq(out.proposal.v2.eid_cnt, 2);
		check_eid(&out.proposal.v2.eids[0], "A");
		check_eid(&out.proposal.v2.eids[1], "C");
		struct clc_msg bad = m;
		memcpy(bad.proposal.v2.eids[1].b, no_eids[i], CLC_EID_LEN);
		expect_encode_fails(&bad, CLC_MAX_SENT_LEN, -EINVAL);
	}
}

/* SMC-D's extension behind the EIDs is skipped, but must be where it is said to be. */
START_TEST(smcd_extension)
{
	static const uint16_t gaps[] = { 0, 1, 77 };
	struct buf plain = captured(PROPOSAL_BOTH);
	size_t smcd_at = plain.len - 4;

	for (unsigned ism = 0; ism <= CLC_MAX_GIDS + 1; ism++) {
		for (size_t g = 0; g < 3; g++) {
			size_t len = plain.len + gaps[g] + 48 + 10 * ism;
			struct buf in = resized(&plain, len);

			in.b[7] = 0x2c; /* typev2: both */
			in.b[BOTH_EXT_AT + 1] = (uint8_t)ism;
			put16(&in, BOTH_EXT_AT + 6, (unsigned)(smcd_at + gaps[g] - BOTH_EXT_AT - 8));
			if (ism > CLC_MAX_GIDS) {
				expect(&in, -EBADMSG);
				continue;
			}
			ck_assert_uint_eq(expect_ok(&in).proposal.v2.eid_cnt, 1);
			for (size_t less = 1; less <= 48 + 10 * ism; less++) {
				struct buf cut = resized(&in, len - less);
				expect(&cut, -EBADMSG);
			}
			put16(&in, BOTH_EXT_AT + 6, 63); /* in the EID */
			expect(&in, -EBADMSG);
			put16(&in, BOTH_EXT_AT + 6, 0xffff);
			expect(&in, -EBADMSG);
		}
	}
	plain.b[BOTH_EXT_AT + 1] = 1; /* a GID, and no extension for it */
	expect(&plain, -EBADMSG);
}

/* "Both" is SMC-R as well as SMC-D; SMC-D alone of version 2 has an extension that says nothing to us. */
START_TEST(paths_of_both_versions)
{
	for (unsigned v1 = 0; v1 < 4; v1++) {
		for (unsigned v2 = 0; v2 < 4; v2++) {
			struct buf in = captured(v1 == CLC_PATH_NONE ? PROPOSAL_ALONE : PROPOSAL_BOTH);
			bool offered = v2 == CLC_PATH_R || v2 == CLC_PATH_BOTH;
			struct span bytes = { in.b, in.len };

			in.b[7] = (uint8_t)(0x20 | v2 << 2 | v1);
			if (v1 == CLC_PATH_NONE && !offered) {
				expect(&in, -EPROTO);
				ck_assert_uint_eq(clc_bad_value_diag(bytes), CLC_DIAG_MODE_MISMATCH);
			} else if (v2 == CLC_PATH_NONE) {
				expect(&in, -EBADMSG); /* yet there is one */
			} else {
				struct clc_msg m = expect_ok(&in);

				ck_assert_int_eq(m.proposal.typev1, (enum clc_path)v1);
				ck_assert_int_eq(m.proposal.typev2, (enum clc_path)v2);
				ck_assert_int_eq(m.proposal.v2.present, offered);
				if (offered)
					check_again(&in, &m);
			}
		}
	}
}

/* For a peer that may be a smcrd or a Linux. */
START_TEST(both_extensions_in_one_proposal)
{
	struct buf in = captured(PROPOSAL_BOTH);
	struct clc_msg m = expect_ok(&in), out;

	m.proposal.ext = an_ext;
	for (uint8_t n = 0; n <= CLC_MAX_IPV6; n++) {
		m.proposal.ipv6_cnt = n;
		in = encoded(&m);
		ck_assert_uint_eq(in.len, 164u + 17u * n);
		ck_assert_uint_eq(in.b[V2_OFF_AT + 1], 36u + 17u * n);
		out = expect_ok(&in);
		check_ext(&out.proposal.ext);
		ck_assert_uint_eq(out.proposal.ipv6_cnt, n);
		ck_assert(out.proposal.v2.present);
		check_eid(&out.proposal.v2.eids[0], "VMLAB.UEID.1");
		check_again(&in, &out);
		check_truncations(&in);
	}
	/* But for the offset and what says version 2 a peer of ours gets the same bytes as ever. */
	m.proposal.ipv6_cnt = 0;
	in = encoded(&m);
	m.version = 1;
	m.proposal.v2.present = false;
	struct buf v1 = encoded(&m);
	ck_assert_mem_eq(in.b + 8, v1.b + 8, V2_OFF_AT - 8);
	ck_assert_mem_eq(in.b + V2_OFF_AT + 2, v1.b + V2_OFF_AT + 2, BOTH_EXT_AT - V2_OFF_AT - 2);
	ck_assert_uint_eq(v1.b[V2_OFF_AT + 1], 0);
	/* Version 2 alone has room for it, too. */
	in = captured(PROPOSAL_ALONE);
	m = expect_ok(&in);
	m.proposal.ext = an_ext;
	in = encoded(&m);
	out = expect_ok(&in);
	check_ext(&out.proposal.ext);
	ck_assert(out.proposal.v2.present);
}

START_TEST(encoder_refuses_an_offer_out_of_range)
{
	struct buf in = captured(PROPOSAL_ALONE);
	struct clc_msg m = expect_ok(&in);

	REFUSE(m, version, 1);
	REFUSE(m, version, 3);
	REFUSE(m, proposal.v2.present, false); /* then it offers nothing */
	REFUSE(m, proposal.typev2, CLC_PATH_D);
	REFUSE(m, proposal.typev2, CLC_PATH_NONE);
	REFUSE(m, proposal.v2.eid_cnt, CLC_MAX_EIDS + 1);
	REFUSE(m, proposal.v2.release, CLC_RELEASE + 1);
	REFUSE(m, proposal.v2.release, 16);
	REFUSE(m, proposal.v2.max_conns, CLC_MIN_MAX_CONNS - 1);
	REFUSE(m, proposal.v2.max_links, 0);
	REFUSE(m, proposal.v2.max_links, CLC_MAX_MAX_LINKS + 1);
}

/* What a peer says of itself comes through as it is, before release 1 as nothing. */
START_TEST(release_and_limits_of_an_offer)
{
	struct buf in = captured(PROPOSAL_ALONE);

	for (unsigned release = 0; release < 16; release++) {
		in.b[ALONE_EXT_AT + 3] = (uint8_t)(release << 4 | 0x01);
		memcpy(in.b + ALONE_EXT_AT + 24, "\x03\xff\xab\xcd", 4);
		struct clc_msg m = expect_ok(&in);
		ck_assert_uint_eq(m.proposal.v2.release, release);
		ck_assert_uint_eq(m.proposal.v2.max_conns, release == 0 ? 0 : 3);
		ck_assert_uint_eq(m.proposal.v2.max_links, release == 0 ? 0 : 255);
		ck_assert_uint_eq(m.proposal.v2.features, release == 0 ? 0 : 0xabcd);
	}
}

/* -- Accept and Confirm -- */

START_TEST(accept_of_version_2)
{
	struct buf in = captured(ACCEPT_FIRST);
	struct clc_msg m = expect_ok(&in);
	const struct clc_first_contact *f = &m.accept.first;
	char host[CLC_HOST_LEN + 1];

	ck_assert_uint_eq(m.version, 2);
	ck_assert(m.accept.first_contact);
	ck_assert_uint_eq(m.accept.qpn, 0x11);
	ck_assert_uint_eq(m.accept.psn, 0x57301a);
	check_eid(&m.accept.eid, "VMLAB.UEID.1");
	ck_assert(f->present);
	ck_assert(f->direct);
	ck_assert_uint_eq(f->os, CLC_OS_LINUX);
	ck_assert_uint_eq(f->release, 1);
	clc_field_str(f->host, host);
	ck_assert_str_eq(host, "b");
	ck_assert_uint_eq(f->max_conns, 255);
	ck_assert_uint_eq(f->max_links, 2);
	ck_assert_uint_eq(f->features, 1);
	ck_assert_uint_eq(f->gid_cnt, 0);
	in = captured(CONFIRM_FIRST);
	m = expect_ok(&in);
	ck_assert_int_eq(m.type, CLC_CONFIRM);
	ck_assert_uint_eq(f->gid_cnt, 1);
	ck_assert_mem_eq(f->gids[0], "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x63\x01\x01", 16);
	in = captured(ACCEPT_AGAIN);
	m = expect_ok(&in);
	ck_assert(!m.accept.first_contact);
	ck_assert(!f->present);
	check_eid(&m.accept.eid, "VMLAB.UEID.1");
}

/* Past what it must have, an Accept may have anything, a Confirm a whole GID list. */
START_TEST(each_length_of_an_accept)
{
	static const struct {
		const char *name;
		size_t needs;
		size_t list_from, list_to; /* lengths that end within the GID list */
	} msgs[] = {
		{ ACCEPT_FIRST, 160, 0, 0 },
		{ CONFIRM_FIRST, 160, 161, 179 },
		{ ACCEPT_AGAIN, 108, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(msgs) / sizeof(msgs[0]); i++) {
		struct buf in = captured(msgs[i].name);

		for (size_t len = 12; len < 400; len++) {
			struct buf out = resized(&in, len);
			bool cut = len < msgs[i].needs || (len >= msgs[i].list_from && len <= msgs[i].list_to);

			if (cut)
				expect(&out, -EBADMSG);
			else
				ck_assert_uint_eq(
				    expect_ok(&out).accept.first.gid_cnt, msgs[i].list_to > 0 && len > 160);
			if (len < 108)
				ck_assert_int_eq(clc_peek_len((struct span){ out.b, CLC_HDR_LEN }), -EBADMSG);
		}
	}
}

START_TEST(gid_list_of_a_confirm)
{
	struct buf in = captured(CONFIRM_FIRST);
	struct clc_msg m = expect_ok(&in);

	for (uint8_t n = 0; n <= CLC_MAX_GIDS; n++) {
		m.accept.first.gid_cnt = n;
		if (n > 0)
			memset(m.accept.first.gids[n - 1], n, CLC_GID_LEN);
		in = encoded(&m);
		ck_assert_uint_eq(in.len, 164u + 16u * n);
		struct clc_msg again = expect_ok(&in);
		ck_assert_uint_eq(again.accept.first.gid_cnt, n);
		ck_assert_mem_eq(again.accept.first.gids, m.accept.first.gids, (size_t)CLC_GID_LEN * n);
		check_again(&in, &again);
		check_truncations(&in);
		for (unsigned lie = n + 1u; lie < 256; lie++) {
			in.b[GID_LIST_AT] = (uint8_t)lie;
			expect(&in, -EBADMSG);
		}
	}
	in = resized(&in, CLC_MAX_LEN);
	in.b[GID_LIST_AT] = CLC_MAX_GIDS + 1;
	expect(&in, -EBADMSG);
	m.accept.first.gid_cnt = CLC_MAX_GIDS + 1;
	expect_encode_fails(&m, CLC_MAX_SENT_LEN, -EINVAL);
}

/*
 * 36 bytes instead of 52 is what release 0 was described with; Linux of that release (6.1) sends 52, too, and so do we to
 * everybody: the one form that does not come back as the same bytes.
 */
START_TEST(short_form_of_release_0)
{
	for (uint8_t n = 0; n <= CLC_MAX_GIDS; n++) {
		struct buf in = captured(CONFIRM_FIRST_0);
		struct clc_msg m = expect_ok(&in);

		m.accept.first.gid_cnt = n;
		for (uint8_t i = 0; i < n; i++)
			memset(m.accept.first.gids[i], i + 1, CLC_GID_LEN);
		struct buf whole = encoded(&m);
		in = whole;
		memmove(in.b + 140, in.b + 156, whole.len - 156);
		in = resized(&in, whole.len - 16);
		struct clc_msg out = expect_ok(&in);
		ck_assert_uint_eq(out.accept.first.release, 0);
		ck_assert_uint_eq(out.accept.first.gid_cnt, n);
		ck_assert_mem_eq(out.accept.first.gids, m.accept.first.gids, (size_t)CLC_GID_LEN * n);
		check_again(&whole, &out);
		in.b[FIRST_AT + 1] |= 1; /* release 1 has them: other bytes are in their place */
		if (n == 0)
			expect(&in, -EBADMSG);
	}
	struct buf in = captured(CONFIRM_FIRST_0);
	in = resized(&in, 144); /* without a list */
	ck_assert_uint_eq(expect_ok(&in).accept.first.gid_cnt, 0);
	in.b[4] = CLC_ACCEPT;
	ck_assert(expect_ok(&in).accept.first.present);
	in = resized(&in, 143);
	expect(&in, -EBADMSG);
}

START_TEST(eid_of_an_accept)
{
	struct buf in = captured(ACCEPT_AGAIN);
	struct clc_msg m = expect_ok(&in);

	for (size_t i = 0; i < sizeof(no_eids) / sizeof(no_eids[0]); i++) {
		struct buf bad = in;
		struct clc_msg none = m;

		memcpy(bad.b + 64, no_eids[i], CLC_EID_LEN);
		expect(&bad, -EBADMSG);
		memcpy(none.accept.eid.b, no_eids[i], CLC_EID_LEN);
		expect_encode_fails(&none, CLC_MAX_SENT_LEN, -EINVAL);
	}
}

START_TEST(accept_fields_out_of_range)
{
	struct buf in = captured(ACCEPT_FIRST);
	struct clc_msg m = expect_ok(&in);

	for (uint8_t path = 1; path < 4; path++) { /* Accept and Confirm say which of the paths it is */
		struct buf bad = in;

		bad.b[7] |= path;
		expect(&bad, -EBADMSG);
	}
	for (unsigned os = 0; os < 256; os++) {
		in.b[FIRST_AT + 1] = (uint8_t)os;
		struct clc_msg out = expect_ok(&in);
		ck_assert_uint_eq(out.accept.first.os, os >> 4);
		ck_assert_uint_eq(out.accept.first.release, os & 0x0f);
	}
	in.b[FIRST_AT] = 0x7f; /* all but "direct" */
	ck_assert(!expect_ok(&in).accept.first.direct);
	in.b[45] = 0; /* RMBE index */
	expect(&in, -EBADMSG);
	in.b[45] = 1;
	in.b[50] = 0x26; /* MTU */
	expect(&in, -EPROTO);
	ck_assert_uint_eq(clc_bad_value_diag((struct span){ in.b, in.len }), CLC_DIAG_CONFIG);
	REFUSE(m, accept.ext.present, true);
	REFUSE(m, accept.first.present, false);
	REFUSE(m, accept.first_contact, false);
	REFUSE(m, accept.first.os, 16);
	REFUSE(m, accept.first.release, CLC_RELEASE + 1);
	REFUSE(m, accept.first.release, 0x20);
	REFUSE(m, accept.first.max_conns, CLC_MIN_MAX_CONNS - 1);
	REFUSE(m, accept.first.max_links, 0);
	REFUSE(m, accept.first.max_links, CLC_MAX_MAX_LINKS + 1);
}

/* Nobody has told a peer of version 2 that it may send ours. */
START_TEST(no_smcrd_extension_in_version_2)
{
	struct buf in = captured(ACCEPT_AGAIN);

	in = resized(&in, in.len + 28);
	memcpy(in.b + FIRST_AT, "smrd\x1c\x01\x02", 7);
	ck_assert(!expect_ok(&in).accept.ext.present);
}

/* -- EIDs and host names -- */

START_TEST(eid_from_text)
{
	static const char *const good[] = { "A", "0", "VMLAB.UEID.1", "A-", "A.-.", "Z9.B--C",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ.01234" };
	static const char *const bad[] = { "", " ", "a", "Aa", ".A", "-A", "A B", "A ", " A", "A..B", "A_B", "A\xc4",
		"A\n", "ABCDEFGHIJKLMNOPQRSTUVWXYZ.012345" };
	struct clc_eid eid, before;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		eid = eid_of(good[i]);
		check_eid(&eid, good[i]);
		for (size_t at = strlen(good[i]); at < CLC_EID_LEN; at++)
			ck_assert_uint_eq(eid.b[at], ' ');
	}
	before = eid;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(clc_eid_parse(bad[i], &eid) == -EINVAL, "%s", bad[i]);
		ck_assert_mem_eq(&eid, &before, sizeof(eid));
	}
}

START_TEST(common_eid_is_the_first_of_ours)
{
	struct clc_eid ours[] = { eid_of("A"), eid_of("B"), eid_of("C") };
	struct clc_eid theirs[] = { eid_of("X"), eid_of("C"), eid_of("B") };

	ck_assert_ptr_eq(clc_eid_common(ours, 3, theirs, 3), &ours[1]);
	ck_assert_ptr_eq(clc_eid_common(ours, 3, theirs, 2), &ours[2]);
	ck_assert_ptr_null(clc_eid_common(ours, 3, theirs, 1));
	ck_assert_ptr_null(clc_eid_common(ours, 0, theirs, 3));
	ck_assert_ptr_null(clc_eid_common(ours, 3, theirs, 0));
	ck_assert_ptr_eq(clc_eid_find(theirs, 3, &ours[2]), &theirs[1]);
	ck_assert_ptr_null(clc_eid_find(theirs, 3, &ours[0]));
}

START_TEST(host_name_as_a_word)
{
	static const struct {
		const char *field, *word;
	} hosts[] = {
		{ "b                               ", "b" },
		{ "                                ", "" },
		{ "a.example.net\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "a.example.net" },
		{ "abcdefghijklmnopqrstuvwxyz012345", "abcdefghijklmnopqrstuvwxyz012345" },
		{ "a b\nc\x7f\x80\0d                       ",
		    "a?b?c"
		    "?"
		    "?"
		    "?"
		    "d" },
	};
	char word[CLC_HOST_LEN + 1];

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		clc_field_str((const uint8_t *)hosts[i].field, word);
		ck_assert_str_eq(word, hosts[i].word);
	}
}

START_TEST(operating_systems_in_words)
{
	ck_assert_str_eq(clc_os_str(CLC_OS_ZOS), "z/OS");
	ck_assert_str_eq(clc_os_str(CLC_OS_LINUX), "Linux");
	ck_assert_str_eq(clc_os_str(CLC_OS_AIX), "AIX");
	ck_assert_str_eq(clc_os_str(0), "unknown");
	ck_assert_str_eq(clc_os_str(15), "unknown");
}
