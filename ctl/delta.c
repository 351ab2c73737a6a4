/* Differences of counters; see delta.h. */
#include "ctl/delta.h"

#include <string.h>

static json_int_t
since(const json_t *before, const json_t *after)
{
	json_int_t a = json_integer_value(before), b = json_integer_value(after);

	return b >= a ? b - a : b;
}

static json_t *
counters(const json_t *before, json_t *after)
{
	json_t *out = json_object(), *v;
	const char *key;

	json_object_foreach(after, key, v)
	{
		json_object_set_new(out, key, json_integer(since(json_object_get(before, key), v)));
	}
	return out;
}

/* How often this reason was counted; NULL: it is not in the list. */
static const json_t *
count_of(const json_t *list, const char *code)
{
	for (size_t i = 0; code != NULL && i < json_array_size(list); i++) {
		const json_t *r = json_array_get(list, i);
		const char *other = json_string_value(json_object_get(r, "code"));

		if (other != NULL && strcmp(code, other) == 0)
			return json_object_get(r, "count");
	}
	return NULL;
}

/* Those that came meanwhile. One that was not among the most frequent ones before counts as new: the daemon has not told. */
static json_t *
reasons(const json_t *before, const json_t *after)
{
	json_t *out = json_array();

	for (size_t i = 0; i < json_array_size(after); i++) {
		json_t *r = json_copy(json_array_get(after, i));
		const json_t *was = count_of(before, json_string_value(json_object_get(r, "code")));
		json_int_t cnt = since(was, json_object_get(r, "count"));

		json_object_set_new(r, "count", json_integer(cnt));
		if (cnt > 0)
			json_array_append(out, r);
		json_decref(r);
	}
	return out;
}

json_t *
delta_make(const json_t *before, json_t *after)
{
	static const char *const lists[] = { "fallback_reasons_local", "fallback_reasons_peer" };
	const json_t *a = json_object_get(before, "data"), *b = json_object_get(after, "data");
	json_t *root = json_copy(after), *data = json_object();
	json_int_t ms = json_integer_value(json_object_get(after, "time_ms")) -
	    json_integer_value(json_object_get(before, "time_ms"));

	json_object_set_new(data, "interval_ms", json_integer(ms > 0 ? ms : 1));
	json_object_set_new(data, "counters", counters(json_object_get(a, "counters"), json_object_get(b, "counters")));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_set_new(
		    data, lists[i], reasons(json_object_get(a, lists[i]), json_object_get(b, lists[i])));
	json_object_set_new(root, "data", data);
	return root;
}
