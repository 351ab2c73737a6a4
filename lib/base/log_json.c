/* Log lines as JSON; see log_json.h. */
#include "base/log_json.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* In a text, where a value can have them only by malice. */
enum {
	MARK_FIELDS = 1, /* before the first field */
	MARK_QUOTE,
	MARK_NUMBER, /* for '=' */
	MARKS_END,
};

#define KEY_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"
#define DIGITS_MAX 18 /* of numbers that every reader takes */
#define KEYS_ROOM 640 /* kept free by values for the keys of all fields behind them */

/* -- marks -- */

/* The first field of a format, behind the colon of its phrase; NULL: none. A key may be, or have, a %s. */
static const char *
first_field(const char *fmt)
{
	for (const char *p = strstr(fmt, ": "); p != NULL; p = strstr(p + 1, ": ")) {
		const size_t len = strspn(p + 2, KEY_CHARS "%");

		if (len > 0 && p[2 + len] == '=')
			return p + 2;
	}
	return NULL;
}

static bool
is_number_format(const char *p)
{
	if (*p++ != '%')
		return false;
	p += strspn(p, "lzh");
	return *p != '\0' && strchr("diu", *p) != NULL;
}

unsigned
log_json_mark(const char *fmt, char *out, size_t cap)
{
	const char *fields = first_field(fmt);
	unsigned marks = 0;

	if (fields == NULL || strlen(fmt) + 2 > cap)
		return 0;
	for (const char *p = fmt; *p != '\0'; p++) {
		if (p == fields) {
			*out++ = MARK_FIELDS;
			marks++;
		}
		const bool quote = p > fields && *p == '"', number = p > fields && *p == '=' && is_number_format(p + 1);

		*out++ = quote ? MARK_QUOTE : number ? MARK_NUMBER : *p;
		marks += quote || number;
	}
	*out = '\0';
	return marks;
}

static bool
is_mark(char c)
{
	return c >= MARK_FIELDS && c < MARKS_END;
}

/* -- the line -- */

struct json_line {
	char *p;
	size_t len;
};

static void
put(struct json_line *l, const char *text, size_t len)
{
	memcpy(l->p + l->len, text, len);
	l->len += len;
}

/* A string; without its marks, those that are characters excepted. */
static void
put_string(struct json_line *l, const char *text, size_t len)
{
	char escaped[STR_JSON_MAX], plain[2] = "";
	size_t out_len;

	put(l, "\"", 1);
	for (const char *p = text; p < text + len && l->len < LOG_JSON_MAX - KEYS_ROOM;) {
		const bool mark = is_mark(*p);

		plain[0] = *p == MARK_QUOTE ? '"' : '=';
		const unsigned taken = str_json_char(mark ? plain : p, escaped, &out_len);
		if (*p != MARK_FIELDS)
			put(l, escaped, out_len);
		p += taken;
	}
	put(l, "\"", 1);
}

/* A key that the line itself has gets another name. */
static void
put_field(struct json_line *l, const char *key, size_t key_len, const char *value, size_t len, bool number)
{
	static const char *const own[] = { "time", "level", "message" };
	const size_t sign = len > 0 && *value == '-', digits = len - sign;

	put(l, ",\"", 2);
	put(l, key, key_len);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == key_len && memcmp(own[i], key, key_len) == 0)
			put(l, "_", 1);
	put(l, "\":", 2);
	if (number && digits > 0 && digits <= DIGITS_MAX && strspn(value + sign, "0123456789") >= digits)
		put(l, value, len);
	else
		put_string(l, value, len);
}

static struct json_line
json_begin(char *line, enum log_level level, const char *message, size_t len)
{
	struct json_line l = { .p = line };
	char now[LOG_TIME_LEN];

	l.len = (size_t)snprintf(line, LOG_JSON_MAX, "{\"time\":\"%s\",\"level\":\"%s\",\"message\":", log_time(0, now),
	    log_level_words[level]);
	put_string(&l, message, len);
	return l;
}

static size_t
json_end(struct json_line *l)
{
	put(l, "}\n", 2);
	return l->len;
}

/* The end of a value without quotes: before the next field, or the end of the text. */
static const char *
value_end(const char *p)
{
	for (; *p != '\0'; p++) {
		const size_t len = *p == ' ' ? strspn(p + 1, KEY_CHARS) : 0;

		if (len > 0 && (p[1 + len] == '=' || p[1 + len] == MARK_NUMBER))
			break;
	}
	return p;
}

/* All fields from p on; false: there is something else. */
static bool
put_fields(struct json_line *l, const char *p)
{
	while (*p != '\0') {
		const size_t key_len = strspn(p, KEY_CHARS);
		const char sep = p[key_len], *value = p + key_len + 1;

		if (key_len == 0 || (sep != '=' && sep != MARK_NUMBER))
			return false;
		const bool quoted = *value == MARK_QUOTE || *value == '"';
		const char *stop = quoted ? strchr(value + 1, *value) : value_end(value);

		if (stop == NULL)
			return false;
		value += quoted;
		put_field(l, p, key_len, value, (size_t)(stop - value), sep == MARK_NUMBER);
		p = stop + quoted;
		if (*p == ' ')
			p++;
		else if (*p != '\0')
			return false;
	}
	return true;
}

size_t
log_json_line(char line[LOG_JSON_MAX], enum log_level level, const char *text, unsigned marks)
{
	const char *fields = strchr(text, MARK_FIELDS);
	unsigned found = 0;

	for (const char *p = text; *p != '\0'; p++)
		found += is_mark(*p);
	if (marks > 0 && found == marks && fields != NULL && fields - text > 2) {
		struct json_line l = json_begin(line, level, text, (size_t)(fields - text) - 2);

		if (put_fields(&l, fields + 1))
			return json_end(&l);
	}
	struct json_line l = json_begin(line, level, text, strlen(text));
	return json_end(&l);
}

size_t
log_json_fields(
    char line[LOG_JSON_MAX], enum log_level level, const char *message, const struct log_field *fields, unsigned cnt)
{
	struct json_line l = json_begin(line, level, message, strlen(message));

	for (unsigned i = 0; i < cnt; i++)
		put_field(&l, fields[i].key, strlen(fields[i].key), fields[i].value, strlen(fields[i].value),
		    fields[i].number);
	return json_end(&l);
}
