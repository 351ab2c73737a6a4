/* Connections that open over a link (doc/open.md), when links are lost, messages meet, memory is short, or a peer lies. */
#include "duo.h"
#include "unit.h"

#include "smcr/data/grant.h"
#include "smcr/data/link_tx.h"
#include "smcr/group/llc.h"

UNIT_CASE(duo_case(tc, 1000));

#define TICKET 77

static void
begin(const struct smcr_config *change, bool two)
{
	struct smcr_config cfg = { 0 };

	if (change != NULL)
		cfg = *change;
	cfg.keepalive_ms = 30000;
	duo_init(true, true, &cfg);
	if (two)
		duo_add_devices();
	d.ticket = TICKET;
	duo_connect(0, 1, two ? 1000 : 100);
	if (two)
		duo_expect_links(2);
}

/* -- 1: A without NOT_OPENED is no proof that no program has the bytes -- */

START_TEST(a_reset_before_the_answer_was_posted_tells_that_bytes_were_delivered)
{
	begin(NULL, false);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(20);
	smcr_admit(s[1].conn); /* the program is connected, gets the bytes, and resets, in one turn or on a full link */
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	smcr_abort(s[1].conn, SMCR_R_APP_RESET);
	duo_run(20);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_PEER_ABORT); /* not as after a failed connect */
}

static bool
hold_cdc_from_b(const struct sim_msg *m)
{
	return m->from == d.dev[B] && m->op == RNIC_WR_SEND && m->data[0] == CDC_TYPE;
}

static bool
hold_cdc_from_b1(const struct sim_msg *m)
{
	return m->from == d.more[B][0] && m->op == RNIC_WR_SEND && m->data[0] == CDC_TYPE;
}

START_TEST(a_reset_after_an_answer_that_was_lost_tells_that_bytes_were_delivered)
{
	begin(NULL, true);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(20);
	struct link *answers = s[1].conn->link;
	d.holds = answers->dev == d.dev[B] ? hold_cdc_from_b : hold_cdc_from_b1;
	smcr_admit(s[1].conn);
	duo_run(5);
	ck_assert(!IS(c[1], ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	smcr_abort(s[1].conn, SMCR_R_APP_RESET);
	duo_run(1);
	ck_assert(sim_break_qp(answers->dev, answers->qpn, SIM_CUT_RESET));
	duo_run(1);
	d.holds = NULL;
	duo_run(500);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_PEER_ABORT); /* not as after a failed connect */
}

/* -- 2: an OPEN that arrived before its link ended counts, as CDC does -- */

START_TEST(an_open_that_arrived_before_its_link_ended_counts)
{
	begin(NULL, true);
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	struct link *over = c[1].conn->link, *there = duo_link_nr(B, over->number);
	(void)smcr_flush(d.eng[A]);
	/* Both messages arrive and are acknowledged; B has not polled. */
	for (unsigned i = 0; i < 20; i++) {
		d.now_ns += DUO_MS / 4;
		sim_run(d.fab, d.now_ns);
		smcr_poll(d.eng[A], d.now_ns);
		(void)smcr_flush(d.eng[A]);
	}
	ck_assert_uint_eq(c[1].conn->tx.done_seq, 1);
	ck_assert(!IS(s[1], PROPOSAL));
	/* B gives the link up: silence, port down, device removed. */
	link_lost(there, "cut");
	engine_act_on_marks(d.eng[B]);
	duo_run(100);
	s[1].refuse = false;
	if (IS(s[1], PROPOSAL) && !IS(s[1], CLOSED))
		smcr_admit(s[1].conn);
	duo_run(100);
	ck_assert_msg(!IS(c[1], CLOSED), "the client is reset: %d, failover_lost %lu", c[1].reason,
	    (unsigned long)d.eng[B]->ctr.failover_lost);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
}

/* -- 3: grants that are lost -- */

static uint32_t grant_qpn;

static bool
hold_grant(const struct sim_msg *m)
{
	if (m->op != RNIC_WR_SEND || m->len != OPEN_LEN || m->data[0] != OPEN_GRANT)
		return false;
	grant_qpn = m->qpn;
	return true;
}

START_TEST(grants_lost_with_their_link_are_replaced)
{
	unsigned i = 1;

	begin(NULL, true);
	duo_connect(200, 20, 200); /* RMBs with room */
	duo_end_pairs(200, 20, 20);
	grant_qpn = 0;
	d.holds = hold_grant;
	while (duo_open_over_link(i)) {
		duo_run(5);
		i++;
	}
	LGR_EACH_LINK(l, duo_lgr(B))
		if (l->state == LINK_ACTIVE && l->qpn == grant_qpn)
			duo_lose(l, "cut");
	d.holds = NULL;
	duo_run(200);
	/* Rendezvous that give tickets, for as long as one likes. */
	for (unsigned k = 100; k < 120; k++) {
		duo_connect(k, 1, 50);
		duo_close(k);
		duo_run(20);
		duo_release_pair(k);
	}
	ck_assert_msg(duo_open_over_link(150),
	    "the client has %u grants, the server believes in %u; nothing opens any more", duo_lgr(A)->grant_cnt,
	    duo_lgr(B)->spare_cnt);
}

START_TEST(grants_survive_a_lack_of_connections_at_the_client)
{
	begin(NULL, false);
	unsigned had = duo_lgr(A)->grant_cnt;
	uint32_t max = d.eng[A]->conns.max;

	d.eng[A]->conns.max = d.eng[A]->conns.used;
	for (unsigned i = 0; i < 20; i++)
		ck_assert(!duo_open_over_link(1));
	d.eng[A]->conns.max = max;
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, had);
}

/* -- 4: tickets of several peer ids -- */

START_TEST(a_key_that_led_to_an_old_process_is_used_again)
{
	begin(NULL, false);
	struct lgr other = { .eng = d.eng[A], .role = SMCR_CLIENT, .peer_id = { 1 } };
	const struct smcr_open open = { .peer_key = "server:1" };

	/* The group of the process that was replaced still has a connection. */
	list_push(&d.eng[A]->lgrs, &other.node);
	ticket_put(&other, 5, open.peer_key, &open, false);
	ticket_put(duo_lgr(A), TICKET, open.peer_key, &open, false);
	list_remove(&other.node);
	free(other.tickets);
	/* It is gone; a connection each 100 s, for hours. */
	for (unsigned i = 0; i < 100; i++) {
		d.eng[A]->now_ns += 100000 * DUO_MS;
		ticket_put(duo_lgr(A), TICKET, open.peer_key, &open, false);
	}
	ck_assert_ptr_nonnull(ticket_for(duo_lgr(A), &open));
}

/* -- 5: settings that change -- */

START_TEST(turned_off_nothing_opens_over_a_link)
{
	begin(NULL, false);
	struct smcr_config cfg = d.eng[A]->cfg;

	cfg.features &= (uint8_t)~CLC_FEATURE_OPEN;
	cfg.keepalive_ms = 0;
	smcr_reconfigure(d.eng[A], &cfg);
	ck_assert(!duo_open_over_link(1));
}

/* -- 6: a slow server and impatient clients -- */

/* -- 7: counters -- */

START_TEST(spare_and_refused_connections_count_as_neither_closed_nor_established)
{
	struct smcr_config cfg = { .group_idle_ms = 500 };

	begin(&cfg, false);
	uint64_t established = d.eng[B]->ctr.established_server;
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(20);
	smcr_abort(s[1].conn, SMCR_R_NOT_OPENED);
	duo_release(&s[1]);
	duo_run(20);
	duo_release(&c[1]);
	uint64_t e = d.eng[B]->ctr.established_server - established;
	duo_close(0);
	duo_run(20);
	duo_release_pair(0);
	uint64_t closed = d.eng[B]->ctr.closed_ok;
	duo_run(2000);
	uint64_t by_spares = d.eng[B]->ctr.closed_ok - closed;
	ck_assert_msg(e == 0 && by_spares == 0, "established by a refused one: %lu; closed_ok by spare ones: %lu",
	    (unsigned long)e, (unsigned long)by_spares);
}

/* -- 8: memory -- */

START_TEST(grants_leave_elements_for_rendezvous)
{
	begin(NULL, false);
	d.port = 2; /* another service: no ticket, so a rendezvous */
	duo_connect(1, 1, 100);
	ck_assert_uint_eq(duo_count(B, "CONFIRM RKEY"), 0);
}

/* -- 9: the queue of LLC messages -- */

static bool
hold_from_b(const struct sim_msg *m)
{
	return m->from == d.dev[B];
}

START_TEST(grants_leave_room_in_the_queue_for_llc_messages)
{
	unsigned next = 1;

	begin(NULL, false);
	duo_connect(100, 150, 500);
	for (unsigned k = 100; k < 250; k++)
		duo_close(k);
	duo_run(50);
	for (unsigned k = 100; k < 250; k++)
		duo_release_pair(k);
	/* The client uses all it has at once, several times. */
	for (unsigned r = 0; r < 4; r++) {
		unsigned first = next;

		while (duo_open_over_link(next))
			next++;
		d.next_opened = first;
		duo_run(20);
		duo_end_pairs(first, next - first, 20);
		memset(c + 1, 0, 99 * sizeof(c[0]));
		memset(s + 1, 0, 99 * sizeof(s[0]));
		next = 1;
	}
	/* Elements of connections that have ended are granted with the next one. */
	ck_assert(duo_open_over_link(1));
	d.next_opened = 1;
	duo_run(20);
	duo_close(1);
	duo_run(20);
	duo_release_pair(1);
	ck_assert_uint_ge(duo_lgr(A)->grant_cnt, 40);
	/* Nothing of B arrives for a while: its send queue fills with data. */
	d.holds = hold_from_b;
	for (unsigned i = 0; i < 60; i++) {
		duo_write(&s[0], 10);
		(void)smcr_flush(d.eng[B]);
	}
	unsigned cnt = duo_lgr(A)->grant_cnt;
	for (unsigned i = 1; i <= cnt; i++)
		ck_assert(duo_open_over_link(i));
	d.next_opened = 1;
	duo_run(20);
	struct link *l = duo_link(B);
	struct llc_msg m = { .type = LLC_TEST_LINK };
	ck_assert_uint_gt(l->llc_cnt, 0);
	ck_assert_int_eq(link_send_llc(l, &m), 0);
}

/* -- 10: a client that does not answer refusals -- */

static bool
hold_cdc_from_a(const struct sim_msg *m)
{
	return m->from == d.dev[A] && m->op == RNIC_WR_SEND && m->data[0] == CDC_TYPE;
}

static void
inject_open(struct link *link, uint32_t token, const struct rtoken *rt, uint8_t idx)
{
	struct open_msg m = { .type = OPEN_CONN,
		.granted_token = token,
		.ticket = 4711,
		.own = { .token = 1000u + idx, .rkey = rt->rkey, .vaddr = rt->addr, .idx = idx, .size_code = 0 } };
	uint8_t buf[OPEN_LEN];

	ck_assert_int_eq(open_encode(&m, buf, sizeof(buf)), OPEN_LEN);
	llc_recv(link, buf, sizeof(buf));
	engine_act_on_marks(link->lgr->eng);
}

START_TEST(refused_connections_stay_within_the_limit_of_the_group)
{
	struct smcr_config cfg = { .conns_per_group = 10 };
	unsigned n = 0;

	begin(&cfg, false);
	duo_connect(1, 9, 200);
	duo_end_pairs(1, 8, 20);
	struct lgr *lgr = duo_lgr(B);
	const struct rtoken rt = s[0].conn->peer_rmb->on[duo_link(B)->slot];
	d.holds = hold_cdc_from_a;
	for (unsigned i = 0; i < 200; i++) {
		struct smcr_conn *spare = LIST_FIRST(struct smcr_conn, &lgr->spares, lgr_node);

		if (spare == NULL)
			break;
		inject_open(duo_link(B), spare->id, &rt, (uint8_t)(20 + i));
		n++;
	}
	uint32_t had = lgr->conn_cnt;
	d.holds = NULL;
	duo_run(20);
	ck_assert_msg(had <= 10, "%u OPENs with a wrong ticket: the group has %u connections of 10", n, had);
}

/* -- 11: memory after a burst -- */

/* Several RMBs at B: the first one is full; one has no element in use but granted ones. */
static void
after_a_burst(void)
{
	struct smcr_config cfg = { .rmb_idle_ms = 2000 };

	begin(&cfg, false);
	duo_connect(200, 40, 200);
	duo_end_pairs(200, 40, 20);
	for (unsigned i = 100;
	     LIST_FIND(struct rmb, r, &duo_lgr(B)->rmbs, node, r->spare > 0 && r->spare == r->used) == NULL; i++) {
		ck_assert(duo_open_over_link(i));
		duo_run(20);
	}
}

START_TEST(an_idle_rmb_is_deleted_although_its_elements_are_granted)
{
	after_a_burst();
	ck_assert_uint_gt(duo_lgr(B)->rmb_cnt, 1);
	duo_run(20000);
	ck_assert_uint_eq(duo_lgr(B)->rmb_cnt, 1);
	ck_assert_uint_eq(duo_lgr(A)->remote_rmb_cnt, 1);
	duo_connect(2, 1, 100);
	ck_assert(duo_open_over_link(3));
	duo_run(20);
	ck_assert(BOTH(3, ESTABLISHED));
	duo_bystander_is_well();
}

static struct rmb *
being_deleted(void)
{
	return LIST_FIND(struct rmb, r, &duo_lgr(B)->rmbs, node, r->state == RMB_DELETING && r->spare > 0);
}

static bool
hold_delete_rkey(const struct sim_msg *m)
{
	return m->op == RNIC_WR_SEND && m->from == d.dev[B] && m->data[0] == LLC_DELETE_RKEY && being_deleted() != NULL;
}

/* A pair that was opened in an RMB whose DELETE RKEY is on its way. */
static unsigned
open_in_what_is_deleted(void)
{
	unsigned i = 2;

	after_a_burst();
	d.holds = hold_delete_rkey;
	for (unsigned ms = 0; being_deleted() == NULL && ms < 20000; ms += 100)
		duo_run(100);
	ck_assert_ptr_nonnull(being_deleted());
	struct rmb *rmb = being_deleted();
	for (bool open = true; open; i++) {
		ck_assert(duo_open_over_link(i));
		duo_write(&c[i], 100);
		duo_run(5);
		ck_assert(IS(s[i], ESTABLISHED)); /* the answer is behind DELETE RKEY */
		open = s[i].conn->rmb != rmb;
	}
	return i - 1;
}

START_TEST(an_open_that_meets_delete_rkey_keeps_the_rmb)
{
	unsigned i = open_in_what_is_deleted();

	d.holds = NULL;
	duo_run(50);
	ck_assert_int_eq(s[i].conn->rmb->state, RMB_CONFIRMED);
	ck_assert_uint_eq(duo_write(&c[i], 200), 200);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&s[i]), 300);
	duo_bystander_is_well();
}

START_TEST(a_peer_that_deletes_what_it_has_opened)
{
	unsigned i = open_in_what_is_deleted();
	struct link *link = duo_link(B);
	uint8_t rkey[LLC_RKEY_LEN];
	struct llc_msg lie = { .type = LLC_DELETE_RKEY, .response = true, .delete_rkey = { .cnt = 1, .rkeys = rkey } };

	llc_rkey_put(rkey, 0, s[i].conn->rmb->mr[link->slot]->rkey);
	duo_inject(link, &lie);
	ck_assert_int_eq(s[i].conn->rmb->state, RMB_NEW);
	ck_assert_uint_eq(s[i].conn->rmb->spare, 0);
	ck_assert_uint_eq(duo_read(&s[i]), 100);
	duo_bystander_is_well();
}

/* -- 12: data that was never announced -- */

START_TEST(a_link_lost_before_anything_was_announced_loses_no_connection)
{
	begin(NULL, false);
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000); /* the user's bytes wait in the ring: neither OPEN nor CDC was posted */
	ck_assert(!c[1].conn->tx.any);
	duo_lose(duo_link(A), "cut");
	duo_run(50);
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
}

/* -- 13: an OPEN whose link is silent -- */

#define SILENCE_MS 1500 /* a test after 500 ms, its answer within 1000 ms */

static bool
hold_all(const struct sim_msg *m)
{
	(void)m;
	return true;
}

/* Those between the first devices of both hosts, or the others. */
static const struct rnic_dev *silent[2];

static bool
hold_silent(const struct sim_msg *m)
{
	return m->from == silent[A] || m->from == silent[B];
}

START_TEST(an_open_without_data_over_a_silent_link_is_given_up)
{
	begin(NULL, false);
	d.holds = hold_all;
	ck_assert(duo_open_over_link(1));
	duo_run(SILENCE_MS - 100);
	ck_assert(!IS(c[1], CLOSED));
	duo_run(200);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_NOT_OPENED);
	ck_assert_uint_eq(d.eng[A]->ctr.opens_silent, 1);
	ck_assert_uint_eq(d.eng[A]->ctr.not_opened_client, 1);
	/* What its peer gets later is an OPEN, and its reset: a connection without data. */
	d.holds = NULL;
	duo_run(100);
	ck_assert(IS(s[1], CLOSED));
	ck_assert_int_eq(s[1].reason, SMCR_R_PEER_ABORT);
	ck_assert_uint_eq(duo_read(&s[1]), 0);
	duo_bystander_is_well();
}

START_TEST(an_open_with_data_over_a_silent_link_waits)
{
	begin(NULL, false);
	d.holds = hold_all;
	ck_assert(duo_open_over_link(1));
	duo_write(&c[1], 1000);
	duo_run(4000);
	ck_assert(c[1].conn->tx.any && !IS(c[1], CLOSED));
	ck_assert_uint_eq(d.eng[A]->ctr.opens_silent, 1);
	d.holds = NULL;
	duo_run(100);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	duo_bystander_is_well();
}

/* Then the same OPEN is repeated over the other one: no program gets its data twice. */
START_TEST(a_silent_link_is_left_for_another_that_answers)
{
	begin(NULL, true);
	ck_assert(duo_open_over_link(1));
	struct link *over = c[1].conn->link;
	silent[A] = over->dev;
	silent[B] = duo_link_nr(B, over->number)->dev;
	d.holds = hold_silent;
	duo_write(&c[1], 1000);
	duo_run(4000);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(d.eng[A]->ctr.opens_silent, 1);
	ck_assert_uint_eq(duo_read(&s[1]), 1000);
	d.holds = NULL;
	duo_run(200);
	ck_assert_uint_eq(duo_read(&s[1]), 0);
	ck_assert_uint_eq(d.eng[A]->ctr.not_opened_client, 0);
	duo_bystander_is_well();
}

START_TEST(a_slow_server_is_not_a_silent_link)
{
	begin(NULL, false);
	uint64_t tests = d.eng[A]->ctr.test_links;
	s[1].refuse = true;
	ck_assert(duo_open_over_link(1));
	duo_run(3 * SILENCE_MS);
	ck_assert(!IS(c[1], CLOSED));
	ck_assert_uint_gt(d.eng[A]->ctr.test_links, tests);
	ck_assert_uint_le(d.eng[A]->ctr.test_links - tests, 3 * SILENCE_MS / 500);
	smcr_admit(s[1].conn);
	duo_run(20);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(d.eng[A]->ctr.opens_silent, 0);
	tests = d.eng[A]->ctr.test_links;
	duo_run(3 * SILENCE_MS);
	ck_assert_uint_eq(d.eng[A]->ctr.test_links, tests);
}

/* A path of 1 s each way: its answer takes as long. */
static int64_t long_until_ns;

static bool
hold_for_long(const struct sim_msg *m)
{
	(void)m;
	return d.now_ns < long_until_ns;
}

START_TEST(a_long_round_trip_is_not_silence)
{
	begin(NULL, false);
	duo_link(A)->rtt_ns = 1000 * DUO_MS;
	long_until_ns = d.now_ns + 3000 * DUO_MS;
	d.holds = hold_for_long;
	ck_assert(duo_open_over_link(1));
	duo_run(2900);
	ck_assert(!IS(c[1], CLOSED));
	duo_run(200);
	ck_assert(BOTH(1, ESTABLISHED));
}
