/* The addresses of a service's targets, their failures, and the choice of one for a connection. Pure: time and random
 * numbers are arguments; targets.c has lock, names and lifetime. A failed target is chosen only when all have failed:
 * no connection is refused without an attempt. It is good again after a successful connection or probe. One whose
 * health is down counts as failed. Backup targets are chosen only while no other works. */
#pragma once

#include "base/rng.h"
#include "daemon/target/health.h"

#define ENDPOINTS_MAX 64 /* of a service: bits of a set */
#define ENDPOINT_WHY_MAX 96

/* The fault, which also determines the proof that it has ended. */
enum endpoint_fault {
	ENDPOINT_OK,
	ENDPOINT_CONNECT, /* no TCP connection */
	ENDPOINT_SETUP,   /* a connection without service: a gateway whose server is down */
};

struct target_addr {
	struct sockaddr_storage ss;
	uint16_t priority, weight; /* of SRV records (RFC 2782); 0 */
};

struct endpoint {
	struct sockaddr_storage addr;
	uint32_t id;            /* never reused */
	unsigned target, order; /* number of the target, and of the address in it */
	uint16_t priority, weight;
	bool by_weight; /* SRV records */
	enum endpoint_fault fault;
	bool trial;      /* the next connection may try it */
	unsigned prober; /* number of the worker that probes it */
	int64_t since_ns, due_ns;
	char why[ENDPOINT_WHY_MAX];
	uint64_t connections, failures, passed_over;
	struct health health; /* as the prober has set it last */
};

struct endpoints {
	uint64_t used; /* bits of places in use */
	struct endpoint at[ENDPOINTS_MAX];
	enum config_policy policy;
	uint32_t backups;         /* bits of targets */
	bool watched;             /* probes also a single failed endpoint, as no connection tries it */
	uint32_t turn, addr_turn; /* of policy "spread" */
	uint32_t last_id;
};

struct endpoint_pick {
	struct sockaddr_storage addr;
	unsigned place;
	uint32_t id;
};

unsigned endpoints_count(const struct endpoints *);
/* The endpoint with this address; NULL: none. */
struct endpoint *endpoints_find(struct endpoints *, const struct sockaddr_storage *);
/* Replaces the addresses of a target, in the order of attempts. A known address keeps its state; an address of another
 * target stays there. Returns the number stored: addresses beyond ENDPOINTS_MAX are left out. */
unsigned endpoints_set(
    struct endpoints *, unsigned target, bool by_weight, const struct target_addr *addrs, unsigned cnt);

/* No endpoint, or all have failed and none is on trial. */
bool endpoints_down(const struct endpoints *);

/* Chooses the next endpoint for a connection and adds it to the set of tried ones; false: all are tried. */
bool endpoints_pick(struct endpoints *, int64_t now_ns, struct rng *, uint64_t *tried, struct endpoint_pick *out);
/* Whether there is a good endpoint outside the set. */
bool endpoints_have_other(const struct endpoints *, uint64_t tried);

/* The health of this address, if it is there. up_serves: a state UP proves that the server works, which ends any fault. */
void endpoints_probed(struct endpoints *, const struct sockaddr_storage *, const struct health *, bool up_serves);

/* The connection to the endpoint succeeded; served: also to the server behind it. True when the state changes. */
bool endpoints_good(struct endpoints *, const struct endpoint_pick *, bool served);
/* The endpoint failed; this prober probes it at due_ns. True when the state changes. */
bool endpoints_bad(struct endpoints *, const struct endpoint_pick *, enum endpoint_fault, const char *why,
    int64_t now_ns, int64_t due_ns, unsigned prober);

/* The next endpoint that this prober has to probe, if it is due; false: *at_ns is the due time, INT64_MAX: none. */
bool endpoints_due(
    const struct endpoints *, unsigned prober, int64_t now_ns, struct endpoint_pick *out, int64_t *at_ns);
/* Makes this prober's endpoints of the peer (port 0: any; NULL: all) due now. Returns their number. */
unsigned endpoints_retry_now(struct endpoints *, unsigned prober, const struct sockaddr_storage *peer, int64_t now_ns);
/* The result of a probe; the next one is at due_ns. True when the endpoint has become good. */
bool endpoints_looked(struct endpoints *, const struct endpoint_pick *, bool connected, int64_t due_ns);
