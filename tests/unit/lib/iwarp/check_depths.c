#include "iwarp/depths.h"

#include "unit.h"

#define NONE DEPTH_NONE

static const struct depths_config base = {
	.p2p = true,
	.rtr = RTR_ANY,
	.ird = 16,
	.ird_max = 32,
	.ord = 8,
};

static struct depths
depths_of(const struct depths_config *cfg)
{
	struct depths d;

	depths_init(&d, cfg);
	return d;
}

START_TEST(nothing_negotiated)
{
	struct depths d = depths_of(&base);

	ck_assert_uint_eq(d.ird, 16);
	ck_assert_uint_eq(d.ord, 8);
	ck_assert_uint_eq(d.peer_ird, NONE);
	ck_assert_uint_eq(d.peer_ord, NONE);
	ck_assert(!d.p2p);
	ck_assert_uint_eq(d.rtr, 0);
}

START_TEST(offer)
{
	struct depths_config c = base;
	struct enhanced e = depths_offer(&c);

	ck_assert_uint_eq(e.model, ENHANCED_P2P | RTR_ANY);
	ck_assert_uint_eq(e.ird, 16);
	ck_assert_uint_eq(e.ord, 8);
	c.p2p = false;
	ck_assert_uint_eq(depths_offer(&c).model, 0);
}

/* -- 9.1 -- */

START_TEST(responder)
{
	static const struct {
		uint16_t ird, ord;             /* offered */
		uint16_t our_ird_max, our_ord; /* responder */
		unsigned rtr;
		uint16_t answer_ird, answer_ord;
		uint16_t got_ird, got_ord; /* the responder's own */
	} rows[] = {
		/* plain: our IRD = what it wants to send, our ORD = at most what it takes */
		{ 16, 8, 32, 16, RTR_WRITE, 8, 16, 8, 16 },
		{ 4, 8, 32, 16, RTR_WRITE, 8, 4, 8, 4 },
		{ 1, 1, 32, 16, RTR_WRITE, 1, 1, 1, 1 },
		/* more wanted than we serve: we say how many */
		{ 16, 64, 32, 16, RTR_WRITE, 32, 16, 32, 16 },
		{ 0x3ffe, 0x3ffe, 32, 16, RTR_WRITE, 32, 16, 32, 16 },
		/* no Reads wanted; a Read RTR needs one all the same */
		{ 16, 0, 32, 16, RTR_WRITE, 0, 16, 0, 16 },
		{ 16, 0, 32, 16, RTR_READ, 1, 16, 1, 16 },
		/* 0x3fff: left to the ULP, ours unchanged, 0x3fff answered */
		{ 16, NONE, 32, 16, RTR_WRITE, NONE, 16, 16, 16 },
		{ NONE, 8, 32, 16, RTR_WRITE, 8, NONE, 8, 16 },
		{ NONE, NONE, 32, 16, RTR_READ, NONE, NONE, 16, 16 },
		/* an initiator that takes no Reads at all */
		{ 0, 8, 32, 16, RTR_WRITE, 8, 0, 8, 0 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct enhanced offer = { ENHANCED_P2P | rows[k].rtr, rows[k].ird, rows[k].ord };
		struct depths_config c = base;
		const char *why = NULL;

		c.ird_max = rows[k].our_ird_max;
		c.ord = rows[k].our_ord;
		struct depths d = depths_of(&c);
		ck_assert(depths_judge(&d, &c, &offer, &why));
		ck_assert_ptr_null(why);
		struct enhanced answer = depths_answer(&d);
		ck_assert_msg(answer.ird == rows[k].answer_ird && answer.ord == rows[k].answer_ord, "row %u: %u %u", k,
		    answer.ird, answer.ord);
		ck_assert_msg(d.ird == rows[k].got_ird && d.ord == rows[k].got_ord, "row %u: %u %u", k, d.ird, d.ord);
		ck_assert_uint_eq(d.peer_ird, rows[k].ird);
		ck_assert_uint_eq(d.peer_ord, rows[k].ord);
	}
}

START_TEST(initiator)
{
	/* we offered IRD 16 (up to 32) and ORD 8, and need ORD 1 */
	static const struct {
		uint16_t ird, ord; /* answered */
		uint8_t code;
		uint16_t got_ird, got_ord;
	} rows[] = {
		{ 8, 16, 0, 16, 8 },
		{ 4, 16, 0, 16, 4 }, /* it serves fewer than we want */
		{ 1, 0, 0, 16, 1 },
		{ 20, 2, 0, 16, 8 }, /* our IRD is never lowered, our ORD never raised */
		{ 8, 17, 0, 17, 8 }, /* it sends more than we offered: raised */
		{ 8, 32, 0, 32, 8 },
		{ 8, 33, 6, 0, 0 }, /* beyond what we have */
		{ 8, 0x3ffe, 6, 0, 0 },
		{ 0, 16, 6, 0, 0 }, /* it serves no Reads: writes could not be confirmed */
		{ NONE, 16, 0, 16, 8 },
		{ 8, NONE, 0, 16, 8 },
		{ NONE, NONE, 0, 16, 8 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct enhanced answer = { ENHANCED_P2P | RTR_WRITE, rows[k].ird, rows[k].ord };
		struct depths_config c = base;
		const char *why = NULL;

		c.ord_min = 1;
		struct depths d = depths_of(&c);
		ck_assert_msg(depths_adopt(&d, &c, &answer, &why) == rows[k].code, "row %u", k);
		ck_assert_uint_eq(d.peer_ird, rows[k].ird);
		ck_assert_uint_eq(d.peer_ord, rows[k].ord);
		ck_assert_int_eq(why != NULL, rows[k].code != 0);
		ck_assert_msg(rows[k].code != 0 || (d.ird == rows[k].got_ird && d.ord == rows[k].got_ord),
		    "row %u: %u %u", k, d.ird, d.ord);
	}
}

START_TEST(our_depths_not_negotiated)
{
	struct depths_config ci = base;
	const char *why;

	ci.ird = ci.ird_max = ci.ord = NONE;
	struct enhanced offer = depths_offer(&ci);
	ck_assert_uint_eq(offer.ird, NONE);
	ck_assert_uint_eq(offer.ord, NONE);
	struct depths i = depths_of(&ci), r = depths_of(&base);
	ck_assert(depths_judge(&r, &base, &offer, &why));
	struct enhanced answer = depths_answer(&r);
	ck_assert_uint_eq(answer.ird, NONE);
	ck_assert_uint_eq(answer.ord, NONE);
	ck_assert_uint_eq(depths_adopt(&i, &ci, &answer, &why), 0);
	ck_assert_uint_eq(i.ird, NONE);
	ck_assert_uint_eq(i.ord, NONE);
	ck_assert_uint_eq(r.ird, base.ird);
	ck_assert_uint_eq(r.ord, base.ord);
	/* a peer that names numbers all the same is not heard */
	answer.ird = answer.ord = 5;
	i = depths_of(&ci);
	ck_assert_uint_eq(depths_adopt(&i, &ci, &answer, &why), 0);
	ck_assert_uint_eq(i.ird, NONE);
	ck_assert_uint_eq(i.ord, NONE);
}

START_TEST(a_responder_that_needs_more)
{
	const struct enhanced offer = { ENHANCED_P2P | RTR_SEND, 1, 8 };
	struct depths_config c = base;
	const char *why = NULL;

	c.ord_min = 2;
	struct depths d = depths_of(&c);
	ck_assert(!depths_judge(&d, &c, &offer, &why));
	ck_assert_str_eq(why, "the peer's IRD is too small");
	struct enhanced answer = depths_refusal(&c, &offer);
	ck_assert_uint_eq(answer.ord, 2); /* the ORD that is needed */
	ck_assert_uint_eq(answer.ird, 8);
	ck_assert_uint_eq(answer.model, ENHANCED_P2P | RTR_ANY);
}

/* Refused for other reasons: as an accepting answer, with all kinds of RTR. */
START_TEST(refusal)
{
	static const struct {
		struct enhanced offer, answer;
	} rows[] = {
		{ { ENHANCED_P2P | RTR_SEND, 4, 4 }, { ENHANCED_P2P | RTR_ANY, 4, 4 } },
		{ { ENHANCED_P2P | RTR_SEND, 100, 100 }, { ENHANCED_P2P | RTR_ANY, 32, 8 } },
		{ { ENHANCED_P2P | RTR_SEND, NONE, NONE }, { ENHANCED_P2P | RTR_ANY, NONE, NONE } },
		{ { 0, 4, 4 }, { 0, 4, 4 } },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct enhanced answer = depths_refusal(&base, &rows[k].offer);

		ck_assert_uint_eq(answer.model, rows[k].answer.model);
		ck_assert_uint_eq(answer.ird, rows[k].answer.ird);
		ck_assert_uint_eq(answer.ord, rows[k].answer.ord);
	}
}

/* -- 9.2 -- */

/* All sets of RTR kinds against all others. */
START_TEST(rtr_choice)
{
	for (unsigned mine = 1; mine < 8; mine++)
		for (unsigned theirs = 1; theirs < 8; theirs++) {
			struct depths_config ci = base, cr = base;
			unsigned common = (mine & theirs) << 1;
			const char *why = NULL;

			ci.rtr = mine << 1;
			cr.rtr = theirs << 1;
			struct depths i = depths_of(&ci), r = depths_of(&cr);
			struct enhanced offer = depths_offer(&ci);
			ck_assert(depths_judge(&r, &cr, &offer, &why));
			ck_assert_uint_eq(r.rtr, common ? common : cr.rtr);
			struct enhanced answer = depths_answer(&r);
			ck_assert_uint_eq(answer.model, ENHANCED_P2P | r.rtr);
			ck_assert_uint_eq(depths_adopt(&i, &ci, &answer, &why), common ? 0 : 7);
			if (common == 0)
				ck_assert_str_eq(why, "no RTR kind in common");
			else
				ck_assert_uint_eq(i.rtr,
				    common & RTR_WRITE      ? RTR_WRITE
				        : common & RTR_READ ? RTR_READ
				                            : RTR_SEND);
		}
}

/* A Read for an RTR, though the ULP wanted none. */
START_TEST(read_rtr_without_reads)
{
	struct depths_config c = base;
	const char *why;

	c.rtr = RTR_READ;
	c.ord = 0;
	struct enhanced answer = { ENHANCED_P2P | RTR_READ, 1, 4 };
	struct depths d = depths_of(&c);
	ck_assert_uint_eq(depths_adopt(&d, &c, &answer, &why), 0);
	ck_assert_uint_eq(d.ord, 1);
}

START_TEST(client_server_model)
{
	struct depths_config ci = base;
	const char *why;

	ci.p2p = false;
	struct depths i = depths_of(&ci), r = depths_of(&base);
	struct enhanced offer = depths_offer(&ci);
	ck_assert(depths_judge(&r, &base, &offer, &why));
	struct enhanced answer = depths_answer(&r);
	ck_assert_uint_eq(answer.model, 0);
	ck_assert_uint_eq(depths_adopt(&i, &ci, &answer, &why), 0);
	ck_assert(!r.p2p && !i.p2p);
	ck_assert_uint_eq(r.rtr, 0);
	ck_assert_uint_eq(i.rtr, 0);
}

START_TEST(answer_without_the_model_asked_for)
{
	const struct enhanced answer = { 0, 8, 8 };
	struct depths d = depths_of(&base);
	const char *why;

	ck_assert_uint_eq(depths_adopt(&d, &base, &answer, &why), 7);
}
