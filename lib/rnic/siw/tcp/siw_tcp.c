/* Soft iWARP, MPA on TCP: table of operations, start and end of a connection, sent FPDUs, data about the path; see
 * siw_tcp.h. */
#include "rnic/siw/tcp/siw_tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* has fields that the C library's lacks; the two conflict */
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/minmax.h"

#define TX_RING (128u * 1024)
#define SEG_MIN 128
#define LOOKS 16 /* per round trip */
#define NS_PER_MS 1000000
#define NS_PER_US 1000
#define IOV_PER_WRITE 256

/* -- the path as measured by the kernel -- */

/* Old kernels return less; the missing fields stay 0. */
static bool
ask(int fd, struct tcp_info *info, socklen_t need)
{
	socklen_t len = sizeof(*info);

	*info = (struct tcp_info){ 0 };
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0 && len >= need;
}

static void
siw_tcp_learn_rtt(struct siw_qp *qp)
{
	struct tcp_info info;
	bool known = ask(qp->tcp->wire.fd, &info, offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt));

	qp->rtt_ns = known && info.tcpi_min_rtt != UINT32_MAX ? (int64_t)info.tcpi_min_rtt * NS_PER_US : -1;
}

static void
siw_tcp_conn_info(struct siw_qp *qp, struct rnic_conn_info *out)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	struct rnic_path *path = &out->paths[0];
	int fd = qp->tcp->wire.fd;
	struct tcp_info info;

	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
	    !ask(fd, &info, offsetof(struct tcp_info, tcpi_total_retrans) + sizeof(info.tcpi_total_retrans)))
		return;
	out->retransmits = info.tcpi_total_retrans;
	out->unacked = info.tcpi_unacked;
	out->path_cnt = 1;
	*path = (struct rnic_path){
		.state = info.tcpi_retransmits > 0 ? RNIC_PATH_SUSPECT : RNIC_PATH_ACTIVE,
		.primary = true,
		.rtt_us = info.tcpi_rtt,
		.rto_us = info.tcpi_rto,
		.mtu = info.tcpi_pmtu,
		.cwnd = (uint32_t)min_u64((uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss, UINT32_MAX),
	};
	addr_to_v6(&peer, path->to.b);
}

/* -- sending -- */

/* As near to max as possible. */
static void
siw_tcp_set_seg_max(struct siw_qp *qp, size_t max)
{
	qp->seg_max = min_size(max_size(max, SEG_MIN), txq_ulpdu_max(&qp->tcp->txq));
}

/* Hardware expects FPDUs within TCP segments: follows the path's segment size. */
static void
siw_tcp_follow_mss(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(t->wire.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0 || mss <= 0)
		mss = 536; /* RFC 9293 3.7.1 */
	siw_tcp_set_seg_max(qp, mpa_mulpdu((size_t)mss, t->neg.res.markers_tx));
}

static bool
siw_tcp_room(const struct siw_qp *qp, size_t payload_len)
{
	return txq_room(&qp->tcp->txq, payload_len);
}

static void
siw_tcp_put(struct siw_qp *qp, const struct ddp_hdr *h, const struct txq_payload *payload)
{
	txq_put(&qp->tcp->txq, h, payload);
}

static void
siw_tcp_push_begin(struct siw_qp *qp)
{
	if (qp->tcp->txq.apart)
		siw_tcp_follow_mss(qp);
}

static void
siw_tcp_refill(struct timer *timer)
{
	siw_tx_unblocked(CONTAINER_OF(timer, struct siw_tcp, refill)->qp);
}

/* The kernel reports a socket as writable when a third of its send buffer is free. A path that holds a full buffer
 * would then be used to two thirds. On a long path a timer checks as well. */
static void
look_again(struct siw_qp *qp)
{
	int64_t rtt_ns = siw_path_rtt(&qp->qp);

	if (rtt_ns >= RNIC_FAR_NS)
		siw_arm(qp->dev, &qp->tcp->refill, (uint32_t)max_u64((uint64_t)rtt_ns / LOOKS / NS_PER_MS, 1));
}

ssize_t
siw_tcp_send(struct siw_wire *w, struct txq *q)
{
	struct iovec iov[IOV_PER_WRITE];
	ssize_t n = siw_wire_send(w, iov, txq_gather(q, iov, IOV_PER_WRITE), q->apart ? MSG_EOR : 0);

	if (n < 0)
		return n == -EINTR ? 0 : n;
	txq_sent(q, (size_t)n);
	return n;
}

static enum siw_push
siw_tcp_push(struct siw_qp *qp, size_t *sent)
{
	struct siw_tcp *t = qp->tcp;

	if (txq_empty(&t->txq))
		return SIW_PUSH_OVER;
	ssize_t n = siw_tcp_send(&t->wire, &t->txq);
	if (n == -EAGAIN) {
		look_again(qp);
		return SIW_PUSH_BLOCKED;
	}
	if (n < 0) {
		siw_tcp_lost(qp, (int)-n);
		return SIW_PUSH_OVER;
	}
	*sent += (size_t)n;
	return SIW_PUSH_SENT;
}

/* -- start and end -- */

int
siw_tcp_start(struct siw_qp *qp, const struct mpa_pdata *peer)
{
	struct siw_tcp *t = qp->tcp;
	const struct neg_result *res = &t->neg.res;
	uint32_t own = qp->dev->cfg.fpdu_max;

	t->fpdu = (struct fpdu_rx){ .crc = res->crc, .markers = res->markers_rx };
	txq_start(&t->txq, res->crc, res->markers_tx);
	/* Software accepts FPDUs larger than a TCP segment, at any position; others get those of RFC 5044. */
	t->txq.apart = peer->ulpdu_max == 0;
	if (t->txq.apart || own == 0)
		siw_tcp_follow_mss(qp);
	else
		siw_tcp_set_seg_max(qp, min_u32(peer->ulpdu_max, own));
	t->rx_len = 0; /* no bytes follow the Reply in the buffer */
	siw_stream_start(qp, peer, res->depths.ord,
	    qp->state == SIW_RTR_WAIT && res->depths.p2p && (res->depths.rtr & RTR_SEND) != 0);
	return qp->dev->loop.watch(qp->dev->loop.ctx, t->wire.fd, siw_tcp_stream_io, qp);
}

static int
qp_init(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->wire.fd = -1;
	t->qp = qp;
	qp->queued = &t->txq.bytes;
	timer_init(&t->refill, siw_tcp_refill);
	list_init(&t->unplaced);
	/* Large buffers are separate pages: populated on use, and freed independently. */
	t->rx_buf = pages_alloc(TCP_RX_BUF);
	return t->rx_buf == NULL || txq_init(&t->txq, TX_RING) < 0 ? -ENOMEM : 0;
}

static void
qp_fini(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;

	if (t == NULL)
		return;
	txq_fini(&t->txq);
	rnic_unit_place_all(&t->unplaced);
	pages_free(t->rx_buf, TCP_RX_BUF);
	free(t);
}

static void
rest(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;

	txq_rest(&t->txq);
	rnic_unit_place_all(&t->unplaced);
	if (t->rx_len == t->rx_off && !qp->held)
		pages_rest(&t->rx_used, t->rx_buf);
}

/* The peer ended the stream and has received all our data: answer its FIN with a FIN. */
static bool
siw_tcp_is_orderly(const struct siw_tcp *t, int fd)
{
	int unsent;

	return t->peer_fin && txq_empty(&t->txq) && ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent == 0;
}

static void
siw_tcp_finish(struct siw_qp *qp, bool last_word)
{
	struct siw_tcp *t = qp->tcp;
	struct siw_wire w = t->wire;
	int err;

	t->wire = (struct siw_wire){ .fd = -1 };
	timer_cancel(&qp->dev->timers, &t->refill);
	if (w.fd < 0)
		return;
	qp->dev->loop.unwatch(qp->dev->loop.ctx, w.fd);
	if (last_word) {
		siw_tcp_linger_qp(qp, w);
	} else if (siw_tcp_is_orderly(t, w.fd)) {
		(void)siw_wire_finish(&w, &err);
		siw_wire_close(&w);
	} else {
		tls_io_free(w.tls);
		siw_close_reset(w.fd); /* data in flight must not be placed, and the peer must not wait */
	}
}

static const char *const timeout_why[SIW_CLOSED + 1] = {
	[SIW_EXPECTING] = "the peer did not open its MPA connection in time",
	[SIW_CONNECTING] = "the peer's MPA port does not answer",
	[SIW_REQUESTED] = "the peer did not answer the MPA Request in time",
	[SIW_RTR_WAIT] = "the peer's first message did not arrive in time",
	[SIW_RTS] = "timed out",
};

const struct siw_llp siw_tcp_llp = {
	.stream = STREAM_MPA,
	.timeout_why = timeout_why,
	.listen = siw_tcp_listen,
	.unlisten = siw_accept_close,
	.pend_adopt = siw_tcp_pend_adopt,
	.pend_refuse = siw_tcp_pend_refuse,
	.pend_drop = siw_tcp_pend_drop,
	.qp_init = qp_init,
	.qp_fini = qp_fini,
	.connect = siw_tcp_connect,
	.connect_error = mpa_connect_error,
	.room = siw_tcp_room,
	.put = siw_tcp_put,
	.push_begin = siw_tcp_push_begin,
	.push = siw_tcp_push,
	.rx_turn = siw_tcp_rx_turn,
	.finish = siw_tcp_finish,
	.learn_rtt = siw_tcp_learn_rtt,
	.conn_info = siw_tcp_conn_info,
	.rest = rest,
};
