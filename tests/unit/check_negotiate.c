#include "iwarp/negotiate.h"

#include <signal.h>
#include <string.h>

#include "unit.h"

static const struct neg_config base = {
	.enhanced = true,
	.p2p = true,
	.rtr = MPA_RTR_ANY,
	.crc = true,
	.ird = 16,
	.ird_max = 32,
	.ord = 8,
};

static struct mpa_frame
request_of(const struct neg_config *cfg)
{
	struct mpa_frame f;
	struct neg n;

	neg_init(&n, cfg);
	neg_request(&n, &f);
	return f;
}

/* Both ends; the Reply in *reply. */
static void
run(const struct neg_config *ci, const struct neg_config *cr, struct neg *i, struct neg *r, struct mpa_frame *reply)
{
	struct mpa_frame req;

	neg_init(i, ci);
	neg_init(r, cr);
	neg_request(i, &req);
	ck_assert_int_eq(i->state, NEG_REQUESTED);
	if (neg_request_in(r, &req, reply) == NEG_CHECKED)
		neg_accept(r, reply);
	ck_assert_int_eq(reply->kind, MPA_REPLY);
	neg_reply_in(i, reply);
}

START_TEST(request_says_what_is_wanted)
{
	struct neg_config c = base;
	struct mpa_frame f = request_of(&c);

	ck_assert_int_eq(f.kind, MPA_REQUEST);
	ck_assert_uint_eq(f.rev, 2);
	ck_assert_uint_eq(f.flags, MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(f.model, MPA_P2P | MPA_RTR_ANY);
	ck_assert_uint_eq(f.ird, 16);
	ck_assert_uint_eq(f.ord, 8);
	c.p2p = false;
	ck_assert_uint_eq(request_of(&c).model, 0);
	c.enhanced = false;
	c.crc = false;
	c.markers = true;
	f = request_of(&c);
	ck_assert_uint_eq(f.rev, 1);
	ck_assert_uint_eq(f.flags, MPA_MARKERS);
}

/* CRC when either wants it, markers by each receiver's wish; all 16 combinations. */
START_TEST(crc_and_markers)
{
	for (unsigned bits = 0; bits < 16; bits++) {
		struct neg_config ci = base, cr = base;
		struct neg i, r;
		struct mpa_frame reply;

		ci.crc = bits & 1;
		cr.crc = bits & 2;
		ci.markers = bits & 4;
		cr.markers = bits & 8;
		run(&ci, &cr, &i, &r, &reply);
		ck_assert_int_eq(i.state, NEG_DONE);
		ck_assert_int_eq(r.state, NEG_DONE);
		ck_assert_int_eq(i.res.crc, ci.crc || cr.crc);
		ck_assert_int_eq(r.res.crc, i.res.crc);
		ck_assert_int_eq(i.res.markers_rx, ci.markers);
		ck_assert_int_eq(r.res.markers_tx, ci.markers);
		ck_assert_int_eq(i.res.markers_tx, cr.markers);
		ck_assert_int_eq(r.res.markers_rx, cr.markers);
	}
}

/* -- RFC 6581 9.1 -- */

struct depth_row {
	uint16_t ird, ord;             /* in the Request */
	uint16_t our_ird_max, our_ord; /* responder */
	unsigned rtr;
	uint16_t reply_ird, reply_ord;
	uint16_t got_ird, got_ord; /* the responder's own */
};

#define NONE MPA_DEPTH_NONE

START_TEST(responder_depths)
{
	static const struct depth_row rows[] = {
		/* plain: our IRD = what it wants to send, our ORD = at most what it takes */
		{ 16, 8, 32, 16, MPA_RTR_WRITE, 8, 16, 8, 16 },
		{ 4, 8, 32, 16, MPA_RTR_WRITE, 8, 4, 8, 4 },
		{ 1, 1, 32, 16, MPA_RTR_WRITE, 1, 1, 1, 1 },
		/* more wanted than we serve: we say how many */
		{ 16, 64, 32, 16, MPA_RTR_WRITE, 32, 16, 32, 16 },
		{ 0x3ffe, 0x3ffe, 32, 16, MPA_RTR_WRITE, 32, 16, 32, 16 },
		/* no Reads wanted; a Read RTR needs one all the same */
		{ 16, 0, 32, 16, MPA_RTR_WRITE, 0, 16, 0, 16 },
		{ 16, 0, 32, 16, MPA_RTR_READ, 1, 16, 1, 16 },
		/* 0x3fff: left to the ULP, ours unchanged, 0x3fff answered */
		{ 16, NONE, 32, 16, MPA_RTR_WRITE, NONE, 16, 16, 16 },
		{ NONE, 8, 32, 16, MPA_RTR_WRITE, 8, NONE, 8, 16 },
		{ NONE, NONE, 32, 16, MPA_RTR_READ, NONE, NONE, 16, 16 },
		/* an initiator that takes no Reads at all */
		{ 0, 8, 32, 16, MPA_RTR_WRITE, 8, 0, 8, 0 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct depth_row *t = &rows[k];
		struct neg_config c = base;
		struct mpa_frame f = {
			.kind = MPA_REQUEST, .rev = 2, .flags = MPA_ENHANCED,
			.model = MPA_P2P | t->rtr, .ird = t->ird, .ord = t->ord,
		}, reply;
		struct neg n;

		c.ird = 16;
		c.ird_max = t->our_ird_max;
		c.ord = t->our_ord;
		neg_init(&n, &c);
		ck_assert_int_eq(neg_request_in(&n, &f, &reply), NEG_CHECKED);
		neg_accept(&n, &reply);
		ck_assert_msg(
		    reply.ird == t->reply_ird && reply.ord == t->reply_ord, "row %u: %u %u", k, reply.ird, reply.ord);
		ck_assert_msg(
		    n.res.ird == t->got_ird && n.res.ord == t->got_ord, "row %u: %u %u", k, n.res.ird, n.res.ord);
		ck_assert_uint_eq(n.res.peer_ird, t->ird);
		ck_assert_uint_eq(n.res.peer_ord, t->ord);
	}
}

struct answer_row {
	uint16_t ird, ord; /* in the Reply */
	enum neg_state state;
	uint8_t term;
	uint16_t got_ird, got_ord;
};

START_TEST(initiator_depths)
{
	/* we offered IRD 16 (up to 32) and ORD 8, and need ORD 1 */
	static const struct answer_row rows[] = {
		{ 8, 16, NEG_DONE, 0, 16, 8 },
		{ 4, 16, NEG_DONE, 0, 16, 4 }, /* it serves fewer than we want */
		{ 20, 2, NEG_DONE, 0, 16, 8 }, /* our IRD is never lowered, our ORD never raised */
		{ 8, 17, NEG_DONE, 0, 17, 8 }, /* it sends more than we offered: raised */
		{ 8, 32, NEG_DONE, 0, 32, 8 },
		{ 8, 33, NEG_FAILED, 6, 0, 0 }, /* beyond what we have */
		{ 8, 0x3ffe, NEG_FAILED, 6, 0, 0 },
		{ 0, 16, NEG_FAILED, 6, 0, 0 }, /* it serves no Reads: writes could not be confirmed */
		{ NONE, 16, NEG_DONE, 0, 16, 8 },
		{ 8, NONE, NEG_DONE, 0, 16, 8 },
		{ NONE, NONE, NEG_DONE, 0, 16, 8 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const struct answer_row *t = &rows[k];
		struct neg_config c = base;
		struct mpa_frame req,
		    f = {
			    .kind = MPA_REPLY,
			    .rev = 2,
			    .flags = MPA_ENHANCED,
			    .model = MPA_P2P | MPA_RTR_WRITE,
			    .ird = t->ird,
			    .ord = t->ord,
		    };
		struct neg n;

		c.ord_min = 1;
		neg_init(&n, &c);
		neg_request(&n, &req);
		ck_assert_msg(neg_reply_in(&n, &f) == t->state, "row %u", k);
		ck_assert_uint_eq(n.res.peer_ird, t->ird);
		ck_assert_uint_eq(n.res.peer_ord, t->ord);
		if (t->state == NEG_FAILED) {
			ck_assert_uint_eq(n.term_code, t->term);
			ck_assert_ptr_nonnull(n.why);
			continue;
		}
		ck_assert_msg(
		    n.res.ird == t->got_ird && n.res.ord == t->got_ord, "row %u: %u %u", k, n.res.ird, n.res.ord);
	}
}

START_TEST(our_depths_not_negotiated)
{
	struct neg_config ci = base, cr = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.ird = ci.ird_max = ci.ord = NONE;
	run(&ci, &cr, &i, &r, &reply);
	ck_assert_int_eq(i.state, NEG_DONE);
	ck_assert_uint_eq(reply.ird, NONE);
	ck_assert_uint_eq(reply.ord, NONE);
	ck_assert_uint_eq(i.res.ird, NONE);
	ck_assert_uint_eq(i.res.ord, NONE);
	ck_assert_uint_eq(r.res.ird, base.ird);
	ck_assert_uint_eq(r.res.ord, base.ord);
}

START_TEST(responder_rejects_ird_0)
{
	struct neg_config ci = base, cr = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.ird = 0;
	cr.ord_min = 2;
	run(&ci, &cr, &i, &r, &reply);
	ck_assert_int_eq(r.state, NEG_REJECTED);
	ck_assert_int_eq(i.state, NEG_REJECTED);
	ck_assert_uint_eq(reply.flags, MPA_REJECT | MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(reply.ord, 2); /* the ORD that is needed */
	ck_assert_uint_eq(i.res.peer_ord, 2);
}

/* -- RFC 6581 9.2 -- */

/* All sets of RTR kinds against all others. */
START_TEST(rtr_choice)
{
	for (unsigned mine = 1; mine < 8; mine++)
		for (unsigned theirs = 1; theirs < 8; theirs++) {
			struct neg_config ci = base, cr = base;
			struct neg i, r;
			struct mpa_frame reply;
			unsigned common = mine & theirs;

			ci.rtr = mine << 1;
			cr.rtr = theirs << 1;
			run(&ci, &cr, &i, &r, &reply);
			ck_assert_int_eq(r.state, NEG_DONE);
			ck_assert_uint_eq(reply.model, MPA_P2P | (common ? common : theirs) << 1);
			if (common == 0) {
				ck_assert_int_eq(i.state, NEG_FAILED);
				ck_assert_uint_eq(i.term_code, 7);
				continue;
			}
			ck_assert_int_eq(i.state, NEG_DONE);
			ck_assert_uint_eq(i.res.rtr & ~(common << 1), 0);
			ck_assert_uint_eq(i.res.rtr,
			    common << 1 & MPA_RTR_WRITE      ? MPA_RTR_WRITE
			        : common << 1 & MPA_RTR_READ ? MPA_RTR_READ
			                                     : MPA_RTR_SEND);
		}
}

START_TEST(client_server_model)
{
	struct neg_config ci = base, cr = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.p2p = false;
	run(&ci, &cr, &i, &r, &reply);
	ck_assert_int_eq(i.state, NEG_DONE);
	ck_assert_uint_eq(reply.model, 0);
	ck_assert(!r.res.p2p && !i.res.p2p);
	ck_assert_uint_eq(r.res.rtr, 0);
}

START_TEST(reply_without_the_model_asked_for)
{
	struct neg n;
	struct mpa_frame req, f = { .kind = MPA_REPLY, .rev = 2, .flags = MPA_ENHANCED, .ird = 8, .ord = 8 };

	neg_init(&n, &base);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &f), NEG_FAILED);
	ck_assert_uint_eq(n.term_code, 7);
}

/* -- RFC 6581 10 -- */

START_TEST(unenhanced_is_answered_unenhanced)
{
	for (uint8_t rev = 1; rev <= 2; rev++) {
		struct neg n;
		struct mpa_frame f = { .kind = MPA_REQUEST, .rev = rev, .flags = MPA_CRC }, reply;

		neg_init(&n, &base);
		ck_assert_int_eq(neg_request_in(&n, &f, &reply), NEG_CHECKED);
		neg_accept(&n, &reply);
		ck_assert_uint_eq(reply.rev, rev);
		ck_assert_uint_eq(reply.flags, MPA_CRC);
		ck_assert(!n.res.enhanced && !n.res.p2p);
		ck_assert_uint_eq(n.res.ird, base.ird);
		ck_assert_uint_eq(n.res.ord, base.ord);
		ck_assert_uint_eq(n.res.peer_ird, NONE);
	}
}

START_TEST(unenhanced_initiator)
{
	struct neg_config ci = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.enhanced = false;
	run(&ci, &base, &i, &r, &reply);
	ck_assert_int_eq(i.state, NEG_DONE);
	ck_assert_uint_eq(reply.rev, 1);
	ck_assert(!i.res.enhanced && !i.res.p2p);
	ck_assert_uint_eq(i.res.ord, base.ord);
}

START_TEST(reply_of_the_other_kind_fails)
{
	struct neg_config c = base;
	struct mpa_frame req, plain = { .kind = MPA_REPLY, .rev = 2 };
	struct mpa_frame enhanced = { .kind = MPA_REPLY, .rev = 2, .flags = MPA_ENHANCED };
	struct neg n;

	neg_init(&n, &c);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &plain), NEG_FAILED);
	ck_assert_uint_eq(n.term_code, 0);
	/* a reply of a higher revision than was asked for */
	c.enhanced = false;
	neg_init(&n, &c);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &enhanced), NEG_FAILED);
}

START_TEST(revisions)
{
	static const uint8_t bad[] = { 0, 3, 0xff };

	for (unsigned k = 0; k < sizeof(bad); k++) {
		struct mpa_frame req, f = { .kind = MPA_REQUEST, .rev = bad[k] }, reply;
		struct neg n;

		neg_init(&n, &base);
		ck_assert_int_eq(neg_request_in(&n, &f, &reply), NEG_FAILED);
		neg_init(&n, &base);
		neg_request(&n, &req);
		f.kind = MPA_REPLY;
		ck_assert_int_eq(neg_reply_in(&n, &f), NEG_FAILED);
	}
}

START_TEST(reject_wins_over_everything_else_in_the_reply)
{
	struct neg n;
	struct mpa_frame req,
	    f = {
		    .kind = MPA_REPLY,
		    .rev = 2,
		    .flags = MPA_ENHANCED | MPA_REJECT,
		    .ird = 0,
		    .ord = 0x3ffe,
	    };

	neg_init(&n, &base);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &f), NEG_REJECTED);
	ck_assert_uint_eq(n.res.peer_ord, 0x3ffe);
	/* an unenhanced reject of an enhanced request is one, too */
	f.flags = MPA_REJECT;
	neg_init(&n, &base);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &f), NEG_REJECTED);
}

START_TEST(the_ulp_rejects)
{
	struct neg n;
	struct mpa_frame f = request_of(&base), reply;

	neg_init(&n, &base);
	ck_assert_int_eq(neg_request_in(&n, &f, &reply), NEG_CHECKED);
	neg_reject(&n, &reply);
	ck_assert_int_eq(n.state, NEG_REJECTED);
	ck_assert_uint_eq(reply.flags, MPA_REJECT | MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(reply.ird, 8);
	ck_assert_uint_eq(reply.ord, 8);
}

/* State by call: what is out of turn is a mistake of our own and stops the program. */
enum call {
	CALL_REQUEST,
	CALL_REPLY_IN,
	CALL_REQUEST_IN,
	CALL_ACCEPT,
	CALL_REJECT,
	CALL_CNT,
};

static const enum neg_state legal_in[CALL_CNT] = {
	[CALL_REQUEST] = NEG_IDLE,
	[CALL_REPLY_IN] = NEG_REQUESTED,
	[CALL_REQUEST_IN] = NEG_IDLE,
	[CALL_ACCEPT] = NEG_CHECKED,
	[CALL_REJECT] = NEG_CHECKED,
};

START_LOOP_TEST_SIGNAL(every_state_by_every_call, SIGABRT, 0, (NEG_FAILED + 1) * CALL_CNT)
{
	enum neg_state state = (enum neg_state)(_i / CALL_CNT);
	enum call call = (enum call)(_i % CALL_CNT);
	struct mpa_frame f = request_of(&base), reply;
	struct neg n;

	neg_init(&n, &base);
	n.request = f;
	n.state = state;
	switch (call) {
	case CALL_REQUEST:
		neg_request(&n, &f);
		break;
	case CALL_REPLY_IN:
		f.kind = MPA_REPLY;
		neg_reply_in(&n, &f);
		break;
	case CALL_REQUEST_IN:
		neg_request_in(&n, &f, &reply);
		break;
	case CALL_ACCEPT:
		neg_accept(&n, &reply);
		break;
	case CALL_REJECT:
		neg_reject(&n, &reply);
		break;
	case CALL_CNT:
		break;
	}
	ck_assert_int_eq(state, legal_in[call]);
	ck_assert_int_ne(n.state, state);
	abort(); /* so that all pairs end alike */
}
