/* Soft iWARP, DDP over SCTP: associations by libusrsctp, in UDP (RFC 6951), without privilege; see siw_sctp.h. UDP
 * sockets and packets are siw_sctp_udp.c's.
 * The library has one stack for the whole process, so this file has state of its own, for one thread: devices of
 * another are refused. Its callbacks come while it works and holds locks: they only set marks, which run_marks()
 * acts on afterwards. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <usrsctp.h>

#include "base/minmax.h"
#include "rnic/siw/sctp/siw_sctp_api.h"
#include "rnic/siw/sctp/siw_sctp_udp.h"

#define TICK_MS 10          /* while there is something to time */
#define TICK_AFTER_MS 250   /* and so long after the last packet: delayed acknowledgements */
#define BUFFER (256 * 1024) /* of an association, each way; user bytes */
#define LAST_WORDS (1024 * 1024)
/* RFC 5043 and the draft (7): at most 32,767 unacknowledged messages. The shortest one has 16 bytes, and last words
 * after a full buffer are what a queue pair has queued and posted. */
static_assert(BUFFER / 16 + SIW_MAX_SQ < 32767, "DDP-SSNs do not wrap around what is under way");
#define BACKLOG 16

struct user_assoc {
	struct siw_assoc assoc;
	struct list_node marked;
	struct socket *so;
	struct siw_udp_peer *peer;
	uint32_t path_mtu; /* as the stack was told */
	bool dead;         /* to be closed by ABORT */
};

struct user_dev {
	struct siw_sctp_dev sctp;
	struct siw_udp udp;
	struct socket *listener;
	struct timer tick;
	int64_t until_ns;                    /* ticks until then at least */
	uint8_t sent[SIW_SCTP_MESSAGE_ROOM]; /* the last one */
};

static struct {
	bool started;
	pthread_t thread;
	int64_t told_ns; /* the time as the stack knows it */
	struct list_node marked;
} stack;

static struct user_assoc *
user_assoc(struct siw_assoc *a)
{
	return CONTAINER_OF(a, struct user_assoc, assoc);
}

static struct user_dev *
user_dev(const struct siw_dev *dev)
{
	return CONTAINER_OF(dev->sctp, struct user_dev, sctp);
}

static void
mark(struct user_assoc *u)
{
	if (list_empty(&u->marked))
		list_push(&stack.marked, &u->marked);
}

static void
upcall(struct socket *so, void *arg, int flags)
{
	(void)so;
	(void)flags;
	mark(arg);
}

/* -- time -- */

/* The stack hears what time has passed before it does anything else: it would take it for a time limit otherwise. */
static void
tell_time(const struct siw_dev *dev)
{
	int64_t ms = (dev->dev.now_ns - stack.told_ns) / 1000000;

	if (ms <= 0)
		return;
	stack.told_ns += ms * 1000000;
	usrsctp_handle_timers((uint32_t)min_i64(ms, UINT32_MAX));
}

/* Something was received, sent or begun: there are time limits for a while. */
static void
keep_ticking(struct user_dev *d)
{
	d->until_ns = d->udp.dev->dev.now_ns + (int64_t)TICK_AFTER_MS * 1000000;
	if (!timer_armed(&d->tick))
		siw_arm(d->udp.dev, &d->tick, TICK_MS);
}

static bool
must_tick(struct user_dev *d)
{
	if (d->udp.dev->dev.now_ns < d->until_ns)
		return true;
	LIST_EACH(struct siw_assoc, a, &d->sctp.assocs, node) {
		struct sctp_status st = { 0 };
		socklen_t len = sizeof(st);

		if (!a->comm_up || a->ends ||
		    usrsctp_getsockopt(user_assoc(a)->so, IPPROTO_SCTP, SCTP_STATUS, &st, &len) < 0 ||
		    st.sstat_unackdata > 0)
			return true;
	}
	return false;
}

/* -- associations -- */

static bool
set(const void *so, int option, const void *value, size_t len)
{
	return usrsctp_setsockopt((struct socket *)(uintptr_t)so, IPPROTO_SCTP, option, value, (socklen_t)len) == 0;
}

static struct sockaddr_conn
conn_addr(void *opaque, uint16_t port)
{
	return (struct sockaddr_conn){ .sconn_family = AF_CONN, .sconn_port = htons(port), .sconn_addr = opaque };
}

/* Accepted sockets inherit the options. */
static int
open_socket(struct siw_dev *dev, uint16_t port, struct socket **out)
{
	struct sockaddr_conn at = conn_addr(NULL, port);
	struct socket *so = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	const int buffer = BUFFER;
	/* An inactive path is not used again without heartbeats, and there is no other. */
	const struct sctp_paddrparams path = { .spp_address.ss_family = AF_CONN,
		.spp_flags = SPP_PMTUD_DISABLE,
		.spp_pathmaxrxt = UINT16_MAX,
		.spp_pathmtu = user_dev(dev)->udp.path_mtu };

	if (so == NULL)
		return -errno;
	if (usrsctp_set_non_blocking(so, 1) == 0 && siw_sctp_configure(so, set, &dev->cfg) &&
	    set(so, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)) &&
	    usrsctp_setsockopt(so, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) == 0 &&
	    usrsctp_setsockopt(so, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) == 0 &&
	    usrsctp_bind(so, (struct sockaddr *)&at, sizeof(at)) == 0) {
		*out = so;
		return 0;
	}
	int rc = -errno;
	usrsctp_close(so);
	return rc;
}

static void
linger_over(struct siw_linger *l)
{
	struct user_assoc *u = CONTAINER_OF(l, struct user_assoc, assoc.linger);

	u->dead = true;
	mark(u);
}

/* Takes over the socket, and a reference to the peer. NULL: both are gone. */
static struct user_assoc *
assoc_new(struct siw_dev *dev, struct socket *so, struct siw_udp_peer *peer)
{
	const struct unknown_peer from = unknown_peer_of(&peer->at);
	struct user_assoc *u = calloc(1, sizeof(*u));
	uint32_t mtu = user_dev(dev)->udp.path_mtu;

	if (u == NULL || siw_assoc_init(&u->assoc, dev, &from, mtu, linger_over) < 0) {
		free(u);
		usrsctp_close(so);
		siw_udp_peer_put(peer);
		return NULL;
	}
	u->path_mtu = mtu;
	u->so = so;
	u->peer = peer;
	list_init(&u->marked);
	usrsctp_set_upcall(so, upcall, u);
	return u;
}

static void
assoc_free(struct user_assoc *u)
{
	const struct linger now = { .l_onoff = 1 };
	struct siw_dev *dev = u->assoc.dev;

	(void)usrsctp_setsockopt(u->so, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	usrsctp_close(u->so);
	siw_udp_peer_put(u->peer);
	siw_assoc_fini(&u->assoc);
	list_remove(&u->marked);
	keep_ticking(user_dev(dev));
	free(u);
}

static int
connect_to(struct siw_dev *dev, const struct rnic_remote *remote, struct siw_assoc **out)
{
	struct user_dev *d = user_dev(dev);
	struct siw_udp_peer *peer;
	struct socket *so;

	tell_time(dev);
	int rc = siw_udp_peer_get(&d->udp, &remote->gid, remote->mpa_port, &peer);
	if (rc < 0)
		return rc;
	rc = open_socket(dev, 0, &so);
	if (rc < 0) {
		siw_udp_peer_put(peer);
		return rc;
	}
	struct user_assoc *u = assoc_new(dev, so, peer);
	if (u == NULL)
		return -ENOMEM;
	struct sockaddr_conn to = conn_addr((void *)(uintptr_t)peer->opaque, remote->mpa_port);
	if (usrsctp_connect(so, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS) {
		rc = -errno;
		assoc_free(u);
		return rc;
	}
	keep_ticking(d);
	(void)siw_udp_flush(&d->udp);
	*out = &u->assoc;
	return 0;
}

/* Asked behind each packet: what comes next for an association is strange to the stack while its peer is not known. */
static void
accept_all(struct user_dev *d)
{
	struct sockaddr_conn from;
	socklen_t len = sizeof(from);
	struct siw_udp_peer *peer;
	struct user_assoc *u;
	struct socket *so;

	while (d->listener != NULL && (so = usrsctp_accept(d->listener, (struct sockaddr *)&from, &len)) != NULL) {
		len = sizeof(from);
		peer = siw_udp_peer_of(&d->udp, from.sconn_addr);
		if (peer == NULL)
			usrsctp_close(so);
		u = peer != NULL ? assoc_new(d->udp.dev, so, peer) : NULL;
		if (u == NULL)
			d->udp.dev->stats.no_memory++;
		else
			mark(u); /* and goes to siw_sctp_came() then */
	}
}

/* -- the path's MTU -- */

/* The stack takes longer messages and sends them in fragments. */
static void
follow_path(struct user_assoc *u)
{
	struct sctp_status st = { 0 };
	socklen_t len = sizeof(st);

	if (usrsctp_getsockopt(u->so, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 && st.sstat_fragmentation_point > 0)
		u->assoc.message_max = min_size(u->assoc.message_max, st.sstat_fragmentation_point & ~3u);
}

/* Behind calls of the stack that may have sent something; where a path has become narrower, messages become shorter. */
static void
flush(struct siw_dev *dev)
{
	struct user_dev *d = user_dev(dev);

	if (!siw_udp_flush(&d->udp))
		return;
	LIST_EACH(struct siw_assoc, a, &d->sctp.assocs, node) {
		struct user_assoc *u = user_assoc(a);
		const struct sctp_paddrparams path = { .spp_address.ss_family = AF_CONN,
			.spp_flags = SPP_PMTUD_DISABLE,
			.spp_pathmtu = siw_udp_peer_path_mtu(u->peer) };

		if (path.spp_pathmtu >= u->path_mtu)
			continue;
		u->path_mtu = path.spp_pathmtu;
		(void)set(u->so, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path));
		follow_path(u);
	}
}

/* -- messages -- */

static int
send_message(struct siw_assoc *a, uint32_t ppid, const struct iovec *iov, unsigned cnt)
{
	const struct sctp_sndinfo info = { .snd_flags = SCTP_UNORDERED, .snd_ppid = htonl(ppid) };
	struct user_assoc *u = user_assoc(a);
	struct user_dev *d = user_dev(a->dev);
	size_t len = 0;

	for (unsigned i = 0; i < cnt; i++) {
		if (iov[i].iov_len > SIW_SCTP_MESSAGE_ROOM - len)
			return -EMSGSIZE;
		memcpy(d->sent + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	if (len > a->message_max)
		return -EMSGSIZE;
	tell_time(a->dev);
	keep_ticking(d);
	if (usrsctp_sendv(u->so, d->sent, len, NULL, 0, (void *)(uintptr_t)&info, sizeof(info), SCTP_SENDV_SNDINFO, 0) <
	    0)
		return errno == EWOULDBLOCK ? -EAGAIN : errno == EMSGSIZE ? -EPIPE : -errno;
	return 0;
}

static void
came_up(struct siw_assoc *a)
{
	struct user_assoc *u = user_assoc(a);
	const struct sctp_paddrparams quiet = { .spp_address.ss_family = AF_CONN, .spp_flags = SPP_HB_DISABLE };

	/* An idle association has no timer that way: soft iWARP finds out by itself whether a peer is there. */
	(void)set(u->so, SCTP_PEER_ADDR_PARAMS, &quiet, sizeof(quiet));
	follow_path(u);
}

static ssize_t
receive(struct siw_assoc *a, struct siw_received *r)
{
	struct sockaddr_conn from;
	socklen_t from_len = sizeof(from), info_len = sizeof(r->info);
	unsigned type = SCTP_RECVV_NOINFO;
	ssize_t n = usrsctp_recvv(user_assoc(a)->so, a->dev->sctp->message, SIW_SCTP_MESSAGE_ROOM,
	    (struct sockaddr *)&from, &from_len, &r->info, &info_len, &type, &r->flags);

	r->has_info = true;
	if (n < 0 && errno != EWOULDBLOCK && errno != EAGAIN)
		r->lost = SIW_LOST_RESET;
	return n;
}

static enum siw_assoc_in
take(struct siw_assoc *a, struct siw_assoc_msg *out)
{
	/* After an ABORT nothing is taken, not even older messages: the peer may have moved to another link and written
	 * newer bytes there. */
	if (usrsctp_get_events(user_assoc(a)->so) & SCTP_EVENT_ERROR)
		return siw_assoc_silent(out, SIW_LOST_RESET);
	return siw_sctp_take(a, receive, came_up, out);
}

/* What was sent again the library counts of all associations together only. */
static void
info(struct siw_assoc *a, struct rnic_conn_info *out)
{
	struct sctp_status st = { 0 };
	socklen_t len = sizeof(st);

	if (usrsctp_getsockopt(user_assoc(a)->so, IPPROTO_SCTP, SCTP_STATUS, &st, &len) < 0)
		return;
	out->unacked = st.sstat_unackdata;
	out->path_cnt = 1;
	out->paths[0] = siw_sctp_path(&st.sstat_primary);
	out->paths[0].to = a->from.at;
	out->paths[0].primary = true;
	out->paths[0].mtu += user_dev(a->dev)->udp.headers;
}

static void
gather(struct siw_assoc *a)
{
	user_assoc(a)->peer->takes_together = true;
}

static void
last_words(struct siw_assoc *a)
{
	const int more = LAST_WORDS;

	(void)usrsctp_setsockopt(user_assoc(a)->so, SOL_SOCKET, SO_SNDBUF, &more, sizeof(more));
}

static void
siw_sctp_user_end(struct siw_assoc *a, bool in_order)
{
	struct user_assoc *u = user_assoc(a);
	struct siw_dev *dev = a->dev;

	a->ends = true;
	tell_time(dev);
	keep_ticking(user_dev(dev));
	if (in_order) {
		(void)usrsctp_shutdown(u->so, SHUT_WR);
		siw_linger_start(&a->linger, a->linger.kind);
		mark(u);
	} else {
		assoc_free(u);
	}
	flush(dev);
}

/* What callbacks have marked, outside of the stack. */
static void
run_marks(void)
{
	struct list_node turn;
	struct user_assoc *u;

	list_move_all(&turn, &stack.marked);
	while ((u = LIST_POP(struct user_assoc, &turn, marked)) != NULL) {
		if (u->assoc.ends && (u->dead || siw_assoc_is_over(&u->assoc, UINT_MAX)))
			assoc_free(u);
		else if (!u->assoc.ends && u->assoc.owner == NULL)
			siw_sctp_came(&u->assoc);
		else if (!u->assoc.ends)
			u->assoc.ready(u->assoc.owner);
	}
	LIST_EACH(struct user_assoc, later, &stack.marked, marked)
		later->assoc.dev->unfinished = true;
}

/* -- the device -- */

static void
tick(struct timer *t)
{
	struct user_dev *d = CONTAINER_OF(t, struct user_dev, tick);
	struct sctpstat st;

	tell_time(d->udp.dev);
	run_marks();
	flush(d->udp.dev);
	/* While data is outstanding there are ticks, so none is missed. */
	usrsctp_get_stat(&st);
	d->udp.dev->stats.sctp_retransmits = st.sctps_sendretransdata;
	if (must_tick(d))
		siw_arm(d->udp.dev, &d->tick, TICK_MS);
}

static void
packet_in(struct siw_udp *udp, void *opaque, const void *packet, size_t len)
{
	struct user_dev *d = CONTAINER_OF(udp, struct user_dev, udp);

	tell_time(d->udp.dev);
	usrsctp_conninput(opaque, packet, len, 0);
	accept_all(d);
	keep_ticking(d);
}

static void
go_on(struct siw_dev *dev)
{
	dev->unfinished = false;
	siw_udp_read(&user_dev(dev)->udp);
	run_marks();
	flush(dev);
}

static void
readable(void *arg, unsigned events)
{
	(void)events;
	go_on(arg);
}

static int
start(const struct siw_dev *dev, const char **err)
{
	if (stack.started) {
		*err = "SCTP by libusrsctp is for one worker";
		return pthread_equal(stack.thread, pthread_self()) ? 0 : -EBUSY;
	}
	usrsctp_init_nothreads(0, siw_udp_output, NULL);
	usrsctp_enable_crc32c_offload();
	usrsctp_sysctl_set_sctp_max_retran_chunk(0); /* else the 30th repetition of a message ends its association */
	/* What nobody here needs, a stranger cannot use. */
	usrsctp_sysctl_set_sctp_ecn_enable(0);
	usrsctp_sysctl_set_sctp_auto_asconf(0);
	usrsctp_sysctl_set_sctp_asconf_enable(0);
	usrsctp_sysctl_set_sctp_auth_enable(0);
	usrsctp_sysctl_set_sctp_reconfig_enable(0);
	usrsctp_sysctl_set_sctp_pr_enable(0);
	usrsctp_sysctl_set_sctp_nrsack_enable(0);
	usrsctp_sysctl_set_sctp_pktdrop_enable(0);
	list_init(&stack.marked);
	stack.thread = pthread_self();
	stack.told_ns = dev->dev.now_ns;
	stack.started = true;
	return 0;
}

static int
open_dev(struct siw_dev *dev, const char **err)
{
	struct user_dev *d;
	int rc = start(dev, err);

	if (rc < 0)
		return rc;
	*err = "memory";
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -ENOMEM;
	dev->sctp = &d->sctp;
	if (timerq_reserve(&dev->timers, 1) < 0)
		return -ENOMEM;
	dev->stack = "user";
	dev->go_on = go_on;
	dev->flush = flush;
	list_init(&d->sctp.assocs);
	timer_init(&d->tick, tick);
	rc = siw_udp_open(&d->udp, dev, packet_in, readable, err);
	if (rc == 0) {
		*err = "SCTP";
		rc = open_socket(dev, dev->port, &d->listener);
		if (rc == 0 && usrsctp_listen(d->listener, BACKLOG) < 0)
			rc = -errno;
	}
	if (rc < 0) {
		if (d->listener != NULL)
			usrsctp_close(d->listener);
		siw_udp_close(&d->udp);
	}
	return rc;
}

static void
close_dev(struct siw_dev *dev)
{
	struct user_dev *d = user_dev(dev);

	tell_time(dev);
	if (d->listener != NULL)
		usrsctp_close(d->listener);
	d->listener = NULL;
	/* Those that end have had their time; others there are none any more. */
	LIST_EACH(struct siw_assoc, a, &d->sctp.assocs, node)
		assoc_free(user_assoc(a));
	timer_cancel(&dev->timers, &d->tick);
	dev->unfinished = false;
	siw_udp_close(&d->udp);
}

const struct siw_sctp_stack siw_sctp_user = {
	.open = open_dev,
	.close = close_dev,
	.connect = connect_to,
	.send = send_message,
	.take = take,
	.gather = gather,
	.info = info,
	.last_words = last_words,
	.end = siw_sctp_user_end,
};
