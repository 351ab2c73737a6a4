/* What is logged goes to a file instead of standard error, for tests of log lines. */
#pragma once

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "checks.h"

static struct {
	FILE *file;
	int stderr_fd;
	char text[65536];
} captured;

static inline void
capture_begin(enum log_level level)
{
	log_init(level);
	captured.file = tmpfile();
	captured.stderr_fd = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(captured.file), STDERR_FILENO), 0);
}

/* What was logged since capture_begin or the last call; valid until the next one. */
static inline char *
capture_take(void)
{
	rewind(captured.file);
	size_t n = fread(captured.text, 1, sizeof(captured.text) - 1, captured.file);
	captured.text[n] = '\0';
	ck_assert_int_eq(ftruncate(fileno(captured.file), 0), 0);
	rewind(captured.file);
	return captured.text;
}

/* The number of lines that were logged since the last call; the lines are in captured.text. */
static inline unsigned
capture_lines(void)
{
	unsigned lines = 0;

	for (const char *p = capture_take(); (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	return lines;
}

/* One line, with these words in it. */
static inline void
capture_one_line(const char *wanted)
{
	unsigned lines = capture_lines();

	ck_assert_msg(lines == 1 && strstr(captured.text, wanted) != NULL, "%u lines, want \"%s\":\n%s", lines, wanted,
	    captured.text);
}

static inline void
capture_end(void)
{
	log_init(LOG_LVL_ERROR);
	(void)dup2(captured.stderr_fd, STDERR_FILENO);
	close(captured.stderr_fd);
	fclose(captured.file);
}
