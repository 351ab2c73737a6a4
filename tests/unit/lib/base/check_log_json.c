/* Log lines as JSON: golden lines, hostile values, and every line a JSON object of its own. stderr is a temporary file here. */
#include "base/log_json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static FILE *out;
static char text[65536];

/* Each test is a process of its own (check forks). */
static void
capture(void)
{
	out = tmpfile();
	ck_assert_ptr_nonnull(out);
	ck_assert_int_ge(dup2(fileno(out), STDERR_FILENO), 0);
	log_init(LOG_LVL_INFO);
	log_set_json(true);
}

/* The lines since the last call without their times, which are checked. */
static const char *
captured(void)
{
	static char line[65536];
	size_t at = 0;

	text[0] = '\0';
	rewind(out);
	while (fgets(line, sizeof(line), out) != NULL) {
		json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		int year, month, ms;

		ck_assert_msg(json_is_object(root), "%s", line);
		ck_assert_int_eq(sscanf(line, "{\"time\":\"%d-%2dT%*d:%*2d:%*2d.%3dZ\",", &year, &month, &ms), 2);
		ck_assert(year >= 2020 && month >= 1 && month <= 12);
		json_decref(root);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", strchr(line, ',') + 1);
	}
	ck_assert_int_eq(ftruncate(fileno(out), 0), 0);
	rewind(out);
	return text;
}

/* As log_msg() with this format makes it. */
#define LINE(want, ...)                                   \
	do {                                              \
		log_msg(LOG_LVL_NOTICE, __VA_ARGS__);     \
		ck_assert_str_eq(captured(), want "}\n"); \
	} while (0)
#define NOTICE(message) "\"level\":\"notice\",\"message\":\"" message "\""

START_TEST(fields_are_members)
{
	capture();
	LINE(NOTICE("ready"), "ready");
	LINE(NOTICE("no ingress: nothing to do"), "no ingress: nothing to do");
	LINE(NOTICE("worker silent") ",\"worker\":2,\"s\":-5", "worker silent: worker=%u s=%lld", 2u, -5LL);
	LINE(NOTICE("name found again") ",\"name\":\"a b\",\"again_in_s\":7", "%s: name=%s again_in_s=%u",
	    "name found again", "a b", 7u);
	LINE(NOTICE("it \\\"fails\\\"") ",\"why\":\"no \\\"x\\\"\"", "it \"fails\": why=\"%s\"", "no \"x\"");
	LINE(NOTICE("closed") ",\"mode\":\"TCP\",\"code\":\"0x01\",\"detail\":\"a b\",\"from_client\":9",
	    "closed: mode=%s%s from_%s=%llu", "TCP", " code=0x01 detail=\"a b\"", "client", 9ULL);
	/* A text has the type of its format, whatever it is. */
	LINE(NOTICE("removed") ",\"service\":\"80\"", "removed: service=%s", "80");
	LINE(NOTICE("a level") ",\"level_\":\"debug\",\"time_\":\"x\"", "a level: level=%s time=%s", "debug", "x");
	/* No fields in the format: none in the line. */
	LINE(NOTICE("t.conf:2: bad: a=b"), "%s", "t.conf:2: bad: a=b");
}

START_TEST(a_value_makes_no_field)
{
	capture();
	LINE(
	    NOTICE("refused") ",\"why\":\"x\\\" uid=\\\"0\",\"pid\":3", "refused: why=\"%s\" pid=%d", "x\" uid=\"0", 3);
	LINE(NOTICE("x\\u000aforged: uid=0") ",\"pid\":3", "%s: pid=%d", "x\nforged: uid=0", 3);
	/* With the marks of the format in it a value takes the fields, and the line stays. */
	LINE(NOTICE("refused: why=\\\"x\\\" uid=0\\\"\\\" pid=3"), "refused: why=\"%s\" pid=%d",
	    "x\2 uid\3"
	    "0\2",
	    3);
	LINE(NOTICE("refused: why=\\\"xa=1\\\" pid=3"), "refused: why=\"%s\" pid=%d", "x\1a=1", 3);
}

START_TEST(all_bytes_are_json)
{
	char value[256];

	capture();
	for (int i = 1; i < 256; i++)
		value[i - 1] = (char)i;
	value[255] = '\0';
	log_msg(LOG_LVL_NOTICE, "bytes: all=\"%s\" n=%d", value, 1);
	captured();
	ck_assert_ptr_nonnull(strstr(text, "\\u001b"));
	ck_assert_ptr_nonnull(strstr(text, "\\u007f\\ufffd\\ufffd"));
	LINE(NOTICE("bytes") ",\"c1\":\"\\u0085\",\"euro\":\"\u20ac\"", "bytes: c1=\"%s\" euro=\"%s\"", "\xc2\x85",
	    "\u20ac");
}

START_TEST(a_long_line_is_cut_and_stays_json)
{
	static char big[5000];

	capture();
	memset(big, 0xff, sizeof(big) - 1);
	log_msg(LOG_LVL_NOTICE, "x: a=%d big=\"%s\"", 1, big);
	ck_assert_uint_lt(strlen(captured()), LOG_JSON_MAX);
	ck_assert_ptr_nonnull(strstr(text, "...\"}\n"));
	log_msg(LOG_LVL_NOTICE, "x: a=%d b=\"%.500s\" c=%d", 1, big, 2);
	ck_assert_ptr_nonnull(strstr(captured(), "\",\"c\":2}\n"));
	const struct log_field fields[] = { { "a", big, false }, { "b", big, false }, { "c", "3", true } };
	log_fields(LOG_LVL_INFO, "many", fields, 3);
	ck_assert_ptr_nonnull(strstr(captured(), "\",\"c\":3}\n"));
}

START_TEST(known_fields_keep_their_types)
{
	const struct log_field fields[] = { { "service", "80", false }, { "after_ms", "12", true },
		{ "n", "1x", true } };

	capture();
	log_fields(LOG_LVL_WARNING, "fallback ends", fields, 3);
	ck_assert_str_eq(captured(),
	    "\"level\":\"warning\",\"message\":\"fallback ends\",\"service\":\"80\",\"after_ms\":12,\"n\":\"1x\"}\n");
}

START_TEST(text_again)
{
	capture();
	log_set_json(false);
	log_msg(LOG_LVL_NOTICE, "a: b=%d", 1);
	rewind(out);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), out));
	ck_assert_ptr_nonnull(strstr(text, " notice: a: b=1\n"));
}
