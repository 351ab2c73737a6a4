/* DDP over SCTP on the wire (RFC 5043, RFC 6581 7; draft-ietf-rddp-sctp-00). Pure. A user message has one of two kinds,
 * by its payload protocol identifier. Both begin with the DDP-SSN, which numbers both and restores the order, as SCTP
 * delivers unordered:
 *	DDP segment      DDP-SSN (16) | DDP segment
 *	session control  DDP-SSN (16) | function (16) | private data
 * In the enhanced functions the block of RFC 6581 9 begins the private data. SCTP delivers whole messages. */
#pragma once

#include "base/span.h"
#include "wire/enhanced.h"

#define SCTP_DDP_SSN_LEN 2
#define SCTP_DDP_CONTROL_LEN 4 /* without private data */
#define SCTP_DDP_PD_MAX 512    /* enhanced block included */
/* The longest control message, which must not be fragmented. */
#define SCTP_DDP_CONTROL_MAX (SCTP_DDP_CONTROL_LEN + SCTP_DDP_PD_MAX)

enum sctp_ddp_profile {
	SCTP_DDP_RFC5043, /* with RFC 6581 7 */
	SCTP_DDP_DRAFT00,
	SCTP_DDP_PROFILE_CNT,
};

/* Functions of control messages; the codes depend on the profile. */
enum sctp_ddp_function {
	SCTP_DDP_NEGOTIATE, /* draft -00 */
	SCTP_DDP_INITIATE,
	SCTP_DDP_ACCEPT,
	SCTP_DDP_REJECT, /* RFC 5043: in the draft the passive side sends Terminate */
	SCTP_DDP_TERMINATE,
	SCTP_DDP_ENHANCED_INITIATE, /* these three: RFC 6581, an addition to RFC 5043 */
	SCTP_DDP_ENHANCED_ACCEPT,
	SCTP_DDP_ENHANCED_REJECT,
	SCTP_DDP_FUNCTION_CNT,
};

/* Values of a profile in SCTP and in messages. */
struct sctp_ddp_values {
	uint32_t adaptation; /* Adaptation Layer Indication, of both ends */
	uint32_t ppid_segment;
	uint32_t ppid_control;
	uint16_t first_ssn;                       /* the first DDP-SSN of each direction of a session */
	uint16_t function[SCTP_DDP_FUNCTION_CNT]; /* 0: not in this profile */
};

extern const struct sctp_ddp_values sctp_ddp_values[SCTP_DDP_PROFILE_CNT];

struct sctp_ddp_control {
	enum sctp_ddp_function function;
	bool has_block; /* decoded only: false for an Enhanced Reject without block, see below */
	struct enhanced enh;
	struct span pd; /* the ULP's private data, after the block */
};

static inline bool
sctp_ddp_is_enhanced(enum sctp_ddp_function f)
{
	return f >= SCTP_DDP_ENHANCED_INITIATE;
}

static inline bool
sctp_ddp_has(enum sctp_ddp_profile profile, enum sctp_ddp_function f)
{
	return sctp_ddp_values[profile].function[f] != 0;
}

/* The DDP-SSN of a message of either kind, and the bytes after it. SCTP_DDP_SSN_LEN, or -EPROTO: too short. */
int sctp_ddp_ssn_decode(struct span message, uint16_t *ssn, struct span *body);

/* The body of a control message. 0: *out is set, and out->pd points into the body. -EPROTO: too short for a function,
 * or for the block; -ENOTSUP: no function of this profile; -EMSGSIZE: too much private data.
 * Private data of a Terminate are ignored: the sender may not put any, and the session ends in either case.
 * RFC 6581 7 leaves open whether an Enhanced Reject has the block. It has none if it is too short, or if A = 0 with B,
 * C or D set, invalid in a block (9.2): ULP data that begin with letters, such as "SMCr", are recognized. */
int sctp_ddp_control_decode(struct span body, enum sctp_ddp_profile, struct sctp_ddp_control *out);

/* Bytes of the message written to buf, DDP-SSN included; enhanced functions always have the block. -EINVAL: a function
 * that is not in this profile, a value out of range, too much private data, any in a Terminate; -ENOSPC. */
int sctp_ddp_control_encode(
    const struct sctp_ddp_control *, enum sctp_ddp_profile, uint16_t ssn, void *buf, size_t cap);
