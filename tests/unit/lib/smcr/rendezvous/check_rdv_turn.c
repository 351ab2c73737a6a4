/* Turns at a peer that makes one rendezvous at a time. Both ends are engines of ours; a client that proposes to Linux is one to the
 * server, which its Accept is then Linux's to. */
#include "duo.h"
#include "unit.h"

UNIT_CASE(duo_case(tc, 5000));

/* Pairs whose server's Accept (_i = 0) or client's Confirm (_i = 1) does not come yet. */
static void
begin_waiting(unsigned first, unsigned cnt, int which)
{
	for (unsigned i = first; i < first + cnt; i++) {
		duo_open(i);
		s[i].hold = true;
	}
	duo_run(10);
	for (unsigned i = first; i < first + cnt; i++) {
		ck_assert_int_eq(c[i].conn->rdv->step, RDV_WAIT_ACCEPT);
		ck_assert_int_eq(s[i].conn->rdv->step, RDV_WAIT_CONFIRM);
		c[i].hold = which == 1;
		s[i].hold = which == 0;
	}
	duo_run(10);
}

/* The end that waits. */
static struct duo_end *
waits(unsigned i, int which)
{
	return which == 0 ? &c[i] : &s[i];
}

static void
expect_reset(unsigned i, int which)
{
	ck_assert(IS(*waits(i, which), CLOSED));
	ck_assert_int_eq(waits(i, which)->reason, SMCR_R_CLC_TIMEOUT);
}

/* Connections of a burst: others come through, one every 5 s, and those that wait get their turn. */
START_TEST(a_waiter_in_a_burst_gets_its_turn)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	begin_waiting(1, 2, 0);
	for (unsigned k = 3; k < 6; k++) {
		duo_run(4900);
		duo_connect(k, 1, 100);
		ck_assert(!IS(c[1], CLOSED) && !IS(c[2], CLOSED));
	}
	c[1].hold = s[1].hold = false;
	duo_run(100);
	ck_assert(BOTH(1, ESTABLISHED));
	/* That was the last one that came through. */
	duo_run(5800);
	ck_assert(!IS(c[2], CLOSED));
	duo_run(300);
	expect_reset(2, 0);
}

/* A group that is full, and first contact for another one, which waits for its Confirm. */
static void
fill_and_wait(void)
{
	static const struct smcr_config few = { .conns_per_group = 16 };

	duo_init_version(2, &few);
	duo_connect(0, 16, 500);
	begin_waiting(16, 1, 1);
}

/* Another connection gets a place in the group that was full. */
static void
come_through(unsigned k)
{
	duo_close(k);
	duo_run(100);
	duo_connect(17 + k, 1, 100);
}

/* So does a server that makes another group for the client: up to 4.5 s, and four times 6 s. */
START_LOOP_TEST(a_first_contact_waits_for_others_too, 0, 2)
{
	unsigned last = _i == 0 ? 3 : 6;

	fill_and_wait();
	for (unsigned k = 0; k < last; k++) {
		duo_run(4300);
		come_through(k);
		ck_assert(!IS(s[16], CLOSED));
	}
	duo_run(_i == 0 ? 5800 : 1400);
	ck_assert(!IS(s[16], CLOSED));
	duo_run(300);
	expect_reset(16, 1);
}

/* Nobody else comes through: one timeout. */
START_TEST(a_server_that_is_silent_to_all_is_given_up)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	duo_run(6000);
	begin_waiting(1, 2, 0);
	duo_run(5900);
	ck_assert(!IS(c[1], CLOSED));
	duo_run(200);
	expect_reset(1, 0);
	expect_reset(2, 0);
}

/* The peer comes to others all the time, and never to this one: 4.5 s from the beginning, and four times 6 s. */
START_TEST(a_turn_that_never_comes_has_an_end)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	begin_waiting(1, 1, 0);
	for (unsigned k = 2; k < 16; k++) {
		ck_assert(!IS(c[1], CLOSED));
		duo_run(1900);
		duo_connect(k, 1, 100);
	}
	duo_run(600);
	expect_reset(1, 0);
}

/* Linux would not notice the reset, and wait for data without an end. Who has aborted meanwhile, or not. */
START_LOOP_TEST(a_confirm_is_awaited_for_as_long_as_the_group_lives, 0, 2)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	duo_run(6000);
	begin_waiting(1, 2, 1);
	if (_i == 1)
		smcr_abort(s[1].conn, SMCR_R_APP_RESET);
	duo_run(100000);
	ck_assert(!IS(s[1], CLOSED) && !IS(s[2], CLOSED));
	c[1].hold = false;
	duo_run(100);
	if (_i == 1)
		ck_assert(BOTH(1, CLOSED));
	else
		ck_assert(BOTH(1, ESTABLISHED));
	ck_assert(sim_break(d.fab, 0, SIM_CUT_RESET));
	duo_run(1000);
	ck_assert(IS(s[2], CLOSED));
}

/* It notices it at first contact, where CONFIRM LINK has to follow. */
START_TEST(a_confirm_of_first_contact_is_awaited_for_one_timeout)
{
	duo_init_version(2, NULL);
	begin_waiting(1, 1, 1);
	duo_run(6100);
	expect_reset(1, 1);
}

/* An smcrd makes all at once, and who is silent to one connection for 6 s is in no way busy. */
START_LOOP_TEST(an_smcrd_has_no_turns, 0, 2)
{
	duo_init(true, true, NULL);
	duo_connect(0, 1, 500);
	begin_waiting(1, 1, _i);
	duo_run(4900);
	duo_connect(2, 1, 100);
	duo_run(1100);
	expect_reset(1, _i);
}

/* A pair whose client names another server, which has another address, as the client has for the server. */
static void
open_elsewhere(unsigned i)
{
	struct smcr_open open = { .role = SMCR_CLIENT,
		.peer = SMCR_PEER_LINUX,
		.app = &c[i],
		.elem_size = SMCR_ELEM_MIN,
		.peer_key = "server:2",
		.remote.addr = { [10] = 0xff, [11] = 0xff, [15] = 2 } };
	int err;

	d.remote = 2;
	duo_open_one(&s[i], SMCR_SERVER, false);
	d.remote = 1;
	c[i] = (struct duo_end){ .host = A };
	c[i].conn = smcr_open(d.eng[A], &open, &err);
	ck_assert_ptr_nonnull(c[i].conn);
	duo_join(i);
}

/* What another peer does says nothing: the client's other server, the server's other client. */
START_LOOP_TEST(only_the_same_peer_counts, 0, 2)
{
	duo_init_version(2, NULL);
	d.remote = 1;
	if (_i == 0)
		duo_connect(0, 1, 500);
	begin_waiting(1, 1, _i);
	duo_run(2000);
	open_elsewhere(2);
	duo_run(500);
	ck_assert(BOTH(2, ESTABLISHED));
	if (_i == 0)
		duo_expect_groups(2);
	duo_run(3600);
	expect_reset(1, _i);
}
