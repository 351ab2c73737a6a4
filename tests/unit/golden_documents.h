/* What main collects for metrics, made of the golden answers of the control socket. */
#pragma once

#include <string.h>

#include "daemon/metrics/documents.h"
#include "golden.h"

/* kind: "", or "-idle" for those of an idle daemon. Other members stay. */
static inline void
golden_documents_load(struct documents *d, const char *kind)
{
	static const char *const names[DOC_CNT] = { "status", "stats", "groups", "links", "devices" };

	for (unsigned i = 0; i < DOC_CNT; i++) {
		char name[64];

		snprintf(name, sizeof(name), "control/%s%s.json", names[i], kind);
		d->doc[i].p = golden_read(name);
		d->doc[i].len = strlen(d->doc[i].p);
	}
}

/* To be freed by documents_free(), or by whom they are given to. */
static inline struct documents *
golden_documents(void)
{
	struct documents *d = calloc(1, sizeof(*d));

	golden_documents_load(d, "");
	return d;
}
