/* Internals of iWARP connections. verbs_iwarp.c: device, active side, life of a connection; verbs_iwarp_passive.c:
 * requests of peers. */
#pragma once

#include <rdma/rdma_cma.h>

#include "rnic/mpa_pdata.h"
#include "rnic/verbs/verbs_int.h"

struct verbs_iwarp {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listen;
	struct sockaddr_storage addr; /* ours; port 0 */
	struct list_node parked;      /* verbs_conn without QP, oldest first */
};

/* A connection, from the creation of its id. Freed by its QP, or at its last event if the QP requested that. */
struct verbs_conn {
	struct list_node node;
	struct verbs_dev *dev;
	struct verbs_qp *qp; /* NULL: parked */
	struct rdma_cm_id *id;
	struct mpa_pdata pdata; /* from the peer */
	uint8_t ord;            /* passive: Read depth of the peer; 0: not sent */
	struct timer timer;     /* parked */
	struct verbs_job job;
	bool calling; /* used by its thread */
	bool asked;   /* the kernel owes the result: until then destroying the id or the QP would block */
	bool up;
};

/* NULL: out of memory; the caller keeps the id. */
struct verbs_conn *verbs_conn_new(struct verbs_dev *, struct rdma_cm_id *);
void verbs_conn_free(struct verbs_conn *);
/* The id is bound to the device's port. */
bool verbs_id_is_ours(const struct verbs_dev *, const struct rdma_cm_id *);
/* Our private data, with our QP as the sender. */
void verbs_conn_pdata(const struct verbs_qp *, const struct mpa_pdata *to, uint8_t out[MPA_PDATA_LEN]);
/* Reports CONNECTED once the connection is established and the user has called qp_connect. */
void verbs_conn_check_connected(struct verbs_qp *);
/* Decodes the peer's private data: 0 or -EPROTO. */
static inline int
verbs_pdata_decode(const struct rdma_conn_param *p, struct mpa_pdata *out)
{
	return mpa_pdata_decode((struct span){ .ptr = p->private_data, .len = p->private_data_len }, out);
}

/* -- verbs_iwarp_passive.c -- */

/* On the first free port of the range, at an address of the card. */
int verbs_iwarp_listen(struct verbs_dev *, const char **why);
/* A connection request of a peer: takes the event's id. */
void verbs_iwarp_request(struct verbs_dev *, const struct rdma_cm_event *);
