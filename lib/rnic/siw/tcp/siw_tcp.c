/* Soft iWARP, MPA on TCP: table of operations, start and end of a connection; see siw_tcp.h. */
#include "rnic/siw/tcp/siw_tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOTSENT_LOWAT (128 * 1024)
#define TX_RING (128u * 1024)

void
siw_tcp_tune(int fd)
{
	const int on = 1, lowat = NOTSENT_LOWAT;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

int
siw_tcp_frame(struct mpa_frame f, const struct mpa_pdata *d, uint8_t out[MPA_FRAME_MAX])
{
	uint8_t pd[MPA_PDATA_LEN];

	mpa_pdata_encode(d, pd);
	f.pd = (struct span){ .ptr = pd, .len = sizeof(pd) };
	return mpa_frame_encode(&f, out, MPA_FRAME_MAX);
}

bool
siw_tcp_send_frame(struct siw_qp *qp, const struct rnic_remote *to, const struct mpa_frame *f)
{
	const struct mpa_pdata own = siw_own_pdata(qp, to);
	uint8_t out[MPA_FRAME_MAX];
	int len = siw_tcp_frame(*f, &own, out);

	return len > 0 && send(siw_tcp(qp)->fd, out, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len;
}

int
siw_tcp_start(struct siw_qp *qp, const struct mpa_pdata *peer)
{
	struct siw_tcp *t = siw_tcp(qp);
	const struct neg_result *res = &t->neg.res;
	uint32_t own = qp->dev->cfg.fpdu_max;

	t->fpdu = (struct fpdu_rx){ .crc = res->crc, .markers = res->markers_rx };
	txq_start(&t->txq, res->crc, res->markers_tx);
	/* Software accepts FPDUs larger than a TCP segment, at any position; others get those of RFC 5044. */
	t->txq.apart = peer->ulpdu_max == 0;
	if (t->txq.apart || own == 0)
		siw_tcp_follow_mss(qp);
	else
		siw_tcp_set_seg_max(qp, peer->ulpdu_max < own ? peer->ulpdu_max : own);
	t->rx_len = 0; /* no bytes follow the Reply in the buffer */
	siw_stream_start(qp, peer, res->depths.ord,
	    qp->state == SIW_RTR_WAIT && res->depths.p2p && (res->depths.rtr & RTR_SEND) != 0);
	return qp->dev->loop.watch(qp->dev->loop.ctx, t->fd, siw_tcp_stream_io, qp);
}

void
siw_tcp_lost(struct siw_qp *qp, int err)
{
	const char *why = err == 0 ? "the peer closed the connection"
	    : err == ECONNRESET    ? "the peer reset the connection"
	    : err == ETIMEDOUT     ? "the connection timed out"
	                           : "the connection is lost";
	const char *last = err != 0 ? siw_tcp_send_terminate(qp) : NULL;

	if (last == NULL)
		siw_tcp(qp)->peer_fin = err == 0;
	siw_stream_lost(qp, why, last);
}

static int
qp_init(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->llp = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->fd = -1;
	t->qp = qp;
	timer_init(&t->refill, siw_tcp_refill);
	/* Large buffers are separate pages: populated on use, and freed independently. */
	t->rx_buf = pages_alloc(TCP_RX_BUF);
	return t->rx_buf == NULL || txq_init(&t->txq, TX_RING) < 0 ? -ENOMEM : 0;
}

static void
qp_fini(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);

	if (t == NULL)
		return;
	txq_fini(&t->txq);
	pages_free(t->rx_buf, TCP_RX_BUF);
	free(t);
}

static void
recv_posted(struct siw_qp *qp)
{
	if (siw_tcp(qp)->rx_held.ptr != NULL)
		siw_rx_schedule(qp);
}

static void
rest(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);

	txq_rest(&t->txq);
	if (t->rx_len == 0)
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
	const struct linger now = { .l_onoff = 1 };
	struct siw_tcp *t = siw_tcp(qp);
	int fd = t->fd;

	t->fd = -1;
	timer_cancel(&qp->dev->timers, &t->refill);
	if (fd < 0)
		return;
	qp->dev->loop.unwatch(qp->dev->loop.ctx, fd);
	if (last_word) {
		siw_tcp_linger_qp(qp, fd);
		return;
	}
	/* Reset: data in flight must not be placed, and the peer must not wait. */
	if (!siw_tcp_is_orderly(t, fd))
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static const char *const timeout_why[SIW_CLOSED + 1] = {
	[SIW_EXPECTING] = "the peer did not open its MPA connection in time",
	[SIW_CONNECTING] = "the peer's MPA port does not answer",
	[SIW_REQUESTED] = "the peer did not answer the MPA Request in time",
	[SIW_RTR_WAIT] = "the peer's first message did not arrive in time",
	[SIW_RTS] = "timed out",
};

const struct siw_llp siw_tcp_llp = {
	.timeout_why = timeout_why,
	.listen = siw_tcp_listen,
	.unlisten = siw_tcp_unlisten,
	.go_on = siw_tcp_accept,
	.pend_adopt = siw_tcp_pend_adopt,
	.pend_refuse = siw_tcp_pend_refuse,
	.pend_drop = siw_tcp_pend_drop,
	.qp_init = qp_init,
	.qp_fini = qp_fini,
	.connect = siw_tcp_connect,
	.connect_error = mpa_connect_error,
	.room = siw_tcp_room,
	.put = siw_tcp_put,
	.queued = siw_tcp_queued,
	.is_empty = siw_tcp_is_empty,
	.push_begin = siw_tcp_push_begin,
	.push = siw_tcp_push,
	.rx_turn = siw_tcp_rx_turn,
	.recv_posted = recv_posted,
	.finish = siw_tcp_finish,
	.path_rtt = siw_tcp_path_rtt,
	.conn_info = siw_tcp_conn_info,
	.rest = rest,
};
