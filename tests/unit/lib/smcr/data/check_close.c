/* The end of connections: each cell of the state table, and the flows of RFC 7609 4.8 between two hosts. */
#include <stdio.h>

#include "host.h"
#include "smcr/data/conn.h"
#include "unit.h"

#define ELEM (64u * 1024)

/* -- each cell -- */

#define S(name) CONN_##name
#define E(name) CLOSE_##name

/* Figures 22 and 23 and the text of 4.8; a cell that is missing here changes nothing. second: our C is out
 * (PeerCloseWait, PeerFinCloseWait), the peer's is in (AppCloseWait), our A is out (PeerAbortWait). does: R = the user is to read,
 * A = an abort is owed, E = the end. */
static const struct expect {
	enum conn_state state;
	int second; /* -1: either */
	enum close_event ev;
	enum conn_state next;
	char does;
} expected[] = {
	{ S(ACTIVE), -1, E(APP_SHUTDOWN), S(PEER_CLOSE_WAIT1), 0 }, /* 3A */
	{ S(ACTIVE), -1, E(APP_CLOSE), S(PEER_CLOSE_WAIT1), 0 },    /* 3A */
	{ S(ACTIVE), -1, E(PEER_DONE), S(APP_CLOSE_WAIT1), 'R' },   /* 4A */
	{ S(ACTIVE), -1, E(PEER_CLOSED), S(APP_CLOSE_WAIT1), 'R' }, /* 4A */
	{ S(ACTIVE), -1, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },    /* 23: 2A */
	{ S(ACTIVE), -1, E(LOCAL_ABORT), S(PEER_ABORT_WAIT), 'A' }, /* 23: 1A */
	{ S(ACTIVE), -1, E(TIMEOUT), S(PEER_ABORT_WAIT), 'A' },
	{ S(PEER_CLOSE_WAIT1), -1, E(APP_CLOSE), S(PEER_CLOSE_WAIT1), 0 },
	{ S(PEER_CLOSE_WAIT1), -1, E(PEER_DONE), S(PEER_CLOSE_WAIT2), 'R' },    /* 3B */
	{ S(PEER_CLOSE_WAIT1), 0, E(PEER_CLOSED), S(APP_FIN_CLOSE_WAIT), 'R' }, /* 3C, 3D */
	{ S(PEER_CLOSE_WAIT1), 1, E(PEER_CLOSED), S(CLOSED), 'E' },             /* 3C */
	{ S(PEER_CLOSE_WAIT1), 0, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(PEER_CLOSE_WAIT1), 1, E(PEER_ABORT), S(CLOSED), 'E' },
	{ S(PEER_CLOSE_WAIT1), 0, E(LOCAL_ABORT), S(PEER_ABORT_WAIT), 'A' },
	{ S(PEER_CLOSE_WAIT1), 0, E(TIMEOUT), S(PEER_ABORT_WAIT), 'A' },
	{ S(PEER_CLOSE_WAIT1), 1, E(TIMEOUT), S(CLOSED), 'E' },
	{ S(PEER_CLOSE_WAIT2), -1, E(APP_CLOSE), S(PEER_CLOSE_WAIT2), 0 },
	{ S(PEER_CLOSE_WAIT2), 0, E(PEER_CLOSED), S(APP_FIN_CLOSE_WAIT), 'R' }, /* 3C, 3D */
	{ S(PEER_CLOSE_WAIT2), 1, E(PEER_CLOSED), S(CLOSED), 'E' },             /* 3C */
	{ S(PEER_CLOSE_WAIT2), 0, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(PEER_CLOSE_WAIT2), 1, E(PEER_ABORT), S(CLOSED), 'E' },
	{ S(PEER_CLOSE_WAIT2), 0, E(LOCAL_ABORT), S(PEER_ABORT_WAIT), 'A' },
	{ S(PEER_CLOSE_WAIT2), 0, E(TIMEOUT), S(PEER_ABORT_WAIT), 'A' },
	{ S(PEER_CLOSE_WAIT2), 1, E(TIMEOUT), S(CLOSED), 'E' },
	{ S(APP_FIN_CLOSE_WAIT), -1, E(APP_CLOSE), S(CLOSED), 'E' }, /* 3D */
	{ S(APP_FIN_CLOSE_WAIT), -1, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_FIN_CLOSE_WAIT), -1, E(LOCAL_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_FIN_CLOSE_WAIT), -1, E(TIMEOUT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT1), -1, E(APP_SHUTDOWN), S(APP_CLOSE_WAIT2), 0 }, /* 4B */
	{ S(APP_CLOSE_WAIT1), 0, E(APP_CLOSE), S(PEER_FIN_CLOSE_WAIT), 0 }, /* 4C */
	{ S(APP_CLOSE_WAIT1), 1, E(APP_CLOSE), S(CLOSED), 'E' },            /* 4C */
	{ S(APP_CLOSE_WAIT1), -1, E(PEER_CLOSED), S(APP_CLOSE_WAIT1), 'R' },
	{ S(APP_CLOSE_WAIT1), -1, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT1), 0, E(LOCAL_ABORT), S(PEER_ABORT_WAIT), 'A' },
	{ S(APP_CLOSE_WAIT1), 1, E(LOCAL_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT1), 0, E(TIMEOUT), S(PEER_ABORT_WAIT), 'A' },
	{ S(APP_CLOSE_WAIT1), 1, E(TIMEOUT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT2), 0, E(APP_CLOSE), S(PEER_FIN_CLOSE_WAIT), 0 }, /* 4C */
	{ S(APP_CLOSE_WAIT2), 1, E(APP_CLOSE), S(CLOSED), 'E' },            /* 4C */
	{ S(APP_CLOSE_WAIT2), -1, E(PEER_CLOSED), S(APP_CLOSE_WAIT2), 'R' },
	{ S(APP_CLOSE_WAIT2), -1, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT2), 0, E(LOCAL_ABORT), S(PEER_ABORT_WAIT), 'A' },
	{ S(APP_CLOSE_WAIT2), 1, E(LOCAL_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(APP_CLOSE_WAIT2), 0, E(TIMEOUT), S(PEER_ABORT_WAIT), 'A' },
	{ S(APP_CLOSE_WAIT2), 1, E(TIMEOUT), S(PROCESS_ABORT), 'A' },
	{ S(PEER_FIN_CLOSE_WAIT), 1, E(PEER_CLOSED), S(CLOSED), 'E' }, /* 4D */
	{ S(PEER_FIN_CLOSE_WAIT), 1, E(PEER_ABORT), S(CLOSED), 'E' },
	{ S(PEER_FIN_CLOSE_WAIT), 0, E(PEER_CLOSED), S(APP_FIN_CLOSE_WAIT), 0 }, /* 4.6: ours may not have arrived */
	{ S(PEER_FIN_CLOSE_WAIT), 0, E(PEER_ABORT), S(PROCESS_ABORT), 'A' },
	{ S(PEER_FIN_CLOSE_WAIT), -1, E(TIMEOUT), S(CLOSED), 'E' },
	{ S(PEER_ABORT_WAIT), 0, E(PEER_ABORT), S(PROCESS_ABORT), 0 },
	{ S(PEER_ABORT_WAIT), 1, E(PEER_ABORT), S(CLOSED), 'E' }, /* 23: 1B */
	{ S(PEER_ABORT_WAIT), -1, E(TIMEOUT), S(CLOSED), 'E' },   /* 23: 1B */
	{ S(PROCESS_ABORT), -1, E(LAST_SENT), S(CLOSED), 'E' },   /* 23: 2B */
	{ S(LAST_WAIT), -1, E(LAST_SENT), S(CLOSED), 'E' },
	{ S(LAST_WAIT), -1, E(TIMEOUT), S(CLOSED), 'E' },
	{ S(PROCESS_ABORT), -1, E(TIMEOUT), S(CLOSED), 'E' },
};

static const struct expect *
expect_find(enum conn_state state, int second, enum close_event ev)
{
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct expect *x = &expected[i];

		if (x->state == state && x->ev == ev && (x->second == -1 || x->second == second))
			return x;
	}
	return NULL;
}

/* Puts the connection into the state, as far as the machine looks at it. */
static void
put_into(struct smcr_conn *conn, enum conn_state state, int second)
{
	conn->state = state;
	conn->close.tx_flags = conn->close.rx_flags = 0;
	if (state == CONN_PEER_CLOSE_WAIT1 || state == CONN_PEER_CLOSE_WAIT2)
		conn->close.tx_flags = second ? CDC_CLOSED : CDC_SENDING_DONE;
	if (state == CONN_APP_CLOSE_WAIT1 || state == CONN_APP_CLOSE_WAIT2)
		conn->close.rx_flags = second ? CDC_CLOSED : CDC_SENDING_DONE;
	if (state == CONN_PEER_FIN_CLOSE_WAIT)
		conn->close.tx_flags = second ? CDC_CLOSED : CDC_SENDING_DONE;
	if (state == CONN_PEER_ABORT_WAIT) {
		conn->close.want_abort = true;
		conn->close.tx_flags = second ? CDC_ABORT : 0;
	}
}

static void
try_cell(enum conn_state state, int second, enum close_event ev)
{
	const struct expect *x = expect_find(state, second, ev);
	enum conn_state next = x != NULL ? x->next : state;
	char does = x != NULL ? x->does : 0;
	char what[100];

	hosts_pair(&a, &b, ELEM, &ca, &cb);
	put_into(ca, state, second);
	ca->close.want_abort = false;
	close_event(ca, ev);
	unsigned events = host_events(ca);
	snprintf(what, sizeof(what), "state %s/%d event %d", conn_states[ca->state].name, second, ev);
	ck_assert_msg(ca->state == next, "%s: wrong state", what);
	ck_assert_msg(ca->close.want_abort == (does == 'A'), "%s: abort", what);
	ck_assert_msg((events & SMCR_EV_READABLE) == (does == 'R' ? SMCR_EV_READABLE : 0u), "%s: readable", what);
	ck_assert_msg((events & SMCR_EV_CLOSED) == (does == 'E' ? SMCR_EV_CLOSED : 0u), "%s: closed", what);
	ck_assert_msg((ca->lgr == NULL) == (does == 'E'), "%s: elements", what);
}

UNIT_CASE(hosts_case(tc, ELEM, false));

START_TEST(every_cell)
{
	for (int s = CONN_RENDEZVOUS; s < CONN_CLOSED; s++)
		for (int ev = 0; ev < CLOSE_EVENT_CNT; ev++)
			for (int second = 0; second < 2; second++) {
				try_cell((enum conn_state)s, second, (enum close_event)ev);
				/* The next cell starts from fresh hosts. */
				ca->state = cb->state = ca->state == CONN_CLOSED ? CONN_CLOSED : CONN_ACTIVE;
				cb->state = CONN_ACTIVE;
				hosts_restart(false);
			}
	hosts_pair(&a, &b, ELEM, &ca, &cb);
}

/* -- flows -- */

static void
expect_closed(struct smcr_conn *conn, enum smcr_reason reason)
{
	ck_assert_uint_eq(host_events(conn) & SMCR_EV_CLOSED, SMCR_EV_CLOSED);
	ck_assert_int_eq(smcr_closed(conn, NULL), reason);
}

static void
expect_elems_free(struct host *h)
{
	const struct rmb *rmb = CONTAINER_OF(list_first(&h->lgr.rmbs), struct rmb, node);
	const struct remote_rmb *rr = CONTAINER_OF(list_first(&h->lgr.remote_rmbs), struct remote_rmb, node);

	ck_assert_uint_eq(rmb->used, 0);
	ck_assert_uint_eq(rr->used, 0);
	ck_assert_uint_eq(h->lgr.conn_cnt, 0);
}

START_TEST(half_close_then_close)
{
	host_write(ca, 50, false);
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:49", "C prod=0/50 cons=0/0 D");
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	ck_assert_int_eq(cb->state, CONN_APP_CLOSE_WAIT1);
	ck_assert(!smcr_rx_eof(cb));
	ck_assert_uint_eq(host_read(cb, 100, NULL), 50);
	ck_assert(smcr_rx_eof(cb));
	/* The other direction goes on. */
	host_write(cb, 200, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, 1000, NULL), 200);
	smcr_shutdown_wr(cb);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT2);
	ck_assert_int_eq(cb->state, CONN_APP_CLOSE_WAIT2);
	ck_assert(smcr_rx_eof(ca));
	host_complete(&a);
	host_complete(&b);
	smcr_close(cb);
	hosts_carry(&a, &b);
	ck_assert_int_eq(cb->state, CONN_PEER_FIN_CLOSE_WAIT);
	ck_assert_int_eq(ca->state, CONN_APP_FIN_CLOSE_WAIT);
	host_events(ca);
	smcr_close(ca);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=0/50 cons=0/200 DC");
	expect_closed(ca, SMCR_OK);
	expect_closed(cb, SMCR_OK);
	expect_elems_free(&a);
	expect_elems_free(&b);
	ck_assert_uint_eq(a.eng.ctr.closed_ok, 1);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, 0);
}

START_TEST(both_close_at_once)
{
	smcr_close(ca);
	smcr_close(cb);
	host_flush(&a);
	host_flush(&b);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	ck_assert_int_eq(cb->state, CONN_PEER_CLOSE_WAIT1);
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_OK);
	expect_closed(cb, SMCR_OK);
	expect_elems_free(&a);
	expect_elems_free(&b);
	ck_assert_uint_eq(a.steps, 1);
	ck_assert_uint_eq(b.steps, 1);
}

START_TEST(close_waits_until_every_write_is_complete)
{
	host_write(ca, 1000, false);
	smcr_close(ca);
	hosts_carry(&a, &b);
	host_saw(&a, 1, "C prod=0/1000 cons=0/0");
	ck_assert_int_eq(ca->state, CONN_ACTIVE);
	ck_assert_uint_eq(a.dev.confirms, 1); /* it asked for the completion */
	host_complete(&a);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=0/1000 cons=0/0 C");
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	/* Closed by the peer, but its data are still to be had. */
	ck_assert(!smcr_rx_eof(cb));
	ck_assert_uint_eq(host_read(cb, 2000, NULL), 1000);
	ck_assert(smcr_rx_eof(cb));
	smcr_close(cb);
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_OK);
	expect_closed(cb, SMCR_OK);
}

START_TEST(close_goes_when_the_peer_has_consumed_all)
{
	host_write(ca, 40000, false);
	smcr_close(ca);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 40000);
	hosts_carry(&a, &b);
	host_saw(&b, 0, "C prod=0/0 cons=0/40000");
	host_saw(&a, 2, "C prod=0/40000 cons=0/0 C");
	ck_assert_uint_eq(a.completed, 0);
}

START_TEST(data_after_our_close_abort)
{
	host_write(ca, 1000, false);
	hosts_carry(&a, &b);
	smcr_close(ca);
	host_read(cb, 2000, NULL);
	host_write(cb, 1, false);
	/* B's data come after A's close: nobody can read them any more. */
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_R_APP_RESET);
	expect_closed(cb, SMCR_R_PEER_ABORT);
}

START_TEST(close_with_unread_data_aborts)
{
	const char *detail;

	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	smcr_close(ca);
	expect_closed(ca, SMCR_R_APP_RESET);
	smcr_closed(ca, &detail);
	ck_assert_str_eq(detail, "closed with unread data");
	hosts_carry(&a, &b);
	host_saw(&a, 0, "C prod=0/0 cons=0/0 A");
	expect_closed(cb, SMCR_R_PEER_ABORT);
}

START_TEST(peer_closes_before_it_took_all)
{
	host_write(ca, 1000, false);
	host_flush(&a);
	smcr_close(cb);
	host_flush(&b);
	/* B's C crosses A's data. */
	ck_assert(host_carry_one(&b, &a));
	expect_closed(ca, SMCR_R_PEER_CLOSED);
	ck_assert_int_eq(ca->state, CONN_PROCESS_ABORT);
	hosts_carry(&a, &b);
	/* B may not answer after its C. */
	ck_assert_uint_eq(b.steps, 1);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	host_complete(&a);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	expect_elems_free(&a);
	expect_elems_free(&b);
}

START_TEST(data_for_a_peer_that_has_closed)
{
	smcr_close(cb);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_APP_CLOSE_WAIT1);
	host_events(ca);
	ck_assert_uint_eq(host_write(ca, 1, false), 1);
	expect_closed(ca, SMCR_R_PEER_CLOSED);
	hosts_carry(&a, &b);
	host_complete(&a);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	expect_elems_free(&b);
}

START_TEST(abort_is_answered_once)
{
	host_write(ca, 100, false);
	host_write(cb, 100, false);
	smcr_abort(ca, SMCR_R_APP_RESET);
	expect_closed(ca, SMCR_R_APP_RESET);
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	ck_assert(host_carry_one(&a, &b));
	host_saw(&a, 0, "C prod=0/0 cons=0/0 A"); /* unsent data are dropped */
	expect_closed(cb, SMCR_R_PEER_ABORT);
	ck_assert_int_eq(cb->state, CONN_PROCESS_ABORT);
	hosts_carry(&a, &b);
	host_saw(&b, 0, "C prod=0/0 cons=0/0 A");
	ck_assert_uint_eq(b.steps, 1);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(host_events(ca), 0); /* CLOSED was raised once */
	/* B is through when its answer is complete; it asked for that. */
	ck_assert_int_eq(cb->state, CONN_PROCESS_ABORT);
	ck_assert_uint_ge(b.dev.confirms, 1);
	host_complete(&b);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	ck_assert_uint_eq(host_events(cb), 0);
	expect_elems_free(&a);
	expect_elems_free(&b);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined + b.eng.ctr.elems_quarantined, 0);
}

/* 4.8.2 has no reason; between two smcrd that know it, a reserved flag tells the one that is worth it. */
START_LOOP_TEST(an_operators_abort_is_marked_for_peers_that_know_the_flag, 0, 2)
{
	ca->lgr->dialect.says_operator = cb->lgr->dialect.says_operator = _i == 1;
	smcr_abort(ca, SMCR_R_OPERATOR);
	expect_closed(ca, SMCR_R_OPERATOR);
	ck_assert(host_carry_one(&a, &b));
	host_saw(&a, 0, _i == 1 ? "C prod=0/0 cons=0/0 AO" : "C prod=0/0 cons=0/0 A");
	const char *detail;
	ck_assert_int_eq(smcr_closed(cb, &detail), SMCR_R_PEER_ABORT);
	ck_assert_str_eq(detail, _i == 1 ? "closed by the operator there" : "");
	ck_assert_uint_eq(b.eng.ctr.closed_peer_operator, _i);
	hosts_carry(&a, &b);
	host_saw(&b, 0, "C prod=0/0 cons=0/0 A"); /* the answer is no operator's */
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.eng.ctr.closed_peer_operator, 0);
}

/* From a peer that never said that it knows the flag, or without A, it is a reserved bit. */
START_LOOP_TEST(the_operators_flag_alone_is_nothing, 0, 2)
{
	cb->lgr->dialect.says_operator = _i == 1;
	conn_peer_flags(cb, CDC_OPERATOR);
	ck_assert_int_eq(cb->state, CONN_ACTIVE);
	ck_assert_uint_eq(cb->close.rx_flags, 0);
	conn_peer_flags(cb, CDC_OPERATOR | CDC_SENDING_DONE);
	ck_assert_uint_eq(cb->close.rx_flags, CDC_SENDING_DONE);
	smcr_abort(ca, SMCR_R_APP_RESET);
	hosts_carry(&a, &b);
}

START_TEST(both_abort_at_once)
{
	smcr_abort(ca, SMCR_R_APP_RESET);
	smcr_abort(cb, SMCR_R_TIMEOUT);
	host_flush(&a);
	host_flush(&b);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	ck_assert_uint_eq(a.steps + b.steps, 2);
	expect_closed(ca, SMCR_R_APP_RESET);
	expect_closed(cb, SMCR_R_TIMEOUT);
	expect_elems_free(&a);
	expect_elems_free(&b);
}

START_TEST(abort_of_the_peer_before_ours_is_posted)
{
	smcr_abort(cb, SMCR_R_APP_RESET);
	host_flush(&b);
	smcr_abort(ca, SMCR_R_APP_RESET);
	ck_assert(host_carry_one(&b, &a));
	/* The peer waits for our A: it still goes. */
	ck_assert_int_eq(ca->state, CONN_PROCESS_ABORT);
	hosts_carry(&a, &b);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	host_complete(&a);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
}

START_TEST(nothing_is_written_after_an_abort)
{
	struct iovec iov[2];
	bool urgent;

	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	smcr_abort(ca, SMCR_R_APP_RESET);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 0);
	hosts_carry(&a, &b);
	host_forget(&a);
	smcr_abort(ca, SMCR_R_APP_RESET);
	smcr_close(ca);
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 0);
	ck_assert_uint_eq(a.eng.ctr.closed_reset, 1);
}

START_TEST(a_peer_that_never_answers_costs_an_element)
{
	smcr_abort(ca, SMCR_R_APP_RESET);
	host_flush(&a);
	host_advance(&a, 9999);
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	host_advance(&a, 1);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, 1);
	/* Until it does. */
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.eng.ctr.elems_let_go, 1);
	ck_assert_uint_eq(a.lgr.quarantined, 0);
	ck_assert_uint_eq(a.eng.ctr.cdc_unknown, 0);
}

START_TEST(an_answer_that_cannot_be_sent_does_not_wait_for_ever)
{
	smcr_abort(ca, SMCR_R_APP_RESET);
	host_carry_one(&a, &b);
	b.dev.room = (struct rnic_credits){ 0 };
	host_flush(&b);
	ck_assert_int_eq(cb->state, CONN_PROCESS_ABORT);
	host_advance(&b, 10000);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	/* A is through with our element all the same. */
	ck_assert_uint_eq(b.eng.ctr.elems_quarantined, 0);
}

START_TEST(closing_that_stalls_ends_by_timer)
{
	smcr_close(ca);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	host_advance(&a, 59999);
	ck_assert_uint_eq(host_events(ca), 0);
	host_advance(&a, 1);
	expect_closed(ca, SMCR_R_CLOSE_TIMEOUT);
	/* After C no A may follow (Figure 23). */
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, 1);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 1);
}

START_TEST(closing_that_cannot_send_ends_by_timer)
{
	host_write(ca, 1000, false);
	smcr_close(ca);
	hosts_carry(&a, &b);
	host_advance(&a, 60000);
	expect_closed(ca, SMCR_R_CLOSE_TIMEOUT);
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	hosts_carry(&a, &b);
	expect_closed(cb, SMCR_R_PEER_ABORT);
}

START_TEST(progress_prolongs_a_pending_close)
{
	host_write(ca, 60000, false);
	smcr_close(ca);
	hosts_carry(&a, &b);
	for (int i = 0; i < 5; i++) {
		host_advance(&a, 50000);
		ck_assert_uint_eq(host_events(ca), 0);
		host_read(cb, 10000, NULL);
		cb->tx.pending = true;
		conn_tx_schedule(cb);
		hosts_carry(&a, &b);
	}
	host_advance(&a, 60000);
	expect_closed(ca, SMCR_R_CLOSE_TIMEOUT);
}

START_TEST(half_closed_connections_have_no_timer)
{
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	host_events(cb);
	host_advance(&a, 1000000);
	host_advance(&b, 1000000);
	ck_assert_uint_eq(host_events(ca), 0);
	ck_assert_uint_eq(host_events(cb), 0);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
}

/* -- the middle -- */

START_TEST(fin_may_overtake_the_close)
{
	host_write(ca, 1000, false);
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	host_advance(&b, 1999);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, 2000, NULL), 1000); /* the link is still served */
	host_complete(&a);
	smcr_close(ca);
	hosts_carry(&a, &b);
	host_events(cb);
	host_advance(&b, 100000);
	ck_assert_uint_eq(host_events(cb), 0);
	ck_assert_int_eq(cb->state, CONN_APP_CLOSE_WAIT1);
}

START_TEST(fin_alone_is_a_dead_peer)
{
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	host_advance(&b, 1500);
	/* Data do not prolong the grace. */
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	host_advance(&b, 500);
	expect_closed(cb, SMCR_R_TCP_FIN);
	ck_assert_int_eq(cb->state, CONN_PEER_ABORT_WAIT);
}

START_TEST(fin_behind_d_is_a_half_close)
{
	/* Linux ends its half of the middle with its D (capture d2), and reads on. */
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	host_events(cb);
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	host_advance(&b, 1000000);
	ck_assert_uint_eq(host_events(cb), 0);
	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, 100, NULL), 10);
}

START_TEST(fin_then_d_in_time)
{
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	host_events(cb);
	host_advance(&b, 1000000);
	ck_assert_uint_eq(host_events(cb), 0);
}

START_TEST(fin_shortens_a_pending_close)
{
	smcr_close(ca);
	hosts_carry(&a, &b);
	smcr_tcp_event(ca, SMCR_TCP_FIN);
	host_advance(&a, 2000);
	expect_closed(ca, SMCR_R_TCP_FIN);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
}

/* A peer that is gone resets the middle, and does not answer over any link. */
START_TEST(rst_is_an_abort_when_no_link_answers)
{
	smcr_tcp_event(ca, SMCR_TCP_RST);
	ck_assert(ca->link->ack_wanted);
	host_advance(&a, 1500);
	/* Neither our own data nor a second RST prolong the grace. */
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	smcr_tcp_event(ca, SMCR_TCP_RST);
	ck_assert_uint_eq(host_events(ca), 0);
	host_advance(&a, 500);
	expect_closed(ca, SMCR_R_TCP_RESET);
	hosts_carry(&a, &b);
	expect_closed(cb, SMCR_R_PEER_ABORT);
	smcr_tcp_event(cb, SMCR_TCP_RST);
	smcr_tcp_event(cb, SMCR_TCP_FIN);
	ck_assert_uint_eq(host_events(cb), 0);
}

/* ca knows then that its peer is there. */
static void
server_speaks(void)
{
	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, 100, NULL), 10);
	hosts_carry(&a, &b);
	(void)host_events(ca);
	(void)host_events(cb);
}

/* A firewall that has forgotten the connection resets it while the peer works. _i: has the peer's FIN come as well? That is its own. */
START_LOOP_TEST(rst_means_nothing_when_a_link_answers, 0, 2)
{
	server_speaks();
	smcr_tcp_event(ca, SMCR_TCP_RST);
	if (_i == 1)
		smcr_tcp_event(ca, SMCR_TCP_FIN);
	host_advance(&a, 1);
	ca->link->last_rx_ns = a.eng.now_ns; /* the answer to TEST LINK */
	host_advance(&a, 1999);
	if (_i == 1) {
		expect_closed(ca, SMCR_R_TCP_FIN);
		return;
	}
	host_advance(&a, 1000000);
	ck_assert_uint_eq(host_events(ca), 0);
	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, 100, NULL), 10);
}

/* A server that gave up before our Confirm came answers TEST LINK, and has no such connection. _i: it has spoken, so it has */
START_LOOP_TEST(rst_of_a_server_that_never_spoke_is_an_abort, 0, 2)
{
	if (_i == 1)
		server_speaks();
	ck_assert_int_eq(smcr_peer_is_there(ca), _i == 1);
	ck_assert(smcr_peer_is_there(cb));
	smcr_tcp_event(ca, SMCR_TCP_RST);
	host_advance(&a, 1);
	ca->link->last_rx_ns = a.eng.now_ns; /* the answer to TEST LINK */
	host_advance(&a, 1999);
	if (_i == 0)
		expect_closed(ca, SMCR_R_TCP_RESET);
	else
		ck_assert_uint_eq(host_events(ca), 0);
}

/* It was there before, and says nothing of the peer now. */
START_TEST(what_came_with_the_rst_is_no_answer)
{
	host_advance(&a, 5);
	ca->link->last_rx_ns = a.eng.now_ns;
	smcr_tcp_event(ca, SMCR_TCP_RST);
	host_advance(&a, 2000);
	expect_closed(ca, SMCR_R_TCP_RESET);
}

/* The peer's link was lost, and it has not moved: what it said last went with the link. _i: before the RST, or behind it. */
START_LOOP_TEST(rst_of_a_peer_that_has_not_moved_is_an_abort, 0, 2)
{
	server_speaks();
	if (_i == 0)
		conn_peer_moves(ca);
	smcr_tcp_event(ca, SMCR_TCP_RST);
	for (int i = 0; i < 1 + _i; i++) {
		ck_assert_uint_eq(host_events(ca), 0);
		host_advance(&a, 1);
		ca->link->last_rx_ns = a.eng.now_ns;
		host_advance(&a, 1999);
		if (_i == 1 && i == 0)
			conn_peer_moves(ca);
	}
	expect_closed(ca, SMCR_R_TCP_RESET);
}

START_TEST(rst_behind_the_peers_close_means_nothing)
{
	host_write(cb, 10, false);
	smcr_close(cb);
	hosts_carry(&a, &b);
	host_complete(&b);
	hosts_carry(&a, &b);
	smcr_tcp_event(ca, SMCR_TCP_RST);
	host_advance(&a, 1000000);
	ck_assert_uint_eq(host_events(ca) & SMCR_EV_CLOSED, 0);
	ck_assert_uint_eq(host_read(ca, 100, NULL), 10);
}

/* A peer that has both Cs resets the middle, and that may be here before its C. _i: the RST comes before our C goes */
START_LOOP_TEST(rst_in_front_of_the_peers_close_is_none, 0, 2)
{
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
	hosts_carry(&a, &b);
	if (_i == 1)
		smcr_tcp_event(ca, SMCR_TCP_RST);
	smcr_close(ca);
	host_flush(&a);
	if (_i == 0)
		smcr_tcp_event(ca, SMCR_TCP_RST);
	host_advance(&a, 5000);
	ck_assert_uint_eq(host_events(ca), 0);
	smcr_close(cb);
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_OK);
	expect_closed(cb, SMCR_OK);
}

START_TEST(rst_after_our_close_waits_for_the_peers_last_word)
{
	smcr_close(ca);
	host_flush(&a);
	smcr_tcp_event(ca, SMCR_TCP_RST);
	ck_assert(!ca->link->ack_wanted);
	host_advance(&a, 59999);
	ck_assert_uint_eq(host_events(ca), 0);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	smcr_abort(cb, SMCR_R_TCP_RESET);
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_R_PEER_ABORT);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, 0);
	/* Only our C was sent. */
	ck_assert_uint_eq(a.steps, 1);
}

/* -- data before a reset -- */

static const struct rmb *
first_rmb(const struct host *h)
{
	return CONTAINER_OF(list_first(&h->lgr.rmbs), struct rmb, node);
}

static void
by_abort(void)
{
	smcr_abort(cb, SMCR_R_TIMEOUT);
	hosts_carry(&a, &b);
}

static void
by_tcp_rst(void)
{
	smcr_tcp_event(ca, SMCR_TCP_RST);
	host_advance(&a, 2000);
}

static void
by_tcp_fin(void)
{
	smcr_tcp_event(ca, SMCR_TCP_FIN);
	host_advance(&a, 2000);
}

static void
by_c_too_early(void)
{
	host_write(ca, 10, false);
	host_flush(&a);
	smcr_close(cb);
	host_complete(&b);
	host_flush(&b);
	while (host_carry_one(&b, &a))
		continue;
}

static void
by_lost_link(void)
{
	host_link_lost(ca);
}

static const struct {
	void (*end)(void);
	enum smcr_reason reason;
} ends[] = {
	{ by_abort, SMCR_R_PEER_ABORT },
	{ by_tcp_rst, SMCR_R_TCP_RESET },
	{ by_tcp_fin, SMCR_R_TCP_FIN },
	{ by_c_too_early, SMCR_R_PEER_CLOSED },
	{ by_lost_link, SMCR_R_LINK_LOST },
};

START_LOOP_TEST(what_has_arrived_is_read_behind_the_end, 0, (int)(sizeof(ends) / sizeof(ends[0])))
{
	struct iovec iov[2];

	host_write(cb, 3000, false);
	host_write(cb, 1, true);
	hosts_carry(&a, &b);
	unsigned urgent = 0;
	size_t len = host_read(ca, 1000, &urgent);
	ends[_i].end();
	expect_closed(ca, ends[_i].reason);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	/* The protocol may come to its end before the user does. */
	hosts_carry(&a, &b);
	host_complete(&a);
	ck_assert(_i == 1 || _i == 2 || ca->state == CONN_CLOSED);
	ck_assert_uint_eq(first_rmb(&a)->used, 1);
	len += host_read(ca, ELEM, &urgent);
	ck_assert_uint_eq(len, cb->tx.high);
	ck_assert_uint_eq(urgent, 1);
	host_forget(&a);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 0); /* nobody waits for the cursor */
	smcr_release(ca);
	hosts_carry(&a, &b);
	host_complete(&a);
	host_advance(&a, 10000);
	ck_assert_uint_eq(first_rmb(&a)->used, first_rmb(&a)->quarantined);
	ck_assert_uint_eq(a.lgr.reader_cnt, 0);
}

/* Its element goes to quarantine with the release, unless the peer's word has come meanwhile. */
START_LOOP_TEST(a_reader_hears_that_the_peer_is_through, 0, 2)
{
	host_write(cb, 3000, false);
	hosts_carry(&a, &b);
	by_tcp_rst();
	host_flush(&a);
	host_advance(&a, 10000);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(host_read(ca, 1000, NULL), 1000);
	if (_i == 1)
		hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, ELEM, NULL), 2000);
	smcr_release(ca);
	host_flush(&a);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, _i == 0);
	ck_assert_uint_eq(first_rmb(&a)->used, _i == 0);
	hosts_carry(&a, &b);
}

/* The user's own abort, and a peer that breaks the protocol. */
START_LOOP_TEST(unread_data_is_not_kept_after_an_abort, 0, 2)
{
	struct iovec iov[2];
	bool urgent;

	host_write(cb, 10, false);
	hosts_carry(&a, &b);
	if (_i == 0)
		smcr_abort(ca, SMCR_R_OPERATOR);
	else
		host_rx(&a, ca, &(struct cdc_msg){ .seq = 2, .prod = { .count = ELEM + 1 } });
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 0);
	hosts_carry(&a, &b);
	host_complete(&a);
	host_advance(&a, 10000);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_ptr_null(ca->lgr);
}

static void
by_lost_data(void)
{
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 2, .prod_flags = CDC_FAILOVER });
}

static void (*const aborts[])(void) = { by_tcp_rst, by_lost_data, by_abort };

/* Data that came with a C does not count behind an abort: the user must not take its place for the end. */
START_LOOP_TEST(a_close_behind_an_abort_is_no_end_of_data, 0, (int)(sizeof(aborts) / sizeof(aborts[0])))
{
	const struct rnic_unit *elem = &ca->rmb->units[ca->elem_idx - 1];

	host_write(cb, 100, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, ELEM, NULL), 100);
	aborts[_i]();
	host_rx(&a, ca,
	    &(struct cdc_msg){ .seq = 3, .prod = { .count = 150 }, .conn_flags = CDC_SENDING_DONE | CDC_CLOSED });
	ck_assert_uint_eq(host_events(ca) & SMCR_EV_CLOSED, SMCR_EV_CLOSED);
	ck_assert_int_ne(ca->reason, SMCR_OK);
	ck_assert(!smcr_rx_eof(ca));
	host_flush(&a);
	host_complete(&a);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert(!smcr_rx_eof(ca));
	/* How much the peer wrote is unknown, but it writes no more. */
	ck_assert_uint_eq(elem->dirty, ELEM);
	ck_assert_uint_eq(first_rmb(&a)->used, 0);
	hosts_carry(&a, &b);
}

START_TEST(a_reset_waits_for_all_that_was_committed)
{
	struct iovec iov[2];

	ck_assert_uint_eq(host_write(ca, ELEM, false), ELEM);
	hosts_carry(&a, &b);
	host_complete(&a);
	ck_assert_uint_eq(host_write(ca, 5000, false), 5000);
	host_write(cb, 100, false);
	smcr_reset(ca);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	hosts_carry(&a, &b);
	host_complete(&a);
	hosts_carry(&a, &b);
	/* The peer's element is full. */
	ck_assert_int_eq(ca->state, CONN_ACTIVE);
	ck_assert_uint_eq(host_events(ca) & SMCR_EV_CLOSED, 0);
	ck_assert_uint_eq(host_read(ca, 1000, NULL), 100);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), ELEM);
	hosts_carry(&a, &b);
	smcr_reset(ca);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_ACTIVE); /* sent, and no completion yet */
	host_forget(&a);
	host_complete(&a);
	ck_assert(host_carry_one(&a, &b));
	host_saw(&a, 0, "C prod=1/5000 cons=0/100 A");
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	ck_assert_uint_eq(host_events(ca) & SMCR_EV_CLOSED, 0);
	ck_assert_uint_ge(a.dev.confirms, 1);
	host_complete(&a);
	expect_closed(ca, SMCR_R_APP_RESET);
	expect_closed(cb, SMCR_R_PEER_ABORT);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 5000);
	hosts_carry(&a, &b);
	host_complete(&b);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.steps, 1);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined + b.eng.ctr.elems_quarantined, 0);
}

/* The answer may be faster than the completion; the peer may go first. */
START_LOOP_TEST(a_reset_is_over_with_the_peers_word, 0, 2)
{
	smcr_reset(ca);
	smcr_reset(ca);
	if (_i == 0)
		host_flush(&a);
	else
		smcr_abort(cb, SMCR_R_TIMEOUT);
	hosts_carry(&a, &b);
	host_complete(&a);
	expect_closed(ca, SMCR_R_APP_RESET);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_uint_eq(a.steps, 1);
	ck_assert_uint_eq(a.eng.ctr.closed_reset, 1);
}

START_TEST(a_reset_that_takes_too_long_is_cut)
{
	host_write(ca, 100, false);
	smcr_reset(ca);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_ACTIVE);
	smcr_abort(ca, SMCR_R_TIMEOUT);
	expect_closed(ca, SMCR_R_APP_RESET);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=0/100 cons=0/0 A");
	expect_closed(cb, SMCR_R_PEER_ABORT);
	ck_assert_uint_eq(host_read(cb, 1000, NULL), 100);
}

/* _i: both come in one turn. */
START_LOOP_TEST(a_reset_behind_d, 0, 2)
{
	host_write(ca, 100, false);
	if (_i == 1) {
		hosts_carry(&a, &b);
		host_complete(&a);
		host_forget(&a);
	}
	smcr_shutdown_wr(ca);
	if (_i == 0)
		hosts_carry(&a, &b);
	smcr_reset(ca);
	hosts_carry(&a, &b);
	host_complete(&a);
	hosts_carry(&a, &b);
	host_saw(&a, _i == 0, "C prod=0/100 cons=0/0 D", "C prod=0/100 cons=0/0 DA");
	ck_assert_uint_eq(host_read(cb, 1000, NULL), 100);
	ck_assert(smcr_rx_eof(cb));
}

START_TEST(a_reset_that_is_released_is_an_abort)
{
	host_write(ca, 100, false);
	smcr_reset(ca);
	host_flush(&a);
	smcr_release(ca);
	hosts_carry(&a, &b);
	expect_closed(cb, SMCR_R_PEER_ABORT);
}

/* -- release -- */

START_TEST(release_aborts_and_the_rest_goes_on_inside)
{
	uint32_t id = ca->id;

	smcr_release(ca);
	ck_assert(list_empty(&a.eng.events));
	ck_assert_ptr_eq(idtable_get(&a.eng.conns, id), ca);
	hosts_carry(&a, &b);
	expect_closed(cb, SMCR_R_PEER_ABORT);
	host_flush(&a);
	ck_assert_ptr_null(idtable_get(&a.eng.conns, id));
	expect_elems_free(&a);
}

START_TEST(release_after_the_end_frees_at_the_end_of_the_turn)
{
	uint32_t id = ca->id;

	smcr_close(ca);
	smcr_close(cb);
	hosts_carry(&a, &b);
	expect_closed(ca, SMCR_OK);
	ck_assert_ptr_nonnull(idtable_get(&a.eng.conns, id));
	smcr_release(ca);
	smcr_release(ca);
	ck_assert_ptr_nonnull(idtable_get(&a.eng.conns, id));
	host_flush(&a);
	ck_assert_ptr_null(idtable_get(&a.eng.conns, id));
}

START_TEST(a_lost_link_ends_it_at_once)
{
	host_write(ca, 100, false);
	host_link_lost(ca);
	expect_closed(ca, SMCR_R_LINK_LOST);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_ptr_null(ca->lgr);
	host_link_lost(ca);
	ck_assert_uint_eq(host_events(ca), 0);
}
