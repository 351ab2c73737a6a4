/* The names in `to` of all services. Each is looked up at start and at a reload, again when its answer expires, and
 * after a delay when it failed. The result goes to the targets of the services (target/targets.h). A name that does
 * not resolve keeps its last addresses; only a service that never had an address waits. Runs on the main loop. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/loop/loop.h"
#include "daemon/target/targets.h"

struct names;

/* 0 or -errno. Does nothing without c-ares. targets has to outlive it. came: a waiting service has its first address. */
int names_new(
    struct loop *, struct targets_all *, void (*came)(void *arg, const char *service), void *arg, struct names **);
/* Replaces the names by those of cfg, which has to stay until the next call or names_free, and looks all up at once. */
void names_apply(struct names *, const struct config *cfg);
/* Looks up the failed names at once; returns their number. */
unsigned names_retry(struct names *);
/* NULL is allowed. */
void names_free(struct names *);
