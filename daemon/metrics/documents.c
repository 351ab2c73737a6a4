/* See documents.h. */
#include "daemon/metrics/documents.h"

#include <stdlib.h>

void
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

void
documents_push(struct documents **all, struct documents *d)
{
	d->next = *all;
	d->all = all;
	d->uses = 1;
	*all = d;
}

void
documents_put(struct documents *d)
{
	struct documents **at = d->all;

	if (--d->uses > 0)
		return;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	documents_free(d);
}
