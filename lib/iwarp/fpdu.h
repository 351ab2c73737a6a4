/*
 * The receiving half of MPA's full operation (RFC 5044 4): takes a stream of
 * bytes in any segmentation, finds FPDUs, checks CRC and markers, gives out
 * ULPDUs. Holds no bytes: its caller keeps them in one buffer that has room
 * for MPA_FPDU_MAX and drops what was used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/mpa.h"

struct fpdu_rx {
	bool crc;
	bool markers;
	uint32_t pos; /* in the stream, of the first byte not used yet; nobody needs it without markers */
};

/* MPA error codes of a Terminate (layer 2, type 0), negated. */
enum {
	FPDU_BAD_CRC = -2,
	FPDU_BAD_LENGTH = -3, /* marker and length chain disagree, or a length that cannot be */
};

/*
 * Looks for an FPDU at the start of buf. > 0: bytes used and *ulpdu inside buf
 * (markers are moved out of it, so buf is written); 0: the FPDU is not
 * complete, *need > len says how long it is as far as is known; < 0: FPDU_BAD_*.
 */
ssize_t fpdu_rx_next(struct fpdu_rx *, uint8_t *buf, size_t len, struct span *ulpdu, size_t *need);

/*
 * CRC and markers off: the length of the ULPDU whose first bytes are in buf
 * (len >= 2), for a reader that places payload before the FPDU is complete.
 * Negative: FPDU_BAD_LENGTH.
 */
int fpdu_rx_peek(const uint8_t *buf);
