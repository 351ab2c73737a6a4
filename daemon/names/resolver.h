/*
 * Looking up names on the main loop, by c-ares: /etc/hosts and name servers as its files (resolv.conf, nsswitch.conf) say, which are
 * read again when resolv.conf has changed. The only user of c-ares; resolver_none.c stands for it where it is missing.
 */
#pragma once

#include "daemon/loop/loop.h"
#include "daemon/names/dns_ttl.h"
#include "daemon/target/endpoints.h"

struct resolver;

struct resolver_answer {
	const char *why; /* why there is no address; NULL: there is at least one */
	bool lasts;      /* see dns_ttl.h */
	uint32_t ttl_s;
	/* In the order that they are to be tried in (RFC 6724); those of SRV records by priority. */
	struct target_addr addrs[CONFIG_TARGET_ADDRS_MAX];
	unsigned cnt;
	/* Addresses that no name server may choose, and /etc/hosts does not say, are not among them: how many, and the first. */
	unsigned left_out_cnt;
	struct sockaddr_storage left_out;
};

typedef void (*resolver_done)(void *arg, const struct resolver_answer *);

/* 0, -ENOSYS without c-ares, or -errno. */
int resolver_new(struct loop *, struct resolver **);
/* Every look-up that is under way ends before it returns. NULL is allowed. */
void resolver_free(struct resolver *);

/* The addresses of a host, with this port; or, srv, those of the hosts that the SRV records of this name name, with the ports there.
 * done is called once, perhaps before this returns; it asks for nothing itself. */
void resolver_ask(struct resolver *, const char *name, bool srv, uint16_t port, resolver_done done, void *arg);
/* In each turn; returns when it wants the next one at the latest. */
int64_t resolver_turn(struct resolver *, int64_t now_ns);
