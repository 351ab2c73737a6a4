/* The page: well formed, nothing of a name is markup, nothing from elsewhere, bounded; compared with a golden file. */
#include "daemon/metrics/page.h"

#include <stdlib.h>
#include <string.h>

#include "fake_report.h"
#include "golden.h"
#include "unit.h"

static struct snapshot seen;
static char *html;

static void
write_page(void)
{
	size_t len;
	FILE *f = open_memstream(&html, &len);

	page_write(&seen, f);
	fclose(f);
}

static void
make(bool idle)
{
	fake_report_rows(&seen, idle);
	write_page();
}

static void
setup(void)
{
	seen = (struct snapshot){ .bytes_max = 1 << 24 };
	html = NULL;
}

static void
teardown(void)
{
	snapshot_fini(&seen);
	free(html);
}

UNIT_FIXTURE(setup, teardown);

START_LOOP_TEST(the_page_is_as_always, 0, 2)
{
	make(_i == 1);
	golden_compare(_i == 0 ? "metrics/page.html" : "metrics/page-idle.html", html);
}

/* Every element that is opened is closed, in order, but for those that have no end. */
START_LOOP_TEST(elements_are_closed_in_order, 0, 2)
{
	static const char *const single[] = { "!DOCTYPE", "meta", "link" };
	char stack[16][16];
	unsigned depth = 0;

	make(_i == 1);
	for (const char *p = strchr(html, '<'); p != NULL; p = strchr(p + 1, '<')) {
		bool end = p[1] == '/', alone = false;
		char name[16];

		ck_assert_int_eq(sscanf(p + 1 + end, "%15[!a-zA-Z0-9]", name), 1);
		for (unsigned i = 0; i < 3; i++)
			alone = alone || strcmp(name, single[i]) == 0;
		if (end) {
			ck_assert_uint_gt(depth, 0);
			ck_assert_str_eq(stack[--depth], name);
		} else if (!alone) {
			ck_assert_uint_lt(depth, 16);
			strcpy(stack[depth++], name);
		}
	}
	ck_assert_uint_eq(depth, 0);
}

START_TEST(nothing_comes_from_elsewhere)
{
	make(false);
	ck_assert_ptr_null(strstr(html, "<script"));
	ck_assert_ptr_null(strstr(html, "http:"));
	ck_assert_ptr_null(strstr(html, "https:"));
	ck_assert_ptr_null(strstr(html, "url("));
	ck_assert_ptr_nonnull(strstr(html, "http-equiv=\"refresh\""));
}

START_TEST(names_are_no_markup)
{
	struct service_info info = { .connections = 1 };
	const struct report_service row = { .name = "<b x='y'>&amp;\"\033", .info = info };

	snapshot_add(&seen, REPORT_SERVICE, &row);
	write_page();
	ck_assert_ptr_null(strstr(html, "<b x"));
	ck_assert_ptr_nonnull(strstr(html, "&#60;b x=&#39;y&#39;&#62;&#38;amp;&#34;?"));
}

/* As when a reload takes a service away between two reports. */
START_TEST(what_is_missing_is_shown_as_nothing)
{
	write_page();
	ck_assert_ptr_nonnull(strstr(html, "</html>"));
	ck_assert_ptr_nonnull(strstr(html, "<h2>Services</h2><div class=\"box\"><div class=\"none\">none</div>"));
}

START_TEST(a_table_is_bounded)
{
	for (uint32_t i = 0; i < 1000; i++) {
		const struct report_group row = { .g = { .id = 100000 + i, .state = "active", .failover_age_ns = -1 } };

		snapshot_add(&seen, REPORT_GROUP, &row);
	}
	write_page();
	ck_assert_ptr_nonnull(strstr(html, ">100199<"));
	ck_assert_ptr_null(strstr(html, ">100200<"));
	ck_assert_ptr_nonnull(strstr(html, "and 800 more"));
}
