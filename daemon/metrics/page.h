/* The page for people: HTML made of rows of reports, without external resources or scripts. Pure. */
#pragma once

#include <stdio.h>

#include "daemon/control/snapshot.h"

void page_write(const struct snapshot *, FILE *out);
