/* Taking over from a running daemon; see handover/takeover.h. */
#include "daemon/handover/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/control/handover_msg.h"
#include "daemon/handover/inherited.h"
#include "daemon/net/net.h"

#define WAIT_S 15 /* for each message: a busy daemon answers late */

static int
takeover_fail(FILE *err, int rc, const char *what)
{
	fprintf(err, "take-over: %s%s%s\n", what, rc < 0 ? ": " : "", rc < 0 ? strerror(-rc) : "");
	return rc < 0 ? rc : -EPROTO;
}

/* 0, with *sock -1 when no process listens. */
static int
takeover_connect_to(const char *path, int *sock, FILE *err)
{
	const struct timeval wait = { .tv_sec = WAIT_S };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	*sock = -1;
	if (strlen(path) >= sizeof(sun.sun_path))
		return takeover_fail(err, -ENAMETOOLONG, path);
	strcpy(sun.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return takeover_fail(err, -errno, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		int rc = errno == ENOENT || errno == ECONNREFUSED ? 0 : takeover_fail(err, -errno, path);

		close(fd);
		return rc;
	}
	*sock = fd;
	return 0;
}

static int
check_user(int sock, FILE *err)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return takeover_fail(err, -errno, "user of the running daemon");
	if (cred.uid == geteuid())
		return 0;
	fprintf(err, "take-over: the running daemon's user is %u, not %u: start the new one as the same user\n",
	    (unsigned)cred.uid, (unsigned)geteuid());
	return -EPERM;
}

/* The next message, which must be of this type. */
static int
hear(struct takeover *t, enum handover_type want, struct handover_msg *m, int *fd, FILE *err)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	int rc = handover_recv(t->sock, &rx, m, fd);

	if (rc == -EPROTO && rx.len > 0 && rx.buf[0] == '{') /* JSON */
		rc = takeover_fail(err, 1, "the running daemon is of a version that cannot hand over");
	else if (rc == -EPROTONOSUPPORT)
		rc = takeover_fail(err, 1, "the running daemon hands over in another version of this protocol");
	else if (rc == -EAGAIN)
		rc = takeover_fail(err, -ETIMEDOUT, "the running daemon");
	else if (rc == -ECONNRESET)
		rc = takeover_fail(err, 1, "the running daemon has ended the hand-over");
	else if (rc != 0)
		rc = takeover_fail(err, rc, "the running daemon's message");
	handover_rx_fini(&rx);
	if (rc != 0)
		return rc;
	if (m->type == HANDOVER_REFUSED) {
		fprintf(err, "take-over: refused: %s\n", m->text);
		return -EPERM;
	}
	if (m->type == want || (want == HANDOVER_DONE && m->type == HANDOVER_HEALTH))
		return 0;
	if (*fd >= 0)
		close(*fd);
	return takeover_fail(err, 1, "the running daemon's message is out of order");
}

/* True when the socket is as the message describes it. */
static bool
is_listener(int fd, const struct handover_msg *m, const struct sockaddr_storage *addr)
{
	const int domain = net_option(fd, SOL_SOCKET, SO_DOMAIN);
	const bool inet = domain == AF_INET || domain == AF_INET6;
	const bool tcp = inet && net_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;

	if (net_option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM || !net_option(fd, SOL_SOCKET, SO_ACCEPTCONN) ||
	    addr->ss_family != domain)
		return false;
	if (m->text[0] != '\0' && strcmp(addr_path(addr), m->text) != 0)
		return false;
	switch (m->kind) {
	case HANDOVER_CONTROL:
		return domain == AF_UNIX && m->text[0] != '\0';
	case HANDOVER_SERVICE:
		return tcp || domain == AF_UNIX;
	case HANDOVER_MPA:
		return tcp;
	case HANDOVER_NONE:
		break;
	}
	return false;
}

static int
takeover_keep(struct takeover *t, const struct handover_msg *m, const struct listen_socket *l)
{
	struct listen_socket file = *l;

	if (m->kind == HANDOVER_MPA)
		return listen_socket_list_add(&t->mpa, l);
	if (m->kind == HANDOVER_CONTROL && t->control_cnt < CONTROL_PORTS) {
		t->control[t->control_cnt++] = *l;
		return 0;
	}
	if (m->kind == HANDOVER_CONTROL) {
		listen_socket_close(&file);
		return -EPROTO;
	}
	/* First, as the list owns the descriptor. */
	int rc = listen_socket_list_add(&t->services, l);
	file.fd = -1;
	return rc == 0 && l->path[0] != '\0' ? listen_socket_list_add(&t->files, &file) : rc;
}

static int
take_socket(struct takeover *t, const struct handover_msg *m, int fd, FILE *err)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	struct listen_socket l = listen_socket_of_fd(fd);

	l.lent = l.elsewhere = true;
	l.unit = m->cnt != 0;
	if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0 || !is_listener(fd, m, &addr)) {
		listen_socket_close(&l);
		return takeover_fail(err, 1, "the running daemon sent a socket that does not match its message");
	}
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	inherited_own_file(&l, m->text);
	if (l.dev != m->dev || l.ino != m->ino)
		l.path[0] = '\0'; /* its file was removed or replaced */
	int rc = takeover_keep(t, m, &l);
	return rc != 0 ? takeover_fail(err, rc, "sockets") : 0;
}

/* A process that was started by hand inside of the unit notifies systemd as the old one did. */
static void
inherit_supervision(const struct handover_msg *hello)
{
	char text[24];

	const char *ours = getenv("NOTIFY_SOCKET");

	/* A reload command of the unit has the first, but not the watchdog. */
	if (hello->text[0] == '\0' || getenv("WATCHDOG_USEC") != NULL ||
	    (ours != NULL && strcmp(ours, hello->text) != 0))
		return;
	(void)setenv("NOTIFY_SOCKET", hello->text, 1);
	(void)unsetenv("WATCHDOG_PID");
	snprintf(text, sizeof(text), "%" PRIu64, hello->watchdog_us);
	if (hello->watchdog_us != 0)
		(void)setenv("WATCHDOG_USEC", text, 1);
}

/* Waits for the first byte of the answer. SO_PEERCRED would name the first process that listened at this socket, which may have been
 * handed over since; the sender of bytes is known only if that was requested. */
static pid_t
see_sender(int sock)
{
	const int on = 1, off = 0;
	struct ucred cred = { 0 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};

	(void)setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	if (send(sock, HANDOVER_LINE, sizeof(HANDOVER_LINE) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(HANDOVER_LINE) - 1 &&
	    recvmsg(sock, &mh, MSG_PEEK) == 1 && mh.msg_controllen >= CMSG_LEN(sizeof(cred)) &&
	    control.head.cmsg_type == SCM_CREDENTIALS)
		memcpy(&cred, CMSG_DATA(&control.head), sizeof(cred));
	(void)setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off));
	return cred.pid;
}

static int
takeover_ask(struct takeover *t, FILE *err)
{
	struct handover_msg hello = { 0 }, m;
	int fd;

	t->seen_pid = see_sender(t->sock);
	int rc = hear(t, HANDOVER_HELLO, &hello, &fd, err);
	for (uint32_t i = 0; rc == 0 && i < hello.cnt; i++) {
		rc = hear(t, HANDOVER_SOCKET, &m, &fd, err);
		if (rc == 0)
			rc = take_socket(t, &m, fd, err);
	}
	if (rc == 0)
		rc = hear(t, HANDOVER_END, &m, &fd, err);
	if (rc == 0 && t->control_cnt == 0)
		rc = takeover_fail(err, 1, "the running daemon did not send its control socket");
	if (rc != 0)
		return rc;
	t->pid = hello.pid;
	inherit_supervision(&hello);
	log_msg(LOG_LVL_NOTICE, "taking over from a running daemon: pid=%u sockets=%u", (unsigned)t->pid,
	    (unsigned)hello.cnt);
	return 0;
}

int
takeover_begin(struct takeover *t, const char *path, FILE *err)
{
	*t = TAKEOVER_NONE;
	int rc = takeover_connect_to(path, &t->sock, err);
	if (rc == 0 && t->sock < 0)
		log_msg(LOG_LVL_NOTICE, "no daemon to take over from: control=%s", path);
	if (rc == 0 && t->sock >= 0)
		rc = check_user(t->sock, err);
	if (rc == 0 && t->sock >= 0)
		rc = takeover_ask(t, err);
	if (rc != 0)
		takeover_fini(t);
	return rc;
}

int
takeover_offer_ports(struct takeover *t, struct config *cfg)
{
	if (t->mpa.cnt == 0)
		return 0;
	t->spares = calloc(t->mpa.cnt, sizeof(*t->spares));
	if (t->spares == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < t->mpa.cnt; i++)
		t->spares[i].fd = t->mpa.v[i].fd;
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		cfg->devices[i].siw.spares = t->spares;
		cfg->devices[i].siw.spare_cnt = t->mpa.cnt;
	}
	return 0;
}

void
takeover_settle_ports(struct takeover *t, struct config *cfg)
{
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		cfg->devices[i].siw.spares = NULL;
		cfg->devices[i].siw.spare_cnt = 0;
	}
	for (unsigned i = 0; i < t->mpa.cnt; i++)
		listen_socket_close(&t->mpa.v[i]);
}

static void
remove_unused(const struct listen_socket *file, const struct config *cfg)
{
	struct stat st;

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (strcmp(addr_path(&cfg->services[i].listen), file->path) == 0)
			return;
	if (strcmp(addr_path(&cfg->metrics.listen), file->path) == 0)
		return;
	if (lstat(file->path, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino)
		unlink(file->path);
}

/* What precedes DONE. Health is no reason to fail: a target without it begins unknown. */
static int
hear_done(struct takeover *t, struct handover_msg *m, int64_t now_ns, FILE *err)
{
	int fd, rc;

	t->known.at = malloc(HANDOVER_HEALTH_MAX * sizeof(*t->known.at));
	for (unsigned i = 0; i <= HANDOVER_HEALTH_MAX; i++) {
		rc = hear(t, HANDOVER_DONE, m, &fd, err);
		if (rc != 0 || m->type == HANDOVER_DONE)
			return rc;
		if (t->known.at != NULL && t->known.cnt < HANDOVER_HEALTH_MAX &&
		    handover_to_health(m, &t->known.at[t->known.cnt], now_ns) == 0)
			t->known.cnt++;
	}
	return takeover_fail(err, 1, "the running daemon sends too much");
}

int
takeover_finish(struct takeover *t, const struct config *cfg, uint32_t unit_pid, int64_t now_ns, FILE *err)
{
	const struct handover_msg ready = { .type = HANDOVER_READY, .pid = unit_pid, .dev = 1 };
	struct handover_msg used = { .type = HANDOVER_USED }, done = { 0 };
	const int64_t start_ms = clock_ms();
	int rc = 0;

	for (; used.cnt < t->mpa.cnt && rc == 0; used.cnt++)
		if (t->spares != NULL && t->spares[used.cnt].used)
			rc = handover_send(t->sock, &used, -1);
	if (rc == 0)
		rc = handover_send(t->sock, &ready, -1);
	if (rc != 0)
		rc = takeover_fail(err, rc, "the running daemon");
	else
		rc = hear_done(t, &done, now_ns, err);
	if (rc != 0)
		return rc;
	for (unsigned i = 0; i < t->files.cnt; i++)
		remove_unused(&t->files.v[i], cfg);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		listen_socket_set_lent(&t->control[i], false); /* one of another path than ours is removed now */
	log_msg(LOG_LVL_NOTICE, "taken over, the other process drains: pid=%u gap_ms=%lld control=%s", (unsigned)t->pid,
	    (long long)(clock_ms() - start_ms), done.text);
	return 0;
}

void
takeover_fini(struct takeover *t)
{
	if (t->sock >= 0)
		close(t->sock);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		listen_socket_close(&t->control[i]);
	listen_socket_list_fini(&t->services);
	listen_socket_list_fini(&t->mpa);
	free(t->spares);
	free(t->known.at);
	listen_socket_list_fini(&t->files);
	*t = TAKEOVER_NONE;
}
