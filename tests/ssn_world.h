/*
 * One end of a DDP stream over SCTP, with memory, receives, Reads, and a list of all that happened, for check_ssn.c and
 * fuzz_ssn.c. They give the same messages to two of them, to one as they were sent and to the other as the network pleases:
 * both have to come to the same.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "iwarp/ssn.h"
#include "iwarp/stream.h"
#include "tests/seeded_rng.h"

#define WORLD_GUARD 64
#define WORLD_MEM 2048
#define WORLD_RECVS 32
#define WORLD_RECV_LEN 96
#define WORLD_IRD 2
#define WORLD_ORD 2
#define WORLD_READ_LEN 40 /* of the second of our Reads, the first is of nothing */
#define WORLD_EVENTS 160
#define WORLD_FILL 0xa5

enum {
	WORLD_RW, /* for Writes; what our Reads bring goes to its beginning */
	WORLD_RO, /* for the peer's Reads */
	WORLD_FOREIGN,
	WORLD_REGIONS,
};

struct world_region {
	uint8_t before[WORLD_GUARD];
	uint8_t mem[WORLD_MEM];
	uint8_t after[WORLD_GUARD];
	struct stag_region region;
	bool closed;       /* Writes are refused */
	unsigned accepted; /* Writes */
};

struct world_recv {
	uint8_t before[WORLD_GUARD];
	uint8_t mem[WORLD_RECV_LEN];
	uint8_t after[WORLD_GUARD];
};

enum { WORLD_CONTROL = 100, WORLD_SERVED };

struct world_event {
	unsigned what; /* enum stream_rx, or one of the above */
	uint64_t wr_id;
	uint32_t len;
	uint8_t bytes[RDMAP_TERM_MAX]; /* of a Terminate, or the first of a control message */
};

struct world {
	struct world_region regions[WORLD_REGIONS];
	struct world_recv recvs[WORLD_RECVS];
	int pd, other_pd;
	struct stag_table stags;
	struct stream stream;
	struct ssn ssn;
	uint32_t posted;
	bool waits;     /* for a receive */
	bool over;      /* the stream is */
	unsigned turns; /* messages that had theirs */
	unsigned event_cnt;
	struct world_event events[WORLD_EVENTS];
};

/* -- life -- */

static inline bool
world_refuses(const struct stag_region *region, size_t off, size_t len, bool rest, const uint8_t *from, uint8_t **at)
{
	struct world_region *r = CONTAINER_OF((struct stag_region *)(uintptr_t)region, struct world_region, region);

	(void)off;
	(void)len;
	(void)rest;
	(void)from;
	(void)at;
	r->accepted += !r->closed;
	return r->closed;
}

static inline void
world_issue_reads(struct world *w)
{
	const struct rdmap_read none = { .sink_stag = 1, .src_stag = 1 };
	const struct rdmap_read some = {
		.sink_stag = w->regions[WORLD_RW].region.stag,
		.sink_to = w->regions[WORLD_RW].region.base,
		.size = WORLD_READ_LEN,
		.src_stag = 1,
	};
	uint8_t body[RDMAP_READ_LEN];

	(void)stream_read_hdr(&w->stream, &none, body);
	(void)stream_read_hdr(&w->stream, &some, body);
}

/* All worlds have the same STags and addresses. */
static inline void
world_init(struct world *w, const struct ssn_config *ssn)
{
	static const unsigned access[] = { STAG_WRITE, STAG_READ, STAG_WRITE | STAG_READ };
	const struct stream_config cfg = {
		.stags = &w->stags,
		.pd = &w->pd,
		.llp = STREAM_SCTP,
		.rq_depth = WORLD_RECVS,
		.ird_max = WORLD_IRD,
		.ord_max = WORLD_ORD,
	};
	struct rng rng;

	memset(w, 0, sizeof(*w));
	memset(w->recvs, WORLD_FILL, sizeof(w->recvs));
	rng_init_seeded(&rng, 1);
	if (stag_table_init(&w->stags, 4) < 0 || stream_init(&w->stream, &cfg) < 0 || ssn_init(&w->ssn, ssn) < 0)
		abort();
	for (unsigned i = 0; i < WORLD_REGIONS; i++) {
		struct world_region *r = &w->regions[i];

		memset(r, WORLD_FILL, offsetof(struct world_region, region));
		r->region = (struct stag_region){
			.buf = r->mem,
			.len = WORLD_MEM,
			.access = access[i],
			.pd = i == WORLD_FOREIGN ? &w->other_pd : &w->pd,
			.refuses = world_refuses,
		};
		stag_add(&w->stags, &r->region, &rng);
	}
	stream_start(&w->stream, WORLD_ORD, false);
	world_issue_reads(w);
}

static inline void
world_fini(struct world *w)
{
	for (unsigned i = 0; i < WORLD_REGIONS; i++)
		if (w->regions[i].region.stag != 0)
			stag_remove(&w->stags, &w->regions[i].region);
	stag_table_fini(&w->stags);
	stream_fini(&w->stream);
	ssn_fini(&w->ssn);
}

/* -- what happens -- */

static inline struct world_event *
world_note(struct world *w, unsigned what)
{
	struct world_event *e = &w->events[w->event_cnt++];

	if (w->event_cnt > WORLD_EVENTS)
		abort();
	e->what = what;
	return e;
}

static inline void
world_note_term(struct world *w, unsigned what, const struct rdmap_term *term)
{
	struct world_event *e = world_note(w, what);

	e->len = (uint32_t)rdmap_term_encode(term, e->bytes);
	w->over = true;
}

/* The peer's Reads are answered at once. */
static inline void
world_serve(struct world *w)
{
	while (stream_must_serve(&w->stream)) {
		struct rdmap_term term;
		struct ddp_hdr h;
		struct span from;
		struct world_event *e;

		if (!stream_serve(&w->stream, 1000, &h, &from, &term)) {
			world_note_term(w, STREAM_RX_ERROR, &term);
			return;
		}
		e = world_note(w, WORLD_SERVED);
		e->wr_id = h.to;
		e->len = (uint32_t)from.len;
	}
}

static inline void
world_control(struct world *w, struct span bytes)
{
	struct world_event *e = world_note(w, WORLD_CONTROL);

	e->len = (uint32_t)bytes.len;
	if (bytes.len > 0)
		memcpy(e->bytes, bytes.ptr, bytes.len < sizeof(e->bytes) ? bytes.len : sizeof(e->bytes));
}

static inline void
world_segment(struct world *w, struct span bytes)
{
	struct stream_ev ev;
	enum stream_rx rc = stream_ulpdu(&w->stream, bytes, &ev);
	struct world_event *e;

	switch (rc) {
	case STREAM_RX_NO_RECV:
		w->waits = true;
		break;
	case STREAM_RX_TERMINATED:
	case STREAM_RX_ERROR:
		world_note_term(w, rc, &ev.term);
		break;
	case STREAM_RX_NONE:
		break;
	case STREAM_RX_RECV:
	case STREAM_RX_READ_REQ:
	case STREAM_RX_READ_DONE:
		e = world_note(w, rc);
		e->wr_id = ev.wr_id;
		e->len = ev.len;
		world_serve(w);
		break;
	}
}

/* A message has its turn. False: it has to come again. */
static inline bool
world_turn(struct world *w, enum ssn_kind kind, struct span bytes)
{
	w->waits = false;
	if (kind == SSN_PLACED)
		w->stream.started = true;
	else if (kind == SSN_CONTROL)
		world_control(w, bytes);
	else
		world_segment(w, bytes);
	w->turns += !w->waits;
	return !w->waits;
}

static inline void
world_drive(struct world *w)
{
	enum ssn_kind kind;
	struct span bytes;

	while (!w->over && (kind = ssn_next(&w->ssn, &bytes)) != SSN_NONE && world_turn(w, kind, bytes))
		ssn_advance(&w->ssn);
}

static inline void
world_post(struct world *w)
{
	stream_post_recv(&w->stream,
	    &(struct stream_recv){ .wr_id = w->posted, .ptr = w->recvs[w->posted].mem, .len = WORLD_RECV_LEN });
	w->posted++;
}

/* A message comes, which its sender overwrites behind that. What ssn_in() and ssn_settle() say. */
static inline int
world_in(struct world *w, enum ssn_kind kind, uint16_t number, struct span bytes, const char **why)
{
	uint8_t *copy = malloc(bytes.len + 1);
	int rc;

	if (copy == NULL)
		abort();
	if (bytes.len > 0)
		memcpy(copy, bytes.ptr, bytes.len);
	rc = ssn_in(&w->ssn, &w->stream, kind, number, (struct span){ copy, bytes.len }, why);
	if (rc == 0) {
		world_drive(w);
		if (!w->over)
			rc = ssn_settle(&w->ssn, why);
	}
	memset(copy, 0xdd, bytes.len);
	free(copy);
	return rc;
}

/* -- messages -- */

struct world_msg {
	enum ssn_kind kind;
	size_t len;
	uint8_t bytes[192];
	/* Of a Write into WORLD_RW that is all right. */
	uint32_t off;
	uint32_t placed;
};

static inline void
world_msg_segment(struct world_msg *m, const struct ddp_hdr *h, const void *payload, size_t len)
{
	size_t n = ddp_encode(h, m->bytes);

	m->kind = SSN_SEGMENT;
	m->len = n + len;
	if (len > 0)
		memcpy(m->bytes + n, payload, len);
}

static inline void
world_msg_write(
    const struct world *w, struct world_msg *m, unsigned region, uint32_t off, const void *bytes, size_t len)
{
	const struct stag_region *r = &w->regions[region].region;
	const struct ddp_hdr h = stream_tagged_hdr(RDMAP_WRITE, r->stag, r->base + off, true);

	*m = (struct world_msg){ .off = off };
	world_msg_segment(m, &h, bytes, len);
	if (region == WORLD_RW && off <= WORLD_MEM && len <= WORLD_MEM - off)
		m->placed = (uint32_t)len;
}

static inline void
world_msg_send(struct world_msg *m, uint32_t msn, uint32_t mo, bool last, const void *bytes, size_t len)
{
	const struct ddp_hdr h = { .last = last, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = msn, .mo = mo };

	*m = (struct world_msg){ 0 };
	world_msg_segment(m, &h, bytes, len);
}

static inline void
world_msg_read(const struct world *w, struct world_msg *m, uint32_t msn, uint32_t off, uint32_t size)
{
	const struct ddp_hdr h = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ), .qn = RDMAP_QN_READ, .msn = msn
	};
	const struct rdmap_read rd = {
		.sink_stag = 7,
		.sink_to = off,
		.size = size,
		.src_stag = w->regions[WORLD_RO].region.stag,
		.src_to = w->regions[WORLD_RO].region.base + off,
	};
	uint8_t body[RDMAP_READ_LEN];

	*m = (struct world_msg){ 0 };
	rdmap_read_encode(&rd, body);
	world_msg_segment(m, &h, body, sizeof(body));
}

/* A part of the answer to our Reads. */
static inline void
world_msg_answer(const struct world *w, struct world_msg *m, uint32_t off, bool last, const void *bytes, size_t len)
{
	const struct stag_region *r = &w->regions[WORLD_RW].region;
	const struct ddp_hdr h = stream_tagged_hdr(RDMAP_READ_RESP, r->stag, r->base + off, last);

	*m = (struct world_msg){ 0 };
	world_msg_segment(m, &h, bytes, len);
}

static inline void
world_msg_terminate(struct world_msg *m)
{
	static const uint8_t body[] = { 0x02, 0x07, 0x00, 0x00 };
	const struct ddp_hdr h = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE), .qn = RDMAP_QN_TERM, .msn = 1
	};

	*m = (struct world_msg){ 0 };
	world_msg_segment(m, &h, body, sizeof(body));
}

static inline void
world_msg_control(struct world_msg *m, uint16_t function, const void *bytes, size_t len)
{
	*m = (struct world_msg){ .kind = SSN_CONTROL, .len = 2 + len };
	be16_put(m->bytes, function);
	if (len > 0)
		memcpy(m->bytes + 2, bytes, len);
}

/* -- judgement -- */

static inline bool
world_filled(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != WORLD_FILL)
			return false;
	return true;
}

/* Nothing was written beside memory and receives, nor where no Write may go. */
static inline bool
world_guarded(const struct world *w)
{
	bool ok = world_filled(w->regions[WORLD_RO].mem, WORLD_MEM) &&
	    world_filled(w->regions[WORLD_FOREIGN].mem, WORLD_MEM);

	for (unsigned i = 0; i < WORLD_REGIONS; i++)
		ok = ok && world_filled(w->regions[i].before, WORLD_GUARD) &&
		    world_filled(w->regions[i].after, WORLD_GUARD);
	for (unsigned i = 0; i < WORLD_RECVS; i++)
		ok = ok && world_filled(w->recvs[i].before, WORLD_GUARD) &&
		    world_filled(w->recvs[i].after, WORLD_GUARD);
	return ok;
}

/* A Write of n bytes is in place, or not at all. */
static inline bool
world_is_placed(const struct world *w, const struct world_msg *m)
{
	return memcmp(w->regions[WORLD_RW].mem + m->off, m->bytes + DDP_TAGGED_LEN, m->placed) == 0;
}

/*
 * NULL, or in what they differ. Writes of the messages, which do not overlap, that had their turn are in place in both; a later
 * one is in `any_order` if it came before the end, and whole then.
 */
static inline const char *
world_differs(const struct world *in_order, const struct world *any_order, const struct world_msg *m, unsigned cnt)
{
	if (!world_guarded(in_order) || !world_guarded(any_order))
		return "guards";
	if (in_order->turns != any_order->turns || in_order->over != any_order->over)
		return "how far it went";
	if (in_order->event_cnt != any_order->event_cnt ||
	    memcmp(in_order->events, any_order->events, sizeof(in_order->events)) != 0)
		return "events";
	for (unsigned i = 0; i < WORLD_RECVS; i++)
		if (memcmp(in_order->recvs[i].mem, any_order->recvs[i].mem, WORLD_RECV_LEN) != 0)
			return "receives";
	if (memcmp(in_order->regions[WORLD_RW].mem, any_order->regions[WORLD_RW].mem, WORLD_READ_LEN) != 0)
		return "answers to Reads";
	for (unsigned i = 0; i < cnt; i++) {
		bool placed = world_is_placed(any_order, &m[i]);

		if (i < in_order->turns
		        ? !placed || !world_is_placed(in_order, &m[i])
		        : !placed && !world_filled(any_order->regions[WORLD_RW].mem + m[i].off, m[i].placed))
			return "a Write";
	}
	return NULL;
}
