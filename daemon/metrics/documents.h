/*
 * What main collects for one look at the daemon: the rows of its reports, the answer to `status` as JSON, and what was made of them.
 * Made by metrics.c in the main thread, given to the thread of http.c, which owns it from then on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "daemon/control/snapshot.h"

/* What a client may ask for. */
enum web_page {
	WEB_METRICS,     /* text format of Prometheus */
	WEB_OPENMETRICS, /* the same for a client that accepts OpenMetrics */
	WEB_HEALTH,
	WEB_STATUS,
	WEB_INDEX,
	WEB_CNT,
};

struct text {
	char *p; /* NULL: there is none */
	size_t len;
};

struct documents {
	struct snapshot seen;
	struct text status; /* as JSON */
	struct text made[WEB_CNT];
	bool draining;
	bool failed; /* too large, or memory was out: nothing can be made of it */
};

/* Nothing more is made of them; what was made stays. */
static inline void
documents_trim(struct documents *d)
{
	snapshot_fini(&d->seen);
}

static inline void
documents_free(struct documents *d)
{
	if (d == NULL)
		return;
	snapshot_fini(&d->seen);
	free(d->status.p);
	for (unsigned i = 0; i < WEB_CNT; i++)
		free(d->made[i].p);
	free(d);
}
