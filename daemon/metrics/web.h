/* What clients may ask for, and the answers, made of documents once and kept with them. Pure but for memory. */
#pragma once

#include "daemon/metrics/documents.h"

struct web_answer {
	int status;
	const char *reason;
	const char *type;
	struct text body; /* belongs to the documents, or is static */
};

enum web_refusal {
	WEB_FORBIDDEN,
	WEB_NOT_FOUND,
	WEB_BUSY,
};

/* Headers of every answer, in pairs; ends with NULL. */
extern const char *const web_headers[][2];

/* The page at this path, for a client that accepts this (NULL: it does not say). False when there is none. */
bool web_find(const char *path, const char *accept, enum web_page *);
/* Documents may be NULL: they could not be had in time. */
struct web_answer web_answer(struct documents *, enum web_page);
struct web_answer web_refusal(enum web_refusal);
