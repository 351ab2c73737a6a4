/* Which page is at which path, and what becomes of it. */
#include "daemon/metrics/web.h"

#include <stdlib.h>
#include <string.h>

#include "some_documents.h"
#include "unit.h"

static const struct {
	const char *path, *accept;
	bool found;
	enum web_page page;
} paths[] = {
	{ "/metrics", NULL, true, WEB_METRICS },
	{ "/metrics", "text/plain", true, WEB_METRICS },
	{ "/metrics", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true,
	    WEB_OPENMETRICS },
	{ "/status.json", "application/openmetrics-text", true, WEB_STATUS },
	{ "/healthz", "", true, WEB_HEALTH },
	{ "/", NULL, true, WEB_INDEX },
	{ "", NULL, false, WEB_CNT },
	{ "/metrics/", NULL, false, WEB_CNT },
	{ "/../metrics", NULL, false, WEB_CNT },
	{ "/METRICS", NULL, false, WEB_CNT },
};

START_LOOP_TEST(pages_are_found_by_their_path, 0, sizeof(paths) / sizeof(paths[0]))
{
	struct web_request req;

	ck_assert(web_find(paths[_i].path, NULL, paths[_i].accept, &req) == paths[_i].found);
	ck_assert_int_eq(req.page, paths[_i].page);
}

static const struct {
	const char *path;
	bool found;
	const char *query, *service;
	enum page_show show;
	unsigned from;
} queries[] = {
	{ "/", true, "show=trouble&from=100", NULL, PAGE_TROUBLE, 100 },
	{ "/", true, "from=&show=%74rouble", NULL, PAGE_TROUBLE, 0 },
	{ "/", true, "from=-1&show=nonsense&xfrom=3", NULL, PAGE_ALL, 967295 },
	{ "/", true, "show=%00&from=%&&=&", NULL, PAGE_ALL, 0 },
	{ "/service", true, "x=1&name=w%C3%A9b+1%26",
	    "w\xc3\xa9"
	    "b 1&",
	    PAGE_ALL, 0 },
	{ "/service", false, "name=a%0", NULL, PAGE_ALL, 0 },
	{ "/service", false, "name=a%00b", NULL, PAGE_ALL, 0 },
	{ "/service", false, "names=a", NULL, PAGE_ALL, 0 },
	{ "/service", false, NULL, NULL, PAGE_ALL, 0 },
	{ "/service", false,
	    "name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    NULL, PAGE_ALL, 0 },
};

START_LOOP_TEST(a_query_selects_a_view, 0, sizeof(queries) / sizeof(queries[0]))
{
	struct web_request req;

	ck_assert(web_find(queries[_i].path, queries[_i].query, NULL, &req) == queries[_i].found);
	ck_assert_int_eq(req.view.show, queries[_i].show);
	ck_assert_uint_eq(req.view.from, queries[_i].from);
	if (queries[_i].service != NULL)
		ck_assert_str_eq(req.view.service, queries[_i].service);
}

static struct web_answer
answer_of(struct documents *d, enum web_page page)
{
	return web_answer(d, &(struct web_request){ .page = page });
}

START_LOOP_TEST(each_page_is_made_once, 0, WEB_SERVICE)
{
	struct documents *d = some_documents();
	const struct web_answer a = answer_of(d, (enum web_page)_i), b = answer_of(d, (enum web_page)_i);

	ck_assert_int_eq(a.status, 200);
	ck_assert_uint_gt(a.body.len, 0);
	ck_assert_ptr_eq(a.body.p, b.body.p);
	documents_free(d);
}

/* A page of a service, or of some services, is made for its client, which frees it. */
START_LOOP_TEST(other_views_are_of_their_client, 0, 2)
{
	struct web_request req = { _i == 0 ? WEB_INDEX : WEB_SERVICE, { .service = "web", .from = 1 } };
	struct documents *d = some_documents();
	const struct service_info info = { .connections = 1 };

	d->seen.bytes_max = 1 << 20;
	snapshot_add(&d->seen, REPORT_SERVICE, &(struct report_service){ .name = "web", .info = info });
	const struct web_answer a = web_answer(d, &req);
	ck_assert_int_eq(a.status, 200);
	ck_assert(a.owned && !a.shared);
	free(a.body.p);
	strcpy(req.view.service, "nope");
	ck_assert_int_eq(_i == 0 ? 404 : web_answer(d, &req).status, 404);
	documents_free(d);
}

static struct web_answer
health_at(struct documents *d, const char *query)
{
	struct web_request req;

	ck_assert(web_find("/healthz", query, NULL, &req));
	return web_answer(d, &req);
}

/* By its probes, and not at all while it takes no connections; the daemon's own state comes first. */
START_TEST(the_health_of_a_service)
{
	static const struct {
		enum health_state state;
		bool disabled, closed;
		int status;
		const char *body;
	} of[] = {
		{ HEALTH_NONE, false, false, 200, "ok\n" },
		{ HEALTH_UP, false, false, 200, "up\n" },
		{ HEALTH_HELD_OFF, false, false, 200, "held off\n" },
		{ HEALTH_UNKNOWN, false, false, 200, "unknown\n" },
		{ HEALTH_DOWN, false, false, 503, "down\n" },
		{ HEALTH_UP, true, false, 503, "disabled\n" },
		{ HEALTH_UP, false, true, 503, "closed: no target works\n" },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct documents *d = calloc(1, sizeof(*d));
		struct report_service row = { .name = "x" };

		d->seen.bytes_max = 1 << 20;
		row.health.state = of[i].state;
		row.info.disabled = of[i].disabled;
		row.info.closed = of[i].closed;
		const struct report_status status = { .src.version = "" };
		snapshot_add(&d->seen, REPORT_STATUS, &status);
		snapshot_add(&d->seen, REPORT_SERVICE, &row);
		const struct web_answer a = health_at(d, "service=x");
		ck_assert_int_eq(a.status, of[i].status);
		ck_assert_str_eq(a.body.p, of[i].body);
		ck_assert_int_eq(health_at(d, "service=y").status, 404);
		ck_assert_int_eq(health_at(d, NULL).status, 200);
		documents_free(d);
	}
}

START_TEST(status_is_the_answer_of_the_control_socket)
{
	struct documents *d = some_documents();

	ck_assert_ptr_eq(answer_of(d, WEB_STATUS).body.p, d->made[WEB_STATUS].p);
	documents_free(d);
}

START_TEST(health_is_bad_while_draining)
{
	struct documents *d = some_documents();

	ck_assert_int_eq(answer_of(d, WEB_HEALTH).status, 200);
	d->seen.bytes_max = 1 << 20;
	snapshot_add(&d->seen, REPORT_STATUS, &(struct report_status){ .worker.draining = true });
	ck_assert_int_eq(answer_of(d, WEB_HEALTH).status, 503);
	ck_assert_int_eq(answer_of(d, WEB_METRICS).status, 200);
	documents_free(d);
}

/* Without documents (0), with none that can be used (1). */
START_LOOP_TEST(what_cannot_be_had_is_unavailable, 0, 2)
{
	struct documents *d = some_documents();

	d->failed = _i == 1;
	const struct web_answer a = answer_of(_i == 0 ? NULL : d, WEB_METRICS);
	ck_assert_int_eq(a.status, 503);
	ck_assert_uint_gt(a.body.len, 0);
	documents_free(d);
}

START_TEST(refusals_have_words)
{
	ck_assert_int_eq(web_refusal(WEB_FORBIDDEN).status, 403);
	ck_assert_int_eq(web_refusal(WEB_NOT_FOUND).status, 404);
	ck_assert_int_eq(web_refusal(WEB_BUSY).status, 503);
}

START_TEST(hosts_that_are_here)
{
	static const char *const here[] = { "127.0.0.1", "127.0.0.1:9471", "[::1]:9471", "[::ffff:127.0.0.1]",
		"localhost", "localhost:9471", "LocalHost.", "gateway", "gateway:9471", "" };
	static const char *const elsewhere[] = { "evil.example", "evil.example:9471", "127.0.0.1.evil.example",
		"localhost.evil.example", "evil.", "127.0.0.1.", "1.2.3.4.5", ".", "x[127.0.0.1]", "0x7f.1", "a.b:[" };

	ck_assert(web_host_is_near(NULL));
	for (unsigned i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		ck_assert_msg(web_host_is_near(here[i]), "%s", here[i]);
	for (unsigned i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		ck_assert_msg(!web_host_is_near(elsewhere[i]), "%s", elsewhere[i]);
}
