/* Texts that answers share; see texts.h. */
#include "daemon/metrics/texts.h"

struct texts *
texts_push(struct texts **all, struct documents *docs)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		documents_free(docs);
		return NULL;
	}
	*t = (struct texts){ .next = *all, .all = all, .docs = docs, .uses = 1 };
	*all = t;
	return t;
}

void
texts_put(struct texts *t)
{
	struct texts **at = t->all;

	if (--t->uses > 0)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	documents_free(t->docs);
	free(t);
}

void
texts_retire(struct texts *t)
{
	documents_trim(t->docs);
	texts_put(t);
}

unsigned
texts_count(const struct texts *all, const struct texts **oldest)
{
	unsigned cnt = 0;

	*oldest = NULL;
	for (; all != NULL; all = all->next, cnt++)
		*oldest = all;
	return cnt;
}
