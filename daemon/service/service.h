/*
 * Services: what the configuration names, with a listener and counters.
 *
 *	settings.c	settings, counted; frees a service with its last ones
 *	service.c	services; makes the link group of an ingress before its first client comes:
 *			a probe, repeated with growing pauses while the peer is not there
 *	target_probe.c		targets that failed, looked at again in the background
 *	listener.c	accepts in batches, checks who comes and how many are there, starts sessions; pauses when
 *			descriptors or memory run out
 */
#pragma once

#include "daemon/state/service_state.h"

/* A configured service without a listener yet; NULL when memory is out. */
struct service *service_new(struct session_pool *, const struct config_service *);
/* No longer configured: stopped, and freed once the last session is gone. */
void service_drop(struct service *);
/* Makes a link group ahead if the settings want it, anew when they have changed. */
void service_prewarm(struct service *);
/* Those that pause before another try to do so, with this peer (port 0: any) or, NULL, with any, try now. How many. */
unsigned services_retry(struct session_pool *, const struct sockaddr_storage *peer);
/* Their failed targets, too, are looked at now (target_probe_now). How many. */
unsigned services_retry_now(struct session_pool *, const struct sockaddr_storage *peer);
/* Closes the listening socket and ends the prewarming; harmless when there is none. */
void service_stop(struct service *);
/* disabled, or pool->draining, is another: listener and prewarming follow. 0, or -errno: it cannot listen, which is logged. */
int service_follow(struct service *);
/* Those whose listener depends on their targets do so. */
void services_follow(struct session_pool *);
/* No target works, and it does not listen therefore (when_down). */
bool service_is_closed(const struct service *);

/* settings.c */
/* listener.c */
void listener_init(struct listener *);
/* Takes a listening socket over and accepts from now on, if the service is not disabled: 0, or -errno and the socket is still the
 * caller's. */
int listener_start(struct service *, const struct listen_socket *);
/* The mode that service and pool want. What waits in the backlog of a listener that was open is taken first. 0 or -errno. */
int listener_follow(struct service *);
/* Puts changed keepalive settings in force. */
void listener_tune(struct service *);
/* Accepts no more. Returns the socket, which is the caller's again; fd -1 when there was none. */
struct listen_socket listener_stop(struct service *);
