/* A connection that opened over a link, or by a rendezvous, ends while its link is lost (RFC 7609 4.6.1). */
#include "duo.h"
#include "unit.h"

#include "smcr/data/grant.h"
#include "wire/cdc.h"

UNIT_CASE(duo_case(tc, 3000));

#define TICKET 77

static void
begin(void)
{
	struct smcr_config cfg = { .keepalive_ms = 30000, .abort_ms = 2000 };

	duo_init(true, true, &cfg);
	duo_add_devices();
	d.ticket = TICKET;
	duo_connect(0, 1, 1000);
	duo_expect_links(2);
}

/* -- the client's messages by link -- */

static struct rnic_dev *over;                /* its device at the client */
static unsigned cnt_over, cnt_other, ghosts; /* CDC messages; those that are ghosts from here on */
static uint8_t first_other;                  /* producer flags of the first one over another link */

static bool
count_cdc(const struct sim_msg *m)
{
	bool mine = m->from == d.dev[A] || m->from == d.more[A][0];

	if (!mine || m->op != RNIC_WR_SEND || m->data[0] != CDC_TYPE)
		return false;
	if (m->from == over)
		return ++cnt_over > ghosts;
	if (cnt_other++ == 0)
		first_other = m->data[24];
	return false;
}

static void
watch(const struct smcr_conn *conn, unsigned first_ghost)
{
	over = conn->link->dev;
	cnt_over = cnt_other = first_other = 0;
	ghosts = first_ghost;
	d.ghosts = count_cdc;
}

enum { CLOSE, ABORT, RESET, ENDS };

static void
end(struct duo_end *e, unsigned how)
{
	if (how == CLOSE)
		smcr_close(e->conn);
	else if (how == ABORT)
		smcr_abort(e->conn, SMCR_R_APP_RESET);
	else
		smcr_reset(e->conn);
}

static void
lose_once_complete(struct smcr_conn *conn)
{
	struct link *link = conn->link;

	conn->link->want_fence = true;
	for (unsigned i = 0; i < 50 && (conn->tx.done_flags & (CDC_CLOSED | CDC_ABORT)) == 0; i++) {
		link->want_fence = true;
		duo_run(1);
	}
	ck_assert_uint_ne(conn->tx.done_flags & (CDC_CLOSED | CDC_ABORT), 0);
	if (!link_has_ended(link))
		duo_lose(link, "cut");
	duo_run(100);
}

/* C or A is complete, and never arrived. No CLC connection tells the server that the client is gone. */
START_LOOP_TEST(a_move_is_validated_even_behind_c_or_a, 0, 2 * ENDS)
{
	unsigned how = (unsigned)_i % ENDS, by_link = (unsigned)_i / ENDS;

	begin();
	if (by_link != 0)
		ck_assert(duo_open_over_link(1));
	else
		duo_connect(1, 1, 100);
	duo_write(&c[1], 1000);
	duo_run(20);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	duo_run(20);
	watch(c[1].conn, 0);
	end(&c[1], how);
	lose_once_complete(c[1].conn);
	ck_assert_uint_ge(cnt_over, 1);
	ck_assert_uint_ge(cnt_other, 1);
	ck_assert_uint_ne(first_other & CDC_FAILOVER, 0);
	ck_assert_uint_eq(d.eng[B]->ctr.failover_lost, 1);
	ck_assert(IS(s[1], CLOSED));
	duo_bystander_is_well();
}

static bool open_too;

static bool
ghost_of_opener(const struct sim_msg *m)
{
	return m->from == over && m->op == RNIC_WR_SEND &&
	    (m->data[0] == CDC_TYPE || (open_too && m->data[0] == OPEN_CONN));
}

/* The data, or the OPEN as well, are complete and never arrived: no byte has reached a program, so a rendezvous may follow. */
START_LOOP_TEST(an_opening_that_was_complete_and_never_arrived, 0, 4)
{
	begin();
	open_too = (_i & 1) != 0;
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	over = c[1].conn->link->dev;
	d.ghosts = ghost_of_opener;
	duo_write(&c[1], 1000);
	if ((_i & 2) != 0)
		smcr_close(c[1].conn);
	struct link *link = c[1].conn->link;
	for (unsigned i = 0; i < 50 && c[1].conn->tx.done_seq == 0; i++) {
		link->want_fence = true;
		duo_run(1);
	}
	ck_assert_uint_ge(c[1].conn->tx.done_seq, 1);
	if (!link_has_ended(link))
		duo_lose(link, "cut");
	duo_run(100);
	ck_assert_uint_eq(d.eng[B]->ctr.failover_lost, 1);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	ck_assert(!IS(s[1], ESTABLISHED));
	duo_bystander_is_well();
}

/* -- OPENs over two links -- */

static struct rnic_dev *held_dev; /* what goes to or from this device of the client waits */

static bool
holds_device(const struct sim_msg *m)
{
	return m->from == held_dev || m->to == held_dev;
}

/* Moved before it is answered, the client repeats its OPEN; the first one comes last, or with what is behind it. */
START_LOOP_TEST(of_two_opens_the_first_to_arrive_counts, 0, 2)
{
	begin();
	ck_assert(duo_open_over_link(1));
	struct smcr_conn *conn = c[1].conn;
	struct link *first = conn->link;
	struct link *other = LGR_FIND_LINK(l, duo_lgr(A), l->state == LINK_ACTIVE && l != first);
	held_dev = first->dev;
	d.holds = holds_device;
	duo_run(2);
	ck_assert(!IS(s[1], PROPOSAL));
	failover_ask(conn, other); /* by an operator, say */
	duo_write(&c[1], 1000);
	duo_run(5);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 2);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	if (_i == 1) { /* also over: it is ignored */
		duo_write(&s[1], 10);
		duo_run(5);
		ck_assert_uint_eq(duo_read(&c[1]), 10);
		duo_close(1);
		duo_run(5);
		ck_assert(BOTH(1, CLOSED));
		duo_release_pair(1);
	}
	d.holds = NULL;
	duo_run(20);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 1);
	ck_assert_uint_eq(d.eng[B]->ctr.opened_server, 1);
	ck_assert_ptr_null(s[2].conn);
	duo_bystander_is_well();
}

/* -- a link that is cut at each step between the OPEN and the answer -- */

#define STEPS 14

static unsigned passed, let_pass;
static bool cut;

static bool
cuts_off(const struct sim_msg *m)
{
	if (m->from != held_dev && m->to != held_dev)
		return false;
	if (cut || passed == let_pass)
		return cut = true;
	passed++;
	return false;
}

static void
begin_steps(bool two, bool refuse, unsigned steps)
{
	struct smcr_config cfg = { .keepalive_ms = 30000, .abort_ms = 2000 };

	duo_init(true, true, &cfg);
	if (two)
		duo_add_devices();
	d.ticket = TICKET;
	duo_connect(0, 1, two ? 1000 : 100);
	passed = 0;
	cut = false;
	let_pass = steps;
	s[1].refuse = refuse;
	ck_assert(duo_open_over_link(1));
	held_dev = c[1].conn->link->dev;
	d.holds = cuts_off;
	duo_write(&c[1], 1000);
}

static size_t
read_all(struct duo_end *e)
{
	return e->conn != NULL && IS(*e, ESTABLISHED) ? duo_read(e) : 0;
}

/* i: steps, the end that loses the link, how soon the server's program is there. */
START_LOOP_TEST(with_another_link_no_byte_is_lost_or_doubled, 0, STEPS * 4)
{
	unsigned steps = (unsigned)_i / 4;
	bool at_server = (_i & 1) != 0, slow = (_i & 2) != 0;

	begin_steps(true, slow, steps);
	duo_run(2);
	struct link *mine = LGR_FIND_LINK(l, duo_lgr(A), l->state == LINK_ACTIVE && l->dev == held_dev);
	struct link *lost = at_server ? duo_link_nr(B, mine->number) : mine;
	if (!slow && IS(s[1], ESTABLISHED))
		duo_write(&s[1], 500);
	duo_lose(lost, "cut");
	d.holds = NULL;
	duo_run(50);
	if (slow)
		smcr_admit(s[1].conn);
	duo_run(50);
	ck_assert(BOTH(1, ESTABLISHED));
	duo_write(&s[1], 1000 - s[1].written);
	duo_run(20);
	duo_read(&s[1]);
	duo_read(&c[1]);
	ck_assert_uint_eq(s[1].read, 1000);
	ck_assert_uint_eq(c[1].read, 1000);
	ck_assert_uint_eq(d.eng[B]->ctr.opened_server, 1);
	duo_bystander_is_well();
}

/* Without one: never a byte at a program, if the client's user is to open the connection by a rendezvous. */
START_LOOP_TEST(without_another_link_no_byte_reaches_a_program_twice, 0, STEPS * 4)
{
	unsigned steps = (unsigned)_i / 4;
	bool at_server = (_i & 1) != 0, slow = (_i & 2) != 0;
	size_t got = 0;

	begin_steps(false, slow, steps);
	duo_run(2);
	got += read_all(&s[1]);
	duo_lose(duo_link(at_server ? B : A), "cut");
	d.holds = NULL;
	for (unsigned i = 0; i < 50; i++) {
		duo_run(1);
		got += read_all(&s[1]);
	}
	ck_assert(IS(c[1], CLOSED));
	ck_assert(s[1].conn == NULL || IS(s[1], CLOSED));
	ck_assert(c[1].reason != SMCR_R_NOT_OPENED || got == 0);
	ck_assert_int_ne(c[1].reason, SMCR_OK);
}
