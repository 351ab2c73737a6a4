/*
 * Which address a connection of a service is sent to: the addresses of its targets, which of them have failed, and the choice among
 * them. Pure: time and random numbers are handed in; targets.c has the lock, the names, and the life.
 *
 * A target that failed is passed over while there are others, and is chosen when there are none: nobody is refused without a
 * try. It is back as soon as a connection, or the attempt that is made in the background for that purpose (target_probe.c), is through.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "daemon/config/config.h"

#define ENDPOINTS_MAX 64 /* of a service: bits of a set */
#define ENDPOINT_WHY_MAX 96

/* What was found wrong, and with that what proves that it is over. */
enum endpoint_fault {
	ENDPOINT_OK,
	ENDPOINT_CONNECT, /* no TCP connection */
	ENDPOINT_SETUP,   /* a connection, but no service: a gateway whose server is down */
};

/* An address of a target, as its name has it now. */
struct target_addr {
	struct sockaddr_storage ss;
	uint16_t priority, weight; /* of SRV records (RFC 2782); 0 */
};

struct endpoint {
	struct sockaddr_storage addr;
	uint32_t id;            /* never another one's */
	unsigned target, order; /* which target, and which of its addresses */
	uint16_t priority, weight;
	bool by_weight; /* of SRV records */
	enum endpoint_fault fault;
	bool trial;      /* one connection may find out */
	unsigned prober; /* the worker that looks after it */
	int64_t since_ns, due_ns;
	char why[ENDPOINT_WHY_MAX];
	uint64_t connections, failures, passed_over;
};

struct endpoints {
	uint64_t used; /* places; what is free is not looked at */
	struct endpoint at[ENDPOINTS_MAX];
	enum config_policy policy;
	bool watched; /* a single one that failed is looked at, too: nobody else finds out that it is back */
	uint32_t turn, addr_turn; /* of policy "spread" */
	uint32_t last_id;
};

/* One that was chosen. */
struct endpoint_pick {
	struct sockaddr_storage addr;
	unsigned place;
	uint32_t id;
};

unsigned endpoints_count(const struct endpoints *);
/* The addresses of a target from now on, in the order that they are to be tried in; one that it had before keeps what is known
 * of it, and one that another target has is that one's. What has no room is left out: returns how many there are. */
unsigned endpoints_set(
    struct endpoints *, unsigned target, bool by_weight, const struct target_addr *addrs, unsigned cnt);

/* There is none, or each has failed, and none is to be found out about by a connection. */
bool endpoints_down(const struct endpoints *);

/* The next one for a connection that has tried those of the set; false: all were. Puts it into the set. */
bool endpoints_pick(struct endpoints *, int64_t now_ns, struct rng *, uint64_t *tried, struct endpoint_pick *out);
/* A good one that is not in the set is there. */
bool endpoints_have_other(const struct endpoints *, uint64_t tried);

/* The connection is through to it; served: to what is behind it, too. True when that is news. */
bool endpoints_good(struct endpoints *, const struct endpoint_pick *, bool served);
/* It failed; looked at again at due_ns, by this prober. True when that is news. */
bool endpoints_bad(struct endpoints *, const struct endpoint_pick *, enum endpoint_fault, const char *why,
    int64_t now_ns, int64_t due_ns, unsigned prober);

/* The next one that this prober has to look at, if it is due; false: not yet, *at_ns is when, INT64_MAX: there is none. */
bool endpoints_due(
    const struct endpoints *, unsigned prober, int64_t now_ns, struct endpoint_pick *out, int64_t *at_ns);
/* All that this prober has to look at are due now; those of this peer (port 0: any) or, NULL, of all. How many. */
unsigned endpoints_retry_now(struct endpoints *, unsigned prober, const struct sockaddr_storage *peer, int64_t now_ns);
/* What a look has found: it can be connected, or cannot, and is looked at again at due_ns. True when it is good, which is news. */
bool endpoints_looked(struct endpoints *, const struct endpoint_pick *, bool connected, int64_t due_ns);
