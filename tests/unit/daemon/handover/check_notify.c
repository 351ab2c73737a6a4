/* Notifications while systemd does not read: what is kept, in which order, what is sent again. */
#include "daemon/handover/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define MS 1000000LL
#define TEXT_MAX 65536

static struct notify n;
static int manager;
static char heard[TEXT_MAX];
static unsigned fds; /* that came */
static int described;

static void
setup(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);

	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(manager, (struct sockaddr *)&un, len), 0);
	len = sizeof(un);
	ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&un, &len), 0);
	un.sun_path[0] = '@';
	un.sun_path[len - offsetof(struct sockaddr_un, sun_path)] = '\0';
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	setenv("WATCHDOG_USEC", "400000", 1);
	unsetenv("WATCHDOG_PID");
	notify_init(&n, 0);
}

static void
teardown(void)
{
	close(manager);
}

UNIT_FIXTURE(setup, teardown);

/* Until there is no room. */
static void
fill(void)
{
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_eq(getsockname(manager, (struct sockaddr *)&un, &len), 0);
	while (sendto(fd, "F", 1, 0, (struct sockaddr *)&un, len) == 1)
		;
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
}

/* All that has come since, but for what filled it, each with a bar behind it. */
static const char *
hear(void)
{
	char text[512], control[CMSG_SPACE(253 * sizeof(int))];
	ssize_t len;

	heard[0] = '\0';
	for (;;) {
		struct iovec iov = { text, sizeof(text) };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
		};

		len = recvmsg(manager, &msg, MSG_CMSG_CLOEXEC);
		if (len < 0)
			break;
		if (len > 1)
			strncat(strncat(heard, text, (size_t)len), "|", 2);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		for (size_t i = 0; c != NULL && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++, fds++)
			close(((int *)(void *)CMSG_DATA(c))[i]);
	}
	ck_assert_int_eq(errno, EAGAIN);
	return heard;
}

static void
describe(void *arg, char *buf, size_t cap)
{
	(void)arg;
	snprintf(buf, cap, "status %d", described);
}

static int64_t
turn(int64_t at_ms)
{
	return notify_turn(&n, at_ms * MS, describe, NULL) / MS;
}

START_TEST(with_room_all_is_sent_at_once)
{
	notify_ready(&n);
	ck_assert_str_eq(hear(), "READY=1|");
	ck_assert_int_eq(turn(0), 200);
	ck_assert_str_eq(hear(), "STATUS=status 0|WATCHDOG=1|");
	ck_assert_int_eq(turn(100), 200);
	ck_assert_str_eq(hear(), "");
	notify_stopping(&n, 5000);
	ck_assert_str_eq(hear(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000|");
}

START_TEST(without_room_the_state_is_kept_in_order)
{
	fill();
	notify_reloading(&n);
	notify_ready(&n);
	ck_assert_int_eq(turn(0), 100); /* again then: state, status, sign of life */
	(void)hear();
	notify_stopping(&n, 0); /* before the next attempt: what is kept comes first */
	turn(100);
	const char *p = strstr(hear(), "RELOADING=1\nMONOTONIC_USEC=");
	ck_assert_ptr_eq(p, heard);
	ck_assert_ptr_nonnull(strstr(p, "|READY=1|STOPPING=1\n"));
	ck_assert_ptr_nonnull(strstr(p, "|STATUS=status 0|"));
	ck_assert_ptr_nonnull(strstr(p, "|WATCHDOG=1|"));
	ck_assert_int_eq(turn(100), 300);
}

START_TEST(the_sign_of_life_is_tried_again_soon)
{
	turn(0);
	fill();
	ck_assert_int_eq(turn(200), 300);
	ck_assert_ptr_null(strstr(hear(), "|WATCHDOG=1|F"));
	ck_assert_int_eq(turn(300), 500);
	ck_assert_str_eq(hear(), "WATCHDOG=1|");
}

START_TEST(the_last_ones_are_kept)
{
	fill();
	for (int i = 0; i < 100; i++)
		notify_reloading(&n);
	notify_ready(&n);
	(void)hear();
	turn(0);
	unsigned cnt = 0;
	for (const char *p = hear(); (p = strstr(p, "RELOADING")) != NULL; p++)
		cnt++;
	ck_assert_uint_eq(cnt, NOTIFY_KEPT - 1);
	ck_assert_ptr_nonnull(strstr(heard, "|READY=1|"));
}

START_TEST(sockets_are_stored_again)
{
	struct listen_socket socks[100];
	struct listen_socket_list list = { .v = socks, .cnt = 100 };

	for (unsigned i = 0; i < 100; i++) {
		socks[i] = LISTEN_SOCKET_NONE;
		socks[i].fd = manager;
	}
	fill();
	notify_store(&n, &list);
	ck_assert(notify_store_due(&n, 0));
	ck_assert_int_eq(turn(0), 100);
	ck_assert(!notify_store_due(&n, 99 * MS));
	notify_store(&n, &list);
	(void)hear();
	ck_assert_uint_eq(fds, 0);
	ck_assert(notify_store_due(&n, 100 * MS));
	notify_store(&n, &list);
	ck_assert_str_eq(hear(),
	    "FDSTOREREMOVE=1\nFDNAME=smcrd-listen|FDSTORE=1\nFDNAME=smcrd-listen|FDSTORE=1\nFDNAME=smcrd-listen|");
	ck_assert_uint_eq(fds, 100);
	ck_assert(!notify_store_due(&n, 200 * MS));
}

START_TEST(a_successor_is_named_when_there_is_room)
{
	turn(0);
	fill();
	notify_successor(&n, 77);
	(void)hear();
	ck_assert_int_eq(turn(50), INT64_MAX / MS);
	ck_assert_str_eq(hear(), "MAINPID=77|");
}

START_LOOP_TEST(the_end_waits_until_the_successor_is_known, 0, 2)
{
	struct pollfd p = { .fd = manager, .events = POLLIN };
	char all[256] = "";
	int status;

	if (_i == 1)
		fill();
	notify_successor(&n, 77);
	const pid_t pid = fork();
	if (pid == 0) {
		notify_end(&n);
		_exit(0);
	}
	while (strstr(all, "BARRIER") == NULL) {
		ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
		ck_assert_int_eq(poll(&p, 1, 5000), 1);
		strncat(all, hear(), sizeof(all) - strlen(all) - 1);
	}
	ck_assert_str_eq(all, "MAINPID=77|BARRIER=1|");
	ck_assert_uint_eq(fds, 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(other_ends_wait_for_nothing)
{
	notify_end(&n);
	ck_assert_str_eq(hear(), "");
}
