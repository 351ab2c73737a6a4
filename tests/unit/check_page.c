/* The page: well formed, nothing of a name is markup, nothing from elsewhere, bounded; compared with a golden file. */
#include "daemon/metrics/page.h"

#include <stdlib.h>
#include <string.h>

#include "golden_documents.h"
#include "unit.h"

static struct documents docs;
static char *html;

static void
make(const char *kind)
{
	size_t len;

	golden_documents_load(&docs, kind);
	FILE *f = open_memstream(&html, &len);
	ck_assert_int_eq(page_write(&docs, f), 0);
	fclose(f);
}

static void
setup(void)
{
	docs = (struct documents){ .failed = false };
	html = NULL;
}

static void
teardown(void)
{
	for (unsigned i = 0; i < DOC_CNT; i++)
		free(docs.doc[i].p);
	free(html);
}

UNIT_FIXTURE(setup, teardown);

START_LOOP_TEST(the_page_is_as_always, 0, 2)
{
	make(_i == 0 ? "" : "-idle");
	golden_compare(_i == 0 ? "metrics/page.html" : "metrics/page-idle.html", html);
}

/* Every element that is opened is closed, in order, but for those that have no end. */
START_LOOP_TEST(elements_are_closed_in_order, 0, 2)
{
	static const char *const single[] = { "!DOCTYPE", "meta", "link" };
	char stack[16][16];
	unsigned depth = 0;

	make(_i == 0 ? "" : "-idle");
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
	make("");
	ck_assert_ptr_null(strstr(html, "<script"));
	ck_assert_ptr_null(strstr(html, "http:"));
	ck_assert_ptr_null(strstr(html, "https:"));
	ck_assert_ptr_null(strstr(html, "url("));
	ck_assert_ptr_nonnull(strstr(html, "http-equiv=\"refresh\""));
}

static void
with_status(const char *data)
{
	char status[2048];

	make("");
	free(html);
	free(docs.doc[DOC_STATUS].p);
	snprintf(status, sizeof(status), "{\"data\":%s}", data);
	docs.doc[DOC_STATUS] = (struct text){ strdup(status), strlen(status) };
	size_t len;
	FILE *f = open_memstream(&html, &len);
	ck_assert_int_eq(page_write(&docs, f), 0);
	fclose(f);
}

START_TEST(names_are_no_markup)
{
	with_status("{\"services\":[{\"name\":\"<b x='y'>&amp;\\\"\\u001b\"}]}");
	ck_assert_ptr_null(strstr(html, "<b x"));
	ck_assert_ptr_nonnull(strstr(html, "&#60;b x=&#39;y&#39;&#62;&#38;amp;&#34;?"));
}

START_LOOP_TEST(what_is_missing_or_wrong_is_shown_as_nothing, 0, 3)
{
	static const char *const data[] = { "{}", "{\"services\":5,\"workers\":{},\"uptime_ms\":\"x\"}",
		"{\"services\":[1,null,[]],\"uptime_ms\":-5}" };

	with_status(data[_i]);
	ck_assert_ptr_nonnull(strstr(html, "</html>"));
}

START_TEST(a_table_is_bounded)
{
	char *many = calloc(1, 100000), *at = many;

	make("");
	free(html);
	at += sprintf(at, "{\"data\":{\"groups\":[");
	for (int i = 0; i < 1000; i++)
		at += sprintf(at, "%s{\"id\":%d}", i > 0 ? "," : "", 100000 + i);
	sprintf(at, "]}}");
	free(docs.doc[DOC_GROUPS].p);
	docs.doc[DOC_GROUPS] = (struct text){ many, strlen(many) };
	size_t len;
	FILE *f = open_memstream(&html, &len);
	ck_assert_int_eq(page_write(&docs, f), 0);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(html, ">100199<"));
	ck_assert_ptr_null(strstr(html, ">100200<"));
	ck_assert_ptr_nonnull(strstr(html, "and 800 more"));
}

START_TEST(what_is_no_json_is_an_error)
{
	char *out;
	size_t len;

	make("");
	docs.doc[DOC_DEVICES].p[0] = 'x';
	FILE *f = open_memstream(&out, &len);
	ck_assert_int_lt(page_write(&docs, f), 0);
	fclose(f);
	free(out);
}
