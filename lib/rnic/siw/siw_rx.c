/* Soft iWARP: input and loss of the established stream; see siw_int.h. */
#include "rnic/siw/siw_int.h"
#include "wire/rdmap.h"

void
siw_rx_schedule(struct siw_qp *qp)
{
	if (list_empty(&qp->rx_node))
		list_push(&qp->dev->rx_list, &qp->rx_node);
}

bool
siw_rx_started(struct siw_qp *qp)
{
	if (qp->state != SIW_RTR_WAIT)
		return true;
	siw_qp_set_state(qp, SIW_RTS);
	/* The user gives up a QP that is not claimed yet. */
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	siw_cm_check_connected(qp);
	if (qp->state != SIW_RTS)
		return false;
	siw_tx_schedule(qp);
	return true;
}

enum siw_seg
siw_segment_in(struct siw_qp *qp, struct span segment)
{
	struct siw_dev *dev = qp->dev;
	struct stream_ev ev;

	switch (stream_ulpdu(&qp->stream, segment, &ev)) {
	case STREAM_RX_NONE:
		break;
	case STREAM_RX_RECV:
		siw_complete(qp, ev.wr_id, RNIC_WC_RECV, RNIC_WC_OK, ev.len);
		break;
	case STREAM_RX_READ_REQ:
		siw_tx_schedule(qp);
		break;
	case STREAM_RX_READ_DONE:
		siw_complete_sends(qp, fence_answered(&qp->fence));
		siw_credits_changed(qp);
		fence_arm(&qp->fence);
		siw_tx_schedule(qp);
		break;
	case STREAM_RX_NO_RECV:
		dev->stats.recv_stalls++;
		return SIW_SEG_HELD;
	case STREAM_RX_TERMINATED:
		dev->stats.terminates_received++;
		siw_qp_break(qp, rdmap_term_str(ev.term.layer, ev.term.etype, ev.term.code), RNIC_WC_REMOTE_ERR, NULL);
		return SIW_SEG_END;
	case STREAM_RX_ERROR:
		siw_qp_break(qp, "iWARP protocol violation by the peer", RNIC_WC_LOCAL_ERR, &ev.term);
		return SIW_SEG_END;
	}
	return siw_rx_started(qp) ? SIW_SEG_TAKEN : SIW_SEG_END;
}

const char *
siw_terminate_str(struct span segment)
{
	struct ddp_hdr h;
	struct rdmap_term t;
	int n = ddp_decode(segment, &h);

	if (n <= 0 || h.tagged || h.qn != RDMAP_QN_TERM || rdmap_ctrl_op(h.ulp_ctrl) != RDMAP_TERMINATE)
		return NULL;
	if (rdmap_term_decode((struct span){ .ptr = segment.ptr + n, .len = segment.len - (size_t)n }, &t) < 0)
		return NULL;
	return rdmap_term_str(t.layer, t.etype, t.code);
}

void
siw_stream_lost(struct siw_qp *qp, const char *why, const char *last_words)
{
	if (last_words == NULL) {
		siw_qp_break(qp, why, RNIC_WC_RETRY_EXC, NULL);
		return;
	}
	qp->dev->stats.terminates_received++;
	siw_qp_break(qp, last_words, RNIC_WC_REMOTE_ERR, NULL);
}
