/* Documents, what main collects for one look at the daemon, and pages for clients: each is made of documents once, and kept with them.
 * Pure but for memory. Documents are made by metrics.c in the main thread, then owned by http.c in its thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/control/snapshot.h"
#include "daemon/metrics/page.h"

/* What a client may ask for. */
enum web_page {
	WEB_METRICS,     /* text format of Prometheus */
	WEB_OPENMETRICS, /* the same for a client that accepts OpenMetrics */
	WEB_HEALTH,
	WEB_STATUS,
	WEB_INDEX,
	WEB_SERVICE,
	WEB_CNT,
};

struct web_request {
	enum web_page page;
	struct page_view view; /* of WEB_INDEX and WEB_SERVICE; its service also of WEB_HEALTH, "" = the daemon */
};

struct text {
	char *p; /* NULL: not there */
	size_t len;
};

struct documents {
	struct snapshot seen;
	struct text made[WEB_CNT]; /* WEB_STATUS at first, the others on request */
	bool failed;               /* too large, or out of memory: no page can be made */
	/* In a list: */
	struct documents *next, **all;
	unsigned uses; /* answers on their way, and one while they are the newest */
};

struct web_answer {
	int status;
	const char *reason;
	const char *type;
	struct text body;
	bool shared; /* the body belongs to the documents; */
	bool owned;  /* to the caller, which frees it; else it is static */
};

enum web_refusal { WEB_FORBIDDEN, WEB_MISDIRECTED, WEB_NOT_FOUND, WEB_BUSY, WEB_TAKEN };

/* The page at this path, for a client that accepts this; query and accept may be NULL. False when there is no page. */
bool web_find(const char *path, const char *query, const char *accept, struct web_request *);
/* True when a Host header names this host in a form that no foreign name server resolves: by an address, as localhost, or by a name
 * without a dot. NULL: no such header, so the client is no browser. */
bool web_host_is_near(const char *host);
/* Documents may be NULL: they were not made in time. */
struct web_answer web_answer(struct documents *, const struct web_request *);
/* Of any but WEB_TAKEN, which is no refusal. */
struct web_answer web_refusal(enum web_refusal);
/* NULL is allowed. */
void documents_free(struct documents *);
/* Removes one use. */
void documents_put(struct documents *);
