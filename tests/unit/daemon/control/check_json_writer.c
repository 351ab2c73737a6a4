#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "daemon/control/json_writer.h"
#include "unit.h"

static struct outbuf out;
static struct json_writer jw;

static void
start(size_t cap)
{
	ck_assert_int_eq(outbuf_init(&out, cap), 0);
	jw = (struct json_writer){ .out = &out };
}

/* Compares what was written and forgets it. */
static void
ends_as(const char *want)
{
	ck_assert(!out.overflow);
	ck_assert_uint_eq(out.len, strlen(want));
	ck_assert(memcmp(outbuf_data(&out), want, out.len) == 0);
	outbuf_fini(&out);
}

START_TEST(writes_every_type_in_objects_and_arrays)
{
	start(512);
	jw_object(&jw, NULL);
	jw_string(&jw, "s", "text");
	jw_string(&jw, "none", NULL);
	jw_uint(&jw, "u", UINT64_MAX);
	jw_int(&jw, "i", INT64_MIN);
	jw_bool(&jw, "t", true);
	jw_bool(&jw, "f", false);
	jw_null(&jw, "n");
	jw_array(&jw, "a");
	jw_int(&jw, NULL, -1);
	jw_string(&jw, NULL, "");
	jw_object(&jw, NULL);
	jw_object_end(&jw);
	jw_array(&jw, NULL);
	jw_array_end(&jw);
	jw_array_end(&jw);
	jw_object_end(&jw);
	jw_end(&jw);
	ends_as(
	    "{\"s\":\"text\",\"none\":\"\",\"u\":18446744073709551615,\"i\":-9223372036854775808,\"t\":true,"
	    "\"f\":false,\"n\":null,\"a\":[-1,\"\",{},[]]}\n");
}

static const struct {
	const char *in, *json;
} strings[] = {
	{ "\"\\/", "\"\\\"\\\\/\"" },
	{ "\b\f\n\r\t\x01\x1f", "\"\\u0008\\u000c\\u000a\\u000d\\u0009\\u0001\\u001f\"" },
	{ "\x7f\xc2\x80\xc2\x9b\xc2\xa0", "\"\\u007f\\u0080\\u009b\xc2\xa0\"" },
	{ "é€😀", "\"é€😀\"" },
	{ "a\xff"
	  "b",
	    "\"a\\ufffdb\"" },
	{ "\xc3", "\"\\ufffd\"" }, /* cut short by the end */
	{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
	{ "\xc0\x80", "\"\\ufffd\\ufffd\"" }, /* longer than needed */
	{ "\xe0\x80\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
	{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },            /* a surrogate */
	{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" }, /* above 10FFFF */
	{ "\xf5", "\"\\ufffd\"" },
};

START_LOOP_TEST(escapes_strings, 0, sizeof(strings) / sizeof(strings[0]))
{
	start(512);
	jw_string(&jw, NULL, strings[_i].in);
	ends_as(strings[_i].json);
}

START_TEST(any_bytes_become_valid_json)
{
	unsigned seed = 7;

	for (int round = 0; round < 2000; round++) {
		char in[32] = "";
		json_error_t err;

		for (unsigned i = 0; i < sizeof(in) - 1; i++) {
			seed = seed * 1103515245 + 12345;
			in[i] = (char)(seed >> 16 | 0x80 * (round & 1));
		}
		start(512);
		jw_object(&jw, NULL);
		jw_string(&jw, in, in);
		jw_object_end(&jw);
		jw_end(&jw);
		ck_assert(!out.overflow);
		json_t *root = json_loadb(outbuf_data(&out), out.len, 0, &err);
		ck_assert_msg(root != NULL, "round %d: %s", round, err.text);
		json_decref(root);
		outbuf_fini(&out);
	}
}

START_TEST(a_full_buffer_is_noticed_and_not_crossed)
{
	start(16);
	jw_string(&jw, NULL, "0123456789abc");
	ck_assert(!out.overflow);
	jw_string(&jw, NULL, "x");
	ck_assert(out.overflow);
	ck_assert_uint_le(out.len, 16);
	outbuf_fini(&out);
}

START_TEST(depth_is_used_in_full)
{
	start(64);
	for (int i = 0; i < JSON_WRITER_DEPTH; i++)
		jw_array(&jw, NULL);
	for (int i = 0; i < JSON_WRITER_DEPTH; i++)
		jw_array_end(&jw);
	jw_end(&jw);
	ends_as("[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n");
}

/* Each is a mistake of the caller and ends the program. */
START_LOOP_TEST_SIGNAL(wrong_nesting_is_asserted, SIGABRT, 0, 8)
{
	start(64);
	switch (_i) {
	case 0: /* a value in an object needs a key */
		jw_object(&jw, NULL);
		jw_int(&jw, NULL, 1);
		break;
	case 1: /* none in an array */
		jw_array(&jw, NULL);
		jw_int(&jw, "key", 1);
		break;
	case 2: /* nor at the top */
		jw_int(&jw, "key", 1);
		break;
	case 3:
		jw_object(&jw, NULL);
		jw_array_end(&jw);
		break;
	case 4:
		jw_array(&jw, NULL);
		jw_object_end(&jw);
		break;
	case 5:
		jw_object_end(&jw);
		break;
	case 6:
		jw_object(&jw, NULL);
		jw_end(&jw);
		break;
	default:
		for (int i = 0; i <= JSON_WRITER_DEPTH; i++)
			jw_array(&jw, NULL);
		break;
	}
}

START_TEST(outbuf_gives_back_in_order_and_moves_up)
{
	start(8);
	outbuf_put(&out, "abcdef", 6);
	outbuf_consume(&out, 4);
	outbuf_put(&out, "ghijkl", 6);
	ck_assert_uint_eq(outbuf_room(&out), 0);
	ck_assert(memcmp(outbuf_data(&out), "efghijkl", 8) == 0);
	outbuf_putc(&out, 'm');
	ck_assert(out.overflow);
	outbuf_consume(&out, 8);
	ck_assert_uint_eq(outbuf_room(&out), 8);
	outbuf_fini(&out);
}
