/* The CLC connection during the rendezvous, for sessions and probes: moves CLC bytes between engine and socket, and
 * buffers the engine's output while the socket is full. */
#pragma once

#include <stdint.h>

#include "daemon/leg/leg.h"
#include "smcr/smcr.h"

struct devices;

/* The peer's identity for the engine. */
struct smcr_identity clc_stream_identity(const struct sockaddr_storage *peer);
/* Names the peer at this address: smcr_open.remote and peer_key. */
void clc_stream_name(const struct sockaddr_storage *peer, struct smcr_open *);
/* Fills in the engine's parameters of a connected CLC connection: networks, device, peer key. */
void clc_stream_describe(
    const struct leg *mid, const struct devices *, const struct sockaddr_storage *peer, struct smcr_open *);

/* Holds the engine's longest message and a Decline; further output stays in the engine. */
struct clc_out {
	uint16_t len;
	uint8_t buf[CLC_MAX_SENT_LEN + 28];
};

/* Read and not yet passed to the engine: a message, and what follows it, such as data after a Decline. */
struct clc_in {
	uint16_t off, len; /* bytes [off, len) of buf */
	uint8_t buf[512];
	struct clc_tlvs tlvs; /* at a server, of the Proposal */
};

/* Writes the engine's output and reads what it wants. Reports a failed or ended socket to the engine. */
void clc_pump(struct leg *mid, struct smcr_conn *, struct clc_in *, struct clc_out *);
/* Only reads. > 0: bytes passed to the engine; 0: no data, or end of data (LEG_EOF); < 0: the socket failed. */
ssize_t clc_read(struct leg *mid, struct smcr_conn *, struct clc_in *);
/* Takes the engine's pending output, before smcr_release(). */
void clc_out_take(struct clc_out *, struct smcr_conn *);
/* Writes pending output: 0, or -errno when the socket failed; out->len bytes are left. */
int clc_out_flush(struct clc_out *, struct leg *mid);
