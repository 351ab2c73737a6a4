/* CDC, the connection data control message: cursors and flags of one direction of one connection (RFC 7609 A.4).
 * Pure. On the data path: one comes with every batch of written data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define CDC_LEN 44
#define CDC_TYPE 0xfe

/* prod_flags */
#define CDC_WRITE_BLOCKED 0x80    /* B: wants to hear when there is room */
#define CDC_URGENT_PENDING 0x40   /* P */
#define CDC_URGENT_PRESENT 0x20   /* U: prod points one past the urgent byte */
#define CDC_UPDATE_REQUESTED 0x10 /* R: wants the consumer cursor now */
#define CDC_FAILOVER 0x08         /* F: only token and seq count */
#define CDC_STARTED_OVER 0x04     /* S, between two smcrd: prod counts from the element's start; reserved in RFC 7609 */
#define CDC_IN_PEACE 0x02 /* with F, between two smcrd: nothing was under way when the link was left; reserved */
#define CDC_PROD_FLAGS 0xfe

/* conn_flags */
#define CDC_SENDING_DONE 0x80 /* D */
#define CDC_CLOSED 0x40       /* C */
#define CDC_ABORT 0x20        /* A */
#define CDC_OPERATOR 0x10     /* O, between two smcrd, beside A: an operator wanted it; reserved in RFC 7609 */
#define CDC_CONN_FLAGS 0xf0

struct cdc_cursor {
	uint16_t wrap;  /* how often the count has passed the end */
	uint32_t count; /* offset in the RMB element */
};

struct cdc_msg {
	uint16_t seq;           /* the first is 1, wraps through 0 */
	uint32_t token;         /* the receiver's alert token */
	struct cdc_cursor prod; /* in the receiver's element: where the next byte goes */
	struct cdc_cursor cons; /* in the sender's own element: read so far */
	uint8_t prod_flags;
	uint8_t conn_flags;
};

/* 44, or -EBADMSG when `in` is not exactly one CDC message; *out is untouched then. Reserved flag bits are dropped.
 * Whether token and cursors make sense is for the caller to check. */
int cdc_decode(struct span in, struct cdc_msg *out) __attribute__((warn_unused_result));

/* 44, -EINVAL for an unknown flag, -ENOSPC; buf is untouched on failure. */
int cdc_encode(const struct cdc_msg *msg, uint8_t *buf, size_t cap) __attribute__((warn_unused_result));
