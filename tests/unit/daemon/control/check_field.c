/* Each form of a member: as JSON, as a number, as a text; members that are found by their path. */
#include "daemon/control/field.h"

#include <string.h>

#include "base/histogram.h"
#include "unit.h"

enum colour { RED, GREEN };

struct inner {
	uint16_t x;
};

struct row {
	uint8_t u8;
	uint16_t u16;
	uint32_t u32, known, unknown;
	uint64_t u64;
	int i;
	int64_t i64, ms, us, never;
	bool yes;
	const char *string, *null;
	char chars[8];
	enum colour colour;
	struct inner inner;
	struct field_array array, empty;
	struct histogram times;
};

static const char *const colours[] = { [RED] = "red", [GREEN] = "green" };

static const char *
twice(const void *member, char buf[FIELD_TEXT_MAX])
{
	snprintf(buf, FIELD_TEXT_MAX, "%s%s", (const char *)member, (const char *)member);
	return buf;
}

static void
write_two(struct json_writer *jw, const void *member)
{
	(void)member;
	jw_uint(jw, NULL, 1);
	jw_uint(jw, NULL, 2);
}

static const struct field inner_fields[] = { FIELD(struct inner, x, "x", ""), { .type = FIELD_END } };

static const struct field fields[] = {
	FIELD(struct row, u8, "u8", ""),
	FIELD(struct row, u16, "u16", ""),
	FIELD(struct row, u32, "u32", ""),
	FIELD(struct row, u64, "u64", ""),
	FIELD(struct row, i, "i", ""),
	FIELD(struct row, i64, "i64", ""),
	FIELD(struct row, yes, "yes", ""),
	FIELD(struct row, string, "string", ""),
	FIELD(struct row, null, "null", ""),
	FIELD(struct row, chars, "chars", ""),
	{ FIELD_AS(FIELD_KNOWN, struct row, known, "known", "") },
	{ FIELD_AS(FIELD_KNOWN, struct row, unknown, "unknown", "") },
	{ FIELD_AS(FIELD_MS, struct row, ms, "ms", "") },
	{ FIELD_AS(FIELD_US, struct row, us, "us", "") },
	{ FIELD_AS(FIELD_MS, struct row, never, "never", "") },
	{ FIELD_AS(FIELD_WORD, struct row, colour, "colour", ""), .words = colours },
	{ FIELD_AS(FIELD_TEXT, struct row, chars, "text", ""), .text = twice },
	{ FIELD_AS(FIELD_TIMES, struct row, times, "times", "") },
	{ FIELD_AS(FIELD_OBJECT, struct row, inner, "object", ""), .members = inner_fields },
	{ FIELD_AS(FIELD_INLINE, struct row, inner, NULL, NULL), .members = inner_fields },
	{ FIELD_AS(FIELD_ARRAY, struct row, array, "array", ""), .members = inner_fields,
	    .size = sizeof(struct inner) },
	{ FIELD_AS(FIELD_ARRAY, struct row, empty, "empty", ""), .members = inner_fields,
	    .size = sizeof(struct inner) },
	{ .name = "numbers", .type = FIELD_NUMBERS, .write = write_two },
	{ .name = "list", .type = FIELD_LIST, .members = inner_fields },
	FIELD(struct row, u8, "behind", ""),
	{ .type = FIELD_END },
};

static const struct inner elements[] = { { 7 }, { 8 } };

static const struct row row = {
	.u8 = UINT8_MAX,
	.u16 = UINT16_MAX,
	.u32 = UINT32_MAX,
	.known = 5,
	.u64 = UINT64_MAX,
	.i = -2,
	.i64 = INT64_MIN,
	.ms = 1999999,
	.us = 1999,
	.never = -1,
	.yes = true,
	.string = "a\"b",
	.chars = "xy",
	.colour = GREEN,
	.inner = { 9 },
	.array = { elements, 2 },
	.times = { .cnt = { 3 }, .sum = 4999 },
};

START_TEST(members_are_written_in_the_order_of_the_table)
{
	static const char expected[] =
	    "{\"u8\":255,\"u16\":65535,\"u32\":4294967295,\"u64\":18446744073709551615,\"i\":-2,"
	    "\"i64\":-9223372036854775808,\"yes\":true,\"string\":\"a\\\"b\",\"null\":\"\",\"chars\":\"xy\",\"known\":5,"
	    "\"unknown\":-1,\"ms\":1,\"us\":1,\"never\":-1,\"colour\":\"green\",\"text\":\"xyxy\","
	    "\"times\":{\"counts\":[3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],\"sum_us\":4},\"object\":{\"x\":9},\"x\":9,"
	    "\"array\":[{\"x\":7},{\"x\":8}],\"empty\":[],\"numbers\":[1,2],\"list\":[{\"x\":9}],\"behind\":255}\n";
	struct json_writer jw;
	struct outbuf out;

	ck_assert_int_eq(outbuf_init(&out, 4096), 0);
	jw = (struct json_writer){ .out = &out };
	jw_object(&jw, NULL);
	const struct field *rest = field_write(&jw, fields, &row);
	ck_assert_str_eq(rest->name, "behind");
	jw_object(&jw, NULL);
	ck_assert_int_eq(field_write(&jw, inner_fields, &row.inner)->type, FIELD_END);
	jw_object_end(&jw);
	jw_array_end(&jw);
	ck_assert_int_eq(field_write(&jw, rest, &row)->type, FIELD_END);
	jw_object_end(&jw);
	jw_end(&jw);
	outbuf_putc(&out, '\0');
	ck_assert_str_eq(outbuf_data(&out), expected);
	outbuf_fini(&out);
}

static const struct {
	const char *path;
	bool known;
	uint64_t value;
} numbers[] = {
	{ "u8", true, UINT8_MAX },
	{ "u64", true, UINT64_MAX },
	{ "yes", true, 1 },
	{ "i", false, 0 },
	{ "i64", false, 0 },
	{ "known", true, 5 },
	{ "unknown", false, 0 },
	{ "ms", true, 1 },
	{ "us", true, 1 },
	{ "never", false, 0 },
	{ "object.x", true, 9 },
	{ "x", true, 9 },
};

START_LOOP_TEST(numbers_are_found_by_their_path, 0, sizeof(numbers) / sizeof(numbers[0]))
{
	uint64_t value = 77;
	struct field f;

	ck_assert(field_find(fields, numbers[_i].path, &f));
	ck_assert(!field_is_text(&f));
	ck_assert(field_number(&f, &row, &value) == numbers[_i].known);
	ck_assert_uint_eq(value, numbers[_i].value);
}

START_LOOP_TEST(texts_are_found_by_their_path, 0, 5)
{
	static const char *const paths[] = { "string", "null", "chars", "colour", "text" };
	static const char *const values[] = { "a\"b", "", "xy", "green", "xyxy" };
	char buf[FIELD_TEXT_MAX];
	struct field f;

	ck_assert(field_find(fields, paths[_i], &f));
	ck_assert(field_is_text(&f));
	ck_assert_str_eq(field_text(&f, &row, buf), values[_i]);
}

START_LOOP_TEST(what_there_is_not_is_not_found, 0, 7)
{
	static const char *const paths[] = { "", "u", "u8.x", "object.", "object.y", "objec.x", "array.x" };
	struct field f = { .off = 77 };

	ck_assert(!field_find(fields, paths[_i], &f));
	ck_assert_uint_eq(f.off, 77);
}
