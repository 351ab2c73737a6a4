/*
 * A measurement between two smcrd: how fast bytes go each way, over SMC-R and
 * over TCP. Who asks sends a request and so many bytes; who serves throws them
 * away, answers, and sends so many bytes back; then it may be asked again. The
 * bytes are zeros. No state but this; no I/O but in the two pumps.
 *
 *	request		be32 "smrM", be32 version 1, be64 bytes out, be64 bytes back
 *	answer		the same, as understood
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/leg/leg.h"
#include "smcr/smcr.h"

#define MEASURE_HDR_LEN 24
#define MEASURE_BYTES_MAX (UINT64_C(256) << 20) /* each way */

enum measure_phase {
	MEASURE_REQUEST,
	MEASURE_OUT,
	MEASURE_ANSWER,
	MEASURE_BACK,
	MEASURE_DONE, /* of who asks */
};

struct measure {
	bool asks;
	enum measure_phase phase;
	uint64_t out, back; /* bytes */
	uint64_t left;      /* of this phase */
	uint8_t hdr[MEASURE_HDR_LEN];
	/* Who asks: the first byte went; all had arrived there, as its answer says; all was here. */
	int64_t begun_ns, turned_ns, done_ns;
};

/* 1 to MEASURE_BYTES_MAX bytes each way. */
void measure_ask(struct measure *, uint64_t out, uint64_t back, int64_t now_ns);
void measure_serve(struct measure *);

/* What is to be sent next: up to so many bytes at *at; 0: it is the other one's turn, or done. */
size_t measure_piece(const struct measure *, const uint8_t **at);
/* n of them were. 0 or -EPROTO, as below. */
int measure_sent(struct measure *, size_t n, int64_t now_ns);
/* Bytes came: 0, or -EPROTO: not what comes next. */
int measure_received(struct measure *, const void *buf, size_t len, int64_t now_ns);

/* Bounded. > 0: there is more to do at once; 0: not now; < 0: -errno. */
int measure_pump_smcr(struct measure *, struct smcr_conn *, int64_t now_ns);
int measure_pump_tcp(struct measure *, struct leg *, int64_t now_ns);
