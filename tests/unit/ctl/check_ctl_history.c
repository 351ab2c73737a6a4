/* The last ten minutes as text: within 80 columns whatever a daemon says, peaks are not lost between characters, and what is not 0 is
 * seen. */
#include "ctl/history.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static char *text;

static void
setup(void)
{
	setenv("TZ", "UTC", 1);
	text = NULL;
}

static void
teardown(void)
{
	free(text);
	setlocale(LC_CTYPE, "C");
}

UNIT_FIXTURE(setup, teardown);

/* Zeros but for one sample. */
static json_t *
series(unsigned at, int64_t n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < HISTORY_SAMPLES_SHOWN; i++)
		json_array_append_new(a, json_integer(i == at ? n : 0));
	return a;
}

static json_t *
object(const char *name, unsigned at, int64_t n)
{
	static const char *const keys[] = { "smcr", "tcp", "setup", "accepted", "refused", "bytes_from_app",
		"bytes_to_app", "rtt_us" };
	json_t *o = json_pack("{s:s}", "name", name);

	for (unsigned i = 0; i < 8; i++)
		json_object_set_new(o, keys[i], series(at, n));
	return o;
}

static void
show(json_t *total, json_t *services)
{
	json_t *d = json_pack("{s:i, s:I, s:o, s:o}", "step_ms", 5000, "end_ms", (json_int_t)1763719200000, "total",
	    total, "services", services);
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(d);
	history_show(f, d);
	fclose(f);
	json_decref(d);
}

/* Characters of the longest line. */
static unsigned
width(void)
{
	unsigned most = 0, n = 0;

	for (const char *p = text; *p != '\0'; p++) {
		n = *p == '\n' ? 0 : n + (((unsigned char)*p & 0xc0) != 0x80);
		most = n > most ? n : most;
	}
	return most;
}

static void
expect_row(const char *words, unsigned at, const char *now, const char *peak, const char *all)
{
	char row[128];

	snprintf(row, sizeof(row), "\n%-10s %*s%*s %8s %8s", words, (int)at + 1, "@", 39 - (int)at, "", now, peak);
	if (all != NULL)
		snprintf(row + strlen(row), sizeof(row) - strlen(row), " %8s", all);
	strcat(row, "\n");
	ck_assert_msg(strstr(text, row) != NULL, "%s is not in\n%s", row, text);
}

START_TEST(a_peak_of_one_sample_is_seen)
{
	show(object("", 64, 1), json_array());
	ck_assert_ptr_nonnull(strstr(text, "All services, until 2025-11-21 10:00:00"));
	expect_row("on SMC-R", 21, "0", "1", NULL);
	expect_row("accepted", 21, "0.0/s", "0.2/s", "1");
}

/* A small value beside a large one as well; ASCII, or with UTF-8 blocks. */
START_LOOP_TEST(what_is_not_zero_is_seen, 0, 2)
{
	json_t *o = object("", 0, 1000000);

	if (_i == 1)
		ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	json_array_set_new(json_object_get(o, "tcp"), 119, json_integer(1));
	show(o, json_array());
	ck_assert_ptr_nonnull(strstr(text, _i == 0 ? "on TCP     @" : "on TCP     █"));
	ck_assert_ptr_nonnull(strstr(text, _i == 0 ? ".        1  1000000\n" : "▁        1  1000000\n"));
}

START_TEST(the_only_service_takes_the_place_of_all)
{
	show(object("", 0, 5),
	    json_pack("[o]",
	        object("we\x1b"
	               "b",
	            119, 7)));
	ck_assert_ptr_nonnull(strstr(text, "Service we?b, until"));
	expect_row("on TCP", 39, "7", "7", NULL);
	ck_assert_ptr_null(strstr(text, "CONNS"));
}

START_TEST(several_services_have_a_line_each)
{
	show(object("", 0, 5), json_pack("[o, o]", object("a", 0, 2048), object("b", 119, 1 << 20)));
	ck_assert_ptr_nonnull(strstr(text, "\na                  @"));
	ck_assert_ptr_nonnull(strstr(text, "0/s    819/s     0  2048\n"));
	ck_assert_ptr_nonnull(strstr(text, "@   409K/s   409K/s 2097152 1048576\n"));
}

/* Nothing but zeros, nothing at all, and the largest numbers with long names in characters of several bytes. */
START_LOOP_TEST(lines_fit_the_screen, 0, 3)
{
	char name[3 * 63 + 1] = "";

	for (unsigned i = 0; i < 63; i++)
		strcat(name, "€");
	if (_i == 0)
		show(object("", 0, 0), json_pack("[o, o]", object("a", 0, 0), object("b", 0, 0)));
	else if (_i == 1)
		show(json_null(), json_pack("[n, {}]"));
	else
		show(object("", 3, 99999), json_pack("[o, o]", object(name, 3, 99999), object(name, 4, 99999)));
	ck_assert_uint_le(width(), 80);
	if (_i == 2)
		ck_assert_ptr_nonnull(strstr(text, "€€€ "));
}

START_TEST(hostile_numbers_do_no_harm)
{
	show(object("", 3, INT64_MAX), json_pack("[o, o]", object("a", 3, INT64_MAX), object("b", 3, -1)));
	ck_assert_ptr_nonnull(strstr(text, "@"));
}
