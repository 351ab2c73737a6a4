/* Soft iWARP, MPA on TCP: sent FPDUs; see siw_tcp.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/minmax.h"
#include "rnic/siw/tcp/siw_tcp.h"

#define SEG_MIN 128
#define LOOKS 16 /* per round trip */
#define NS_PER_MS 1000000

void
siw_tcp_set_seg_max(struct siw_qp *qp, size_t max)
{
	size_t most = txq_ulpdu_max(&siw_tcp(qp)->txq);

	qp->seg_max = max < SEG_MIN ? SEG_MIN : max > most ? most : max;
}

void
siw_tcp_follow_mss(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);
	int mss = 0;
	socklen_t len = sizeof(mss);

	if (getsockopt(t->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0 || mss <= 0)
		mss = 536; /* RFC 9293 3.7.1 */
	siw_tcp_set_seg_max(qp, mpa_mulpdu((size_t)mss, t->neg.res.markers_tx));
}

bool
siw_tcp_room(const struct siw_qp *qp, size_t payload_len)
{
	return txq_room(&siw_tcp(qp)->txq, payload_len);
}

void
siw_tcp_put(struct siw_qp *qp, const struct ddp_hdr *h, const struct txq_payload *payload)
{
	txq_put(&siw_tcp(qp)->txq, h, payload);
}

size_t
siw_tcp_queued(const struct siw_qp *qp)
{
	return siw_tcp(qp)->txq.bytes;
}

bool
siw_tcp_is_empty(const struct siw_qp *qp)
{
	return txq_empty(&siw_tcp(qp)->txq);
}

void
siw_tcp_push_begin(struct siw_qp *qp)
{
	if (siw_tcp(qp)->txq.apart)
		siw_tcp_follow_mss(qp);
}

void
siw_tcp_refill(struct timer *timer)
{
	siw_tx_unblocked(CONTAINER_OF(timer, struct siw_tcp, refill)->qp);
}

/* The kernel reports a socket as writable when a third of its send buffer is free. A path that holds a full buffer
 * would then be used to two thirds. On a long path a timer checks as well. */
static void
look_again(struct siw_qp *qp)
{
	int64_t rtt_ns = siw_tcp_path_rtt(qp);

	if (rtt_ns >= RNIC_FAR_NS)
		siw_arm(qp->dev, &siw_tcp(qp)->refill, (uint32_t)max_u64((uint64_t)rtt_ns / LOOKS / NS_PER_MS, 1));
}

enum siw_push
siw_tcp_push(struct siw_qp *qp, size_t *sent)
{
	struct siw_tcp *t = siw_tcp(qp);
	struct iovec iov[TCP_IOV];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = txq_gather(&t->txq, iov, TCP_IOV) };
	ssize_t n = sendmsg(t->fd, &msg, siw_tcp_send_flags(&t->txq));

	if (n < 0 && errno == EINTR)
		return SIW_PUSH_SENT;
	if (n < 0 && errno == EAGAIN) {
		look_again(qp);
		return SIW_PUSH_BLOCKED;
	}
	if (n < 0) {
		siw_tcp_lost(qp, errno);
		return SIW_PUSH_LOST;
	}
	txq_sent(&t->txq, (size_t)n);
	*sent += (size_t)n;
	return SIW_PUSH_SENT;
}
