/* Numbers as text, and text for a terminal; see text.h. */
#include "ctl/text.h"

#include <inttypes.h>
#include <stdio.h>

char *
human_bytes(char buf[HUMAN_MAX], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	unsigned u = 0;
	uint64_t whole = bytes, rest = 0;

	while (whole >= 1024) {
		rest = whole % 1024;
		whole /= 1024;
		u++;
	}
	if (u == 0)
		snprintf(buf, HUMAN_MAX, "%" PRIu64, whole);
	else if (whole < 10 && rest >= 103) /* a tenth */
		snprintf(buf, HUMAN_MAX, "%" PRIu64 ".%" PRIu64 "%c", whole, rest * 10 / 1024, units[u - 1]);
	else
		snprintf(buf, HUMAN_MAX, "%" PRIu64 "%c", whole, units[u - 1]);
	return buf;
}

char *
human_duration(char buf[HUMAN_MAX], int64_t ms)
{
	int64_t s = ms / 1000;

	if (ms < 0)
		snprintf(buf, HUMAN_MAX, "-");
	else if (ms < 1000)
		snprintf(buf, HUMAN_MAX, "%" PRId64 "ms", ms);
	else if (s < 60)
		snprintf(buf, HUMAN_MAX, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
	else if (s < 3600)
		snprintf(buf, HUMAN_MAX, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, HUMAN_MAX, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
	else
		snprintf(buf, HUMAN_MAX, "%" PRId64 "d%02" PRId64 "h", s / 86400, s % 86400 / 3600);
	return buf;
}

char *
human_us(char buf[HUMAN_MAX], int64_t us)
{
	if (us < 0)
		snprintf(buf, HUMAN_MAX, "-");
	else if (us < 1000)
		snprintf(buf, HUMAN_MAX, "%" PRId64 "us", us);
	else if (us < 1000000)
		snprintf(buf, HUMAN_MAX, "%" PRId64 ".%" PRId64 "ms", us / 1000, us % 1000 / 100);
	else
		human_duration(buf, us / 1000);
	return buf;
}

char *
human_count(char buf[HUMAN_MAX], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = buf;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

const char *
plural(int64_t cnt)
{
	return cnt == 1 ? "" : "s";
}

/* Bytes of the control character at s, those from U+0080 to U+009F included; 0 when there is none. */
static unsigned
control_len(const char *s)
{
	unsigned char c = (unsigned char)s[0];

	if (c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0)
		return 2;
	return c < 0x20 || c == 0x7f;
}

void
print_clean(FILE *f, const char *text, bool newlines)
{
	while (*text != '\0') {
		unsigned n = newlines && *text == '\n' ? 0 : control_len(text);

		fputc(n > 0 ? '?' : *text, f);
		text += n > 0 ? n : 1;
	}
}
