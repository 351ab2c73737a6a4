/* A leg; see leg.h. */
#include "daemon/leg/leg.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/net/net.h"
#include "daemon/leg/circle.h"

void
leg_init(struct leg *leg, void (*cb)(struct loop_io *, unsigned events))
{
	*leg = (struct leg){ .io = { .fd = -1, .cb = cb } };
}

int
leg_open(struct leg *leg, struct loop *loop, int fd, unsigned kind)
{
	if ((kind & LEG_UNIX) != 0)
		net_tune(fd, NULL);
	leg->io.fd = fd;
	leg->flags = kind;
	leg->err = 0;
	int err = loop_add(loop, &leg->io);
	if (err != 0) {
		leg->io.fd = -1;
		close(fd);
	}
	return err;
}

void
leg_latch(struct leg *leg, unsigned events)
{
	leg->flags |= events;
	if ((events & LOOP_READ) != 0)
		leg->flags |= LEG_FRESH;
	if ((events & (LOOP_URGENT | LOOP_RDHUP | LOOP_HUP | LOOP_ERR)) != 0)
		leg->flags |= LEG_READABLE;
}

int
leg_broken(struct leg *leg)
{
	if (leg->err == 0 && (leg->flags & LEG_ERROR) != 0)
		leg->err = net_error(leg->io.fd);
	leg->flags &= ~(unsigned)LEG_ERROR;
	return leg->err;
}

bool
leg_has_bytes(const struct leg *leg)
{
	int bytes = 0;

	if (leg->tls != NULL && tls_io_has_bytes(leg->tls))
		return true;
	return leg->io.fd >= 0 && ioctl(leg->io.fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

unsigned
leg_unsent(const struct leg *leg)
{
	int bytes = 0;

	/* A UNIX socket delivers written bytes at once. */
	if ((leg->flags & LEG_UNIX) != 0 || ioctl(leg->io.fd, SIOCOUTQ, &bytes) != 0)
		return 0;
	return (unsigned)bytes;
}

/* Of one or two pieces. */
static size_t
iov_len(const struct iovec *iov, int cnt)
{
	return iov[0].iov_len + (cnt > 1 ? iov[1].iov_len : 0);
}

static bool
try_again(int err)
{
	return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

/* Whether the next byte carries the urgent mark: 1, 0, or -errno of the recv, -EAGAIN when there is no data. A read
 * that starts before the mark stops at it, a read that starts on it runs over it. An edge without LEG_URGENT came while
 * ordinary bytes stood first, so the first read after it need not check. Nor need a read after a FIN without the mark,
 * as nothing follows a FIN. Otherwise the result holds only for a byte that has arrived. */
static int
at_mark(const struct leg *leg)
{
	int at = 0;
	char next;

	if ((leg->flags & LEG_URGENT) == 0 && (leg->flags & (LEG_FRESH | LEG_RDHUP)) != 0)
		return 0;
	if (recv(leg->io.fd, &next, 1, MSG_PEEK) < 0)
		return -errno;
	return ioctl(leg->io.fd, SIOCATMARK, &at) == 0 && at != 0;
}

static ssize_t
read_failed(struct leg *leg, int err)
{
	if (!try_again(err) && leg->err == 0)
		leg->err = err;
	if (leg->err != 0)
		return -leg->err;
	/* Empty: the mark is consumed or has not arrived, and its byte brings an edge. */
	leg->flags &= ~(unsigned)(LEG_READABLE | LEG_URGENT);
	return 0;
}

/* -ENOTSUP for bytes with a descriptor: they lose their meaning without it, and end a read before it is drained. */
static ssize_t
read_unix(int fd, const struct iovec *iov, int cnt, size_t want)
{
	struct iovec pieces[2] = { iov[0], iov[cnt - 1] };
	struct msghdr msg = { .msg_iov = pieces, .msg_iovlen = (size_t)cnt };

	if (cnt == 1)
		pieces[0].iov_len = want;
	ssize_t n = recvmsg(fd, &msg, 0);
	if (n >= 0 && (msg.msg_flags & MSG_CTRUNC) != 0) {
		errno = ENOTSUP;
		return -1;
	}
	return n;
}

ssize_t
leg_read(struct leg *leg, const struct iovec *iov, int cnt, bool *urgent)
{
	*urgent = false;
	if ((leg->flags & (LEG_READABLE | LEG_EOF)) != LEG_READABLE) {
		leg->flags &= ~(unsigned)LEG_READABLE; /* HUP behind the end latches it again */
		return 0;
	}
	if (leg->tls != NULL)
		return leg_tls_read(leg, iov);
	if (leg->err == ENOTSUP)
		return -ENOTSUP; /* the stream has a hole: nothing behind it is passed on */
	int mark = at_mark(leg);
	leg->flags &= ~(unsigned)LEG_FRESH;
	if (mark < 0)
		return read_failed(leg, -mark);
	size_t want = mark ? 1 : iov_len(iov, cnt);
	ssize_t n;
	if ((leg->flags & LEG_UNIX) != 0)
		n = read_unix(leg->io.fd, iov, mark ? 1 : cnt, want);
	else
		n = mark || cnt == 1 ? recv(leg->io.fd, iov[0].iov_base, want, 0) : readv(leg->io.fd, iov, cnt);
	if (n < 0)
		return read_failed(leg, errno);
	/* The kernel reports an error once. EPIPE: FIN came before the reset. */
	if (n == 0 && leg->err != 0 && leg->err != EPIPE)
		return -leg->err;
	if (n == 0) {
		leg->flags |= LEG_EOF;
		leg->flags &= ~(unsigned)LEG_READABLE;
	} else if (mark) {
		*urgent = true;
		leg->flags &= ~(unsigned)LEG_URGENT;
	} else if ((size_t)n < want && (leg->flags & (LEG_URGENT | LEG_RDHUP | LEG_HUP)) == 0) {
		/* Drained: new data brings an edge. */
		leg->flags &= ~(unsigned)LEG_READABLE;
	}
	return n;
}

ssize_t
leg_peek(const struct leg *leg, void *buf, size_t cap)
{
	return (leg->flags & LEG_READABLE) != 0 ? recv(leg->io.fd, buf, cap, MSG_PEEK) : -1;
}

ssize_t
leg_write(struct leg *leg, const struct iovec *iov, int cnt, bool urgent)
{
	/* Programs do not expect out-of-band data on UNIX sockets, and not every kernel supports it. */
	int flags = MSG_NOSIGNAL | (urgent && (leg->flags & LEG_UNIX) == 0 ? MSG_OOB : 0);
	struct msghdr msg = { .msg_iov = (struct iovec *)(void *)(uintptr_t)iov, .msg_iovlen = (size_t)cnt };

	if ((leg->flags & LEG_WRITABLE) == 0)
		return 0;
	if (leg->tls != NULL)
		return leg_tls_write(leg, iov, cnt);
	ssize_t n = cnt == 1 ? send(leg->io.fd, iov[0].iov_base, iov[0].iov_len, flags)
	                     : sendmsg(leg->io.fd, &msg, flags);
	if (n < 0) {
		if (!try_again(errno)) {
			leg->err = leg->err != 0 ? leg->err : errno;
			leg->flags |= LEG_READABLE;
			return -leg->err;
		}
		n = 0;
	}
	if ((size_t)n < iov_len(iov, cnt))
		leg->flags &= ~(unsigned)LEG_WRITABLE;
	leg->flags |= LEG_SENT;
	return n;
}

bool
leg_is_silent(struct leg *leg, int64_t now_ns, int64_t limit_ns, uint32_t probes)
{
	struct net_unacked u;

	if ((leg->flags & LEG_SENT) == 0)
		return false;
	if ((leg->flags & LEG_UNIX) != 0 || !net_unacked(leg->io.fd, &u)) {
		leg->flags &= ~(unsigned)LEG_SENT;
		leg->unacked_ns = 0;
		return false;
	}
	int64_t quiet_ns = u.quiet_ms * 1000000LL;
	if (!u.sent) {
		/* The last segment was answered: TCP backs off before it sends again or probes a closed window. */
		leg->unacked_ns = now_ns;
		return u.probes > probes && quiet_ns >= limit_ns;
	}
	/* Data was acknowledged or sent since the last check. */
	if (leg->unacked_ns == 0 || quiet_ns < now_ns - leg->unacked_ns)
		leg->unacked_ns = now_ns;
	return now_ns - leg->unacked_ns >= limit_ns;
}

void
leg_shut(struct leg *leg)
{
	if ((leg->flags & LEG_SHUT) == 0)
		(void)shutdown(leg->io.fd, SHUT_WR);
	leg->flags |= LEG_SHUT | LEG_SENT;
}

void
leg_close(struct leg *leg, struct loop *loop, bool reset)
{
	if (leg->io.fd < 0)
		return;
	if (!reset)
		(void)leg_finish(leg);
	leg_tls_end(leg);
	loop_del(loop, &leg->io);
	if (reset)
		net_reset(leg->io.fd);
	else
		close(leg->io.fd);
	leg->io.fd = -1;
	leg->flags = 0;
	leg->unacked_ns = 0;
	leg->err = 0;
}

/* -- connecting -- */

void
dial_end(struct dial *d, struct loop *loop)
{
	leg_close(d->leg, loop, true);
	d->busy = d->waits = false;
}

int
dial_start(struct dial *d, struct loop *loop, const struct config_keepalive *ka, const struct sockaddr_storage *addr)
{
	const bool local = addr->ss_family == AF_UNIX;

	dial_end(d, loop);
	d->addr = addr;
	int fd = circle_connect(d->circles, d->circle, addr, d->ports, ka, d->option, &d->source);
	int err = fd >= 0 ? leg_open(d->leg, loop, fd, local ? LEG_UNIX : 0) : fd;
	d->waits = err == -EAGAIN && local;
	d->busy = d->waits || err == 0;
	if (!d->busy)
		d->err = -err;
	return d->busy ? 0 : err;
}

int
dial_check(struct dial *d)
{
	if ((d->leg->flags & (LEG_WRITABLE | LEG_ERROR | LEG_HUP)) == 0)
		return 0;
	/* A socket that is writable without an error is connected. */
	int err = (d->leg->flags & (LEG_ERROR | LEG_HUP)) != 0 ? net_error(d->leg->io.fd) : 0;
	if (err == 0 && (d->leg->flags & LEG_WRITABLE) == 0)
		return 0;
	d->leg->flags &= ~(unsigned)LEG_ERROR;
	/* The socket was connected (a refused SYN has ECONNREFUSED): data or FIN may precede the RST. */
	if (err == ECONNRESET || err == EPIPE) {
		d->leg->err = err;
		d->leg->flags |= LEG_READABLE;
		err = 0;
	}
	d->err = err;
	if (err == 0)
		d->busy = false;
	return err == 0 ? 1 : -err;
}
