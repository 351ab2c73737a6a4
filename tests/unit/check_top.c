/* The view of smcrctl top, made of the very JSON that check_report.c holds the daemon to. */
#include <stdlib.h>
#include <string.h>

#include "ctl/top.h"
#include "golden.h"
#include "unit.h"

static json_t *status, *conns;

static json_t *
load(const char *golden)
{
	char *text = golden_read(golden);
	json_t *root = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(root);
	free(text);
	return root;
}

static void
setup(void)
{
	status = load("control/status.json");
	conns = load("control/connections.json");
}

static void
teardown(void)
{
	json_decref(status);
	json_decref(conns);
}

/* To be freed. */
static char *
look(struct top *t, int64_t time_ms, const char *service)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	top_show(t, f, json_object_get(status, "data"), json_object_get(conns, "data"), time_ms, service);
	fclose(f);
	return text;
}

static void
carry(size_t i, const char *key, json_int_t bytes)
{
	json_t *c = json_array_get(json_object_get(json_object_get(conns, "data"), "connections"), i);

	json_object_set_new(c, key, json_integer(json_integer_value(json_object_get(c, key)) + bytes));
}

UNIT_FIXTURE(setup, teardown);

START_TEST(the_first_look_has_no_rates_the_second_one_sorts_by_them)
{
	struct top t = { 0 };
	char *text = look(&t, 1000000, NULL);

	golden_compare("control/top-first.txt", text);
	free(text);
	carry(1, "bytes_to_app", 3 << 20);
	carry(2, "bytes_from_app", 5000);
	json_t *web = json_array_get(json_object_get(json_object_get(status, "data"), "services"), 0);
	json_object_set_new(web, "accepted", json_integer(json_integer_value(json_object_get(web, "accepted")) + 5));
	text = look(&t, 1002000, NULL);
	golden_compare("control/top.txt", text);
	free(text);
	top_fini(&t);
}

START_TEST(one_service_and_so_many_rows_are_shown)
{
	struct top t = { .rows = 1 };
	char *text = look(&t, 1000, "web");
	unsigned lines = 0;

	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	/* the head, a service, a connection; two headings, two empty lines */
	ck_assert_uint_eq(lines, 7);
	ck_assert_ptr_null(strstr(text, "db "));
	free(text);
	top_fini(&t);
}

/* A daemon that was started anew counts from 0. */
START_TEST(counts_that_go_back_are_no_rates)
{
	struct top t = { 0 };

	carry(0, "bytes_to_app", 1 << 20);
	free(look(&t, 1000, NULL));
	carry(0, "bytes_to_app", -(1 << 20));
	char *text = look(&t, 2000, NULL);
	ck_assert_ptr_null(strchr(text, '-') != NULL ? strstr(text, " -1") : NULL);
	free(text);
	top_fini(&t);
}

/* What another version, or no smcrd at all, might say. */
START_TEST(anything_is_survived)
{
	static const char *const junk[] = { "{}", "[]", "{\"connections\":7,\"services\":{}}",
		"{\"connections\":[1,{},{\"id\":\"x\"}],\"services\":[null,{\"name\":5}]}" };
	struct top t = { 0 };

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
		json_t *data = json_loads(junk[i], 0, NULL);
		char *text = NULL;
		size_t len;
		FILE *f = open_memstream(&text, &len);

		ck_assert_ptr_nonnull(data);
		top_show(&t, f, data, data, 1000 + (int64_t)i, NULL);
		fclose(f);
		ck_assert_ptr_nonnull(strstr(text, "smcrd "));
		free(text);
		json_decref(data);
	}
	top_fini(&t);
}

static void
painted(const char *text, unsigned rows, unsigned columns, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *f = open_memstream(&got, &len);

	top_paint(f, text, rows, columns);
	fclose(f);
	ck_assert_str_eq(got, want);
	free(got);
}

START_TEST(a_screen_is_filled_and_no_more)
{
	painted("one\ntwo\n", 24, 80, "\033[Hone\033[K\r\ntwo\033[K\033[J");
	painted("one\ntwo\nthree\n", 2, 2, "\033[Hon\033[K\r\ntw\033[K\033[J");
	painted("", 24, 80, "\033[H\033[J");
	/* Characters of several bytes are whole. */
	painted("\xc3\xa9\xc3\xa9\xc3\xa9", 24, 2, "\033[H\xc3\xa9\xc3\xa9\033[K\033[J");
}
