/*
 * Documents with the texts that were made of them, shared by all answers that have them: a text is freed when it is neither the newest
 * nor on its way to a client. Used by http.c, in its thread.
 */
#pragma once

#include "daemon/metrics/documents.h"

struct texts {
	struct texts *next; /* an older one */
	struct texts **all; /* the newest first */
	struct documents *docs;
	unsigned uses; /* answers that were not taken yet, and one while it is the newest */
};

/* Puts documents, which it owns then, in front, with one use. NULL when memory is out: they are freed. */
struct texts *texts_push(struct texts **all, struct documents *);
/* One use less. */
void texts_put(struct texts *);
/* The same for the newest, of which nothing more will be made. */
void texts_retire(struct texts *);
/* How many there are, and the oldest. */
unsigned texts_count(const struct texts *all, const struct texts **oldest);
