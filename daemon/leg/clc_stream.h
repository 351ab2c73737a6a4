/*
 * The middle, the SMC-R TCP connection, while the rendezvous lasts: what
 * sessions and probes have in common. CLC bytes move between the engine and the
 * socket; what leaves the engine waits here when the socket is full.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/leg/leg.h"
#include "daemon/net/net.h"
#include "smcr/smcr.h"

struct devices;

/* Whoever is at the other end, as the engine knows it. */
struct smcr_identity clc_stream_identity(const struct sockaddr_storage *peer);
/* The name that the engine knows a peer by, or, with port 0, its beginning for all ports of the address. buf has ADDR_STR_MAX bytes at
 * least and is returned. */
const char *middle_key(const struct sockaddr_storage *peer, char *buf, size_t cap);
/* Fills in what the engine wants to know of a connected middle: networks, the device to use, the peer's name. */
void clc_stream_describe(
    const struct leg *mid, const struct devices *, const struct sockaddr_storage *peer, struct smcr_open *);

/* Room for the longest message that the engine sends and a Decline behind it; more stays with the engine until it is empty. */
struct clc_out {
	uint16_t len;
	uint8_t buf[CLC_MAX_SENT_LEN + 28];
};

/* What was read of the middle and not given to the engine yet: a message is read in one piece, and what comes with it may be
 * the next one, or data behind a Decline. */
struct clc_in {
	uint16_t off, len; /* bytes [off, len) of buf */
	uint8_t buf[512];
};

/* Writes what the engine has and reads what it wants, as far as both go now. Tells the engine when the socket has failed, or
 * has ended where a message is wanted. */
void clc_pump(struct leg *mid, struct smcr_conn *, struct clc_in *, struct clc_out *);
/* Only reads. > 0: number of bytes given to the engine; 0: nothing now, or end of data (LEG_EOF); < 0: the socket failed. */
ssize_t clc_read(struct leg *mid, struct smcr_conn *, struct clc_in *);
/* Takes the messages that the engine still has to send, before smcr_release(). */
void clc_out_take(struct clc_out *, struct smcr_conn *);
/* Writes what waits: 0, or -errno when the socket failed; out->len is what is left. */
int clc_out_flush(struct clc_out *, struct leg *mid);
