/* Outages of the far end of a service (the peer of an ingress, the server of an egress). Reported at begin, change of
 * the reason and end. Also reports connections to an egress that do not come from an SMC-R peer. Shared by the workers'
 * services of one name (admission.h); an ingress without targets has one for each far end (far_end.h). Called by session*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "daemon/event/lasting.h"

struct service;
union net_addr;

enum outage_kind {
	OUTAGE_NONE,
	OUTAGE_CONNECT, /* no TCP connection */
	OUTAGE_RESET,   /* the peer ends the connection during the rendezvous */
	OUTAGE_NO_SMC,  /* the peer does not answer, or not with a CLC message */
	OUTAGE_TLS,     /* no TLS with the peer */
	OUTAGE_SETUP,   /* the engine ends a rendezvous for any other reason */
	OUTAGE_ANSWERS, /* of an egress that connects by its clients' addresses: no answer comes back */
};

/* The kinds that an event proves to have ended. */
enum {
	OUTAGE_ENDED_CONNECTED = 1 << OUTAGE_CONNECT,                                       /* of an egress */
	OUTAGE_ENDED_ANSWERED = OUTAGE_ENDED_CONNECTED | 1 << OUTAGE_ANSWERS,               /* by a client's address */
	OUTAGE_ENDED_DECLINED = 1 << OUTAGE_CONNECT | 1 << OUTAGE_NO_SMC | 1 << OUTAGE_TLS, /* the peer speaks CLC */
	OUTAGE_ENDED_BYTES = 1 << OUTAGE_CONNECT | 1 << OUTAGE_RESET, /* data of the peer on TCP */
	OUTAGE_ENDED_SMCR = OUTAGE_ENDED_DECLINED | OUTAGE_ENDED_BYTES | 1 << OUTAGE_SETUP, /* data on SMC-R */
};

struct outage {
	_Atomic(enum outage_kind) kind; /* OUTAGE_NONE: connections that succeed take no lock */
	pthread_mutex_t lock;           /* of all changes, and of the members below */
	int err;                        /* errno of OUTAGE_CONNECT */
	char why[256];
	struct lasting failed; /* connections */
};

/* For reports; "" and zeros without an outage. */
struct outage_info {
	char text[256];
	uint64_t failed;
	int64_t age_ns;
};

void outage_init(struct outage *);
void outage_fini(struct outage *);

/* A connection failed, to the far end with this outage. far: the address tried; why: details or ""; err: errno or 0. */
void outage_failed(
    struct service *, struct outage *, enum outage_kind, const union net_addr *far, const char *why, int err);
/* The targets of the service have changed: drops the outage without a report. */
void outage_forget(struct outage *);
/* Ends an outage of these kinds (OUTAGE_ENDED_); cheap without an outage. */
void outage_end(struct service *, struct outage *, unsigned kinds, const union net_addr *far);
void outage_look(const struct service *, struct outage *, struct outage_info *);
/* Reports a connection to an egress that does not come from an SMC-R peer. */
void outage_unknown_peer(struct service *, const union net_addr *from, const char *why);
