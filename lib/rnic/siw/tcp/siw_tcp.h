/* MPA on TCP as LLP of a soft iWARP device (siw_llp.h; RFC 5044, RFC 6581). siw_tcp.c: table of operations, start and
 * end of a connection, sent FPDUs, data about the path; siw_tcp_cm.c: start-up; siw_tcp_rx.c: received FPDUs, loss of
 * the connection; siw_tcp_linger.c: sockets without QP that have data to send; siw_wire.c: the socket's bytes, in
 * clear or in TLS. */
#pragma once

#include <sys/types.h>

#include "base/pages.h"
#include "iwarp/fpdu.h"
#include "rnic/siw/siw_llp.h"

#define TCP_RX_BUF (256u * 1024) /* staging buffer; also holds an incomplete FPDU */

/* A connected socket. */
struct siw_wire {
	int fd;             /* -1: none */
	struct tls_io *tls; /* NULL: in clear */
};

struct siw_tcp {
	struct siw_wire wire;
	struct neg neg;
	/* receiving */
	struct fpdu_rx fpdu;
	uint8_t *rx_buf;
	struct list_node unplaced; /* struct rnic_unit, of Writes that stay in rx_buf */
	struct pages_use rx_used;
	size_t rx_off;           /* first byte not decoded */
	size_t rx_len;           /* bytes in the buffer */
	bool rx_hup;             /* the peer closed its side: read to the end */
	bool peer_fin;           /* end of file was read */
	struct span rx_held;     /* the Send that waits for a receive (qp->held) */
	struct ddp_hdr rx_place; /* rest of a Write that is read straight into place (CRC off) */
	size_t rx_place_len;     /* its missing bytes; 0 = none */
	size_t rx_place_tail;    /* padding and CRC after it, to be skipped */
	/* sending */
	struct txq txq;
	struct timer refill; /* checks whether the socket has room: siw_tcp.c */
	struct siw_qp *qp;
};

/* -- siw_tcp.c -- */

/* Starts the stream after negotiation. 0 or a negative errno. */
int siw_tcp_start(struct siw_qp *, const struct mpa_pdata *peer);
/* Sends from the queue: the bytes taken by the socket, 0 if interrupted, or a negative errno. */
ssize_t siw_tcp_send(struct siw_wire *, struct txq *);

/* -- siw_tcp_cm.c -- */

int siw_tcp_connect(struct siw_qp *);
int siw_tcp_listen(struct siw_dev *, const char **err);
void siw_tcp_pend_adopt(struct siw_pend *, struct siw_qp *);
void siw_tcp_pend_refuse(struct siw_pend *, enum mpa_verdict);
void siw_tcp_pend_drop(struct siw_pend *);

/* -- siw_tcp_rx.c -- */

void siw_tcp_stream_io(void *qp, unsigned events);
void siw_tcp_rx_turn(struct siw_qp *);
/* A socket error, 0 = end of file. */
void siw_tcp_lost(struct siw_qp *, int err);

/* -- siw_tcp_linger.c -- */

/* Takes the wire: sends len bytes (copied), then FIN, waits a bounded time for the peer's FIN and closes. The caller must
 * not watch the descriptor. */
void siw_tcp_linger_bytes(struct siw_dev *, struct siw_wire, const void *bytes, size_t len);
/* Likewise with all queued data of the QP and the segments of siw_tx_fill(). */
void siw_tcp_linger_qp(struct siw_qp *, struct siw_wire);

/* -- siw_wire.c -- */

/* > 0: bytes, of one or more records; 0: end of the stream, in TLS by close_notify; or a negative errno. *more: a further
 * call is due, as no edge will be reported. */
ssize_t siw_wire_recv(struct siw_wire *, struct iovec *, size_t cnt, bool *more);
/* > 0: bytes taken; -EAGAIN: repeat with the same bytes, maybe more, when writable; else a negative errno. flags: of
 * sendmsg, in clear. */
ssize_t siw_wire_send(struct siw_wire *, struct iovec *, size_t cnt, int flags);
/* Sends the end of the stream, in TLS after close_notify. False: repeat when writable, or *err is set. */
bool siw_wire_finish(struct siw_wire *, int *err);
void siw_wire_close(struct siw_wire *);
