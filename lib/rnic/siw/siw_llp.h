/* The lower layer protocol (LLP, RFC 5041) of a soft iWARP device. A device has one, a const table: siw_tcp.h is MPA on
 * TCP, siw_sctp.h is SCTP. Other code of the device does not depend on it.
 * Life of a queue pair's LLP: qp_init; connect, or pend_adopt of an accepted peer; siw_stream_start() after
 * negotiation; then put and push send segments, siw_segment_in() receives them; finish once, in any state; qp_fini. */
#pragma once

#include "iwarp/txq.h"
#include "rnic/mpa_pdata.h"
#include "rnic/siw/siw_int.h"

enum siw_push {
	SIW_PUSH_SENT,    /* in part: go on */
	SIW_PUSH_BLOCKED, /* blocked until siw_tx_unblocked() */
	SIW_PUSH_OVER,    /* nothing is queued, or the queue pair is broken */
};

struct siw_llp {
	enum stream_llp stream;
	/* Text of a timeout in each state. */
	const char *const *timeout_why;

	/* -- the device; dev->sctp is freed by siw.c -- */

	/* Accepts peers on dev->port; sets dev->transport, go_on and flush. 0, or a negative errno with *err a static
	 * text that names the faulty setting. */
	int (*listen)(struct siw_dev *, const char **err);
	/* Stops accepting. Peers without queue pair and lingering connections have ended. */
	void (*unlisten)(struct siw_dev *);

	/* -- peers without queue pair: each call ends the siw_pend -- */

	void (*pend_adopt)(struct siw_pend *, struct siw_qp *);
	void (*pend_refuse)(struct siw_pend *, enum mpa_verdict);
	void (*pend_drop)(struct siw_pend *);

	/* -- a queue pair; the LLP's part is qp->tcp or qp->sctp -- */

	/* Sets qp->queued. 0 or -ENOMEM; qp_fini must follow in either case. */
	int (*qp_init)(struct siw_qp *);
	void (*qp_fini)(struct siw_qp *);
	/* The active side: 0 or a negative errno with text from connect_error; finish must follow. */
	int (*connect)(struct siw_qp *);
	const char *(*connect_error)(int err);
	/* One more segment with this much payload fits. */
	bool (*room)(const struct siw_qp *, size_t payload_len);
	/* Queues one segment; room must be true. Payload above TXQ_COPY_MAX is not copied: unchanged until sent. */
	void (*put)(struct siw_qp *, const struct ddp_hdr *, const struct txq_payload *);
	/* Begins a turn of sending: qp->seg_max may follow the path. */
	void (*push_begin)(struct siw_qp *);
	/* Sends from the queue and adds to *sent. SIW_PUSH_SENT with nothing added: retry. */
	enum siw_push (*push)(struct siw_qp *, size_t *sent);
	/* One bounded turn of receiving; first repeats a held Send (qp->held). */
	void (*rx_turn)(struct siw_qp *);
	/* Ends the connection. With a last word, first sends the queue and the segments of siw_tx_fill(). */
	void (*finish)(struct siw_qp *, bool last_word);
	/* Updates qp->rtt_ns. */
	void (*learn_rtt)(struct siw_qp *);
	/* As in struct rnic_ops. Called while connected. */
	void (*conn_info)(struct siw_qp *, struct rnic_conn_info *);
	void (*rest)(struct siw_qp *);
};

extern const struct siw_llp siw_tcp_llp, siw_sctp_llp;
