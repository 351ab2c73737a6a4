/* Which page is at which path, and what becomes of it. */
#include "daemon/metrics/web.h"

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
	enum web_page page = WEB_CNT;

	ck_assert(web_find(paths[_i].path, paths[_i].accept, &page) == paths[_i].found);
	ck_assert_int_eq(page, paths[_i].page);
}

START_LOOP_TEST(each_page_is_made_once, 0, WEB_CNT)
{
	struct documents *d = some_documents();
	const struct web_answer a = web_answer(d, (enum web_page)_i, ""), b = web_answer(d, (enum web_page)_i, "");

	ck_assert_int_eq(a.status, 200);
	ck_assert_uint_gt(a.body.len, 0);
	ck_assert_ptr_eq(a.body.p, b.body.p);
	documents_free(d);
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
		const struct web_answer a = web_answer(d, WEB_HEALTH, "x");
		ck_assert_int_eq(a.status, of[i].status);
		ck_assert_str_eq(a.body.p, of[i].body);
		ck_assert_int_eq(web_answer(d, WEB_HEALTH, "y").status, 404);
		ck_assert_int_eq(web_answer(d, WEB_HEALTH, "").status, 200);
		documents_free(d);
	}
}

START_TEST(a_query_names_a_service)
{
	char name[CONFIG_NAME_MAX], longer[200] = "service=";

	web_service(NULL, name);
	ck_assert_str_eq(name, "");
	web_service("service=x", name);
	ck_assert_str_eq(name, "x");
	web_service("service=a.b-c_1&more=1", name);
	ck_assert_str_eq(name, "a.b-c_1");
	web_service("sevice=x", name);
	ck_assert_str_eq(name, "");
	memset(longer + 8, 'x', sizeof(longer) - 9);
	web_service(longer, name);
	ck_assert_uint_eq(strlen(name), CONFIG_NAME_MAX - 1);
}

START_TEST(status_is_the_answer_of_the_control_socket)
{
	struct documents *d = some_documents();

	ck_assert_ptr_eq(web_answer(d, WEB_STATUS, "").body.p, d->made[WEB_STATUS].p);
	documents_free(d);
}

START_TEST(health_is_bad_while_draining)
{
	struct documents *d = some_documents();

	ck_assert_int_eq(web_answer(d, WEB_HEALTH, "").status, 200);
	d->seen.bytes_max = 1 << 20;
	snapshot_add(&d->seen, REPORT_STATUS, &(struct report_status){ .worker.draining = true });
	ck_assert_int_eq(web_answer(d, WEB_HEALTH, "").status, 503);
	ck_assert_int_eq(web_answer(d, WEB_METRICS, "").status, 200);
	documents_free(d);
}

/* Without documents (0), with none that can be used (1). */
START_LOOP_TEST(what_cannot_be_had_is_unavailable, 0, 2)
{
	struct documents *d = some_documents();

	d->failed = _i == 1;
	const struct web_answer a = web_answer(_i == 0 ? NULL : d, WEB_METRICS, "");
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
