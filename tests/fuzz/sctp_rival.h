/*
 * The peer of a soft iWARP device over SCTP that lies: its end of one association, by an SCTP of its own in UDP (RFC 9260, RFC
 * 6951), as much of it as is needed: one path, one stream, messages in one chunk each, no timer. It builds packets, session
 * control messages and DDP segments right, from what the device has said, and then changes some of their fields (twist.h),
 * their order and their numbers. What the device says is held against RFC 5043.
 */
#pragma once

#include "ddp_rival.h"
#include "rnic/mpa_pdata.h"
#include "wire/sctp_ddp.h"

#define SCTP_RIVAL_GAPS 8
#define SCTP_RIVAL_COOKIE_MAX 2048

enum sctp_rival_state {
	SCTP_RIVAL_NONE, /* answers nothing */
	SCTP_RIVAL_LISTENS,
	SCTP_RIVAL_STARTS, /* INIT or INIT ACK is out */
	SCTP_RIVAL_UP,
	SCTP_RIVAL_OVER,
};

/* How it sets up its association. */
enum {
	SETUP_NO_INDICATION = 1 << 0, /* of the adaptation layer */
	SETUP_OTHER_INDICATION = 1 << 1,
	SETUP_STOPS = 1 << 2, /* no COOKIE ECHO, or COOKIE ACK */
	SETUP_SMALL_WINDOW = 1 << 3,
	SETUP_ABORTS = 1 << 4,
	SETUP_TWICE = 1 << 5, /* COOKIE ECHO */
	SETUP_STREAMS = 1 << 6,
};

struct sctp_rival {
	struct ddp_rival ddp;
	enum sctp_rival_state state;
	enum sctp_ddp_profile profile;
	bool active;                   /* we have dialled */
	unsigned setup;                /* SETUP_* */
	bool deaf;                     /* nothing is acknowledged or answered */
	uint16_t port, peer;           /* of SCTP and UDP */
	uint16_t peer_sctp;            /* SCTP port of the device, when it has dialled: another one */
	uint32_t own_tag, tag;         /* in packets to us, to the device */
	uint32_t tsn;                  /* next one of ours */
	uint32_t first, heard;         /* TSN of the device's first chunk; how many were heard, in order */
	uint16_t messages;             /* of the device, likewise */
	uint8_t *parts;                /* of a message in several chunks */
	size_t parts_len;              /* so far */
	bool said_last;                /* the device: Terminate, or Reject */
	struct mpa_pdata pdata;        /* of the device */
	uint16_t ssn;                  /* DDP-SSN of our next message */
	uint16_t gap[SCTP_RIVAL_GAPS]; /* numbers that were left out */
	unsigned gap_cnt;
	uint8_t cookie[SCTP_RIVAL_COOKIE_MAX];
	size_t cookie_len;
	uint8_t *late; /* a packet that goes behind the next one */
	size_t late_len;
};

/* How a message is sent. */
enum {
	MESSAGE_NOT_LAST = 1 << 0, /* of DDP */
	MESSAGE_OTHER_PPID = 1 << 1,
	MESSAGE_OTHER_STREAM = 1 << 2,
	MESSAGE_IN_PARTS = 1 << 3,
	MESSAGE_LATE = 1 << 4,
	MESSAGE_TWICE = 1 << 5,
	MESSAGE_ORDERED = 1 << 6,
};

/* The DDP-SSN of a message. */
enum sctp_rival_number {
	NUMBER_NEXT,
	NUMBER_BEHIND_GAP, /* one is left out */
	NUMBER_OLDEST_GAP,
	NUMBER_NEWEST_GAP,
	NUMBER_AGAIN,
	NUMBER_FAR,
	NUMBER_CNT,
};

/* A session control message. */
enum {
	CONTROL_NO_PDATA = 1 << 0,
	CONTROL_LONG = 1 << 1,
	CONTROL_NO_P2P = 1 << 2,
	CONTROL_NO_DEPTHS = 1 << 3,
	CONTROL_NOT_NEGOTIATED = 1 << 4,
	CONTROL_STRANGER = 1 << 5, /* for a queue pair that is not there */
};

struct sctp_rival_way {
	enum sctp_rival_number number;
	unsigned how;
	struct twists *tw;
	void (*gather)(struct lore *, void *);
	void *ctx;
};

/* Knows what CLC would have announced for that link. The port is its own. */
void sctp_rival_meet(struct sctp_rival *, const struct siw_arena *, unsigned link, uint16_t port, unsigned setup);
void sctp_rival_forget(struct sctp_rival *);
/* INIT to a device; also of an association that is there already. */
void sctp_rival_dial(struct sctp_rival *, uint16_t to);
void sctp_rival_packet_in(struct sctp_rival *, uint16_t from, const uint8_t *, size_t len);

void sctp_rival_control(struct sctp_rival *, enum sctp_ddp_function, unsigned opts, const struct sctp_rival_way *);
void sctp_rival_segment(struct sctp_rival *, unsigned kind, size_t len, uint32_t mo, const struct sctp_rival_way *);
/* Bytes, as a segment or control message, from the DDP-SSN on. */
void sctp_rival_raw(struct sctp_rival *, bool control, unsigned how, const uint8_t *, size_t len);
/* A chunk of any type, in a packet with tag and CRC32c changed by so much. */
void sctp_rival_chunk(
    struct sctp_rival *, uint8_t type, uint8_t flags, const void *, size_t len, uint32_t tag_off, uint32_t crc_off);
/* All that is asked of us is answered. */
void sctp_rival_answer(struct sctp_rival *, const struct sctp_rival_way *);
