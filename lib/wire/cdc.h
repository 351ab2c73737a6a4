/* CDC, connection data control: cursors and flags of one direction (RFC 7609 A.4). Pure; on the data path. */
#pragma once

#include "base/span.h"

#define CDC_LEN 44
#define CDC_TYPE 0xfe

/* prod_flags */
#define CDC_WRITE_BLOCKED 0x80    /* B: requests a cursor update when space is available */
#define CDC_URGENT_PENDING 0x40   /* P */
#define CDC_URGENT_PRESENT 0x20   /* U: prod points one past the urgent byte */
#define CDC_UPDATE_REQUESTED 0x10 /* R: requests the consumer cursor now */
#define CDC_FAILOVER 0x08         /* F: only token and seq are valid */
#define CDC_STARTED_OVER 0x04     /* S, smcrd to smcrd: prod counts from the element start; reserved in the RFC */
#define CDC_IN_PEACE 0x02         /* with F, smcrd to smcrd: nothing was in flight at failover; reserved */
#define CDC_PROD_FLAGS 0xfe

/* conn_flags */
#define CDC_SENDING_DONE 0x80 /* D */
#define CDC_CLOSED 0x40       /* C */
#define CDC_ABORT 0x20        /* A */
#define CDC_OPERATOR 0x10     /* O, smcrd to smcrd, with A: reset by an operator; reserved in RFC 7609 */
#define CDC_NOT_OPENED 0x08   /* smcrd to smcrd, with A: refuses an OPEN (open.h); reserved in RFC 7609 */
#define CDC_CONN_FLAGS 0xf8

struct cdc_cursor {
	uint16_t wrap;  /* number of passes over the end */
	uint32_t count; /* offset in the RMB element */
};

struct cdc_msg {
	uint16_t seq;           /* starts at 1, wraps through 0 */
	uint32_t token;         /* the receiver's alert token */
	struct cdc_cursor prod; /* in the receiver's element: position of the next byte */
	struct cdc_cursor cons; /* in the sender's own element: consumed so far */
	uint8_t prod_flags;
	uint8_t conn_flags;
};

/* 44, or -EBADMSG if `in` is not exactly one CDC message; *out is untouched then. Reserved flag bits are dropped. The
 * caller checks token and cursors. */
int cdc_decode(struct span in, struct cdc_msg *out) __attribute__((warn_unused_result));

/* 44, -EINVAL for an unknown flag, -ENOSPC; buf is untouched on failure. */
int cdc_encode(const struct cdc_msg *msg, uint8_t *buf, size_t cap) __attribute__((warn_unused_result));
