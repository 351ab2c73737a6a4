/* The verbs device: connecting queue pairs over RoCE. Both sides know number, PSN, GID and MTU of the other and set
 * them, without a message; see verbs_int.h. Attributes and order of states as in Linux. */
#include <errno.h>
#include <string.h>

#include "rnic/verbs/verbs_int.h"

#define RNR_FOREVER 7  /* TEST LINK detects a peer that never posts a receive */
#define HOP_LIMIT_V1 1 /* RoCE v1 is not routed */

/* Attributes of the two transitions. */
static const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
static const int rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
    IBV_QP_MAX_QP_RD_ATOMIC;

/* Runs in the thread. */
static void
transition_run(struct verbs_job *job)
{
	job->err = ibv_modify_qp(job->hw, &job->rtr, rtr_mask);
	if (job->err == 0 && job->to_rts)
		job->err = ibv_modify_qp(job->hw, &job->rts, rts_mask);
}

static void
fill_rtr(struct verbs_qp *qp)
{
	const struct verbs_dev *dev = qp->dev;
	const struct rnic_remote *r = &qp->remote;
	uint8_t mtu = r->mtu_code < dev->port.mtu_code ? r->mtu_code : dev->port.mtu_code;

	qp->job.rtr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = r->qpn,
		.rq_psn = r->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = dev->cfg.min_rnr_timer,
		.ah_attr = { .is_global = 1,
		    .sl = dev->cfg.service_level,
		    .port_num = dev->cfg.port,
		    .grh = { .sgid_index = (uint8_t)dev->gid.index,
		        .hop_limit = dev->gid.type == RNIC_GID_ROCE_V1 ? HOP_LIMIT_V1 : dev->cfg.hop_limit,
		        .traffic_class = dev->cfg.traffic_class } },
	};
	memcpy(qp->job.rtr.ah_attr.grh.dgid.raw, r->gid.b, sizeof(r->gid.b));
}

int
verbs_roce_connect(struct verbs_qp *qp)
{
	const struct verbs_config *cfg = &qp->dev->cfg;
	const struct rnic_remote *r = &qp->remote;

	if (r->mtu_code < 1 || r->mtu_code > 5 || r->qpn >= 1u << 24 || r->psn >= 1u << 24 ||
	    qp->dev->gid.index > UINT8_MAX)
		return -EINVAL;
	if (!qp->dev->gid_present)
		return -EADDRNOTAVAIL;
	fill_rtr(qp);
	qp->job.rts = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = cfg->timeout,
		.retry_cnt = cfg->retry_cnt,
		.rnr_retry = RNR_FOREVER,
		.sq_psn = qp->qp.psn,
		.max_rd_atomic = 1,
	};
	qp->job.to_rts = qp->side == RNIC_PASSIVE;
	qp->job.run = transition_run;
	int rc = verbs_cm_submit(qp);
	if (rc == 0)
		verbs_qp_set_phase(qp, VERBS_CONNECTING, "requested");
	return rc;
}

/* Does not use the network: no thread needed. */
int
verbs_qp_rts(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	if (verbs_is_iwarp(qp->dev) || qp->phase == VERBS_RTS)
		return 0;
	if (qp->phase != VERBS_RTR)
		return -ENOTCONN;
	int err = ibv_modify_qp(qp->hw, &qp->job.rts, rts_mask);
	if (err != 0)
		return -err;
	verbs_qp_set_phase(qp, VERBS_RTS, "peer ready");
	return 0;
}
