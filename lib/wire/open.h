/* Messages between two smcrd that open a connection over a link of its group, without a CLC connection (doc/open.md).
 * They are LLC messages of types that other implementations ignore (RFC 7609 A.3: two high bits 10), of LLC_LEN bytes.
 * Bytes <-> host structs; pure. */
#pragma once

#include "base/span.h"
#include "wire/clc_tlvs.h"

#define OPEN_LEN 44
#define OPEN_GRANT_ELEMS 2 /* most elements of a GRANT */

enum open_type {
	OPEN_GRANT = 0x81, /* server: elements for connections that the client opens */
	OPEN_CONN = 0x82,  /* client: opens a connection with one of them */
};

/* An RMB element, as in a CLC message: rkey and address name the RMB on the link that carries the message. */
struct open_elem {
	uint32_t token; /* alert token of the connection that has it */
	uint32_t rkey;
	uint64_t vaddr;
	uint8_t idx;       /* from 1 */
	uint8_t size_code; /* clc_size_bytes() */
};

/* The program's client, as far as an OPEN has room: not of IPv6. */
struct open_client {
	uint8_t kind; /* CLC_CLIENT_NONE, _UNIX, _V4 */
	uint16_t port;
	uint32_t value; /* IPv4 address, or uid */
};

/* False: it does not fit. */
bool open_client_make(const struct clc_client *, struct open_client *);
struct clc_client open_client_get(const struct open_client *);

struct open_msg {
	enum open_type type;
	uint8_t cnt; /* OPEN_GRANT: elements, 1..OPEN_GRANT_ELEMS; OPEN_CONN: granted elements that are left */
	/* OPEN_GRANT */
	struct open_elem granted[OPEN_GRANT_ELEMS];
	/* OPEN_CONN */
	uint32_t granted_token; /* of the granted element */
	uint32_t ticket;        /* of the service, from an Accept of this group */
	struct open_elem own;   /* the client's */
	uint8_t hops;           /* these two as in struct clc_smcrd_ext */
	uint32_t origin;
	struct open_client client;
};

/* OPEN_LEN, -EOPNOTSUPP for any other type, or -EBADMSG; *out is untouched unless > 0. */
int open_decode(struct span in, struct open_msg *out) __attribute__((warn_unused_result));

/* OPEN_LEN, -EINVAL for a value out of range, or -ENOSPC; buf is untouched on failure. */
int open_encode(const struct open_msg *msg, uint8_t *buf, size_t cap) __attribute__((warn_unused_result));
