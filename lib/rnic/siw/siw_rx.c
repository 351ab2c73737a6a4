/* Soft iWARP: the established stream: its start, what arrives on it, its loss; see siw_int.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "rnic/siw/siw_int.h"
#include "wire/rdmap.h"

#define REST_READS_MAX 32 /* what a socket holds is bounded; this is for one whose peer goes on sending */

/* -- start -- */

static void
set_ulpdu_max(struct siw_qp *qp, size_t max)
{
	size_t most = txq_ulpdu_max(&qp->txq);

	qp->ulpdu_max = max < 128 ? 128 : max > most ? most : max;
}

void
siw_follow_mss(struct siw_qp *qp)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(qp->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0 || mss <= 0)
		mss = 536; /* RFC 9293 3.7.1 */
	set_ulpdu_max(qp, mpa_mulpdu((size_t)mss, qp->neg.res.markers_tx));
}

int
siw_stream_start(struct siw_qp *qp, const struct mpa_pdata *peer)
{
	const struct neg_result *res = &qp->neg.res;
	uint32_t own = qp->dev->cfg.fpdu_max;
	bool rtr_send = qp->state == SIW_RTR_WAIT && res->p2p && (res->rtr & MPA_RTR_SEND) != 0;

	qp->sq.peer_depth = peer->recv_depth;
	qp->peer_qpn = peer->from_qpn;
	fence_set_peer(&qp->fence, peer);
	qp->fpdu = (struct fpdu_rx){ .crc = res->crc, .markers = res->markers_rx };
	txq_start(&qp->txq, res->crc, res->markers_tx);
	/* Software takes FPDUs larger than a segment, and wherever they begin; others get what RFC 5044 says. */
	qp->txq.apart = peer->ulpdu_max == 0;
	if (qp->txq.apart || own == 0)
		siw_follow_mss(qp);
	else
		set_ulpdu_max(qp, peer->ulpdu_max < own ? peer->ulpdu_max : own);
	stream_start(&qp->stream, res->ord, rtr_send);
	qp->rx_len = 0; /* nothing is behind the Reply that was read into the buffer */
	return qp->dev->loop.watch(qp->dev->loop.ctx, qp->fd, siw_stream_io, qp);
}

/* -- receiving -- */

void
siw_rx_schedule(struct siw_qp *qp)
{
	if (list_empty(&qp->rx_node))
		list_push(&qp->dev->rx_list, &qp->rx_node);
}

/* The first FPDU of the peer is here: the passive side may speak now (RFC 5044 7.1.2). False: the peer is not the claimed one,
 * and the QP is broken. */
static bool
rx_started(struct siw_qp *qp)
{
	if (qp->state != SIW_RTR_WAIT)
		return true;
	siw_qp_set_state(qp, SIW_RTS);
	/* A QP that is not claimed yet is its user's to give up. */
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	siw_cm_check_connected(qp);
	if (qp->state != SIW_RTS)
		return false;
	siw_tx_schedule(qp);
	return true;
}

/* False: stop decoding. */
static bool
rx_ulpdu(struct siw_qp *qp, struct span ulpdu)
{
	struct siw_dev *dev = qp->dev;
	struct stream_ev ev;

	switch (stream_ulpdu(&qp->stream, ulpdu, &ev)) {
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
		qp->rx_held = ulpdu;
		dev->stats.recv_stalls++;
		return false;
	case STREAM_RX_TERMINATED:
		dev->stats.terminates_received++;
		siw_qp_break(qp, rdmap_term_str(ev.term.layer, ev.term.etype, ev.term.code), RNIC_WC_REMOTE_ERR, NULL);
		return false;
	case STREAM_RX_ERROR:
		siw_qp_break(qp, "the peer broke the iWARP protocol", RNIC_WC_LOCAL_ERR, &ev.term);
		return false;
	}
	return rx_started(qp);
}

/*
 * CRC and markers off: when the FPDU that is not complete is a large Write,
 * what is there of it is placed, and the rest will be read into place.
 */
static bool
rx_begin_place(struct siw_qp *qp)
{
	const uint8_t *buf = qp->rx_buf + qp->rx_off;
	size_t have = qp->rx_len - qp->rx_off;
	struct ddp_hdr h;
	uint8_t *at;

	if (qp->fpdu.crc || qp->fpdu.markers || have < MPA_LEN_LEN + DDP_TAGGED_LEN)
		return false;
	int len = fpdu_rx_peek(buf);

	have -= MPA_LEN_LEN;
	if (len < DDP_TAGGED_LEN || (size_t)len < have + SIW_PLACE_MIN ||
	    ddp_decode((struct span){ .ptr = buf + MPA_LEN_LEN, .len = have }, &h) != DDP_TAGGED_LEN ||
	    !stream_place_early(&qp->stream, &h, (size_t)len - DDP_TAGGED_LEN, &at))
		return false; /* the usual way finds what is wrong */
	have -= DDP_TAGGED_LEN;
	memcpy(at, buf + MPA_LEN_LEN + DDP_TAGGED_LEN, have);
	h.to += have;
	qp->rx_place = h;
	qp->rx_place_len = (size_t)len - DDP_TAGGED_LEN - have;
	qp->rx_place_tail = mpa_pad((size_t)len) + MPA_CRC_LEN;
	qp->rx_off = qp->rx_len = 0;
	return true;
}

/* Used bytes go, the rest moves to the beginning of the buffer. */
static void
rx_compact(struct siw_qp *qp)
{
	qp->rx_len -= qp->rx_off;
	if (qp->rx_off > 0 && qp->rx_len > 0)
		memmove(qp->rx_buf, qp->rx_buf + qp->rx_off, qp->rx_len);
	qp->rx_off = 0;
}

/* Decodes what is in the buffer. False: broken, or stalled. */
static bool
rx_decode(struct siw_qp *qp)
{
	struct span ulpdu;
	size_t need;

	while (qp->rx_off < qp->rx_len) {
		ssize_t used = fpdu_rx_next(&qp->fpdu, qp->rx_buf + qp->rx_off, qp->rx_len - qp->rx_off, &ulpdu, &need);

		if (used < 0) {
			bool crc = used == FPDU_BAD_CRC;
			struct rdmap_term term;

			qp->dev->stats.crc_errors += crc;
			stream_fail_llp(&qp->stream, (uint8_t)-used, &term);
			siw_qp_break(
			    qp, crc ? "CRC error" : "the peer's FPDU framing is broken", RNIC_WC_LOCAL_ERR, &term);
			return false;
		}
		if (used == 0 && rx_begin_place(qp))
			return true;
		if (used == 0)
			break;
		qp->rx_off += (size_t)used;
		qp->dev->stats.fpdus_received++;
		if (!rx_ulpdu(qp, ulpdu))
			return false;
	}
	rx_compact(qp);
	return true;
}

/* n bytes were read: into place first, then into the buffer. */
static void
rx_took(struct siw_qp *qp, size_t n)
{
	size_t placed = n < qp->rx_place_len ? n : qp->rx_place_len;

	qp->dev->stats.bytes_received += n;
	qp->rx_place.to += placed;
	qp->rx_place_len -= placed;
	qp->rx_len += n - placed;
	if (qp->rx_place_len > 0 || qp->rx_len < qp->rx_place_tail)
		return;
	if (qp->rx_place_tail > 0) {
		/* A Write is all there; what follows it is in the buffer. */
		qp->rx_off = qp->rx_place_tail;
		qp->rx_place_tail = 0;
		stream_placed(&qp->stream);
		qp->dev->stats.fpdus_received++;
		if (!rx_started(qp))
			return;
	}
	(void)rx_decode(qp);
}

/*
 * -- what a reset left unread --
 * Nothing of it may be placed: the peer may have moved on to another link, and written newer bytes there. But a
 * Terminate among it says why the peer reset the connection.
 */

/* Its words when it is a Terminate, or NULL. */
static const char *
terminate_str(struct span ulpdu)
{
	struct ddp_hdr h;
	struct rdmap_term t;
	int n = ddp_decode(ulpdu, &h);

	if (n <= 0 || h.tagged || h.qn != RDMAP_QN_TERM || rdmap_ctrl_op(h.ulp_ctrl) != RDMAP_TERMINATE)
		return NULL;
	if (rdmap_term_decode((struct span){ .ptr = ulpdu.ptr + n, .len = ulpdu.len - (size_t)n }, &t) < 0)
		return NULL;
	return rdmap_term_str(t.layer, t.etype, t.code);
}

static const char *
rest_terminate(struct siw_qp *qp)
{
	/* Of a Write that was read straight into place: its rest comes first. */
	size_t skip = qp->rx_place_len + qp->rx_place_tail;
	unsigned reads = 0;
	const char *why;

	if (qp->state != SIW_RTS && qp->state != SIW_RTR_WAIT)
		return NULL;
	for (;;) {
		size_t have = qp->rx_len - qp->rx_off, skipped = skip < have ? skip : have, need;
		struct span ulpdu;
		ssize_t n = 0;

		qp->rx_off += skipped;
		skip -= skipped;
		if (skip == 0)
			n = fpdu_rx_next(&qp->fpdu, qp->rx_buf + qp->rx_off, have - skipped, &ulpdu, &need);
		if (n < 0)
			return NULL; /* where FPDUs begin is no longer known */
		if (n > 0) {
			why = terminate_str(ulpdu);
			if (why != NULL)
				return why;
			qp->rx_off += (size_t)n;
			continue;
		}
		rx_compact(qp);
		n = recv(qp->fd, qp->rx_buf + qp->rx_len, SIW_RX_BUF - qp->rx_len, MSG_DONTWAIT);
		if (n <= 0 || ++reads >= REST_READS_MAX)
			return NULL;
		qp->rx_len += (size_t)n;
	}
}

void
siw_stream_lost(struct siw_qp *qp, int err)
{
	const char *why = err == 0 ? "the peer closed the connection"
	    : err == ECONNRESET    ? "the peer reset the connection"
	    : err == ETIMEDOUT     ? "the connection timed out"
	                           : "the connection is lost";
	const char *last = err != 0 ? rest_terminate(qp) : NULL;

	if (last != NULL) {
		qp->dev->stats.terminates_received++;
		siw_qp_break(qp, last, RNIC_WC_REMOTE_ERR, NULL);
		return;
	}
	qp->peer_fin = err == 0;
	siw_qp_break(qp, why, RNIC_WC_RETRY_EXC, NULL);
}

void
siw_rx_turn(struct siw_qp *qp)
{
	struct span held = qp->rx_held;
	uint8_t *at = NULL;

	if (qp->state != SIW_RTS && qp->state != SIW_RTR_WAIT)
		return;
	if (held.ptr != NULL) {
		if (stream_recv_cnt(&qp->stream) == 0)
			return;
		qp->rx_held.ptr = NULL;
		if (!rx_ulpdu(qp, held) || !rx_decode(qp))
			return;
	}
	/* Asked each time: the region may be gone meanwhile. */
	if (qp->rx_place_len > 0 && !stream_place_early(&qp->stream, &qp->rx_place, qp->rx_place_len, &at)) {
		struct rdmap_term term;

		stream_fail_place(&qp->stream, &qp->rx_place, qp->rx_place_len, &term);
		siw_qp_break(qp, "the peer broke the iWARP protocol", RNIC_WC_LOCAL_ERR, &term);
		return;
	}
	struct iovec iov[] = {
		{ .iov_base = at, .iov_len = qp->rx_place_len },
		{ .iov_base = qp->rx_buf + qp->rx_len, .iov_len = SIW_RX_BUF - qp->rx_len },
	};
	struct msghdr msg = { .msg_iov = at != NULL ? iov : iov + 1, .msg_iovlen = at != NULL ? 2 : 1 };
	ssize_t n = recvmsg(qp->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && errno == EINTR)
		siw_rx_schedule(qp);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		siw_stream_lost(qp, n == 0 ? 0 : errno);
		return;
	}
	/* All the space filled, or a FIN behind the data: no new edge will tell. */
	if ((size_t)n == iov[0].iov_len + iov[1].iov_len || qp->rx_hup)
		siw_rx_schedule(qp);
	rx_took(qp, (size_t)n);
}

void
siw_stream_io(void *arg, int fd, unsigned events)
{
	struct siw_qp *qp = arg;
	int err = 0;
	socklen_t len = sizeof(err);

	if (events & RNIC_IO_WRITE) {
		qp->tx_blocked = false;
		if (!qp->fence.out)
			timer_cancel(&qp->dev->timers, &qp->fence.answer_timer);
		siw_tx_schedule(qp);
	}
	if (events & RNIC_IO_HUP) {
		/* After a reset nothing is placed, not even what the kernel still holds: the peer
		 * may have moved on to another link meanwhile, and written newer bytes there. */
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
			siw_stream_lost(qp, err != 0 ? err : errno);
			return;
		}
		qp->rx_hup = true;
	}
	if (events & (RNIC_IO_READ | RNIC_IO_HUP)) {
		list_remove(&qp->rx_node);
		siw_rx_turn(qp);
	}
}
