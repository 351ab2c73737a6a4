/* The block of enhanced connection set-up (RFC 6581 9): connection model, kinds of RTR, depths of the Read queues. It begins
 * the private data of MPA's start-up frames and of the DDP stream's session control over SCTP alike. Pure. */
#pragma once

#include <stdint.h>

#define ENHANCED_LEN 4
#define DEPTH_NONE 0x3fff /* IRD, ORD: not negotiated here (9.1) */

/* Control flags: the model, and kinds of RTR. */
enum {
	ENHANCED_P2P = 1 << 0, /* A */
	RTR_SEND = 1 << 1,     /* B */
	RTR_WRITE = 1 << 2,    /* C */
	RTR_READ = 1 << 3,     /* D */
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* Codes of the Terminate (layer LLP, type 0) that ends a set-up (8). */
enum {
	ENHANCED_TERM_LOCAL = 5, /* anything that has no code of its own */
	ENHANCED_TERM_IRD = 6,
	ENHANCED_TERM_RTR = 7,
};

struct enhanced {
	unsigned model; /* ENHANCED_P2P, RTR_* */
	uint16_t ird;   /* 14 bits */
	uint16_t ord;
};

/* Any four bytes are a block: without A, B, C and D are ignored (9.2). */
struct enhanced enhanced_decode(const uint8_t in[ENHANCED_LEN]);
/* ENHANCED_LEN, or -EINVAL: a depth of more than 14 bits, a kind of RTR without the model. */
int enhanced_encode(const struct enhanced *, uint8_t out[ENHANCED_LEN]);
