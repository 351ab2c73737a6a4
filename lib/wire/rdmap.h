/* RDMAP on the wire (RFC 5040 4): control byte, Read Request, Terminate. Pure; used by lib/iwarp. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/ddp.h"

#define RDMAP_VERSION 1
#define RDMAP_READ_LEN 28                                 /* header of a Read Request, 4.4 */
#define RDMAP_TERM_MAX (6 + DDP_HDR_MAX + RDMAP_READ_LEN) /* 4.8 */

enum rdmap_op {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQ = 1,
	RDMAP_READ_RESP = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_OP_CNT,
};

/* DDP queue numbers (4.3). */
enum {
	RDMAP_QN_SEND = 0,
	RDMAP_QN_READ = 1,
	RDMAP_QN_TERM = 2,
	RDMAP_QN_CNT,
};

static inline uint8_t
rdmap_ctrl(enum rdmap_op op)
{
	return (uint8_t)(RDMAP_VERSION << 6 | (unsigned)op);
}

static inline unsigned
rdmap_ctrl_version(uint8_t ctrl)
{
	return ctrl >> 6;
}

static inline unsigned
rdmap_ctrl_op(uint8_t ctrl)
{
	return ctrl & 0x0f;
}

struct rdmap_read {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
};

/* RDMAP_READ_LEN, or 0 = need more. */
int rdmap_read_decode(struct span in, struct rdmap_read *out);
void rdmap_read_encode(const struct rdmap_read *, uint8_t out[RDMAP_READ_LEN]);

/* Terminate: layers (4.8). */
enum {
	RDMAP_LAYER_RDMA = 0,
	RDMAP_LAYER_DDP = 1,
	RDMAP_LAYER_LLP = 2,
};

struct rdmap_term {
	uint8_t layer; /* 4 bits */
	uint8_t etype; /* 4 bits */
	uint8_t code;
	bool has_len;  /* M */
	bool has_ddp;  /* D; needs M */
	bool has_read; /* R; needs D */
	bool swapped;  /* decoded only: nibbles and flags in the order of little-endian Linux siw */
	uint16_t seg_len;
	struct ddp_hdr ddp; /* of the faulty segment */
	struct rdmap_read read;
};

/* > 0: bytes used; -EPROTO: shorter than its flags require. */
int rdmap_term_decode(struct span in, struct rdmap_term *out);
/* Bytes written, or -EINVAL. */
int rdmap_term_encode(const struct rdmap_term *, uint8_t out[RDMAP_TERM_MAX]);
/* The words of a Terminate's error. */
const char *rdmap_term_str(uint8_t layer, uint8_t etype, uint8_t code);
