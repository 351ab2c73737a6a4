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

static json_t *
service_at(size_t i)
{
	return json_array_get(json_object_get(json_object_get(status, "data"), "services"), i);
}

static void
serve(size_t i, const char *key, json_int_t cnt)
{
	json_object_set_new(
	    service_at(i), key, json_integer(json_integer_value(json_object_get(service_at(i), key)) + cnt));
}

/* The look has a service in a line with these cells; text is freed. */
static void
expect_service(char *text, const char *name, const char *new, const char *from, const char *to)
{
	char got[4][32], line[64];

	(void)snprintf(line, sizeof(line), "\n%s ", name);
	const char *p = strstr(text, line);
	ck_assert_msg(p != NULL && sscanf(p + strlen(line), " %*s %*s %31s %31s %31s", got[0], got[1], got[2]) == 3,
	    "no service %s: %s", name, text);
	ck_assert_str_eq(got[0], new);
	ck_assert_str_eq(got[1], from);
	ck_assert_str_eq(got[2], to);
	free(text);
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
	serve(0, "bytes_from_app", 5000 + 2000); /* some of it of a connection that has come and gone */
	serve(1, "bytes_to_app", 3 << 20);
	serve(0, "accepted", 5);
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

START_TEST(a_service_has_the_bytes_of_connections_that_are_gone)
{
	struct top t = { 0 };

	json_array_clear(json_object_get(json_object_get(conns, "data"), "connections"));
	free(look(&t, 1000, NULL));
	serve(0, "accepted", 130);
	serve(0, "bytes_from_app", 20480);
	serve(0, "bytes_to_app", 400);
	expect_service(look(&t, 3000, NULL), "web", "65.0", "10K/s", "200/s");
	expect_service(look(&t, 5000, NULL), "web", "0.0", "0/s", "0/s");
	top_fini(&t);
}

/* A reload has brought it: it has moved all of its bytes since the last look. */
START_TEST(a_new_service_has_moved_all_that_it_has_counted)
{
	struct top t = { 0 };
	json_t *list = json_object_get(json_object_get(status, "data"), "services"), *web = json_incref(service_at(0));

	serve(0, "bytes_to_app", 2000 - json_integer_value(json_object_get(web, "bytes_to_app")));
	json_array_remove(list, 0);
	free(look(&t, 1000, NULL));
	json_array_insert_new(list, 0, web);
	expect_service(look(&t, 2000, NULL), "web", "10.0", "4K/s", "1.9K/s");
	/* One that it has taken out and brought back between two looks counts from 0 again. */
	serve(0, "accepted", -8);
	serve(0, "bytes_from_app", -4000);
	expect_service(look(&t, 3000, NULL), "web", "2.0", "96/s", "0/s");
	top_fini(&t);
}

/* Its counters are from 0 even where they are above those of the one before. */
static void
begin_anew(const char *key, json_int_t value)
{
	struct top t = { 0 };

	free(look(&t, 1000, NULL));
	serve(0, "bytes_from_app", 904);
	carry(0, "bytes_to_app", 120);
	json_object_set_new(json_object_get(status, "data"), key, json_integer(value));
	char *text = look(&t, 2000, NULL);
	ck_assert_ptr_nonnull(strstr(text, " 4K/s"));
	expect_service(text, "web", "10.0", "4.8K/s", "1.1T/s");
	top_fini(&t);
}

START_TEST(another_process_counts_from_0)
{
	begin_anew("pid", 4712);
}

/* Of the same number, as in a container. */
START_TEST(a_process_that_is_younger_counts_from_0)
{
	begin_anew("uptime_ms", 500);
}

START_TEST(a_daemon_that_does_not_tell_the_bytes_of_services_gives_no_rates)
{
	struct top t = { 0 };

	json_object_del(service_at(0), "bytes_from_app");
	json_object_del(service_at(0), "bytes_to_app");
	free(look(&t, 1000, NULL));
	expect_service(look(&t, 2000, NULL), "web", "0.0", "-", "-");
	top_fini(&t);
}

START_TEST(a_name_is_known_by_a_service_or_by_what_is_left_of_one)
{
	const json_t *s = json_object_get(status, "data"), *c = json_object_get(conns, "data");
	json_t *nothing = json_object();

	ck_assert(top_knows(s, c, "web") && top_knows(s, nothing, "web") && top_knows(nothing, c, "web"));
	ck_assert(!top_knows(s, c, "nope") && !top_knows(nothing, nothing, "web") && !top_knows(s, c, ""));
	ck_assert(top_knows(nothing, nothing, NULL));
	json_decref(nothing);
}

/* What has been counted twice, or too late, is no rate of less than nothing. */
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
	static const char *const junk[] = {
		"{}", "[]", "{\"connections\":7,\"services\":{}}",
		"{\"connections\":[1,{},{\"id\":\"x\"}],\"services\":[null,{\"name\":5}]}",
		"{\"connections\":[{\"id\":1,\"bytes_from_app\":-9223372036854775808}],"
		"\"services\":[{\"name\":\"a\",\"bytes_from_app\":-9223372036854775808}]}",
		"{\"connections\":[{\"id\":1,\"bytes_from_app\":9223372036854775807,\"bytes_to_app\":9223372036854775807}],"
		"\"services\":[{\"name\":\"a\",\"accepted\":9223372036854775807,\"bytes_to_app\":9223372036854775807}]}"
	};
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
