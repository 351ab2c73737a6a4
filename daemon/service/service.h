/* Services of the configuration: start, stop, and prewarming, by which a probe makes the link group of an ingress before
 * the first client. It is repeated with growing pauses while it fails. */
#pragma once

#include "daemon/state/service_state.h"

/* A configured service without a listener; NULL: out of memory. */
struct service *service_new(struct session_pool *, const struct config_service *);
/* Stops a service that is no longer configured; its last session frees it. */
void service_drop(struct service *);
/* Starts prewarming, or restarts it after a change of the settings, if they want it. */
void service_prewarm(struct service *);
/* Restarts prewarming that pauses, to this peer (port 0: any; NULL: all). Returns the number of services. Also does
 * target_probe_now of all services, and adds the number of targets. */
unsigned services_retry(struct session_pool *, const struct sockaddr_storage *peer, unsigned *targets);
/* Closes the listening socket and ends the prewarming; idempotent. */
void service_stop(struct service *);
/* After a change of svc->disabled or pool->draining: updates listener and prewarming. 0 or -errno, logged. */
int service_follow(struct service *);
/* The listener is closed because no target works (when_down). */
bool service_is_closed(const struct service *);

/* listener.c: accepts in batches, checks allow lists and limits, starts sessions; pauses when descriptors or memory run
 * out. */
void listener_init(struct listener *);
/* Takes a listening socket and accepts, unless the service is disabled: 0, or -errno: the caller keeps the socket. */
int listener_start(struct service *, const struct listen_socket *);
/* Sets the mode by service and pool; an open listener first accepts its backlog. 0 or -errno. */
int listener_follow(struct service *);
void listener_tune(struct service *);
/* An accepted connection, and whom it counts as: starts its session, or refuses it by lists and limits. Takes fd. */
void listener_admit(
    struct service *, int fd, const struct sockaddr_storage *source, const struct sockaddr_storage *client);
/* Resets, logs and counts. why: static. */
void listener_refuse(struct service *, int fd, const union net_addr *, const char *why, uint64_t *counter);
/* A peer has opened a connection over a link: its session's owner. NULL: refused, for a rendezvous to show why. */
struct conn_owner *listener_opened(struct session_pool *, struct smcr_conn *);
/* Stops accepting. Returns the socket to the caller; fd -1: there was none. */
struct listen_socket listener_stop(struct service *);
