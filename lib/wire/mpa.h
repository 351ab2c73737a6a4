/* MPA on the wire (RFC 5044, RFC 6581): start-up frames, arithmetic of FPDUs and markers, CRC. Pure. */
#pragma once

#include "base/span.h"
#include "wire/enhanced.h"

#define MPA_KEY_LEN 16
#define MPA_HDR_LEN 20 /* RFC 5044 7.1.1 */
#define MPA_PD_MAX 512 /* enhanced block included */
#define MPA_FRAME_MAX (MPA_HDR_LEN + MPA_PD_MAX)

#define MPA_LEN_LEN 2 /* ULPDU_Length */
#define MPA_CRC_LEN 4
#define MPA_ULPDU_MAX 64768 /* RFC 5044 4.1 */
#define MPA_MARKER_LEN 4
#define MPA_MARKER_STEP 512 /* distance of markers, one marker included */
/* Bytes of the longest FPDU, markers included. */
#define MPA_FPDU_MAX (MPA_LEN_LEN + MPA_ULPDU_MAX + 3 + MPA_CRC_LEN + 129 * MPA_MARKER_LEN)

enum mpa_kind { MPA_REQUEST, MPA_REPLY };

/* Flags of a start-up frame. */
enum {
	MPA_MARKERS = 0x80, /* the sender wants markers in what it receives */
	MPA_CRC = 0x40,
	MPA_REJECT = 0x20,
	MPA_ENHANCED = 0x10,
};

struct mpa_frame {
	enum mpa_kind kind;
	unsigned flags;
	uint8_t rev;
	struct enhanced enh; /* with MPA_ENHANCED */
	struct span pd;      /* the ULP's private data, after the enhanced block */
};

/* > 0: bytes used, *out is set and out->pd points into the input; 0: need more; -EPROTO: not a frame of this kind,
 * detected at the first wrong byte. Does not check the revision. With revision 1 the S bit is reserved. */
int mpa_frame_decode(struct span in, enum mpa_kind kind, struct mpa_frame *out);
/* Bytes written to buf, or -EINVAL (a value out of range) or -ENOSPC. */
int mpa_frame_encode(const struct mpa_frame *, void *buf, size_t cap);

/* Padding of an ULPDU of this length. */
static inline size_t
mpa_pad(size_t ulpdu_len)
{
	return -(MPA_LEN_LEN + ulpdu_len) & 3;
}

/* Length field, ULPDU, padding and CRC; no markers. */
static inline size_t
mpa_fpdu_len(size_t ulpdu_len)
{
	return MPA_LEN_LEN + ulpdu_len + mpa_pad(ulpdu_len) + MPA_CRC_LEN;
}

/* Markers in an FPDU of fpdu_len bytes (without markers) at stream position pos. One right after it is the next's. */
size_t mpa_marker_cnt(uint32_t pos, size_t fpdu_len);

/* The largest ULPDU for a TCP segment size (RFC 5044 4.5), within 128..MPA_ULPDU_MAX. */
size_t mpa_mulpdu(size_t emss, bool markers);

/* Incremental CRC32C: start with MPA_CRC_INIT, end with mpa_crc_value(). */
#define MPA_CRC_INIT 0xffffffffu
uint32_t mpa_crc_update(uint32_t crc, const void *buf, size_t len);

static inline uint32_t
mpa_crc_value(uint32_t crc)
{
	return ~crc;
}

/* The CRC is sent least significant byte first, unlike all other MPA fields. */
void mpa_crc_put(uint8_t at[MPA_CRC_LEN], uint32_t value);
uint32_t mpa_crc_get(const uint8_t at[MPA_CRC_LEN]);
