/* The verbs device: passive side of iWARP connections; see verbs_iwarp.h. A request is passed to the QP named in its
 * private data, parked for a while, or refused. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/iface.h"
#include "rnic/verbs/verbs_iwarp.h"

#define LISTEN_BACKLOG 256

/* -- requests -- */

/* Counts a refused peer, and notes its address if it is IPv4 or IPv6. */
static void
count(struct verbs_dev *dev, const struct rdma_cm_id *id, enum unknown_peer_kind kind)
{
	const struct sockaddr_storage *from = &id->route.addr.dst_storage;
	const struct unknown_peer who = unknown_peer_of(from);

	dev->stats.mpa_refused_parked += kind == UNKNOWN_PEER_PARKED;
	dev->stats.mpa_refused_token += kind == UNKNOWN_PEER_TOKEN;
	if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
		unknown_peers_note(&dev->strangers, kind, &who);
}

static void
reject(struct rdma_cm_id *id, uint32_t peer_qpn, enum mpa_verdict verdict)
{
	const struct mpa_pdata d = { .verdict = (uint8_t)verdict, .qpn = peer_qpn };
	uint8_t pd[MPA_PDATA_LEN];

	mpa_pdata_encode(&d, pd);
	(void)rdma_reject(id, pd, sizeof(pd));
}

static void
refuse(struct verbs_conn *conn, enum mpa_verdict verdict)
{
	bool early = verdict == MPA_NOT_EXPECTED || verdict == MPA_BUSY;

	count(conn->dev, conn->id, early ? UNKNOWN_PEER_PARKED : UNKNOWN_PEER_TOKEN);
	reject(conn->id, conn->pdata.from_qpn, verdict);
	verbs_conn_free(conn);
}

static void
park_timeout(struct timer *t)
{
	refuse(CONTAINER_OF(t, struct verbs_conn, timer), MPA_NOT_EXPECTED);
}

static void
park(struct verbs_conn *conn)
{
	struct verbs_dev *dev = conn->dev;
	unsigned parked = 0;

	LIST_FOREACH(other, &dev->iwarp->parked)
		parked++;
	if (parked >= VERBS_PARKED_MAX) {
		refuse(conn, MPA_BUSY);
		return;
	}
	list_push(&dev->iwarp->parked, &conn->node);
	timer_init(&conn->timer, park_timeout);
	verbs_arm(dev, &conn->timer, VERBS_PARKED_MS);
}

static void
adopt(struct verbs_conn *conn, struct verbs_qp *qp)
{
	const struct mpa_pdata to = { .qpn = conn->pdata.from_qpn };
	uint8_t pd[MPA_PDATA_LEN], named = conn->ord;
	/* Our outstanding Reads are within the peer's depth. A request of MPA revision 1 has none, and siw reports 0; a
	 * sender of smcrd's private data supports Reads. */
	struct rdma_conn_param param = {
		.private_data = pd,
		.private_data_len = sizeof(pd),
		.responder_resources = VERBS_READ_DEPTH,
		.initiator_depth = named != 0 && named < VERBS_READ_DEPTH ? named : VERBS_READ_DEPTH,
		.qp_num = qp->qp.qpn,
	};

	conn->qp = qp;
	qp->conn = conn;
	qp->side = RNIC_PASSIVE;
	verbs_conn_pdata(qp, &to, pd);
	verbs_qp_set_phase(qp, VERBS_CONNECTING, "peer connected");
	verbs_arm(qp->dev, &qp->timer, qp->dev->cfg.connect_ms);
	if (rdma_accept(conn->id, &param) == 0)
		conn->asked = true;
	else
		verbs_qp_break(qp, "the MPA Reply could not be sent");
}

/* Finds the addressed QP. The connection is on no list. */
static void
dispatch(struct verbs_conn *conn)
{
	struct verbs_qp *qp = NULL;

	LIST_EACH(struct verbs_qp, q, &conn->dev->qps, node)
		if (qp == NULL && q->qp.qpn == conn->pdata.qpn && q->user != VERBS_DESTROYED)
			qp = q;
	if (qp != NULL && (conn->pdata.psn != qp->qp.psn || conn->pdata.token != qp->token))
		refuse(conn, MPA_BAD_TOKEN);
	else if (qp == NULL || qp->phase == VERBS_INIT)
		park(conn);
	else if (qp->phase != VERBS_EXPECTING)
		refuse(conn, qp->phase > VERBS_RTS ? MPA_GONE : MPA_USED);
	else
		adopt(conn, qp);
}

void
verbs_iwarp_request(struct verbs_dev *dev, const struct rdma_cm_event *ev)
{
	const struct rdma_conn_param *p = &ev->param.conn;
	struct mpa_pdata pdata;

	ev->id->context = NULL;
	/* A peer without receives could never be sent a message. */
	bool known = verbs_pdata_decode(p, &pdata) == 0 && pdata.recv_depth != 0;
	struct verbs_conn *conn = known && !dev->gone && !dev->ends ? verbs_conn_new(dev, ev->id) : NULL;
	if (!known)
		count(dev, ev->id, UNKNOWN_PEER_TOKEN);
	if (conn == NULL) {
		reject(ev->id, known ? pdata.from_qpn : 0, known ? MPA_BUSY : MPA_UNKNOWN_PEER);
		(void)rdma_destroy_id(ev->id);
		return;
	}
	conn->pdata = pdata;
	conn->ord = p->initiator_depth;
	dispatch(conn);
}

/* A parked request may match. */
int
verbs_qp_expect(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	if (!verbs_is_iwarp(qp->dev))
		return 0; /* the peer sends only after our first message */
	if (qp->phase != VERBS_INIT)
		return -EINVAL;
	verbs_qp_set_phase(qp, VERBS_EXPECTING, "requested");
	LIST_EACH(struct verbs_conn, conn, &qp->dev->iwarp->parked, node) {
		if (conn->pdata.qpn != qp->qp.qpn)
			continue;
		timer_cancel(&conn->dev->timers, &conn->timer);
		list_remove(&conn->node);
		dispatch(conn); /* not parked once more: the phase is no longer INIT */
	}
	return 0;
}

/* -- listening -- */

/* 0; -EADDRINUSE; -ENODEV: not an address of this card; another negative errno. */
static int
listen_at(struct verbs_dev *dev, const struct sockaddr_storage *at, uint16_t port)
{
	struct sockaddr_storage ss = *at;
	struct rdma_cm_id *id;
	int rc = 0;

	if (rdma_create_id(dev->iwarp->channel, &id, NULL, RDMA_PS_TCP) != 0)
		return -errno;
	addr_set_port(&ss, port);
	if (rdma_bind_addr(id, (struct sockaddr *)&ss) != 0)
		rc = errno == EADDRNOTAVAIL ? -ENODEV : -errno;
	else if (!verbs_id_is_ours(dev, id))
		rc = -ENODEV;
	else if (rdma_listen(id, LISTEN_BACKLOG) != 0)
		rc = -errno;
	if (rc < 0) {
		(void)rdma_destroy_id(id);
		return rc;
	}
	dev->iwarp->listen = id;
	dev->info.mpa_port = ntohs(rdma_get_src_port(id));
	return 0;
}

static int
listen_in_range(struct verbs_dev *dev, const struct sockaddr_storage *at)
{
	uint32_t port = dev->cfg.mpa_port_min;
	int rc;

	dev->iwarp->addr = *at;
	do
		rc = listen_at(dev, at, (uint16_t)port);
	while (rc == -EADDRINUSE && ++port <= dev->cfg.mpa_port_max);
	return rc;
}

static bool
is_candidate(const struct verbs_dev *dev, const struct ifaddrs *ifa, int family)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)(const void *)ifa->ifa_addr;

	if (ifa->ifa_addr == NULL || ifa->ifa_addr->sa_family != family || ifa->ifa_flags & IFF_LOOPBACK ||
	    (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr)))
		return false;
	return dev->port.ifindex == 0 || if_nametoindex(ifa->ifa_name) == dev->port.ifindex;
}

/* The first address of the card, IPv4 first. */
static int
listen_anywhere(struct verbs_dev *dev)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *list;
	int rc = -ENODEV;

	if (getifaddrs(&list) < 0)
		return rc;
	for (unsigned f = 0; f < 2; f++) {
		for (const struct ifaddrs *a = list; a != NULL && rc == -ENODEV; a = a->ifa_next) {
			struct sockaddr_storage ss = { 0 };

			if (!is_candidate(dev, a, families[f]))
				continue;
			ss.ss_family = (sa_family_t)families[f];
			memcpy(&ss, a->ifa_addr, addr_len(&ss));
			rc = listen_in_range(dev, &ss);
		}
	}
	freeifaddrs(list);
	return rc;
}

int
verbs_iwarp_listen(struct verbs_dev *dev, const char **why)
{
	const struct sockaddr_storage *at = &dev->cfg.addr;
	struct verbs_iwarp *iw = dev->iwarp;
	int rc = at->ss_family == AF_UNSPEC ? listen_anywhere(dev) : listen_in_range(dev, at);

	if (rc == 0) {
		addr_set_port(&iw->addr, 0);
		addr_to_v6(&iw->addr, dev->cfg.gid.b);
		/* Some kernels do not report the interface of a GID made from a MAC address. */
		dev->gid = (struct verbs_gid){ .gid = dev->cfg.gid, .ifindex = iface_of(&iw->addr) };
	} else {
		*why = rc == -EADDRINUSE ? "no free MPA port in the range"
		    : rc == -ENODEV      ? "the iWARP card has no such IP address"
		                         : "cannot listen on the MPA port";
	}
	return rc;
}
