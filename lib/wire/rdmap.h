/* RDMAP on the wire (RFC 5040 4): control byte, Read Request, Terminate. Pure; used by lib/iwarp. */
#pragma once

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
enum { RDMAP_QN_SEND, RDMAP_QN_READ, RDMAP_QN_TERM, RDMAP_QN_CNT };

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

/* Errors of a Terminate, X(name, number, words): 4 bits of layer, 4 of type, 8 of code (RFC 5040 4.8, RFC 5041 7, RFC
 * 5044 8, RFC 6581 8). */
/* clang-format off */
#define RDMAP_ERRORS(X) \
	X(RDMA_BAD_STAG, 0x0100, "remote protection error: invalid STag") \
	X(RDMA_BOUNDS, 0x0101, "remote protection error: base or bounds") \
	X(RDMA_ACCESS, 0x0102, "remote protection error: access rights") \
	X(RDMA_STAG_STREAM, 0x0103, "remote protection error: STag not associated with the stream") \
	X(RDMA_TO_WRAP, 0x0104, "remote protection error: TO wrap") \
	X(RDMA_CANNOT_INVALIDATE, 0x0109, "remote protection error: STag cannot be invalidated") \
	X(RDMA_PROTECTION, 0x01ff, "remote protection error") \
	X(RDMA_VERSION, 0x0205, "remote operation error: invalid RDMAP version") \
	X(RDMA_OPCODE, 0x0206, "remote operation error: unexpected opcode") \
	X(RDMA_STREAM, 0x0207, "remote operation error: catastrophic for the stream") \
	X(RDMA_CATASTROPHIC, 0x0208, "remote operation error: catastrophic") \
	X(RDMA_NOT_INVALIDATED, 0x0209, "remote operation error: STag cannot be invalidated") \
	X(RDMA_UNSPECIFIED, 0x02ff, "remote operation error") \
	X(DDP_LOCAL, 0x1000, "DDP: local catastrophic error") \
	X(DDP_BAD_STAG, 0x1100, "DDP tagged buffer: invalid STag") \
	X(DDP_BOUNDS, 0x1101, "DDP tagged buffer: base or bounds") \
	X(DDP_STAG_STREAM, 0x1102, "DDP tagged buffer: STag not associated with the stream") \
	X(DDP_TO_WRAP, 0x1103, "DDP tagged buffer: TO wrap") \
	X(DDP_TAGGED_VERSION, 0x1104, "DDP tagged buffer: invalid DDP version") \
	X(DDP_BAD_QN, 0x1201, "DDP untagged buffer: invalid queue number") \
	X(DDP_NO_BUFFER, 0x1202, "DDP untagged buffer: no buffer available") \
	X(DDP_BAD_MSN, 0x1203, "DDP untagged buffer: invalid MSN") \
	X(DDP_BAD_MO, 0x1204, "DDP untagged buffer: invalid MO") \
	X(DDP_TOO_LONG, 0x1205, "DDP untagged buffer: message too long") \
	X(DDP_UNTAGGED_VERSION, 0x1206, "DDP untagged buffer: invalid DDP version") \
	X(MPA_LOST, 0x2001, "MPA: TCP connection lost") \
	X(MPA_BAD_CRC, 0x2002, "MPA: CRC error") \
	X(MPA_BAD_LENGTH, 0x2003, "MPA: marker and length field disagree") \
	X(MPA_BAD_FRAME, 0x2004, "MPA: invalid start-up frame") \
	X(MPA_LOCAL, 0x2005, "MPA: local catastrophic error") \
	X(MPA_BAD_IRD, 0x2006, "MPA: insufficient IRD") \
	X(MPA_NO_RTR, 0x2007, "MPA: no matching RTR option")
/* clang-format on */

#define RDMAP_ERROR_CONSTANT(name, number, words) name = (number),

enum rdmap_error { RDMAP_ERRORS(RDMAP_ERROR_CONSTANT) };

#define RDMAP_LAYER_LLP 2

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
