#include "iwarp/stream.h"

#include <string.h>

#include "unit.h"
#include "tests/seeded_rng.h"

#define RQ 4
#define IRD 2

static struct rng rng;
static struct stag_table stags;
static struct stag_region rw, ro, foreign, other;
static uint8_t mem[4096], romem[4096], rbuf[RQ][256];
static int my_pd, other_pd;
static struct stream s;
static struct stream_ev ev;

static void
setup(void)
{
	const struct stream_config cfg = {
		.stags = &stags,
		.pd = &my_pd,
		.rq_depth = RQ,
		.ird_max = IRD,
		.ord_max = 2,
	};

	rng_init_seeded(&rng, 1);
	stag_table_init(&stags, 16);
	rw = (struct stag_region){ .buf = mem, .len = sizeof(mem), .access = STAG_WRITE, .pd = &my_pd };
	ro = (struct stag_region){ .buf = romem, .len = sizeof(romem), .access = STAG_READ, .pd = &my_pd };
	foreign = (struct stag_region){ .buf = mem, .len = 16, .access = STAG_WRITE | STAG_READ, .pd = &other_pd };
	other = (struct stag_region){ .buf = mem, .len = 16, .access = STAG_WRITE, .pd = &my_pd };
	stag_add(&stags, &rw, &rng);
	stag_add(&stags, &ro, &rng);
	stag_add(&stags, &foreign, &rng);
	stag_add(&stags, &other, &rng);
	memset(mem, 0, sizeof(mem));
	for (unsigned i = 0; i < sizeof(romem); i++)
		romem[i] = (uint8_t)i;
	ck_assert_int_eq(stream_init(&s, &cfg), 0);
	stream_start(&s, 2, false);
}

static void
teardown(void)
{
	stream_fini(&s);
	stag_remove(&stags, &rw);
	stag_remove(&stags, &ro);
	stag_remove(&stags, &foreign);
	stag_remove(&stags, &other);
	stag_table_fini(&stags);
}

static void
recvs(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		stream_post_recv(&s, &(struct stream_recv){ .wr_id = 100 + i, .ptr = rbuf[i], .len = 256 });
}

static enum stream_rx
give(const struct ddp_hdr *h, const void *payload, size_t len)
{
	uint8_t ulpdu[1024];
	size_t n = ddp_encode(h, ulpdu);

	ulpdu[0] = (uint8_t)((ulpdu[0] & ~3u) | h->version);
	if (len > 0)
		memcpy(ulpdu + n, payload, len);
	return stream_ulpdu(&s, (struct span){ ulpdu, n + len }, &ev);
}

static struct ddp_hdr
send_hdr(uint32_t msn, uint32_t mo, bool last)
{
	return (struct ddp_hdr){ .version = 1, .last = last, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = msn, .mo = mo };
}

static struct ddp_hdr
tagged_hdr(enum rdmap_op op, uint32_t stag, uint64_t to)
{
	return (struct ddp_hdr){
		.version = 1, .tagged = true, .last = true, .ulp_ctrl = rdmap_ctrl(op), .stag = stag, .to = to
	};
}

static enum stream_rx
give_read(uint32_t msn, uint32_t size, uint32_t stag, uint64_t to)
{
	const struct ddp_hdr h = {
		.version = 1,
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
		.qn = 1,
		.msn = msn,
	};
	const struct rdmap_read r = {
		.sink_stag = 0x77, .sink_to = 0x8000, .size = size, .src_stag = stag, .src_to = to
	};
	uint8_t body[RDMAP_READ_LEN];

	rdmap_read_encode(&r, body);
	return give(&h, body, sizeof(body));
}

static void
expect_code(enum stream_rx rc, uint8_t layer, uint8_t etype, uint8_t code)
{
	ck_assert_int_eq(rc, STREAM_RX_ERROR);
	ck_assert_msg(ev.term.layer == layer && ev.term.etype == etype && ev.term.code == code, "%u/%u/%u",
	    ev.term.layer, ev.term.etype, ev.term.code);
	ck_assert(s.dead);
}

static void
expect_term(enum stream_rx rc, uint8_t layer, uint8_t etype, uint8_t code)
{
	expect_code(rc, layer, etype, code);
	/* what goes with it (RFC 5040 4.8) */
	ck_assert_int_eq(ev.term.has_ddp, layer != RDMAP_LAYER_LLP);
	ck_assert_int_eq(ev.term.has_len, layer != RDMAP_LAYER_LLP);
	ck_assert_int_eq(ev.term.has_read, layer == 0 && etype == 1 && ev.term.ddp.qn == 1);
}

/* Of the layer below, which knows no segments. */
static void
expect_llp_term(enum stream_rx rc, uint8_t layer, uint8_t etype, uint8_t code)
{
	expect_code(rc, layer, etype, code);
	ck_assert(!ev.term.has_len && !ev.term.has_ddp && !ev.term.has_read);
}

UNIT_FIXTURE(setup, teardown);

/* -- what is right -- */

START_TEST(send_in_segments)
{
	recvs(2);
	struct ddp_hdr h = send_hdr(1, 0, false);
	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_NONE);
	h = send_hdr(1, 3, false);
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_NONE);
	/* a tagged message in between is no offence */
	h = tagged_hdr(RDMAP_WRITE, rw.stag, rw.base + 8);
	ck_assert_int_eq(give(&h, "xy", 2), STREAM_RX_NONE);
	ck_assert_mem_eq(mem + 8, "xy", 2);
	h = send_hdr(1, 3, true);
	ck_assert_int_eq(give(&h, "de", 2), STREAM_RX_RECV);
	ck_assert_uint_eq(ev.wr_id, 100);
	ck_assert_uint_eq(ev.len, 5);
	ck_assert_mem_eq(rbuf[0], "abcde", 5);
	h = send_hdr(2, 0, true);
	h.ulp_ctrl = rdmap_ctrl(RDMAP_SEND_SE);
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_RECV);
	ck_assert_uint_eq(ev.wr_id, 101);
	ck_assert_uint_eq(ev.len, 0);
	ck_assert_uint_eq(stream_recv_cnt(&s), 0);
}

START_TEST(send_without_a_receive_can_come_again)
{
	struct ddp_hdr h = send_hdr(1, 0, true);

	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_NO_RECV);
	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_NO_RECV);
	ck_assert(!s.dead && !s.started);
	recvs(1);
	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_RECV);
	ck_assert(s.started);
}

START_TEST(invalidate)
{
	const uint32_t stags_of[] = { other.stag, ro.stag, foreign.stag, 0, rw.stag ^ 1 };
	struct ddp_hdr h = send_hdr(1, 0, false);

	/* no region may be, and nothing is said before the message is complete */
	recvs(1);
	h.ulp_ctrl = rdmap_ctrl(RDMAP_SEND_SE_INV);
	h.ulp_word = stags_of[_i];
	ck_assert_int_eq(give(&h, "ab", 2), STREAM_RX_NONE);
	h.last = true;
	h.mo = 2;
	expect_term(give(&h, "", 0), 0, 1, 9);
	ck_assert_uint_eq(stream_recv_cnt(&s), 1);
}

START_TEST(invalidate_of_a_shared_region)
{
	struct ddp_hdr h = send_hdr(1, 0, true);
	uint8_t *at;

	recvs(1);
	h.ulp_ctrl = rdmap_ctrl(RDMAP_SEND_INV);
	h.ulp_word = rw.stag;
	expect_term(give(&h, "", 0), 0, 1, 9);
	ck_assert_int_eq(stag_check(&stags, &my_pd, STAG_WRITE, rw.stag, rw.base, 1, NULL, &at), STAG_OK);
}

START_TEST(zero_length_tagged_is_not_checked)
{
	struct ddp_hdr h = tagged_hdr(RDMAP_WRITE, 1, 0);

	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_NONE);
	ck_assert(s.started);
	ck_assert_int_eq(give_read(1, 0, 1, 0), STREAM_RX_READ_REQ);
}

START_TEST(rtr_send_takes_no_receive)
{
	struct ddp_hdr h = send_hdr(1, 0, true);

	s.rtr_send = true;
	recvs(1);
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_NONE);
	ck_assert_uint_eq(stream_recv_cnt(&s), 1);
	/* only the very first */
	h.msn = 2;
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_RECV);
}

START_TEST(a_first_send_with_payload_is_no_rtr)
{
	struct ddp_hdr h = send_hdr(1, 0, true);

	s.rtr_send = true;
	recvs(1);
	ck_assert_int_eq(give(&h, "x", 1), STREAM_RX_RECV);
}

START_TEST(reads_are_served_in_order_and_in_segments)
{
	struct ddp_hdr h;
	struct span from;
	struct rdmap_term term;

	ck_assert_int_eq(give_read(1, 250, ro.stag, ro.base + 10), STREAM_RX_READ_REQ);
	ck_assert_int_eq(give_read(2, 0, 0, 0), STREAM_RX_READ_REQ);
	ck_assert(stream_must_serve(&s));
	for (unsigned off = 0; off < 250; off += 100) {
		ck_assert(stream_serve(&s, 100, &h, &from, &term));
		ck_assert_uint_eq(h.stag, 0x77);
		ck_assert_uint_eq(h.to, 0x8000 + off);
		ck_assert_uint_eq(h.ulp_ctrl, 0x42);
		ck_assert(h.tagged);
		ck_assert_uint_eq(from.len, off == 200 ? 50 : 100);
		ck_assert_ptr_eq(from.ptr, romem + 10 + off);
		ck_assert_int_eq(h.last, off == 200);
	}
	ck_assert(stream_serve(&s, 100, &h, &from, &term));
	ck_assert(h.last);
	ck_assert_uint_eq(from.len, 0);
	ck_assert(!stream_must_serve(&s));
	/* and their places are free again */
	ck_assert_int_eq(give_read(3, 1, ro.stag, ro.base), STREAM_RX_READ_REQ);
	ck_assert_int_eq(give_read(4, 1, ro.stag, ro.base), STREAM_RX_READ_REQ);
}

START_TEST(a_region_that_goes_away_while_it_is_read)
{
	struct ddp_hdr h;
	struct span from;
	struct rdmap_term term;
	uint32_t stag = ro.stag;
	uint64_t base = ro.base;

	ck_assert_int_eq(give_read(1, 250, ro.stag, ro.base), STREAM_RX_READ_REQ);
	ck_assert_int_eq(give_read(2, 1, ro.stag, ro.base), STREAM_RX_READ_REQ);
	ck_assert(stream_serve(&s, 100, &h, &from, &term));
	stag_remove(&stags, &ro);
	ck_assert(!stream_serve(&s, 100, &h, &from, &term));
	ck_assert_uint_eq(term.layer, 0);
	ck_assert_uint_eq(term.etype, 1);
	ck_assert_uint_eq(term.code, 0);
	ck_assert(term.has_read && term.has_ddp && term.has_len);
	ck_assert_uint_eq(term.ddp.msn, 1);
	/* moved on by what was sent */
	ck_assert_uint_eq(term.read.size, 150);
	ck_assert_uint_eq(term.read.sink_to, 0x8000 + 100);
	ck_assert_uint_eq(term.read.src_to, base + 100);
	ck_assert_uint_eq(term.read.src_stag, stag);
}

static void
issue_read(uint32_t size)
{
	const struct rdmap_read r = {
		.sink_stag = rw.stag, .sink_to = rw.base + 64, .size = size, .src_stag = 0x55, .src_to = 0x9000
	};
	struct ddp_hdr h;
	uint8_t body[RDMAP_READ_LEN];
	struct rdmap_read back;

	h = stream_read_hdr(&s, &r, body);
	ck_assert_uint_eq(h.qn, 1);
	ck_assert_uint_eq(h.msn, s.tx_msn[1] - 1);
	ck_assert_int_eq(rdmap_read_decode((struct span){ body, sizeof(body) }, &back), RDMAP_READ_LEN);
	ck_assert_uint_eq(back.size, size);
	ck_assert_uint_eq(back.src_stag, 0x55);
	ck_assert_uint_eq(back.sink_to, r.sink_to);
}

START_TEST(our_reads_are_answered)
{
	issue_read(0);
	issue_read(5);
	ck_assert_uint_eq(stream_reads_out(&s), 2);
	struct ddp_hdr h = tagged_hdr(RDMAP_READ_RESP, 0x1234, 99); /* not looked at, it is empty */
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_READ_DONE);
	ck_assert_uint_eq(stream_reads_out(&s), 1);
	h = tagged_hdr(RDMAP_READ_RESP, rw.stag, rw.base + 64);
	h.last = false;
	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_NONE);
	h = tagged_hdr(RDMAP_READ_RESP, rw.stag, rw.base + 67);
	ck_assert_int_eq(give(&h, "de", 2), STREAM_RX_READ_DONE);
	ck_assert_mem_eq(mem + 64, "abcde", 5);
	ck_assert_uint_eq(stream_reads_out(&s), 0);
}

START_TEST(message_numbers_wrap)
{
	recvs(2);
	s.rx_msn[0] = 0xffffffff;
	struct ddp_hdr h = send_hdr(0xffffffff, 0, true);
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_RECV);
	h = send_hdr(0, 0, true);
	ck_assert_int_eq(give(&h, "", 0), STREAM_RX_RECV);
	s.tx_msn[0] = 0xffffffff;
	h = stream_untagged_hdr(&s, RDMAP_SEND, 0, false);
	ck_assert_uint_eq(h.msn, 0xffffffff);
	h = stream_untagged_hdr(&s, RDMAP_SEND, 5, true);
	ck_assert_uint_eq(h.msn, 0xffffffff);
	ck_assert_uint_eq(h.mo, 5);
	h = stream_untagged_hdr(&s, RDMAP_SEND, 0, true);
	ck_assert_uint_eq(h.msn, 0);
}

START_TEST(early_placement)
{
	struct ddp_hdr h = tagged_hdr(RDMAP_WRITE, rw.stag, rw.base + 4);
	uint8_t *at = NULL;

	ck_assert(stream_place_early(&s, &h, 100, &at));
	ck_assert_ptr_eq(at, mem + 4);
	ck_assert(!stream_place_early(&s, &h, sizeof(mem), &at));
	ck_assert(!stream_place_early(&s, &h, 0, &at));
	h.version = 0;
	ck_assert(!stream_place_early(&s, &h, 100, &at));
	h = tagged_hdr(RDMAP_READ_RESP, rw.stag, rw.base + 4);
	ck_assert(!stream_place_early(&s, &h, 100, &at));
	h = tagged_hdr(RDMAP_WRITE, ro.stag, ro.base);
	ck_assert(!stream_place_early(&s, &h, 100, &at));
	ck_assert(!s.dead);
}

/* -- Terminate: each code of layers, RFC 5040 7 and RFC 5041 7 -- */

struct header_row {
	const char *what;
	struct ddp_hdr h;
	const char *payload;
	uint8_t layer, etype, code;
};

static const struct header_row header_rows[] = {
	{ "version 0, tagged", { .tagged = true, .last = true, .version = 0, .ulp_ctrl = 0x40 }, "", 1, 1, 4 },
	{ "version 3, tagged", { .tagged = true, .last = true, .version = 3, .ulp_ctrl = 0x40 }, "", 1, 1, 4 },
	{ "version 2, untagged", { .last = true, .version = 2, .ulp_ctrl = 0x43, .msn = 1 }, "", 1, 2, 6 },
	{ "version before QN", { .last = true, .version = 2, .ulp_ctrl = 0x43, .qn = 9, .msn = 1 }, "", 1, 2, 6 },
	{ "queue 3", { .version = 1, .last = true, .ulp_ctrl = 0x43, .qn = 3, .msn = 1 }, "", 1, 2, 1 },
	{ "queue all ones", { .version = 1, .last = true, .ulp_ctrl = 0x47, .qn = 0xffffffff, .msn = 1 }, "", 1, 2, 1 },
	{ "RDMAP version 0", { .version = 1, .last = true, .ulp_ctrl = 0x03, .msn = 1 }, "", 0, 2, 5 },
	{ "RDMAP version 2", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x80 }, "", 0, 2, 5 },
	{ "RDMAP version 3", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0xc0 }, "", 0, 2, 5 },
	{ "opcode 8", { .version = 1, .last = true, .ulp_ctrl = 0x48, .msn = 1 }, "", 0, 2, 6 },
	{ "opcode 15", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x4f }, "", 0, 2, 6 },
	{ "untagged Write", { .version = 1, .last = true, .ulp_ctrl = 0x40, .msn = 1 }, "", 0, 2, 6 },
	{ "untagged Read Response", { .version = 1, .last = true, .ulp_ctrl = 0x42, .msn = 1 }, "", 0, 2, 6 },
	{ "tagged Send", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x43 }, "", 0, 2, 6 },
	{ "tagged Read Request", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x41 }, "", 0, 2, 6 },
	{ "tagged Terminate", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x47 }, "", 0, 2, 6 },
	{ "Send on queue 1", { .version = 1, .last = true, .ulp_ctrl = 0x43, .qn = 1, .msn = 1 }, "", 0, 2, 6 },
	{ "Send on queue 2", { .version = 1, .last = true, .ulp_ctrl = 0x46, .qn = 2, .msn = 1 }, "", 0, 2, 6 },
	{ "Read Request on queue 0", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 0, .msn = 1 }, "", 0, 2, 6 },
	{ "Terminate on queue 0", { .version = 1, .last = true, .ulp_ctrl = 0x47, .qn = 0, .msn = 1 }, "", 0, 2, 6 },
	{ "Send, MSN 0", { .version = 1, .last = true, .ulp_ctrl = 0x43, .msn = 0 }, "", 1, 2, 3 },
	{ "Send, MSN 2", { .version = 1, .last = true, .ulp_ctrl = 0x43, .msn = 2 }, "", 1, 2, 3 },
	{ "Send, MSN all ones", { .version = 1, .last = true, .ulp_ctrl = 0x43, .msn = 0xffffffff }, "", 1, 2, 3 },
	{ "Read Request, MSN 2", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 2 }, "", 1, 2, 3 },
	{ "Terminate, MSN 2", { .version = 1, .last = true, .ulp_ctrl = 0x47, .qn = 2, .msn = 2 }, "", 1, 2, 3 },
	{ "Send, MO 1", { .version = 1, .last = true, .ulp_ctrl = 0x43, .mo = 1, .msn = 1 }, "", 1, 2, 4 },
	{ "Send, MO all ones", { .version = 1, .last = true, .ulp_ctrl = 0x43, .mo = 0xffffffff, .msn = 1 }, "", 1, 2,
	    4 },
	{ "Read Request, MO 1", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 1, .mo = 1, .msn = 1 }, "", 1, 2,
	    4 },
	{ "Read Request, empty", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 1 }, "", 0, 2, 0xff },
	{ "Read Request, 27 bytes", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 1 },
	    "abcdefghijklmnopqrstuvwxyz.", 0, 2, 0xff },
	{ "Read Request, 29 bytes", { .version = 1, .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 1 },
	    "abcdefghijklmnopqrstuvwxyz...", 1, 2, 5 },
	{ "Read Request, not last", { .version = 1, .ulp_ctrl = 0x41, .qn = 1, .msn = 1 },
	    "abcdefghijklmnopqrstuvwxyz..", 0, 2, 0xff },
	{ "Read Response, none asked", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x42 }, "", 0, 2, 6 },
	{ "Read Response with data, none asked", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x42 }, "x",
	    0, 2, 6 },
	{ "Write, unknown STag", { .version = 1, .tagged = true, .last = true, .ulp_ctrl = 0x40, .stag = 5 }, "x", 1, 1,
	    0 },
};

START_LOOP_TEST(header_errors, 0, sizeof(header_rows) / sizeof(header_rows[0]))
{
	const struct header_row *r = &header_rows[_i];

	recvs(1);
	expect_term(give(&r->h, r->payload, strlen(r->payload)), r->layer, r->etype, r->code);
	ck_assert_uint_eq(ev.term.ddp.ulp_ctrl, r->h.ulp_ctrl);
	ck_assert_uint_eq(ev.term.seg_len, (r->h.tagged ? 14 : 18) + strlen(r->payload));
}

START_LOOP_TEST(too_short_for_a_header, 0, 14)
{
	static const uint8_t bytes[18] = { 0xc1, 0x40 };

	expect_term(stream_ulpdu(&s, (struct span){ bytes, (size_t)_i }, &ev), 2, 0, 3);
}

START_LOOP_TEST(send_too_long, 0, 2)
{
	uint8_t big[257] = { 0 };
	struct ddp_hdr h;

	recvs(1);
	if (_i == 0) {
		h = send_hdr(1, 0, true);
		expect_term(give(&h, big, 257), 1, 2, 5);
		return;
	}
	h = send_hdr(1, 0, false);
	ck_assert_int_eq(give(&h, big, 256), STREAM_RX_NONE);
	h = send_hdr(1, 256, true);
	expect_term(give(&h, big, 1), 1, 2, 5);
}

START_TEST(early_placement_that_cannot_go_on)
{
	struct ddp_hdr h = tagged_hdr(RDMAP_WRITE, rw.stag, rw.base + 4);
	uint8_t *at = NULL;

	ck_assert(stream_place_early(&s, &h, 100, &at));
	stag_remove(&stags, &rw);
	h.to += 40;
	ck_assert(!stream_place_early(&s, &h, 60, &at));
	stream_fail_place(&s, &h, 60, &ev.term);
	expect_term(STREAM_RX_ERROR, 1, 1, 0);
	ck_assert_uint_eq(ev.term.ddp.to, rw.base + 44);
	ck_assert_uint_eq(ev.term.seg_len, 14 + 60);
}

START_LOOP_TEST(write_protection, 0, 6)
{
	const struct {
		uint32_t stag;
		uint64_t to;
		size_t len;
		uint8_t code;
	} rows[] = {
		{ foreign.stag, foreign.base, 1, 2 }, { rw.stag, rw.base + sizeof(mem), 1, 1 },
		{ rw.stag, rw.base - 1, 1, 1 }, { rw.stag, UINT64_MAX, 2, 3 }, { ro.stag, ro.base, 1, 0 },
		{ rw.stag, rw.base, 1, 0 }, /* which is gone */
	};
	struct ddp_hdr h = tagged_hdr(RDMAP_WRITE, rows[_i].stag, rows[_i].to);

	if (_i == 5)
		stag_remove(&stags, &rw);
	expect_term(give(&h, "\xee\xee", rows[_i].len), 1, 1, rows[_i].code);
	ck_assert_uint_eq(romem[0] | mem[0], 0);
}

START_LOOP_TEST(read_protection, 0, 7)
{
	const struct {
		uint32_t size, stag;
		uint64_t to;
		uint8_t code;
	} rows[] = {
		{ 1, 5, 0, 0 },
		{ 1, ro.stag, ro.base + sizeof(romem), 1 },
		{ sizeof(romem) + 1, ro.stag, ro.base, 1 },
		{ 1, rw.stag, rw.base, 2 },
		{ 1, foreign.stag, foreign.base, 3 },
		{ 2, ro.stag, UINT64_MAX, 4 },
		{ UINT32_MAX, ro.stag, ro.base, 1 },
	};

	expect_term(give_read(1, rows[_i].size, rows[_i].stag, rows[_i].to), 0, 1, rows[_i].code);
	ck_assert_uint_eq(ev.term.read.sink_stag, 0x77);
	ck_assert_uint_eq(ev.term.seg_len, 46);
}

START_TEST(more_reads_than_ird)
{
	ck_assert_int_eq(give_read(1, 0, 0, 0), STREAM_RX_READ_REQ);
	ck_assert_int_eq(give_read(2, 0, 0, 0), STREAM_RX_READ_REQ);
	expect_term(give_read(3, 0, 0, 0), 1, 2, 2);
}

START_LOOP_TEST(wrong_read_responses, 0, 6)
{
	struct ddp_hdr h = tagged_hdr(RDMAP_READ_RESP, rw.stag, rw.base + 64);
	const struct {
		uint32_t stag;
		uint64_t to;
		size_t len;
		uint8_t layer, etype, code;
	} rows[] = {
		{ other.stag, other.base, 5, 1, 1, 0 }, /* another STag */
		{ h.stag, h.to + 1, 5, 1, 1, 1 },       /* another place */
		{ h.stag, h.to, 6, 1, 1, 1 },           /* too much */
		{ h.stag, h.to, 4, 0, 2, 0xff },        /* too little */
		{ h.stag, h.to, 0, 0, 2, 0xff },        /* nothing at all */
		{ h.stag, h.to, 5, 1, 1, 0 },           /* the sink is gone */
	};

	issue_read(5);
	h.stag = rows[_i].stag;
	h.to = rows[_i].to;
	if (_i == 5) {
		stag_remove(&stags, &rw);
		h.stag = s.out_reads[0].sink_stag;
	}
	expect_term(give(&h, "abcdef", rows[_i].len), rows[_i].layer, rows[_i].etype, rows[_i].code);
}

START_LOOP_TEST(peers_terminate, 0, 2)
{
	static const uint8_t crc[] = { 0x20, 0x02, 0x00, 0x00 };
	const struct ddp_hdr h = { .version = 1, .last = true, .ulp_ctrl = 0x47, .qn = 2, .msn = 1 };

	if (_i == 0) {
		ck_assert_int_eq(give(&h, crc, sizeof(crc)), STREAM_RX_TERMINATED);
		ck_assert_uint_eq(ev.term.layer, 2);
		ck_assert_uint_eq(ev.term.code, 2);
	} else {
		/* cut off: it ends the stream all the same */
		ck_assert_int_eq(give(&h, crc, 3), STREAM_RX_TERMINATED);
		ck_assert_uint_eq(ev.term.code, 0xff);
	}
	ck_assert(s.dead);
}

START_TEST(llp_errors)
{
	stream_fail_llp(&s, MPA_BAD_CRC, &ev.term);
	expect_term(STREAM_RX_ERROR, 2, 0, 2);
}

/* The longest segment that each layer below brings, and one byte more. */
START_LOOP_TEST(so_long_over_each, 0, 4)
{
	static uint8_t ulpdu[UINT16_MAX + 1];
	size_t max = _i < 2 ? MPA_ULPDU_MAX : UINT16_MAX, len = max + (_i & 1);
	struct ddp_hdr h = tagged_hdr(RDMAP_WRITE, rw.stag, rw.base);
	uint8_t *at;

	s.cfg.llp = _i < 2 ? STREAM_MPA : STREAM_SCTP;
	(void)ddp_encode(&h, ulpdu);
	stag_remove(&stags, &rw);
	rw.len = sizeof(ulpdu); /* the address is not used */
	stag_add(&stags, &rw, &rng);
	h.stag = rw.stag;
	h.to = rw.base;
	ck_assert_int_eq(stream_place_early(&s, &h, len - DDP_TAGGED_LEN, &at), !(_i & 1));
	if ((_i & 1) == 0)
		expect_term(stream_ulpdu(&s, (struct span){ ulpdu, len }, &ev), 1, 1, 0); /* not the STag any more */
	else if (_i == 1)
		expect_llp_term(stream_ulpdu(&s, (struct span){ ulpdu, len }, &ev), 2, 0, 3);
	else
		expect_llp_term(stream_ulpdu(&s, (struct span){ ulpdu, len }, &ev), 0, 2, 7);
}

START_LOOP_TEST(no_header_over_sctp, 0, 14)
{
	static const uint8_t bytes[18] = { 0xc1, 0x40 };

	s.cfg.llp = STREAM_SCTP;
	expect_llp_term(stream_ulpdu(&s, (struct span){ bytes, (size_t)_i }, &ev), 0, 2, 7);
}

START_TEST(no_order_over_sctp)
{
	s.cfg.llp = STREAM_SCTP;
	stream_fail_llp(&s, RDMA_STREAM, &ev.term);
	expect_llp_term(STREAM_RX_ERROR, 0, 2, 7);
	ck_assert_str_eq(rdmap_term_str(0, 2, 7), "remote operation error: catastrophic for the stream");
}

START_TEST(receives_are_given_back)
{
	struct stream_recv r;
	struct ddp_hdr h = send_hdr(1, 0, false);

	recvs(2);
	ck_assert_int_eq(give(&h, "abc", 3), STREAM_RX_NONE);
	ck_assert(stream_flush_recv(&s, &r));
	ck_assert_uint_eq(r.wr_id, 100);
	ck_assert(stream_flush_recv(&s, &r));
	ck_assert_uint_eq(r.wr_id, 101);
	ck_assert(!stream_flush_recv(&s, &r));
}
