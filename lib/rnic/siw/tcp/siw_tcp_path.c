/* Soft iWARP, MPA on TCP: path data measured by the kernel; see siw_tcp.h. A separate file: the kernel's header has
 * fields that the C library's lacks, and the two conflict. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "rnic/siw/tcp/siw_tcp.h"

#define FRESH_NS 1000000000 /* lifetime of a result */
#define NS_PER_US 1000

/* Old kernels return less; the missing fields stay 0. */
static bool
ask(int fd, struct tcp_info *info, socklen_t need)
{
	socklen_t len = sizeof(*info);

	*info = (struct tcp_info){ 0 };
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0 && len >= need;
}

int64_t
siw_tcp_path_rtt(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);
	struct tcp_info info;
	int64_t now = qp->dev->dev.now_ns;

	if (t->rtt_asked_ns != 0 && now - t->rtt_asked_ns < FRESH_NS)
		return t->rtt_ns;
	t->rtt_asked_ns = now;
	t->rtt_ns = -1;
	if (ask(t->fd, &info, offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt)) &&
	    info.tcpi_min_rtt != UINT32_MAX)
		t->rtt_ns = (int64_t)info.tcpi_min_rtt * NS_PER_US;
	return t->rtt_ns;
}

void
siw_tcp_conn_info(struct siw_qp *qp, struct rnic_conn_info *out)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	struct rnic_path *path = &out->paths[0];
	int fd = siw_tcp(qp)->fd;
	struct tcp_info info;

	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
	    !ask(fd, &info, offsetof(struct tcp_info, tcpi_total_retrans) + sizeof(info.tcpi_total_retrans)))
		return;
	out->retransmits = info.tcpi_total_retrans;
	out->unacked = info.tcpi_unacked;
	out->path_cnt = 1;
	*path = (struct rnic_path){
		.state = info.tcpi_retransmits > 0 ? RNIC_PATH_SUSPECT : RNIC_PATH_ACTIVE,
		.primary = true,
		.rtt_us = info.tcpi_rtt,
		.rto_us = info.tcpi_rto,
		.mtu = info.tcpi_pmtu,
		.cwnd = (uint32_t)min_u64((uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss, UINT32_MAX),
	};
	addr_to_v6(&peer, path->to.b);
}
