/* Detects services that lead to each other in a circle, where each connection causes one more. A session counts its
 * hops: the gateway services that its connection is known to have passed through. With CIRCLE_HOPS_MAX it is reset.
 *
 * From an ingress to an egress the hops are in the Proposal (struct clc_smcrd_ext). From a session's leg to a listener
 * there is plain TCP. So a process keeps its legs in a table by origin, a hash of both ends, and recognizes them when
 * it accepts them. An ingress that has accepted another daemon's leg sends its origin in the Proposal to that daemon.
 * Not detected: a circle of daemons none of which meets its own leg in these two ways, or a NAT between them; beyond
 * one daemon, a connection that falls back to TCP without a Proposal. max_connections bounds these. */
#pragma once

#include <pthread.h>
#include "daemon/net/net.h"

#define CIRCLE_HOPS_MAX 8
#define CIRCLE_PLACES 4096

struct session;

/* The leg of a session to its target; embedded in it. Origin 0: not in the table. */
struct circle_leg {
	struct circle_leg *next;
	uint32_t origin;
	uint8_t hops; /* of a connection accepted from it */
};

/* Owned by the workers' owner, which frees it after the workers. Data takes no lock. */
struct circles {
	pthread_mutex_t lock; /* of at[] */
	struct circle_leg *at[CIRCLE_PLACES];
	pthread_rwlock_t connecting; /* held shared by connects that are not in the table yet, for which accepts wait */
	uint32_t host;               /* hash of its boot and network namespace: the scope of loopback addresses */
};

void circles_init(struct circles *);
void circles_fini(struct circles *);

/* net_connect() of the leg, which replaces its earlier entry in the table. */
int circle_connect(struct circles *, struct circle_leg *, const struct sockaddr_storage *, struct worker_ports *,
    const struct config_keepalive *, const struct tcp_option *, const struct net_source *);

/* Sets the hops of an accepted session, if its source is a leg of this process. */
void circle_accepted(struct session *, int fd, const union net_addr *from);
/* Takes the hops of the client's Proposal, if they are more. False: a circle, which is reported. */
bool circle_proposed(struct session *);
/* Whether the session may connect; one that was captured may not come from a leg of this process at all. False: a circle, which is reported. */
bool circle_may_go_on(const struct session *);
/* The leg has ended. */
void circle_forget(struct circles *, struct circle_leg *);
