/*
 * The changes that a reload would make: two configurations compared setting by setting,
 * by the table of config_keys.c. Used by smcrd.c (what to tell, what has to
 * stay) and by the worker (which services to touch).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config.h"

struct config_plan {
	unsigned added, removed, changed; /* services */
	unsigned settings;                /* settings outside services */
	unsigned fixed;                   /* settings that differ but count only after a restart */
};

/* The service of this name; NULL when there is none. */
const struct config_service *config_find_service(const struct config *, const char *name);
/* Same kind and same settings. */
bool config_service_equal(const struct config_service *, const struct config_service *);

/*
 * Compares. One line each to text: "service web added", "service web changed: to, allow", "setting smcr.clc_timeout
 * changed", and "warning: ..." for what needs a restart.
 */
void config_plan(const struct config *old, const struct config *next, struct config_plan *, FILE *text);

/* Copies the settings that need a restart from old, all devices included, so that next says what is in force. 0 or -ENOMEM
 * (next unchanged). */
int config_keep_fixed(const struct config *old, struct config *next);
