/*
 * The MPA private data of iWARP devices, soft or cards: who is meant, who asks, what
 * each side can take. 48 bytes, big-endian; a receiver takes longer ones and
 * skips what it does not know, and the last three fields may be missing. Internal
 * to lib/rnic.
 *
 *	 0  "SMCr"
 *	 4  version (1)
 *	 5  verdict: 0, or why the Reply rejects (enum mpa_verdict)
 *	 6  receives posted (16): most Sends that may be on their way at once
 *	 8  QPN and
 *	12  PSN of the QP that is meant: the passive one in the Request
 *	16  token (64); 0 in the Reply
 *	24  QPN of the sender
 *	28  largest ULPDU the sender takes; 0 = by the MSS (RFC 5044 4.5)
 *	32  STag and
 *	36  tagged offset (64) of MPA_FENCE_LEN bytes that the receiver's fences
 *	    may read; STag 0 = none, they are to read nothing
 *	44  flags (32): MPA_PACKETS_TOGETHER
 */
#pragma once

#include <stdint.h>

#include "base/span.h"

#define MPA_PDATA_LEN 48
#define MPA_PDATA_MIN 32 /* of a sender who has nothing to be read */
#define MPA_PDATA_VERSION 1

/*
 * A Read of no bytes would do for a fence, but Linux's siw answers one that comes while it is sending with what the request
 * before had (6.1), which ends the stream.
 */
#define MPA_FENCE_LEN 4

/* Of SCTP in UDP: packets may come many in one datagram that the sender's kernel has not cut apart (UDP_SEGMENT). */
#define MPA_PACKETS_TOGETHER 1

enum mpa_verdict {
	MPA_ACCEPTED,
	MPA_UNKNOWN_PEER, /* no private data of ours */
	MPA_BAD_TOKEN,    /* QP known, PSN or token wrong */
	MPA_USED,         /* this QP has its connection already */
	MPA_NOT_EXPECTED, /* nobody claimed the request in time */
	MPA_BUSY,         /* too many requests that nobody claimed */
	MPA_READ_DEPTH,   /* IRD 0: there could be no fence */
	MPA_GONE,         /* the QP went away meanwhile */
	MPA_VERDICT_CNT,
};

struct mpa_pdata {
	uint8_t verdict;
	uint16_t recv_depth;
	uint32_t qpn;
	uint32_t psn;
	uint64_t token;
	uint32_t from_qpn;
	uint32_t ulpdu_max;
	uint32_t read_stag;
	uint64_t read_to;
	uint32_t flags;
};

/* 0; -EPROTO: not ours, or a version we do not know. */
int mpa_pdata_decode(struct span, struct mpa_pdata *out);
void mpa_pdata_encode(const struct mpa_pdata *, uint8_t out[MPA_PDATA_LEN]);
/* In words, as the side that was rejected says it. */
const char *mpa_verdict_str(unsigned verdict);
/* Why connecting to a peer's MPA port failed with err (positive), in words. */
const char *mpa_connect_error(int err);
