/* The DDP stream session; see ddp_session.h. */
#include "iwarp/ddp_session.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define BIT(n) (1u << (n))

/* -- states -- */

/* From both states in which the Initiate is not yet answered. */
#define ANSWERED                                                                                              \
	(BIT(DDP_SESSION_OPEN) | BIT(DDP_SESSION_ENDING) | BIT(DDP_SESSION_ENDED) | BIT(DDP_SESSION_FAILED) | \
	    BIT(DDP_SESSION_CLOSED))

static const struct {
	unsigned calls; /* BIT(enum ddp_session_call): calls allowed */
	unsigned next;  /* BIT(enum ddp_session_state) */
	enum ddp_session_state after_terminate;
} states[DDP_SESSION_STATE_CNT] = {
	[DDP_SESSION_IDLE] = { BIT(DDP_SESSION_INITIATE), BIT(DDP_SESSION_INITIATED) | BIT(DDP_SESSION_FAILED), 0 },
	[DDP_SESSION_WAITING] = { 0, BIT(DDP_SESSION_ASKED) | BIT(DDP_SESSION_FAILED), 0 },
	[DDP_SESSION_INITIATED] = { BIT(DDP_SESSION_TERMINATE), ANSWERED, DDP_SESSION_ENDING },
	[DDP_SESSION_ASKED] = { BIT(DDP_SESSION_ACCEPT) | BIT(DDP_SESSION_REJECT) | BIT(DDP_SESSION_TERMINATE),
	    ANSWERED, DDP_SESSION_ENDING },
	[DDP_SESSION_OPEN] = { BIT(DDP_SESSION_SEGMENT) | BIT(DDP_SESSION_TERMINATE),
	    BIT(DDP_SESSION_ENDING) | BIT(DDP_SESSION_ENDED) | BIT(DDP_SESSION_BROKEN), DDP_SESSION_ENDING },
	[DDP_SESSION_ENDING] = { 0, BIT(DDP_SESSION_CLOSED), 0 },
	[DDP_SESSION_ENDED] = { BIT(DDP_SESSION_TERMINATE), BIT(DDP_SESSION_FAILED) | BIT(DDP_SESSION_CLOSED),
	    DDP_SESSION_CLOSED },
	[DDP_SESSION_BROKEN] = { BIT(DDP_SESSION_SEGMENT) | BIT(DDP_SESSION_TERMINATE),
	    BIT(DDP_SESSION_FAILED) | BIT(DDP_SESSION_CLOSED), DDP_SESSION_CLOSED },
	[DDP_SESSION_FAILED] = { BIT(DDP_SESSION_TERMINATE), BIT(DDP_SESSION_CLOSED), DDP_SESSION_CLOSED },
	/* [DDP_SESSION_CLOSED]: none */
};

static void
set_state(struct ddp_session *s, enum ddp_session_state next)
{
	assert((states[s->state].next & BIT(next)) != 0);
	s->state = next;
}

void
ddp_session_init(struct ddp_session *s, const struct ddp_session_config *cfg, bool active)
{
	*s = (struct ddp_session){
		.state = active ? DDP_SESSION_IDLE : DDP_SESSION_WAITING,
		.cfg = *cfg,
		.tx_ssn = sctp_ddp_values[cfg->profile].first_ssn,
	};
	depths_init(&s->depths, &cfg->depths);
}

bool
ddp_session_may(const struct ddp_session *s, enum ddp_session_call call)
{
	return (states[s->state].calls & BIT(call)) != 0;
}

/* -- what arrives -- */

/* Inputs: control messages by function, and segments. */
enum {
	SEGMENT = SCTP_DDP_FUNCTION_CNT,
	INPUT_CNT,
};

/* The legal sequences, from the receiver's side. The state implies the role until the session is open; afterwards the
 * role does not matter. An input without entry is a protocol error of the peer: EV_FAILED is 0. */
static const enum ddp_session_event rules[DDP_SESSION_STATE_CNT][INPUT_CNT] = {
	[DDP_SESSION_IDLE] = { [SCTP_DDP_NEGOTIATE] = DDP_SESSION_EV_NEGOTIATE },
	[DDP_SESSION_WAITING] = {
		[SCTP_DDP_NEGOTIATE] = DDP_SESSION_EV_NEGOTIATE,
		[SCTP_DDP_INITIATE] = DDP_SESSION_EV_ASKED,
		[SCTP_DDP_ENHANCED_INITIATE] = DDP_SESSION_EV_ASKED,
	},
	[DDP_SESSION_INITIATED] = {
		[SCTP_DDP_NEGOTIATE] = DDP_SESSION_EV_NEGOTIATE, /* may have crossed our Initiate */
		[SCTP_DDP_ACCEPT] = DDP_SESSION_EV_ACCEPTED,
		[SCTP_DDP_ENHANCED_ACCEPT] = DDP_SESSION_EV_ACCEPTED,
		[SCTP_DDP_REJECT] = DDP_SESSION_EV_REJECTED,
		[SCTP_DDP_ENHANCED_REJECT] = DDP_SESSION_EV_REJECTED,
		[SCTP_DDP_TERMINATE] = DDP_SESSION_EV_TERMINATED,
	},
	[DDP_SESSION_ASKED] = { [SCTP_DDP_TERMINATE] = DDP_SESSION_EV_TERMINATED },
	[DDP_SESSION_OPEN] = { [SEGMENT] = DDP_SESSION_EV_SEGMENT, [SCTP_DDP_TERMINATE] = DDP_SESSION_EV_TERMINATED },
	[DDP_SESSION_ENDING] = { [SCTP_DDP_TERMINATE] = DDP_SESSION_EV_TERMINATED },
};

/* The peer may not know yet that the session is over: what has no entry is ignored. */
#define OVER (BIT(DDP_SESSION_ENDING) | BIT(DDP_SESSION_BROKEN) | BIT(DDP_SESSION_FAILED) | BIT(DDP_SESSION_CLOSED))

static enum ddp_session_event
rule_of(enum ddp_session_state state, unsigned input)
{
	enum ddp_session_event ev = rules[state][input];

	return ev == DDP_SESSION_EV_FAILED && (BIT(state) & OVER) != 0 ? DDP_SESSION_EV_NONE : ev;
}

static enum ddp_session_event
fail(struct ddp_session *s, const char *why, uint8_t term_code)
{
	s->why = why;
	if (s->state == DDP_SESSION_OPEN) {
		s->term_code = term_code;
		set_state(s, DDP_SESSION_BROKEN);
	} else {
		set_state(s, DDP_SESSION_FAILED);
	}
	return DDP_SESSION_EV_FAILED;
}

static const char *
why_illegal(enum ddp_session_state state, unsigned input)
{
	static const char *const out_of_turn[INPUT_CNT] = {
		[SCTP_DDP_NEGOTIATE] = "unexpected Negotiate",
		[SCTP_DDP_INITIATE] = "unexpected Initiate",
		[SCTP_DDP_ACCEPT] = "unexpected Accept",
		[SCTP_DDP_REJECT] = "unexpected Reject",
		[SCTP_DDP_TERMINATE] = "unexpected Terminate",
		[SCTP_DDP_ENHANCED_INITIATE] = "unexpected Initiate",
		[SCTP_DDP_ENHANCED_ACCEPT] = "unexpected Accept",
		[SCTP_DDP_ENHANCED_REJECT] = "unexpected Reject",
		[SEGMENT] = "DDP segment before the session was accepted",
	};
	bool initiate = input == SCTP_DDP_INITIATE || input == SCTP_DDP_ENHANCED_INITIATE;

	if (state == DDP_SESSION_ENDED)
		return "message after the peer's Terminate";
	if (initiate && (state == DDP_SESSION_IDLE || state == DDP_SESSION_INITIATED))
		return "both sides initiate the session";
	return out_of_turn[input];
}

static enum ddp_session_event
initiate_in(struct ddp_session *s, const struct sctp_ddp_control *c)
{
	s->enhanced = c->has_block;
	s->offer = c->enh;
	if (s->enhanced)
		s->unfit = !depths_judge(&s->depths, &s->cfg.depths, &c->enh, &s->why);
	s->pd_len = c->pd.len;
	if (c->pd.len > 0)
		memcpy(s->pd, c->pd.ptr, c->pd.len);
	set_state(s, DDP_SESSION_ASKED);
	return DDP_SESSION_EV_ASKED;
}

/* The peer accepts segments now, even if its Accept is invalid. */
static enum ddp_session_event
accept_in(struct ddp_session *s, const struct sctp_ddp_control *c)
{
	uint8_t code = 0;
	const char *why;

	set_state(s, DDP_SESSION_OPEN);
	if (c->has_block != s->enhanced)
		return fail(s, "the Accept does not match the Initiate (enhanced block)", ENHANCED_TERM_LOCAL);
	if (s->enhanced)
		code = depths_adopt(&s->depths, &s->cfg.depths, &c->enh, &why);
	return code != 0 ? fail(s, why, code) : DDP_SESSION_EV_ACCEPTED;
}

static enum ddp_session_event
terminate_in(struct ddp_session *s)
{
	if (s->state != DDP_SESSION_ENDING)
		s->why = s->state == DDP_SESSION_OPEN ? "the peer ended the session"
		                                      : "the peer ended the session before it was accepted";
	set_state(s, s->state == DDP_SESSION_ENDING ? DDP_SESSION_CLOSED : DDP_SESSION_ENDED);
	return DDP_SESSION_EV_TERMINATED;
}

static enum ddp_session_event
act_on(struct ddp_session *s, const struct sctp_ddp_control *c)
{
	switch (rule_of(s->state, c->function)) {
	case DDP_SESSION_EV_FAILED:
		return fail(s, why_illegal(s->state, c->function), ENHANCED_TERM_LOCAL);
	case DDP_SESSION_EV_NEGOTIATE:
		if (s->negotiates == DDP_SESSION_NEGOTIATES_MAX)
			return fail(s, "too many Negotiates", ENHANCED_TERM_LOCAL);
		s->negotiates++;
		return DDP_SESSION_EV_NEGOTIATE;
	case DDP_SESSION_EV_ASKED:
		return initiate_in(s, c);
	case DDP_SESSION_EV_ACCEPTED:
		return accept_in(s, c);
	case DDP_SESSION_EV_REJECTED:
		if (c->has_block)
			depths_note_peer(&s->depths, &c->enh);
		s->why = "rejected by the peer";
		set_state(s, DDP_SESSION_CLOSED);
		return DDP_SESSION_EV_REJECTED;
	case DDP_SESSION_EV_TERMINATED:
		return terminate_in(s);
	case DDP_SESSION_EV_NONE:
	case DDP_SESSION_EV_SEGMENT:
		break;
	}
	return DDP_SESSION_EV_NONE;
}

enum ddp_session_event
ddp_session_control_in(struct ddp_session *s, struct span body, struct span *pd)
{
	struct sctp_ddp_control c;
	enum ddp_session_event ev;
	int rc = sctp_ddp_control_decode(body, s->cfg.profile, &c);

	*pd = (struct span){ 0 };
	if (rc < 0)
		return ddp_session_fail(s,
		    rc == -ENOTSUP        ? "unknown session control function"
		        : rc == -EMSGSIZE ? "session control message with more than 512 bytes of private data"
		                          : "truncated session control message");
	ev = act_on(s, &c);
	if (ev != DDP_SESSION_EV_FAILED && ev != DDP_SESSION_EV_NONE)
		*pd = c.pd;
	return ev;
}

enum ddp_session_event
ddp_session_segment_in(struct ddp_session *s)
{
	enum ddp_session_event ev = rule_of(s->state, SEGMENT);

	return ev == DDP_SESSION_EV_FAILED ? fail(s, why_illegal(s->state, SEGMENT), ENHANCED_TERM_LOCAL) : ev;
}

enum ddp_session_event
ddp_session_fail(struct ddp_session *s, const char *why)
{
	return (BIT(s->state) & OVER) != 0 ? DDP_SESSION_EV_NONE : fail(s, why, ENHANCED_TERM_LOCAL);
}

/* -- what is sent -- */

static int
ddp_session_say(
    struct ddp_session *s, const struct sctp_ddp_control *c, enum ddp_session_state next, void *buf, size_t cap)
{
	int n = sctp_ddp_control_encode(c, s->cfg.profile, s->tx_ssn, buf, cap);

	if (n < 0)
		return n;
	s->tx_ssn++;
	set_state(s, next);
	return n;
}

int
ddp_session_initiate(struct ddp_session *s, struct span pd, void *buf, size_t cap)
{
	struct sctp_ddp_control c = { .function = SCTP_DDP_INITIATE, .pd = pd };

	assert(ddp_session_may(s, DDP_SESSION_INITIATE));
	s->enhanced = s->cfg.enhanced && sctp_ddp_has(s->cfg.profile, SCTP_DDP_ENHANCED_INITIATE);
	if (s->enhanced) {
		c.function = SCTP_DDP_ENHANCED_INITIATE;
		c.enh = depths_offer(&s->cfg.depths);
	}
	return ddp_session_say(s, &c, DDP_SESSION_INITIATED, buf, cap);
}

int
ddp_session_accept(struct ddp_session *s, struct span pd, void *buf, size_t cap)
{
	struct sctp_ddp_control c = { .function = SCTP_DDP_ACCEPT, .pd = pd };

	assert(ddp_session_may(s, DDP_SESSION_ACCEPT));
	if (s->unfit)
		return -ERANGE;
	if (s->enhanced) {
		c.function = SCTP_DDP_ENHANCED_ACCEPT;
		c.enh = depths_answer(&s->depths);
	}
	return ddp_session_say(s, &c, DDP_SESSION_OPEN, buf, cap);
}

int
ddp_session_reject(struct ddp_session *s, struct span pd, void *buf, size_t cap)
{
	struct sctp_ddp_control c = { .function = SCTP_DDP_REJECT, .pd = pd };

	assert(ddp_session_may(s, DDP_SESSION_REJECT));
	if (!sctp_ddp_has(s->cfg.profile, SCTP_DDP_REJECT)) {
		c = (struct sctp_ddp_control){ .function = SCTP_DDP_TERMINATE };
	} else if (s->enhanced) {
		c.function = SCTP_DDP_ENHANCED_REJECT;
		c.enh = depths_refusal(&s->cfg.depths, &s->offer);
	}
	return ddp_session_say(s, &c, DDP_SESSION_CLOSED, buf, cap);
}

int
ddp_session_terminate(struct ddp_session *s, void *buf, size_t cap)
{
	const struct sctp_ddp_control c = { .function = SCTP_DDP_TERMINATE };

	assert(ddp_session_may(s, DDP_SESSION_TERMINATE));
	return ddp_session_say(s, &c, states[s->state].after_terminate, buf, cap);
}

uint16_t
ddp_session_segment_ssn(struct ddp_session *s)
{
	assert(ddp_session_may(s, DDP_SESSION_SEGMENT));
	if (s->state == DDP_SESSION_BROKEN)
		set_state(s, DDP_SESSION_FAILED);
	return s->tx_ssn++;
}
