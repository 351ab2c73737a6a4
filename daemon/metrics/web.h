/* What clients may ask for, and the answers, made of documents once and kept with them. Pure but for memory. */
#pragma once

#include "daemon/metrics/documents.h"

struct web_answer {
	int status;
	const char *reason;
	const char *type;
	struct text body;
	bool shared; /* the body belongs to the documents; else it is static */
};

enum web_refusal {
	WEB_FORBIDDEN,
	WEB_MISDIRECTED,
	WEB_NOT_FOUND,
	WEB_BUSY,
};

/* Headers of every answer, in pairs; ends with NULL. */
extern const char *const web_headers[][2];

/* The page at this path, for a client that accepts this (NULL: it does not say). False when there is none. */
bool web_find(const char *path, const char *accept, enum web_page *);
/* Does a Host header name this host so that nobody else's name server can have a say in it: by an address, as localhost, or by a name
 * without a dot? NULL: there is none, so no browser sent it. */
bool web_host_is_near(const char *host);
/* Documents may be NULL: they could not be had in time. */
struct web_answer web_answer(struct documents *, enum web_page);
struct web_answer web_refusal(enum web_refusal);
