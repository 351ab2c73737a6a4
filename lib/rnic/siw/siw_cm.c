/* Soft iWARP: connection set-up, what both sides share; see siw_int.h. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "rnic/siw/siw_int.h"

#define NOTSENT_LOWAT (128 * 1024)

void
siw_tune_socket(int fd)
{
	const int on = 1, lowat = NOTSENT_LOWAT;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

struct neg_config
siw_neg_config(const struct siw_dev *dev)
{
	const struct siw_config *c = &dev->cfg;

	return (struct neg_config){
		.enhanced = c->mpa_rev >= 2,
		.p2p = true,
		.rtr = (c->rtr & SIW_RTR_SEND ? MPA_RTR_SEND : 0u) | (c->rtr & SIW_RTR_WRITE ? MPA_RTR_WRITE : 0u) |
		    (c->rtr & SIW_RTR_READ ? MPA_RTR_READ : 0u),
		.crc = c->crc,
		.markers = c->markers,
		.ird = c->ird,
		.ird_max = c->ird,
		.ord = c->ord,
		.ord_min = 1, /* a write is complete when a Read behind it was answered */
	};
}

void
siw_neg_start(struct siw_qp *qp)
{
	const struct neg_config cfg = siw_neg_config(qp->dev);

	neg_init(&qp->neg, &cfg);
}

static int
depth_named(const struct neg *neg, uint16_t depth)
{
	return neg->state == NEG_IDLE || depth == MPA_DEPTH_NONE ? -1 : depth;
}

struct rnic_depths
siw_peer_depths(const struct rnic_qp *rqp)
{
	const struct siw_qp *qp = CONTAINER_OF((struct rnic_qp *)(uintptr_t)rqp, struct siw_qp, qp);

	return (struct rnic_depths){
		.ird = depth_named(&qp->neg, qp->neg.res.peer_ird),
		.ord = depth_named(&qp->neg, qp->neg.res.peer_ord),
	};
}

/* Our private data; the token only where we have to show it. */
void
siw_own_pdata(const struct siw_qp *qp, const struct rnic_remote *to, struct mpa_pdata *out)
{
	*out = (struct mpa_pdata){
		.recv_depth = (uint16_t)qp->rq_depth,
		.qpn = to != NULL ? to->qpn : qp->peer_qpn,
		.psn = to != NULL ? to->psn : 0,
		.token = to != NULL ? qp->token : 0,
		.from_qpn = qp->qp.qpn,
		.ulpdu_max = qp->dev->cfg.fpdu_max,
		.read_stag = qp->fence_region.stag,
		.read_to = qp->fence_region.base,
	};
}

void
siw_set_port(struct sockaddr_storage *ss, uint16_t port)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)(void *)ss)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)(void *)ss)->sin6_port = htons(port);
}

socklen_t
siw_addr_len(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

void
siw_cm_check_connected(struct siw_qp *qp)
{
	if (qp->state != SIW_RTS || !qp->claimed || qp->connected)
		return;
	if (qp->peer_qpn != qp->remote.qpn) {
		const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = NEG_TERM_LOCAL };

		siw_qp_break(qp, "the link was taken by another QP of the peer", RNIC_WC_LOCAL_ERR, &term);
		return;
	}
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	qp->connected = true;
	siw_event(qp, RNIC_EV_CONNECTED);
}

void
siw_cm_connect_timeout(struct timer *t, int64_t now_ns)
{
	struct siw_qp *qp = CONTAINER_OF(t, struct siw_qp, connect_timer);
	const char *why = "timed out";

	(void)now_ns;
	switch (qp->state) {
	case SIW_EXPECTING:
		why = "the peer did not open its MPA connection in time";
		break;
	case SIW_CONNECTING:
		why = "the peer's MPA port does not answer";
		break;
	case SIW_REQUESTED:
		why = "the peer did not answer the MPA Request in time";
		break;
	case SIW_RTR_WAIT:
		why = "the peer's first message did not come in time";
		break;
	case SIW_IDLE:
	case SIW_RTS:
	case SIW_BROKEN:
	case SIW_CLOSED:
		break;
	}
	siw_qp_break(qp, why, RNIC_WC_FLUSHED, NULL);
}
