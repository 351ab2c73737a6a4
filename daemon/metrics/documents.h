/*
 * What main collects for one look at the daemon: rows of its reports, the answer to `status` as JSON, and the pages made of them. Made
 * by metrics.c in the main thread, then owned by http.c in its thread. There they are a list, the newest first, and answers share the
 * pages: documents are freed when they are neither the newest nor on their way to a client.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
	char *p; /* NULL: not there */
	size_t len;
};

struct documents {
	struct snapshot seen;
	struct text status; /* as JSON */
	struct text made[WEB_CNT];
	bool draining;
	bool failed; /* too large, or out of memory: no page can be made */
	/* In a list: */
	struct documents *next, **all;
	unsigned uses; /* answers on their way, and one while they are the newest */
};

/* NULL is allowed. */
void documents_free(struct documents *);
/* Puts them in front of a list, which owns them then, with one use. */
void documents_push(struct documents **all, struct documents *);
/* Removes one use. */
void documents_put(struct documents *);
