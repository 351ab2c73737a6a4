/* The verbs device: connecting queue pairs of iWARP cards through librdmacm; see verbs_int.h. Rules and private data
 * are those of soft iWARP (siw_*.c); the kernel handles MPA.
 * The kernel changes the QP's state by its number: the id has no QP and does not need our device context. Between the
 * request to connect or accept and the event with the result, destroying id or QP blocks; so both live until then. A
 * connect may wait for TCP (in siw): it runs in a thread. A connection is proven by the answer to the first Read on it,
 * which is also the first message required from the active side. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/iface.h"
#include "rnic/verbs/verbs_iwarp.h"

/* -- a connection -- */

struct verbs_conn *
verbs_conn_new(struct verbs_dev *dev, struct rdma_cm_id *id)
{
	struct verbs_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL || timerq_reserve(&dev->timers, 1) < 0) {
		free(conn);
		return NULL;
	}
	conn->dev = dev;
	conn->id = id;
	list_init(&conn->node);
	if (id != NULL)
		id->context = conn;
	return conn;
}

static bool
is_pending(const struct verbs_conn *conn)
{
	return conn->calling || conn->asked;
}

void
verbs_conn_free(struct verbs_conn *conn)
{
	timer_cancel(&conn->dev->timers, &conn->timer);
	timerq_unreserve(&conn->dev->timers, 1);
	list_remove(&conn->node);
	if (conn->qp != NULL)
		conn->qp->conn = NULL;
	if (conn->id != NULL)
		(void)rdma_destroy_id(conn->id);
	free(conn);
}

void
verbs_conn_pdata(const struct verbs_qp *qp, const struct mpa_pdata *to, uint8_t out[MPA_PDATA_LEN])
{
	struct mpa_pdata d = *to;

	d.recv_depth = (uint16_t)qp->rq_depth;
	d.from_qpn = qp->qp.qpn;
	d.read_stag = qp->fence_mr->rkey;
	d.read_to = (uintptr_t)qp->fence.bytes;
	mpa_pdata_encode(&d, out);
}

void
verbs_conn_check_connected(struct verbs_qp *qp)
{
	if (qp->conn == NULL || !qp->conn->up || !qp->claimed || qp->phase != VERBS_CONNECTING)
		return;
	if (qp->conn->pdata.from_qpn != qp->remote.qpn)
		verbs_qp_break(qp, "the link was taken over by another QP of the peer");
	else
		verbs_qp_connected(qp, VERBS_RTS);
}

/* -- its end -- */

/* The connection has failed or ended, requested by the QP or not. */
static void
conn_over(struct verbs_conn *conn, const char *why)
{
	struct verbs_qp *qp = conn->qp;

	if (qp->phase <= VERBS_LINGER)
		verbs_qp_break(qp, why); /* frees it, unless its thread uses it */
	else if (!is_pending(conn))
		verbs_conn_free(conn);
	verbs_qp_reap(qp);
}

void
verbs_conn_leaving(struct verbs_qp *qp)
{
	/* Graceful: FIN instead of a reset. */
	if (qp->phase == VERBS_LINGER && qp->sq.done == qp->sq.head && qp->conn != NULL && qp->conn->up &&
	    !qp->dev->gone)
		(void)rdma_disconnect(qp->conn->id);
}

void
verbs_conn_left(struct verbs_qp *qp)
{
	if (qp->conn != NULL && !is_pending(qp->conn))
		verbs_conn_free(qp->conn);
}

bool
verbs_qp_is_held(const struct verbs_qp *qp)
{
	return qp->conn != NULL && is_pending(qp->conn);
}

/* -- the active side -- */

static const char *
connect_error(struct verbs_qp *qp, int err)
{
	if (err == ENODEV)
		return "the route to the peer's RNIC does not use this card";
	if (err == ETIMEDOUT)
		verbs_qp_note_silence(qp);
	return mpa_connect_error(err == ECONNRESET ? ECONNREFUSED : err == EADDRINUSE ? EADDRNOTAVAIL : err);
}

/* Runs in its own thread. */
static void
connect_run(struct verbs_job *job)
{
	struct verbs_conn *conn = CONTAINER_OF(job, struct verbs_conn, job);
	const struct verbs_qp *qp = conn->qp;
	const struct mpa_pdata to = { .qpn = qp->remote.qpn, .psn = qp->remote.psn, .token = qp->token };
	uint8_t pd[MPA_PDATA_LEN];
	struct rdma_conn_param param = {
		.private_data = pd,
		.private_data_len = sizeof(pd),
		.responder_resources = VERBS_READ_DEPTH,
		.initiator_depth = VERBS_READ_DEPTH,
		.qp_num = qp->qp.qpn,
	};

	verbs_conn_pdata(qp, &to, pd);
	job->err = rdma_connect(conn->id, &param) == 0 ? 0 : errno;
}

static void
connect_done(struct verbs_job *job)
{
	struct verbs_conn *conn = CONTAINER_OF(job, struct verbs_conn, job);

	conn->calling = false;
	if (job->err != 0)
		conn->asked = false; /* and no event follows */
	if (job->err != 0 || conn->qp->phase > VERBS_LINGER)
		conn_over(conn, connect_error(conn->qp, job->err));
}

bool
verbs_id_is_ours(const struct verbs_dev *dev, const struct rdma_cm_id *id)
{
	return id->verbs != NULL && strcmp(ibv_get_device_name(id->verbs->device), dev->cfg.dev) == 0 &&
	    id->port_num == dev->cfg.port;
}

/* Takes the private data of an accepting MPA Reply. False: not from the peer's link. */
static bool
reply_in(struct verbs_conn *conn, const struct rdma_conn_param *p)
{
	const struct verbs_qp *qp = conn->qp;
	struct mpa_pdata *peer = &conn->pdata;

	return verbs_pdata_decode(p, peer) == 0 && peer->qpn == qp->qp.qpn && peer->from_qpn == qp->remote.qpn &&
	    peer->recv_depth != 0;
}

static const char *
rejected_why(struct verbs_qp *qp, const struct rdma_conn_param *p, int status)
{
	struct mpa_pdata d;

	if (p->private_data_len == 0)
		return connect_error(qp, status < 0 ? -status : ECONNREFUSED);
	return mpa_verdict_str(verbs_pdata_decode(p, &d) == 0 ? d.verdict : MPA_ACCEPTED);
}

static const char *
start_connect(struct verbs_qp *qp)
{
	struct verbs_iwarp *iw = qp->dev->iwarp;
	struct sockaddr_storage from = iw->addr, to;

	if (iface_remote(&iw->addr, &qp->remote.gid, qp->remote.mpa_port, &to) < 0)
		return "the peer's RNIC has an address of another family";
	struct verbs_conn *conn = verbs_conn_new(qp->dev, NULL);
	if (conn == NULL)
		return "out of memory";
	conn->qp = qp;
	qp->conn = conn;
	if (rdma_create_id(iw->channel, &conn->id, conn, RDMA_PS_TCP) != 0)
		return "out of resources";
	if (rdma_resolve_addr(
	        conn->id, (struct sockaddr *)&from, (struct sockaddr *)&to, (int)qp->dev->cfg.connect_ms) != 0)
		return connect_error(qp, errno);
	return NULL;
}

int
verbs_iwarp_connect(struct verbs_qp *qp)
{
	if (qp->side == RNIC_PASSIVE) {
		if (qp->phase == VERBS_INIT)
			(void)verbs_qp_expect(&qp->qp);
		if (qp->phase <= VERBS_RTS)
			verbs_arm(qp->dev, &qp->timer, qp->dev->cfg.connect_ms);
		verbs_conn_check_connected(qp);
		return 0;
	}
	if (qp->remote.mpa_port == 0 || qp->phase != VERBS_INIT)
		return -EINVAL;
	verbs_qp_set_phase(qp, VERBS_CONNECTING, "requested");
	verbs_arm(qp->dev, &qp->timer, qp->dev->cfg.connect_ms);
	const char *why = start_connect(qp);
	if (why != NULL)
		verbs_qp_break(qp, why);
	return 0;
}

void
verbs_iwarp_timed_out(struct verbs_qp *qp)
{
	const char *why = "the peer's first message did not arrive in time";

	if (qp->phase <= VERBS_EXPECTING) {
		why = "the peer did not open its MPA connection in time";
	} else if (qp->side == RNIC_ACTIVE && qp->conn != NULL && qp->conn->up) {
		verbs_qp_note_silence(qp);
		why = "the peer does not answer on the new connection";
	} else if (qp->side == RNIC_ACTIVE && qp->conn != NULL) {
		why = qp->conn->asked ? "the peer did not answer the MPA Request in time"
		                      : "the peer's RNIC cannot be found";
	}
	verbs_qp_break(qp, why);
}

/* -- events -- */

static void
established(struct verbs_conn *conn, const struct rdma_conn_param *p)
{
	struct verbs_qp *qp = conn->qp;

	conn->asked = false;
	if (qp->phase > VERBS_RTS) {
		conn_over(conn, NULL);
		return;
	}
	conn->up = true;
	if (qp->side == RNIC_ACTIVE && !reply_in(conn, p)) {
		conn_over(conn, "the MPA Reply is not from the peer's link");
		return;
	}
	qp->sq.peer_depth = conn->pdata.recv_depth;
	fence_set_peer(&qp->fence, &conn->pdata);
	if (qp->side == RNIC_ACTIVE) {
		if (verbs_fence_first(qp) != 0)
			conn_over(conn, "the RDMA device rejected a work request");
		return;
	}
	/* No proof from the peer: the event only means that the card considers MPA start-up complete. The order of
	 * messages proves the peer's queue pair. The SMC server answers a message that the client sends after its own
	 * Read is answered: CONFIRM LINK follows the CLC Confirm, a further link the ADD LINK response. */
	verbs_conn_check_connected(qp);
}

static void
conn_event(struct verbs_conn *conn, const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (!verbs_id_is_ours(conn->dev, conn->id))
			conn_over(conn, connect_error(conn->qp, ENODEV));
		else if (rdma_resolve_route(conn->id, (int)conn->dev->cfg.connect_ms) != 0)
			conn_over(conn, connect_error(conn->qp, errno));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn->job.run = connect_run;
		conn->job.done = connect_done;
		conn->calling = conn->asked = verbs_cm_submit_alone(conn->dev, &conn->job) == 0;
		if (!conn->asked)
			conn_over(conn, "out of resources");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		established(conn, &ev->param.conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		conn->asked = false;
		conn_over(conn, connect_error(conn->qp, ev->status < 0 ? -ev->status : EIO));
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn->asked = false;
		conn_over(conn, rejected_why(conn->qp, &ev->param.conn, ev->status));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		conn->asked = false;
		conn_over(
		    conn, ev->event == RDMA_CM_EVENT_DISCONNECTED ? "the peer closed the connection" : VERBS_GONE_WHY);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	}
}

void
verbs_iwarp_io(void *arg, unsigned events)
{
	struct verbs_dev *dev = arg;
	struct rdma_cm_event *ev, copy;
	uint8_t pd[UINT8_MAX];

	(void)events;
	for (unsigned i = 0; i < VERBS_EVENTS_TURN; i++) {
		if (rdma_get_cm_event(dev->iwarp->channel, &ev) != 0) {
			if (errno == EINTR)
				continue;
			return;
		}
		/* Acknowledged before handling: destroying an id waits for that. */
		copy = *ev;
		if (copy.param.conn.private_data != NULL) {
			memcpy(pd, copy.param.conn.private_data, copy.param.conn.private_data_len);
			copy.param.conn.private_data = pd;
		} else {
			copy.param.conn.private_data_len = 0;
		}
		(void)rdma_ack_cm_event(ev);
		struct verbs_conn *conn = copy.id->context; /* NULL: the listening id, or a copy of it */
		if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			verbs_iwarp_request(dev, &copy);
		else if (conn != NULL && conn->qp != NULL)
			conn_event(conn, &copy);
		else if (conn != NULL && copy.event != RDMA_CM_EVENT_ADDR_CHANGE &&
		    copy.event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			verbs_conn_free(conn); /* parked, and its peer has gone */
		if (copy.event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			verbs_set_gone(dev);
	}
	dev->more = true;
}

/* -- the device -- */

int
verbs_iwarp_open(struct verbs_dev *dev, const char **why)
{
	struct verbs_iwarp *iw = calloc(1, sizeof(*iw));

	*why = "memory";
	if (iw == NULL)
		return -ENOMEM;
	dev->iwarp = iw;
	list_init(&iw->parked);
	*why = "the kernel's RDMA connection manager (module rdma_ucm) cannot be used";
	errno = 0;
	iw->channel = rdma_create_event_channel();
	if (iw->channel == NULL)
		return errno != 0 ? -errno : -EIO;
	if (fcntl(iw->channel->fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	int rc = verbs_iwarp_listen(dev, why);
	if (rc < 0)
		return rc;
	*why = "event loop";
	return dev->loop.watch(dev->loop.ctx, iw->channel->fd, verbs_iwarp_io, dev);
}

void
verbs_iwarp_close(struct verbs_dev *dev)
{
	struct verbs_iwarp *iw = dev->iwarp;

	if (iw->listen != NULL)
		(void)rdma_destroy_id(iw->listen);
	iw->listen = NULL;
	LIST_EACH(struct verbs_conn, conn, &iw->parked, node)
		verbs_conn_free(conn);
}

void
verbs_iwarp_fini(struct verbs_dev *dev)
{
	struct verbs_iwarp *iw = dev->iwarp;

	if (iw == NULL)
		return;
	verbs_iwarp_close(dev);
	if (iw->channel != NULL) {
		dev->loop.unwatch(dev->loop.ctx, iw->channel->fd);
		rdma_destroy_event_channel(iw->channel);
	}
	free(iw);
}
