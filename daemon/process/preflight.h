/* What smcrd -t advises about a configuration that is right as such: who may connect, whether its addresses are this
 * host's, whether names are looked up again, whether those of SRV records and the servers of egress services are there.
 * Called by smcrd.c. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"

#define PREFLIGHT_WAIT_MS 1000     /* for all SRV records together, and then for all servers together */
#define PREFLIGHT_SERVERS_MAX 256u /* addresses of servers that are tried */
#define PREFLIGHT_RECORDS_MAX 64u  /* names of SRV records that are looked up */

/* One line each, "FILE: warning: ...". Binds sockets to the addresses that services listen on, without listening; looks up SRV
 * records, which the load leaves to the daemon; connects to the servers of egress services and closes at once. Peers of ingress
 * services are left alone: they would take it for a stranger (`smcrctl check` asks them). Returns after twice wait_ms at most. */
void preflight_print(const struct config *, unsigned wait_ms, FILE *out);
