/* Probes of failed targets. Passes the results of connections to the targets (targets.h) and logs changes. A probe is a
 * TCP connection that is closed at once, which a gateway takes for a client that closes. The worker that saw the failure
 * makes one at a time, every `target_retry`, while the target is failed and there is another one, or the listener is
 * closed (when_down). So a working server never sees a probe, a recovering one sees one, and no client waits for a dead
 * host. Only a connection can test the server behind a gateway; it may go on to another target (setup_redial). */
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
/* Stops the probes until the next failure. */
void target_probe_stop(struct service *);
/* After a change of the service's settings. */
void target_probe_restart(struct service *);

/* Probes failed targets of this peer (port 0: any; NULL: all) now, one after the other. Returns their number. */
unsigned target_probe_now(struct service *, const struct sockaddr_storage *peer);

/* A connection with these settings reached the target; served: also the server behind it. */
void target_good(const struct settings *, const struct endpoint_pick *, bool served);
/* A connection with these settings failed. */
void target_bad(const struct settings *, const struct endpoint_pick *, enum endpoint_fault, const char *why);
