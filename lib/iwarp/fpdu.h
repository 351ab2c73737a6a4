/* The receiving half of MPA full operation (RFC 5044 4): finds FPDUs in a byte stream, checks CRC and markers, returns
 * ULPDUs. The caller keeps the bytes in one buffer of at least MPA_FPDU_MAX bytes and drops what was used. */
#pragma once

#include <sys/types.h>

#include "wire/mpa.h"

struct fpdu_rx {
	bool crc;
	bool markers;
	uint32_t pos; /* stream position of the first unused byte; only needed with markers */
};

/* MPA error codes of a Terminate (layer 2, type 0), negated. */
enum {
	FPDU_BAD_CRC = -2,
	FPDU_BAD_LENGTH = -3, /* marker and length chain disagree, or an impossible length */
};

/* Looks for an FPDU at the start of buf. > 0: bytes used, *ulpdu points into buf (buf is written: markers are removed);
 * 0: incomplete, *need > len is its length as far as known; < 0: FPDU_BAD_*. */
ssize_t fpdu_rx_next(struct fpdu_rx *, uint8_t *buf, size_t len, struct span *ulpdu, size_t *need);

/* CRC and markers off: the length of the ULPDU at buf (2 bytes), before the FPDU is complete, or FPDU_BAD_LENGTH. */
int fpdu_rx_peek(const uint8_t *buf);
