/* Bytes of a soft iWARP connection on TCP, in clear or in TLS; see siw_tcp.h. In TLS, bytes of FPDUs are gathered into
 * full records, whatever their bounds, so that a turn costs few of them. Nothing is placed before its record's tag was
 * checked. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/minmax.h"
#include "rnic/siw/tcp/siw_tcp.h"

#define RECORD_MAX 16384 /* RFC 8446 5.1 */

static ssize_t
recv_clear(int fd, struct iovec *iov, size_t cnt, bool *more)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = cnt };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	size_t space = 0;

	if (n < 0)
		return -errno;
	for (size_t i = 0; i < cnt; i++)
		space += iov[i].iov_len;
	*more = (size_t)n == space;
	return n;
}

ssize_t
siw_wire_recv(struct siw_wire *w, struct iovec *iov, size_t cnt, bool *more)
{
	ssize_t sum = 0;

	*more = false;
	if (w->tls == NULL)
		return recv_clear(w->fd, iov, cnt, more);
	for (size_t i = 0; i < cnt; i++) {
		for (size_t off = 0; off < iov[i].iov_len;) {
			ssize_t n = tls_io_read(w->tls, (uint8_t *)iov[i].iov_base + off, iov[i].iov_len - off);

			if (n <= 0) {
				/* An end is reported by the next call. */
				*more = sum > 0 && n != -EAGAIN;
				return sum > 0 ? sum : n;
			}
			off += (size_t)n;
			sum += n;
			if (tls_io_is_drained(w->tls))
				return sum;
		}
	}
	*more = true;
	return sum;
}

/* Copies the first bytes: their number. */
static size_t
copy_record(uint8_t record[RECORD_MAX], const struct iovec *iov, size_t cnt, size_t skip)
{
	size_t len = 0;

	for (size_t i = 0; i < cnt && len < RECORD_MAX; i++) {
		size_t from = min_size(skip, iov[i].iov_len), n = min_size(iov[i].iov_len - from, RECORD_MAX - len);

		skip -= from;
		if (n > 0)
			memcpy(record + len, (const uint8_t *)iov[i].iov_base + from, n);
		len += n;
	}
	return len;
}

ssize_t
siw_wire_send(struct siw_wire *w, struct iovec *iov, size_t cnt, int flags)
{
	uint8_t record[RECORD_MAX];
	size_t sum = 0, total = 0, len;

	if (w->tls == NULL) {
		const struct msghdr msg = { .msg_iov = iov, .msg_iovlen = cnt };
		ssize_t n = sendmsg(w->fd, &msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

		return n < 0 ? -errno : n;
	}
	/* What did not fit comes again with the same bytes, as the queue keeps them. */
	for (size_t i = 0; i < cnt; i++)
		total += iov[i].iov_len;
	while ((len = copy_record(record, iov, cnt, sum)) > 0) {
		ssize_t n = tls_io_write(w->tls, record, len, sum + len < total);

		if (n < 0)
			return sum > 0 ? (ssize_t)sum : n;
		sum += (size_t)n;
	}
	return (ssize_t)sum;
}

bool
siw_wire_finish(struct siw_wire *w, int *err)
{
	int n = w->tls != NULL ? tls_io_finish(w->tls) : 0;

	*err = n < 0 && n != -EAGAIN ? -n : 0;
	if (n == 0 && shutdown(w->fd, SHUT_WR) < 0)
		*err = errno;
	return n == 0 && *err == 0;
}

void
siw_wire_close(struct siw_wire *w)
{
	tls_io_free(w->tls);
	close(w->fd);
	*w = (struct siw_wire){ .fd = -1 };
}
