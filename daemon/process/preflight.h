/* Advice of smcrd -t about a correct configuration: access, addresses, names, SRV records, servers of egress. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"

#define PREFLIGHT_WAIT_MS 1000     /* for all SRV records together, and then for all servers together */
#define PREFLIGHT_SERVERS_MAX 256u /* addresses of servers that are tried */
#define PREFLIGHT_RECORDS_MAX 64u  /* names of SRV records that are looked up */

/* One line each, "FILE: warning: ...". Binds sockets to the addresses of services without listening; looks up SRV records, which the load
 * leaves to the daemon; connects to the servers of egress services and closes at once. Does not connect to peers of ingress services,
 * which would count an unknown peer (`smcrctl check` does). Returns after twice wait_ms at most. */
void preflight_print(const struct config *, unsigned wait_ms, FILE *out);
