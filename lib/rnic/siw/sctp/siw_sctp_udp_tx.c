/* Soft iWARP, DDP over SCTP: the way out of packets in UDP; see siw_sctp_udp_tx.h. */
#include "rnic/siw/sctp/siw_sctp_udp_tx.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/minmax.h"

#define TOGETHER_LEN 65000 /* of one datagram as the kernel sees it, with headers */
#define TOGETHER_MAX 64    /* UDP_MAX_SEGMENTS */

/* May packets that are longer than the path takes go in fragments? */
static void
set_fragments(int fd, int family, bool may)
{
	int v4 = may ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO, v6 = may ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO;

	if (family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	else
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
}

/* Packets of `each` bytes, the last one may be shorter. 0 or a negative errno. */
static int
send_out(int fd, const struct sockaddr_storage *to, const void *packets, size_t len, size_t each)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control = { 0 };
	const uint16_t segment = (uint16_t)each;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)packets, .iov_len = len };
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)to, .msg_namelen = addr_len(to), .msg_iov = &iov, .msg_iovlen = 1
	};

	if (len > each) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(c), &segment, sizeof(segment));
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A packet that has become too long has its numbers already, so it cannot be cut any more. */
static void
send_one(struct siw_udp_tx *tx, const struct sockaddr_storage *to, size_t *too_long, const void *packet, size_t len)
{
	if (send_out(tx->fd, to, packet, len, len) != -EMSGSIZE || too_long == NULL)
		return;
	*too_long = *too_long == 0 ? len : min_size(*too_long, len);
	tx->narrow = true;
	set_fragments(tx->fd, to->ss_family, true);
	(void)send_out(tx->fd, to, packet, len, len);
	set_fragments(tx->fd, to->ss_family, false);
}

void
siw_udp_tx_flush(struct siw_udp_tx *tx)
{
	size_t off, len = tx->len;
	int rc = -EINVAL;

	if (tx->cnt == 0)
		return;
	if (tx->cnt > 1)
		rc = send_out(tx->fd, tx->to, tx->out, len, tx->each);
	/* Not for want of room: one of them is too long, or the kernel or the interface cannot do it. */
	for (off = 0; rc < 0 && rc != -EAGAIN && rc != -ENOBUFS && off < len; off += tx->each)
		send_one(tx, tx->to, tx->too_long, tx->out + off, min_size(tx->each, len - off));
	tx->no_gso = tx->no_gso || (tx->cnt > 1 && rc == -EIO);
	tx->cnt = 0;
	tx->len = 0;
}

static bool
fits(const struct siw_udp_tx *tx, const size_t *too_long, size_t len)
{
	return tx->cnt > 0 && tx->too_long == too_long && len <= tx->each && !tx->is_closed && !tx->no_gso &&
	    tx->cnt < TOGETHER_MAX && tx->len + len <= TOGETHER_LEN;
}

void
siw_udp_tx_put(
    struct siw_udp_tx *tx, const struct sockaddr_storage *to, size_t *too_long, const void *packet, size_t len)
{
	siw_udp_tx_flush(tx);
	send_one(tx, to, too_long, packet, len);
}

void
siw_udp_tx_gather(
    struct siw_udp_tx *tx, const struct sockaddr_storage *to, size_t *too_long, const void *packet, size_t len)
{
	if (len > TOGETHER_LEN) {
		siw_udp_tx_put(tx, to, too_long, packet, len);
		return;
	}
	if (!fits(tx, too_long, len))
		siw_udp_tx_flush(tx);
	if (tx->cnt == 0) {
		tx->to = to;
		tx->too_long = too_long;
		tx->each = len;
	}
	memcpy(tx->out + tx->len, packet, len);
	tx->len += len;
	tx->is_closed = len < tx->each;
	tx->cnt++;
}

uint32_t
siw_udp_path_mtu_of(const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	bool is_v4 = from->ss_family == AF_INET;
	struct sockaddr_storage own = *from;
	socklen_t len = sizeof(int);
	int fd = socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;

	if (fd < 0)
		return 0;
	addr_set_port(&own, 0);
	if (bind(fd, (const struct sockaddr *)&own, addr_len(&own)) < 0 ||
	    connect(fd, (const struct sockaddr *)to, addr_len(to)) < 0 ||
	    getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_MTU : IPV6_MTU, &mtu, &len) < 0)
		mtu = 0;
	close(fd);
	return (uint32_t)max_i64(mtu, 0);
}

int
siw_udp_tx_init(struct siw_udp_tx *tx, int fd, int family)
{
	*tx = (struct siw_udp_tx){ .fd = fd, .out = malloc(TOGETHER_LEN) };
	set_fragments(fd, family, false);
	return tx->out == NULL ? -ENOMEM : 0;
}

void
siw_udp_tx_fini(struct siw_udp_tx *tx)
{
	free(tx->out);
	tx->out = NULL;
}
