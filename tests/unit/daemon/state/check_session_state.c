/* Raised events: when they act, in which order, and what becomes of those that come late. On SMC-R (0), or fallen back (1). */
#include "daemon/session/session.h"

#include "daemon/session/end_cause.h"
#include "gateway.h"
#include "unit.h"

#define BIT(event) (1u << (event))

UNIT_FIXTURE(gw_setup, gw_teardown);

static struct session *
begin(int mode)
{
	if (mode == 1)
		fake.server_declines = 0x03030000;
	gw_begin();
	gw_run_ms(20); /* nothing is scheduled */
	return gw_session(GW_IN);
}

static enum session_state
data_state(int mode)
{
	return mode == 0 ? SES_SMCR : SES_TCP;
}

/* The step of the pump alone, with what the app leg brings. */
static void
step(struct session *s, int mode)
{
	leg_latch(&s->app, LOOP_READ | LOOP_RDHUP);
	if (mode == 0)
		session_pump_smcr(s);
	else
		session_pump_tcp(s);
}

static void
expect_untouched(const struct session *s, int mode)
{
	ck_assert_int_eq(s->state, data_state(mode));
	ck_assert_int_ge(s->app.io.fd, 0);
	ck_assert_int_ge(s->mid.io.fd, 0);
	ck_assert_uint_eq(s->mid.flags & LEG_SHUT, 0);
	ck_assert(list_empty(&s->pool->dead));
}

START_LOOP_TEST(an_event_acts_when_the_step_that_raises_it_has_returned, 0, 2)
{
	struct session *s = begin(_i);

	net_reset(client);
	client = -1;
	step(s, _i);
	ck_assert_uint_eq(s->raised, BIT(SEV_APP_RESET));
	expect_untouched(s, _i);
	session_pump(s);
	ck_assert_uint_eq(s->raised, 0);
	ck_assert_int_ne(s->state, data_state(_i));
	gw_expect_reset(server);
}

/* The end of data is passed on before the end of the connection: D before C, or a FIN that the close sends. */
START_LOOP_TEST(two_events_of_a_step_act_in_the_order_of_the_enum, 0, 2)
{
	struct session *s = begin(_i);

	shutdown(server, SHUT_WR);
	gw_expect_eof(client);
	shutdown(client, SHUT_WR);
	step(s, _i);
	ck_assert_uint_eq(s->raised, BIT(SEV_APP_EOF) | BIT(SEV_BOTH_DONE));
	expect_untouched(s, _i);
	ck_assert_uint_eq(fake_seen.closes, 0);
	session_pump(s);
	ck_assert_int_eq(s->state, _i == 0 ? SES_CLOSING : SES_DEAD);
	gw_expect_eof(server);
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(gw_pool(GW_IN)->stats.sessions_reset, 0);
}

/* Not in the order in which they were raised: the cause is that of the one that has acted first. */
START_LOOP_TEST(events_from_outside_act_in_the_order_of_the_enum, 0, 2)
{
	struct session *s = begin(_i);

	session_raise(s, SEV_STOP);
	session_raise(s, SEV_APP_RESET);
	expect_untouched(s, _i);
	ck_assert(session_pool_has_work(s->pool));
	session_pump(s);
	ck_assert_int_eq(s->state, _i == 0 ? SES_ABORTING : SES_DEAD);
	ck_assert_uint_eq(s->cause, end_cause_event(SEV_APP_RESET));
	ck_assert_int_eq((s->flags & SF_RESETS) != 0, true);
}

START_TEST(an_event_that_another_one_has_made_stale_is_dropped)
{
	struct session *s = begin(0);

	ck_assert_uint_ne(session_table_actions(SES_SMCR, SEV_PEER_DONE), 0);
	ck_assert_uint_eq(session_table_actions(SES_DRAINING, SEV_PEER_DONE), 0);
	session_raise(s, SEV_APP_RESET);
	session_raise(s, SEV_PEER_DONE);
	session_pump(s);
	ck_assert_int_eq(s->state, SES_DRAINING);
	ck_assert_uint_eq(s->raised, 0);
	/* In the state that it is raised in it is a defect. */
	session_raise(s, SEV_PEER_DONE);
	session_pump(s);
	ck_assert_int_eq(s->state, SES_DEAD);
}

START_LOOP_TEST(a_session_that_ends_is_freed_at_the_end_of_the_turn, 0, 2)
{
	struct session *s = begin(_i);
	struct session_pool *pool = s->pool;
	uint32_t id = s->id, used = pool->session_slab.used;

	for (int i = 0; i < 2; i++) { /* on SMC-R the first one begins the end */
		session_stop(s);
		ck_assert_ptr_eq(idtable_get(&pool->sessions, id), s);
		ck_assert_uint_eq(pool->session_slab.used, used);
	}
	ck_assert_int_eq(s->state, SES_DEAD);
	/* Nothing acts on it now. */
	session_raise(s, SEV_TIMEOUT);
	session_pump(s);
	ck_assert(!session_close(s, NULL));
	ck_assert_int_eq(s->state, SES_DEAD);
	ck_assert_uint_eq(pool->stats.sessions_closed, 1);
	session_pool_reap(pool);
	ck_assert_ptr_null(idtable_get(&pool->sessions, id));
	ck_assert_uint_eq(pool->session_slab.used, used - 1);
}

/* Another turn for an event that has acted in this one would be for nothing. */
START_LOOP_TEST(an_event_of_a_step_needs_no_further_turn, 0, 2)
{
	struct session *s = begin(_i);

	gw_say(client, "last");
	shutdown(client, SHUT_WR);
	leg_latch(&s->app, LOOP_READ | LOOP_RDHUP);
	ck_assert(list_empty(&s->node));
	session_pump(s);
	ck_assert_uint_ne(s->flags & SF_APP_DONE, 0);
	ck_assert(list_empty(&s->node));
	gw_expect(server, "last", GW_EOF);
}

START_TEST(an_order_to_close_counts_once)
{
	struct session *s = begin(0);

	ck_assert(session_close(s, NULL));
	ck_assert(!session_close(s, NULL));
	ck_assert_uint_eq(s->pool->stats.sessions_closed_operator, 1);
	ck_assert_int_eq(s->state, SES_SMCR);
	gw_once();
	gw_expect_reset(client);
	gw_expect_reset(server);
}
