/* The messages of a peer that keeps no rule: no request stands behind them. See sim.h. */
#include <string.h>

#include "tests/sim/sim_int.h"

bool
sim_nth_qp_of(const struct rnic_dev *d, uint32_t n, uint32_t *qpn)
{
	const struct sim_dev *dev = CONTAINER_OF((uintptr_t)d, struct sim_dev, base);
	const struct sim_qp *qp;
	uint32_t pos = 0, cnt = 0;

	while ((qp = idtable_next(&dev->fab->qps, &pos)) != NULL)
		cnt += qp->dev == dev && qp->state == SIM_QP_READY;
	if (cnt == 0)
		return false;
	n %= cnt;
	for (pos = 0; (qp = idtable_next(&dev->fab->qps, &pos)) != NULL;)
		if (qp->dev == dev && qp->state == SIM_QP_READY && n-- == 0)
			break;
	*qpn = qp->base.qpn;
	return true;
}

bool
sim_forge(struct rnic_dev *d, uint32_t qpn, const struct sim_forgery *f)
{
	struct sim_dev *dev = CONTAINER_OF(d, struct sim_dev, base);
	struct sim_qp *qp = sim_qp_by_qpn(dev->fab, dev, qpn);
	struct sim_parcel *par;

	if (qp == NULL || qp->state != SIM_QP_READY || qp->chan->dead || (f->op == RNIC_WR_WRITE && f->len == 0))
		return false;
	par = sim_alloc(sizeof(*par) + f->len);
	par->op = f->op;
	par->raddr = f->raddr;
	par->rkey = f->rkey;
	par->len = (uint32_t)f->len;
	memcpy(par->data, f->data, f->len);
	list_push(&qp->chan->msgs, &par->node);
	qp->chan->bytes += f->len;
	sim_transmit(qp);
	return true;
}
