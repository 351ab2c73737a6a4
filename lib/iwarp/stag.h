/* STags: memory that a peer may access (RFC 5040 8.1.1, RFC 5041 8). A region is an exact byte range with access
 * rights, bound to a protection domain. STag and base address are random over their whole range and reveal nothing
 * about the process. A removed region is inaccessible at once. */
#pragma once

#include <stdbool.h>

#include "base/rng.h"

enum {
	STAG_WRITE = 1 << 0, /* remote write */
	STAG_READ = 1 << 1,  /* remote read */
	STAG_REST = 1 << 2,  /* of a check, with STAG_WRITE: the rest of a Write that was checked as a whole */
};

/* Embedded in its owner's object; the table only links it. */
struct stag_region {
	struct stag_region *next; /* of the same bucket */
	uint32_t stag;            /* 0: not in a table */
	unsigned access;
	uint64_t base; /* address of buf[0] for the peer */
	uint8_t *buf;
	size_t len;
	const void *pd;
	/* Called for each remote write to the region, len > 0; NULL: all are allowed. May set *at to NULL and keep the
	 * bytes at `from`, if that is not NULL. */
	bool (*refuses)(
	    const struct stag_region *, size_t off, size_t len, bool rest, const uint8_t *from, uint8_t **at);
};

struct stag_table {
	struct stag_region **buckets;
	uint32_t mask;
	uint32_t cnt;
};

/* buckets: a power of two. 0 or -ENOMEM. */
int stag_table_init(struct stag_table *, uint32_t buckets);
void stag_table_fini(struct stag_table *);

/* buf, len (> 0), access and pd are set; sets STag and base. */
void stag_add(struct stag_table *, struct stag_region *, struct rng *);
void stag_remove(struct stag_table *, struct stag_region *);
struct stag_region *stag_find(const struct stag_table *, uint32_t stag);

/* In the order of the checks. */
enum stag_verdict {
	STAG_OK,
	STAG_INVALID, /* unknown or revoked */
	STAG_WRONG_PD,
	STAG_NO_ACCESS,
	STAG_WRAP, /* TO + length beyond 64 bits */
	STAG_BOUNDS,
	STAG_REFUSED, /* by the owner of the region */
};

/* Checks an access of a stream of pd to len bytes at `to`. STAG_OK: their address in *at, or NULL: the region keeps the
 * bytes of a write where they are, at `from`; NULL: it may not. */
enum stag_verdict stag_check(const struct stag_table *, const void *pd, unsigned access, uint32_t stag, uint64_t to,
    uint64_t len, const uint8_t *from, uint8_t **at);
