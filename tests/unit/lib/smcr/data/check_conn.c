/* Connections: birth, limits, establishing, elements that the peer gives away, release; and send rings of a group. */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "unit.h"

#define ELEM 65536u

UNIT_CASE(hosts_case(tc, ELEM, false));

START_TEST(an_idle_connection_is_small)
{
	ck_assert_uint_le(sizeof(struct smcr_conn), 600);
	ck_assert_ptr_null(ca->tx.sndbuf);
}

START_TEST(no_more_than_conns_max)
{
	struct smcr_open open = { .role = SMCR_SERVER, .app = &open };
	int err = 0;

	a.eng.conns.max = 2;
	struct smcr_conn *c = conn_new(&a.eng, &open, &err);
	ck_assert_ptr_nonnull(c);
	host_begin_rdv(&a, c);
	ck_assert_ptr_eq(smcr_app(c), &open);
	ck_assert_uint_ne(c->id, ca->id);
	ck_assert_str_eq(conn_states[c->state].name, "Rendezvous");
	ck_assert_ptr_null(conn_new(&a.eng, &open, &err));
	ck_assert_int_eq(err, -EMFILE);
	ck_assert_uint_eq(a.eng.ctr.refused_conns_max, 1);
}

START_TEST(states_steps_and_reasons_have_names)
{
	for (int s = 0; s < CONN_STATE_CNT; s++)
		ck_assert_ptr_nonnull(conn_states[s].name);
	for (int s = RDV_NONE; s <= RDV_WAIT_LINK; s++)
		ck_assert_ptr_nonnull(rdv_steps[s].name);
	for (int r = SMCR_OK; r <= SMCR_R_SHUTDOWN; r++)
		ck_assert_ptr_nonnull(smcr_reason_str((enum smcr_reason)r));
}

START_TEST(what_the_user_did_before_it_was_established)
{
	struct smcr_conn *c = host_conn(&a, ELEM, 4), *d = host_conn(&b, ELEM, 4);

	hosts_join(&a, c, &b, d);
	smcr_shutdown_wr(c);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 0);
	host_establish(c);
	host_establish(d);
	smcr_tcp_event(c, SMCR_TCP_FIN);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "C prod=0/0 cons=0/0 D");
	host_events(c);
	host_advance(&a, 2000);
	ck_assert_int_eq(smcr_closed(c, NULL), SMCR_R_TCP_FIN);
}

START_TEST(ends_before_establishment_are_the_rendezvous_business)
{
	struct smcr_conn *c[4];

	for (int i = 0; i < 4; i++)
		c[i] = host_conn(&a, ELEM, 8);
	smcr_abort(c[0], SMCR_R_REFUSED);
	ck_assert_int_eq(c[0]->reason, SMCR_R_REFUSED);
	smcr_close(c[1]);
	ck_assert_int_eq(c[1]->reason, SMCR_R_APP_RESET);
	smcr_tcp_event(c[2], SMCR_TCP_RST);
	ck_assert_int_eq(c[2]->reason, SMCR_R_TCP_RESET);
	host_link_lost(c[3]);
	ck_assert_int_eq(c[3]->reason, SMCR_R_LINK_LOST);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(c[i]->state, CONN_CLOSED);
}

START_TEST(a_fallen_back_connection_is_left_alone)
{
	struct smcr_open open = { .role = SMCR_CLIENT };
	struct iovec iov[2];
	int err = 0;
	struct smcr_conn *c = conn_new(&a.eng, &open, &err);

	conn_set_state(c, CONN_FALLBACK);
	smcr_abort(c, SMCR_R_APP_RESET);
	smcr_close(c);
	smcr_tcp_event(c, SMCR_TCP_RST);
	ck_assert_uint_eq(smcr_tx_space(c, iov), 0);
	ck_assert_uint_eq(host_events(c), 0);
	smcr_release(c);
	host_flush(&a);
	ck_assert_uint_eq(a.eng.conns.used, 1);
}

/* -- the peer gives its element to another connection (4.4.2) -- */

START_TEST(an_element_given_away_ends_the_connection_without_a_word)
{
	struct rmb *rmb = ca->rmb;

	host_write(ca, 100, false);
	conn_elem_taken(ca);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_R_ELEM_CONFLICT);
	ck_assert_uint_eq(a.eng.ctr.elem_conflicts, 1);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 0);
	ck_assert_uint_eq(rmb->used, 0);
}

START_TEST(after_our_c_it_stands_for_the_peers)
{
	smcr_close(ca);
	host_flush(&a);
	conn_elem_taken(ca);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_OK);
	ck_assert_uint_eq(a.eng.ctr.elem_conflicts, 0);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
}

/* A failover has taken it back, though it was there. */
START_TEST(a_c_that_is_to_be_said_again_was_said)
{
	smcr_close(ca);
	host_flush(&a);
	ca->close.tx_flags = 0;
	conn_elem_taken(ca);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_OK);
	ck_assert_uint_eq(a.eng.ctr.elem_conflicts, 0);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
}

START_TEST(after_our_a_it_ends_the_wait)
{
	smcr_abort(ca, SMCR_R_APP_RESET);
	host_flush(&a);
	conn_elem_taken(ca);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_R_APP_RESET);
	ck_assert_uint_eq(a.eng.ctr.elem_conflicts, 0);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined, 0);
}

/* The same when the user waits for it. */
START_TEST(after_our_a_it_ends_a_reset)
{
	smcr_reset(ca);
	host_flush(&a);
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	conn_elem_taken(ca);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_R_APP_RESET);
	ck_assert_uint_eq(a.eng.ctr.elem_conflicts, 0);
}

/* -- send rings of a group -- */

START_TEST(slabs_grow_and_are_lent_last_in_first_out)
{
	struct sndbuf *sb[60];

	for (int i = 0; i < 60; i++) {
		sb[i] = sndbuf_get(&a.lgr, 65536);
		ck_assert_ptr_nonnull(sb[i]);
		memset(sb[i]->buf, i, sb[i]->size);
	}
	/* 4 + 8 + 16 + 32 */
	ck_assert_uint_eq(a.lgr.sndbuf_bytes, 60u * 65536);
	ck_assert_uint_eq(a.lgr.sndbuf_lent, 60);
	for (int i = 0; i < 60; i++)
		ck_assert_uint_eq(sb[i]->buf[65535], i);
	for (int i = 0; i < 60; i++)
		sndbuf_put(&a.lgr, sb[i], NULL, 0);
	ck_assert_ptr_eq(sndbuf_get(&a.lgr, 65536), sb[59]);
	sndbuf_put(&a.lgr, sb[59], NULL, 0);
}

START_TEST(a_further_link_gets_all_rings_and_a_lost_one_frees_its_parked)
{
	struct link *second = &a.lgr.links[1];
	struct sndbuf *sb = sndbuf_get(&a.lgr, 65536);
	unsigned regions = a.dev.mr_cnt;

	*second = (struct link){ .lgr = &a.lgr, .slot = 1, .dev = a.link->dev, .pd = a.link->pd };
	second->state = LINK_CONNECTING;
	ck_assert_int_eq(sndbuf_register_all(&a.lgr, second), 0);
	ck_assert_int_eq(sndbuf_register_all(&a.lgr, second), 0);
	ck_assert_uint_eq(a.dev.mr_cnt, regions + 1);
	ck_assert_ptr_nonnull(sb->mr[second->slot]);
	ck_assert_ptr_ne(sb->mr[second->slot], sb->mr[a.link->slot]);
	second->wr_tail = 10;
	sndbuf_put(&a.lgr, sb, second, 10);
	ck_assert_ptr_ne(sndbuf_get(&a.lgr, 65536), sb);
	for (int i = 0; i < 2; i++)
		ck_assert_ptr_ne(sndbuf_get(&a.lgr, 65536), sb);
	sndbuf_deregister_all(&a.lgr, second);
	ck_assert_uint_eq(a.dev.mr_cnt, regions);
	ck_assert_ptr_eq(sndbuf_get(&a.lgr, 65536), sb);
	second->state = LINK_FREE;
	a.lgr.sndbuf_lent = 0;
}

START_TEST(a_waiter_for_a_ring_wakes_when_a_parked_one_is_free)
{
	struct iovec iov[2];

	/* One ring in all, and it is parked. */
	host_write(ca, 100, false);
	host_flush(&a);
	for (int i = 0; i < 3; i++)
		(void)sndbuf_get(&a.lgr, 65536);
	a.lgr.sndbuf_lent = 1;
	a.dev.reg_err = -ENOMEM;
	smcr_abort(ca, SMCR_R_APP_RESET);
	host_flush(&a);
	ca = host_conn(&a, ELEM, 4);
	cb = host_conn(&b, ELEM, 4);
	hosts_join(&a, ca, &b, cb);
	conn_establish(ca);
	host_events(ca);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(host_events(ca), 0);
	host_complete(&a);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 65536);
	a.dev.reg_err = 0;
	host_flush(&a);
}
