/*
 * Receive order over SCTP. A program's steps are messages in the order in which they are sent; c says when each comes, and
 * `who` what is done to it on the way, a lie of the peer's included. Without lies the outcome is that of the same
 * messages in order; in any case nothing is placed beside what the STags allow, and what was placed was placed whole.
 *
 * Header: first number and how many receives there are; how many messages may be held; whether Writes are refused at first.
 */
#include "iwarp/ssn.h"

#include <errno.h>

#include "fuzz.h"
#include "steps.h"
#include "tests/ssn_world.h"

#define MSGS_MAX 32
#define PLACE 48 /* of a Write, at most; each has its own */

enum lie {
	LIE_TWICE = 9,
	LIE_NEAR,   /* another number */
	LIE_FAR,    /* the same */
	LIE_BYTES,  /* other bytes, or fewer */
	LIE_LOST,   /* it never comes */
	LIE_CLOSED, /* no lie, but the answer to a Write depends on the moment: the region is closed, or opened */
	LIE_NONE,   /* a receive is posted before it comes */
	LIE_CNT,
};

static struct world in_order, any_order;
static struct world_msg msgs[MSGS_MAX];
static struct step specs[MSGS_MAX];
static unsigned msg_cnt;
static bool lied;

/* -- what is sent -- */

struct sender {
	uint32_t send_msn, send_mo, read_msn;
	uint32_t answered; /* of our Reads: the empty one, and bytes of the other */
};

static void
make_answer(struct sender *s, struct world_msg *m, uint32_t len)
{
	static const uint8_t bytes[WORLD_READ_LEN] = "what was read";
	uint32_t off = s->answered > 0 ? s->answered - 1 : 0, left = WORLD_READ_LEN - off;

	if (s->answered == 0) {
		world_msg_answer(&in_order, m, 0, true, NULL, 0);
		s->answered = 1;
		return;
	}
	if (len > left)
		len = left;
	world_msg_answer(&in_order, m, off, len == left, bytes + off, len);
	s->answered += len;
}

static void
make_write(struct world_msg *m, unsigned i, const struct step *st, const uint8_t *bytes)
{
	uint32_t off = 64 + i * PLACE;

	if (st->b % 16 == 15)
		off = WORLD_MEM - st->a % 4; /* out of it, if it has so many bytes */
	world_msg_write(&in_order, m,
	    st->b % 16 == 14       ? WORLD_RO
	        : st->b % 16 == 13 ? WORLD_FOREIGN
	                           : WORLD_RW,
	    off, bytes, st->a % (PLACE + 1));
	if (st->b % 16 > 12)
		m->placed = 0; /* refused, or not its place */
}

static void
make(struct sender *s, struct world_msg *m, unsigned i, const struct step *st)
{
	uint8_t bytes[128];

	memset(bytes, (int)(i + 1), sizeof(bytes));
	switch (st->op % 10) {
	case 0:
	case 1:
	case 2:
	case 3:
		make_write(m, i, st, bytes);
		break;
	case 4:
	case 5:
		world_msg_send(m, s->send_msn, s->send_mo, (st->b & 1) == 0, bytes, st->a % 64);
		s->send_mo += st->a % 64;
		if ((st->b & 1) == 0) {
			s->send_msn++;
			s->send_mo = 0;
		}
		break;
	case 6:
		world_msg_read(&in_order, m, s->read_msn++, st->b, st->a);
		break;
	case 7:
		make_answer(s, m, st->a);
		break;
	case 8:
		world_msg_control(m, (uint16_t)(st->b % 8), bytes, st->a % 32);
		break;
	default:
		world_msg_terminate(m);
	}
}

/* -- how it comes -- */

/* By c; of the same c in the order of sending. */
static void
make_order(unsigned order[MSGS_MAX])
{
	for (unsigned i = 0; i < msg_cnt; i++) {
		unsigned at = i;

		for (; at > 0 && specs[order[at - 1]].c > specs[i].c; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void
look(const struct world *w)
{
	/* One more than are allowed only where that one has its turn, and waits. */
	FUZZ_CHECK(w->ssn.held <= w->ssn.cfg.held_max + w->waits && w->ssn.held <= w->ssn.slot_cnt);
	FUZZ_CHECK(w->ssn.slot_cnt <= w->ssn.cfg.held_max + 1u);
	FUZZ_CHECK(w->ssn.ahead >= w->ssn.held && w->ssn.ahead < SSN_WINDOW);
}

/* False: the stream is over. */
static bool
come(const struct world_msg *m, uint16_t number)
{
	struct world *w = &any_order;
	const char *why = NULL;
	int rc = world_in(w, m->kind, number, (struct span){ m->bytes, m->len }, &why);

	look(w);
	if (rc < 0) {
		struct rdmap_term term;

		FUZZ_CHECK(rc == -EPROTO && why != NULL);
		/* An honest peer can only have sent too much. */
		FUZZ_CHECK(lied || w->ssn.held >= w->ssn.cfg.held_max);
		lied = true;
		stream_fail_llp(&w->stream, RDMA_STREAM, &term);
		world_note_term(w, STREAM_RX_ERROR, &term);
	}
	return !w->over;
}

static void
post(struct world *w)
{
	if (w->posted < WORLD_RECVS)
		world_post(w);
	world_drive(w);
}

static void
arrive(unsigned i, uint16_t first)
{
	const struct step *st = &specs[i];
	struct world_msg m = msgs[i];
	uint16_t number = (uint16_t)(first + i);
	enum lie lie = st->who % LIE_CNT;

	lied = lied || (lie >= LIE_TWICE && lie != LIE_NONE);
	if (lie == LIE_LOST)
		return;
	if (lie == LIE_NONE)
		post(&any_order);
	else if (lie == LIE_CLOSED)
		any_order.regions[WORLD_RW].closed = !any_order.regions[WORLD_RW].closed;
	else if (lie == LIE_NEAR)
		number = (uint16_t)(number + st->a - 128);
	else if (lie == LIE_FAR)
		number = (uint16_t)(number + 32760 + st->a % 16);
	else if (lie == LIE_BYTES && m.len > 0 && (st->a & 1))
		m.bytes[st->b % m.len] ^= st->a;
	else if (lie == LIE_BYTES)
		m.len = st->b % (m.len + 1);
	if (any_order.over || !come(&m, number) || lie != LIE_TWICE)
		return;
	FUZZ_CHECK(!come(&msgs[st->a % msg_cnt], number));
}

/* -- the whole -- */

static void
run_in_order(void)
{
	for (unsigned i = 0; i < WORLD_RECVS; i++)
		world_post(&in_order);
	for (unsigned i = 0; i < msg_cnt && !in_order.over; i++)
		FUZZ_CHECK(world_turn(&in_order, msgs[i].kind, (struct span){ msgs[i].bytes, msgs[i].len }));
}

static void
run_any_order(uint16_t first, unsigned recvs)
{
	unsigned order[MSGS_MAX];

	for (unsigned i = 0; i < recvs; i++)
		world_post(&any_order);
	make_order(order);
	for (unsigned i = 0; i < msg_cnt && !any_order.over; i++)
		arrive(order[i], first);
	while (!any_order.over && any_order.waits && any_order.posted < WORLD_RECVS)
		post(&any_order);
	look(&any_order);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint16_t firsts[] = { 0, 1, 32760, 65530 };
	uint8_t header[STEPS_HEADER];
	struct steps steps;
	struct ssn_config cfg;
	struct sender sender = { .send_msn = 1, .read_msn = 1 };

	if (!steps_begin(&steps, data, len, header))
		return 0;
	cfg = (struct ssn_config){ .first = firsts[header[0] % 4],
		.held_max = header[1] % (MSGS_MAX + 1),
		.held_len = sizeof(msgs[0].bytes) };
	world_init(&in_order, &cfg);
	world_init(&any_order, &cfg);
	any_order.regions[WORLD_RW].closed = lied = header[2] & 1;
	for (msg_cnt = 0; msg_cnt < MSGS_MAX && steps_next(&steps, &specs[msg_cnt]); msg_cnt++)
		make(&sender, &msgs[msg_cnt], msg_cnt, &specs[msg_cnt]);
	run_in_order();
	run_any_order(cfg.first, header[0] / 4 % 8);
	FUZZ_CHECK(world_guarded(&any_order));
	if (!lied) {
		const char *differs = world_differs(&in_order, &any_order, msgs, msg_cnt);

		if (differs != NULL)
			fprintf(stderr, "not the same as in order: %s\n", differs);
		FUZZ_CHECK(differs == NULL);
		FUZZ_CHECK(any_order.over || (any_order.ssn.ahead == 0 && any_order.ssn.held == 0));
	}
	world_fini(&in_order);
	world_fini(&any_order);
	return 0;
}
