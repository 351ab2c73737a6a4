/* The SMC-R TCP option of SYN and SYN/ACK: option 254 (RFC 6994) with "SMCR" in EBCDIC (RFC 7609 A.1). Pure. */
#pragma once

#include "base/span.h"

#define TCPOPT_SMCR_KIND 254
#define TCPOPT_SMCR_LEN 6
#define TCPOPT_SMCR_MAGIC 0xe2d4c3d9u

/* 1: the options (the TCP header after its first 20 bytes) have it; 0: not; -EBADMSG: one before it passes the end. */
int tcpopt_find_smcr(struct span options) __attribute__((warn_unused_result));
