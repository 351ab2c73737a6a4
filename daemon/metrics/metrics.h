/* Metrics over HTTP, in the main thread: collects the documents that http.c requests from the reports of the control socket, a bounded
 * number of steps each turn. Owner: smcrd.c. */
#pragma once

#include <stdio.h>

#include "daemon/control/report.h"
#include "daemon/net/listen_socket.h"
#include "daemon/worker/workers.h"

struct metrics;

/* Opens the address of cfg, or takes the socket that listens there out of `passed`; none without an address. To be called before the
 * process gives its rights up. 0, or -errno with the reason in err; the caller closes the socket in either case. */
int metrics_listen(const struct config *cfg, struct listen_socket_list *passed, struct listen_socket *out, FILE *err);
/* Listens at a copy of the socket; without one *out is NULL. The state of the process and the counters of the control socket outlive it.
 * Starts no thread yet. 0, or -errno with the reason in err. */
int metrics_new(struct loop *main, struct workers *, const struct config *, const struct listen_socket *,
    const struct control_stats *, const struct report_process *, struct event_history *, FILE *err,
    struct metrics **out);
/* 0 or -errno. NULL is allowed, as below. */
int metrics_start(struct metrics *);
void metrics_reload(struct metrics *, const struct config *);
/* Before workers_free. */
void metrics_free(struct metrics *);
