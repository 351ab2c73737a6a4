/* Templates; see template.h. */
#include "ctl/template.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/text.h"

#define KEY_MAX 64

static const json_t *
member(const json_t *o, const char *path, size_t len)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		char key[KEY_MAX];

		n = strcspn(path + at, ".");
		if (n > len - at)
			n = len - at;
		snprintf(key, sizeof(key), "%.*s", (int)n, path + at);
		o = json_object_get(o, key);
	}
	return o;
}

/* -- conditions -- */

/* Of an array, how many items it has. */
static int64_t
number_of(const json_t *v)
{
	return json_is_array(v) ? (int64_t)json_array_size(v) : json_integer_value(v);
}

static bool
is_true(const json_t *v)
{
	const char *s = json_string_value(v);

	return json_is_true(v) || number_of(v) > 0 || (s != NULL && s[0] != '\0');
}

/* beginning: what comes behind it may be anything. */
static bool
equals(const json_t *v, const char *want, size_t len, bool beginning)
{
	const char *s = json_string_value(v);
	char other[HUMAN_MAX] = "";

	if (json_is_integer(v) || json_is_array(v))
		snprintf(other, sizeof(other), "%" PRId64, number_of(v));
	else if (json_is_boolean(v))
		strcpy(other, json_is_true(v) ? "true" : "false");
	if (s == NULL)
		s = other;
	return strncmp(s, want, len) == 0 && (beginning || s[len] == '\0');
}

bool
template_holds(const json_t *o, const char *condition)
{
	for (const char *term = condition;; term++) {
		bool opposite = *term == '!';
		size_t len = strcspn(term, ",?"), path = strcspn(term, "=~,?");
		const json_t *v = member(o, term + opposite, path - opposite);
		bool fits = path < len ? equals(v, term + path + 1, len - path - 1, term[path] == '~') : is_true(v);

		if (fits != opposite)
			return true;
		term += len;
		if (*term != ',')
			return false;
	}
}

/* -- members -- */

static int64_t
sum(const json_t *o, const char *paths, size_t len)
{
	int64_t all = 0;

	for (size_t at = 0, n; at < len; at += n + 1) {
		n = strcspn(paths + at, "+:");
		all += number_of(member(o, paths + at, n));
	}
	return all;
}

/* Local time: with the date to the millisecond, without to the microsecond. */
static void
format_time(char buf[HUMAN_MAX], int64_t us, bool date)
{
	time_t sec = (time_t)(us / 1000000);
	int rest = (int)(us % 1000000);
	char text[24] = "";
	struct tm tm;

	if (localtime_r(&sec, &tm) != NULL)
		strftime(text, sizeof(text), date ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	snprintf(buf, HUMAN_MAX, "%s.%0*d", text, date ? 3 : 6, date ? rest / 1000 : rest);
}

static void
format_number(char buf[HUMAN_MAX], int64_t v, char kind)
{
	if (kind == 's')
		snprintf(buf, HUMAN_MAX, "%s", plural(v));
	else if (kind == 'T' || kind == 'D')
		format_time(buf, v, kind == 'D');
	else if (kind == 'q')
		snprintf(buf, HUMAN_MAX, "0x%06" PRIx64, (uint64_t)v);
	else if (v < 0)
		snprintf(buf, HUMAN_MAX, "-");
	else if (kind == 't')
		human_duration(buf, v);
	else if (kind == 'u')
		human_us(buf, v);
	else if (kind == 'n')
		snprintf(buf, HUMAN_MAX, "%" PRId64, v);
	else
		human_bytes(buf, (uint64_t)v);
	if (kind == 'B')
		strcat(buf, v >= 1024 ? "iB" : "B");
}

/* The field at t, behind its brace: returns what follows it. */
static const char *
write_field(FILE *f, const json_t *o, const char *t)
{
	const size_t len = strcspn(t, ":}");
	const char *end = t + strcspn(t, "}"), *format = t[len] == ':' ? t + len + 1 : end;
	char kind = '\0', buf[HUMAN_MAX];

	if (f == NULL)
		return end + 1;
	if (isalpha((unsigned char)*format))
		kind = *format++;
	const json_t *v = member(o, t, len);
	const char *text = json_string_value(v);
	if (kind != '\0') {
		format_number(buf, sum(o, t, len), kind);
		text = buf;
	}
	fprintf(f, "%*s", (int)strtol(format, NULL, 10), text != NULL ? text : "");
	for (size_t i = 0; text == NULL && i < json_array_size(v); i++) {
		const char *s = json_string_value(json_array_get(v, i));

		fprintf(f, "%s%s", i > 0 ? "," : "", s != NULL ? s : "");
	}
	return end + 1;
}

/* -- text with sections; f is NULL where nothing is to be written, and t is read to the end of the section -- */

static const char *write_text(FILE *f, const json_t *, const char *t);

/* Returns the end of the section that follows '['. */
static const char *
write_section(FILE *f, const json_t *o, const char *t)
{
	size_t len = strcspn(t, "?*|[]{");

	if (t[len] == '*') {
		const json_t *list = member(o, t, len);

		if (f != NULL && json_is_object(list))
			write_text(f, list, t + len + 1);
		for (size_t i = 0; f != NULL && i < json_array_size(list); i++)
			write_text(f, json_array_get(list, i), t + len + 1);
		return write_text(NULL, o, t + len + 1);
	}
	for (;;) {
		bool has_condition = t[len] == '?', taken = f != NULL && (!has_condition || template_holds(o, t));

		t = write_text(taken ? f : NULL, o, has_condition ? t + len + 1 : t);
		if (taken)
			f = NULL;
		if (*t != '|')
			return t;
		t++;
		len = strcspn(t, "?*|[]{");
	}
}

static const char *
write_text(FILE *f, const json_t *o, const char *t)
{
	for (;;) {
		size_t len = strcspn(t, "{[|]");

		if (f != NULL)
			fwrite(t, 1, len, f);
		t += len;
		if (*t == '{')
			t = write_field(f, o, t + 1);
		else if (*t == '[')
			t = write_section(f, o, t + 1) + 1;
		else
			return t;
	}
}

void
template_write(FILE *f, const json_t *o, const char *template)
{
	write_text(f, o, template);
}

char *
template_str(const json_t *o, const char *template)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	write_text(f, o, template);
	fclose(f);
	return text;
}

void
template_print(FILE *f, const json_t *o, const char *template)
{
	char *text = template_str(o, template);

	print_clean(f, text != NULL ? text : "(out of memory)\n", true);
	free(text);
}

bool
template_is_missing(const json_t *o, const char *template)
{
	return template[0] == '{' && member(o, template + 1, strcspn(template + 1, "+:}")) == NULL;
}
