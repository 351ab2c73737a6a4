#include "iwarp/ddp_session.h"

#include <errno.h>
#include <signal.h>

#include "hex.h"
#include "unit.h"

static const struct ddp_session_config base = {
	.enhanced = true,
	.depths = { .rtr = RTR_ANY, .ird = 16, .ird_max = 32, .ord = 8, .ord_min = 1 },
};

static struct ddp_session
make(enum sctp_ddp_profile profile, bool enhanced, bool active)
{
	struct ddp_session_config cfg = base;
	struct ddp_session s;

	cfg.profile = profile;
	cfg.enhanced = enhanced;
	ddp_session_init(&s, &cfg, active);
	return s;
}

static struct span got_pd;

/* What arrives, in hex: the body behind the DDP-SSN. */
static enum ddp_session_event
take(struct ddp_session *s, const char *hex)
{
	static uint8_t body[1024];
	size_t len = unhex(hex, body, sizeof(body));

	return ddp_session_control_in(s, (struct span){ body, len }, &got_pd);
}

static struct span
text(const char *s)
{
	return (struct span){ (const uint8_t *)s, strlen(s) };
}

static uint8_t out[SCTP_DDP_CONTROL_MAX];

/* What was sent, in hex. */
static void
expect_sent(int n, const char *hex)
{
	uint8_t want[SCTP_DDP_CONTROL_MAX];
	size_t len = unhex(hex, want, sizeof(want));

	ck_assert_int_eq(n, (int)len);
	ck_assert_mem_eq(out, want, len);
}

#define EXPECT_SENT(call, hex) expect_sent(call, hex)
#define INITIATE(s, pd) ddp_session_initiate(s, text(pd), out, sizeof(out))
#define ACCEPT(s, pd) ddp_session_accept(s, text(pd), out, sizeof(out))
#define REJECT(s, pd) ddp_session_reject(s, text(pd), out, sizeof(out))
#define TERMINATE(s) ddp_session_terminate(s, out, sizeof(out))

/* -- whole sessions -- */

START_TEST(active_enhanced)
{
	struct ddp_session s = make(SCTP_DDP_RFC5043, true, true);

	EXPECT_SENT(INITIATE(&s, "hi"), "0000 0005 0010 0008 6869");
	ck_assert_int_eq(take(&s, "0006 0008 0004 6f6b"), DDP_SESSION_EV_ACCEPTED);
	ck_assert_int_eq(s.state, DDP_SESSION_OPEN);
	ck_assert_uint_eq(got_pd.len, 2);
	ck_assert_uint_eq(got_pd.ptr[0], 'o');
	ck_assert_uint_eq(s.depths.peer_ird, 8);
	ck_assert_uint_eq(s.depths.peer_ord, 4);
	ck_assert_uint_eq(s.depths.ird, 16);
	ck_assert_uint_eq(s.depths.ord, 8);
	ck_assert_int_eq(ddp_session_segment_in(&s), DDP_SESSION_EV_SEGMENT);
	ck_assert_uint_eq(ddp_session_segment_ssn(&s), 1);
	ck_assert_uint_eq(ddp_session_segment_ssn(&s), 2);
	EXPECT_SENT(TERMINATE(&s), "0003 0004");
	ck_assert_int_eq(s.state, DDP_SESSION_ENDING);
	ck_assert_int_eq(ddp_session_segment_in(&s), DDP_SESSION_EV_NONE);
	ck_assert_int_eq(take(&s, "0004"), DDP_SESSION_EV_TERMINATED);
	ck_assert_int_eq(s.state, DDP_SESSION_CLOSED);
}

START_TEST(passive_enhanced)
{
	struct ddp_session s = make(SCTP_DDP_RFC5043, true, false);

	ck_assert_int_eq(take(&s, "0005 0004 0020 6869"), DDP_SESSION_EV_ASKED);
	ck_assert_uint_eq(got_pd.len, 2);
	ck_assert_uint_eq(s.depths.peer_ird, 4);
	ck_assert_uint_eq(s.depths.peer_ord, 32);
	EXPECT_SENT(ACCEPT(&s, "ok"), "0000 0006 0020 0004 6f6b");
	ck_assert_int_eq(s.state, DDP_SESSION_OPEN);
	ck_assert_uint_eq(s.depths.ird, 32);
	ck_assert_uint_eq(s.depths.ord, 4);
	ck_assert_uint_eq(ddp_session_segment_ssn(&s), 1);
	ck_assert_int_eq(ddp_session_segment_in(&s), DDP_SESSION_EV_SEGMENT);
	ck_assert_int_eq(take(&s, "0004"), DDP_SESSION_EV_TERMINATED);
	ck_assert_str_eq(s.why, "the peer ended the session");
	ck_assert_int_eq(s.state, DDP_SESSION_ENDED);
	EXPECT_SENT(TERMINATE(&s), "0002 0004");
	ck_assert_int_eq(s.state, DDP_SESSION_CLOSED);
}

START_TEST(plain_sessions)
{
	struct ddp_session a = make(SCTP_DDP_RFC5043, false, true), p = make(SCTP_DDP_RFC5043, true, false);

	EXPECT_SENT(INITIATE(&a, "hi"), "0000 0001 6869");
	ck_assert_int_eq(take(&p, "0001 6869"), DDP_SESSION_EV_ASKED);
	EXPECT_SENT(ACCEPT(&p, ""), "0000 0002");
	ck_assert_int_eq(take(&a, "0002"), DDP_SESSION_EV_ACCEPTED);
	for (unsigned k = 0; k < 2; k++) {
		const struct depths *d = k ? &a.depths : &p.depths;

		ck_assert_uint_eq(d->peer_ird, DEPTH_NONE);
		ck_assert_uint_eq(d->peer_ord, DEPTH_NONE);
		ck_assert_uint_eq(d->ird, 16);
		ck_assert_uint_eq(d->ord, 8);
	}
}

START_TEST(draft_sessions)
{
	struct ddp_session a = make(SCTP_DDP_DRAFT00, true, true), p = make(SCTP_DDP_DRAFT00, true, false);

	EXPECT_SENT(INITIATE(&a, "hi"), "0001 0002 6869");
	ck_assert_int_eq(take(&p, "0002 6869"), DDP_SESSION_EV_ASKED);
	EXPECT_SENT(ACCEPT(&p, "ok"), "0001 0003 6f6b");
	ck_assert_int_eq(take(&a, "0003 6f6b"), DDP_SESSION_EV_ACCEPTED);
	ck_assert_uint_eq(got_pd.len, 2);
	ck_assert_uint_eq(ddp_session_segment_ssn(&a), 2);
	EXPECT_SENT(TERMINATE(&a), "0003 0004");
}

/* The peer-to-peer model: asked for when it is configured, mirrored when a peer asks. */
START_TEST(peer_to_peer)
{
	struct ddp_session a = make(SCTP_DDP_RFC5043, true, true), p = make(SCTP_DDP_RFC5043, true, false);

	a.cfg.depths.p2p = true;
	a.cfg.depths.rtr = RTR_SEND | RTR_READ;
	EXPECT_SENT(INITIATE(&a, ""), "0000 0005 c010 4008");
	ck_assert_int_eq(take(&p, "0005 c010 4008"), DDP_SESSION_EV_ASKED);
	EXPECT_SENT(ACCEPT(&p, ""), "0000 0006 c008 4008");
	ck_assert(p.depths.p2p);
	ck_assert_uint_eq(p.depths.rtr, RTR_SEND | RTR_READ);
	ck_assert_int_eq(take(&a, "0006 c008 4008"), DDP_SESSION_EV_ACCEPTED);
	ck_assert_uint_eq(a.depths.rtr, RTR_READ);
}

START_TEST(depths_left_to_the_ulp_are_mirrored)
{
	struct ddp_session p = make(SCTP_DDP_RFC5043, true, false);

	ck_assert_int_eq(take(&p, "0005 3fff 3fff"), DDP_SESSION_EV_ASKED);
	EXPECT_SENT(ACCEPT(&p, ""), "0000 0006 3fff 3fff");
	ck_assert_uint_eq(p.depths.ird, 16);
	ck_assert_uint_eq(p.depths.ord, 8);
}

/* -- refusals -- */

START_TEST(reject_answers_in_kind)
{
	static const struct {
		enum sctp_ddp_profile profile;
		const char *initiate, *reject;
	} rows[] = {
		{ SCTP_DDP_RFC5043, "0005 0004 0020 6869", "0000 0007 0020 0004 6e6f" },
		{ SCTP_DDP_RFC5043, "0005 8004 8020 6869", "0000 0007 c020 c004 6e6f" },
		{ SCTP_DDP_RFC5043, "0001 6869", "0000 0003 6e6f" },
		{ SCTP_DDP_DRAFT00, "0002 6869", "0001 0004" },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct ddp_session p = make(rows[k].profile, true, false);

		ck_assert_int_eq(take(&p, rows[k].initiate), DDP_SESSION_EV_ASKED);
		EXPECT_SENT(REJECT(&p, "no"), rows[k].reject);
		ck_assert_int_eq(p.state, DDP_SESSION_CLOSED);
	}
}

/* No Read for our fences: it cannot be accepted, and the Reject says what is needed. */
START_TEST(an_initiate_that_does_not_fit)
{
	struct ddp_session p = make(SCTP_DDP_RFC5043, true, false);

	p.cfg.depths.ord_min = 2;
	ck_assert_int_eq(take(&p, "0005 0001 0008"), DDP_SESSION_EV_ASKED);
	ck_assert(p.unfit);
	ck_assert_str_eq(p.why, "the peer's IRD is too small");
	ck_assert_int_eq(ACCEPT(&p, ""), -ERANGE);
	ck_assert_int_eq(p.state, DDP_SESSION_ASKED);
	EXPECT_SENT(REJECT(&p, "no"), "0000 0007 0008 0002 6e6f");
}

START_TEST(terminate_instead_of_an_answer)
{
	for (enum sctp_ddp_profile profile = 0; profile < SCTP_DDP_PROFILE_CNT; profile++) {
		struct ddp_session p = make(profile, true, false), a = make(profile, true, true);

		ck_assert_int_eq(take(&p, profile == SCTP_DDP_DRAFT00 ? "0002" : "0001"), DDP_SESSION_EV_ASKED);
		EXPECT_SENT(TERMINATE(&p), profile == SCTP_DDP_DRAFT00 ? "0001 0004" : "0000 0004");
		ck_assert_int_eq(p.state, DDP_SESSION_ENDING);
		ck_assert_int_gt(INITIATE(&a, ""), 0);
		ck_assert_int_eq(take(&a, "0004"), DDP_SESSION_EV_TERMINATED);
		ck_assert_str_eq(a.why, "the peer ended the session before it was accepted");
		ck_assert_int_eq(a.state, DDP_SESSION_ENDED);
	}
}

START_TEST(rejected)
{
	static const struct {
		bool enhanced;
		const char *reject;
		uint16_t ird, ord;
		size_t pd_len;
	} rows[] = {
		{ true, "0007 0008 0002 534d4372", 8, 2, 4 },
		{ true, "0007 534d4372 0107", DEPTH_NONE, DEPTH_NONE, 6 }, /* without the block */
		{ true, "0007", DEPTH_NONE, DEPTH_NONE, 0 },
		{ true, "0003 6e6f", DEPTH_NONE, DEPTH_NONE, 2 }, /* by a peer of RFC 5043 alone */
		{ false, "0003 6e6f", DEPTH_NONE, DEPTH_NONE, 2 },
		{ false, "0007 0008 0002 6e6f", 8, 2, 2 },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct ddp_session a = make(SCTP_DDP_RFC5043, rows[k].enhanced, true);

		ck_assert_int_gt(INITIATE(&a, ""), 0);
		ck_assert_int_eq(take(&a, rows[k].reject), DDP_SESSION_EV_REJECTED);
		ck_assert_int_eq(a.state, DDP_SESSION_CLOSED);
		ck_assert_str_eq(a.why, "rejected by the peer");
		ck_assert_uint_eq(a.depths.peer_ird, rows[k].ird);
		ck_assert_uint_eq(a.depths.peer_ord, rows[k].ord);
		ck_assert_uint_eq(got_pd.len, rows[k].pd_len);
	}
}

/* -- an Initiate that waits -- */

START_TEST(a_parked_initiate_is_moved_with_its_private_data)
{
	uint8_t body[2 + 4 + 508] = { 0, 5, 0, 4, 0, 4 };
	struct ddp_session first = make(SCTP_DDP_RFC5043, true, false), moved;
	struct span pd;

	for (size_t i = 6; i < sizeof(body); i++)
		body[i] = (uint8_t)i;
	ck_assert_int_eq(
	    ddp_session_control_in(&first, (struct span){ body, sizeof(body) }, &pd), DDP_SESSION_EV_ASKED);
	moved = first;
	memset(body, 0, sizeof(body));
	memset(&first, 0xff, sizeof(first));
	ck_assert_uint_eq(moved.pd_len, 508);
	for (size_t i = 0; i < 508; i++)
		ck_assert_uint_eq(moved.pd[i], (uint8_t)(i + 6));
	EXPECT_SENT(ACCEPT(&moved, ""), "0000 0006 0004 0004");
	ck_assert_uint_eq(moved.depths.peer_ird, 4);
}

/* -- Accepts that do not fit -- */

START_TEST(an_accept_that_does_not_fit_is_answered_with_its_code)
{
	static const struct {
		bool enhanced;
		const char *accept;
		uint8_t code;
		const char *why;
	} rows[] = {
		{ true, "0006 8008 8021", ENHANCED_TERM_IRD, "the peer's ORD exceeds our limit" },
		{ true, "0006 8000 8004", ENHANCED_TERM_IRD, "the peer's IRD is too small" },
		{ true, "0006 0008 0004", ENHANCED_TERM_RTR, "no RTR kind in common" },
		{ true, "0006 c008 0004", ENHANCED_TERM_RTR, "no RTR kind in common" },
		{ true, "0002", ENHANCED_TERM_LOCAL, "the Accept does not match the Initiate (enhanced block)" },
		{ false, "0006 8008 8004", ENHANCED_TERM_LOCAL,
		    "the Accept does not match the Initiate (enhanced block)" },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct ddp_session a = make(SCTP_DDP_RFC5043, rows[k].enhanced, true);

		a.cfg.depths.p2p = true;
		a.cfg.depths.rtr = RTR_WRITE;
		ck_assert_int_gt(INITIATE(&a, ""), 0);
		ck_assert_int_eq(take(&a, rows[k].accept), DDP_SESSION_EV_FAILED);
		ck_assert_int_eq(a.state, DDP_SESSION_BROKEN);
		ck_assert_uint_eq(a.term_code, rows[k].code);
		ck_assert_str_eq(a.why, rows[k].why);
		/* first the RDMAP Terminate, then ours, then nothing */
		ck_assert_uint_eq(ddp_session_segment_ssn(&a), 1);
		ck_assert(!ddp_session_may(&a, DDP_SESSION_SEGMENT));
		EXPECT_SENT(TERMINATE(&a), "0002 0004");
		ck_assert_int_eq(a.state, DDP_SESSION_CLOSED);
	}
}

/* -- every state by every input -- */

/* A session in that state, by the shortest legal way; `variant` 1 is the other role, or a plain session. */
static struct ddp_session
session_in(enum ddp_session_state state, enum sctp_ddp_profile profile, unsigned variant)
{
	const char *initiate = profile == SCTP_DDP_DRAFT00 ? "0002" : "0005 0004 0004";
	const char *accept = profile == SCTP_DDP_DRAFT00 ? "0003" : "0006 0004 0004";
	bool active = state == DDP_SESSION_IDLE || state == DDP_SESSION_INITIATED ||
	    (state != DDP_SESSION_WAITING && state != DDP_SESSION_ASKED && variant == 0);
	struct ddp_session s = make(profile, state != DDP_SESSION_INITIATED || variant == 0, active);

	if (s.state == state)
		return s;
	if (active)
		ck_assert_int_gt(INITIATE(&s, ""), 0);
	else
		ck_assert_int_eq(take(&s, initiate), DDP_SESSION_EV_ASKED);
	if (s.state == state)
		return s;
	if (state == DDP_SESSION_FAILED) {
		ck_assert_int_eq(ddp_session_segment_in(&s), DDP_SESSION_EV_FAILED);
		return s;
	}
	if (active)
		ck_assert_int_eq(take(&s, accept), DDP_SESSION_EV_ACCEPTED);
	else
		ck_assert_int_gt(ACCEPT(&s, ""), 0);
	if (state == DDP_SESSION_ENDING || state == DDP_SESSION_CLOSED)
		ck_assert_int_gt(TERMINATE(&s), 0);
	if (state == DDP_SESSION_ENDED || state == DDP_SESSION_CLOSED)
		ck_assert_int_eq(take(&s, "0004"), DDP_SESSION_EV_TERMINATED);
	if (state == DDP_SESSION_BROKEN)
		ck_assert_int_eq(ddp_session_fail(&s, "test"), DDP_SESSION_EV_FAILED);
	ck_assert_int_eq(s.state, state);
	return s;
}

/* What can arrive: control messages in both profiles, and a segment. */
enum input {
	NEGOTIATE,
	INITIATE_,
	ACCEPT_,
	REJECT_,
	TERMINATE_,
	ENH_INITIATE,
	ENH_ACCEPT,
	ENH_REJECT,
	CUT,     /* a control message of one byte */
	UNKNOWN, /* function 99 */
	CUT_BLOCK,
	TOO_LONG, /* an Initiate with 513 bytes */
	SEGMENT,
	INPUT_CNT,
};

static const char *const bodies[SCTP_DDP_PROFILE_CNT][INPUT_CNT] = {
	[SCTP_DDP_RFC5043] = {
		[INITIATE_] = "0001", [ACCEPT_] = "0002", [REJECT_] = "0003", [TERMINATE_] = "0004",
		[ENH_INITIATE] = "0005 0004 0004", [ENH_ACCEPT] = "0006 0004 0004", [ENH_REJECT] = "0007 0004 0004",
		[CUT] = "00", [UNKNOWN] = "0063", [CUT_BLOCK] = "0006 0004 00",
	},
	[SCTP_DDP_DRAFT00] = {
		[NEGOTIATE] = "0001", [INITIATE_] = "0002", [ACCEPT_] = "0003", [TERMINATE_] = "0004",
		/* RFC 6581 is not there: unknown functions */
		[ENH_INITIATE] = "0005 0004 0004", [ENH_ACCEPT] = "0006 0004 0004", [ENH_REJECT] = "0007 0004 0004",
		[CUT] = "00", [UNKNOWN] = "0063",
	},
};

/* clang-format off */
/* x: a mistake; otherwise s, n, q, a, r, t as below; . passed over. By columns as in enum input. */
static const struct {
	const char *rfc5043, *draft;
	const char *rfc5043_plain; /* variant 1, where that differs */
} verdicts[DDP_SESSION_STATE_CNT] = {
	/*                           NIARTiarCUBLS    NIARTiarCUBLS */
	[DDP_SESSION_IDLE]      = { " xxxxxxxxxxxx", "nxx xxxxxx xx", NULL },
	[DDP_SESSION_WAITING]   = { " qxxxqxxxxxxx", "nqx xxxxxx xx", NULL },
	[DDP_SESSION_INITIATED] = { " xxrtxarxxxxx", "nxa txxxxx xx", " xartxxrxxxxx" },
	[DDP_SESSION_ASKED]     = { " xxxtxxxxxxxx", "xxx txxxxx xx", NULL },
	[DDP_SESSION_OPEN]      = { " xxxtxxxxxxxs", "xxx txxxxx xs", NULL },
	[DDP_SESSION_ENDING]    = { " ...t........", "... t..... ..", NULL },
	[DDP_SESSION_ENDED]     = { " xxxxxxxxxxxx", "xxx xxxxxx xx", NULL },
	[DDP_SESSION_BROKEN]    = { " ............", "... ...... ..", NULL },
	[DDP_SESSION_FAILED]    = { " ............", "... ...... ..", NULL },
	[DDP_SESSION_CLOSED]    = { " ............", "... ...... ..", NULL },
};

static const char *const may[DDP_SESSION_STATE_CNT] = {
	/*                         IARST */
	[DDP_SESSION_IDLE]      = "I    ",
	[DDP_SESSION_WAITING]   = "     ",
	[DDP_SESSION_INITIATED] = "    T",
	[DDP_SESSION_ASKED]     = " AR T",
	[DDP_SESSION_OPEN]      = "   ST",
	[DDP_SESSION_ENDING]    = "     ",
	[DDP_SESSION_ENDED]     = "    T",
	[DDP_SESSION_BROKEN]    = "   ST",
	[DDP_SESSION_FAILED]    = "    T",
	[DDP_SESSION_CLOSED]    = "     ",
};
/* clang-format on */

static enum ddp_session_event
feed(struct ddp_session *s, enum sctp_ddp_profile profile, enum input input)
{
	if (input == SEGMENT)
		return ddp_session_segment_in(s);
	if (input == TOO_LONG) {
		static const uint8_t rfc5043[2 + 513] = { 0, 1 }, draft[2 + 513] = { 0, 2 };

		return ddp_session_control_in(
		    s, (struct span){ profile == SCTP_DDP_DRAFT00 ? draft : rfc5043, 2 + 513 }, &got_pd);
	}
	return take(s, bodies[profile][input]);
}

static enum ddp_session_event
event_of(char verdict)
{
	switch (verdict) {
	case 'x':
		return DDP_SESSION_EV_FAILED;
	case '.':
		return DDP_SESSION_EV_NONE;
	case 's':
		return DDP_SESSION_EV_SEGMENT;
	case 'n':
		return DDP_SESSION_EV_NEGOTIATE;
	case 'q':
		return DDP_SESSION_EV_ASKED;
	case 'a':
		return DDP_SESSION_EV_ACCEPTED;
	case 'r':
		return DDP_SESSION_EV_REJECTED;
	default:
		ck_assert_int_eq(verdict, 't');
		return DDP_SESSION_EV_TERMINATED;
	}
}

static enum ddp_session_state
state_after(const struct ddp_session *before, char verdict, bool accept)
{
	switch (verdict) {
	case 'x':
		return before->state == DDP_SESSION_OPEN || (before->state == DDP_SESSION_INITIATED && accept)
		    ? DDP_SESSION_BROKEN
		    : DDP_SESSION_FAILED;
	case 'q':
		return DDP_SESSION_ASKED;
	case 'a':
		return DDP_SESSION_OPEN;
	case 'r':
		return DDP_SESSION_CLOSED;
	case 't':
		return before->state == DDP_SESSION_ENDING ? DDP_SESSION_CLOSED : DDP_SESSION_ENDED;
	default:
		return before->state;
	}
}

START_LOOP_TEST(every_state_by_every_input, 0, DDP_SESSION_STATE_CNT *SCTP_DDP_PROFILE_CNT * 2)
{
	enum ddp_session_state state = (enum ddp_session_state)(_i / 4);
	enum sctp_ddp_profile profile = (enum sctp_ddp_profile)(_i / 2 % 2);
	const char *row = profile == SCTP_DDP_DRAFT00      ? verdicts[state].draft
	    : _i % 2 == 1 && verdicts[state].rfc5043_plain ? verdicts[state].rfc5043_plain
	                                                   : verdicts[state].rfc5043;

	ck_assert_uint_eq(strlen(row), INPUT_CNT);
	for (enum input input = 0; input < INPUT_CNT; input++) {
		struct ddp_session before = session_in(state, profile, _i % 2), s = before;
		bool accept = input == ACCEPT_ || (input == ENH_ACCEPT && profile == SCTP_DDP_RFC5043);

		if (row[input] == ' ') {
			ck_assert(bodies[profile][input] == NULL);
			continue;
		}
		enum ddp_session_event ev = feed(&s, profile, input);
		ck_assert_msg(
		    ev == event_of(row[input]), "state %d, profile %d, input %d: %d", state, profile, input, ev);
		ck_assert_msg(s.state == state_after(&before, row[input], accept), "state %d, profile %d, input %d: %d",
		    state, profile, input, s.state);
		ck_assert_uint_eq(s.tx_ssn, before.tx_ssn);
		if (ev == DDP_SESSION_EV_FAILED) {
			ck_assert_ptr_nonnull(s.why);
			ck_assert_uint_eq(s.term_code, s.state == DDP_SESSION_BROKEN ? ENHANCED_TERM_LOCAL : 0);
			ck_assert_uint_eq(got_pd.len, 0);
			/* our last word goes, and whatever comes is passed over */
			ck_assert_int_eq(TERMINATE(&s), 4);
			for (enum input next = 0; next < INPUT_CNT; next++)
				if (row[next] != ' ')
					ck_assert_int_eq(feed(&s, profile, next), DDP_SESSION_EV_NONE);
			ck_assert_int_eq(s.state, DDP_SESSION_CLOSED);
		}
	}
}

/* -- every state by every call -- */

/* What is out of turn is a mistake of our own and stops the program. */
START_LOOP_TEST_SIGNAL(every_state_by_every_call, SIGABRT, 0, (int)DDP_SESSION_STATE_CNT *(int)DDP_SESSION_CALL_CNT)
{
	enum ddp_session_state state = (enum ddp_session_state)(_i / DDP_SESSION_CALL_CNT);
	enum ddp_session_call call = (enum ddp_session_call)(_i % DDP_SESSION_CALL_CNT);
	struct ddp_session s = session_in(state, SCTP_DDP_RFC5043, 0);

	if (ddp_session_may(&s, call) != (may[state][call] != ' '))
		exit(1);
	switch (call) {
	case DDP_SESSION_INITIATE:
		INITIATE(&s, "");
		break;
	case DDP_SESSION_ACCEPT:
		ACCEPT(&s, "");
		break;
	case DDP_SESSION_REJECT:
		REJECT(&s, "");
		break;
	case DDP_SESSION_SEGMENT:
		ddp_session_segment_ssn(&s);
		break;
	case DDP_SESSION_TERMINATE:
		TERMINATE(&s);
		break;
	case DDP_SESSION_CALL_CNT:
		break;
	}
	if (!ddp_session_may(&(struct ddp_session){ .state = state }, call))
		exit(1);
	abort(); /* so that all pairs end alike */
}

/* -- words -- */

START_TEST(every_error_has_a_text)
{
	static const struct {
		enum ddp_session_state state;
		enum input input;
		const char *why;
	} rows[] = {
		{ DDP_SESSION_IDLE, INITIATE_, "both sides initiate the session" },
		{ DDP_SESSION_INITIATED, ENH_INITIATE, "both sides initiate the session" },
		{ DDP_SESSION_IDLE, ENH_ACCEPT, "unexpected Accept" },
		{ DDP_SESSION_OPEN, ACCEPT_, "unexpected Accept" },
		{ DDP_SESSION_OPEN, ENH_INITIATE, "unexpected Initiate" },
		{ DDP_SESSION_ASKED, INITIATE_, "unexpected Initiate" },
		{ DDP_SESSION_WAITING, REJECT_, "unexpected Reject" },
		{ DDP_SESSION_WAITING, TERMINATE_, "unexpected Terminate" },
		{ DDP_SESSION_INITIATED, SEGMENT, "DDP segment before the session was accepted" },
		{ DDP_SESSION_ASKED, SEGMENT, "DDP segment before the session was accepted" },
		{ DDP_SESSION_ENDED, SEGMENT, "message after the peer's Terminate" },
		{ DDP_SESSION_ENDED, TERMINATE_, "message after the peer's Terminate" },
		{ DDP_SESSION_OPEN, CUT, "truncated session control message" },
		{ DDP_SESSION_OPEN, CUT_BLOCK, "truncated session control message" },
		{ DDP_SESSION_OPEN, UNKNOWN, "unknown session control function" },
		{ DDP_SESSION_WAITING, TOO_LONG, "session control message with more than 512 bytes of private data" },
	};

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct ddp_session s = session_in(rows[k].state, SCTP_DDP_RFC5043, 0);

		ck_assert_int_eq(feed(&s, SCTP_DDP_RFC5043, rows[k].input), DDP_SESSION_EV_FAILED);
		ck_assert_str_eq(s.why, rows[k].why);
	}
}

/* A mistake that others see ends the session like one that it sees itself. */
START_LOOP_TEST(a_mistake_that_others_saw, 0, DDP_SESSION_STATE_CNT)
{
	enum ddp_session_state state = (enum ddp_session_state)_i;
	struct ddp_session s = session_in(state, SCTP_DDP_RFC5043, 0);
	bool over = strchr(verdicts[state].rfc5043, '.') != NULL;

	ck_assert_int_eq(ddp_session_fail(&s, "a number twice"), over ? DDP_SESSION_EV_NONE : DDP_SESSION_EV_FAILED);
	if (over) {
		ck_assert_int_eq(s.state, state);
		return;
	}
	ck_assert_str_eq(s.why, "a number twice");
	ck_assert_int_eq(s.state, state == DDP_SESSION_OPEN ? DDP_SESSION_BROKEN : DDP_SESSION_FAILED);
}

/* -- limits -- */

START_TEST(negotiates_are_reported_up_to_a_number)
{
	for (unsigned active = 0; active < 2; active++) {
		struct ddp_session s = make(SCTP_DDP_DRAFT00, true, active);

		for (unsigned k = 0; k < DDP_SESSION_NEGOTIATES_MAX; k++) {
			ck_assert_int_eq(take(&s, "0001 6869"), DDP_SESSION_EV_NEGOTIATE);
			ck_assert_uint_eq(got_pd.len, 2);
		}
		ck_assert_int_eq(take(&s, "0001"), DDP_SESSION_EV_FAILED);
		ck_assert_str_eq(s.why, "too many Negotiates");
		EXPECT_SENT(TERMINATE(&s), "0001 0004");
	}
}

START_TEST(numbers_wrap)
{
	struct ddp_session s = session_in(DDP_SESSION_OPEN, SCTP_DDP_RFC5043, 0);

	for (unsigned k = 1; k <= 0xffff; k++)
		ck_assert_uint_eq(ddp_session_segment_ssn(&s), k);
	ck_assert_uint_eq(ddp_session_segment_ssn(&s), 0);
	EXPECT_SENT(TERMINATE(&s), "0001 0004");
}

START_TEST(what_could_not_be_encoded_has_not_happened)
{
	static const uint8_t pd[513];
	struct ddp_session a = make(SCTP_DDP_RFC5043, true, true), p = make(SCTP_DDP_RFC5043, true, false);

	ck_assert_int_eq(ddp_session_initiate(&a, (struct span){ pd, 509 }, out, sizeof(out)), -EINVAL);
	ck_assert_int_eq(ddp_session_initiate(&a, (struct span){ pd, 508 }, out, sizeof(out) - 1), -ENOSPC);
	ck_assert_int_eq(a.state, DDP_SESSION_IDLE);
	ck_assert_uint_eq(a.tx_ssn, 0);
	ck_assert_int_eq(ddp_session_initiate(&a, (struct span){ pd, 508 }, out, sizeof(out)), SCTP_DDP_CONTROL_MAX);
	ck_assert_int_eq(ddp_session_terminate(&a, out, 3), -ENOSPC);
	ck_assert_int_eq(a.state, DDP_SESSION_INITIATED);
	ck_assert_int_eq(take(&p, "0005 0004 0004"), DDP_SESSION_EV_ASKED);
	ck_assert_int_eq(ddp_session_accept(&p, (struct span){ pd, 509 }, out, sizeof(out)), -EINVAL);
	ck_assert_int_eq(ddp_session_reject(&p, (struct span){ pd, 0 }, out, 7), -ENOSPC);
	ck_assert_int_eq(p.state, DDP_SESSION_ASKED);
	ck_assert_uint_eq(p.tx_ssn, 0);
}
