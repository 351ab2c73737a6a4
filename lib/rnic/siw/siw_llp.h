/*
 * What is below DDP on a soft iWARP device: its lower layer protocol (LLP, RFC 5041). A device has one, a const
 * table; siw_tcp.h is MPA on TCP, siw_sctp.h is SCTP. Nothing else of the device knows which it is.
 *
 * A queue pair's LLP: qp_init; connect, or a peer that has come is handed over (pend_adopt); siw_stream_start() when negotiation is
 * through; from then on put and push send segments, siw_segment_in() takes those that arrive; finish once, whatever the
 * state; qp_fini.
 */
#pragma once

#include "iwarp/txq.h"
#include "rnic/mpa_pdata.h"
#include "rnic/siw/siw_int.h"

/* How sending what is queued went. */
enum siw_push {
	SIW_PUSH_SENT,    /* some of it: go on */
	SIW_PUSH_BLOCKED, /* none, for now: siw_tx_unblocked() will tell */
	SIW_PUSH_LOST,    /* the queue pair is broken */
};

struct siw_llp {
	/* A QP in this state that was given up for the time it took, in words. */
	const char *const *timeout_why;

	/* -- the device; its part of it is dev->llp_dev, which siw.c frees -- */

	/* Peers may come, to dev->port; dev->transport is known. 0, or a negative errno with *err a static text that names the setting at fault. */
	int (*listen)(struct siw_dev *, const char **err);
	/* Nobody comes any more; what has no queue pair ends. */
	void (*unlisten)(struct siw_dev *);
	/* A turn for what was left undone (dev->unfinished). */
	void (*go_on)(struct siw_dev *);

	/* -- peers that have come and have no queue pair yet: each of these ends the siw_pend -- */

	void (*pend_adopt)(struct siw_pend *, struct siw_qp *);
	void (*pend_refuse)(struct siw_pend *, enum mpa_verdict);
	void (*pend_drop)(struct siw_pend *);

	/* -- a queue pair; its part of it is qp->llp -- */

	/* 0 or -ENOMEM; qp_fini follows in either case. */
	int (*qp_init)(struct siw_qp *);
	void (*qp_fini)(struct siw_qp *);
	/* The active side: 0 or a negative errno, whose words connect_error has; what is left of it goes with finish. */
	int (*connect)(struct siw_qp *);
	const char *(*connect_error)(int err);
	/* Is there room for one more segment with this much payload? */
	bool (*room)(const struct siw_qp *, size_t payload_len);
	/* Queues one segment; room was asked. Payload that is not copied may not change until it is sent. */
	void (*put)(struct siw_qp *, const struct ddp_hdr *, const struct txq_payload *);
	/* Bytes of payload, at least, that wait in the queue. */
	size_t (*queued)(const struct siw_qp *);
	bool (*is_empty)(const struct siw_qp *);
	/* A turn of sending begins: qp->seg_max may have to follow the path. */
	void (*push_begin)(struct siw_qp *);
	/* Sends of what is queued, adding to *sent; with SIW_PUSH_SENT and nothing added: try again. */
	enum siw_push (*push)(struct siw_qp *, size_t *sent);
	/* The device's turn of sending is over: what was pushed goes. NULL: it has gone. */
	void (*flush)(struct siw_dev *);
	/* One bounded turn of receiving. */
	void (*rx_turn)(struct siw_qp *);
	/* Receives were posted: a Send may have waited for one. */
	void (*recv_posted)(struct siw_qp *);
	/* The connection ends; with a last word what is queued, and what siw_tx_fill() still gives, goes before. */
	void (*finish)(struct siw_qp *, bool last_word);
	/* As in struct rnic_ops. */
	int64_t (*path_rtt)(struct siw_qp *);
	/* Asked while there is a connection. */
	void (*conn_info)(struct siw_qp *, struct rnic_conn_info *);
	void (*rest)(struct siw_qp *);
};

extern const struct siw_llp siw_tcp_llp, siw_sctp_llp;
