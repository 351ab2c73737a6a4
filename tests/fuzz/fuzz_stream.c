/* The receiving path of an iWARP stream: FPDUs, DDP, RDMAP, STags. First byte: CRC, markers, RTR Send, receives;
 * second: how the bytes arrive in pieces; then the stream. STags and addresses are those of a seeded generator. */
#include "iwarp/stream.h"

#include <string.h>

#include "fuzz.h"
#include "iwarp/fpdu.h"
#include "tests/seeded_rng.h"

#define MEM 4096
#define GUARD 64
#define RQ 8

struct guarded {
	uint8_t before[GUARD];
	uint8_t mem[MEM];
	uint8_t after[GUARD];
};

static int my_pd, other_pd;
static struct guarded rw, ro, foreign, rbuf[RQ];
static struct stag_region regions[3];
static struct stag_table stags;

static void
guard_init(struct guarded *g)
{
	memset(g, 0xa5, sizeof(*g));
}

static void
guard_check(const struct guarded *g)
{
	for (unsigned i = 0; i < GUARD; i++)
		FUZZ_CHECK(g->before[i] == 0xa5 && g->after[i] == 0xa5);
}

static void
add_region(unsigned i, struct guarded *g, unsigned access, const void *pd, struct rng *rng)
{
	guard_init(g);
	regions[i] = (struct stag_region){ .buf = g->mem, .len = MEM, .access = access, .pd = pd };
	stag_add(&stags, &regions[i], rng);
}

static void
world_init(struct stream *s, uint8_t opts)
{
	const struct stream_config cfg = {
		.stags = &stags,
		.pd = &my_pd,
		.rq_depth = RQ,
		.ird_max = 2,
		.ord_max = 2,
	};
	const struct rdmap_read zero = { .sink_stag = 1, .src_stag = 1 };
	struct rdmap_read read = { .size = 100, .src_stag = 1 };
	uint8_t body[RDMAP_READ_LEN];
	struct rng rng;

	rng_init_seeded(&rng, 1);
	if (stag_table_init(&stags, 4) < 0 || stream_init(s, &cfg) < 0)
		abort();
	add_region(0, &rw, STAG_WRITE, &my_pd, &rng);
	add_region(1, &ro, STAG_READ, &my_pd, &rng);
	add_region(2, &foreign, STAG_WRITE | STAG_READ, &other_pd, &rng);
	stream_start(s, 2, opts & 4);
	read.sink_stag = regions[0].stag;
	read.sink_to = regions[0].base;
	(void)stream_read_hdr(s, &zero, body);
	(void)stream_read_hdr(s, &read, body);
	for (unsigned i = 0; i < (opts >> 3 & 7u); i++) {
		guard_init(&rbuf[i]);
		stream_post_recv(s, &(struct stream_recv){ .wr_id = i, .ptr = rbuf[i].mem, .len = 256 });
	}
}

static void
world_fini(struct stream *s, uint8_t opts)
{
	guard_check(&rw);
	guard_check(&ro);
	guard_check(&foreign);
	for (unsigned i = 0; i < MEM; i++)
		FUZZ_CHECK(ro.mem[i] == 0xa5 && foreign.mem[i] == 0xa5);
	for (unsigned i = 0; i < (opts >> 3 & 7u); i++) {
		guard_check(&rbuf[i]);
		for (unsigned k = 256; k < MEM; k++)
			FUZZ_CHECK(rbuf[i].mem[k] == 0xa5);
	}
	stream_fini(s);
	for (unsigned i = 0; i < 3; i++)
		stag_remove(&stags, &regions[i]);
	stag_table_fini(&stags);
}

/* A segment that we would send can be encoded, and says the same when read. */
static void
check_term(const struct rdmap_term *t)
{
	uint8_t out[RDMAP_TERM_MAX];
	struct rdmap_term back;
	int n = rdmap_term_encode(t, out);

	FUZZ_CHECK(n >= 4);
	FUZZ_CHECK(rdmap_term_decode((struct span){ out, (size_t)n }, &back) == n);
	FUZZ_CHECK(back.layer == t->layer && back.etype == t->etype && back.code == t->code);
	FUZZ_CHECK(rdmap_term_str(t->layer, t->etype, t->code) != NULL);
}

static void
serve(struct stream *s)
{
	struct rdmap_term term;
	struct ddp_hdr h;
	struct span from;

	while (stream_must_serve(s)) {
		if (!stream_serve(s, 1000, &h, &from, &term)) {
			check_term(&term);
			return;
		}
		FUZZ_CHECK(from.len <= 1000);
		FUZZ_CHECK(from.len == 0 || (from.ptr >= ro.mem && from.ptr + from.len <= ro.mem + MEM));
	}
}

/* False: the stream is over. */
static bool
take(struct stream *s, struct span ulpdu)
{
	struct stream_ev ev;

	switch (stream_ulpdu(s, ulpdu, &ev)) {
	case STREAM_RX_NONE:
		return true;
	case STREAM_RX_RECV:
		FUZZ_CHECK(ev.wr_id < RQ && ev.len <= 256);
		return true;
	case STREAM_RX_READ_REQ:
		serve(s);
		return !s->dead;
	case STREAM_RX_READ_DONE:
		FUZZ_CHECK(stream_reads_out(s) <= 1);
		return true;
	case STREAM_RX_NO_RECV:
		FUZZ_CHECK(stream_recv_cnt(s) == 0);
		return false;
	case STREAM_RX_TERMINATED:
		FUZZ_CHECK(s->dead);
		return false;
	case STREAM_RX_ERROR:
		FUZZ_CHECK(s->dead);
		check_term(&ev.term);
		return false;
	}
	return false;
}

static void
run(struct stream *s, struct fpdu_rx *rx, const uint8_t *data, size_t len, size_t piece)
{
	static uint8_t buf[2 * MPA_FPDU_MAX];
	size_t have = 0, off = 0, need;

	while (len > 0) {
		size_t n = len < piece ? len : piece;
		struct span ulpdu;
		ssize_t used;

		memcpy(buf + have, data, n);
		have += n;
		data += n;
		len -= n;
		for (off = 0; off < have; off += (size_t)used) {
			used = fpdu_rx_next(rx, buf + off, have - off, &ulpdu, &need);
			FUZZ_CHECK(used <= (ssize_t)(have - off));
			if (used < 0)
				return;
			if (used == 0) {
				FUZZ_CHECK(need > have - off && need <= MPA_FPDU_MAX);
				break;
			}
			FUZZ_CHECK(ulpdu.ptr >= buf + off && ulpdu.ptr + ulpdu.len <= buf + off + used);
			if (!take(s, ulpdu))
				return;
		}
		memmove(buf, buf + off, have - off);
		have -= off;
		if (have > MPA_FPDU_MAX)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct stream s;
	struct fpdu_rx rx;

	if (len < 2)
		return 0;
	world_init(&s, data[0]);
	rx = (struct fpdu_rx){ .crc = data[0] & 1, .markers = data[0] & 2 };
	run(&s, &rx, data + 2, len - 2, data[1] == 0 ? MPA_FPDU_MAX : data[1]);
	world_fini(&s, data[0]);
	return 0;
}
