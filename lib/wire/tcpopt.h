/* The SMC-R TCP option in SYN and SYN/ACK of SMC-R ends: experimental option 254 with "SMCR" in EBCDIC (RFC 7609 A.1,
 * RFC 6994). Pure. */
#pragma once

#include "base/span.h"

#define TCPOPT_SMCR_KIND 254
#define TCPOPT_SMCR_LEN 6
#define TCPOPT_SMCR_MAGIC 0xe2d4c3d9u

/* 1 if the options area (the TCP header after its first 20 bytes) has the option, 0 if not. -EBADMSG if an option
 * before it runs past the end. */
int tcpopt_find_smcr(struct span options) __attribute__((warn_unused_result));
