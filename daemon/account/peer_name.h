/* Configured names of peers, for logs and events beside the address. Looked up for reports, not per connection. */
#pragma once

#include <sys/socket.h>

struct service;
struct session_pool;

/* The name in the service's `to` that resolves to this address; a single target always matches. "": the target is an
 * address or a UNIX socket, or no name resolves to it. */
const char *peer_name_of(const struct service *, const struct sockaddr_storage *there);
/* An ingress to this address (port 0: to this host), preferably one with a name for it; or NULL. *cnt: their number. */
const struct service *peer_name_find(const struct session_pool *, const struct sockaddr_storage *, unsigned *cnt);
