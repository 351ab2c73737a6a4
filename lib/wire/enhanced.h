/* The block of enhanced connection setup (RFC 6581 9): connection model, RTR kinds, Read queue depths. It begins the
 * private data of MPA start-up frames and of SCTP session control messages. Pure. */
#pragma once

#include <stdint.h>

#define ENHANCED_LEN 4
#define DEPTH_NONE 0x3fff /* IRD, ORD: not negotiated (9.1) */

/* Control flags: the model, and RTR kinds. */
enum {
	ENHANCED_P2P = 1 << 0, /* A */
	RTR_SEND = 1 << 1,     /* B */
	RTR_WRITE = 1 << 2,    /* C */
	RTR_READ = 1 << 3,     /* D */
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* Codes of the Terminate (layer LLP, type 0) that ends a setup (8). */
enum {
	ENHANCED_TERM_LOCAL = 5, /* errors without a code of their own */
	ENHANCED_TERM_IRD = 6,
	ENHANCED_TERM_RTR = 7,
};

struct enhanced {
	unsigned model; /* ENHANCED_P2P, RTR_* */
	uint16_t ird;   /* 14 bits */
	uint16_t ord;
};

/* Any four bytes are valid: without A, the flags B, C and D are ignored (9.2). */
struct enhanced enhanced_decode(const uint8_t in[ENHANCED_LEN]);
/* ENHANCED_LEN, or -EINVAL: a depth above 14 bits, or an RTR kind without the model. */
int enhanced_encode(const struct enhanced *, uint8_t out[ENHANCED_LEN]);
