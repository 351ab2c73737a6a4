/* LLC exchanges of two engines: RFC 7609 3.5.4, 3.5.5, 4.5.3, C.7. Messages of a wrong peer are put in by hand. */
#include "duo.h"
#include "smcr/group/llc_impl.h"
#include "unit.h"

#include <string.h>

static const uint8_t unknown_rkey[LLC_RKEY_LEN] = { 0, 1, 0x23, 0x45 };

/* A message from the other host, as it would arrive on this host's link. */
static void
inject(unsigned host, const struct llc_msg *msg)
{
	duo_inject(duo_link(host), msg);
}

/* -- who may send what -- */

struct row {
	enum llc_type type;
	bool response;
	bool survives[2]; /* link of A (client), of B (server), with no exchange under way */
};

static const struct row rows[] = {
	{ LLC_CONFIRM_LINK, false, { false, false } },
	{ LLC_CONFIRM_LINK, true, { false, false } },
	{ LLC_ADD_LINK, false, { true, true } }, /* rejected by the client, a hint to the server */
	{ LLC_ADD_LINK, true, { false, true } }, /* a late one is ignored */
	{ LLC_ADD_LINK_CONT, false, { false, false } },
	{ LLC_ADD_LINK_CONT, true, { false, false } },
	{ LLC_DELETE_LINK, false, { true, true } }, /* of a link that does not exist */
	{ LLC_DELETE_LINK, true, { true, true } },
	{ LLC_CONFIRM_RKEY, false, { true, true } },
	{ LLC_CONFIRM_RKEY, true, { false, false } },
	{ LLC_CONFIRM_RKEY_CONT, false, { false, false } },
	{ LLC_CONFIRM_RKEY_CONT, true, { false, false } },
	{ LLC_DELETE_RKEY, false, { true, true } },
	{ LLC_DELETE_RKEY, true, { false, false } },
	{ LLC_TEST_LINK, false, { true, true } },
	{ LLC_TEST_LINK, true, { false, false } },
};

UNIT_CASE(duo_case(tc, 100));

START_LOOP_TEST(each_message_out_of_place_takes_the_link_down_or_is_harmless, 0, 2 * sizeof(rows) / sizeof(rows[0]))
{
	const struct row *r = &rows[_i / 2];
	unsigned host = (unsigned)_i % 2;
	struct llc_msg msg = { .type = r->type, .response = r->response };

	duo_begin(NULL);
	switch (msg.type) {
	case LLC_CONFIRM_LINK:
		msg.confirm_link.link_num = 1;
		msg.confirm_link.max_links = 2;
		break;
	case LLC_ADD_LINK:
		msg.add_link.link_num = 9;
		msg.add_link.mtu_code = 3;
		break;
	case LLC_DELETE_LINK:
		msg.delete_link.link_num = 77;
		msg.delete_link.reason = LLC_DELETE_OPERATOR;
		break;
	case LLC_CONFIRM_RKEY_CONT:
		msg.confirm_rkey_cont.left_cnt = 1;
		break;
	case LLC_DELETE_RKEY:
		msg.delete_rkey.cnt = 1;
		msg.delete_rkey.rkeys = unknown_rkey;
		break;
	case LLC_CONFIRM_RKEY:
	case LLC_TEST_LINK:
	case LLC_ADD_LINK_CONT:
	case LLC_REQUEST_ADD_LINK:
		break;
	}
	inject(host, &msg);
	/* At once: the other host, which is innocent, breaks off when it gets an answer to what it never asked. */
	ck_assert_msg((duo_lgr(host) != NULL) == r->survives[host], "type %d response %d at %c", msg.type, msg.response,
	    "AB"[host]);
	duo_run(50);
	if (!r->survives[host]) {
		ck_assert(BOTH(0, CLOSED));
		ck_assert_uint_ge(smcr_counters(d.eng[host])->bad_llc, 1);
		ck_assert_int_eq(host == A ? c[0].reason : s[0].reason, SMCR_R_LINK_LOST);
	}
}

START_LOOP_TEST(optional_unknown_types_are_ignored_others_take_the_link_down, 0x0a, 0xfe)
{
	uint8_t buf[LLC_LEN] = { 0 };
	bool optional = (_i & 0xc0) == 0x80;

	buf[0] = (uint8_t)_i;
	buf[1] = LLC_LEN;
	duo_begin(NULL);
	llc_recv(duo_link(A), buf, sizeof(buf));
	duo_run(50);
	ck_assert((duo_lgr(A) != NULL) == optional);
	if (optional)
		ck_assert_uint_eq(smcr_counters(d.eng[A])->llc_ignored, 1);
}

START_LOOP_TEST(a_message_of_wrong_length_takes_the_link_down, 0, LLC_LEN)
{
	uint8_t buf[LLC_LEN] = { LLC_TEST_LINK, LLC_LEN };

	duo_begin(NULL);
	llc_recv(duo_link(A), buf, (size_t)_i);
	duo_run(50);
	ck_assert_ptr_null(duo_lgr(A));
}

/* -- RMBs -- */

static const struct smcr_config two_elements = { .rmb_elems = 2, .rmb_idle_ms = 1000 };

START_TEST(new_rmbs_are_confirmed_and_idle_ones_deleted)
{
	duo_begin(&two_elements);
	for (unsigned i = 1; i < 7; i++)
		duo_connect(i, 1, 20);
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(duo_lgr(h)->rmb_cnt, 4);
		ck_assert_uint_eq(duo_lgr(h)->remote_rmb_cnt, 4);
		ck_assert_uint_eq(duo_count(h, "CONFIRM RKEY"), 3);
		ck_assert_uint_eq(duo_count(h, "CONFIRM RKEY response"), 3);
	}
	for (unsigned i = 1; i < 7; i++)
		duo_close(i);
	duo_run(100);
	for (unsigned i = 1; i < 7; i++) {
		ck_assert(IS(c[i], CLOSED) && c[i].reason == SMCR_OK);
		duo_release_pair(i);
	}
	duo_run(10000);
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(duo_lgr(h)->rmb_cnt, 1);
		ck_assert_uint_eq(duo_lgr(h)->remote_rmb_cnt, 1);
		ck_assert_uint_eq(duo_count(h, "DELETE RKEY"), 3);
	}
	/* The group grows again. */
	duo_connect(1, 4, 100);
	for (unsigned i = 1; i < 5; i++)
		ck_assert(IS(c[i], ESTABLISHED));
}

/* Timers of one turn: the first one loses the last link, which the group hears of behind the timers. */
START_TEST(no_idle_rmb_is_deleted_when_the_last_link_has_just_been_lost)
{
	duo_begin(&two_elements);
	duo_connect(1, 3, 20);
	duo_end_pairs(1, 3, 100);
	struct lgr *lgr = duo_lgr(A);
	ck_assert_uint_eq(lgr->rmb_cnt, 2);
	LIST_EACH(struct rmb, rmb, &lgr->rmbs, node)
		rmb->idle_since_ns = lgr->eng->now_ns - 2000 * MS;
	link_lost(duo_link(A), "no answer");
	lgr->rmb_idle.fire(&lgr->rmb_idle);
	ck_assert_uint_eq(duo_count(A, "DELETE RKEY"), 0);
	duo_run(50);
	ck_assert_ptr_null(duo_lgr(A));
}

START_TEST(many_connections_at_once_wait_for_the_same_rmb)
{
	duo_begin(&two_elements);
	duo_connect(1, 39, 300);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, 20);
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
}

START_TEST(a_negative_confirm_rkey_declines_waiting_connections)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .response = true };

	duo_begin(&two_elements);
	duo_open(1);
	duo_run(20);
	duo_open(2);
	duo_until(B, "CONFIRM RKEY");
	struct lgr *lgr = duo_lgr(B);
	ck_assert_ptr_nonnull(lgr->flow[LLC_FLOW_RKEY].rmb);
	msg.confirm_rkey.rkey = lgr->flow[LLC_FLOW_RKEY].rmb->mr[lgr->flow[LLC_FLOW_RKEY].link->slot]->rkey;
	msg.confirm_rkey.negative = true;
	inject(B, &msg);
	ck_assert_uint_eq(lgr->rmb_cnt, 1);
	ck_assert_uint_eq(s[2].conn->diag.local, CLC_DIAG_RTOKEN);
}

static const struct smcr_config one_element = { .rmb_elems = 1 };

/* The peer changes its links for as long as it likes, and refuses CONFIRM RKEY meanwhile. Who waits for the RMB does
 * not let the other side of the rendezvous wait until it resets. */
START_LOOP_TEST(a_waiter_for_an_rmb_declines_in_time, 0, 2)
{
	unsigned host = (unsigned)_i; /* which needs the RMB */

	duo_init(true, true, NULL);
	d.eng[host]->cfg.rmb_elems = 1;
	duo_open(0);
	duo_run(100);
	struct llc_flow *busy = &duo_lgr(1 - host)->flow[LLC_FLOW_LINK];
	busy->step = host == A ? LLC_WAIT_NEW_CONNECTED : LLC_CONNECT_NEW;
	duo_open(1);
	duo_run(8000);
	ck_assert_uint_gt(d.eng[host]->ctr.rkey_retries, 50);
	ck_assert(BOTH(1, FALLBACK));
	ck_assert_uint_eq((host == A ? c : s)[1].diag.local, CLC_DIAG_RTOKEN);
	busy->step = LLC_IDLE;
	/* The RMB that nobody waits for is settled, and the next one has it. */
	duo_connect(2, 1, 500);
}

/*
 * A group with all the RMBs that it may have. The next connection gets a parallel group, be it that there are 255
 * connections (0), or fewer, with an element in quarantine at the server (1). In quarantine at the client (2) the server
 * cannot know: the connection goes by TCP, and the limit is counted.
 */
START_LOOP_TEST(a_group_with_255_rmbs_is_full, 0, 3)
{
	unsigned n = SMCR_RMBS_PER_GROUP;

	duo_begin(&one_element);
	for (unsigned i = 1; i < n; i++)
		duo_connect(i, 1, 5);
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(duo_lgr_cnt(h), 1);
		ck_assert_uint_eq(duo_lgr(h)->rmb_cnt, n);
		ck_assert_uint_eq(duo_lgr(h)->remote_rmb_cnt, n);
		ck_assert_uint_eq(smcr_counters(d.eng[h])->refused_rmbs_max, 0);
	}
	if (_i > 0) {
		conn_end(s[0].conn, SMCR_R_CLOSE_TIMEOUT, "", _i == 1);
		conn_end(c[0].conn, SMCR_R_CLOSE_TIMEOUT, "", _i == 2);
	}
	duo_open(n);
	duo_run(100);
	ck_assert_uint_eq(duo_lgr_cnt(B), _i < 2 ? 2 : 1);
	ck_assert(IS(c[n], ESTABLISHED) == (_i < 2) && IS(s[n], FALLBACK) == (_i == 2));
	ck_assert_uint_eq(c[n].diag.local, _i < 2 ? 0 : CLC_DIAG_RTOKEN);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_rmbs_max, _i == 2);
}

/* Of the peer's RMBs no more are remembered than it may have. */
START_TEST(a_peer_that_confirms_too_many_rmbs_is_refused)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY };

	duo_begin(NULL);
	for (unsigned i = 1; i <= SMCR_RMBS_PER_GROUP; i++) {
		struct llc_msg answer;
		struct link *link = duo_link(A);

		msg.confirm_rkey.rkey = i;
		inject(A, &msg);
		ck_assert_int_gt(
		    llc_decode((struct span){ link->llc_queue[link->llc_first].msg, LLC_LEN }, LLC_VERSION, &answer),
		    0);
		ck_assert(answer.confirm_rkey.negative == (i == SMCR_RMBS_PER_GROUP));
		link->llc_cnt = 0; /* the other side never asked */
	}
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_rmbs_max, 1);
}

/* The answer to DELETE RKEY has to name what was asked for; otherwise an RMB would go that the peer still writes to. */
START_LOOP_TEST(a_delete_rkey_answer_for_another_rmb_takes_the_link_down, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_RKEY, .response = true };
	uint8_t rkey[LLC_RKEY_LEN];

	duo_begin(&two_elements);
	for (unsigned i = 1; i < 3; i++) {
		duo_open(i);
		duo_run(20);
	}
	duo_close(2);
	duo_until(B, "DELETE RKEY");
	struct lgr *lgr = duo_lgr(B);
	ck_assert_int_eq(lgr->flow[LLC_FLOW_RKEY].step, LLC_WAIT_DELETE_RKEY_RSP);
	llc_rkey_put(rkey, 0, lgr->flow[LLC_FLOW_RKEY].rmb->mr[duo_link(B)->slot]->rkey + (_i == 0));
	msg.delete_rkey.cnt = 1;
	msg.delete_rkey.rkeys = rkey;
	inject(B, &msg);
	ck_assert((duo_lgr(B) == NULL) == (_i == 0));
	ck_assert_uint_eq(smcr_counters(d.eng[B])->bad_llc, _i == 0);
}

/* A peer that asks and takes no answers: none is lost silently. A burst that our device takes is no fault. */
/* TEST LINK is the exception: who does not wait for its answers does without some. */
START_TEST(answers_that_find_no_place_take_the_link_down)
{
	struct llc_msg msg = { .type = LLC_DELETE_RKEY, .delete_rkey = { .cnt = 1, .rkeys = unknown_rkey } };
	struct llc_msg test = { .type = LLC_TEST_LINK };

	duo_begin(NULL);
	for (unsigned i = 0; i < 300; i++)
		inject(A, &test);
	ck_assert_uint_ge(smcr_counters(d.eng[A])->llc_queue_full, 1);
	smcr_poll(d.eng[A], d.now_ns);
	ck_assert_ptr_nonnull(duo_lgr(A));
	duo_fini();
	duo_begin(NULL);
	for (unsigned i = 0; i < LINK_LLC_QUEUE + 1; i++)
		inject(A, &msg);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->llc_queue_full, 0);
	for (unsigned i = 0; i < 200; i++)
		inject(A, &msg);
	ck_assert_uint_ge(smcr_counters(d.eng[A])->llc_queue_full, 1);
	ck_assert_ptr_nonnull(duo_lgr(A));
	smcr_poll(d.eng[A], d.now_ns);
	ck_assert_ptr_null(duo_lgr(A));
	duo_run(50);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_R_LINK_LOST);
}

static bool
is_confirm_link(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_CONFIRM_LINK;
}

/* ADD LINK has its place behind CONFIRM LINK; a server that does not keep to that speaks another protocol. */
START_TEST(an_add_link_before_confirm_link_is_out_of_step)
{
	struct llc_msg msg = { .type = LLC_ADD_LINK, .add_link = { .link_num = 9, .mtu_code = 3 } };

	duo_init(true, true, NULL);
	d.holds = is_confirm_link;
	duo_open(0);
	duo_run(20);
	ck_assert_int_eq(duo_lgr(A)->flow[LLC_FLOW_LINK].step, LLC_WAIT_CONFIRM_LINK);
	duo_inject(&duo_lgr(A)->links[0], &msg);
	d.holds = NULL;
	ck_assert_uint_eq(smcr_counters(d.eng[A])->bad_llc, 1);
	duo_run(100);
	ck_assert(IS(c[0], FALLBACK) && IS(s[0], FALLBACK));
	ck_assert_uint_eq(duo_count(A, "ADD LINK response"), 0);
}

/* Before CONFIRM LINK the first link has no number, or 0. Without it the group is not ready; a bystander of another group lives on. */
START_TEST(a_first_link_that_is_deleted_makes_no_group)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK, .delete_link = { .reason = LLC_DELETE_PROTOCOL } };

	duo_begin(&(struct smcr_config){ .conns_per_group = 1 });
	d.holds = is_confirm_link;
	duo_open(1);
	duo_run(20);
	ck_assert_int_eq(LIST_FIRST(struct lgr, &d.eng[A]->lgrs, node)->state, LGR_ACTIVE);
	LIST_EACH(struct lgr, lgr, &d.eng[A]->lgrs, node)
		if (lgr->state == LGR_FORMING)
			duo_inject(&lgr->links[0], &msg);
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
	d.holds = NULL;
	duo_run(100);
	ck_assert(IS(c[1], FALLBACK) && IS(s[1], FALLBACK));
	ck_assert(!IS(c[1], ESTABLISHED));
	duo_bystander_is_well();
}

/* -- TEST LINK -- */

static const struct smcr_config keepalive = { .keepalive_ms = 1000, .keepalive_answer_ms = 200 };
static const struct smcr_config not_kept = { .keepalive_ms = 1000, .keepalive_answer_ms = 200, .last_link_ms = 1 };

START_TEST(idle_links_are_tested_with_and_without_connections)
{
	duo_begin(&keepalive);
	ck_assert_uint_eq(duo_count(A, "TEST LINK"), 0);
	duo_run(1500);
	/* Messages of one side are activity to the other: together they test once an interval, not twice. */
	ck_assert_uint_ge(duo_count(A, "TEST LINK") + duo_count(B, "TEST LINK"), 1);
	duo_close(0);
	duo_run(100);
	ck_assert_uint_eq(duo_lgr(A)->conn_cnt, 0);
	d.seen_cnt = 0;
	duo_run(5000);
	ck_assert_uint_ge(duo_count(A, "TEST LINK") + duo_count(B, "TEST LINK"), 4);
	ck_assert_ptr_nonnull(duo_lgr(A));
	ck_assert_int_ge(duo_link(A)->rtt_ns >= 0 || duo_link(B)->rtt_ns >= 0, 1);
}

START_TEST(a_dead_peer_is_noticed_within_interval_and_answer_time)
{
	duo_begin(&not_kept);
	sim_freeze(d.dev[B], true);
	duo_run(1000 + 200 + 50);
	ck_assert(IS(c[0], CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_R_LINK_LOST);
	ck_assert_ptr_null(duo_lgr(A));
	sim_freeze(d.dev[B], false);
	duo_run(5000);
	ck_assert(IS(s[0], CLOSED));
}

START_TEST(a_test_link_answer_with_other_data_takes_the_link_down)
{
	struct llc_msg msg = { .type = LLC_TEST_LINK, .response = true };

	duo_begin(&keepalive);
	while (!duo_link(A)->test_pending && !duo_link(B)->test_pending)
		ck_assert(d.now_ns < 5000 * DUO_MS), duo_until(A, "TEST LINK");
	inject(duo_link(A)->test_pending ? A : B, &msg);
	duo_run(50);
	ck_assert_ptr_null(duo_lgr(A));
}

/* The peer deletes an RMB whose confirmation it has not finished: nothing of it is left to go on with. */
START_LOOP_TEST(an_rmb_deleted_amid_its_confirmation_is_gone, 0, 2)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY };
	uint8_t rkey[LLC_RKEY_LEN];
	unsigned host = (unsigned)_i;

	duo_begin(NULL);
	struct link *link = duo_link(host);
	msg.confirm_rkey.rkey = 0x4711;
	msg.confirm_rkey.vaddr = 0x1000;
	msg.confirm_rkey.other_cnt = 3;
	msg.confirm_rkey.others[0].link_num = msg.confirm_rkey.others[1].link_num = 99;
	inject(host, &msg);
	ck_assert_ptr_nonnull(remote_rmb_find(link->lgr, link, 0x4711, NULL));
	msg = (struct llc_msg){ .type = LLC_DELETE_RKEY };
	msg.delete_rkey.cnt = 1;
	llc_rkey_put(rkey, 0, 0x4711);
	msg.delete_rkey.rkeys = rkey;
	inject(host, &msg);
	ck_assert_ptr_null(remote_rmb_find(link->lgr, link, 0x4711, NULL));
	msg = (struct llc_msg){ .type = LLC_CONFIRM_RKEY_CONT };
	msg.confirm_rkey_cont.left_cnt = 1;
	msg.confirm_rkey_cont.others[0].link_num = link->number;
	inject(host, &msg);
	ck_assert_ptr_null(duo_lgr(host));
	ck_assert_uint_eq(smcr_counters(d.eng[host])->bad_llc, 1);
}

/* In the ADD LINK exchange the peer has told of so many RMBs that we do not know: so many CONFIRM RKEYs without the new link are late,
 * and refused. A further one shows that the link is of no use to the peer (C.7.1). */
START_LOOP_TEST(a_confirm_rkey_that_add_link_has_overtaken_is_refused, 0, 3)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .confirm_rkey = { .rkey = 0x4711, .vaddr = 0x1000 } };

	duo_init(true, true, NULL);
	duo_add_devices();
	duo_connect(0, 1, 300);
	duo_expect_links(2);
	struct link *over = duo_link_nr(B, 1), *new_link = duo_link_nr(B, 2);
	new_link->rtokens_ahead = (uint8_t)_i;
	for (int left = _i; left >= 0; left--) {
		ck_assert_int_eq(new_link->state, LINK_ACTIVE);
		duo_inject(over, &msg);
		ck_assert_uint_eq(over->llc_queue[over->llc_first].msg[3], left > 0 ? 0xb0 : 0x80);
		ck_assert((remote_rmb_find(over->lgr, over, 0x4711, NULL) != NULL) == (left == 0));
		over->llc_cnt = 0; /* the other side never asked */
	}
	ck_assert_int_ne(new_link->state, LINK_ACTIVE);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->llc_collisions, (unsigned)_i);
}

/* Of more links than one message names, the count shows that the new one is not among them. */
START_LOOP_TEST(a_confirm_rkey_of_many_links_may_be_overtaken, 0, 2)
{
	static const struct smcr_config five = { .links_max = 5 };
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .confirm_rkey = { .rkey = 0x4711, .vaddr = 0x1000 } };
	bool overtaken = _i == 0;

	duo_init(true, true, &five);
	for (unsigned i = 1; i < 5; i++)
		duo_add_devices();
	duo_connect(0, 1, 2000);
	duo_expect_links(5);
	struct link *over = duo_link_nr(B, 1);
	duo_link_nr(B, 5)->rtokens_ahead = 1;
	msg.confirm_rkey.other_cnt = overtaken ? 3 : 4;
	msg.confirm_rkey.others[0].link_num = 2;
	msg.confirm_rkey.others[1].link_num = 3;
	duo_inject(over, &msg);
	ck_assert_uint_eq(over->llc_queue[over->llc_first].msg[3], overtaken ? 0xb0 : 0x80);
	over->llc_cnt = 0; /* the other side never asked */
}

/* Keys of one message may be the same, and RMBs share one: each takes the first RMB that is left, and one in use is in the way of those
 * behind it. */
START_LOOP_TEST(keys_of_delete_rkey_are_taken_one_after_the_other, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_RKEY }, answer;
	uint8_t rkeys[8 * LLC_RKEY_LEN];
	static const uint32_t named[8] = { 9, 5, 6, 5, 5, 8, 5, 6 };
	static const uint32_t known[7] = { 5, 5, 5, 5, 6, 7, 8 };
	struct remote_rmb *rr[7];
	bool in_use = _i == 1;

	duo_begin(NULL);
	struct link *link = duo_link(B);
	for (unsigned i = 0; i < 7; i++)
		rr[i] = remote_rmb_add(link->lgr, link, known[i], 0x1000 * i);
	if (in_use)
		remote_rmb_claim(rr[1], 1, 4711);
	for (unsigned i = 0; i < 8; i++)
		llc_rkey_put(rkeys, i, named[i]);
	msg.delete_rkey.cnt = 8;
	msg.delete_rkey.rkeys = rkeys;
	duo_inject(link, &msg);
	const struct link_llc *q = &link->llc_queue[link->llc_first];
	ck_assert_int_gt(llc_decode((struct span){ q->msg, q->len }, 1, &answer), 0);
	ck_assert(answer.response && answer.delete_rkey.negative);
	ck_assert_uint_eq(answer.delete_rkey.error_mask, in_use ? 0x9b : 0x81);
	ck_assert_uint_eq(link->lgr->remote_rmb_cnt, in_use ? 5 : 2);
	ck_assert_ptr_eq(remote_rmb_find(link->lgr, link, 5, NULL), in_use ? rr[1] : NULL);
	if (in_use)
		remote_rmb_release(rr[1], 1, 4711);
	link->llc_cnt = 0; /* the other side never asked */
}

static bool
is_rkey_answer(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_CONFIRM_RKEY && (msg->data[3] & 0x80) != 0;
}

/* No answer in time is not the end of the link, if it lives; the answer may come yet, and the next one twice. */
START_TEST(an_answer_to_confirm_rkey_may_be_late)
{
	duo_begin(&two_elements);
	d.holds = is_rkey_answer;
	duo_open(1); /* a bystander: has an element of the first RMB */
	for (unsigned i = 2; i < 5; i++)
		duo_open(i);
	duo_run(400);
	ck_assert_uint_ge(duo_count(B, "TEST LINK"), 1);
	d.holds = NULL;
	duo_run(500);
	for (unsigned i = 0; i < 5; i++)
		ck_assert(BOTH(i, ESTABLISHED) && !IS(c[i], CLOSED));
	ck_assert_uint_ge(d.eng[B]->ctr.llc_ignored, 1);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc + d.eng[B]->ctr.bad_llc, 0);
}

static bool
is_llc_of_a(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->from == d.dev[A] && msg->data[0] != CDC_TYPE;
}

START_TEST(a_link_that_answers_nothing_goes_down)
{
	duo_begin(&two_elements);
	d.eng[B]->cfg.keepalive_answer_ms = 200;
	d.eng[B]->cfg.last_link_ms = 0;
	d.holds = is_llc_of_a;
	for (unsigned i = 1; i < 5; i++)
		duo_open(i);
	duo_run(450);
	ck_assert(!IS(s[0], CLOSED));
	duo_run(100);
	ck_assert(IS(s[0], CLOSED));
	ck_assert_int_eq(s[0].reason, SMCR_R_LINK_LOST);
	d.holds = NULL;
}

/* What it sends of its own does not put off the end: TCP gives up a peer that acknowledges nothing, whatever that peer sends. */
START_TEST(a_peer_that_talks_and_takes_nothing_is_given_up)
{
	duo_begin(&(struct smcr_config){ .keepalive_answer_ms = 200, .last_link_ms = 1000 });
	d.holds = is_llc_of_a;
	ck_assert_uint_ne(smcr_test_link(d.eng[A], duo_lgr(A)->id), 0);
	for (unsigned i = 0; i < 12; i++) { /* 1150 ms */
		ck_assert(!IS(c[0], CLOSED));
		duo_write(&s[0], 100);
		duo_run(i == 0 ? 50 : 100);
		ck_assert_uint_eq(duo_read(&c[0]), 100);
	}
	duo_run(100);
	ck_assert(IS(c[0], CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_R_LINK_LOST);
	d.holds = NULL;
}

/* A CONFIRM RKEY that goes on in a CONTINUATION, which the other has never sent. */
static void
take_unfinished_rkey(unsigned host)
{
	struct llc_msg msg = {
		.type = LLC_CONFIRM_RKEY,
		.confirm_rkey = { .rkey = 0x4711, .vaddr = 0x1000, .other_cnt = 3 },
	};

	msg.confirm_rkey.others[0].link_num = msg.confirm_rkey.others[1].link_num = 99;
	inject(host, &msg);
	duo_link(host)->llc_cnt--; /* the other never asked */
}

/* Exchanges that change the links wait for it, but not for ever. */
START_LOOP_TEST(a_confirm_rkey_whose_continuation_never_comes_is_forgotten, 0, 2)
{
	unsigned host = (unsigned)_i;
	struct lgr *lgr;

	duo_begin(NULL);
	struct link *link = duo_link(host);
	lgr = link->lgr;
	unsigned offers = duo_count(host, "ADD LINK");
	take_unfinished_rkey(host);
	ck_assert_ptr_nonnull(lgr->cont_rmb);
	duo_add_device(host);
	duo_run(250);
	ck_assert_uint_eq(duo_count(host, "ADD LINK"), offers);
	duo_run(150);
	ck_assert_ptr_null(lgr->cont_rmb);
	ck_assert_ptr_null(remote_rmb_find(lgr, link, 0x4711, NULL));
	ck_assert_uint_eq(duo_count(host, "ADD LINK"), offers + 1);
	ck_assert_uint_eq(lgr->active_cnt, 2);
}

/* The peer begins another one in its place, which is whole. */
START_LOOP_TEST(a_confirm_rkey_in_the_place_of_a_continuation_ends_the_wait, 0, 2)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .confirm_rkey = { .rkey = 0x4712, .vaddr = 0x1000 } };
	unsigned host = (unsigned)_i;

	duo_begin(NULL);
	struct link *link = duo_link(host);
	unsigned offers = duo_count(host, "ADD LINK");
	take_unfinished_rkey(host);
	duo_add_device(host);
	duo_run(50);
	ck_assert_uint_eq(duo_count(host, "ADD LINK"), offers);
	inject(host, &msg);
	link->llc_cnt--;
	ck_assert_ptr_null(link->lgr->cont_rmb);
	duo_run(50);
	ck_assert_uint_eq(duo_count(host, "ADD LINK"), offers + 1);
}

/* The first connection has the peer's element before it is established: its RMB stays. */
START_LOOP_TEST(the_first_rmb_cannot_be_deleted_during_first_contact, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_RKEY };
	uint8_t rkey[LLC_RKEY_LEN];
	unsigned host = (unsigned)_i;

	duo_init(true, true, NULL);
	duo_open(0);
	duo_until(B, "ADD LINK");
	if (host == A)
		duo_until(A, "CONFIRM LINK response");
	llc_rkey_put(rkey, 0, host == A ? c[0].conn->rdv->peer.rkey : s[0].conn->rdv->peer.rkey);
	msg.delete_rkey.cnt = 1;
	msg.delete_rkey.rkeys = rkey;
	ck_assert_int_eq(duo_lgr(host)->state, LGR_FORMING);
	inject(host, &msg);
	ck_assert_uint_eq(duo_lgr(host)->remote_rmb_cnt, 1);
	/* The answer to what it never asked for would take the other's link down. */
	duo_link(host)->llc_cnt--;
	duo_run(100);
	ck_assert(BOTH(0, ESTABLISHED));
}

static bool
is_add_link_cont(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_ADD_LINK_CONT;
}

/* The peer claims to have no RMB, or another one (3.5.5.2.3), while the first connection holds an element of it and is not
 * established yet. The new link cannot be, the group goes on without it, and the element is where it was. */
START_LOOP_TEST(the_first_rmb_does_not_go_with_an_add_link_continuation_that_leaves_it_out, 0, 4)
{
	unsigned host = (unsigned)_i % 2;
	struct llc_msg msg = { .type = LLC_ADD_LINK_CONT, .response = host == B };

	duo_init(true, true, NULL);
	duo_add_devices();
	d.holds = is_add_link_cont;
	duo_open(0);
	duo_run(100);
	struct lgr *lgr = duo_lgr(host);
	ck_assert_int_eq(lgr->state, LGR_FORMING);
	ck_assert_int_eq(lgr->flow[LLC_FLOW_LINK].step, host == A ? LLC_WAIT_ADD_CONT : LLC_WAIT_ADD_CONT_RSP);
	msg.add_link_cont.link_num = lgr->flow[LLC_FLOW_LINK].number;
	msg.add_link_cont.left_cnt = _i >= 2 ? 1 : 0;
	inject(host, &msg);
	ck_assert_uint_eq(lgr->remote_rmb_cnt, 1);
	d.holds = NULL;
	duo_run(2000);
	ck_assert(BOTH(0, ESTABLISHED));
	ck_assert_uint_eq(duo_lgr(host)->remote_rmb_cnt, 1);
	ck_assert_uint_eq(duo_write(&c[0], 9000), 9000);
	ck_assert_uint_eq(duo_write(&s[0], 9000), 9000);
	duo_run(50);
	ck_assert_uint_eq(duo_read(&c[0]), 9000);
	ck_assert_uint_eq(duo_read(&s[0]), 9000);
}

static void
set_keepalive(unsigned host, uint32_t ms)
{
	struct smcr_config cfg = d.eng[host]->cfg;

	cfg.keepalive_ms = ms;
	cfg.keepalive_answer_ms = 200;
	smcr_reconfigure(d.eng[host], &cfg);
}

START_TEST(keepalive_can_be_switched_off_and_on_while_links_live)
{
	duo_begin(&keepalive);
	duo_run(2500);
	set_keepalive(A, 0);
	set_keepalive(B, 0);
	unsigned tests = duo_count(A, "TEST LINK") + duo_count(B, "TEST LINK");
	duo_run(20000);
	ck_assert_uint_eq(duo_count(A, "TEST LINK") + duo_count(B, "TEST LINK"), tests);
	set_keepalive(B, 1000);
	duo_run(3500);
	ck_assert_uint_ge(duo_count(B, "TEST LINK"), 2);
	ck_assert(!IS(c[0], CLOSED));
}

/* -- the end of groups -- */

static const struct smcr_config short_idle = { .group_idle_ms = 500 };

static const char *
group_down_reason(unsigned host)
{
	static struct smcr_log down;
	struct smcr_log l;

	down.text[0] = '\0';
	while (smcr_next_log(d.eng[host], &l))
		if (l.type == SMCR_LOG_GROUP_DOWN)
			down = l;
	return down.text;
}

/* Both sides drain at once: each may have ended the link before it saw that the other wants the same. */
START_LOOP_TEST(a_link_that_breaks_while_its_group_is_deleted_has_ended_in_order, 0, 2)
{
	unsigned host = (unsigned)_i, ended = 0;
	struct smcr_log l;

	duo_begin(NULL);
	lgr_delete(duo_lgr(host), LLC_DELETE_OPERATOR);
	duo_lose(duo_link(host), "a work request failed");
	while (smcr_next_log(d.eng[host], &l)) {
		ck_assert_int_ne(l.type, SMCR_LOG_LINK_DOWN);
		ended += l.type == SMCR_LOG_LINK_ENDED;
	}
	ck_assert_uint_eq(ended, 1);
}

/* The server's daemon stops, say: nothing was lost, at either end. Not so when it says that it is no orderly end. */
START_LOOP_TEST(a_group_that_its_server_deletes_ends_as_the_server_says, 0, 2)
{
	bool is_orderly = _i == 0;
	unsigned ended = 0, down = 0;
	struct smcr_log l;

	duo_begin(NULL);
	if (is_orderly) {
		lgr_delete(duo_lgr(B), LLC_DELETE_OPERATOR);
	} else {
		const struct llc_msg msg = { .type = LLC_DELETE_LINK,
			.delete_link = { .all = true, .reason = LLC_DELETE_OPERATOR } };

		duo_inject(duo_link(A), &msg);
	}
	duo_run(100);
	while (smcr_next_log(d.eng[A], &l)) {
		ended += l.type == SMCR_LOG_LINK_ENDED;
		down += l.type == SMCR_LOG_LINK_DOWN;
		if (l.type == SMCR_LOG_LINK_ENDED || l.type == SMCR_LOG_LINK_DOWN)
			ck_assert_str_eq(l.text, "DELETE LINK: operator");
	}
	ck_assert_uint_eq(ended, is_orderly);
	ck_assert_uint_eq(down, !is_orderly);
}

/* -- devices -- */

static const struct rnic_ops *full;

static void
query_small(struct rnic_dev *dev, struct rnic_info *info)
{
	full->query(dev, info);
	info->max_sq = 24;
	info->max_rq = 10;
}

static int
qp_create_small(struct rnic_pd *pd, const struct rnic_qp_attr *attr, struct rnic_qp **qp)
{
	ck_assert_uint_eq(attr->sq_depth, 24);
	ck_assert_uint_eq(attr->rq_depth, 10);
	return full->qp_create(pd, attr, qp);
}

/* Its queues are shorter than what is configured: so are those of the link, and it works. */
START_TEST(a_link_keeps_to_the_limits_of_its_device)
{
	static struct rnic_ops mine;
	size_t sent = 0, got = 0;

	duo_init(true, true, NULL);
	full = d.dev[0]->ops;
	mine = *full;
	mine.query = query_small;
	mine.qp_create = qp_create_small;
	d.dev[0]->ops = &mine;
	duo_connect(0, 1, 100);
	for (unsigned i = 0; i < 200; i++) {
		sent += duo_write(&c[0], 5000) + duo_write(&s[0], 3000);
		duo_run(5);
		got += duo_read(&c[0]) + duo_read(&s[0]);
	}
	ck_assert_uint_gt(sent, 1000000);
	ck_assert_uint_eq(got, sent);
}

static bool (*own_events)(struct rnic_dev *, struct rnic_event *);
static unsigned troubles;

static bool
with_trouble(struct rnic_dev *dev, struct rnic_event *ev)
{
	if (troubles == 0)
		return own_events(dev, ev);
	troubles--;
	*ev = (struct rnic_event){ .type = RNIC_EV_TROUBLE, .why = "no memory left" };
	return true;
}

/* RNIC_EV_TROUBLE is a line in the log, and everything goes on. */
START_TEST(what_troubles_a_device_is_logged)
{
	const struct rnic_ops *ops;
	struct smcr_log l;
	unsigned lines = 0;

	duo_begin(NULL);
	while (smcr_next_log(d.eng[0], &l))
		ck_assert_str_eq(l.device, l.type == SMCR_LOG_LINK_UP ? "a" : "");
	ops = d.dev[0]->ops;
	struct rnic_ops mine = *ops;
	own_events = ops->poll_event;
	mine.poll_event = with_trouble;
	d.dev[0]->ops = &mine;
	troubles = 1;
	duo_run(10);
	d.dev[0]->ops = ops;
	for (; smcr_next_log(d.eng[0], &l); lines++) {
		ck_assert_int_eq(l.type, SMCR_LOG_DEVICE);
		ck_assert_str_eq(l.device, "a");
		ck_assert_str_eq(l.text, "no memory left");
	}
	ck_assert_uint_eq(lines, 1);
	ck_assert(BOTH(0, ESTABLISHED));
}

START_TEST(an_idle_group_is_ended_by_the_server)
{
	duo_begin(&short_idle);
	duo_run(2000);
	ck_assert_ptr_nonnull(duo_lgr(A)); /* not while it has a connection */
	duo_close(0);
	duo_run(400);
	ck_assert_ptr_nonnull(duo_lgr(A));
	duo_run(300);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 1);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK"), 0);
	ck_assert(smcr_idle(d.eng[A]) && smcr_idle(d.eng[B]));
	for (unsigned h = 0; h < 2; h++)
		ck_assert_str_eq(group_down_reason(h), "DELETE LINK: idle");
	duo_connect(1, 1, 100);
}

START_TEST(a_new_connection_stops_the_idle_timer)
{
	duo_begin(&short_idle);
	duo_close(0);
	duo_run(400);
	duo_open(1);
	duo_run(1000);
	ck_assert(IS(c[1], ESTABLISHED) && !IS(c[1], CLOSED));
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 0);
}

START_LOOP_TEST(delete_link_for_all_from_either_side_ends_group_and_connections, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	unsigned host = (unsigned)_i; /* that receives it */

	duo_begin(NULL);
	msg.delete_link.all = true;
	msg.delete_link.reason = LLC_DELETE_OPERATOR;
	inject(host, &msg);
	duo_run(1000);
	ck_assert(smcr_idle(d.eng[A]) && smcr_idle(d.eng[B]));
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_ne(c[0].reason, SMCR_OK);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), host == B ? 1 : 0);
}

START_LOOP_TEST(delete_link_for_all_ends_first_contact_at_once, 0, 4)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	unsigned host = (unsigned)_i % 2;

	duo_init(true, true, NULL);
	duo_open(0);
	duo_until(B, "ADD LINK");
	if (host == A)
		duo_until(A, "CONFIRM LINK response");
	ck_assert_int_eq(duo_lgr(host)->state, LGR_FORMING);
	msg.delete_link.all = true;
	msg.delete_link.orderly = _i >= 2;
	msg.delete_link.reason = LLC_DELETE_OPERATOR;
	inject(host, &msg);
	ck_assert_ptr_null(duo_lgr(host));
	duo_run(10);
	ck_assert_int_eq(host == A ? c[0].reason : s[0].reason, SMCR_R_GROUP_DELETED);
}

START_TEST(a_group_that_is_being_deleted_is_never_offered)
{
	duo_begin(&short_idle);
	duo_close(0);
	duo_run(10);
	lgr_delete(duo_lgr(B), LLC_DELETE_OPERATOR);
	duo_connect(1, 1, 200);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 2);
}

START_LOOP_TEST(delete_link_of_an_unknown_link_is_answered_with_the_reason, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	unsigned host = (unsigned)_i;

	duo_begin(NULL);
	msg.delete_link.link_num = 200;
	msg.delete_link.reason = LLC_DELETE_LOST_PATH;
	inject(host, &msg);
	duo_run(20);
	ck_assert_uint_eq(duo_count(host, "DELETE LINK response"), 1);
	ck_assert_ptr_nonnull(duo_lgr(host));
}

START_TEST(a_link_that_breaks_resets_its_connections_and_the_next_one_makes_a_group)
{
	duo_begin(NULL);
	ck_assert(sim_break(d.fab, 0, SIM_CUT_RESET));
	duo_run(5000);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_R_LINK_LOST);
	ck_assert(smcr_idle(d.eng[A]) && smcr_idle(d.eng[B]));
	duo_connect(1, 1, 200);
}

/* RFC cursors on one side are enough: both follow (facts F.8). */
static const struct smcr_config rfc = { .rfc_cursors = true };

START_LOOP_TEST(eye_catchers_are_a_property_of_the_group, 0, 2)
{
	duo_begin(_i == 0 ? NULL : &rfc);
	ck_assert(duo_lgr(A)->eye_catcher == (_i == 1));
	ck_assert(duo_lgr(B)->eye_catcher == (_i == 1));
	ck_assert_uint_eq(c[0].conn->tx.space.base, _i == 1 ? 4 : 0);
	ck_assert_uint_eq(s[0].conn->rx.space.base, _i == 1 ? 4 : 0);
}
