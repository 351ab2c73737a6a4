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

void
neg_init(struct neg *n, const struct neg_config *cfg)
{
	*n = (struct neg){ .cfg = *cfg };
	depths_init(&n->res.depths, &cfg->depths);
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
		out->enh = depths_offer(&n->cfg.depths);
	}
	n->request = *out;
}

enum neg_state
neg_reply_in(struct neg *n, const struct mpa_frame *f)
{
	bool enhanced = (f->flags & MPA_ENHANCED) != 0;

	assert(n->state == NEG_REQUESTED);
	if (f->rev < 1 || f->rev > 2 || f->rev > n->request.rev)
		return neg_fail(n, "MPA revision not supported", 0);
	if (enhanced)
		depths_note_peer(&n->res.depths, &f->enh);
	if (f->flags & MPA_REJECT) {
		n->why = "rejected by the peer";
		return n->state = NEG_REJECTED;
	}
	n->res.enhanced = enhanced;
	n->res.crc = n->cfg.crc || f->flags & MPA_CRC;
	n->res.markers_rx = n->cfg.markers;
	n->res.markers_tx = (f->flags & MPA_MARKERS) != 0;
	if (enhanced != n->cfg.enhanced)
		return neg_fail(
		    n, "MPA Reply does not match the Request (enhanced block)", enhanced ? 0 : ENHANCED_TERM_LOCAL);
	if (enhanced) {
		const char *why;
		uint8_t code = depths_adopt(&n->res.depths, &n->cfg.depths, &f->enh, &why);

		if (code != 0)
			return neg_fail(n, why, code);
	}
	return n->state = NEG_DONE;
}

/* -- responder -- */

void
neg_accept(struct neg *n, struct mpa_frame *out)
{
	assert(n->state == NEG_CHECKED);
	n->state = NEG_DONE;
	*out = (struct mpa_frame){ .kind = MPA_REPLY, .rev = n->request.rev, .flags = wanted_flags(&n->cfg) };
	if (n->res.enhanced) {
		out->flags |= MPA_ENHANCED;
		out->enh = depths_answer(&n->res.depths);
	}
}

static void
negotiate_refuse(const struct depths_config *cfg, const struct mpa_frame *request, struct mpa_frame *out)
{
	*out = (struct mpa_frame){
		.kind = MPA_REPLY,
		.rev = request->rev,
		.flags = MPA_REJECT | (request->flags & MPA_ENHANCED),
	};
	if (out->flags & MPA_ENHANCED)
		out->enh = depths_refusal(cfg, &request->enh);
}

void
neg_reject(struct neg *n, struct mpa_frame *out)
{
	assert(n->state == NEG_CHECKED);
	n->state = NEG_REJECTED;
	negotiate_refuse(&n->cfg.depths, &n->request, out);
	out->flags |= wanted_flags(&n->cfg);
}

void
neg_refuse(const struct neg_config *cfg, const struct mpa_frame *request, struct mpa_frame *out)
{
	struct depths_config any = cfg->depths;

	any.ord_min = 0;
	negotiate_refuse(&any, request, out);
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
	if (n->res.enhanced && !depths_judge(&n->res.depths, &n->cfg.depths, &f->enh, &n->why))
		neg_reject(n, reject);
	return n->state;
}
