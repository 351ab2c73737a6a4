/* The page for people: HTML made of rows of reports, which needs nothing from elsewhere and no script. Pure. */
#pragma once

#include <stdio.h>

#include "daemon/control/snapshot.h"

void page_write(const struct snapshot *, FILE *out);
