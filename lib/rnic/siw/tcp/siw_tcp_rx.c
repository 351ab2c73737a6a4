/* Soft iWARP, MPA on TCP: received FPDUs; see siw_tcp.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "rnic/siw/tcp/siw_tcp.h"

#define PLACE_MIN 2048u   /* minimum rest of a Write to read straight into place */
#define REST_READS_MAX 32 /* bound for a peer that keeps sending; a socket's own buffer is smaller */

/* False: stop decoding. */
static bool
rx_ulpdu(struct siw_qp *qp, struct span ulpdu)
{
	qp->dev->rx_buffer = &qp->tcp->unplaced;
	enum siw_seg how = siw_segment_in(qp, ulpdu);

	qp->held = how == SIW_SEG_HELD;
	if (qp->held)
		qp->tcp->rx_held = ulpdu;
	return how == SIW_SEG_TAKEN;
}

/* CRC and markers off: if the incomplete FPDU is a large Write, places its present bytes; the rest is read into
 * place. */
static void
rx_begin_place(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	const uint8_t *buf = t->rx_buf + t->rx_off;
	size_t have = t->rx_len - t->rx_off;
	struct ddp_hdr h;
	uint8_t *at;

	if (t->fpdu.crc || t->fpdu.markers || have < MPA_LEN_LEN + DDP_TAGGED_LEN)
		return;
	int len = fpdu_rx_peek(buf);

	have -= MPA_LEN_LEN;
	if (len < DDP_TAGGED_LEN || (size_t)len < have + PLACE_MIN ||
	    ddp_decode((struct span){ .ptr = buf + MPA_LEN_LEN, .len = have }, &h) != DDP_TAGGED_LEN ||
	    !stream_place_early(&qp->stream, &h, (size_t)len - DDP_TAGGED_LEN, &at))
		return; /* the regular path finds the error */
	have -= DDP_TAGGED_LEN;
	memcpy(at, buf + MPA_LEN_LEN + DDP_TAGGED_LEN, have);
	h.to += have;
	t->rx_place = h;
	t->rx_place_len = (size_t)len - DDP_TAGGED_LEN - have;
	t->rx_place_tail = mpa_pad((size_t)len) + MPA_CRC_LEN;
	t->rx_off = t->rx_len = 0;
}

/* Before the buffer is read into: places what stays in it, drops used bytes, moves the rest to its start. */
static void
rx_compact(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;

	rnic_unit_place_all(&t->unplaced);
	t->rx_len -= t->rx_off;
	if (t->rx_off > 0 && t->rx_len > 0)
		memmove(t->rx_buf, t->rx_buf + t->rx_off, t->rx_len);
	t->rx_off = 0;
}

/* Decodes the buffer. False: broken, or stalled. */
static bool
rx_decode(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	struct span ulpdu;
	size_t need;
	ssize_t used;

	while (t->rx_off < t->rx_len &&
	    (used = fpdu_rx_next(&t->fpdu, t->rx_buf + t->rx_off, t->rx_len - t->rx_off, &ulpdu, &need)) != 0) {
		if (used < 0) {
			bool crc = used == FPDU_BAD_CRC;
			struct rdmap_term term;

			qp->dev->stats.crc_errors += crc;
			stream_fail_llp(&qp->stream, crc ? MPA_BAD_CRC : MPA_BAD_LENGTH, &term);
			siw_qp_break(
			    qp, crc ? "CRC error" : "invalid FPDU framing by the peer", RNIC_WC_LOCAL_ERR, &term);
			return false;
		}
		t->rx_off += (size_t)used;
		qp->dev->stats.fpdus_received++;
		if (!rx_ulpdu(qp, ulpdu))
			return false;
	}
	rx_begin_place(qp);
	return true;
}

/* n bytes were read: first into place, then into the buffer. */
static void
rx_took(struct siw_qp *qp, size_t n)
{
	struct siw_tcp *t = qp->tcp;
	size_t placed = n < t->rx_place_len ? n : t->rx_place_len;

	qp->dev->stats.bytes_received += n;
	t->rx_place.to += placed;
	t->rx_place_len -= placed;
	t->rx_len += n - placed;
	pages_touch(&t->rx_used, t->rx_len);
	if (t->rx_place_len > 0 || t->rx_len < t->rx_place_tail)
		return;
	if (t->rx_place_tail > 0) {
		/* The Write is complete; the bytes after it are in the buffer. */
		t->rx_off = t->rx_place_tail;
		t->rx_place_tail = 0;
		qp->stream.started = true;
		qp->dev->stats.fpdus_received++;
		if (!siw_rx_started(qp))
			return;
	}
	(void)rx_decode(qp);
}

/* The text if this is a Terminate, or NULL. */
static const char *
terminate_str(struct span segment)
{
	struct ddp_hdr h;
	struct rdmap_term t;
	int n = ddp_decode(segment, &h);

	if (n <= 0 || h.tagged || h.qn != RDMAP_QN_TERM || rdmap_ctrl_op(h.ulp_ctrl) != RDMAP_TERMINATE ||
	    rdmap_term_decode((struct span){ .ptr = segment.ptr + n, .len = segment.len - (size_t)n }, &t) < 0)
		return NULL;
	return rdmap_term_str(t.layer, t.etype, t.code);
}

/* After a reset, unread data is not placed: the peer may have moved to another link and written newer data there. A
 * Terminate in it gives the reason: its text, or NULL. */
static const char *
unread_terminate(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	/* Of a Write that is read straight into place: its rest comes first. */
	size_t skip = t->rx_place_len + t->rx_place_tail;
	unsigned reads = 0;
	const char *why;
	bool more;

	if (qp->state != SIW_RTS && qp->state != SIW_RTR_WAIT)
		return NULL;
	for (;;) {
		size_t have = t->rx_len - t->rx_off, skipped = skip < have ? skip : have, need;
		struct span ulpdu;
		ssize_t n = 0;

		t->rx_off += skipped;
		skip -= skipped;
		if (skip == 0)
			n = fpdu_rx_next(&t->fpdu, t->rx_buf + t->rx_off, have - skipped, &ulpdu, &need);
		if (n < 0)
			return NULL; /* the FPDU boundary is unknown */
		if (n > 0) {
			why = terminate_str(ulpdu);
			if (why != NULL)
				return why;
			t->rx_off += (size_t)n;
			continue;
		}
		rx_compact(qp);
		struct iovec rest = { .iov_base = t->rx_buf + t->rx_len, .iov_len = TCP_RX_BUF - t->rx_len };
		n = siw_wire_recv(&t->wire, &rest, 1, &more);
		if (n <= 0 || ++reads >= REST_READS_MAX)
			return NULL;
		t->rx_len += (size_t)n;
	}
}

void
siw_tcp_lost(struct siw_qp *qp, int err)
{
	const char *why = err == 0 ? "the peer closed the connection"
	    : err == ECONNRESET    ? "the peer reset the connection"
	    : err == ETIMEDOUT     ? "the connection timed out"
	    : err == ENODATA       ? "the link's TLS stream ended without close_notify"
	    : err == EPROTO        ? "the link's TLS stream is broken: a changed byte, or a violation by the peer"
	                           : "the connection is lost";
	const char *last_words = err != 0 ? unread_terminate(qp) : NULL;

	qp->tcp->peer_fin = err == 0;
	if (last_words == NULL) {
		siw_qp_break(qp, why, RNIC_WC_RETRY_EXC, NULL);
		return;
	}
	qp->dev->stats.terminates_received++;
	siw_qp_break(qp, last_words, RNIC_WC_REMOTE_ERR, NULL);
}

void
siw_tcp_rx_turn(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	uint8_t *at = NULL;
	bool more;

	if (qp->state != SIW_RTS && qp->state != SIW_RTR_WAIT)
		return;
	if (qp->held && (stream_recv_cnt(&qp->stream) == 0 || !rx_ulpdu(qp, t->rx_held) || !rx_decode(qp)))
		return;
	/* Checked each time: the region may have been deregistered. */
	if (t->rx_place_len > 0 && !stream_place_rest(&qp->stream, &t->rx_place, t->rx_place_len, &at)) {
		struct rdmap_term term;

		stream_fail_place(&qp->stream, &t->rx_place, t->rx_place_len, &term);
		siw_qp_break(qp, "iWARP protocol violation by the peer", RNIC_WC_LOCAL_ERR, &term);
		return;
	}
	rx_compact(qp);
	struct iovec iov[] = {
		{ .iov_base = at, .iov_len = t->rx_place_len },
		{ .iov_base = t->rx_buf + t->rx_len, .iov_len = TCP_RX_BUF - t->rx_len },
	};
	ssize_t n = siw_wire_recv(&t->wire, at != NULL ? iov : iov + 1, at != NULL ? 2 : 1, &more);

	if (n == -EINTR)
		siw_rx_schedule(qp);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		siw_tcp_lost(qp, (int)-n);
		return;
	}
	/* All space filled, or a FIN after the data: no further edge will be reported. */
	if (more || t->rx_hup)
		siw_rx_schedule(qp);
	rx_took(qp, (size_t)n);
}

void
siw_tcp_stream_io(void *arg, unsigned events)
{
	struct siw_qp *qp = arg;
	int err = 0;
	socklen_t len = sizeof(err);

	if (events & RNIC_IO_WRITE)
		siw_tx_unblocked(qp);
	if (events & RNIC_IO_HUP) {
		/* After a reset nothing is placed, including data that the kernel holds. The peer may have moved to
		 * another link and written newer data there. */
		if (getsockopt(qp->tcp->wire.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
			siw_tcp_lost(qp, err != 0 ? err : errno);
			return;
		}
		qp->tcp->rx_hup = true;
	}
	if (events & (RNIC_IO_READ | RNIC_IO_HUP)) {
		list_remove(&qp->rx_node);
		siw_tcp_rx_turn(qp);
	}
}
