/* Differences of counters; see delta.h. */
#include "ctl/delta.h"

#include "ctl/show.h"

int64_t
delta_of(const json_t *before, const json_t *after, const char *key)
{
	int64_t a = get_int(before, key), b = get_int(after, key);

	return b >= a && a >= 0 ? b - a : b > 0 ? b : 0;
}

json_t *
delta_counters(const json_t *before, json_t *after)
{
	json_t *out = json_object(), *v;
	const char *key;

	json_object_foreach(after, key, v)
	{
		json_object_set_new(out, key, json_integer(delta_of(before, after, key)));
	}
	return out;
}

json_t *
delta_item(const json_t *list, const char *key, const json_t *value)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_string(value) && json_equal(json_object_get(json_array_get(list, i), key), value))
			return json_array_get(list, i);
	return NULL;
}

/* The reasons that were counted between both. One that was not among the most frequent ones before counts as new. */
static json_t *
reasons(const json_t *before, const json_t *after)
{
	json_t *out = json_array();

	for (size_t i = 0; i < json_array_size(after); i++) {
		json_t *r = json_copy(json_array_get(after, i));
		json_int_t cnt = delta_of(delta_item(before, "code", json_object_get(r, "code")), r, "count");

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
	json_int_t ms = get_int(after, "time_ms") - get_int(before, "time_ms");

	json_object_set_new(data, "interval_ms", json_integer(ms > 0 ? ms : 1));
	json_object_set_new(
	    data, "counters", delta_counters(json_object_get(a, "counters"), json_object_get(b, "counters")));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		json_object_set_new(
		    data, lists[i], reasons(json_object_get(a, lists[i]), json_object_get(b, lists[i])));
	json_object_set_new(root, "data", data);
	return root;
}
