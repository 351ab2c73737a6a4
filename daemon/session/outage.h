/*
 * Outages: what keeps the far end of a service from serving (the peer of an
 * ingress, the server of an egress), told to the log once when it begins, when
 * its reason changes, and when it is over; never for each connection. And
 * strangers: whoever comes to an egress and is no SMC-R peer.
 *
 * Embedded in struct service. Called by session*.c.
 */
#ifndef SMCRD_DAEMON_OUTAGE_H
#define SMCRD_DAEMON_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

struct service;
union net_addr;

enum outage_kind {
	OUTAGE_NONE,
	OUTAGE_CONNECT, /* no TCP connection */
	OUTAGE_RESET,   /* the peer ends the connection before the rendezvous is through */
	OUTAGE_NO_SMC,  /* the peer answers nothing, or what is no CLC message */
	OUTAGE_SETUP,   /* anything else that the engine ends a rendezvous for */
};

/* What proves the end of which kinds. */
enum {
	OUTAGE_OVER_CONNECTED = 1 << OUTAGE_CONNECT,                                     /* of an egress */
	OUTAGE_OVER_DECLINED = 1 << OUTAGE_CONNECT | 1 << OUTAGE_NO_SMC,                 /* the peer speaks CLC */
	OUTAGE_OVER_BYTES = 1 << OUTAGE_CONNECT | 1 << OUTAGE_RESET,                     /* data of the peer on TCP */
	OUTAGE_OVER_SMCR = OUTAGE_OVER_DECLINED | OUTAGE_OVER_BYTES | 1 << OUTAGE_SETUP, /* a connection is on SMC-R */
};

struct outage {
	enum outage_kind kind;
	bool told; /* its beginning was, so its end will be */
	int err;   /* errno of OUTAGE_CONNECT */
	const char *why;
	uint64_t failed; /* connections so far */
	int64_t since_ns;
	int64_t told_ns;
	/* Of the service, so that one which goes on and off fills no log. */
	int64_t window_ns;
	unsigned window_cnt;
};

/* One more connection failed. far: the address that was tried; why, static, "" or more words; err: errno or 0. */
void outage_failed(struct service *, enum outage_kind, const union net_addr *far, const char *why, int err);
/* The kinds of OUTAGE_OVER_ are over; cheap when there is none. */
void outage_over(struct service *, unsigned kinds, const union net_addr *far);
/* Somebody at an egress who is no SMC-R peer. */
void outage_stranger(struct service *, const union net_addr *from, const char *why);

#endif
