/* The way to the daemon; see ask.h. */
#include "ctl/ask.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 15000                  /* without a byte from the daemon */
#define RELOAD_MS 180000                 /* it resolves names */
#define LINE_BYTES 65536                 /* of the first allocation */
#define LINE_MAX_BYTES ((size_t)1 << 28) /* far above what any daemon answers */

/* The most frequent errors, with what to do. */
static void
explain_connect(const char *path, const char *instance, int error)
{
	if (error == ENOENT || error == ECONNREFUSED)
		fprintf(stderr,
		    "smcrctl: smcrd does not run, or listens elsewhere: no daemon at %s\n"
		    "Start it (systemctl start smcrd%s%s), or name its socket with --socket (control.path in smcrd.conf).\n",
		    path, instance != NULL ? "@" : "", instance != NULL ? instance : "");
	else if (error == EACCES || error == EPERM)
		fprintf(stderr,
		    "smcrctl: permission denied for %s\n"
		    "Only those may talk to smcrd whom the socket's owner, group and mode let in (control.mode in\n"
		    "smcrd.conf): become root, or join the group that owns it (ls -l %s).\n",
		    path, path);
	else if (error == EAGAIN)
		fprintf(stderr, "smcrctl: smcrd at %s does not accept connections: busy or stopped\n", path);
	else
		fprintf(stderr, "smcrctl: cannot connect to %s: %s\n", path, strerror(error));
}

/* With --json an error is an answer as well. */
static void
print_no_daemon(const struct options *o, int rc)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	json_t *root = json_pack("{s:i, s:s, s:I, s:{s:s, s:s}, s:n}", "schema", 1, "command",
	    control_commands[o->command].name, "time_ms", (json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000,
	    "error", "code", "no-daemon", "text", strerror(-rc), "data");
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

void
ask_set_timeout(struct ask *a, int64_t timeout_ms)
{
	struct timeval tv = { .tv_sec = timeout_ms / 1000, .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000 };

	setsockopt(a->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(a->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int
ask_open(struct ask *a, const struct options *o, bool quiet)
{
	const int64_t check_ms = o->command == CONTROL_CHECK ? o->timeout_ms : 0;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int rc = 0;

	*a = (struct ask){ .path = o->socket, .fd = -1 };
	if (strlen(a->path) >= sizeof(sun.sun_path)) {
		if (!quiet)
			fprintf(stderr, "smcrctl: the name of the socket is too long: %s\n", a->path);
		return -ENAMETOOLONG;
	}
	strcpy(sun.sun_path, a->path);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd >= 0)
		ask_set_timeout(a, (o->command == CONTROL_RELOAD ? RELOAD_MS : ANSWER_MS) + check_ms);
	if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&sun, sizeof(sun)) != 0 ||
	    (a->in = fdopen(a->fd, "r")) == NULL) {
		rc = -errno;
		if (!quiet)
			explain_connect(a->path, o->instance, -rc);
		ask_close(a);
	}
	return rc;
}

void
ask_close(struct ask *a)
{
	if (a->in != NULL)
		fclose(a->in);
	else if (a->fd >= 0)
		close(a->fd);
	free(a->line);
	*a = (struct ask){ .fd = -1 };
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
ask_begin(struct ask *a, const struct options *o, const char *peer)
{
	char *request = options_request(o, peer);
	int rc;

	if (request == NULL) {
		fprintf(stderr, "smcrctl: out of memory\n");
		return -ENOMEM;
	}
	rc = ask_open(a, o, false);
	if (rc != 0 && o->json)
		print_no_daemon(o, rc);
	if (rc == 0) {
		rc = send_all(a->fd, request, strlen(request));
		if (rc == 0)
			rc = send_all(a->fd, "\n", 1);
		/* Refused: the daemon's reason can still be read. */
		if (rc == -EPIPE || rc == -ECONNRESET)
			rc = 0;
		if (rc != 0) {
			fprintf(stderr, "smcrctl: cannot send to %s: %s\n", a->path, strerror(-rc));
			ask_close(a);
		}
	}
	free(request);
	return rc;
}

/* Room for one more byte of the line; false, with errno, if there is no more. */
static bool
reserve(struct ask *a, size_t len)
{
	size_t cap = 2 * a->cap + LINE_BYTES;
	char *line;

	if (len < a->cap)
		return true;
	errno = EFBIG;
	line = len <= LINE_MAX_BYTES ? realloc(a->line, cap) : NULL;
	if (line == NULL)
		return false;
	a->line = line;
	a->cap = cap;
	return true;
}

const char *
ask_line(struct ask *a)
{
	for (size_t len = 0; reserve(a, len);) {
		int c = getc_unlocked(a->in);

		if (c == '\n') {
			a->line[len] = '\0';
			return a->line;
		}
		if (c != EOF) {
			a->line[len++] = (char)c;
			continue;
		}
		if (feof(a->in))
			errno = ECONNRESET;
		if (errno != EINTR) /* of SIGCONT, as the socket has a timeout */
			break;
		clearerr(a->in);
	}
	if (errno == ECONNRESET)
		fprintf(stderr, "smcrctl: smcrd closed the connection\n");
	else if (errno == EAGAIN)
		fprintf(stderr, "smcrctl: smcrd at %s does not answer\n", a->path);
	else
		fprintf(stderr, "smcrctl: cannot read from %s: %s\n", a->path, strerror(errno));
	return NULL;
}
