/* Soft iWARP, DDP over SCTP: associations by Linux's SCTP, one socket each; see siw_sctp.h. As protocol 132, with as
 * many paths as the peer has addresses, or in UDP (RFC 6951), if the configuration names its port. Needs no
 * privilege, but the kernel's module. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sctp.h> /* wants the types of the others */

#include "base/addr.h"
#include "base/minmax.h"
#include "rnic/siw/sctp/siw_sctp_api.h"

#define BUFFER (1024 * 1024) /* of a socket, each way; the kernel counts its own overhead, and has a limit of its own */
#define LAST_WORDS (1024 * 1024) /* kept beyond that */
#define MESSAGE_MAX (9216 - 100) /* that we send */
#define SKB_LEAST 256            /* what the kernel counts for a message at least */
static_assert(2 * BUFFER / SKB_LEAST + SIW_MAX_SQ < 32767, "as in siw_sctp_user.c");
#define MESSAGE_STEP 64 /* shorter by so much, when the kernel does not know yet how short */
#define SACK_MS 50
#define HEARTBEAT_MS 500 /* a path is used once a heartbeat was answered */
#define BACKLOG 64
/* Messages a turn of an association that ends: a peer may send as fast as it is read, until the time limit. */
#define DRAIN_BUDGET 256

/* A message that the socket had no room for, behind which nothing else comes but others of them. */
struct rest {
	struct list_node node;
	uint32_t ppid;
	size_t len;
	uint8_t bytes[];
};

struct kernel_assoc {
	struct siw_assoc assoc;
	int fd;
	bool last; /* its last words are said: what finds no room is kept in rests */
	bool is_shut;
	struct list_node rests;
	size_t rest_bytes;
	int64_t looked_ns; /* the turn in which errors were asked for last */
};

static struct kernel_assoc *
kernel_assoc(struct siw_assoc *a)
{
	return CONTAINER_OF(a, struct kernel_assoc, assoc);
}

/* -- sockets -- */

/* Of the descriptor that fd points to. */
static bool
set(const void *fd, int option, const void *value, size_t len)
{
	return setsockopt(*(const int *)fd, IPPROTO_SCTP, option, value, (socklen_t)len) == 0;
}

static bool
bind_all(int fd, const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage at = cfg->addr;

	addr_set_port(&at, port);
	if (bind(fd, (const struct sockaddr *)&at, addr_len(&at)) < 0)
		return false;
	for (unsigned i = 0; i < cfg->more_addrs.cnt; i++) {
		at = cfg->more_addrs.at[i];
		addr_set_port(&at, 0); /* that of the first */
		if (!set(&fd, SCTP_SOCKOPT_BINDX_ADD, &at, addr_len(&at)))
			return false;
	}
	return true;
}

/* Bound to all addresses of the device; accepted sockets inherit the options. A descriptor, or a negative errno. */
static int
socket_on(const struct siw_config *cfg, uint16_t port)
{
	const int on = 1, buffer = BUFFER;
	const struct sctp_sack_info sack = { .sack_delay = SACK_MS, .sack_freq = 2 };
	const struct sctp_paddrparams path = { .spp_flags = SPP_HB_DISABLE };
	int fd = socket(cfg->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (fd < 0)
		return errno == ESOCKTNOSUPPORT ? -EPROTONOSUPPORT : -errno;
	if (port != 0) /* what is left of an earlier one is no harm; two that listen exclude each other all the same */
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* As much as the host allows. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	return siw_fd_if(siw_sctp_configure(&fd, set, cfg) && set(&fd, SCTP_DELAYED_SACK, &sack, sizeof(sack)) &&
	        set(&fd, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)) && bind_all(fd, cfg, port),
	    fd);
}

static int
listen_on(const struct siw_config *cfg, uint16_t port)
{
	int fd = socket_on(cfg, port);

	return fd < 0 ? fd : siw_fd_if(listen(fd, BACKLOG) == 0, fd);
}

/* -- associations -- */

static void ready(void *arg, unsigned events);

static void
assoc_free(struct kernel_assoc *k)
{
	struct siw_dev *dev = k->assoc.dev;
	struct list_node *n;

	while ((n = list_pop(&k->rests)) != NULL)
		free(CONTAINER_OF(n, struct rest, node));
	dev->loop.unwatch(dev->loop.ctx, k->fd);
	siw_close_reset(k->fd);
	siw_assoc_fini(&k->assoc);
	free(k);
}

static void
linger_over(struct siw_linger *l)
{
	assoc_free(CONTAINER_OF(l, struct kernel_assoc, assoc.linger));
}

/* Takes over the descriptor. NULL: it is closed. */
static struct kernel_assoc *
assoc_new(struct siw_dev *dev, int fd, const struct unknown_peer *from)
{
	struct kernel_assoc *k = calloc(1, sizeof(*k));

	if (k == NULL ||
	    siw_assoc_init(&k->assoc, dev, from, max_u32(min_u32(MESSAGE_MAX, dev->iface.mtu), SEGQ_MESSAGE_MIN),
	        linger_over) < 0) {
		free(k);
		close(fd);
		return NULL;
	}
	k->fd = fd;
	k->looked_ns = -1;
	list_init(&k->rests);
	if (dev->loop.watch(dev->loop.ctx, fd, ready, k) < 0) {
		assoc_free(k);
		return NULL;
	}
	return k;
}

static int
connect_to(struct siw_dev *dev, const struct rnic_remote *remote, struct siw_assoc **out)
{
	const struct sctp_udpencaps udp = { .sue_port = htons(remote->mpa_port) };
	struct sockaddr_storage peer;
	int rc = iface_remote(&dev->cfg.addr, &remote->gid, remote->mpa_port, &peer), fd;

	if (rc < 0)
		return rc;
	fd = socket_on(&dev->cfg, 0);
	if (fd < 0)
		return fd;
	if ((dev->cfg.sctp_udp != 0 && !set(&fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof(udp))) ||
	    (connect(fd, (const struct sockaddr *)&peer, addr_len(&peer)) < 0 && errno != EINPROGRESS))
		return siw_fd_if(false, fd);
	const struct unknown_peer to = unknown_peer_of(&peer);
	struct kernel_assoc *k = assoc_new(dev, fd, &to);
	if (k == NULL)
		return -ENOMEM;
	*out = &k->assoc;
	return 0;
}

/* The longest message that goes in one packet may have become shorter. */
static void
follow_path(struct kernel_assoc *k)
{
	struct sctp_status st = { 0 };
	socklen_t len = sizeof(st);

	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 && st.sstat_fragmentation_point > 0)
		k->assoc.message_max = max_size(
		    min_size(k->assoc.message_max, st.sstat_fragmentation_point & ~3u), SEGQ_MESSAGE_MIN);
}

union peer_addrs {
	struct sctp_getaddrs head;
	uint8_t bytes[sizeof(struct sctp_getaddrs) + 16 * sizeof(struct sockaddr_in6)];
};

static void
came_up(struct siw_assoc *a)
{
	const struct sctp_paddrparams beat = { .spp_flags = SPP_HB_ENABLE, .spp_hbinterval = HEARTBEAT_MS };
	struct kernel_assoc *k = kernel_assoc(a);
	union peer_addrs u = { 0 };
	socklen_t len = sizeof(u);

	follow_path(k);
	/* One path is checked by soft iWARP itself, and an idle link sends nothing. With ENOMEM there are more than
	 * fit. */
	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, &u, &len) < 0 ? errno == ENOMEM : u.head.addr_num > 1)
		(void)set(&k->fd, SCTP_PEER_ADDR_PARAMS, &beat, sizeof(beat));
}

/* -- sending -- */

static int
send_now(struct kernel_assoc *k, uint32_t ppid, const struct iovec *iov, unsigned cnt)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	} control = { 0 };
	const struct sctp_sndinfo info = { .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(ppid) };
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = cnt,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	return sendmsg(k->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* For later, if there is no room now: 0, or -EAGAIN when there is none here either. */
static int
keep(struct kernel_assoc *k, uint32_t ppid, const struct iovec *iov, unsigned cnt)
{
	struct rest *r;
	size_t len = 0;

	for (unsigned i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	if (k->rest_bytes + len > LAST_WORDS || (r = malloc(sizeof(*r) + len)) == NULL)
		return -EAGAIN;
	r->ppid = ppid;
	r->len = 0;
	for (unsigned i = 0; i < cnt; i++) {
		memcpy(r->bytes + r->len, iov[i].iov_base, iov[i].iov_len);
		r->len += iov[i].iov_len;
	}
	k->rest_bytes += len;
	list_push(&k->rests, &r->node);
	return 0;
}

static int
send_message(struct siw_assoc *a, uint32_t ppid, const struct iovec *iov, unsigned cnt)
{
	struct kernel_assoc *k = kernel_assoc(a);
	size_t max = a->message_max;
	int rc = list_empty(&k->rests) ? send_now(k, ppid, iov, cnt) : -EAGAIN;

	if (rc == -EAGAIN && k->last)
		return keep(k, ppid, iov, cnt);
	if (rc != -EMSGSIZE)
		return rc;
	follow_path(k);
	if (a->message_max == max)
		a->message_max = max_size(max - MESSAGE_STEP, SEGQ_MESSAGE_MIN);
	return a->message_max < max ? -EMSGSIZE : -EPIPE;
}

/* -- what is known -- */

static void
add_path(const struct kernel_assoc *k, const struct sockaddr_storage *to, const struct sockaddr_storage *primary,
    struct rnic_conn_info *out)
{
	struct sctp_paddrinfo p = { 0 };
	socklen_t len = sizeof(p);
	struct rnic_path *path = &out->paths[out->path_cnt];

	memcpy(&p.spinfo_address, to, addr_len(to));
	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &p, &len) < 0)
		return;
	*path = siw_sctp_path(&p);
	if (p.spinfo_state == SCTP_PF) /* potentially failed */
		path->state = RNIC_PATH_SUSPECT;
	path->primary = addr_same_host(to, primary);
	addr_to_v6(to, path->to.b);
	out->path_cnt++;
}

static void
info(struct siw_assoc *a, struct rnic_conn_info *out)
{
	const struct kernel_assoc *k = kernel_assoc(a);
	struct sctp_assoc_stats stats = { 0 };
	struct sctp_status st = { 0 };
	socklen_t len = sizeof(st), stats_len = sizeof(stats), addrs_len = sizeof(union peer_addrs);
	struct sockaddr_storage primary = { 0 }, to;
	union peer_addrs u = { 0 };
	size_t off = 0;

	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_STATUS, &st, &len) < 0)
		return;
	out->unacked = st.sstat_unackdata;
	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &stats_len) == 0)
		out->retransmits = (int64_t)stats.sas_rtxchunks;
	memcpy(&primary, &st.sstat_primary.spinfo_address, sizeof(primary));
	if (getsockopt(k->fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, &u, &addrs_len) < 0)
		u.head.addr_num = 0;
	/* One behind the other, each as long as its family is. */
	for (unsigned i = 0; i < u.head.addr_num && out->path_cnt < RNIC_PATHS_MAX; i++) {
		to = (struct sockaddr_storage){ 0 };
		memcpy(&to, u.head.addrs + off, sizeof(struct sockaddr_in));
		memcpy(&to, u.head.addrs + off, addr_len(&to));
		off += addr_len(&to);
		add_path(k, &to, &primary, out);
	}
	if (out->path_cnt == 0) /* there are more than fit */
		add_path(k, &primary, &primary, out);
}

static void
last_words(struct siw_assoc *a)
{
	kernel_assoc(a)->last = true;
}

/* The rests as far as there is room, and SHUTDOWN behind them. False: the association is lost. */
static bool
send_rests(struct kernel_assoc *k)
{
	struct rest *r;
	int rc = 0;

	while (rc == 0 && (r = LIST_FIRST(struct rest, &k->rests, node)) != NULL) {
		const struct iovec iov = { .iov_base = r->bytes, .iov_len = r->len };

		rc = send_now(k, r->ppid, &iov, 1);
		if (rc == 0) {
			list_remove(&r->node);
			free(r);
		}
	}
	if (rc == 0 && !k->is_shut) {
		k->is_shut = true;
		rc = shutdown(k->fd, SHUT_WR) < 0 ? -errno : 0;
	}
	return rc == 0 || rc == -EAGAIN;
}

/* -- what arrives -- */

static ssize_t
receive(struct siw_assoc *a, struct siw_received *r)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct sctp_rcvinfo))];
	} control;
	struct iovec iov = { .iov_base = a->dev->sctp->message, .iov_len = SIW_SCTP_MESSAGE_ROOM };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n;

	do
		n = recvmsg(kernel_assoc(a)->fd, &msg, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		if (errno != EAGAIN && (errno != ENOTCONN || a->comm_up))
			r->lost = a->comm_up ? SIW_LOST_RESET : SIW_LOST_SILENT;
		return n;
	}
	r->flags = msg.msg_flags;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL && !r->has_info; c = CMSG_NXTHDR(&msg, c)) {
		r->has_info = c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO;
		if (r->has_info)
			memcpy(&r->info, CMSG_DATA(c), sizeof(r->info));
	}
	return n;
}

static enum siw_assoc_in
take(struct siw_assoc *a, struct siw_assoc_msg *out)
{
	struct kernel_assoc *k = kernel_assoc(a);
	socklen_t len = sizeof(int);
	int err = 0;

	/* After an ABORT nothing is taken, not even older messages in the socket: the peer may have moved to another
	 * link and written newer bytes there. Checked once a turn: a later ABORT is older than nothing that this turn
	 * has seen of other links. */
	if (k->looked_ns != a->dev->dev.now_ns && (getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0))
		return siw_assoc_silent(out, a->comm_up ? SIW_LOST_RESET : SIW_LOST_SILENT);
	k->looked_ns = a->dev->dev.now_ns;
	return siw_sctp_take(a, receive, came_up, out);
}

/* -- the end -- */

static void
ready(void *arg, unsigned events)
{
	struct kernel_assoc *k = arg;

	(void)events;
	if (!k->assoc.ends)
		k->assoc.ready(k->assoc.owner);
	else if (!send_rests(k) || siw_assoc_is_over(&k->assoc, DRAIN_BUDGET))
		assoc_free(k);
}

static void
siw_sctp_kernel_end(struct siw_assoc *a, bool in_order)
{
	struct kernel_assoc *k = kernel_assoc(a);

	a->ends = true;
	if (!in_order || !send_rests(k) || siw_assoc_is_over(a, DRAIN_BUDGET))
		assoc_free(k);
	else
		siw_linger_start(&a->linger, a->linger.kind);
}

/* -- the device -- */

static void
accepted(struct siw_dev *dev, int fd, const struct unknown_peer *from)
{
	struct kernel_assoc *k = assoc_new(dev, fd, from);

	if (k == NULL)
		dev->stats.no_memory++;
	else
		siw_sctp_came(&k->assoc);
}

/* The kernel's own UDP socket has the port: nobody else can. */
static bool
kernel_has_udp(const struct siw_config *cfg)
{
	struct sockaddr_storage at = cfg->addr;
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	addr_set_port(&at, cfg->sctp_udp);
	bool taken = fd >= 0 && bind(fd, (const struct sockaddr *)&at, addr_len(&at)) < 0 && errno == EADDRINUSE;
	if (fd >= 0)
		close(fd);
	return taken;
}

static int
open_dev(struct siw_dev *dev, const char **err)
{
	*err = "memory";
	dev->stack = "kernel";
	dev->sctp = calloc(1, sizeof(*dev->sctp));
	if (dev->sctp == NULL)
		return -ENOMEM;
	list_init(&dev->sctp->assocs);
	int rc = siw_accept_open(dev, listen_on, accepted, err);
	if (rc == -EPROTONOSUPPORT)
		*err = "SCTP: the kernel has none (module sctp)";
	if (rc == 0 && dev->cfg.sctp_udp != 0 && !kernel_has_udp(&dev->cfg)) {
		*err = "SCTP in UDP: sysctl net.sctp.udp_port is not sctp_udp";
		siw_accept_close(dev);
		rc = -EPROTONOSUPPORT;
	}
	return rc;
}

const struct siw_sctp_stack siw_sctp_kernel = {
	.open = open_dev,
	.close = siw_accept_close,
	.connect = connect_to,
	.send = send_message,
	.take = take,
	.info = info,
	.last_words = last_words,
	.end = siw_sctp_kernel_end,
};
