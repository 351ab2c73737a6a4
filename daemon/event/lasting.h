/* A lasting condition such as an outage: when its begin is reported, which a change or a long duration repeats, and
 * whether its end is. Embedded in the condition, under the owner's lock, so that the end is not reported first. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define LASTING_AGAIN_NS (600 * INT64_C(1000000000)) /* interval of repeats */
#define LASTING_INIT                                         \
	{                                                    \
		.limit = {.burst = 4, .interval_ms = 60000 } \
	}

struct lasting {
	uint64_t cnt; /* connections or failures so far */
	int64_t since_ns;
	int64_t told_ns;        /* last report, or one that the limit suppressed */
	bool told;              /* the begin was reported, so the end will be */
	struct log_limit limit; /* of reports of the begin; ends are not limited */
};

/* One more of its connections or failures: true when the begin is to be reported. other: for another reason. */
static inline bool
lasting_add(struct lasting *l, int64_t now_ns, bool begins, bool other)
{
	uint64_t left_out; /* not reported: the event has cnt */

	if (begins) {
		l->since_ns = now_ns;
		l->cnt = 0;
		l->told = false;
	}
	l->cnt++;
	if (!begins && !other && now_ns - l->told_ns < LASTING_AGAIN_NS)
		return false;
	l->told_ns = now_ns;
	bool may = log_limit_take(&l->limit, now_ns, &left_out);
	l->told = l->told || may;
	return may;
}

/* Not negative: it may have begun in the turn of another thread, later than this turn. */
static inline int64_t
lasting_age_ns(const struct lasting *l, int64_t now_ns)
{
	return now_ns > l->since_ns ? now_ns - l->since_ns : 0;
}
