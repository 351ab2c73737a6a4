/* What two answers to stats differ in. Pure. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* An answer like the second one, with the differences as "data", and "interval_ms" between the two. A daemon that was
 * restarted between them counts from 0. Either may be any JSON. Freed by the caller; NULL: out of memory. */
json_t *delta_make(const json_t *before, json_t *after);
/* What this member has counted since; below what it was before it counts from 0. */
int64_t delta_of(const json_t *before, const json_t *after, const char *key);
/* The same of all members, in a new object. */
json_t *delta_counters(const json_t *before, json_t *after);
/* The object of the list that has this string as a member, or NULL. */
json_t *delta_item(const json_t *list, const char *key, const json_t *value);
