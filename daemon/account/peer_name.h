/*
 * Far ends by name: what the configuration calls whoever is at an address. Logs and events name peers so, besides their
 * addresses. Looked up when there is something to tell, never for a connection.
 */
#pragma once

#include <sys/socket.h>

#include "daemon/config/config.h"

struct service;
struct session_pool;

/* The name in the service's `to` that stands for this place (with several targets; with one it is that); "" when that is an address
 * or a UNIX socket, or no name stands for it any more. */
const char *peer_name_of(const struct service *, const struct sockaddr_storage *there);
/* An ingress that leads to this place, with port 0: to this host; one that has a name for it, if any has. NULL: none. *cnt: how
 * many there are. */
const struct service *peer_name_find(const struct session_pool *, const struct sockaddr_storage *, unsigned *cnt);
