/* Every report of a fixed worker, compared with golden files. check_ctl_show.c goes on from there to text. */
#include <jansson.h>
#include <string.h>

#include "base/addr.h"
#include "control/counters.h"
#include "daemon/control/report.h"
#include "fake_report.h"
#include "golden.h"
#include "rnic/siw/siw.h"
#include "tests/poll_loop.h"
#include "tests/rnic_end.h"
#include "unit.h"
#include "wire/clc.h"

/* One line of JSON, to be freed. */
static char *
run_report(struct worker *w, unsigned cnt, const char *request)
{
	struct workers *ws = fake_workers_new(NULL, w, cnt);
	const struct report_source src = fake_report_source(ws);
	struct control_request req;
	struct control_error err;
	struct report r;
	struct outbuf out;
	size_t before;
	bool more;

	ck_assert_int_eq(outbuf_init(&out, 1 << 20), 0);
	ck_assert_int_eq(control_request_parse(request, strlen(request), &req, &err), 0);
	report_start(&r, &src, &req, &out);
	do {
		before = out.len;
		fake_worker.looked_at = 0;
		more = report_run(&r, &(unsigned){ 1 });
		ck_assert_uint_le(out.len - before, REPORT_STEP_BYTES);
		ck_assert_uint_le(fake_worker.looked_at, REPORT_STEP_ITEMS);
	} while (more);
	ck_assert(!out.overflow);
	char *text = strndup(outbuf_data(&out), out.len);
	ck_assert_uint_eq(strlen(text), out.len);
	ck_assert_ptr_eq(strchr(text, '\n'), text + out.len - 1);
	outbuf_fini(&out);
	fake_workers_free(ws);
	return text;
}

static json_t *
load(const char *text)
{
	json_error_t err;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &err);

	ck_assert_msg(root != NULL, "%s: %s", err.text, text);
	return root;
}

static void
compare(struct worker *w, const char *request, const char *golden)
{
	char *line = run_report(w, 1, request);
	json_t *root = load(line);

	char *pretty = json_dumps(root, JSON_INDENT(2));
	golden_compare(golden, pretty);
	free(pretty);
	json_decref(root);
	free(line);
}

static const struct {
	const char *request, *golden;
} reports[] = {
	{ "{\"command\":\"status\"}", "control/status.json" },
	{ "{\"command\":\"service\",\"service\":\"web\"}", "control/service.json" },
	{ "{\"command\":\"devices\"}", "control/devices.json" },
	{ "{\"command\":\"groups\"}", "control/groups.json" },
	{ "{\"command\":\"links\"}", "control/links.json" },
	{ "{\"command\":\"links\",\"group\":2}", "control/links-group2.json" },
	{ "{\"command\":\"connections\"}", "control/connections.json" },
	{ "{\"command\":\"connections\",\"mode\":\"tcp\",\"service\":\"web\"}", "control/connections-tcp-web.json" },
	{ "{\"command\":\"connections\",\"group\":2}", "control/connections-group2.json" },
	{ "{\"command\":\"rmbs\"}", "control/rmbs.json" },
	{ "{\"command\":\"stats\"}", "control/stats.json" },
	{ "{\"command\":\"history\"}", "control/history.json" },
	{ "{\"command\":\"drain\"}", "control/drain.json" },
};

START_LOOP_TEST(reports_are_as_always, 0, sizeof(reports) / sizeof(reports[0]))
{
	struct worker *w = fake_worker_new();

	compare(w, reports[_i].request, reports[_i].golden);
	fake_worker_free(w);
}

/* A counter of soft iWARP that is not in the list would be kept from everybody. */
START_TEST(all_that_soft_iwarp_counts_is_reported)
{
	struct rnic_stat stats[RNIC_STATS_MAX];
	struct poll_loop loop;
	struct siw_config c;
	struct rnic_dev *dev;
	const char *err;
	struct rng rng;

	siw_config_init(&c);
	ck_assert_int_eq(addr_parse("127.0.0.1", &c.addr), 0);
	rng_init_kernel(&rng);
	poll_loop_init(&loop);
	struct rnic_loop l = poll_loop_rnic(&loop);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), 0);
	unsigned cnt = dev->ops->stats(dev, stats);
	for (unsigned i = 0; i < cnt; i++) {
		const char *const *name = report_device_stats;

		while (*name != NULL && strcmp(*name, stats[i].name) != 0)
			name++;
		ck_assert_msg(*name != NULL, "%s is not reported", stats[i].name);
	}
	rnic_end(dev);
	poll_loop_fini(&loop);
}

START_TEST(an_idle_daemon_reports_the_same_shape)
{
	static const char *const golden[] = { "status", "devices", "groups", "links", "connections", "rmbs", "stats",
		"history", "drain" };
	struct worker *w = fake_worker_new_empty();

	for (unsigned i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		char request[64], name[64];

		snprintf(request, sizeof(request), "{\"command\":\"%s\"}", golden[i]);
		snprintf(name, sizeof(name), "control/%s-idle.json", golden[i]);
		compare(w, request, name);
	}
	fake_worker_free(w);
}

/* A setting that is too long for a step ends with "..."; run_report() looks at the bytes. */
START_TEST(a_long_setting_is_cut)
{
	struct worker *w = fake_worker_new();

	fake_worker.allow_cnt = 1024;
	char *line = run_report(w, 1, "{\"command\":\"service\",\"service\":\"web\"}");
	json_t *root = load(line), *settings = json_object_get(json_object_get(root, "data"), "settings"), *s;
	size_t i, cut = 0;
	json_array_foreach(settings, i, s)
	{
		const char *value = json_string_value(json_object_get(s, "value"));
		size_t len = strlen(value);

		if (strcmp(json_string_value(json_object_get(s, "name")), "allow") != 0)
			continue;
		ck_assert_uint_eq(len, 2000);
		ck_assert_str_eq(value + len - 3, "...");
		cut++;
	}
	ck_assert_uint_eq(cut, 1);
	json_decref(root);
	free(line);
	fake_worker_free(w);
}

START_TEST(a_service_is_the_sum_of_all_workers)
{
	struct worker *w = fake_worker_new();
	char *line = run_report(w, 3, "{\"command\":\"service\",\"service\":\"web\"}");
	json_t *root = load(line), *data = json_object_get(root, "data");
	const json_t *modes = json_object_get(data, "modes"), *outage = json_object_get(data, "outage");

	ck_assert_int_eq(json_integer_value(json_object_get(data, "accepted")), 30);
	ck_assert_int_eq(json_integer_value(json_object_get(modes, "smcr")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(modes, "tcp")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(modes, "setup")), 3);
	ck_assert_int_eq(json_integer_value(json_object_get(outage, "failed")), 7);
	ck_assert_int_eq(json_integer_value(json_object_get(outage, "age_ms")), 90061);
	ck_assert_str_eq(json_string_value(json_object_get(outage, "text")), "cannot be connected: Connection refused");
	json_decref(root);
	free(line);
	fake_worker_free(w);
}

/* Same keys in the same order and of the same type, at every level that both have. */
static void
same_shape(json_t *a, json_t *b)
{
	void *ia = json_object_iter(a), *ib = json_object_iter(b);

	ck_assert_int_eq(
	    json_is_boolean(a) ? JSON_TRUE : json_typeof(a), json_is_boolean(b) ? JSON_TRUE : json_typeof(b));
	for (; ia != NULL && ib != NULL; ia = json_object_iter_next(a, ia), ib = json_object_iter_next(b, ib)) {
		ck_assert_str_eq(json_object_iter_key(ia), json_object_iter_key(ib));
		same_shape(json_object_iter_value(ia), json_object_iter_value(ib));
	}
	ck_assert(ia == NULL && ib == NULL);
}

START_TEST(objects_of_a_list_have_one_shape)
{
	static const char *const lists[] = { "devices", "groups", "links", "connections", "rmbs" };
	struct worker *w = fake_worker_new();

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		char request[64];

		snprintf(request, sizeof(request), "{\"command\":\"%s\"}", lists[i]);
		char *line = run_report(w, 1, request);
		json_t *root = load(line);
		json_t *list = json_object_get(json_object_get(root, "data"), lists[i]);
		ck_assert_uint_gt(json_array_size(list), 1);
		for (size_t k = 1; k < json_array_size(list); k++)
			same_shape(json_array_get(list, 0), json_array_get(list, k));
		json_decref(root);
		free(line);
	}
	fake_worker_free(w);
}

START_TEST(five_thousand_connections_come_whole_in_small_steps)
{
	struct worker *w = fake_worker_new();
	struct workers *ws = fake_workers_new(NULL, w, 1);
	struct report_source src = { .workers = ws, .control = &fake_report_control, .version = "", .wall_ms = 1 };
	struct control_request req = { .command = CONTROL_CONNECTIONS, .modes = ~0u };
	struct report r;
	struct outbuf out;
	size_t total = 0;
	bool more = true;

	/* Through a buffer of the size that a client has. */
	char *all = malloc(8 << 20);
	ck_assert_int_eq(outbuf_init(&out, 65536), 0);
	fake_worker.sessions = 5000;
	report_start(&r, &src, &req, &out);
	while (more) {
		while (more && outbuf_room(&out) >= REPORT_STEP_BYTES)
			more = report_run(&r, &(unsigned){ 1 });
		ck_assert(!out.overflow);
		memcpy(all + total, outbuf_data(&out), out.len);
		total += out.len;
		outbuf_consume(&out, out.len);
	}
	all[total] = '\0';
	json_t *root = load(all);
	json_t *list = json_object_get(json_object_get(root, "data"), "connections");
	ck_assert_uint_eq(json_array_size(list), 5000);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(list, 4999), "id")), 5000);
	json_decref(root);
	outbuf_fini(&out);
	free(all);
	fake_workers_free(ws);
	fake_worker_free(w);
}

START_TEST(no_answer_holds_an_rkey)
{
	struct worker *w = fake_worker_new();

	for (unsigned i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		char *line = run_report(w, 1, reports[i].request);

		/* But for the counter, nothing is even named so. */
		for (const char *p = line; (p = strcasestr(p, "rkey")) != NULL; p++)
			ck_assert_int_eq(strncmp(p, "rkey_retries", 12), 0);
		free(line);
	}
	fake_worker_free(w);
}

START_TEST(errors_keep_the_frame)
{
	struct outbuf out;

	ck_assert_int_eq(outbuf_init(&out, 512), 0);
	report_error(&out, "reload", 12, "reload-failed", "line 1\nline 2");
	outbuf_putc(&out, '\0');
	ck_assert_str_eq(outbuf_data(&out),
	    "{\"schema\":1,\"command\":\"reload\",\"time_ms\":12,\"error\":"
	    "{\"code\":\"reload-failed\",\"text\":\"line 1\\u000aline 2\"},\"data\":null}\n");
	outbuf_fini(&out);
}

enum source { SMCR, WORKER, CONTROL, LOG, SOURCES };

#define OF_SMCR struct smcr_counters
#define OF_WORKER struct worker_stats
#define OF_CONTROL struct control_stats
#define OF_LOG struct log_counters
#define COUNTER(source, field, words) { CONTROL_COUNTER_KEY(source, field), source, offsetof(OF_##source, field) },
#define NO_COUNTER(heading)

static const struct {
	const char *key;
	enum source source;
	size_t off;
} counters[] = { CONTROL_COUNTERS(NO_COUNTER, COUNTER) };

/* Every field of the structs is in the tables once, so nothing that is counted stays unseen. */
START_TEST(the_table_has_every_counter_once)
{
	unsigned by_source[SOURCES] = { 0 };

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		by_source[counters[i].source]++;
		for (size_t k = 0; k < i; k++) {
			ck_assert_str_ne(counters[i].key, counters[k].key);
			ck_assert(counters[i].source != counters[k].source || counters[i].off != counters[k].off);
		}
	}
	ck_assert_msg(by_source[SMCR] == sizeof(struct smcr_counters) / sizeof(uint64_t),
	    "a counter was added or removed: change lib/control/counters.h, "
	    "then run this test, check_ctl_show and check_json_fields with UPDATE_GOLDEN=1");
	ck_assert_uint_eq(by_source[CONTROL], sizeof(struct control_stats) / sizeof(uint64_t));
	ck_assert_uint_eq(by_source[LOG], sizeof(struct log_counters) / sizeof(uint64_t));
	for (unsigned i = 0; report_device_stats[i] != NULL; i++)
		for (unsigned k = 0; k < i; k++)
			ck_assert_str_ne(report_device_stats[i], report_device_stats[k]);
	/* Without draining and started_ns, which `status` shows. */
	ck_assert_uint_eq(by_source[WORKER], offsetof(struct worker_stats, draining) / sizeof(uint64_t));
}

/* -- several workers -- */

static json_int_t
number(json_t *data, const char *group, const char *key)
{
	return json_integer_value(json_object_get(group != NULL ? json_object_get(data, group) : data, key));
}

static json_t *
load_data(struct worker *w, unsigned cnt, const char *request, json_t **root)
{
	char *line = run_report(w, cnt, request);

	*root = load(line);
	free(line);
	return json_object_get(*root, "data");
}

START_TEST(workers_are_summed)
{
	struct worker *w = fake_worker_new();
	json_t *root, *data = load_data(w, 3, "{\"command\":\"status\"}", &root);
	json_t *service = json_array_get(json_object_get(data, "services"), 0);

	ck_assert_int_eq(number(data, "connections", "smcr"), 6);
	ck_assert_int_eq(number(data, "connections", "tcp"), 6);
	ck_assert_int_eq(number(data, NULL, "groups"), 6);
	ck_assert_int_eq(number(data, NULL, "links"), 12);
	ck_assert_int_eq(number(data, NULL, "devices"), 9);
	ck_assert_int_eq(number(data, NULL, "rmb_bytes_max"), 12ll << 30);
	ck_assert_int_eq(number(data, NULL, "sndbuf_bytes_max"), 3ll << 30);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "workers")), 3);
	for (unsigned i = 0; i < 3; i++) {
		json_t *one = json_array_get(json_object_get(data, "workers"), i);

		ck_assert_int_eq(number(one, NULL, "worker"), i + 1);
		ck_assert_int_eq(number(one, "connections", "smcr"), 2);
	}
	ck_assert_uint_eq(json_array_size(json_object_get(data, "services")), 2);
	ck_assert_int_eq(number(service, NULL, "connections"), 9);
	ck_assert_int_eq(number(service, NULL, "accepted"), 30);
	ck_assert_int_eq(number(service, NULL, "connections_max"), 1000); /* of all of them */
	json_decref(root);

	data = load_data(w, 3, "{\"command\":\"stats\"}", &root);
	ck_assert_int_eq(number(data, "counters", "sessions_opened"), 3 * 502);
	ck_assert_int_eq(number(data, "counters", "control_clients"), 601);
	ck_assert_int_eq(
	    number(json_array_get(json_object_get(data, "fallback_reasons_local"), 0), NULL, "count"), 3 * 8);
	json_decref(root);
	data = load_data(w, 3, "{\"command\":\"drain\"}", &root);
	ck_assert_int_eq(number(data, "connections", "smcr"), 6);
	json_decref(root);
	fake_worker_free(w);
}

START_LOOP_TEST(lists_go_through_all_workers, 0, 5)
{
	static const char *const lists[] = { "devices", "groups", "links", "connections", "rmbs" };
	static const size_t each[] = { 3, 2, 4, 5, 3 };
	struct worker *w = fake_worker_new();
	json_t *root, *item;
	char request[64];
	size_t i;

	snprintf(request, sizeof(request), "{\"command\":\"%s\"}", lists[_i]);
	json_t *list = json_object_get(load_data(w, 3, request, &root), lists[_i]);
	ck_assert_uint_eq(json_array_size(list), 3 * each[_i]);
	json_array_foreach(list, i, item)
	    ck_assert_int_eq(number(item, NULL, "worker"), (json_int_t)(i / each[_i]) + 1);
	json_decref(root);
	fake_worker_free(w);
}

START_TEST(one_worker_may_be_asked)
{
	struct worker *w = fake_worker_new();
	json_t *root, *data;

	fake_workers_asked = 0;
	data = load_data(w, 3, "{\"command\":\"status\",\"worker\":2}", &root);
	ck_assert_int_eq(number(data, "connections", "smcr"), 2);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "workers")), 1);
	ck_assert_int_eq(number(json_array_get(json_object_get(data, "workers"), 0), NULL, "worker"), 2);
	json_decref(root);
	data = load_data(w, 3, "{\"command\":\"connections\",\"worker\":2}", &root);
	ck_assert_uint_eq(json_array_size(json_object_get(data, "connections")), 5);
	json_decref(root);
	data = load_data(w, 3, "{\"command\":\"stats\",\"worker\":2}", &root);
	ck_assert_int_eq(number(data, "counters", "sessions_opened"), 502);
	ck_assert_int_eq(number(data, "counters", "control_clients"), 601);
	json_decref(root);
	ck_assert_uint_eq(fake_workers_asked, 1u << 1);
	fake_worker_free(w);
}
