/* Differences of two answers to stats. */
#include <stdlib.h>
#include <string.h>

#include "ctl/delta.h"
#include "ctl/show.h"
#include "golden.h"
#include "unit.h"

static void
differs(const char *before, const char *after, const char *want)
{
	json_t *a = json_loads(before, 0, NULL), *b = json_loads(after, 0, NULL), *diff;

	ck_assert(a != NULL && b != NULL);
	diff = delta_make(a, b);
	char *got = json_dumps(diff, JSON_COMPACT);
	ck_assert_str_eq(got, want);
	free(got);
	json_decref(diff);
	json_decref(a);
	json_decref(b);
}

#define ANSWER(time, counters, reasons)                                                                 \
	"{\"time_ms\":" time ",\"data\":{\"counters\":" counters ",\"fallback_reasons_local\":" reasons \
	",\"fallback_reasons_peer\":[]}}"

START_TEST(counters_and_reasons_are_subtracted)
{
	differs(ANSWER("1000", "{\"a\":5,\"b\":7}", "[{\"code\":\"0x1\",\"count\":3},{\"code\":\"0x2\",\"count\":1}]"),
	    ANSWER("3000", "{\"a\":6,\"b\":7}",
	        "[{\"code\":\"0x1\",\"count\":3},{\"code\":\"0x2\",\"count\":5},{\"code\":\"0x3\",\"count\":2}]"),
	    "{\"time_ms\":3000,\"data\":{\"interval_ms\":2000,\"counters\":{\"a\":1,\"b\":0},"
	    "\"fallback_reasons_local\":[{\"code\":\"0x2\",\"count\":4},{\"code\":\"0x3\",\"count\":2}],"
	    "\"fallback_reasons_peer\":[]}}");
}

START_TEST(a_restarted_daemon_counts_from_zero)
{
	differs(ANSWER("5", "{\"a\":500}", "[]"), ANSWER("5", "{\"a\":6,\"new\":1}", "[]"),
	    "{\"time_ms\":5,\"data\":{\"interval_ms\":1,\"counters\":{\"a\":6,\"new\":1},\"fallback_reasons_local\":[],"
	    "\"fallback_reasons_peer\":[]}}");
}

START_TEST(anything_is_survived)
{
	static const char *const junk[] = { "{}", "[]", "{\"data\":[]}",
		"{\"data\":{\"counters\":3,\"fallback_reasons_local\":7}}",
		"{\"data\":{\"counters\":{\"a\":\"x\"},\"fallback_reasons_local\":[1,{\"code\":5}]}}" };

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++)
		for (size_t k = 0; k < sizeof(junk) / sizeof(junk[0]); k++) {
			json_t *a = json_loads(junk[i], 0, NULL), *b = json_loads(junk[k], 0, NULL);

			json_decref(delta_make(a, b));
			json_decref(a);
			json_decref(b);
		}
}

/* Only what there is, with its rate. */
START_TEST(text_of_a_difference)
{
	json_t *a, *b;
	char *text = golden_read("control/stats.json");
	FILE *f;
	size_t len;

	a = json_loads(text, 0, NULL);
	b = json_deep_copy(a);
	free(text);
	json_object_set_new(b, "time_ms", json_integer(json_integer_value(json_object_get(a, "time_ms")) + 4000));
	json_t *counters = json_object_get(json_object_get(b, "data"), "counters");
	json_object_set_new(counters, "bytes_sent",
	    json_integer(json_integer_value(json_object_get(counters, "bytes_sent")) + 1000000));
	json_object_set_new(counters, "sessions_opened",
	    json_integer(json_integer_value(json_object_get(counters, "sessions_opened")) + 2));
	json_t *diff = delta_make(a, b);
	f = open_memstream(&text, &len);
	show_answer(f, CONTROL_STATS, json_object_get(diff, "data"), false);
	fclose(f);
	golden_compare("control/stats-delta.txt", text);
	free(text);
	json_decref(diff);
	json_decref(a);
	json_decref(b);
}
