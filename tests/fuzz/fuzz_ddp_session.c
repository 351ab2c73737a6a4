/*
 * A DDP stream session against a peer that says anything in any order, and an
 * upper layer that calls whatever it may. Header: role, profile, enhanced and
 * peer-to-peer; the highest DDP-SSNs; kinds of RTR; depths. The steps are
 * below. What we send is judged by an observer that knows the legal sequences
 * of a sender.
 */
#include "iwarp/ddp_session.h"

#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "steps.h"

enum {
	STEP_CONTROL, /* a: function, b: block, c: private data */
	STEP_RAW,     /* a: length, c: steps whose bytes it is */
	STEP_SEGMENT,
	STEP_CALL, /* a: which, b: buffer, c: private data */
	STEP_FAIL,
	STEP_CNT,
};

/* What the world has seen of the session. */
struct observer {
	struct ddp_session s;
	bool active;
	bool said_last; /* a Terminate or Reject went out */
	bool initiated, answered;
	bool asked, open, failed, ended;
	uint16_t next_ssn;
	unsigned term_segments;
};

static void
sent(struct observer *o, const uint8_t *buf, int n)
{
	struct sctp_ddp_control c;
	struct span body;
	uint16_t ssn;

	FUZZ_CHECK(!o->said_last);
	FUZZ_CHECK(sctp_ddp_ssn_decode((struct span){ buf, (size_t)n }, &ssn, &body) > 0 && ssn == o->next_ssn++);
	FUZZ_CHECK(sctp_ddp_control_decode(body, o->s.cfg.profile, &c) == 0);
	switch (c.function) {
	case SCTP_DDP_INITIATE:
	case SCTP_DDP_ENHANCED_INITIATE:
		FUZZ_CHECK(o->active && !o->initiated);
		o->initiated = true;
		break;
	case SCTP_DDP_ACCEPT:
	case SCTP_DDP_ENHANCED_ACCEPT:
		FUZZ_CHECK(!o->active && o->asked && !o->answered && !o->failed && !o->ended);
		FUZZ_CHECK(c.has_block == o->s.enhanced);
		o->answered = o->open = true;
		break;
	case SCTP_DDP_REJECT:
	case SCTP_DDP_ENHANCED_REJECT:
		FUZZ_CHECK(!o->active && o->asked && !o->answered && !o->failed && !o->ended);
		FUZZ_CHECK(c.has_block == o->s.enhanced);
		o->answered = o->said_last = true;
		break;
	case SCTP_DDP_TERMINATE:
		FUZZ_CHECK(body.len == 2);
		o->said_last = true;
		break;
	case SCTP_DDP_NEGOTIATE:
	case SCTP_DDP_FUNCTION_CNT:
		FUZZ_CHECK(0);
	}
}

static void
check_depths(const struct ddp_session *s)
{
	const struct depths_config *c = &s->cfg.depths;

	FUZZ_CHECK(s->depths.ird <= c->ird_max && s->depths.ord <= c->ord && s->depths.ord >= c->ord_min);
	FUZZ_CHECK((s->depths.rtr & ~c->rtr) == 0);
}

static void
observe(struct observer *o, enum ddp_session_event ev, enum ddp_session_state before)
{
	struct ddp_session *s = &o->s;

	switch (ev) {
	case DDP_SESSION_EV_FAILED:
		FUZZ_CHECK(!o->failed && s->why != NULL && s->why[0] != 0);
		FUZZ_CHECK(s->state == DDP_SESSION_BROKEN || s->state == DDP_SESSION_FAILED);
		FUZZ_CHECK(s->state != DDP_SESSION_BROKEN || (s->term_code >= 5 && s->term_code <= 7));
		/* a session that was not open has got a mismatched Accept */
		FUZZ_CHECK(s->state != DDP_SESSION_BROKEN || before == DDP_SESSION_OPEN || o->initiated);
		o->failed = true;
		o->open = s->state == DDP_SESSION_BROKEN;
		break;
	case DDP_SESSION_EV_NONE:
		FUZZ_CHECK(s->state == before && (o->failed || o->said_last || s->state == DDP_SESSION_CLOSED));
		break;
	case DDP_SESSION_EV_SEGMENT:
		FUZZ_CHECK(s->state == DDP_SESSION_OPEN && o->open && !o->ended);
		break;
	case DDP_SESSION_EV_NEGOTIATE:
		FUZZ_CHECK(
		    s->cfg.profile == SCTP_DDP_DRAFT00 && !o->open && s->negotiates <= DDP_SESSION_NEGOTIATES_MAX);
		break;
	case DDP_SESSION_EV_ASKED:
		FUZZ_CHECK(!o->active && !o->asked && s->state == DDP_SESSION_ASKED);
		o->asked = true;
		break;
	case DDP_SESSION_EV_ACCEPTED:
		FUZZ_CHECK(o->active && o->initiated && !o->open && s->state == DDP_SESSION_OPEN);
		o->open = true;
		check_depths(s);
		break;
	case DDP_SESSION_EV_REJECTED:
		FUZZ_CHECK(o->active && o->initiated && !o->open && s->state == DDP_SESSION_CLOSED);
		break;
	case DDP_SESSION_EV_TERMINATED:
		FUZZ_CHECK(!o->ended && !o->failed);
		o->ended = true;
		o->open = false;
		break;
	}
}

static void
control_in(struct observer *o, const uint8_t *body, size_t len)
{
	enum ddp_session_state before = o->s.state;
	struct span pd;
	enum ddp_session_event ev = ddp_session_control_in(&o->s, (struct span){ body, len }, &pd);

	FUZZ_CHECK(pd.len == 0 || (pd.ptr >= body && pd.ptr + pd.len <= body + len));
	if (ev == DDP_SESSION_EV_ASKED)
		FUZZ_CHECK(o->s.pd_len == pd.len && (pd.len == 0 || memcmp(o->s.pd, pd.ptr, pd.len) == 0));
	observe(o, ev, before);
}

/* A control message that is nearly right: of a function of the profile, or any code; blocks that fit and that do not. */
static void
step_control(struct observer *o, const struct step *st)
{
	static const uint8_t blocks[][ENHANCED_LEN] = {
		{ 0x00, 0x04, 0x00, 0x04 },
		{ 0x3f, 0xff, 0x3f, 0xff },
		{ 0x80, 0x04, 0x80, 0x04 },
		{ 0xc0, 0x00, 0x40, 0x04 },
		{ 0x00, 0x04, 0x3f, 0xfe },
		{ 0x53, 0x4d, 0x43, 0x72 },
	};
	unsigned f = st->a % (SCTP_DDP_FUNCTION_CNT + 2), block = st->b % (sizeof(blocks) / sizeof(blocks[0]) + 2);
	uint8_t body[2 + ENHANCED_LEN + 2 * 255];
	uint16_t code = f < SCTP_DDP_FUNCTION_CNT ? sctp_ddp_values[o->s.cfg.profile].function[f] : st->a;
	size_t len = 2;

	be16_put(body, code);
	if (block < sizeof(blocks) / sizeof(blocks[0])) {
		memcpy(body + len, blocks[block], ENHANCED_LEN);
		len += ENHANCED_LEN;
	}
	memset(body + len, st->c, 2u * st->c);
	control_in(o, body, len + 2u * st->c);
}

static void
step_raw(struct observer *o, const struct step *st, struct steps *steps)
{
	const uint8_t *p;
	size_t n = steps_raw(steps, st->c % 8, &p);

	control_in(o, p, st->a < n ? st->a : n);
}

static void
step_call(struct observer *o, const struct step *st)
{
	static const uint8_t bytes[SCTP_DDP_PD_MAX + 1] = "SMCr";
	enum ddp_session_call call = st->a % DDP_SESSION_CALL_CNT;
	const struct span pd = { bytes, st->c < 250 ? st->c : SCTP_DDP_PD_MAX - 254u + st->c };
	enum ddp_session_state before = o->s.state;
	uint8_t buf[SCTP_DDP_CONTROL_MAX];
	size_t cap = st->b < 16 ? st->b : sizeof(buf);
	int n = 0;

	if (!ddp_session_may(&o->s, call))
		return;
	switch (call) {
	case DDP_SESSION_INITIATE:
		n = ddp_session_initiate(&o->s, pd, buf, cap);
		break;
	case DDP_SESSION_ACCEPT:
		n = ddp_session_accept(&o->s, pd, buf, cap);
		FUZZ_CHECK(n != -ERANGE || o->s.unfit);
		if (n > 0)
			check_depths(&o->s);
		break;
	case DDP_SESSION_REJECT:
		n = ddp_session_reject(&o->s, pd, buf, cap);
		break;
	case DDP_SESSION_SEGMENT:
		FUZZ_CHECK(!o->said_last && o->open && !o->ended);
		FUZZ_CHECK(!o->failed || o->term_segments++ == 0);
		FUZZ_CHECK(ddp_session_segment_ssn(&o->s) == o->next_ssn++);
		return;
	case DDP_SESSION_TERMINATE:
		n = ddp_session_terminate(&o->s, buf, cap);
		break;
	case DDP_SESSION_CALL_CNT:
		return;
	}
	if (n > 0)
		sent(o, buf, n);
	else
		FUZZ_CHECK(n < 0 && o->s.state == before && o->s.tx_ssn == o->next_ssn);
}

static void
observer_init(struct observer *o, const uint8_t header[STEPS_HEADER])
{
	const struct ddp_session_config cfg = {
		.profile = header[0] & 2 ? SCTP_DDP_DRAFT00 : SCTP_DDP_RFC5043,
		.enhanced = header[0] & 4,
		.depths = {
			.p2p = header[0] & 8,
			.rtr = (header[2] % 7 + 1u) << 1,
			.ird = 4,
			.ird_max = (uint16_t)(4 + header[3] % 16),
			.ord = 4,
			.ord_min = header[3] >> 7,
		},
	};

	*o = (struct observer){ .active = header[0] & 1 };
	ddp_session_init(&o->s, &cfg, o->active);
	FUZZ_CHECK(o->s.tx_ssn == sctp_ddp_values[cfg.profile].first_ssn);
	/* near the end, so that numbers wrap */
	if (header[1] != 0)
		o->s.tx_ssn = (uint16_t)(0xff00 | header[1]);
	o->next_ssn = o->s.tx_ssn;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t header[STEPS_HEADER];
	struct observer o;
	struct steps steps;
	struct step st;

	if (!steps_begin(&steps, data, len, header))
		return 0;
	observer_init(&o, header);
	while (steps_next(&steps, &st)) {
		enum ddp_session_state before = o.s.state;

		switch (st.op % STEP_CNT) {
		case STEP_CONTROL:
			step_control(&o, &st);
			break;
		case STEP_RAW:
			step_raw(&o, &st, &steps);
			break;
		case STEP_SEGMENT:
			observe(&o, ddp_session_segment_in(&o.s), before);
			break;
		case STEP_CALL:
			step_call(&o, &st);
			break;
		case STEP_FAIL:
			observe(&o, ddp_session_fail(&o.s, "seen by others"), before);
			break;
		}
	}
	return 0;
}
