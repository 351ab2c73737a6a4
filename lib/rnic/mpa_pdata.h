/* The MPA private data of iWARP devices, soft or cards: the two QPs and the capacities of the sender. 48 bytes,
 * big-endian. A receiver skips further bytes; the last three fields may be missing. Internal to lib/rnic.
 *	 0  "SMCr"
 *	 4  version (1)
 *	 5  verdict: 0, or the reason of a rejecting Reply (enum mpa_verdict)
 *	 6  receives posted (16): maximum of outstanding Sends
 *	 8  QPN and
 *	12  PSN of the addressed QP: the passive one in the Request
 *	16  token (64); 0 in the Reply
 *	24  QPN of the sender
 *	28  largest ULPDU the sender accepts; 0 = by the MSS (RFC 5044 4.5)
 *	32  STag and
 *	36  tagged offset (64) of MPA_FENCE_LEN bytes for the receiver's fences;
 *	    STag 0 = none: its fence Reads are empty
 *	44  flags (32): MPA_PACKETS_TOGETHER */
#pragma once

#include <stdint.h>

#include "base/span.h"

#define MPA_PDATA_LEN 48
#define MPA_PDATA_MIN 32 /* of a sender without readable bytes */
#define MPA_PDATA_VERSION 1

/* A zero-length Read would do for a fence. But Linux's siw, when it receives one while sending, answers it with the
 * data of the previous request (6.1), which ends the stream. */
#define MPA_FENCE_LEN 4

/* SCTP in UDP: one datagram may carry several packets that the sender's kernel has not split (UDP_SEGMENT). */
#define MPA_PACKETS_TOGETHER 1

enum mpa_verdict {
	MPA_ACCEPTED,
	MPA_UNKNOWN_PEER, /* no private data of smcrd */
	MPA_BAD_TOKEN,    /* QP known, but PSN or token wrong */
	MPA_USED,         /* the QP is already connected */
	MPA_NOT_EXPECTED, /* no QP expected the request in time */
	MPA_BUSY,         /* too many pending requests */
	MPA_READ_DEPTH,   /* IRD 0: no fence is possible */
	MPA_GONE,         /* the QP was destroyed meanwhile */
	MPA_VERDICT_CNT,
};

struct mpa_pdata {
	uint8_t verdict;
	uint16_t recv_depth;
	uint32_t qpn, psn;
	uint64_t token;
	uint32_t from_qpn, ulpdu_max, read_stag;
	uint64_t read_to;
	uint32_t flags;
};

/* 0, or -EPROTO: not smcrd's, or an unknown version. */
int mpa_pdata_decode(struct span, struct mpa_pdata *out);
/* Returns `out`. */
struct span mpa_pdata_encode(const struct mpa_pdata *, uint8_t out[MPA_PDATA_LEN]);
/* The text of the rejected side. */
const char *mpa_verdict_str(unsigned verdict);
/* The text of a failed connect to a peer's MPA port; err is positive. */
const char *mpa_connect_error(int err);
