/* The lifetime of a name server's answer (RFC 1035 4.1, RFC 2308 5), which c-ares does not return, and the time of the
 * next look-up. Pure. The messages come from the network and are not trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In seconds, the smallest of the answer's records; false when there are no records, or the message is malformed. */
bool dns_answer_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s);
/* For an answer "no such name" or "no such record": the SOA record's own TTL or its MINIMUM, the smaller one. */
bool dns_negative_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s);

#define DNS_TTL_MIN_S 5        /* lower bound for TTLs, to limit the load on name servers */
#define DNS_TTL_MAX_S 3600     /* limits how long a mistake in a zone lasts */
#define DNS_NEGATIVE_MAX_S 300 /* a service waits for the name */
#define DNS_FAILURE_MAX_S 60   /* no answer, or a server failure: 5, 10, 20, 40, 60 s */

/* Seconds until the name is looked up again. failed: consecutive failed look-ups, 0 after a success. ttl_s: of the
 * records or their absence; NULL: unknown. */
uint32_t dns_next_s(unsigned failed, const uint32_t *ttl_s);
