/*
 * The names in `to` of all services: each is looked up when the daemon starts and at a reload, again when its answer is too
 * old, and again after a while when there was none. What it stands for goes to the services' targets (target/targets.h). A name
 * that does not resolve keeps the addresses that it had; a service that never had any waits, and nothing else does.
 *
 * On the main loop. Sleeps until the first name is due.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/loop/loop.h"
#include "daemon/target/targets.h"

struct names;

struct names_hooks {
	void *arg;
	/* A service that waited has its first address. */
	void (*came)(void *arg, const char *service);
};

/* 0 or -errno. Without c-ares it does nothing. targets has to outlive it. */
int names_new(struct loop *, struct targets_all *, const struct names_hooks *, struct names **);
/* The names of this configuration from now on, all of which are looked up at once; cfg is looked at until this returns. */
void names_apply(struct names *, const struct config *cfg);
/* Those that were not found, and wait for another look, are looked up now. How many. */
unsigned names_retry(struct names *);
/* NULL is allowed. */
void names_free(struct names *);
