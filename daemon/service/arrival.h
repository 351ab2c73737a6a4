/* Accepted connections of balancers (accept_proxy): each waits for its PROXY header, which names the client, before it is
 * admitted. It has no session yet. Owned by the pool. */
#pragma once

#include "daemon/state/service_state.h"

/* This source's connections begin with a header. */
bool arrival_expected(const struct service *, const struct sockaddr_storage *source);
/* Takes fd: listener_admit() follows, at once if the header is there, or listener_refuse(). */
void arrival_start(struct service *, int fd, const struct sockaddr_storage *source);
/* Resets those that wait. */
void arrivals_stop(struct session_pool *);
