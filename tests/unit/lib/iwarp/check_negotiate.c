#include "iwarp/negotiate.h"

#include <signal.h>
#include <string.h>

#include "unit.h"

static const struct neg_config base = {
	.enhanced = true,
	.crc = true,
	.depths = { .p2p = true, .rtr = RTR_ANY, .ird = 16, .ird_max = 32, .ord = 8 },
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
	ck_assert_uint_eq(f.enh.model, ENHANCED_P2P | RTR_ANY);
	ck_assert_uint_eq(f.enh.ird, 16);
	ck_assert_uint_eq(f.enh.ord, 8);
	c.depths.p2p = false;
	ck_assert_uint_eq(request_of(&c).enh.model, 0);
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

/* -- RFC 6581: the block in the frames; what it says is check_depths's -- */

START_TEST(blocks_go_both_ways)
{
	struct neg_config ci = base, cr = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.depths.ird = 4;
	cr.depths.rtr = RTR_READ;
	run(&ci, &cr, &i, &r, &reply);
	ck_assert_int_eq(i.state, NEG_DONE);
	ck_assert_int_eq(r.state, NEG_DONE);
	ck_assert(i.res.enhanced && r.res.enhanced && i.res.depths.p2p && r.res.depths.p2p);
	ck_assert_uint_eq(reply.enh.model, ENHANCED_P2P | RTR_READ);
	ck_assert_uint_eq(reply.enh.ird, 8);
	ck_assert_uint_eq(reply.enh.ord, 4);
	ck_assert_uint_eq(i.res.depths.peer_ird, 8);
	ck_assert_uint_eq(i.res.depths.peer_ord, 4);
	ck_assert_uint_eq(r.res.depths.peer_ird, 4);
	ck_assert_uint_eq(r.res.depths.peer_ord, 8);
}

START_TEST(a_reply_that_does_not_fit_fails_with_its_code)
{
	static const struct {
		struct enhanced enh;
		uint8_t term_code;
	} rows[] = {
		{ { ENHANCED_P2P | RTR_WRITE, 8, 33 }, ENHANCED_TERM_IRD },
		{ { 0, 8, 8 }, ENHANCED_TERM_RTR },
	};

	for (unsigned k = 0; k < 2; k++) {
		struct mpa_frame req, f = { .kind = MPA_REPLY, .rev = 2, .flags = MPA_ENHANCED, .enh = rows[k].enh };
		struct neg n;

		neg_init(&n, &base);
		neg_request(&n, &req);
		ck_assert_int_eq(neg_reply_in(&n, &f), NEG_FAILED);
		ck_assert_uint_eq(n.term_code, rows[k].term_code);
		ck_assert_ptr_nonnull(n.why);
	}
}

START_TEST(responder_rejects_ird_0)
{
	struct neg_config ci = base, cr = base;
	struct neg i, r;
	struct mpa_frame reply;

	ci.depths.ird = 0;
	cr.depths.ord_min = 2;
	run(&ci, &cr, &i, &r, &reply);
	ck_assert_int_eq(r.state, NEG_REJECTED);
	ck_assert_int_eq(i.state, NEG_REJECTED);
	ck_assert_uint_eq(reply.flags, MPA_REJECT | MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(reply.enh.ord, 2); /* the ORD that is needed */
	ck_assert_uint_eq(i.res.depths.peer_ord, 2);
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
		ck_assert(!n.res.enhanced && !n.res.depths.p2p);
		ck_assert_uint_eq(n.res.depths.ird, base.depths.ird);
		ck_assert_uint_eq(n.res.depths.ord, base.depths.ord);
		ck_assert_uint_eq(n.res.depths.peer_ird, DEPTH_NONE);
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
	ck_assert(!i.res.enhanced && !i.res.depths.p2p);
	ck_assert_uint_eq(i.res.depths.ord, base.depths.ord);
}

START_TEST(reply_of_the_other_kind_fails)
{
	struct neg_config c = base;
	struct mpa_frame req, plain = { .kind = MPA_REPLY, .rev = 2 };
	struct mpa_frame enhanced = { .kind = MPA_REPLY, .rev = 2, .flags = MPA_ENHANCED };
	struct neg n;

	neg_init(&n, &c);
	neg_request(&n, &req);
	/* with its code, in FPDUs as the Reply has them (RFC 6581 9.3) */
	plain.flags = MPA_CRC | MPA_MARKERS;
	ck_assert_int_eq(neg_reply_in(&n, &plain), NEG_FAILED);
	ck_assert_uint_eq(n.term_code, ENHANCED_TERM_LOCAL);
	ck_assert(n.res.crc && n.res.markers_tx);
	/* a reply of a higher revision than was asked for: nobody knows what FPDUs it takes */
	c.enhanced = false;
	neg_init(&n, &c);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &enhanced), NEG_FAILED);
	ck_assert_uint_eq(n.term_code, 0);
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
		    .enh = { .ird = 0, .ord = 0x3ffe },
	    };

	neg_init(&n, &base);
	neg_request(&n, &req);
	ck_assert_int_eq(neg_reply_in(&n, &f), NEG_REJECTED);
	ck_assert_uint_eq(n.res.depths.peer_ord, 0x3ffe);
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
	ck_assert_uint_eq(reply.enh.ird, 8);
	ck_assert_uint_eq(reply.enh.ord, 8);
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
