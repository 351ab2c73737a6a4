/* Log lines: level, prefix for journald, hostile bytes, length, rate limit. stderr is a temporary file here. */
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#define MS 1000000LL

static FILE *out;
static char text[65536];

/* Each test is a process of its own (check forks). */
static void
capture(enum log_level level, bool journal)
{
	char env[64];
	struct stat st;

	out = tmpfile();
	ck_assert_ptr_nonnull(out);
	ck_assert_int_ge(dup2(fileno(out), STDERR_FILENO), 0);
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(env, sizeof(env), "%llu:%llu", (unsigned long long)st.st_dev,
	    (unsigned long long)st.st_ino + (journal ? 0 : 1));
	ck_assert_int_eq(setenv("JOURNAL_STREAM", env, 1), 0);
	log_init(level);
}

static const char *
captured(void)
{
	rewind(out);
	size_t n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	return text;
}

static int
lines(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += *s == '\n';
	return n;
}

START_TEST(journald_gets_a_priority_and_no_time)
{
	capture(LOG_LVL_INFO, true);
	log_msg(LOG_LVL_ERROR, "a=%d", 1);
	log_msg(LOG_LVL_WARNING, "b");
	log_msg(LOG_LVL_NOTICE, "c");
	log_msg(LOG_LVL_INFO, "d");
	log_msg(LOG_LVL_DEBUG, "e");
	ck_assert_str_eq(captured(), "<3>a=1\n<4>b\n<5>c\n<6>d\n");
}

START_TEST(a_terminal_gets_time_and_word)
{
	int year;

	capture(LOG_LVL_INFO, false);
	log_msg(LOG_LVL_WARNING, "disk=%s", "full");
	ck_assert_int_eq(sscanf(captured(), "%d-", &year), 1);
	ck_assert_int_ge(year, 2020);
	ck_assert_ptr_nonnull(strstr(text, " warning: disk=full\n"));
}

START_TEST(the_level_can_be_changed)
{
	capture(LOG_LVL_ERROR, true);
	log_msg(LOG_LVL_DEBUG, "before");
	log_set_level(LOG_LVL_DEBUG);
	log_msg(LOG_LVL_DEBUG, "after");
	ck_assert_str_eq(captured(), "<7>after\n");
}

START_TEST(a_value_cannot_forge_a_line)
{
	capture(LOG_LVL_INFO, true);
	log_msg(LOG_LVL_INFO, "name=%s", "x\n<0>forged\x1b[31m\x7f");
	ck_assert_str_eq(captured(), "<6>name=x?<0>forged?[31m?\n");
}

START_TEST(a_long_line_is_cut_and_says_so)
{
	char big[5000];

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	capture(LOG_LVL_INFO, true);
	log_msg(LOG_LVL_INFO, "%s", big);
	captured();
	ck_assert_int_eq(lines(text), 1);
	ck_assert_uint_eq(strlen(text), 1024);
	ck_assert_str_eq(text + 1024 - 5, "a...\n");
}

START_TEST(a_peer_cannot_flood_the_log)
{
	struct log_limit l = { .burst = 3, .interval_ms = 1000 };

	capture(LOG_LVL_INFO, true);
	for (int i = 0; i < 10; i++)
		log_limited(&l, 5 * MS + i, LOG_LVL_INFO, "n=%d", i);
	ck_assert_str_eq(captured(), "<6>n=0\n<6>n=1\n<6>n=2\n");
	log_limited(&l, 2000 * MS, LOG_LVL_INFO, "n=10");
	ck_assert_int_eq(lines(captured()), 5);
	ck_assert_ptr_nonnull(strstr(text, "count=7\n<6>n=10\n"));
	ck_assert_uint_eq(l.dropped, 0);
}
