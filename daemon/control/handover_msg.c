/* Messages of a hand-over; see control/handover_msg.h. */
#include "daemon/control/handover_msg.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/loop/env.h"

#define MAGIC 0x534d4348u /* "SMCH" */
#define FDS_SEEN 4        /* all but the first are closed; the kernel closes those beyond these */

void
handover_encode(const struct handover_msg *m, uint8_t out[HANDOVER_LEN])
{
	struct wcur w = wcur_make(out, HANDOVER_LEN);
	size_t len = strnlen(m->text, HANDOVER_TEXT_MAX - 1);

	wcur_be32(&w, MAGIC);
	wcur_be16(&w, HANDOVER_VERSION);
	wcur_be16(&w, (uint16_t)m->type);
	wcur_be16(&w, (uint16_t)m->kind);
	wcur_zero(&w, 6);
	wcur_be32(&w, m->cnt);
	wcur_be32(&w, m->pid);
	wcur_be64(&w, m->watchdog_us);
	wcur_be64(&w, m->dev);
	wcur_be64(&w, m->ino);
	wcur_bytes(&w, m->text, len);
	wcur_zero(&w, HANDOVER_TEXT_MAX - len);
}

/* The text becomes a path, or part of a log line. */
static bool
is_text(const char *text)
{
	const char *end = memchr(text, '\0', HANDOVER_TEXT_MAX);

	for (const char *p = text; end != NULL && p < end; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return end != NULL;
}

int
handover_decode(struct span in, struct handover_msg *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	struct handover_msg m = { 0 };

	if (in.len < HANDOVER_LEN)
		return 0;
	if (rcur_be32(&r) != MAGIC)
		return -EPROTO;
	if (rcur_be16(&r) != HANDOVER_VERSION)
		return -EPROTONOSUPPORT;
	const unsigned type = rcur_be16(&r), kind = rcur_be16(&r);
	rcur_skip(&r, 6);
	m.cnt = rcur_be32(&r);
	m.pid = rcur_be32(&r);
	m.watchdog_us = rcur_be64(&r);
	m.dev = rcur_be64(&r);
	m.ino = rcur_be64(&r);
	rcur_bytes(&r, m.text, sizeof(m.text));
	if (type < HANDOVER_HELLO || type > HANDOVER_HEALTH || kind > HANDOVER_MPA || !is_text(m.text))
		return -EPROTO;
	if ((type == HANDOVER_SOCKET) != (kind != HANDOVER_NONE))
		return -EPROTO;
	if (type == HANDOVER_HELLO && (m.cnt > HANDOVER_SOCKETS_MAX || m.pid == 0 || m.pid > INT32_MAX))
		return -EPROTO;
	m.type = (enum handover_type)type;
	m.kind = (enum handover_kind)kind;
	*out = m;
	return HANDOVER_LEN;
}

void
handover_from_health(struct handover_msg *m, const struct targets_known *k, int64_t now_ns)
{
	char addr[ADDR_STR_MAX];

	*m = (struct handover_msg){ .type = HANDOVER_HEALTH,
		.cnt = (uint32_t)k->health.state,
		.dev = (uint64_t)max_i64(now_ns - k->health.since_ns, 0) / NS_PER_MS,
		.ino = (uint64_t)k->health.server };
	(void)snprintf(
	    m->text, sizeof(m->text), "%s %s", addr_format_port(&k->addr, addr, sizeof(addr)), k->health.why);
	for (char *p = m->text; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

int
handover_to_health(const struct handover_msg *m, struct targets_known *out, int64_t now_ns)
{
	char addr[HANDOVER_TEXT_MAX];
	const size_t len = strcspn(m->text, " ");
	struct targets_known k = { .health = { .state = (enum health_state)m->cnt, .server = CLC_SERVER_DOWN } };

	memcpy(addr, m->text, len);
	addr[len] = '\0';
	if (m->cnt == HEALTH_NONE || m->cnt >= HEALTH_STATE_CNT || m->dev > INT64_MAX / 2 / NS_PER_MS ||
	    (addr_is_unix_text(addr) ? addr_parse_unix(addr, &k.addr) : addr_parse_port(addr, &k.addr)) != 0)
		return -EPROTO;
	if (m->ino < CLC_SERVER_DOWN)
		k.health.server = (enum clc_server)m->ino;
	k.health.since_ns = now_ns - (int64_t)m->dev * NS_PER_MS;
	(void)snprintf(k.health.why, sizeof(k.health.why), "%s", m->text + len + (m->text[len] == ' '));
	*out = k;
	return 0;
}

int
handover_send(int sock, const struct handover_msg *m, int fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
	uint8_t bytes[HANDOVER_LEN];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	handover_encode(m, bytes);
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (fd >= 0) {
		mh.msg_control = &control;
		mh.msg_controllen = sizeof(control);
	}
	ssize_t n = sendmsg(sock, &mh, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return n == HANDOVER_LEN ? 0 : -EPROTO; /* the kernel takes a message this small whole */
}

/* Keeps the first descriptor of a message, closes others. 0 or -EPROTO. */
static int
take_fds(struct handover_rx *rx, struct msghdr *mh)
{
	int rc = (mh->msg_flags & MSG_CTRUNC) != 0 ? -EPROTO : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (rx->fd < 0) {
				rx->fd = fd;
				continue;
			}
			close(fd);
			rc = -EPROTO;
		}
	}
	return rc;
}

static int
fill(int sock, struct handover_rx *rx)
{
	union {
		char buf[CMSG_SPACE(FDS_SEEN * sizeof(int))];
		struct cmsghdr align;
	} control;
	/* Never beyond this message: the next one's descriptor comes with its bytes. */
	struct iovec iov = { .iov_base = rx->buf + rx->len, .iov_len = sizeof(rx->buf) - rx->len };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof(control.buf)
	};
	ssize_t n;

	do
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	int rc = take_fds(rx, &mh);
	if (rc != 0)
		return rc;
	rx->len += (size_t)n;
	if (n == 0)
		return -ECONNRESET;
	return rx->buf[0] == MAGIC >> 24 ? 0 : -EPROTO; /* do not wait for the rest of a foreign message */
}

int
handover_recv(int sock, struct handover_rx *rx, struct handover_msg *out, int *fd)
{
	struct handover_msg m;
	int rc = 0;

	while (rx->len < HANDOVER_LEN && rc == 0)
		rc = fill(sock, rx);
	if (rc == 0)
		rc = handover_decode((struct span){ rx->buf, rx->len }, &m);
	if (rc >= 0 && (m.type == HANDOVER_SOCKET) != (rx->fd >= 0))
		rc = -EPROTO;
	if (rc < 0)
		return rc;
	*out = m;
	*fd = rx->fd;
	*rx = HANDOVER_RX_NONE;
	return 0;
}

void
handover_rx_fini(struct handover_rx *rx)
{
	if (rx->fd >= 0)
		close(rx->fd);
	*rx = HANDOVER_RX_NONE;
}
