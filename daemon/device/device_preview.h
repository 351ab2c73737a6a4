/* Which devices a configuration would use now, in words (smcrd -t). Opens none. */
#pragma once

#include <stdio.h>

#include "daemon/device/device_plan.h"

/* Devices go to out, and what is not there to warnings. Looks at interfaces and, when an entry asks for them, at cards. */
void device_preview(const struct config *, FILE *out, FILE *warnings);
/* The same with what is given. */
void device_preview_print(
    const struct config *, const struct netifs *, const struct device_cards *, FILE *out, FILE *warnings);
