/* Soft iWARP, MPA on TCP: sockets without QP that have data to send: a Terminate, a rejecting Reply or the rest of a
 * graceful end. Closing them at once could reset the connection before the peer reads it. siw_linger.c bounds number
 * and time. */
#include "rnic/siw/tcp/siw_tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES_MAX (1024u * 1024) /* buffered while the socket is blocked */

struct tcp_linger {
	struct siw_linger linger;
	struct siw_wire wire;
	uint8_t *buf; /* unsent */
	size_t len;
	size_t off;
	bool fin; /* FIN sent */
};

static void
linger_free(struct siw_linger *linger)
{
	struct tcp_linger *l = CONTAINER_OF(linger, struct tcp_linger, linger);
	struct siw_dev *dev = linger->dev;

	siw_linger_stop(linger);
	timerq_unreserve(&dev->timers, 1);
	dev->loop.unwatch(dev->loop.ctx, l->wire.fd);
	siw_wire_close(&l->wire);
	free(l->buf);
	free(l);
}

/* Sends the rest, then FIN; reads and drops input, in TLS its records. False: the socket is broken, or the peer has closed
 * as well. */
static bool
linger_goes_on(struct tcp_linger *l)
{
	uint8_t waste[16384];
	int err = 0;

	while (l->off < l->len) {
		struct iovec rest = { .iov_base = l->buf + l->off, .iov_len = l->len - l->off };
		ssize_t n = siw_wire_send(&l->wire, &rest, 1, 0);

		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return false;
		if (n < 0)
			break;
		l->off += (size_t)n;
	}
	if (l->off == l->len && !l->fin) {
		l->fin = siw_wire_finish(&l->wire, &err);
		if (err != 0)
			return false;
	}
	for (unsigned i = 0; i < 64; i++) {
		ssize_t n = recv(l->wire.fd, waste, sizeof(waste), MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return !l->fin;
	}
	return false; /* a peer that sends this much does not read */
}

static void
linger_io(void *arg, unsigned events)
{
	struct tcp_linger *l = arg;

	(void)events;
	if (!linger_goes_on(l))
		linger_free(&l->linger);
}

/* NULL: out of memory; the caller keeps the wire. */
static struct tcp_linger *
linger_new(struct siw_dev *dev, struct siw_wire wire)
{
	struct tcp_linger *l = calloc(1, sizeof(*l));

	if (l == NULL || timerq_reserve(&dev->timers, 1) < 0) {
		dev->stats.no_memory++;
		free(l);
		return NULL;
	}
	l->wire = wire;
	siw_linger_init(&l->linger, dev, linger_free);
	return l;
}

static bool
linger_append(struct tcp_linger *l, const void *bytes, size_t len)
{
	if (l->len + len > BYTES_MAX) {
		l->linger.dev->stats.linger_refused++;
		return false;
	}
	uint8_t *buf = realloc(l->buf, l->len + len);
	if (buf == NULL) {
		l->linger.dev->stats.no_memory++;
		return false;
	}
	memcpy(buf + l->len, bytes, len);
	l->buf = buf;
	l->len += len;
	return true;
}

static void
linger_start(struct tcp_linger *l, enum siw_linger_kind kind)
{
	struct siw_dev *dev = l->linger.dev;

	siw_linger_start(&l->linger, kind);
	if (dev->loop.watch(dev->loop.ctx, l->wire.fd, linger_io, l) < 0)
		linger_free(&l->linger);
	else
		linger_io(l, 0);
}

void
siw_tcp_linger_bytes(struct siw_dev *dev, struct siw_wire wire, const void *bytes, size_t len)
{
	struct tcp_linger *l = linger_new(dev, wire);
	struct iovec all = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };

	if (l == NULL) {
		(void)siw_wire_send(&wire, &all, 1, 0);
		siw_wire_close(&wire);
	} else if (!linger_append(l, bytes, len)) {
		linger_free(&l->linger);
	} else {
		linger_start(l, SIW_LINGER_UNKNOWN_PEER);
	}
}

void
siw_tcp_linger_qp(struct siw_qp *qp, struct siw_wire wire)
{
	struct tcp_linger *l = linger_new(qp->dev, wire);
	struct txq *q = &qp->tcp->txq;
	struct iovec next;

	if (l == NULL) {
		siw_wire_close(&wire);
		return;
	}
	for (siw_tx_fill(qp); !txq_empty(q); siw_tx_fill(qp)) {
		/* Writes to the socket until it blocks, then buffers the rest. */
		ssize_t n = l->len == 0 ? siw_tcp_send(&l->wire, q) : -EAGAIN;

		if (n >= 0)
			continue;
		(void)txq_gather(q, &next, 1);
		if (n != -EAGAIN || !linger_append(l, next.iov_base, next.iov_len)) {
			linger_free(&l->linger);
			return;
		}
		txq_sent(q, next.iov_len);
	}
	linger_start(l, SIW_LINGER_QP);
}
