/* Read queue depths, connection model, RTR; see depths.h. */
#include "iwarp/depths.h"

#include <assert.h>

#include "base/minmax.h"

void
depths_init(struct depths *d, const struct depths_config *cfg)
{
	assert(cfg->rtr != 0 && (cfg->rtr & ~(unsigned)RTR_ANY) == 0);
	*d = (struct depths){ .ird = cfg->ird, .ord = cfg->ord, .peer_ird = DEPTH_NONE, .peer_ord = DEPTH_NONE };
}

void
depths_note_peer(struct depths *d, const struct enhanced *peer)
{
	d->peer_ird = peer->ird;
	d->peer_ord = peer->ord;
}

/* -- initiator -- */

struct enhanced
depths_offer(const struct depths_config *cfg)
{
	return (struct enhanced){ .model = cfg->p2p ? ENHANCED_P2P | cfg->rtr : 0, .ird = cfg->ird, .ord = cfg->ord };
}

uint8_t
depths_adopt(struct depths *d, const struct depths_config *cfg, const struct enhanced *answer, const char **why)
{
	unsigned rtr = answer->model & cfg->rtr;

	depths_note_peer(d, answer);
	if (answer->ord != DEPTH_NONE && cfg->ird != DEPTH_NONE) {
		if (answer->ord > cfg->ird_max) {
			*why = "the peer's ORD exceeds our limit";
			return ENHANCED_TERM_IRD;
		}
		if (answer->ord > cfg->ird)
			d->ird = answer->ord;
	}
	if (answer->ird != DEPTH_NONE && cfg->ord != DEPTH_NONE)
		d->ord = min_u16(cfg->ord, answer->ird);
	if (d->ord < cfg->ord_min) {
		*why = "the peer's IRD is too small";
		return ENHANCED_TERM_IRD;
	}
	d->p2p = cfg->p2p;
	if (!d->p2p)
		return 0;
	/* If the responder answers with another model, it cannot learn the RTR kind. */
	if (rtr == 0) {
		*why = "no RTR kind in common";
		return ENHANCED_TERM_RTR;
	}
	/* Prefers the Write: it costs the peer neither a receive nor a Read queue entry. */
	d->rtr = rtr & RTR_WRITE ? RTR_WRITE : rtr & RTR_READ ? RTR_READ : RTR_SEND;
	if (d->rtr == RTR_READ && d->ord == 0)
		d->ord = 1;
	return 0;
}

/* -- responder -- */

bool
depths_judge(struct depths *d, const struct depths_config *cfg, const struct enhanced *offer, const char **why)
{
	depths_note_peer(d, offer);
	d->p2p = (offer->model & ENHANCED_P2P) != 0;
	if (d->p2p)
		d->rtr = offer->model & cfg->rtr ? offer->model & cfg->rtr : cfg->rtr;
	if (offer->ord != DEPTH_NONE && cfg->ird != DEPTH_NONE) {
		d->ird = min_u16(offer->ord, cfg->ird_max);
		if (d->ird == 0 && d->rtr & RTR_READ)
			d->ird = 1;
	}
	if (offer->ird != DEPTH_NONE && cfg->ord != DEPTH_NONE)
		d->ord = min_u16(cfg->ord, offer->ird);
	if (d->ord >= cfg->ord_min)
		return true;
	*why = "the peer's IRD is too small";
	return false;
}

struct enhanced
depths_answer(const struct depths *d)
{
	return (struct enhanced){
		.model = d->p2p ? ENHANCED_P2P | d->rtr : 0,
		.ird = d->peer_ord == DEPTH_NONE ? DEPTH_NONE : d->ird,
		.ord = d->peer_ird == DEPTH_NONE ? DEPTH_NONE : d->ord,
	};
}

struct enhanced
depths_refusal(const struct depths_config *cfg, const struct enhanced *offer)
{
	const char *why;
	struct depths d;

	depths_init(&d, cfg);
	bool fits = depths_judge(&d, cfg, offer, &why);
	struct enhanced answer = depths_answer(&d);
	if (d.p2p)
		answer.model |= cfg->rtr;
	if (!fits)
		answer.ord = cfg->ord_min; /* 9.1 */
	return answer;
}
