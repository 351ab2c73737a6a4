/* Elements that wait for a sign of the peer; see quarantine.h. */
#include "smcr/data/quarantine.h"

#include "smcr/data/link_tx.h"
#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "wire/cdc.h"

void
quarantine_elem(struct rmb *rmb, uint8_t idx, uint32_t token, const struct remote_rmb *peer_rmb, uint8_t peer_idx)
{
	struct rmb_elem *e = &rmb->elem[idx - 1];

	e->state = RMB_ELEM_QUARANTINED;
	e->token = token;
	e->peer_rmb = peer_rmb != NULL ? peer_rmb->number : 0;
	e->peer_idx = peer_idx;
	rmb->quarantined++;
	rmb->lgr->quarantined++;
	rmb->lgr->eng->ctr.elems_quarantined++;
}

bool
quarantine_is_full(const struct lgr *lgr)
{
	return lgr->quarantined >= lgr->eng->cfg.quarantine_max;
}

/* Back to where it would have gone when its connection ended. */
static void
let_go(struct rmb *rmb, uint8_t idx)
{
	rmb->elem[idx - 1].state = RMB_ELEM_USED;
	rmb->quarantined--;
	rmb->lgr->quarantined--;
	rmb->lgr->eng->ctr.elems_let_go++;
	rmb_elem_put(rmb, idx, rmb->lgr->eng->now_ns);
}

/*
 * The sign came by another way than the peer's writes, which may still be on theirs: the links refuse them (where the device
 * can) until each has shown that nothing is under way, or time has passed.
 */
static void
let_go_later(struct rmb *rmb, uint8_t idx)
{
	LGR_EACH_LINK(l, rmb->lgr) {
		if (l->state == LINK_FREE)
			continue;
		rmb_elem_deny(rmb, idx, l);
		if (l->state == LINK_ACTIVE)
			link_want_proof(l);
	}
	let_go(rmb, idx);
}

void
quarantine_let_go(struct lgr *lgr, const struct remote_rmb *rr, uint8_t peer_idx)
{
	if (lgr->quarantined == 0)
		return;
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		for (uint32_t i = 0; i < rmb->elem_cnt && rmb->quarantined > 0; i++) {
			const struct rmb_elem *e = &rmb->elem[i];

			if (e->state == RMB_ELEM_QUARANTINED && e->peer_rmb == rr->number &&
			    (peer_idx == 0 || e->peer_idx == peer_idx))
				let_go_later(rmb, (uint8_t)(i + 1));
		}
	}
}

bool
quarantine_take_flags(struct lgr *lgr, uint32_t token, uint8_t conn_flags)
{
	if (lgr->quarantined == 0 || (conn_flags & (CDC_CLOSED | CDC_ABORT)) == 0)
		return false;
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node) {
		for (uint32_t i = 0; i < rmb->elem_cnt && rmb->quarantined > 0; i++) {
			if (rmb->elem[i].state != RMB_ELEM_QUARANTINED || rmb->elem[i].token != token)
				continue;
			let_go(rmb, (uint8_t)(i + 1));
			return true;
		}
	}
	return false;
}
