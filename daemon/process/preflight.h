/* Advice of smcrd -t about a correct configuration: access, names, SRV records, servers of egress; addresses and ports. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"

#define PREFLIGHT_WAIT_MS 1000     /* for all SRV records together, and then for all servers together */
#define PREFLIGHT_SERVERS_MAX 256u /* addresses of servers that are tried */
#define PREFLIGHT_RECORDS_MAX 64u  /* names of SRV records that are looked up */

/* One line each, "FILE: warning: ...". Looks up SRV records, which the load leaves to the daemon; connects to the servers of egress services and closes at once. Does not connect to peers of ingress services,
 * which would count an unknown peer (`smcrctl check` does). Returns after twice wait_ms at most. */
void preflight_print(const struct config *, unsigned wait_ms, FILE *out);
/* One line for each address, port or UNIX socket that cannot be listened on now, unless the running daemon of this
 * configuration does, which is asked by its control socket. Binds sockets without listening, and creates no file. */
void preflight_listen(const struct config *, FILE *out);
