/* Soft iWARP: peers without queue pair; see siw_int.h. A request is passed to the QP named in its private data, parked
 * for a while, or refused. Bounded in number and time; incomplete requests are evicted first. */
#include <errno.h>

#include "base/addr.h"
#include "rnic/siw/siw_llp.h"

void
siw_refused(struct siw_dev *dev, enum unknown_peer_kind kind, const struct unknown_peer *from)
{
	uint64_t *const counters[UNKNOWN_PEER_KINDS] = {
		[UNKNOWN_PEER_ADDRESS] = &dev->stats.mpa_refused_address,
		[UNKNOWN_PEER_BAD] = &dev->stats.mpa_bad,
		[UNKNOWN_PEER_TOKEN] = &dev->stats.mpa_refused_token,
		[UNKNOWN_PEER_PARKED] = &dev->stats.mpa_refused_parked,
		[UNKNOWN_PEER_LIMITED] = &dev->stats.strangers_limited,
	};

	(*counters[kind])++;
	unknown_peers_note(&dev->strangers, kind, from);
}

bool
siw_may_come(struct siw_dev *dev, const struct unknown_peer *from)
{
	if (dev->cfg.may_connect == NULL || dev->cfg.may_connect(dev->cfg.may_connect_ctx, &from->at))
		return true;
	siw_refused(dev, UNKNOWN_PEER_ADDRESS, from);
	return false;
}

/* Refuses a request that has no QP. */
static void
pend_refuse(struct siw_pend *p, enum mpa_verdict verdict)
{
	bool early = verdict == MPA_NOT_EXPECTED || verdict == MPA_BUSY;

	siw_refused(p->dev, early ? UNKNOWN_PEER_PARKED : UNKNOWN_PEER_TOKEN, &p->from);
	p->dev->llp->pend_refuse(p, verdict);
}

static void
pend_timeout(struct timer *t)
{
	struct siw_pend *p = CONTAINER_OF(t, struct siw_pend, timer);

	if (p->parked) {
		pend_refuse(p, MPA_NOT_EXPECTED);
	} else {
		siw_refused(p->dev, UNKNOWN_PEER_BAD, &p->from);
		p->dev->llp->pend_drop(p);
	}
}

int
siw_pend_add(struct siw_dev *dev, struct siw_pend *p, const struct unknown_peer *from)
{
	/* Makes room for the new peer: evicts an incomplete request first. */
	if (dev->pending_cnt >= SIW_PENDING_MAX && !list_empty(&dev->pending)) {
		struct siw_pend *slowest = LIST_FIRST(struct siw_pend, &dev->pending, node);

		siw_refused(dev, UNKNOWN_PEER_BAD, &slowest->from);
		dev->llp->pend_drop(slowest);
	}
	if (timerq_reserve(&dev->timers, 1) < 0)
		return -ENOMEM;
	p->dev = dev;
	p->from = *from;
	timer_init(&p->timer, pend_timeout);
	list_init(&p->node);
	list_push(&dev->pending, &p->node);
	dev->pending_cnt++;
	siw_arm(dev, &p->timer, dev->cfg.connect_ms);
	return 0;
}

void
siw_pend_remove(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;

	timer_cancel(&dev->timers, &p->timer);
	timerq_unreserve(&dev->timers, 1);
	list_remove(&p->node);
	dev->pending_cnt--;
	dev->parked_cnt -= p->parked;
}

static bool
pend_park(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;
	unsigned of_source = 0, bits = addr_source_bits(p->from.at.b);

	LIST_EACH(struct siw_pend, other, &dev->parked, node)
		of_source += addr_same_prefix(other->from.at.b, p->from.at.b, bits);
	if (dev->parked_cnt >= SIW_PARKED_MAX || of_source >= SIW_PARKED_OF_ONE) {
		pend_refuse(p, MPA_BUSY);
		return false;
	}
	p->parked = true;
	dev->parked_cnt++;
	list_remove(&p->node);
	list_push(&dev->parked, &p->node);
	siw_arm(dev, &p->timer, SIW_PARKED_MS);
	return true;
}

/* Finds the addressed QP. False: the pend has ended, assigned or refused. */
static bool
pend_route(struct siw_pend *p)
{
	struct siw_qp *qp = siw_qp_find(p->dev, p->pdata.qpn);

	if (qp != NULL && (p->pdata.psn != qp->qp.psn || p->pdata.token != qp->token))
		pend_refuse(p, MPA_BAD_TOKEN);
	else if (qp == NULL || qp->state == SIW_IDLE)
		return pend_park(p);
	else if (qp->state != SIW_EXPECTING)
		pend_refuse(p, qp->state >= SIW_BROKEN ? MPA_GONE : MPA_USED);
	else
		p->dev->llp->pend_adopt(p, qp);
	return false;
}

bool
siw_pend_dispatch(struct siw_pend *p, struct span pdata)
{
	/* A peer without receives could never be sent a message. */
	if (mpa_pdata_decode(pdata, &p->pdata) == 0 && p->pdata.recv_depth != 0)
		return pend_route(p);
	pend_refuse(p, MPA_UNKNOWN_PEER);
	return false;
}

void
siw_pend_expected(struct siw_qp *qp)
{
	LIST_EACH(struct siw_pend, p, &qp->dev->parked, node)
		if (qp->state == SIW_EXPECTING && p->pdata.qpn == qp->qp.qpn)
			(void)pend_route(p);
}

void
siw_pend_drop_all(struct siw_dev *dev)
{
	LIST_EACH(struct siw_pend, p, &dev->pending, node)
		dev->llp->pend_drop(p);
	LIST_EACH(struct siw_pend, p, &dev->parked, node)
		dev->llp->pend_drop(p);
}
