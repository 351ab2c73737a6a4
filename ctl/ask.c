/* The way to the daemon; see ask.h. */
#include "ctl/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536
#define LINE_MAX_BYTES ((size_t)1 << 28) /* far above what any daemon answers */

/* The most frequent trouble of all, with what to do about it. */
static void
explain_connect(FILE *err, const char *path, int error)
{
	if (error == ENOENT || error == ECONNREFUSED)
		fprintf(err,
		    "smcrctl: smcrd does not run, or listens elsewhere: no daemon at %s\n"
		    "Start it (systemctl start smcrd), or name its socket with --socket (control.path in smcrd.conf).\n",
		    path);
	else if (error == EACCES || error == EPERM)
		fprintf(err,
		    "smcrctl: permission denied for %s\n"
		    "Only those may talk to smcrd whom the socket's owner, group and mode let in (control.mode in\n"
		    "smcrd.conf): become root, or join the group that owns it (ls -l %s).\n",
		    path, path);
	else if (error == EAGAIN)
		fprintf(err, "smcrctl: smcrd at %s does not accept connections: busy or stopped\n", path);
	else
		fprintf(err, "smcrctl: cannot connect to %s: %s\n", path, strerror(error));
}

void
ask_set_timeout(struct ask *a, unsigned timeout_ms)
{
	struct timeval tv = { .tv_sec = timeout_ms / 1000, .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000 };

	setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int
ask_open(struct ask *a, const char *path, unsigned timeout_ms, FILE *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int rc = 0;

	*a = (struct ask){ .path = path, .fd = -1 };
	if (strlen(path) >= sizeof(sun.sun_path)) {
		if (err != NULL)
			fprintf(err, "smcrctl: the name of the socket is too long: %s\n", path);
		return -ENAMETOOLONG;
	}
	strcpy(sun.sun_path, path);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd >= 0)
		ask_set_timeout(a, timeout_ms);
	if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
		rc = -errno;
		if (err != NULL)
			explain_connect(err, path, errno);
		ask_close(a);
	}
	return rc;
}

void
ask_close(struct ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	free(a->buf);
	*a = (struct ask){ .path = a->path, .fd = -1 };
}

static int
send_all(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
ask_send(struct ask *a, const char *request, FILE *err)
{
	int rc = send_all(a->fd, request, strlen(request));

	if (rc == 0)
		rc = send_all(a->fd, "\n", 1);
	/* Turned away: what the daemon says about it can still be read. */
	if (rc == -EPIPE || rc == -ECONNRESET)
		rc = 0;
	if (rc != 0)
		fprintf(err, "smcrctl: cannot send to %s: %s\n", a->path, strerror(-rc));
	return rc;
}

/* > 0 bytes, 0 at the end, or -errno. */
static ssize_t
read_more(struct ask *a)
{
	ssize_t n;

	if (a->cap - a->len < READ_BYTES) {
		size_t cap = a->cap + (a->cap > READ_BYTES ? a->cap : READ_BYTES);
		char *buf = a->len <= LINE_MAX_BYTES ? realloc(a->buf, cap) : NULL;

		if (buf == NULL)
			return a->len <= LINE_MAX_BYTES ? -ENOMEM : -EFBIG;
		a->buf = buf;
		a->cap = cap;
	}
	do
		n = recv(a->fd, a->buf + a->len, a->cap - a->len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	a->len += (size_t)n;
	return n;
}

const char *
ask_line(struct ask *a, FILE *err)
{
	size_t seen = 0;
	ssize_t n = 1;

	if (a->used > 0)
		memmove(a->buf, a->buf + a->used, a->len - a->used);
	a->len -= a->used;
	a->used = 0;
	for (;;) {
		char *nl = a->len > seen ? memchr(a->buf + seen, '\n', a->len - seen) : NULL;

		if (nl != NULL) {
			*nl = '\0';
			a->used = (size_t)(nl + 1 - a->buf);
			return a->buf;
		}
		seen = a->len;
		n = read_more(a);
		if (n <= 0)
			break;
	}
	if (n == 0 || n == -ECONNRESET)
		fprintf(err, "smcrctl: smcrd closed the connection\n");
	else if (n == -EAGAIN)
		fprintf(err, "smcrctl: smcrd at %s does not answer\n", a->path);
	else
		fprintf(err, "smcrctl: cannot read from %s: %s\n", a->path, strerror((int)-n));
	return NULL;
}
