/* The program's client and its destination in a Proposal between two smcrd: TLVs behind the growth area
 * (doc/transparent.md). Bytes <-> host structs; pure. For clc.c. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/span.h"

struct codec;

#define CLC_TLVS_MAX 128 /* bytes of a received list */

enum clc_client_kind {
	CLC_CLIENT_NONE = 0,
	CLC_CLIENT_UNIX = 1, /* a program on this host's UNIX socket */
	CLC_CLIENT_V4 = 4,
	CLC_CLIENT_V6 = 6,
};

struct clc_client {
	enum clc_client_kind kind;
	uint16_t port;    /* V4, V6: from 1 */
	uint8_t addr[16]; /* V4: the first 4 bytes. V6: never an IPv4 address */
	uint32_t uid;     /* UNIX */
};

/* The server that the program wants, where one service leads to many. */
enum clc_dest_kind {
	CLC_DEST_NONE = 0,
	CLC_DEST_V4 = 4,
	CLC_DEST_V6 = 6,
};

struct clc_dest {
	enum clc_dest_kind kind;
	uint16_t port;    /* from 1 */
	uint8_t addr[16]; /* V4: the first 4 bytes, then 0. V6: never an IPv4 address */
};

static inline bool
clc_dest_same(const struct clc_dest *one, const struct clc_dest *other)
{
	return one->kind == other->kind && one->port == other->port &&
	    memcmp(one->addr, other->addr, sizeof(one->addr)) == 0;
}

struct clc_tlvs {
	struct clc_client client;
	struct clc_dest dest;
	uint8_t unknown; /* the first type that must be understood, and is not; 0: none */
};

/* The list at the start of `area`, if one is there. c->bad if it is malformed. */
void clc_tlvs_read(struct codec *, struct rcur area, struct clc_tlvs *);
/* The list that clc_tlvs_read() reads; nothing without client and destination. `unknown` must be 0. */
void clc_tlvs_write(struct codec *, struct clc_tlvs *);
/* Bytes that clc_tlvs_write() writes. */
size_t clc_tlvs_len(const struct clc_tlvs *);
