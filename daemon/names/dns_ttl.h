/*
 * How long an answer of a name server counts (RFC 1035 4.1, RFC 2308 5): what c-ares does not tell. And when a name is to be looked
 * up again. Pure. The messages come from the network, and nothing of them is believed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In seconds, the smallest one of the answer's records; false when there are none, or it is broken. */
bool dns_answer_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s);
/* Of an answer that says "no such name" or "no such record": the SOA record's own TTL or its MINIMUM, the smaller one. */
bool dns_negative_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s);

/* What has come of a look-up. */
struct dns_outcome {
	bool found;
	bool lasts; /* ttl_s is known: of the records, or of there being none */
	uint32_t ttl_s;
	unsigned failed; /* look-ups in a row, with this one */
};

#define DNS_TTL_MIN_S 5        /* whatever the records say: a name server is no clock */
#define DNS_TTL_MAX_S 3600     /* a mistake in a zone is over after that */
#define DNS_NEGATIVE_MAX_S 300 /* a service waits for it */
#define DNS_FAILURE_MAX_S 60   /* nobody answers, or a server has failed: 5, 10, 20, 40, 60 s */

/* The name is looked up again after so many seconds. */
uint32_t dns_next_s(const struct dns_outcome *);
