/* The SMC-R TCP option: experimental option 254 with "SMCR" in EBCDIC (RFC 7609 A.1, RFC 6994), which SYN and
 * SYN/ACK of two SMC-R ends carry. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define TCPOPT_SMCR_KIND 254
#define TCPOPT_SMCR_LEN 6
#define TCPOPT_SMCR_MAGIC 0xe2d4c3d9u
#define TCPOPT_SMCR_PADDED_LEN 8 /* with two NOPs in front, as Linux writes it */

/* 1 when the options area (what follows the 20 bytes of the TCP header) has the option, 0 when not, -EBADMSG when an
 * option before it runs past the end. */
int tcpopt_find_smcr(struct span options) __attribute__((warn_unused_result));

/* Two NOPs and the option: 8 bytes written, or -ENOSPC. */
int tcpopt_encode_smcr(uint8_t *buf, size_t cap) __attribute__((warn_unused_result));
