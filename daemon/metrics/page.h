/* The page for people: HTML made of documents, which needs nothing from elsewhere and no script. Pure but for memory. */
#pragma once

#include <stdio.h>

#include "daemon/metrics/documents.h"

/* 0 or -EINVAL: a document is no JSON. */
int page_write(const struct documents *, FILE *out);
