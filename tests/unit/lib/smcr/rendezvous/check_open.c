/* Connections that open over a link of their group (doc/open.md). */
#include "duo.h"
#include "unit.h"

#include "smcr/data/grant.h"
#include "smcr/group/llc.h"

UNIT_CASE(duo_case(tc, 1000));

#define TICKET 77

/* A service reached once by a rendezvous, with its elements granted. */
static void
begin(const struct smcr_config *change)
{
	struct smcr_config cfg = { 0 };

	if (change != NULL)
		cfg = *change;
	cfg.keepalive_ms = 30000;
	duo_init(true, true, &cfg);
	d.ticket = TICKET;
	duo_connect(0, 1, 100);
}

START_TEST(the_second_connection_opens_by_a_message)
{
	begin(NULL);
	ck_assert_uint_ge(duo_lgr(A)->grant_cnt, 4);
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, duo_lgr(B)->spare_cnt);
	ck_assert(duo_open_over_link(1));
	ck_assert_uint_eq(duo_write(&c[1], 3000), 3000); /* before any answer */
	ck_assert(!IS(c[1], ESTABLISHED));
	duo_run(20);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 1);
	ck_assert_uint_eq(duo_count(A, "PROPOSAL"), 1);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(smcr_opened_ticket(s[1].conn), TICKET);
	ck_assert_uint_eq(duo_read(&s[1]), 3000);
	ck_assert_uint_eq(duo_write(&s[1], 5000), 5000);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&c[1]), 5000);
	duo_close(1);
	duo_run(20);
	ck_assert(BOTH(1, CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_OK);
	ck_assert_int_eq(s[1].reason, SMCR_OK);
	ck_assert_uint_eq(d.eng[A]->ctr.opened_client, 1);
	ck_assert_uint_eq(d.eng[B]->ctr.opened_server, 1);
	duo_bystander_is_well();
}

START_TEST(many_open_one_after_the_other)
{
	begin(NULL);
	for (unsigned i = 1; i < 100; i++) {
		ck_assert_msg(duo_open_over_link(i), "connection %u", i);
		duo_write(&c[i], 10 * i);
		duo_run(5);
		ck_assert(BOTH(i, ESTABLISHED));
		ck_assert_uint_eq(duo_read(&s[i]), 10 * i);
		duo_close(i);
		duo_run(5);
		duo_release_pair(i);
	}
	ck_assert_uint_eq(duo_count(A, "PROPOSAL"), 1);
	duo_bystander_is_well();
}

/* A client that opens BURST at a time finds enough granted elements, once the server has learned that. */
START_TEST(bursts_find_granted_elements)
{
	enum { BURST = 90, ROUNDS = 8 };
	unsigned cnt = 0;

	begin(NULL);
	duo_connect(100, 150, 500); /* RMBs have room for all */
	duo_end_pairs(100, 150, 50);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (cnt = 0; cnt < BURST && duo_open_over_link(1 + cnt);)
			cnt++;
		d.next_opened = 1;
		duo_run(20);
		for (unsigned i = 1; i <= cnt; i++) {
			ck_assert(BOTH(i, ESTABLISHED));
			duo_close(i);
		}
		duo_run(20);
		for (unsigned i = 1; i <= cnt; i++)
			duo_release_pair(i);
	}
	ck_assert_uint_eq(cnt, BURST);
}

START_TEST(as_many_at_once_as_were_granted)
{
	begin(NULL);
	duo_connect(1, 40, 200); /* RMBs have room for more than are granted */
	duo_end_pairs(1, 40, 20);
	unsigned i = 1, cnt = duo_lgr(A)->grant_cnt;
	ck_assert_uint_ge(cnt, 4);
	for (; i <= cnt; i++)
		ck_assert(duo_open_over_link(i));
	ck_assert(!duo_open_over_link(i));
	d.next_opened = 1;
	duo_run(20);
	for (i = 1; i <= cnt; i++)
		ck_assert(BOTH(i, ESTABLISHED));
	ck_assert_uint_ge(duo_lgr(A)->grant_cnt, cnt);
	ck_assert(duo_open_over_link(i));
	duo_run(20);
	ck_assert(BOTH(i, ESTABLISHED));
}

START_TEST(no_service_without_a_rendezvous)
{
	begin(NULL);
	d.port = 2;
	ck_assert(!duo_open_over_link(1));
	d.port = 0;
	/* Nor minutes after the last one. */
	d.now_ns += 301 * 1000 * DUO_MS;
	duo_run(1);
	ck_assert(!duo_open_over_link(1));
	duo_connect(1, 1, 100);
	ck_assert(duo_open_over_link(2));
	duo_run(20);
	ck_assert(BOTH(2, ESTABLISHED));
}

/* A ticket serves the rules of its rendezvous alone, at both ends; those of two sets of rules do not touch each other. */
START_TEST(a_ticket_serves_its_scope_alone)
{
	begin(NULL);
	ck_assert_uint_eq(smcr_opened_scope(s[0].conn).b[0], 0);
	d.scope = 1;
	ck_assert(!duo_open_over_link(1));
	duo_connect(1, 1, 100);
	ck_assert(duo_open_over_link(2));
	duo_run(20);
	ck_assert(BOTH(2, ESTABLISHED));
	ck_assert_uint_eq(smcr_opened_scope(s[2].conn).b[0], 1);
	/* The rules of a service are those of its last rendezvous. */
	d.scope = 0;
	ck_assert(duo_open_over_link(3));
	duo_run(20);
	ck_assert_uint_eq(smcr_opened_scope(s[3].conn).b[0], 1);
	d.scope = 2;
	ck_assert(!duo_open_over_link(4));
}

/* Another level or name is another group, and a ticket counts in its own group alone. */
START_TEST(a_ticket_of_another_group_opens_nothing)
{
	begin(NULL);
	d.level = 2;
	d.ticket = TICKET + 1;
	d.scope = 1;
	d.port = 2;
	duo_connect(1, 1, 100);
	duo_expect_groups(2);
	LIST_EACH(struct lgr, lgr, &d.eng[A]->lgrs, node)
		for (unsigned i = 0; i < lgr->ticket_cnt; i++)
			lgr->tickets[i].nr ^= TICKET ^ (TICKET + 1); /* the client lies: that of the other group */
	for (unsigned i = 0; i < 2; i++) {
		d.port = 1 + i;
		d.scope = (uint8_t)i;
		ck_assert(duo_open_over_link(2 + i));
		duo_run(20);
		ck_assert(IS(c[2 + i], CLOSED));
		ck_assert_int_eq(c[2 + i].reason, SMCR_R_NOT_OPENED);
		ck_assert_ptr_null(s[2 + i].conn);
	}
	ck_assert_uint_eq(d.eng[B]->ctr.not_opened_server, 2);
	duo_bystander_is_well();
}

START_TEST(a_server_without_a_ticket_grants_nothing)
{
	duo_begin(NULL);
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, 0);
	ck_assert(!duo_open_over_link(1));
}

START_TEST(without_test_link_nothing_opens_over_a_link)
{
	duo_init(true, true, NULL);
	ck_assert_uint_eq(d.eng[A]->cfg.keepalive_ms, 0);
	d.ticket = TICKET;
	duo_connect(0, 1, 100);
	ck_assert_uint_eq(duo_count(B, "GRANT"), 0);
	ck_assert(!duo_open_over_link(1));
}

START_TEST(a_peer_without_the_feature_sees_neither_message)
{
	struct smcr_config cfg = { .features = CLC_FEATURES & ~CLC_FEATURE_OPEN, .keepalive_ms = 30000 };

	duo_init(true, true, &cfg);
	d.ticket = TICKET;
	duo_connect(0, 1, 100);
	ck_assert(!duo_open_over_link(1));
	ck_assert_uint_eq(duo_count(B, "GRANT"), 0);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_ignored, 0);
}

START_TEST(a_server_that_refuses_sends_the_client_to_a_rendezvous)
{
	begin(NULL);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 100);
	duo_run(20);
	ck_assert(IS(s[1], PROPOSAL) && !IS(c[1], CLOSED)); /* while the server decides */
	smcr_abort(s[1].conn, SMCR_R_NOT_OPENED);
	duo_release(&s[1]);
	duo_run(20);
	ck_assert(IS(c[1], CLOSED) && !IS(c[1], ESTABLISHED));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	duo_release(&c[1]);
	/* Others do not try for a while. */
	ck_assert(!duo_open_over_link(2));
	duo_connect(2, 1, 100);
	ck_assert(!duo_open_over_link(3));
	d.now_ns += 10001 * DUO_MS;
	duo_run(1);
	ck_assert(duo_open_over_link(3));
	duo_run(20);
	ck_assert(BOTH(3, ESTABLISHED));
	duo_bystander_is_well();
}

START_TEST(elements_that_became_small_are_replaced)
{
	struct smcr_open want = { 0 };

	begin(NULL);
	duo_connect(100, 40, 200); /* RMBs have room */
	duo_end_pairs(100, 40, 20);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	want.elem_size = s[1].conn->rmb->elem_size;
	ck_assert(!smcr_opened_is_small(s[1].conn, &want));
	ck_assert_uint_gt(duo_lgr(B)->spare_cnt, 0);
	want.elem_size *= 2;
	ck_assert(smcr_opened_is_small(s[1].conn, &want));
	ck_assert_uint_eq(duo_lgr(B)->spare_cnt, 0);
	smcr_abort(s[1].conn, SMCR_R_NOT_OPENED);
	duo_release(&s[1]);
	duo_run(20);
	duo_release(&c[1]);
	unsigned had = duo_lgr(A)->grant_cnt, granted = duo_count(B, "GRANT");
	duo_connect(2, 1, 100);
	ck_assert_uint_gt(duo_count(B, "GRANT"), granted);
	ck_assert_uint_gt(duo_lgr(A)->grant_cnt, had);
	duo_bystander_is_well();
}

START_TEST(a_server_program_that_refuses_has_no_byte)
{
	begin(NULL);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	smcr_abort(s[1].conn, SMCR_R_REFUSED);
	duo_release(&s[1]);
	duo_run(20);
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
}

START_TEST(a_draining_server_takes_none)
{
	begin(NULL);
	smcr_drain(d.eng[B], true);
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 100);
	duo_run(20);
	ck_assert(!IS(s[1], PROPOSAL));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	duo_bystander_is_well();
}

START_TEST(a_refused_ticket_is_void)
{
	begin(NULL);
	uint32_t was = d.ticket;
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	smcr_abort(s[1].conn, SMCR_R_NOT_OPENED);
	duo_run(20);
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	d.now_ns += 11 * 1000 * DUO_MS; /* the pause is over */
	duo_run(1);
	ck_assert(!duo_open_over_link(2));
	d.ticket = was;
	duo_connect(2, 1, 100);
	ck_assert(duo_open_over_link(3));
	duo_run(20);
	ck_assert(BOTH(3, ESTABLISHED));
}

START_TEST(a_full_engine_counts_no_refusal)
{
	begin(NULL);
	uint32_t max = d.eng[A]->conns.max;
	d.eng[A]->conns.max = d.eng[A]->conns.used;
	ck_assert(!duo_open_over_link(1));
	ck_assert_uint_eq(d.eng[A]->ctr.refused_conns_max, 0);
	d.eng[A]->conns.max = max;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	ck_assert(BOTH(1, ESTABLISHED));
}

START_TEST(a_ticket_that_the_server_did_not_give)
{
	begin(NULL);
	duo_lgr(A)->tickets[0].nr++;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	ck_assert(!IS(s[1], PROPOSAL));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
}

START_TEST(a_client_that_ends_before_the_answer)
{
	begin(NULL);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 100);
	smcr_reset(c[1].conn);
	duo_run(20);
	ck_assert(IS(s[1], PROPOSAL) && !IS(s[1], CLOSED));
	smcr_admit(s[1].conn); /* its program is connected now */
	duo_run(1);
	ck_assert(IS(s[1], ESTABLISHED) && IS(s[1], CLOSED));
	ck_assert_uint_eq(duo_read(&s[1]), 100); /* what came before the reset */
	duo_release(&s[1]);
	duo_run(20);
	ck_assert(IS(c[1], CLOSED));
	/* All its data, and its end. */
	ck_assert(duo_open_over_link(2));
	duo_write(&c[2], 50);
	smcr_shutdown_wr(c[2].conn);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&s[2]), 50);
	ck_assert(smcr_rx_eof(s[2].conn));
}

/* -- links -- */

static bool
hold_open(const struct sim_msg *m)
{
	return m->op == RNIC_WR_SEND && m->len == OPEN_LEN && m->data[0] == OPEN_CONN;
}

static void
begin_with_two_links(void)
{
	struct smcr_config cfg = { .keepalive_ms = 30000 };

	duo_init(true, true, &cfg);
	duo_add_devices();
	d.ticket = TICKET;
	duo_connect(0, 1, 1000);
	duo_expect_links(2);
}

START_TEST(an_open_lost_with_its_link_is_repeated_over_another)
{
	begin_with_two_links();
	d.holds = hold_open;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(5);
	ck_assert(!IS(s[1], PROPOSAL));
	struct link *lost = c[1].conn->link;
	d.holds = NULL;
	duo_lose(lost, "cut");
	duo_run(50);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 2);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	duo_bystander_is_well();
}

START_TEST(a_repeated_open_is_ignored)
{
	begin_with_two_links();
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(20);
	ck_assert(IS(s[1], PROPOSAL));
	duo_lose(c[1].conn->link, "cut");
	duo_run(50);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 2);
	ck_assert_uint_ge(d.eng[B]->ctr.llc_ignored, 1);
	smcr_admit(s[1].conn);
	duo_run(50);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	duo_write(&s[1], 10);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&c[1]), 10);
}

START_TEST(the_last_link_is_lost_before_the_answer)
{
	begin(NULL);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(20);
	duo_lose(duo_link(A), "cut");
	duo_run(50);
	/* Its bytes may have arrived: not another time. */
	ck_assert_int_eq(c[1].reason, SMCR_R_LINK_LOST);
	ck_assert_int_eq(s[1].reason, SMCR_R_LINK_LOST);
}

static bool
hold_delete(const struct sim_msg *m)
{
	return m->op == RNIC_WR_SEND && m->data[0] == LLC_DELETE_LINK;
}

START_TEST(the_last_link_is_lost_before_any_data)
{
	begin(NULL);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	duo_lose(duo_link(A), "cut");
	duo_run(50);
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	ck_assert_int_eq(s[1].reason, SMCR_R_LINK_LOST);
}

START_TEST(an_open_that_meets_the_end_of_the_group)
{
	struct smcr_config cfg = { .group_idle_ms = 500 };

	begin(&cfg);
	duo_close(0);
	duo_run(20);
	duo_release_pair(0);
	d.holds = hold_delete;
	duo_until(B, "DELETE LINK");
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 10);
	duo_run(50);
	ck_assert(!IS(c[1], CLOSED) && !IS(s[1], PROPOSAL));
	d.holds = NULL;
	duo_run(50);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
}

/* -- lies -- */

static void
inject(struct link *link, const struct open_msg *m)
{
	uint8_t buf[OPEN_LEN];

	ck_assert_int_eq(open_encode(m, buf, sizeof(buf)), OPEN_LEN);
	llc_recv(link, buf, sizeof(buf));
	engine_act_on_marks(link->lgr->eng);
}

START_TEST(messages_from_the_wrong_side_end_the_link)
{
	struct open_msg open = { .type = OPEN_CONN, .granted_token = 1, .own = { .token = 1, .idx = 1 } };

	begin(NULL);
	inject(duo_link(A), &open);
	duo_run(50);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 1);
	ck_assert(IS(c[0], CLOSED));
}

START_TEST(an_open_of_what_was_not_granted_has_no_effect)
{
	struct open_msg open = { .type = OPEN_CONN, .granted_token = 12345, .own = { .token = 1, .idx = 1 } };

	begin(NULL);
	inject(duo_link(B), &open);
	/* Nor for a connection that is open. */
	open.granted_token = s[0].conn->id;
	inject(duo_link(B), &open);
	duo_run(50);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 2);
	duo_bystander_is_well();
}

START_TEST(an_open_with_an_unknown_rmb_ends_the_link)
{
	begin(NULL);
	struct open_msg open = { .type = OPEN_CONN,
		.granted_token = duo_lgr(A)->grants[0].token,
		.ticket = TICKET,
		.own = { .token = 1, .rkey = 4711, .idx = 1 } };

	inject(duo_link(B), &open);
	duo_run(50);
	ck_assert_uint_eq(d.eng[B]->ctr.bad_llc, 1);
}

START_TEST(more_grants_than_room_are_dropped)
{
	begin(NULL);
	const struct rtoken *rt = &c[0].conn->peer_rmb->on[duo_link(A)->slot];
	struct open_msg grant = { .type = OPEN_GRANT,
		.cnt = 1,
		.granted = { { .token = 99, .rkey = rt->rkey, .vaddr = rt->addr, .idx = 200, .size_code = 0 } } };

	for (unsigned i = 0; i < 2 * GRANTS_MAX; i++)
		inject(duo_link(A), &grant);
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, GRANTS_MAX);
	grant.granted[0].rkey++;
	inject(duo_link(A), &grant);
	duo_run(50);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_ignored, 1);
	duo_bystander_is_well();
}

/* -- a balancer -- */

START_TEST(a_key_that_leads_to_two_hosts_opens_nothing_over_a_link)
{
	begin(NULL);
	struct lgr other = { .eng = d.eng[A], .role = SMCR_CLIENT, .peer_id = { 1 } };
	const struct smcr_open open = { .peer_key = "server:1" };

	list_push(&d.eng[A]->lgrs, &other.node);
	ticket_put(&other, 5, open.peer_key, &open, false);
	/* A daemon in place of another: the old ticket ends. */
	ck_assert_ptr_nonnull(ticket_for(&other, &open));
	ck_assert_ptr_null(ticket_for(duo_lgr(A), &open));
	/* And back: they alternate. */
	d.eng[A]->now_ns++;
	ticket_put(duo_lgr(A), TICKET, open.peer_key, &open, false);
	ck_assert_ptr_null(ticket_for(duo_lgr(A), &open));
	ck_assert_ptr_null(ticket_for(&other, &open));
	list_remove(&other.node);
	free(other.tickets);
}
