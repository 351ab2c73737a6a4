/* The peer of a soft iWARP device that lies: its end of one connection. It builds MPA frames and
 * FPDUs right, from what the device has said, and then changes some of their fields (twist.h). */
#pragma once

#include "ddp_rival.h"
#include "iwarp/fpdu.h"
#include "rnic/mpa_pdata.h"
#include "wire/mpa.h"

struct mpa_rival {
	int fd;      /* -1: free */
	bool active; /* we have dialled */
	struct ddp_rival ddp;
	/* start-up */
	bool started; /* its frame has been seen, ours is out */
	bool said, heard;
	struct mpa_frame frame; /* of the device; private data in pdata */
	struct mpa_pdata pdata;
	/* full operation */
	bool crc, markers_tx, markers_rx;
	uint32_t pos; /* of our stream */
	struct fpdu_rx rx;
	uint8_t in[2 * MPA_FPDU_MAX];
	size_t in_len;
};

enum {
	FPDU_BAD_SUM = 1 << 0,
	FPDU_NOT_LAST = 1 << 1,
	FPDU_BAD_LEN = 1 << 2,
	FPDU_CUT = 1 << 3, /* its last bytes are missing */
	FPDU_NO_MARKER = 1 << 4,
};

/* Bits of the options that a frame asks for. */
enum {
	FRAME_NO_CRC = 1 << 0,
	FRAME_MARKERS = 1 << 1,
	FRAME_REJECT = 1 << 2,
	FRAME_REV_1 = 1 << 3,
	FRAME_NO_P2P = 1 << 4,
	FRAME_NO_PDATA = 1 << 5,
	FRAME_CUT = 1 << 6,
	FRAME_MORE = 1 << 7, /* and bytes behind it */
};

/* Takes what the device has sent: true when there was something. */
bool mpa_rival_turn(struct mpa_rival *);
/* Our Request or Reply. rtr: kinds, RTR_*. */
void mpa_rival_frame(
    struct mpa_rival *, unsigned opts, unsigned rtr, struct twists *, void (*gather)(struct lore *, void *), void *ctx);
/* kind: SEGMENT_*. */
void mpa_rival_fpdu(struct mpa_rival *, unsigned kind, unsigned how, size_t len, uint32_t mo, struct twists *,
    void (*gather)(struct lore *, void *), void *ctx);
