/* MPA on TCP as LLP of a soft iWARP device (siw_llp.h; RFC 5044, RFC 6581). siw_tcp.c: table of operations, start and
 * end of a connection, sent FPDUs, data about the path; siw_tcp_cm.c: start-up; siw_tcp_rx.c: received FPDUs, loss of
 * the connection; siw_tcp_linger.c: sockets without QP that have data to send. */
#pragma once

#include <sys/types.h>

#include "base/pages.h"
#include "iwarp/fpdu.h"
#include "rnic/siw/siw_llp.h"

#define TCP_RX_BUF (256u * 1024) /* staging buffer; also holds an incomplete FPDU */

struct siw_tcp {
	int fd; /* -1: none */
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
ssize_t siw_tcp_send(int fd, struct txq *);

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

/* Takes fd: sends len bytes (copied), then FIN, waits a bounded time for the peer's FIN and closes. The caller must not
 * watch the descriptor. */
void siw_tcp_linger_bytes(struct siw_dev *, int fd, const void *bytes, size_t len);
/* Likewise with all queued data of the QP and the segments of siw_tx_fill(). */
void siw_tcp_linger_qp(struct siw_qp *, int fd);
