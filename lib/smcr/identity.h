/* The peer as the engine's user knows it. */
#pragma once

#include <stdint.h>

/* The host at the other end of a CLC connection, by its address, and its name if that is proven. See owner.h for the owner
 * of a link group. */
struct smcr_identity {
	uint8_t addr[16];    /* IPv4 mapped into IPv6 */
	uint32_t scope;      /* of a link-local address: the interface */
	uint8_t level;       /* of the user's protection; 0: none */
	uint8_t name_id[32]; /* with a level: digest of the name that the host has proven */
	void *proof;         /* the user's, of that name (proof.h); not compared */
};

#define SMCR_NAME_MAX 256

/* A digest of the rules by which the user takes a peer for a service; zeros in clear. */
struct smcr_scope {
	uint8_t b[16];
};
