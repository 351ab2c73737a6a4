/* Text messages logged line by line; see log/log_lines.h. */
#include "daemon/log/log_lines.h"

#include <string.h>

#define LINE_MAX_LEN 900

/* The level shows that a line is a warning, so the word is removed. */
static void
log_line(const char *line, size_t len, const char *word, enum log_level level)
{
	static const size_t word_len = sizeof("warning: ") - 1;
	size_t head = word != NULL ? (size_t)(word - line) : 0, tail = word != NULL ? head + word_len : 0;

	if (word != NULL)
		level = LOG_LVL_WARNING;
	if (len > LINE_MAX_LEN + tail)
		len = LINE_MAX_LEN + tail;
	log_msg(level, "%.*s%.*s", (int)head, line, (int)(len - tail), line + tail);
}

const char *
log_lines(const char *text, enum log_level level)
{
	const char *shown = text;
	bool error = false;

	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		const char *warning = memmem(text, len, "warning: ", 9);

		if (len > 0)
			log_line(text, len, warning, level);
		if (!error)
			shown = text;
		error = error || warning == NULL;
	}
	return shown;
}
