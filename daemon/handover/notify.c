/* Notifications of systemd; see handover/notify.h. */
#include "daemon/handover/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"

#define STATUS_INTERVAL_NS (5 * 1000000000LL)
#define STOP_MARGIN_MS 10000u
#define STORE_BATCH 64 /* descriptors of a message; the kernel takes 253 */

void
notify_init(struct notify *n, int64_t now_ns)
{
	uint64_t usec;

	*n = (struct notify){ .enabled = getenv("NOTIFY_SOCKET") != NULL };
	if (sd_watchdog_enabled(0, &usec) > 0 && usec < INT64_MAX / 1000)
		n->watchdog_ns = (int64_t)usec * 1000 / 2;
	n->watchdog_at_ns = n->status_at_ns = now_ns;
}

/* -- sending -- */

/* False: the socket of systemd is full. Other errors are permanent, and ignored. */
static bool
notify_send_now(const char *text, const int *fds, unsigned fd_cnt)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(STORE_BATCH * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_name = &sun, .msg_iov = &iov, .msg_iovlen = 1 };

	if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(sun.sun_path))
		return true;
	strcpy(sun.sun_path, path);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';
	/* The name of an abstract socket is not terminated. */
	msg.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
	if (fd_cnt > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int));
		control.head = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(fd_cnt * sizeof(int))
		};
		memcpy(CMSG_DATA(&control.head), fds, fd_cnt * sizeof(int));
	}
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	bool sent = sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
	close(fd);
	return sent;
}

static void
send_kept(struct notify *n)
{
	while (n->kept_cnt > 0 && notify_send_now(n->kept[0], NULL, 0))
		memmove(n->kept[0], n->kept[1], --n->kept_cnt * sizeof(n->kept[0]));
}

/* Behind the kept texts; the oldest is dropped when all slots are in use. */
static void
send_or_keep(struct notify *n, const char *text)
{
	send_kept(n);
	if (n->kept_cnt == 0 && notify_send_now(text, NULL, 0))
		return;
	if (n->kept_cnt == NOTIFY_KEPT)
		memmove(n->kept[0], n->kept[1], --n->kept_cnt * sizeof(n->kept[0]));
	snprintf(n->kept[n->kept_cnt++], NOTIFY_TEXT_MAX, "%s", text);
}

/* -- notifications -- */

static const char unstore[] = "FDSTOREREMOVE=1\nFDNAME=" NOTIFY_FDNAME;

void
notify_ready(struct notify *n)
{
	send_or_keep(n, "READY=1");
	n->status_at_ns = INT64_MIN;
}

void
notify_reloading(struct notify *n)
{
	char text[NOTIFY_TEXT_MAX];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_ns() / 1000);
	send_or_keep(n, text);
}

void
notify_stopping(struct notify *n, uint32_t stop_ms)
{
	char text[NOTIFY_TEXT_MAX];

	if (!n->enabled)
		return;
	snprintf(text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu",
	    ((unsigned long long)stop_ms + STOP_MARGIN_MS) * 1000);
	send_or_keep(n, text);
	n->status_at_ns = INT64_MIN;
}

void
notify_successor(struct notify *n, uint32_t pid)
{
	char text[NOTIFY_TEXT_MAX];

	snprintf(text, sizeof(text), "MAINPID=%u", (unsigned)pid);
	if (n->enabled)
		send_or_keep(n, text);
	n->barrier = n->enabled;
	n->enabled = n->store_again = false;
}

void
notify_unstore(struct notify *n)
{
	n->store_again = false;
	send_or_keep(n, unstore);
}

void
notify_store(struct notify *n, const struct listen_socket_list *list)
{
	int fds[STORE_BATCH];

	send_kept(n);
	bool sent = n->kept_cnt == 0 && notify_send_now(unstore, NULL, 0);
	for (unsigned i = 0; i < list->cnt && sent;) {
		unsigned cnt = 0;

		for (; cnt < STORE_BATCH && i < list->cnt; i++)
			if (!list->v[i].unit)
				fds[cnt++] = list->v[i].fd;
		if (cnt > 0)
			sent = notify_send_now("FDSTORE=1\nFDNAME=" NOTIFY_FDNAME, fds, cnt);
	}
	n->store_again = !sent;
}

bool
notify_store_due(const struct notify *n, int64_t now_ns)
{
	return n->enabled && n->store_again && now_ns >= n->again_ns;
}

bool
notify_watchdog_due(const struct notify *n, int64_t now_ns)
{
	return n->enabled && n->watchdog_ns != 0 && now_ns >= n->watchdog_at_ns;
}

static void
send_status(struct notify *n, int64_t now_ns, void (*describe)(void *arg, char *buf, size_t cap), void *arg)
{
	char status[NOTIFY_STATUS_MAX] = "", text[NOTIFY_STATUS_MAX + sizeof("STATUS=")];

	describe(arg, status, sizeof(status));
	for (char *p = status; *p != '\0'; p++)
		if (*p == '\n')
			*p = ' ';
	snprintf(text, sizeof(text), "STATUS=%s", status);
	if (strcmp(status, n->status) != 0 && notify_send_now(text, NULL, 0))
		strcpy(n->status, status);
	n->status_at_ns = now_ns + STATUS_INTERVAL_NS;
}

int64_t
notify_turn(struct notify *n, int64_t now_ns, void (*describe)(void *arg, char *buf, size_t cap), void *arg)
{
	int64_t next = INT64_MAX;

	if ((n->kept_cnt > 0 || n->store_again) && now_ns >= n->again_ns) {
		send_kept(n);
		n->again_ns = now_ns + NOTIFY_AGAIN_NS;
	}
	if (n->kept_cnt > 0 || n->store_again)
		next = n->again_ns;
	if (!n->enabled)
		return next;
	if (now_ns >= n->status_at_ns)
		send_status(n, now_ns, describe, arg);
	if (notify_watchdog_due(n, now_ns))
		n->watchdog_at_ns = now_ns +
		    (notify_send_now("WATCHDOG=1", NULL, 0) ? n->watchdog_ns : NOTIFY_AGAIN_NS);
	if (n->watchdog_ns != 0)
		next = min_i64(next, n->watchdog_at_ns);
	return min_i64(next, n->status_at_ns);
}

void
notify_end(struct notify *n)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };
	int ends[2] = { -1, -1 };
	/* Systemd knows the sender of a text as long as that lives. When it has read all, it closes this pipe. */
	bool done = !n->barrier || pipe2(ends, O_CLOEXEC) != 0;

	for (unsigned ms = 0; ms < NOTIFY_END_MS; ms += 10) {
		send_kept(n);
		done = done || (n->kept_cnt == 0 && notify_send_now("BARRIER=1", &ends[1], 1));
		if (done && n->kept_cnt == 0)
			break;
		(void)nanosleep(&pause, NULL);
	}
	if (ends[0] < 0)
		return;
	close(ends[1]);
	if (done)
		(void)poll(&(struct pollfd){ .fd = ends[0] }, 1, NOTIFY_END_MS);
	close(ends[0]);
}
