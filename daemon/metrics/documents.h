/*
 * What main collects for one look at the daemon: answers of the control socket, as JSON, and what was made of them. Made by
 * metrics.c in the main thread, given to the thread of http.c, which owns it from then on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum document {
	DOC_STATUS,
	DOC_STATS,
	DOC_GROUPS,
	DOC_LINKS,
	DOC_DEVICES,
	DOC_CNT,
};

/* What a client may ask for. */
enum web_page {
	WEB_METRICS,     /* text format of Prometheus */
	WEB_OPENMETRICS, /* the same for who understands OpenMetrics */
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
	struct text doc[DOC_CNT];
	struct text made[WEB_CNT];
	bool draining;
	bool failed; /* too large, or memory was out: nothing can be made of it */
};

/* Nothing more is made of them; what was made stays. */
static inline void
documents_trim(struct documents *d)
{
	for (unsigned i = 0; i < DOC_CNT; i++)
		if (i != DOC_STATUS) {
			free(d->doc[i].p);
			d->doc[i] = (struct text){ 0 };
		}
}

static inline void
documents_free(struct documents *d)
{
	if (d == NULL)
		return;
	for (unsigned i = 0; i < DOC_CNT; i++)
		free(d->doc[i].p);
	for (unsigned i = 0; i < WEB_CNT; i++)
		free(d->made[i].p);
	free(d);
}
