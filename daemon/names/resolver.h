/* Name look-ups on the main loop, by c-ares: /etc/hosts and name servers as configured (resolv.conf, nsswitch.conf).
 * The files are read again when resolv.conf has changed. Without c-ares resolver_none.c is built. */
#pragma once

#include "daemon/loop/loop.h"
#include "daemon/names/dns_ttl.h"
#include "daemon/target/endpoints.h"

struct resolver;

struct resolver_answer {
	const char *why; /* why there is no address; NULL: at least one address */
	bool lasts;      /* see dns_ttl.h */
	uint32_t ttl_s;
	/* In the order of use (RFC 6724); those of SRV records by priority. */
	struct target_addr addrs[CONFIG_TARGET_ADDRS_MAX];
	unsigned cnt;
	/* Left out addresses, which no name server may choose and /etc/hosts does not have. */
	unsigned left_out_cnt;
	struct sockaddr_storage left_out;
};

typedef void (*resolver_done)(void *arg, const struct resolver_answer *);

/* 0, -ENOSYS without c-ares, or -errno. */
int resolver_new(struct loop *, struct resolver **);
/* Ends every pending look-up before it returns. NULL is allowed. */
void resolver_free(struct resolver *);

/* The addresses of a host, with this port; or, srv, of the hosts in the SRV records of this name, with their ports.
 * done is called once, possibly before this returns; it starts no look-up itself. */
void resolver_ask(struct resolver *, const char *name, bool srv, uint16_t port, resolver_done done, void *arg);
/* In each turn; returns the latest time of the next call. */
int64_t resolver_turn(struct resolver *, int64_t now_ns);
