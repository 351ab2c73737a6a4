/* What main collects for metrics, of a daemon without anything. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "daemon/metrics/web.h"

/* To be freed by documents_free(), or by whatever it is given to. */
static inline struct documents *
some_documents(void)
{
	static const char status[] = "{\"data\":{}}\n";
	struct documents *d = calloc(1, sizeof(*d));

	ck_assert_ptr_nonnull(d);
	d->made[WEB_STATUS] = (struct text){ strdup(status), sizeof(status) - 1 };
	return d;
}
