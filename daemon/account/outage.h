/*
 * Outages: what keeps the far end of a service from serving (the peer of an
 * ingress, the server of an egress), told once when it begins, when its reason
 * changes, and when it ends; never for each connection. And strangers: what
 * connects to an egress and is no SMC-R peer.
 *
 * One for each service, which the workers' services of that name share
 * (admission.h), so that it is told once, whichever worker sees it. Called by
 * session*.c.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct service;
union net_addr;

enum outage_kind {
	OUTAGE_NONE,
	OUTAGE_CONNECT, /* no TCP connection */
	OUTAGE_RESET,   /* the peer ends the connection before the rendezvous is through */
	OUTAGE_NO_SMC,  /* the peer answers nothing, or what is no CLC message */
	OUTAGE_SETUP,   /* anything else that the engine ends a rendezvous for */
};

/* The kinds whose end an event proves. */
enum {
	OUTAGE_ENDED_CONNECTED = 1 << OUTAGE_CONNECT,                     /* of an egress */
	OUTAGE_ENDED_DECLINED = 1 << OUTAGE_CONNECT | 1 << OUTAGE_NO_SMC, /* the peer speaks CLC */
	OUTAGE_ENDED_BYTES = 1 << OUTAGE_CONNECT | 1 << OUTAGE_RESET,     /* data of the peer on TCP */
	OUTAGE_ENDED_SMCR = OUTAGE_ENDED_DECLINED | OUTAGE_ENDED_BYTES |
	    1 << OUTAGE_SETUP, /* a connection is on SMC-R */
};

struct outage {
	atomic_bool is;       /* there is one: so connections that are well take no lock */
	pthread_mutex_t lock; /* of what follows */
	enum outage_kind kind;
	bool told; /* its beginning was, so its end will be */
	int err;   /* errno of OUTAGE_CONNECT */
	const char *why;
	uint64_t failed; /* connections so far */
	int64_t since_ns;
	int64_t told_ns;        /* or would have been, but for the limit */
	struct log_limit limit; /* of the service, so that one which comes and goes fills no log */
};

/* For reports: "" and zeros without an outage. */
struct outage_info {
	char text[256];
	uint64_t failed;
	int64_t age_ns;
};

void outage_init(struct outage *);
void outage_fini(struct outage *);

/* One more connection failed. far: the address that was tried; why, static, "" or more words; err: errno or 0. */
void outage_failed(struct service *, enum outage_kind, const union net_addr *far, const char *why, int err);
/* The service has other targets now: what was out is of no more interest, nor told as well again. */
void outage_forget(struct service *);
/* The kinds of OUTAGE_ENDED_ have ended; cheap when there is no outage. */
void outage_end(struct service *, unsigned kinds, const union net_addr *far);
void outage_look(const struct service *, struct outage_info *);
/* Tells of a connection to an egress that comes from no SMC-R peer. */
void outage_unknown_peer(struct service *, const union net_addr *from, const char *why);
