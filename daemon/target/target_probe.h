/*
 * Targets of a service that failed, and are looked at again in the background: what its connections find out goes to the targets
 * (targets.h) and to the log, once for each change.
 *
 * A look is a TCP connection that is closed at once, made by the worker that saw the target fail, one at a time, every
 * `target_retry`, only while a target is failed and there is another one, or the listener is closed (when_down). So a server that works never sees one, and one
 * that comes back sees a single one: no client has to wait for a host that is gone to find out whether it is back. A
 * gateway takes it for a client that thought better of it. Whether what is behind a gateway is back a connection has to find out: one,
 * which goes on to another target if it is not (setup_redial).
 */
#pragma once

#include "base/timerq.h"
#include "daemon/leg/leg.h"
#include "daemon/target/targets.h"

struct service;
struct settings;

/* Embedded in struct service. */
struct target_probe {
	struct timer timer; /* reserved by the service */
	struct leg leg;
	struct dial dial;
	struct endpoint_pick pick; /* of dial */
};

void target_probe_init(struct target_probe *);
/* Looks at nothing any more, until something fails. */
void target_probe_stop(struct service *);
/* The service's settings have changed. */
void target_probe_restart(struct service *);

/* Failed targets of this peer (port 0: any) or, NULL, all of them are looked at now, one after the other. How many. */
unsigned target_probe_now(struct service *, const struct sockaddr_storage *peer);

/* A connection with these settings got through to the target, or, served, to what is behind it. */
void target_good(const struct settings *, const struct endpoint_pick *, bool served);
/* It did not. */
void target_bad(const struct settings *, const struct endpoint_pick *, enum endpoint_fault, const char *why);
