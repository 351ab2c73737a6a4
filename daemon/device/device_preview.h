/* The devices that a configuration would use now, as text (smcrd -t). Opens none. */
#pragma once

#include <stdio.h>

#include "daemon/device/device_plan.h"

/* Devices go to out, missing ones to warnings. Reads interfaces and, for entries of type verbs, cards. */
void device_preview(const struct config *, FILE *out, FILE *warnings);
/* The same for given interfaces and cards. */
void device_preview_print(
    const struct config *, const struct netifs *, const struct device_cards *, FILE *out, FILE *warnings);
