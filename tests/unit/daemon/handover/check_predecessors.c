/* Processes that were taken over: found by their sockets, watched, signalled, no more than there may be. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/handover/predecessors.h"
#include "unit.h"

static struct loop *loop;
static struct predecessors p;
static char dir[64], path[80], said[256];
static pid_t children[PREDECESSORS_MAX + 1];
static unsigned child_cnt, ends;

static int
listen_at(const char *suffix)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s%s", path, suffix);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	return fd;
}

/* A client that says nothing is one that looks. */
static void
serve(int fd)
{
	char line[128] = "";
	int client = accept(fd, NULL, NULL);

	if (read(client, line, sizeof(line) - 1) > 0)
		_exit(strcmp(line, "{\"command\":\"drain\",\"then_exit\":true}\n") != 0);
	close(client);
}

/* A process that listens beside path, until its end is requested. */
static void
begin_child(void)
{
	char suffix[16], byte;
	int ready[2];

	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(suffix, sizeof(suffix), ".%d", (int)getpid());
		int fd = listen_at(suffix);
		(void)!write(ready[1], "1", 1);
		for (;;)
			serve(fd);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	children[child_cnt++] = pid;
}

static void
on_end(void *arg)
{
	ck_assert_ptr_eq(arg, &ends);
	ends++;
	loop_stop(loop);
}

static int
find(void)
{
	FILE *err = fmemopen(said, sizeof(said), "w");
	int rc = predecessors_find(&p, path, err);

	fclose(err);
	return rc;
}

static void
setup(void)
{
	strcpy(dir, "/tmp/check_predecessors.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	child_cnt = ends = 0;
	loop = loop_new();
	predecessors_init(&p, loop, on_end, &ends);
}

static void
teardown(void)
{
	char command[128];

	predecessors_fini(&p);
	loop_free(loop);
	for (unsigned i = 0; i < child_cnt; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(they_are_found_by_their_sockets_and_watched)
{
	begin_child();
	begin_child();
	close(listen_at(".77")); /* of one that was killed */
	close(listen_at(".7x"));
	const int own = listen_at("");
	ck_assert_int_eq(find(), 0);
	ck_assert_uint_eq(p.cnt, 2);
	ck_assert_int_eq(find(), 0); /* the same ones */
	ck_assert_uint_eq(p.cnt, 2);
	char left[96];
	struct stat st;
	snprintf(left, sizeof(left), "%s.77", path);
	ck_assert_int_ne(stat(left, &st), 0);
	snprintf(left, sizeof(left), "%s.7x", path);
	ck_assert_int_eq(stat(left, &st), 0);
	kill(children[0], SIGKILL);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(p.cnt, 1);
	predecessors_end(&p, 0);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(p.cnt, 0);
	ck_assert_uint_eq(ends, 2);
	int status;
	ck_assert_int_eq(waitpid(children[1], &status, 0), children[1]);
	ck_assert_int_eq(status, 0);
	child_cnt = 1;
	close(own);
}

START_TEST(there_is_a_limit)
{
	for (unsigned i = 0; i < PREDECESSORS_MAX; i++)
		begin_child();
	ck_assert_int_eq(find(), 0);
	ck_assert_uint_eq(p.cnt, PREDECESSORS_MAX);
	begin_child();
	ck_assert_int_eq(find(), -E2BIG);
	ck_assert_ptr_nonnull(strstr(said, "16 processes that were taken over serve connections still"));
	ck_assert_uint_eq(p.cnt, PREDECESSORS_MAX);
}

START_TEST(no_directory_is_no_error)
{
	strcat(path, "/none/control");
	ck_assert_int_eq(find(), 0);
	ck_assert_uint_eq(p.cnt, 0);
	snprintf(path, sizeof(path), "%s/control", dir);
}
