/* MPA start-up negotiation; see negotiate.h. */
#include "iwarp/negotiate.h"

#include <assert.h>

static enum neg_state
neg_fail(struct neg *n, const char *why, uint8_t term_code)
{
	n->why = why;
	n->term_code = term_code;
	return n->state = NEG_FAILED;
}

static uint16_t
min16(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

void
neg_init(struct neg *n, const struct neg_config *cfg)
{
	assert(cfg->rtr != 0 && (cfg->rtr & ~(unsigned)MPA_RTR_ANY) == 0);
	*n = (struct neg){ .cfg = *cfg };
	n->res.ird = cfg->ird;
	n->res.ord = cfg->ord;
	n->res.peer_ird = n->res.peer_ord = MPA_DEPTH_NONE;
}

static unsigned
wanted_flags(const struct neg_config *cfg)
{
	return (cfg->crc ? MPA_CRC : 0u) | (cfg->markers ? MPA_MARKERS : 0u);
}

/* -- initiator -- */

void
neg_request(struct neg *n, struct mpa_frame *out)
{
	assert(n->state == NEG_IDLE);
	n->state = NEG_REQUESTED;
	*out = (struct mpa_frame){ .kind = MPA_REQUEST, .rev = 1, .flags = wanted_flags(&n->cfg) };
	if (n->cfg.enhanced) {
		out->rev = 2;
		out->flags |= MPA_ENHANCED;
		out->ird = n->cfg.ird;
		out->ord = n->cfg.ord;
		out->model = n->cfg.p2p ? MPA_P2P | n->cfg.rtr : 0;
	}
	n->request = *out;
}

/* RFC 6581 9.1, the initiator's part. */
static enum neg_state
reply_enhanced(struct neg *n, const struct mpa_frame *f)
{
	unsigned rtr = f->model & n->cfg.rtr;

	n->res.enhanced = true;
	if (f->ord != MPA_DEPTH_NONE && n->cfg.ird != MPA_DEPTH_NONE) {
		if (f->ord > n->cfg.ird_max)
			return neg_fail(n, "the peer's ORD is more than we can serve", NEG_TERM_IRD);
		if (f->ord > n->cfg.ird)
			n->res.ird = f->ord;
	}
	if (f->ird != MPA_DEPTH_NONE && n->cfg.ord != MPA_DEPTH_NONE)
		n->res.ord = min16(n->cfg.ord, f->ird);
	if (n->res.ord < n->cfg.ord_min)
		return neg_fail(n, "the peer's IRD is too small", NEG_TERM_IRD);
	n->res.p2p = n->cfg.p2p;
	if (n->cfg.p2p) {
		/* A responder that answers another model has no way to learn what the RTR will be. */
		if (rtr == 0)
			return neg_fail(n, "no RTR kind in common", NEG_TERM_RTR);
		/* The Write first: it costs the peer neither a receive nor a place in its Read queue. */
		n->res.rtr = rtr & MPA_RTR_WRITE ? MPA_RTR_WRITE : rtr & MPA_RTR_READ ? MPA_RTR_READ : MPA_RTR_SEND;
		if (n->res.rtr == MPA_RTR_READ && n->res.ord == 0)
			n->res.ord = 1;
	}
	return n->state = NEG_DONE;
}

enum neg_state
neg_reply_in(struct neg *n, const struct mpa_frame *f)
{
	bool enhanced = (f->flags & MPA_ENHANCED) != 0;

	assert(n->state == NEG_REQUESTED);
	if (f->rev < 1 || f->rev > 2 || f->rev > n->request.rev)
		return neg_fail(n, "MPA revision not supported", 0);
	if (enhanced) {
		n->res.peer_ird = f->ird;
		n->res.peer_ord = f->ord;
	}
	if (f->flags & MPA_REJECT) {
		n->why = "rejected by the peer";
		return n->state = NEG_REJECTED;
	}
	if (enhanced != n->cfg.enhanced)
		return neg_fail(n, "MPA Reply does not match the Request (enhanced block)", 0);
	n->res.crc = n->cfg.crc || f->flags & MPA_CRC;
	n->res.markers_rx = n->cfg.markers;
	n->res.markers_tx = (f->flags & MPA_MARKERS) != 0;
	return enhanced ? reply_enhanced(n, f) : (n->state = NEG_DONE);
}

/* -- responder -- */

/* RFC 6581 9.1, the responder's part. */
static void
answer_depths(struct neg *n, const struct mpa_frame *f)
{
	bool read_rtr = f->model & MPA_P2P && n->res.rtr & MPA_RTR_READ;

	if (f->ord != MPA_DEPTH_NONE && n->cfg.ird != MPA_DEPTH_NONE) {
		n->res.ird = min16(f->ord, n->cfg.ird_max);
		if (n->res.ird == 0 && read_rtr)
			n->res.ird = 1;
	}
	if (f->ird != MPA_DEPTH_NONE && n->cfg.ord != MPA_DEPTH_NONE)
		n->res.ord = min16(n->cfg.ord, f->ird);
}

void
neg_accept(struct neg *n, struct mpa_frame *out)
{
	assert(n->state == NEG_CHECKED);
	n->state = NEG_DONE;
	*out = (struct mpa_frame){ .kind = MPA_REPLY, .rev = n->request.rev, .flags = wanted_flags(&n->cfg) };
	if (!n->res.enhanced)
		return;
	out->flags |= MPA_ENHANCED;
	out->model = n->res.p2p ? MPA_P2P | n->res.rtr : 0;
	out->ird = n->request.ord == MPA_DEPTH_NONE ? MPA_DEPTH_NONE : n->res.ird;
	out->ord = n->request.ird == MPA_DEPTH_NONE ? MPA_DEPTH_NONE : n->res.ord;
}

void
neg_reject(struct neg *n, struct mpa_frame *out)
{
	neg_accept(n, out);
	n->state = NEG_REJECTED;
	out->flags |= MPA_REJECT;
	if (n->res.enhanced && n->res.ord < n->cfg.ord_min)
		out->ord = n->cfg.ord_min; /* 9.1: the ORD that we would need */
}

void
neg_refuse(const struct neg_config *cfg, const struct mpa_frame *request, struct mpa_frame *out)
{
	struct neg n;

	neg_init(&n, cfg);
	n.state = NEG_CHECKED;
	n.request = *request;
	n.res.enhanced = (request->flags & MPA_ENHANCED) != 0;
	n.res.p2p = (request->model & MPA_P2P) != 0;
	n.res.rtr = cfg->rtr;
	answer_depths(&n, request);
	neg_accept(&n, out);
	out->flags = MPA_REJECT | (request->flags & MPA_ENHANCED);
}

enum neg_state
neg_request_in(struct neg *n, const struct mpa_frame *f, struct mpa_frame *reject)
{
	assert(n->state == NEG_IDLE);
	if (f->rev < 1 || f->rev > 2)
		return neg_fail(n, "MPA revision not supported", 0);
	n->request = *f;
	n->request.pd = (struct span){ 0 };
	n->res.crc = n->cfg.crc || f->flags & MPA_CRC;
	n->res.markers_rx = n->cfg.markers;
	n->res.markers_tx = (f->flags & MPA_MARKERS) != 0;
	n->res.enhanced = (f->flags & MPA_ENHANCED) != 0;
	n->state = NEG_CHECKED;
	if (!n->res.enhanced)
		return n->state;
	n->res.peer_ird = f->ird;
	n->res.peer_ord = f->ord;
	n->res.p2p = (f->model & MPA_P2P) != 0;
	if (n->res.p2p)
		n->res.rtr = f->model & n->cfg.rtr ? f->model & n->cfg.rtr : n->cfg.rtr;
	answer_depths(n, f);
	if (n->res.ord < n->cfg.ord_min) {
		n->why = "the peer's IRD is too small";
		neg_reject(n, reject);
	}
	return n->state;
}
