/*
 * What the two files of iWARP's connections share: verbs_iwarp.c, the device's
 * part, the active side and the life of a connection; verbs_iwarp_passive.c,
 * requests of peers.
 */
#pragma once

#include <rdma/rdma_cma.h>

#include "rnic/mpa_pdata.h"
#include "rnic/verbs/verbs_int.h"

/* Of a device. */
struct verbs_iwarp {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listen;
	struct sockaddr_storage addr; /* ours; port 0 */
	struct list_node conns;       /* verbs_conn with a QP */
	struct list_node parked;      /* without, oldest first */
	unsigned parked_cnt;
};

/* A connection, from its id's birth on. Its QP frees it, or its last event when that was the QP's wish. */
struct verbs_conn {
	struct list_node node;
	struct verbs_dev *dev;
	struct verbs_qp *qp; /* NULL: parked */
	struct rdma_cm_id *id;
	struct mpa_pdata pdata; /* passive: the peer's */
	uint8_t ord;            /* passive: Reads that the peer takes at once; 0: not named */
	struct timer timer;     /* parked */
	struct verbs_job job;
	bool calling; /* its thread is at it */
	bool asked;   /* the kernel owes the outcome: until then everything that ends the id or the QP would wait */
	bool up;
};

/* NULL: no memory; the id is not ours then. */
struct verbs_conn *verbs_conn_new(struct verbs_dev *, struct rdma_cm_id *);
void verbs_conn_free(struct verbs_conn *);
/* Is the id bound to the device's port? */
bool verbs_id_is_ours(const struct verbs_dev *, const struct rdma_cm_id *);
/* Our private data, with our QP as the sender. */
void verbs_conn_pdata(const struct verbs_qp *, const struct mpa_pdata *to, uint8_t out[MPA_PDATA_LEN]);
/* CONNECTED once the connection is up and the user asked for it. */
void verbs_conn_check_connected(struct verbs_qp *);
/* Time for the peer. */
void verbs_conn_arm(struct verbs_qp *);

/* -- verbs_iwarp_passive.c -- */

/* On the first free port of the range, at an address of the card. */
int verbs_iwarp_listen(struct verbs_dev *, const char **why);
/* A peer asks: takes over the event's id. */
void verbs_iwarp_request(struct verbs_dev *, const struct rdma_cm_event *);
/* The QP expects its peer from now on, who may have come already. */
int verbs_iwarp_expect(struct verbs_qp *);
