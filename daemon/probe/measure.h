/* Measures throughput between two smcrd over SMC-R and TCP. The client sends a request and the requested zeros.
 * The server discards them, answers, and sends zeros back. Then the next request may follow. I/O only in the pump.
 *
 *	request		be32 "smrM", be32 version 1, be64 bytes out, be64 bytes back
 *	answer		the same, as understood */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/leg/leg.h"
#include "smcr/smcr.h"

#define MEASURE_HDR_LEN 24
#define MEASURE_BYTES_MAX (UINT64_C(256) << 20) /* in each direction */

enum measure_phase {
	MEASURE_REQUEST,
	MEASURE_OUT,
	MEASURE_ANSWER,
	MEASURE_BACK,
	MEASURE_DONE, /* client only */
};

struct measure {
	bool asks; /* client */
	enum measure_phase phase;
	uint64_t out, back; /* bytes */
	uint64_t left;      /* of this phase */
	uint8_t hdr[MEASURE_HDR_LEN];
	int64_t begun_ns, turned_ns, done_ns; /* client: start; answer received; all bytes back */
};

/* 1 to MEASURE_BYTES_MAX bytes in each direction. */
void measure_ask(struct measure *, uint64_t out, uint64_t back, int64_t now_ns);
void measure_serve(struct measure *);

/* The next bytes to send: their number, at *at; 0: the other end sends, or done. */
size_t measure_piece(const struct measure *, const uint8_t **at);
/* n of them were sent: 0, or -EPROTO. */
int measure_sent(struct measure *, size_t n, int64_t now_ns);
/* Bytes were received: 0, or -EPROTO. */
int measure_received(struct measure *, const void *buf, size_t len, int64_t now_ns);

/* Over the engine's connection, or with NULL over the leg. Bounded. > 0: call again at once; 0: blocked or done;
 * < 0: -errno. */
int measure_pump(struct measure *, struct smcr_conn *, struct leg *, int64_t now_ns);
