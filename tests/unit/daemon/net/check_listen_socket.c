/* Files of listening sockets: mode and owner, whose file it is, what stands in its place. */
#include "daemon/net/listen_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "unit.h"

static char dir[64], path[96], text[512];
static bool starts; /* not a reload */

static void
setup(void)
{
	starts = true;
	strcpy(dir, "/tmp/check_lsock.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
}

static void
teardown(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left */
}

UNIT_FIXTURE(setup, teardown);

static int
try_open(struct listen_socket *l, uint32_t mode, uid_t owner, gid_t group)
{
	const struct listen_socket_file file = {
		.what = "test socket", .path = path, .mode = mode, .owner = owner, .group = group, .waits = starts
	};

	memset(text, 0, sizeof(text));
	FILE *err = fmemopen(text, sizeof(text), "w");
	int rc = listen_socket_open(l, &file, err);
	if (rc == 0)
		rc = listen_socket_start(l, file.what, 1, err);
	fclose(err);
	return rc;
}

static struct listen_socket
open_here(void)
{
	struct listen_socket l;

	ck_assert_msg(try_open(&l, 0600, (uid_t)-1, (gid_t)-1) == 0, "%s", text);
	return l;
}

static int
dial(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(sun.sun_path, path);
	int rc = connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

START_LOOP_TEST(a_file_has_its_mode_whatever_the_umask, 0, 3)
{
	static const mode_t modes[] = { 0600, 0666, 0777 };
	mode_t old = umask(_i == 0 ? 0 : 0077);
	struct listen_socket l;
	struct stat st;

	ck_assert_int_eq(try_open(&l, modes[_i], (uid_t)-1, (gid_t)-1), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFSOCK | modes[_i]);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_uint_eq(umask(old), _i == 0 ? 0 : 0077);
	listen_socket_close(&l);
	ck_assert_int_eq(lstat(path, &st), -1);
	listen_socket_close(&l);
}

START_TEST(a_file_gets_owner_and_group)
{
	struct listen_socket l;
	struct stat st;

	if (geteuid() != 0) {
		ck_assert_int_eq(try_open(&l, 0600, geteuid() + 1, (gid_t)-1), -EPERM);
		ck_assert_ptr_nonnull(strstr(text, "owner"));
		return;
	}
	ck_assert_msg(try_open(&l, 0600, 12345, 54321) == 0, "%s", text);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert(st.st_uid == 12345 && st.st_gid == 54321);
	listen_socket_close(&l);
}

/* Somebody else may lock the directory for ever. */
START_LOOP_TEST(a_lock_is_waited_for_where_that_may_be, 0, 2)
{
	const struct listen_socket_file file = {
		.what = "s", .path = path, .mode = 0600, .owner = (uid_t)-1, .group = (gid_t)-1, .waits = _i == 1
	};
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct listen_socket l;
	int64_t ms = 0;

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	for (int i = 0; i < 5; i++) {
		const int64_t from = clock_ms();
		ck_assert_int_eq(listen_socket_open(&l, &file, stderr), 0);
		ms = clock_ms() - from;
		listen_socket_close(&l);
		if (_i == 1 || ms < 500)
			break; /* else the machine itself may have stood still */
	}
	ck_assert_msg(_i == 1 ? ms >= 900 : ms < 500, "%lld ms", (long long)ms);
	close(fd);
}

/* A lock delays a start with many sockets by a second in all, not for each. */
START_TEST(a_lock_is_waited_for_once)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	const int64_t from = clock_ms();
	for (unsigned i = 0; i < 10; i++) {
		struct listen_socket l = open_here();

		listen_socket_close(&l);
	}
	const int64_t ms = clock_ms() - from;
	ck_assert_int_ge(ms, 990);
	ck_assert_int_lt(ms, 8000);
	close(fd);
}

/* A process that listens is not disturbed, not even by a connection. */
START_TEST(a_live_socket_is_left_alone)
{
	struct listen_socket l = open_here(), other;

	ck_assert_int_eq(try_open(&other, 0600, (uid_t)-1, (gid_t)-1), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(text, "a running daemon listens there"));
	ck_assert_int_eq(other.fd, -1);
	ck_assert_int_eq(accept4(l.fd, NULL, NULL, SOCK_NONBLOCK), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(dial(), 0);
	listen_socket_close(&l);
}

START_TEST(a_dead_socket_is_replaced)
{
	struct listen_socket l = open_here();

	close(l.fd); /* as if the process had been killed */
	ck_assert_int_eq(dial(), -ECONNREFUSED);
	struct listen_socket next = open_here();
	ck_assert_int_eq(dial(), 0);
	listen_socket_close(&next);
	ck_assert_int_eq(dial(), -ENOENT);
}

/* Somebody has removed the file of a live daemon, and another one has made its own. */
START_TEST(the_file_of_another_is_not_removed)
{
	struct listen_socket l = open_here();

	unlink(path);
	struct listen_socket other = open_here();
	listen_socket_close(&l);
	ck_assert_int_eq(dial(), 0);
	listen_socket_close(&other);
	ck_assert_int_eq(dial(), -ENOENT);
}

/* 0: it was not allowed, and the message has the words or has them not. */
static int
try_where_nothing_may_be_made(bool at_start)
{
	struct listen_socket l;

	starts = at_start;
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		return 2;
	return try_open(&l, 0600, (uid_t)-1, (gid_t)-1) == -EACCES && strstr(text, ": Permission denied") != NULL &&
	        (strstr(text, "see Confinement in smcrd(8)): \"systemctl reload smcrd\"") == NULL) == at_start
	    ? 0
	    : 1;
}

/* As Landlock answers to a reload: who stands in its way has to be named. At start it is the directory's mode alone. */
START_LOOP_TEST(a_reload_names_the_confinement, 0, 2)
{
	int status;

	ck_assert_int_eq(chmod(dir, 0555), 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		_exit(try_where_nothing_may_be_made(_i == 0));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(chmod(dir, 0700), 0);
}

START_TEST(what_is_no_socket_is_never_removed)
{
	struct listen_socket l;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	close(fd);
	ck_assert_int_eq(try_open(&l, 0600, (uid_t)-1, (gid_t)-1), -EEXIST);
	ck_assert_ptr_nonnull(strstr(text, "not a socket"));
	ck_assert_int_eq(access(path, F_OK), 0);
	unlink(path);
	ck_assert_int_eq(symlink("/dev/null", path), 0);
	ck_assert_int_eq(try_open(&l, 0600, (uid_t)-1, (gid_t)-1), -EEXIST);
	unlink(path);
	strcat(path, "/none/s");
	ck_assert_int_eq(try_open(&l, 0600, (uid_t)-1, (gid_t)-1), -ENOENT);
	ck_assert_ptr_nonnull(strstr(text, "its directory does not exist"));
}

/* One that systemd passes is used where it fits, and its file is systemd's. */
START_TEST(a_passed_socket_keeps_its_file)
{
	struct listen_socket made = open_here(), passed = listen_socket_of_fd(dup(made.fd));
	struct sockaddr_storage here, there;
	char addr[ADDR_STR_MAX];

	snprintf(addr, sizeof(addr), "unix:%s", path);
	ck_assert_int_eq(addr_parse_unix(addr, &here), 0);
	strcat(addr, "2");
	ck_assert_int_eq(addr_parse_unix(addr, &there), 0);
	ck_assert(listen_socket_listens_at(&passed, &here));
	ck_assert(!listen_socket_listens_at(&passed, &there));
	listen_socket_close(&passed);
	ck_assert_int_eq(dial(), 0);
	listen_socket_close(&made);
	/* Bound, and not listening. */
	passed = listen_socket_of_fd(socket(AF_UNIX, SOCK_STREAM, 0));
	ck_assert_int_eq(bind(passed.fd, (struct sockaddr *)&here, addr_len(&here)), 0);
	ck_assert(!listen_socket_listens_at(&passed, &here));
	listen_socket_close(&passed);
	ck_assert_int_eq(access(path, F_OK), 0);
}

/* Each worker accepts by its own copy; the file is that of the first alone. */
START_TEST(a_copy_has_no_file)
{
	struct listen_socket l = open_here(), copy = listen_socket_copy(&l);

	ck_assert_int_ge(copy.fd, 0);
	ck_assert_int_ne(copy.fd, l.fd);
	ck_assert_int_eq(fcntl(copy.fd, F_GETFD), FD_CLOEXEC);
	listen_socket_close(&copy);
	ck_assert_int_eq(dial(), 0);
	copy = listen_socket_copy(&l);
	listen_socket_close(&l);
	ck_assert_int_eq(dial(), -ENOENT);
	listen_socket_close(&copy);
	ck_assert_int_eq(listen_socket_copy(&l).fd, -1);
	ck_assert_int_eq(errno, EBADF);
}

/* Another process's, until it is ours. */
START_TEST(a_lent_file_stays)
{
	struct listen_socket l = open_here(), more = listen_socket_copy(&l), lent = l;

	ck_assert_int_eq(listen_socket_append(&l, &more), 0);
	listen_socket_set_lent(&l, true);
	ck_assert(l.lent && l.next->lent);
	lent.fd = dup(l.fd);
	listen_socket_close(&l);
	ck_assert_ptr_null(l.next);
	ck_assert_int_eq(access(path, F_OK), 0);
	listen_socket_set_lent(&lent, false);
	listen_socket_close(&lent);
	ck_assert_int_ne(access(path, F_OK), 0);
}

START_TEST(those_behind_it_are_closed_with_it)
{
	struct listen_socket l = open_here(), a = listen_socket_copy(&l), b = listen_socket_copy(&l);

	ck_assert_int_eq(listen_socket_append(&l, &a), 0);
	ck_assert_int_eq(listen_socket_append(&l, &b), 0);
	listen_socket_close(&l);
	ck_assert_int_eq(fcntl(a.fd, F_GETFD), -1);
	ck_assert_int_eq(fcntl(b.fd, F_GETFD), -1);
	ck_assert_int_ne(access(path, F_OK), 0);
}

START_TEST(a_list_has_other_descriptors_of_all_but_copies)
{
	struct listen_socket l = open_here(), copy = listen_socket_copy(&l), more = listen_socket_of_fd(dup(l.fd));
	const struct listen_socket none = LISTEN_SOCKET_NONE;
	struct listen_socket_list list = { 0 };

	ck_assert_int_eq(listen_socket_append(&l, &more), 0);
	ck_assert_int_eq(listen_socket_append(&l, &copy), 0);
	ck_assert_int_eq(listen_socket_list_add_copies(&list, &none), 0);
	ck_assert_int_eq(listen_socket_list_add_copies(&list, &l), 0);
	ck_assert_uint_eq(list.cnt, 2);
	ck_assert_int_ne(list.v[0].fd, l.fd);
	ck_assert_str_eq(list.v[0].path, path);
	listen_socket_list_fini(&list);
	ck_assert_int_eq(access(path, F_OK), 0);
	listen_socket_close(&l);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(listen_socket_list_add_copies(&list, &(struct listen_socket){ .fd = 1000 }), -EBADF);
	listen_socket_list_fini(&list);
}
