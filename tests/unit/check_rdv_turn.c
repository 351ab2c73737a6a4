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
START_LOOP_TEST(who_waits_for_others_of_a_burst_gets_its_turn, 0, 2)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	begin_waiting(1, 2, _i);
	for (unsigned k = 3; k < 6; k++) {
		duo_run(4900);
		duo_connect(k, 1, 100);
		ck_assert(!IS(*waits(1, _i), CLOSED) && !IS(*waits(2, _i), CLOSED));
	}
	c[1].hold = s[1].hold = false;
	duo_run(100);
	ck_assert(BOTH(1, ESTABLISHED));
	/* That was the last one that came through. */
	duo_run(5800);
	ck_assert(!IS(*waits(2, _i), CLOSED));
	duo_run(300);
	expect_reset(2, _i);
}

/* Nobody else comes through: one timeout. */
START_LOOP_TEST(a_peer_that_is_silent_to_all_is_given_up, 0, 2)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	duo_run(6000);
	begin_waiting(1, 2, _i);
	duo_run(5900);
	ck_assert(!IS(*waits(1, _i), CLOSED));
	duo_run(200);
	expect_reset(1, _i);
	expect_reset(2, _i);
}

/* The peer comes to others all the time, and never to this one: 4.5 s from the beginning, and four times 6 s. */
START_LOOP_TEST(a_turn_that_never_comes_has_an_end, 0, 2)
{
	duo_init_version(2, NULL);
	duo_connect(0, 1, 500);
	begin_waiting(1, 1, _i);
	for (unsigned k = 2; k < 16; k++) {
		ck_assert(!IS(*waits(1, _i), CLOSED));
		duo_run(1900);
		duo_connect(k, 1, 100);
	}
	duo_run(600);
	expect_reset(1, _i);
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
	duo_connect(0, 1, 500);
	begin_waiting(1, 1, _i);
	duo_run(2000);
	open_elsewhere(2);
	duo_run(500);
	ck_assert(BOTH(2, ESTABLISHED));
	duo_expect_groups(2);
	duo_run(3600);
	expect_reset(1, _i);
}
