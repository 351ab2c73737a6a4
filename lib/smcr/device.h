/* The engine's side of its devices, for engine.c; the functions for its users are in smcr.h. */
#pragma once

#include "smcr/smcr.h"

/* Ends all links of the device; new links do not use it. */
void engine_device_ends(struct smcr *, struct rnic_dev *, const char *why);
/* Handles an event of the device. */
void engine_device_event(struct smcr *, struct rnic_dev *, const struct rnic_event *);
