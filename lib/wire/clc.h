/*
 * CLC messages: the SMC-R rendezvous that runs on the TCP connection (RFC 7609
 * A.2), version 1, and what is needed to talk to Linux, which proposes version
 * 2. Bytes <-> host structs; pure. What a message means is lib/smcr's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "wire/clc_diag.h"

#define CLC_HDR_LEN 8
#define CLC_MAX_LEN 2048     /* bound on what is accepted; Linux's longest has some hundred bytes */
#define CLC_MAX_SENT_LEN 228 /* bound on what clc_encode() writes */
#define CLC_PEER_ID_LEN 8
#define CLC_GID_LEN 16
#define CLC_MAC_LEN 6
#define CLC_GROWTH_LEN 40        /* Linux always sends this many, and accepts no more */
#define CLC_MAX_IPV6 8           /* RFC 7609 A.2.2 */
#define CLC_MAX_SIZE_CODE_SENT 5 /* 512 KiB, RFC 7609 A.2.3; Linux may send up to 15 */

enum clc_type {
	CLC_PROPOSAL = 1,
	CLC_ACCEPT = 2,
	CLC_CONFIRM = 3,
	CLC_DECLINE = 4,
};

/* A version 2 Proposal's offer for each version (Linux; RFC: reserved). */
enum clc_path {
	CLC_PATH_R = 0,
	CLC_PATH_D = 1,
	CLC_PATH_NONE = 2,
	CLC_PATH_BOTH = 3,
};

#define CLC_TRANSPORT_ROCE 0x01
#define CLC_TRANSPORT_IWARP 0x02
#define CLC_TRANSPORT_PREWARM 0x80 /* Proposal: for the link group alone, no application is behind it */
#define CLC_TRANSPORT_KNOWN (CLC_TRANSPORT_ROCE | CLC_TRANSPORT_IWARP | CLC_TRANSPORT_PREWARM)
#define CLC_SMCRD_EXT_VERSION 1

/*
 * The extension that only smcrd peers send each other. In a Proposal it is in the area for
 * future growth, which others skip; in Accept and Confirm it follows the PSN
 * and may be sent only to a peer whose Proposal had one. 28 bytes: "smrd",
 * length 28, version, transports, 0, MPA port, receive depth, token, 8 x 0.
 */
struct clc_smcrd_ext {
	bool present;        /* the rest counts only then */
	uint8_t version;     /* from 1; a higher one only adds to the end */
	uint8_t transports;  /* CLC_TRANSPORT_ bits */
	uint16_t mpa_port;   /* TCP port for MPA connections; 0 when there is none */
	uint16_t recv_depth; /* receives kept posted per link */
	uint64_t token;      /* of the link group: goes into the MPA private data; secret, never log it */
};

struct clc_prefix6 {
	uint8_t addr[16];
	uint8_t len;
};

struct clc_proposal {
	enum clc_path typev1; /* version 1 messages: CLC_PATH_R and CLC_PATH_NONE */
	enum clc_path typev2;
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint8_t gid[CLC_GID_LEN];
	uint8_t mac[CLC_MAC_LEN];
	uint16_t growth_len; /* as on the wire; growth[] keeps the first 40 bytes at most */
	uint8_t growth[CLC_GROWTH_LEN];
	uint32_t ipv4_subnet; /* host order; Linux sends address AND mask */
	uint8_t ipv4_len;     /* prefix length, 0 in an IPv6 flow */
	uint8_t ipv6_cnt;
	struct clc_prefix6 ipv6[CLC_MAX_IPV6];
	struct clc_smcrd_ext ext;
};

/* Accept and Confirm. */
struct clc_accept {
	bool first_contact; /* in a Confirm only Linux sets it: do not rely on it there */
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint8_t gid[CLC_GID_LEN];
	uint8_t mac[CLC_MAC_LEN];
	uint32_t qpn; /* 24 bits */
	uint32_t rkey;
	uint8_t rmbe_idx;     /* from 1 */
	uint32_t alert_token; /* the sender's; we put it into our CDC messages */
	uint8_t size_code;    /* RMB element, clc_size_bytes() */
	uint8_t mtu_code;     /* clc_mtu_bytes() */
	uint64_t vaddr;       /* of the RMB, not of the element */
	uint32_t psn;         /* 24 bits, the first one the sender uses */
	struct clc_smcrd_ext ext;
};

struct clc_decline {
	bool out_of_sync; /* drop the link group, RFC 7609 A.2.5 */
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint32_t diag; /* enum clc_diag, or a foreign number */
	uint8_t os;    /* version 2 only: 1 z/OS, 2 Linux, 3 AIX */
};

struct clc_msg {
	enum clc_type type;
	uint8_t version; /* of the header; 1 unless a Proposal or Decline says more */

	union {
		struct clc_proposal proposal;
		struct clc_accept accept; /* also of CLC_CONFIRM */
		struct clc_decline decline;
	};
};

/*
 * Length of the message at the start of `in`: > 0 (the message may not be
 * complete yet), 0 when the header is not complete, -EBADMSG as soon as the
 * bytes cannot be a CLC message. Read no more than this many bytes off the
 * TCP stream: what follows may be the application's.
 */
int clc_peek_len(struct span in) __attribute__((warn_unused_result));

/*
 * > 0: bytes used, *out is filled. 0: need more. -EBADMSG: malformed, end the
 * TCP connection. -EPROTO: well formed but with a value that only a newer peer
 * would send: decline (with clc_bad_value_diag()) and fall back (RFC 7609 C.6).
 * *out is untouched unless > 0.
 *
 * Two things are left to the caller. A reserved mtu_code is -EPROTO only where
 * the message itself says first contact, since it must not be looked at later
 * (A.2.3): on a first contact's Confirm check clc_mtu_bytes() != 0. And size
 * codes up to 15 come through.
 */
int clc_decode(struct span in, struct clc_msg *out) __attribute__((warn_unused_result));

/* The diagnosis to decline with after clc_decode() returned -EPROTO. */
uint32_t clc_bad_value_diag(struct span in);

/*
 * Bytes written; -EINVAL for a value out of range, -ENOSPC when cap is too
 * small; buf is untouched on failure. Proposal and Decline may be version 1 or
 * 2 (without version 2 extensions), Accept and Confirm version 1. A Proposal
 * with ext.present always has the 40-byte growth area, of which growth[] gives
 * nothing; otherwise growth[] is sent as it is.
 */
int clc_encode(const struct clc_msg *msg, uint8_t *buf, size_t cap) __attribute__((warn_unused_result));

/* RMB element size: code 0..15 <-> 16 KiB << code; -EINVAL and 0 for others. */
int clc_size_code(uint32_t bytes);
uint32_t clc_size_bytes(unsigned code);

/* QP MTU: code 1..5 <-> 256..4096; -EINVAL and 0 for others. */
int clc_mtu_code(uint32_t bytes);
uint32_t clc_mtu_bytes(unsigned code);
