/* The log's thread: order, a reader that stands still, what is lost and reported, the end. stderr is a pipe or a socket here. */
#include "base/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

#define LINES 20000 /* more than there is room for */
#define PIPE_ROOM 4096

static int from;
static char text[4 * 1024 * 1024];
static size_t text_len;

/* Each test is a process of its own (check forks). */
static void
capture(int flags)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, flags), 0);
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_ROOM);
	ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
	close(ends[1]);
	from = ends[0];
	(void)unsetenv("JOURNAL_STREAM");
	log_init(LOG_LVL_INFO);
	ck_assert_int_eq(log_start(), 0);
}

/* Reads until this is there, or for good: until nobody has the pipe. */
static void
take_until(const char *what)
{
	struct pollfd p = { .fd = from, .events = POLLIN };

	while (what == NULL || strstr(text, what) == NULL) {
		ck_assert_msg(poll(&p, 1, 60000) == 1, "nothing for a minute, behind %zu bytes", text_len);
		ssize_t n = read(from, text + text_len, sizeof(text) - 1 - text_len);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		text_len += (size_t)n;
		text[text_len] = '\0';
	}
}

static void
log_many(unsigned cnt, const char *name)
{
	for (unsigned i = 0; i < cnt; i++)
		log_msg(
		    LOG_LVL_INFO, "%s=%u. and words, so that the line is as long as lines are in real life", name, i);
}

/* Each line of a name is there, or its place has the count of those that are not; returns how many are not. */
static unsigned
lost_of(const char *name, unsigned cnt)
{
	char key[16];
	unsigned next = 0, lost = 0, nr;

	(void)snprintf(key, sizeof(key), "info: %s=", name);
	for (char *p = text, *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
		*end = '\0';
		const char *at = strstr(p, key), *count = strstr(p, "warning: log lines lost");
		if (count != NULL) {
			nr = (unsigned)atoi(strstr(count, "count=") + 6);
			lost += nr;
			next += nr;
		} else if (at != NULL) {
			ck_assert_uint_eq((unsigned)atoi(at + strlen(key)), next);
			next++;
		}
		*end = '\n';
	}
	ck_assert_uint_eq(next, cnt);
	return lost;
}

static void *
logs(void *arg)
{
	log_many(LINES, arg);
	return NULL;
}

START_TEST(a_stalled_reader_blocks_no_caller)
{
	capture(O_CLOEXEC);
	log_many(LINES, "n"); /* comes back */
	take_until("count=");
	log_msg(LOG_LVL_INFO, "again");
	take_until("again\n");
	unsigned lost = lost_of("n", LINES);
	ck_assert_uint_gt(lost, 0);
	ck_assert_uint_lt(lost, LINES - 1000);
	ck_assert_uint_eq(log_counters().lines_lost, lost);
}

START_TEST(one_that_is_made_not_to_block_gets_all_lines)
{
	capture(O_CLOEXEC | O_NONBLOCK);
	log_many(1000, "n");
	take_until("n=999.");
	ck_assert_uint_eq(lost_of("n", 1000), 0);
}

START_TEST(lines_of_several_threads_are_written_or_counted)
{
	pthread_t t[2];
	unsigned long long seen = 0;

	capture(O_CLOEXEC);
	ck_assert_int_eq(pthread_create(&t[0], NULL, logs, "one"), 0);
	ck_assert_int_eq(pthread_create(&t[1], NULL, logs, "two"), 0);
	(void)pthread_join(t[0], NULL);
	(void)pthread_join(t[1], NULL);
	take_until("lost");
	log_msg(LOG_LVL_INFO, "the end");
	take_until("the end\n");
	for (const char *p = text; (p = strstr(p, "count=")) != NULL; p++)
		seen += strtoull(p + 6, NULL, 10);
	for (const char *p = text; (p = strstr(p, "info: ")) != NULL; p++)
		seen++;
	ck_assert_uint_eq(seen, 2 * LINES + 1);
}

START_TEST(at_the_end_all_is_written)
{
	capture(O_CLOEXEC);
	(void)fcntl(from, F_SETPIPE_SZ, 16 * PIPE_ROOM);
	log_many(400, "n");
	log_stop();
	close(STDERR_FILENO);
	take_until(NULL);
	ck_assert_uint_eq(lost_of("n", 400), 0);
}

START_TEST(the_end_does_not_wait_for_long)
{
	capture(O_CLOEXEC);
	log_many(LINES, "n");
	log_stop();
	log_msg(LOG_LVL_INFO, "nor do those behind it");
	log_stop();
}

START_TEST(without_the_thread_the_caller_writes)
{
	capture(O_CLOEXEC);
	log_stop();
	log_msg(LOG_LVL_INFO, "first");
	ck_assert_int_ge(read(from, text, sizeof(text) - 1), 10);
	ck_assert_ptr_nonnull(strstr(text, "info: first\n"));
}

/* -- entries -- */

static bool takes;

static bool
send_it(const char *entry, size_t len)
{
	return takes && write(STDERR_FILENO, entry, len) == (ssize_t)len;
}

START_TEST(an_entry_goes_its_way_or_is_a_line)
{
	capture(O_CLOEXEC);
	log_entry(LOG_LVL_INFO, "a line", send_it, "an entry\n");
	take_until("info: a line\n");
	ck_assert_ptr_null(strstr(text, "an entry"));
	takes = true;
	log_entry(LOG_LVL_INFO, "no line", send_it, "an entry\n");
	log_msg(LOG_LVL_INFO, "behind it");
	take_until("behind it\n");
	ck_assert_ptr_nonnull(strstr(text, "a line\nan entry\n"));
	ck_assert_ptr_null(strstr(text, "no line"));
}

/* A disk that is full, a reader that is gone. */
START_TEST(lines_that_fail_are_counted)
{
	capture(O_CLOEXEC);
	int to = dup(STDERR_FILENO);

	ck_assert_int_eq(dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDERR_FILENO), STDERR_FILENO);
	log_many(7, "n");
	log_stop(); /* all has been tried by then */
	ck_assert_int_eq(dup2(to, STDERR_FILENO), STDERR_FILENO);
	ck_assert_int_eq(log_start(), 0);
	log_msg(LOG_LVL_INFO, "again");
	take_until("count=7\n");
	ck_assert_uint_eq(log_counters().lines_lost, 7);
}
