/* Text that becomes lines of the log: at which level each, and which one stands for all. */
#include "daemon/log/log_lines.h"

#include "captured.h"
#include "unit.h"

static void
setup(void)
{
	capture_begin(LOG_LVL_INFO);
}

UNIT_FIXTURE(setup, capture_end);

/* What was logged, without the time of day. */
static const char *
logged(void)
{
	static const size_t time_len = sizeof("2024-01-01 00:00:00.000 ") - 1;
	static char out[4096];
	size_t used = 0;

	out[0] = '\0';
	for (char *line = strtok(capture_take(), "\n"); line != NULL; line = strtok(NULL, "\n")) {
		ck_assert_uint_gt(strlen(line), time_len);
		used += (size_t)snprintf(out + used, sizeof(out) - used, "%s\n", line + time_len);
		ck_assert_uint_lt(used, sizeof(out));
	}
	return out;
}

static const struct {
	const char *text, *logged, *shown;
} texts[] = {
	{ "", "", "" },
	{ "one\n", "error: one\n", "one" },
	{ "no end of line", "error: no end of line\n", "no end of line" },
	{ "one\ntwo\n", "error: one\nerror: two\n", "one" },
	{ "f:1: warning: odd\n", "warning: f:1: odd\n", "f:1: warning: odd" },
	{ "warning: odd\nf:2: warning: very\n", "warning: odd\nwarning: f:2: very\n", "f:2: warning: very" },
	{ "warning: odd\none\nwarning: very\ntwo\n", "warning: odd\nerror: one\nwarning: very\nerror: two\n", "one" },
	/* An empty line is none in the log. */
	{ "warning: odd\n\nwarning: very\n", "warning: odd\nwarning: very\n", "" },
};

START_LOOP_TEST(each_line_has_its_level, 0, sizeof(texts) / sizeof(texts[0]))
{
	const char *shown = log_lines(texts[_i].text, LOG_LVL_ERROR);

	ck_assert_uint_eq(strcspn(shown, "\n"), strlen(texts[_i].shown));
	ck_assert_int_eq(strncmp(shown, texts[_i].shown, strlen(texts[_i].shown)), 0);
	ck_assert_str_eq(logged(), texts[_i].logged);
}

START_TEST(what_is_not_logged_at_its_level_is_shown_all_the_same)
{
	ck_assert_str_eq(log_lines("one\n", LOG_LVL_DEBUG), "one\n");
	ck_assert_str_eq(logged(), "");
}

/* The place that the word took is not counted: both begin with as much of the line. */
START_LOOP_TEST(a_long_line_is_cut, 0, 2)
{
	char text[2048], want[2048];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	if (_i == 1)
		memcpy(text, "warning: ", 9);
	(void)log_lines(text, LOG_LVL_ERROR);
	int head = snprintf(want, sizeof(want), "%s: ", _i == 1 ? "warning" : "error");
	memset(want + head, 'x', 900);
	strcpy(want + head + 900, "\n");
	ck_assert_str_eq(logged(), want);
}
