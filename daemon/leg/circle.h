/*
 * Services that lead to each other in a circle: each connection would become one more, until the limits are reached. A session
 * counts the services of gateways that its connection has come through, its hops, as far as they can be known, and one with
 * CIRCLE_HOPS_MAX of them is reset before it connects anywhere.
 *
 * From an ingress to the other daemon's egress the hops go with the Proposal (struct clc_smcrd_ext). From the leg of a session to
 * a listener there is plain TCP, which says nothing; so a process remembers its own legs by a hash of both their ends, their
 * origin, and knows them when it accepts them. An ingress that has accepted another daemon's leg passes
 * its origin on with the Proposal, and if that comes to the daemon whose leg it was, that one knows it.
 *
 * Not seen: a circle over daemons of which none meets a leg of its own again in these two ways, a NAT between them, and
 * a connection that falls back to TCP without a Proposal, outside of one daemon. max_connections bounds these.
 *
 * One table for all workers, under a lock, which a session takes a few times in its set-up and at its end. What one worker
 * connects another one may accept before connect() has returned: what comes from this host waits until connects that are
 * under way are in the table.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CIRCLE_HOPS_MAX 8
#define CIRCLE_PLACES 4096 /* a power of two */

struct config_keepalive;
struct worker_ports;
struct session;
struct tcp_option;
struct sockaddr_storage;
union net_addr;

/* The leg of a session to its target; embedded in it. Origin 0: not in the table. */
struct circle_leg {
	struct circle_leg *next;
	uint32_t origin;
	uint8_t hops; /* of what is accepted from it */
};

/* Owned by the workers' owner, which frees it when it has freed the workers. */
struct circles {
	pthread_mutex_t lock; /* of what follows */
	struct circle_leg *at[CIRCLE_PLACES];
	pthread_rwlock_t connecting; /* shared while a leg is not in the table yet */
	uint32_t host;               /* a hash: where loopback addresses mean the same */
};

void circles_init(struct circles *);
void circles_fini(struct circles *);

/* net_connect() of the leg, which is in the table from then on in place of the one before. */
int circle_connect(struct circles *, struct circle_leg *, const struct sockaddr_storage *, struct worker_ports *,
    const struct config_keepalive *, const struct tcp_option *);

/* The session was accepted from this address: its hops, if that is a leg of ours. */
void circle_accepted(struct session *, int fd, const union net_addr *from);
/* The client's Proposal is in: its hops, if they are more. False: it is one of a circle, which has been told. */
bool circle_proposed(struct session *);
/* May it be connected further? False: it is one of a circle, which has been told. */
bool circle_may_go_on(const struct session *);
void circle_ended(struct session *);
