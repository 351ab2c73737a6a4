/* The page: well formed, nothing of a name is markup, nothing from elsewhere, bounded; compared with a golden file. */
#include "daemon/metrics/page.h"

#include <stdlib.h>
#include <string.h>

#include "fake_report.h"
#include "golden.h"
#include "unit.h"

static struct snapshot seen;
static struct page_view view;
static char *html;

static void
write_page(void)
{
	size_t len;
	FILE *f = open_memstream(&html, &len);

	if (view.service[0] == '\0')
		page_write(&seen, &view, f);
	else
		ck_assert(page_write_service(&seen, &view, f));
	fclose(f);
}

static void
make(bool idle)
{
	static const struct report_event events[] = {
		{ 1763719000000000, EVENT_LINK_DOWN, "", "link down: <1>" },
		{ 1763719190000000, EVENT_GROUP_UP, "web", "link group up" },
		{ 1663719190000000, EVENT_SERVER_UNREACHABLE, "other", "long ago" },
	};

	fake_report_rows(&seen, idle);
	for (unsigned i = 0; i < 3 && !idle; i++)
		snapshot_add(&seen, REPORT_EVENT, &events[i]);
	write_page();
}

static void
setup(void)
{
	seen = (struct snapshot){ .bytes_max = 1 << 24 };
	html = NULL;
	view = (struct page_view){ .service = "" };
}

static void
teardown(void)
{
	snapshot_fini(&seen);
	free(html);
}

UNIT_FIXTURE(setup, teardown);

static const char *const golden[] = { "metrics/page.txt", "metrics/page-idle.txt", "metrics/page-service.txt" };

START_LOOP_TEST(the_page_is_as_always, 0, 3)
{
	strcpy(view.service, _i == 2 ? "web" : "");
	make(_i == 1);
	golden_compare(golden[_i], html);
}

/* Every element that is opened is closed, in order, but for those that have no end. */
START_LOOP_TEST(elements_are_closed_in_order, 0, 3)
{
	static const char *const single[] = { "!DOCTYPE", "meta", "link" };
	char stack[16][16];
	unsigned depth = 0;

	strcpy(view.service, _i == 2 ? "web" : "");
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
	ck_assert_ptr_null(strstr(html, "http-equiv"));
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
	ck_assert_ptr_nonnull(strstr(html, ">100099<"));
	ck_assert_ptr_null(strstr(html, ">100100<"));
	ck_assert_ptr_nonnull(strstr(html, "and 900 more"));
}

static void
add_services(unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		char name[16];
		const struct service_info info = { .connections = i % 2, .accepted = i };
		struct report_service row = { .name = name, .info = info };

		snprintf(name, sizeof(name), "s%03u", i);
		if (i == 7)
			strcpy(row.outage.text, "cannot be connected");
		snapshot_add(&seen, REPORT_SERVICE, &row);
	}
}

START_TEST(services_have_pages)
{
	add_services(250);
	write_page();
	ck_assert_ptr_nonnull(strstr(html, ">s099</a>"));
	ck_assert_ptr_null(strstr(html, ">s100</a>"));
	ck_assert_ptr_nonnull(
	    strstr(html, "1 to 100 of 250 <a href=\"/?show=all&#38;from=100#services\">next</a></p>"));
	free(html);
	view.from = 200;
	write_page();
	ck_assert_ptr_nonnull(strstr(html, ">s249</a>"));
	ck_assert_ptr_nonnull(
	    strstr(html, "201 to 250 of 250 <a href=\"/?show=all&#38;from=100#services\">previous</a></p>"));
	free(html);
	view.from = 900;
	write_page();
	ck_assert_ptr_nonnull(strstr(html, "0 to 0 of 250"));
}

START_LOOP_TEST(services_are_filtered, PAGE_ALL, PAGE_SHOW_CNT)
{
	static const char *const counts[] = { "of 10<", "of 5<", "of 1<" };

	add_services(10);
	view.show = (enum page_show)_i;
	write_page();
	ck_assert_ptr_nonnull(strstr(html, counts[_i]));
	ck_assert((strstr(html, ">s006</a>") != NULL) == (_i == PAGE_ALL));
	ck_assert_ptr_nonnull(strstr(html, ">s007</a></td><td class=\"wrap bad\">down for "));
}

/* Red is what is wrong: neither clients that reset when they are done, nor what was refused long ago. */
START_LOOP_TEST(red_is_what_is_wrong_now, 0, 2)
{
	const struct service_info info = {
		.accepted = 100, .resets = 95, .resets_client = 91 + 4 * (_i == 0), .refused_allow = 3
	};
	struct report_history h = { .name = "web", .step_ms = 5000 };

	snapshot_add(&seen, REPORT_SERVICE, &(struct report_service){ .name = "web", .info = info });
	h.at[HISTORY_SAMPLES - 1].refused = (uint32_t)_i;
	snapshot_add(&seen, REPORT_HISTORY, &h);
	write_page();
	ck_assert_ptr_nonnull(strstr(
	    html, _i == 0 ? "<td class=\"\">0 and 95 by clients</td>" : "<td class=\"warn\">4 and 91 by clients</td>"));
	ck_assert_ptr_nonnull(
	    strstr(html, _i == 0 ? "<td class=\"\">3 not allowed</td>" : "<td class=\"bad\">3 not allowed</td>"));
}

START_TEST(a_link_to_a_service_is_no_markup)
{
	snapshot_add(&seen, REPORT_SERVICE, &(struct report_service){ .name = "a\"&b" });
	write_page();
	ck_assert_ptr_nonnull(strstr(html, "<a href=\"/service?name=%61%22%26%62\">a&#34;&#38;b</a>"));
}

START_TEST(events_are_marks_and_lines)
{
	strcpy(view.service, "web");
	make(false);
	ck_assert_ptr_nonnull(
	    strstr(html, "<path class=\"mark \" d=\"M590 0V80\"><title>link group up</title></path>"));
	ck_assert_ptr_null(strstr(html, "long ago"));
	ck_assert_ptr_null(strstr(html, "link down"));
}

START_TEST(a_service_that_is_not_there_has_no_page)
{
	ck_assert(!page_write_service(&seen, &(struct page_view){ .service = "nope" }, stderr));
}
