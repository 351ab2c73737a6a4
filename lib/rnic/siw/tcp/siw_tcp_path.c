/* Soft iWARP, MPA on TCP: what the kernel has measured of a connection's path; see siw_tcp.h. The kernel's own header has the fields that the C
 * library's lacks, and does not go with it, so this is a file of its own. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "rnic/siw/tcp/siw_tcp.h"

#define FRESH_NS 1000000000 /* so long an answer is good */
#define NS_PER_US 1000

int64_t
siw_tcp_path_rtt(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int64_t now = qp->dev->dev.now_ns;

	if (t->rtt_asked_ns != 0 && now - t->rtt_asked_ns < FRESH_NS)
		return t->rtt_ns;
	t->rtt_asked_ns = now;
	t->rtt_ns = -1;
	if (getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	    len >= offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt) &&
	    info.tcpi_min_rtt != UINT32_MAX)
		t->rtt_ns = (int64_t)info.tcpi_min_rtt * NS_PER_US;
	return t->rtt_ns;
}
