/* Several links in a group, and connections that survive the loss of one: RFC 7609 2.2, 2.3, 3.5.1.6, 3.5.5, 4.6, C.8. */
#include "duo.h"
#include "smcr/data/sndbuf.h"
#include "smcr/group/llc_impl.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

#define CONNS 40

static const struct smcr_config limit_8 = { .links_max = 8, .rmb_elems = 1 };

static const struct smcr_config limit_1 = { .links_max = 1 };

static const struct smcr_config keepalive = { .keepalive_ms = 500, .keepalive_answer_ms = 500, .last_link_ms = 1 };

static const struct smcr_config quick_retry = { .add_link_retry_ms = 1000, .add_link_retry_max_ms = 4000 };

/* Two hosts with so many devices, and a connection. */
static void
begin(unsigned devs_a, unsigned devs_b, const struct smcr_config *change)
{
	duo_init(true, true, change);
	while (--devs_a > 0)
		duo_add_device(A);
	while (--devs_b > 0)
		duo_add_device(B);
	duo_connect(0, 1, 200);
}

static const char *
type_of(unsigned host)
{
	struct smcr_group_info info;
	uint32_t pos = 0;

	ck_assert(smcr_group_next(d.eng[host], &pos, &info));
	return info.type;
}

/* What is shown of the next try at a missing link. */
static int64_t
retry_in(unsigned host)
{
	struct smcr_group_info info;
	uint32_t pos = 0;

	ck_assert(smcr_group_next(d.eng[host], &pos, &info));
	return info.add_retry_ns;
}

/* Both ways, until all has arrived; lost or wrong bytes fail. */
static void
transfer(struct duo_end *x, struct duo_end *y, size_t len)
{
	uint64_t to_x = y->written + len, to_y = x->written + len;

	for (unsigned spin = 0; x->read < to_x || y->read < to_y; spin++) {
		ck_assert_uint_lt(spin, 100000);
		ck_assert(!IS(*x, CLOSED) && !IS(*y, CLOSED));
		duo_write(x, to_y - x->written);
		duo_write(y, to_x - y->written);
		duo_run(1);
		duo_read(x);
		duo_read(y);
	}
}

UNIT_CASE(duo_case(tc, 200));

/* -- links come -- */

START_TEST(two_devices_on_both_sides_make_two_symmetric_links_at_first_contact)
{
	unsigned at = 0;

	begin(2, 2, NULL);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(A), "symmetric");
	ck_assert_str_eq(type_of(B), "symmetric");
	while (strcmp(d.seen[at].text, "ADD LINK") != 0)
		at++;
	/* Figure 9 */
	duo_expect(at, B, "ADD LINK");
	duo_expect(at + 1, A, "ADD LINK response");
	duo_expect(at + 2, B, "ADD LINK CONTINUATION");
	duo_expect(at + 3, A, "ADD LINK CONTINUATION response");
	duo_expect(at + 4, B, "CONFIRM LINK");
	duo_expect(at + 5, A, "CONFIRM LINK response");
	ck_assert_ptr_ne(duo_link_nr(A, 1)->dev, duo_link_nr(A, 2)->dev);
	ck_assert_ptr_ne(duo_link_nr(B, 1)->dev, duo_link_nr(B, 2)->dev);
	transfer(&c[0], &s[0], 100000);
}

START_LOOP_TEST(one_device_on_one_side_makes_an_asymmetric_link, 0, 2)
{
	unsigned one = (unsigned)_i;

	begin(one == A ? 1 : 2, one == B ? 1 : 2, NULL);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(one), "asymmetric local");
	ck_assert_str_eq(type_of(1 - one), "asymmetric peer");
	transfer(&c[0], &s[0], 100000);
}

START_TEST(one_device_on_both_sides_is_rejected_for_want_of_another_path)
{
	begin(1, 1, NULL);
	duo_expect_links(1);
	ck_assert_uint_eq(duo_count(A, "ADD LINK response"), 1);
	ck_assert_uint_eq(d.eng[B]->ctr.add_link_rejected, 1);
	ck_assert_str_eq(type_of(A), "single");
}

static struct rnic_gid far_from_home;

static bool
may_dial(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	(void)middle;
	return ctx == NULL || memcmp(to, &far_from_home, sizeof(*to)) != 0;
}

/* The server's second device is where we may not connect: the offer is rejected, logged, and counted. */
START_TEST(a_link_to_a_place_that_is_not_allowed_is_rejected)
{
	duo_init(true, true, NULL);
	duo_add_device(A);
	struct rnic_info info = rnic_query(duo_add_device(B));
	far_from_home = info.gid;
	smcr_set_dial_policy(d.eng[A], may_dial, &d);
	duo_connect(0, 1, 200);
	duo_expect_links(1);
	ck_assert_uint_eq(d.eng[A]->ctr.refused_mpa_peers, 1);
	ck_assert_uint_eq(d.eng[A]->ctr.add_link_rejected, 1);
	ck_assert_uint_eq(rnic_query(d.more[A][0]).qp_cnt, 0);
	transfer(&c[0], &s[0], 100000);
}

START_LOOP_TEST(a_peer_that_names_no_number_of_links_goes_by_ours, 0, 2)
{
	unsigned host = (unsigned)_i;

	duo_init(true, true, NULL);
	d.eng[1 - host]->cfg.links_max = 0;
	duo_connect(0, 1, 1000);
	ck_assert_uint_eq(duo_lgr(host)->links_limit, 2);
}

static uint8_t told_links; /* in the client's answer to CONFIRM LINK */

static bool
reads_confirm_link(const struct sim_msg *msg)
{
	struct llc_msg m;

	if (msg->op == RNIC_WR_SEND && msg->from == d.dev[A] && msg->data[0] == LLC_CONFIRM_LINK &&
	    llc_decode((struct span){ .ptr = msg->data, .len = msg->len }, LLC_VERSION, &m) > 0)
		told_links = m.confirm_link.max_links;
	return false;
}

/* 2.2.2: a client's number cannot exceed its server's, and 0 of a server's leaves ours. */
START_LOOP_TEST(a_client_tells_no_more_links_than_its_server, 0, 4)
{
	static const struct {
		uint32_t server, client, told;
	} rows[] = { { 3, 8, 3 }, { 2, 8, 2 }, { 8, 3, 3 }, { 0, 2, 2 } };

	told_links = 99;
	duo_init(true, true, NULL);
	d.holds = reads_confirm_link;
	d.eng[A]->cfg.links_max = rows[_i].client;
	d.eng[B]->cfg.links_max = rows[_i].server;
	duo_connect(0, 1, 1000);
	ck_assert_uint_eq(told_links, rows[_i].told);
	ck_assert_uint_eq(duo_lgr(A)->links_limit, rows[_i].told);
}

START_TEST(no_link_is_offered_beyond_the_agreed_number)
{
	begin(2, 2, &limit_1);
	duo_expect_links(1);
	ck_assert_uint_eq(duo_count(B, "ADD LINK"), 0);
}

START_TEST(eight_devices_make_eight_links_with_many_rmbs_on_either_side)
{
	begin(8, 8, &limit_8);
	duo_run(500);
	duo_expect_links(8);
	/* One element an RMB: each connection brings one on either side, named in CONTINUATIONs for more than three links. */
	duo_connect(1, 5, 500);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert(BOTH(i, ESTABLISHED));
		transfer(&c[i], &s[i], 30000);
	}
	ck_assert_uint_gt(duo_count(A, "CONFIRM RKEY CONTINUATION"), 0);
	ck_assert_uint_gt(duo_count(B, "CONFIRM RKEY CONTINUATION"), 0);
	duo_expect_links(8);
}

static const struct smcr_config limit_2_small_rmbs = { .rmb_elems = 1 };

/* First 6 RMBs a side and one link; then both hosts get a second device. */
START_TEST(a_new_link_learns_all_rmbs_in_continuations)
{
	begin(1, 1, &limit_2_small_rmbs);
	duo_connect(1, 5, 500);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, 6);
	duo_add_devices();
	duo_run(500);
	duo_expect_links(2);
	ck_assert_uint_eq(duo_count(B, "ADD LINK CONTINUATION"), 3);
	ck_assert_uint_eq(duo_count(A, "ADD LINK CONTINUATION response"), 3);
	for (unsigned i = 0; i < 6; i++)
		transfer(&c[i], &s[i], 30000);
}

static bool
is_cont(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_ADD_LINK_CONT;
}

static void
cont_from_peer(unsigned host, uint8_t left)
{
	const struct llc_flow *f = &duo_lgr(host)->flow[LLC_FLOW_LINK];
	struct llc_msg msg = { .type = LLC_ADD_LINK_CONT, .response = host == B };

	msg.add_link_cont.link_num = f->number;
	msg.add_link_cont.left_cnt = left;
	duo_inject(f->link, &msg);
}

/* Linux counts connections and notices at the next CONTINUATION that some are gone. */
START_LOOP_TEST(a_peer_may_have_fewer_rmbs_left_than_it_said, 0, 4)
{
	unsigned host = (unsigned)_i / 2; /* that hears of it */
	bool more = _i % 2 == 1;

	begin(1, 1, &limit_8);
	d.holds = is_cont;
	duo_add_devices();
	duo_run(20);
	cont_from_peer(host, 9);
	ck_assert_uint_eq(duo_lgr(host)->flow[LLC_FLOW_LINK].peer_left, 9 - LLC_PAIRS_PER_CONT);
	cont_from_peer(host, more ? 9 - LLC_PAIRS_PER_CONT + 1 : 1);
	ck_assert_uint_eq(d.eng[host]->ctr.bad_llc, more);
	ck_assert((duo_lgr(host) == NULL) == more);
}

/* It stood behind other messages until its link was lost, and the next exchange is under way. */
START_LOOP_TEST(a_continuation_for_a_link_that_is_no_more_is_ignored, 0, 4)
{
	unsigned host = (unsigned)_i / 2;
	bool past = _i % 2 == 0;
	struct llc_msg msg = { .type = LLC_ADD_LINK_CONT, .response = host == B };

	begin(2, 2, NULL);
	msg.add_link_cont.link_num = past ? 2 : 1;
	duo_lose(duo_link_nr(A, 2), "test");
	uint64_t ignored = d.eng[host]->ctr.llc_ignored;
	duo_inject(duo_link_nr(host, 1), &msg);
	ck_assert_uint_eq(d.eng[host]->ctr.llc_ignored, ignored + past);
	ck_assert_uint_eq(d.eng[host]->ctr.bad_llc, !past);
	if (!past)
		return;
	d.holds = is_cont;
	duo_run(100);
	ck_assert_int_eq(
	    duo_lgr(host)->flow[LLC_FLOW_LINK].step, host == A ? LLC_WAIT_ADD_CONT : LLC_WAIT_ADD_CONT_RSP);
	ignored = d.eng[host]->ctr.llc_ignored;
	duo_inject(duo_link_nr(host, 1), &msg);
	ck_assert_uint_eq(d.eng[host]->ctr.llc_ignored, ignored + 1);
	ck_assert_uint_eq(d.eng[host]->ctr.bad_llc, 0);
	d.holds = NULL;
	duo_run(500);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
}

START_LOOP_TEST(a_device_that_appears_on_either_side_brings_a_link, 0, 2)
{
	unsigned first = (unsigned)_i;

	begin(1, 1, NULL);
	duo_add_device(first);
	duo_run(500);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(first), "asymmetric peer");
	duo_add_device(1 - first);
	duo_run(500);
	/* Added first, then the asymmetric one is deleted. */
	duo_expect_links(2);
	ck_assert_str_eq(type_of(first), "symmetric");
	ck_assert_uint_eq(d.eng[B]->ctr.asymmetric_replaced, 1);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK response"), 1);
	/* 2 was rejected at first contact, 3 was the asymmetric one. */
	ck_assert_ptr_null(duo_link_nr(A, 3));
	ck_assert_ptr_nonnull(duo_link_nr(A, 4));
	transfer(&c[0], &s[0], 100000);
}

static bool
is_add_link(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_ADD_LINK;
}

/* Whether the server does anything about it is not known: Linux drops what comes while it is busy. */
START_TEST(a_client_tells_of_its_device_until_it_has_a_link)
{
	static const struct smcr_config brief_retry = { .add_link_retry_ms = 100 };
	const struct llc_msg first = { .type = LLC_ADD_LINK, .response = true, .add_link.rejected = true };

	begin(1, 1, &brief_retry);
	d.holds = is_add_link;
	unsigned told = duo_count(A, "ADD LINK");
	duo_add_device(A);
	/* At once, though something else goes first. */
	ck_assert_int_eq(link_send_llc(duo_link(A), &first), 0);
	duo_run(50);
	ck_assert_uint_eq(duo_count(A, "ADD LINK"), told + 1);
	duo_run(400);
	ck_assert_uint_ge(duo_count(A, "ADD LINK"), told + 2);
	d.holds = NULL;
	duo_run(2000);
	duo_expect_links(2);
}

/* Bit 0: which side's comes first; the other's while the exchange for the first goes on. */
START_LOOP_TEST(a_device_that_appears_during_an_exchange_is_not_forgotten, 0, 2)
{
	unsigned first = (unsigned)_i % 2;

	begin(1, 1, NULL);
	duo_add_device(first);
	duo_until(B, "ADD LINK CONTINUATION");
	duo_add_device(1 - first);
	duo_run(500);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(A), "symmetric");
}

/* Three devices on a host, the second on the interface of the first; two on the other. */
START_LOOP_TEST(a_link_rather_has_an_interface_of_its_own, 0, 2)
{
	unsigned host = (unsigned)_i;

	duo_init(true, true, NULL);
	duo_add_neighbour(host);
	struct rnic_dev *own = duo_add_device(host);
	duo_add_device(1 - host);
	duo_open(0);
	duo_run(500);
	duo_expect_links(2);
	ck_assert_ptr_eq(duo_link_nr(host, 1)->dev, d.dev[host]);
	ck_assert_ptr_eq(duo_link_nr(host, 2)->dev, own);
	/* It takes any other device when that one is lost, as a device may be lost alone. */
	sim_port(own, RNIC_PORT_DOWN);
	duo_run(1000);
	duo_expect_links(2);
	ck_assert_ptr_eq(duo_link_nr(host, 3)->dev, d.more[host][0]);
	ck_assert_str_eq(type_of(host), "symmetric");
}

static const struct smcr_config limit_3 = { .links_max = 3 };

START_TEST(devices_of_one_interface_are_used_when_there_is_no_other)
{
	duo_init(true, true, &limit_3);
	for (unsigned i = 0; i < 2; i++) {
		duo_add_neighbour(A);
		duo_add_neighbour(B);
	}
	duo_open(0);
	duo_run(500);
	duo_expect_links(3);
	ck_assert_str_eq(type_of(A), "symmetric");
}

/* The interface that only the asymmetric link uses is not given up for another device of the one in use. */
START_LOOP_TEST(an_asymmetric_link_is_not_replaced_by_one_on_the_same_interface, 0, 2)
{
	unsigned host = (unsigned)_i;

	duo_init(true, true, NULL);
	duo_add_neighbour(host);
	struct rnic_dev *own = duo_add_device(host);
	duo_open(0);
	duo_run(500);
	duo_expect_links(2);
	ck_assert_ptr_eq(duo_link_nr(host, 2)->dev, own);
	ck_assert_str_eq(type_of(host), "asymmetric peer");
	duo_add_device(1 - host);
	duo_run(500);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(host), "symmetric");
	for (unsigned nr = 2; nr < 6; nr++)
		if (duo_link_nr(host, (uint8_t)nr) != NULL)
			ck_assert_ptr_eq(duo_link_nr(host, (uint8_t)nr)->dev, own);
}

START_TEST(connections_are_spread_over_the_links_by_each_side)
{
	begin(2, 2, NULL);
	duo_connect(1, 9, 500);
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(duo_link_nr(h, 1)->conn_cnt, 5);
		ck_assert_uint_eq(duo_link_nr(h, 2)->conn_cnt, 5);
	}
}

/* Linux takes the RToken of a Confirm for that of the link which its own Accept named. */
START_LOOP_TEST(a_confirm_names_the_link_of_an_accept_that_is_not_from_smcrd, 0, 2)
{
	bool foreign = _i == 1;
	struct clc_msg msg;

	begin(2, 2, NULL);
	/* Each side would choose another link for the next one. */
	failover_ask(c[0].conn, duo_link_nr(A, 2));
	failover_ask(s[0].conn, duo_link_nr(B, 1));
	duo_run(10);
	duo_open(1);
	s[1].hold = true;
	duo_run(10);
	ck_assert_int_gt(clc_decode((struct span){ s[1].out, s[1].out_len }, &msg), 0);
	s[1].out_len = 0;
	ck_assert_uint_eq(msg.accept.qpn, duo_link_nr(B, 2)->qpn);
	msg.accept.ext.present = !foreign;
	duo_feed_msg(&c[1], &msg);
	duo_run(10);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(c[1].conn->link->number, foreign ? 2 : 1);
	transfer(&c[1], &s[1], 10000);
}

/* There is nothing to name then. */
START_TEST(an_accept_of_linux_for_a_link_that_is_lost_is_declined)
{
	struct clc_msg msg;

	begin(2, 2, NULL);
	duo_open(1);
	s[1].hold = true;
	duo_run(10);
	ck_assert_int_gt(clc_decode((struct span){ s[1].out, s[1].out_len }, &msg), 0);
	s[1].out_len = 0;
	msg.accept.ext.present = false;
	duo_lose(msg.accept.qpn == duo_link_nr(B, 1)->qpn ? duo_link_nr(A, 1) : duo_link_nr(A, 2), "test");
	duo_feed_msg(&c[1], &msg);
	duo_run(100);
	ck_assert(IS(c[1], FALLBACK));
	ck_assert_uint_eq(c[1].diag.local, CLC_DIAG_NO_ACTIVE_LINK);
	transfer(&c[0], &s[0], 10000);
}

START_TEST(rebalance_moves_connections_to_a_new_link)
{
	begin(1, 1, NULL);
	duo_connect(1, 9, 500);
	for (unsigned i = 0; i < 10; i++)
		transfer(&c[i], &s[i], 1000);
	duo_add_devices();
	duo_run(500);
	ck_assert_uint_eq(duo_link_nr(A, 1)->conn_cnt, 10);
	ck_assert_int_eq(smcr_rebalance(d.eng[A], duo_lgr(A)->id), 5);
	ck_assert_int_eq(smcr_rebalance(d.eng[B], 0), 5);
	ck_assert_int_eq(smcr_rebalance(d.eng[B], 99), -ENOENT);
	for (unsigned i = 0; i < 10; i++)
		transfer(&c[i], &s[i], 50000);
	ck_assert_uint_eq(duo_link_nr(A, 1)->conn_cnt, 5);
	ck_assert_uint_eq(duo_link_nr(B, 3)->conn_cnt, 5);
	ck_assert_uint_eq(d.eng[A]->ctr.bytes_replayed, 0);
	ck_assert_uint_eq(d.eng[A]->ctr.failover_validations, 5);
	ck_assert_uint_eq(d.eng[B]->ctr.failover_validations, 5);
}

/* -- links go -- */

START_LOOP_TEST(a_broken_link_moves_its_connections_and_is_made_again, 0, 6)
{
	begin(2, 2, NULL);
	duo_connect(1, 9, 500);
	for (unsigned i = 0; i < 10; i++) {
		duo_write(&c[i], 60000);
		duo_write(&s[i], 60000);
	}
	ck_assert(sim_break(d.fab, (unsigned)_i % 2, (enum sim_cut)(_i / 2)));
	for (unsigned i = 0; i < 10; i++)
		transfer(&c[i], &s[i], 100000);
	duo_run(5000);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(A), "symmetric");
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(d.eng[h]->ctr.failovers, 1);
		ck_assert_uint_eq(d.eng[h]->ctr.conns_moved, 5);
		ck_assert_uint_eq(d.eng[h]->ctr.failover_lost, 0);
		ck_assert_uint_eq(d.eng[h]->ctr.links_down, 1);
	}
	ck_assert_uint_ge(d.eng[A]->ctr.links_lost + d.eng[B]->ctr.links_lost, 1);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK response"), 1);
	/* Numbers are not used again. */
	ck_assert_ptr_nonnull(duo_link_nr(A, 3));
}

/* A link that is gone stays in its slot until the slot is needed, and in any case while a connection has it. */
START_TEST(a_slot_that_a_connection_holds_is_not_given_to_a_new_link)
{
	struct link *link;

	begin(1, 1, NULL);
	struct lgr *lgr = duo_lgr(A);
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		link = &lgr->links[i];
		if (link->state != LINK_FREE)
			continue;
		*link = (struct link){ .lgr = lgr, .slot = i, .state = LINK_GONE, .gone_ns = i, .conn_cnt = 1 };
		list_init(&link->eng_node);
		list_init(&link->wait_node);
	}
	ck_assert_int_eq(link_new(lgr, d.dev[A], &link), -ENOSPC);
	struct link *freed = &lgr->links[LINK_SLOTS - 1];
	freed->conn_cnt = 0;
	ck_assert_int_eq(link_new(lgr, d.dev[A], &link), 0);
	ck_assert_ptr_eq(link, freed);
	link_free(link);
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state == LINK_GONE) {
			lgr->links[i].conn_cnt = 0;
			lgr->links[i].state = LINK_FREE;
		}
}

START_TEST(link_numbers_are_not_used_again_before_all_were)
{
	begin(2, 2, NULL);
	duo_lgr(B)->next_link_number = 255;
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(sim_break(d.fab, 1, SIM_CUT_RESET));
		duo_run(1000);
		duo_expect_links(2);
	}
	/* After 1 and 2: 255, then from the beginning, past 0 and what is in use. */
	ck_assert_ptr_null(duo_link_nr(A, 255));
	ck_assert_ptr_nonnull(duo_link_nr(B, 3));
	ck_assert_ptr_null(duo_link_nr(B, 0));
	transfer(&c[0], &s[0], 10000);
}

START_TEST(with_the_last_link_connections_are_reset_and_the_next_one_makes_a_group)
{
	begin(2, 2, &keepalive);
	sim_port(d.dev[A], RNIC_PORT_DOWN);
	sim_port(d.more[A][0], RNIC_PORT_DOWN);
	duo_run(3000);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_eq(s[0].reason, SMCR_R_LINK_LOST);
	ck_assert_uint_eq(duo_lgr_cnt(A) + duo_lgr_cnt(B), 0);
	sim_port(d.more[A][0], RNIC_PORT_UP);
	duo_connect(1, 1, 1000);
}

static const struct smcr_config waits_5_s = { .keepalive_ms = 500, .keepalive_answer_ms = 500, .last_link_ms = 5000 };

/* The last link of a group goes on with its port: TCP would. Of the two at first one moves its connections to the other. */
START_LOOP_TEST(the_last_link_waits_for_its_port, 0, 4)
{
	unsigned host = (unsigned)_i % 2, devs = (unsigned)_i / 2 + 1;

	begin(devs, devs, &waits_5_s);
	if (devs == 2) {
		sim_port(d.more[host][0], RNIC_PORT_DOWN);
		duo_run(1000); /* another link to the other side's second device takes its place */
		transfer(&c[0], &s[0], 1000);
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t down = smcr_counters(d.eng[A])->links_down;

		sim_port(d.dev[host], RNIC_PORT_DOWN);
		ck_assert_uint_eq(duo_write(&c[0], 1000), 1000);
		duo_run(3000);
		duo_open(1 + i); /* another one does not wait */
		duo_run(500);
		ck_assert(!IS(c[0], CLOSED) && !IS(s[0], CLOSED) && BOTH(1 + i, FALLBACK));
		sim_port(d.dev[host], RNIC_PORT_UP);
		duo_run(2000);
		ck_assert_uint_eq(duo_read(&s[0]), 1000);
		transfer(&c[0], &s[0], 100000);
		ck_assert_uint_eq(smcr_counters(d.eng[A])->links_down, down);
	}
	sim_port(d.dev[host], RNIC_PORT_DOWN);
	duo_run(4500);
	ck_assert(!IS(c[0], CLOSED) && !IS(s[0], CLOSED));
	duo_run(3000);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_R_LINK_LOST);
}

/* Without an answer over the other link, too. */
START_TEST(where_another_link_is_a_port_is_left_at_once)
{
	begin(2, 2, &waits_5_s);
	sim_freeze(d.more[B][0], true);
	sim_port(d.dev[A], RNIC_PORT_DOWN);
	duo_run(1);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->links_down, 1);
	sim_freeze(d.more[B][0], false);
	duo_run(2000);
	transfer(&c[0], &s[0], 10000);
}

START_LOOP_TEST(a_link_of_roce_does_not_wait_for_its_port, 0, 2)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

	duo_init_as(roce, true, &waits_5_s);
	duo_connect(0, 1, 1000);
	sim_port(d.dev[_i], RNIC_PORT_DOWN);
	duo_run(10);
	ck_assert(_i == A ? IS(c[0], CLOSED) : IS(s[0], CLOSED));
}

START_LOOP_TEST(a_port_that_comes_back_brings_the_link_back, 0, 2)
{
	begin(2, 2, NULL);
	struct rnic_dev *dev = _i == A ? d.more[A][0] : d.more[B][0];
	sim_port(dev, RNIC_PORT_DOWN);
	duo_run(1000);
	/* One link is left, and an asymmetric one beside it where the other side still has two devices. */
	transfer(&c[0], &s[0], 100000);
	sim_port(dev, RNIC_PORT_UP);
	duo_run(1000);
	duo_expect_links(2);
	ck_assert_str_eq(type_of(A), "symmetric");
	transfer(&c[0], &s[0], 100000);
}

START_TEST(devices_have_the_engines_time)
{
	duo_init(true, true, NULL);
	duo_run(100);
	smcr_set_now(d.eng[A], d.now_ns + 5);
	ck_assert_int_eq(d.dev[A]->now_ns, d.now_ns + 5);
	struct rnic_dev *late = duo_add_device(A);
	ck_assert_int_eq(late->now_ns, d.now_ns + 5);
	duo_run(1);
	ck_assert_int_eq(late->now_ns, d.now_ns);
}

/* The engine reports the device once, does not use it any further though its port is not down, and keeps it until its owner
 * removes it. */
START_LOOP_TEST(a_device_that_is_gone_takes_its_links_and_nothing_else, 0, 4)
{
	unsigned host = (unsigned)_i % 2;
	struct rnic_dev *dev;

	begin(2, 2, NULL);
	dev = _i < 2 ? d.dev[host] : d.more[host][0];
	(void)smcr_take_device_changes(d.eng[host]);
	ck_assert(!smcr_device_gone(d.eng[host], dev));
	sim_gone(dev);
	duo_run(1000);
	ck_assert(smcr_take_device_changes(d.eng[host]));
	ck_assert(!smcr_take_device_changes(d.eng[host]));
	ck_assert(!smcr_take_device_changes(d.eng[1 - host]));
	ck_assert(smcr_device_gone(d.eng[host], dev));
	ck_assert_int_eq(rnic_query(dev).port, RNIC_PORT_UP);
	ck_assert_uint_eq(rnic_query(dev).qp_cnt, 0);
	transfer(&c[0], &s[0], 100000);
	/* Longer than a missing link waits to be tried again. */
	duo_run(30000);
	ck_assert_uint_eq(rnic_query(dev).qp_cnt, 0);
	smcr_remove_device(d.eng[host], dev);
	ck_assert(!smcr_device_gone(d.eng[host], dev));
	transfer(&s[0], &c[0], 100000);
}

/* The memory stays with the queue pair, the device with its queue pairs, and the connections go on. */
START_LOOP_TEST(a_device_ends_behind_its_queue_pairs, 0, 4)
{
	unsigned host = (unsigned)_i % 2;
	struct rnic_dev *dev;
	uint32_t mrs;

	begin(2, 2, NULL);
	dev = _i < 2 ? d.dev[host] : d.more[host][0];
	mrs = rnic_query(dev).mr_cnt;
	sim_end_takes(d.fab, 3000 * DUO_MS);
	smcr_remove_device(d.eng[host], dev);
	transfer(&c[0], &s[0], 100000);
	duo_run(2000);
	ck_assert(smcr_device_gone(d.eng[host], dev));
	ck_assert_uint_eq(rnic_query(dev).qp_cnt, 1);
	ck_assert_uint_eq(rnic_query(dev).mr_cnt, mrs);
	duo_run(1500);
	ck_assert(!smcr_device_gone(d.eng[host], dev)); /* it is no more */
	transfer(&s[0], &c[0], 100000);
	sim_end_takes(d.fab, 0);
}

START_LOOP_TEST(the_operator_takes_a_link_out_without_replay, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(2, 2, NULL);
	duo_connect(1, 9, 500);
	for (unsigned i = 0; i < 10; i++)
		transfer(&c[i], &s[i], 10000);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 77), -ENOENT);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 1), 0);
	for (unsigned i = 0; i < 10; i++)
		transfer(&c[i], &s[i], 50000);
	duo_expect_links(1);
	ck_assert_ptr_null(duo_link_nr(A, 1));
	ck_assert_uint_eq(d.eng[A]->ctr.bytes_replayed + d.eng[B]->ctr.bytes_replayed, 0);
	ck_assert_uint_eq(d.eng[A]->ctr.links_lost + d.eng[B]->ctr.links_lost, 0);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 2), -EBUSY);
}

/* What the host has logged of the end of this link; "" when nothing. */
static const char *
ended_reason(unsigned host, uint8_t number)
{
	static struct smcr_log ended;
	struct smcr_log l;

	ended.text[0] = '\0';
	while (smcr_next_log(d.eng[host], &l))
		if (l.type == SMCR_LOG_LINK_ENDED && l.link == number)
			ended = l;
	return ended.text;
}

/* Each host says whose operator it was, although it is the server that deletes. */
START_LOOP_TEST(both_ends_say_whose_operator_took_a_link_out, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(2, 2, NULL);
	transfer(&c[0], &s[0], 10000);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 1), 0);
	duo_run(500);
	duo_expect_links(1);
	ck_assert_str_eq(ended_reason(host, 1), "DELETE LINK: operator");
	ck_assert_str_eq(ended_reason(1 - host, 1), "peer: operator");
}

/* Both operators mean the same link at the same time. */
START_TEST(both_operators_take_a_link_out)
{
	begin(2, 2, NULL);
	transfer(&c[0], &s[0], 10000);
	for (unsigned host = 0; host < 2; host++)
		ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 1), 0);
	duo_run(500);
	duo_expect_links(1);
	for (unsigned host = 0; host < 2; host++)
		ck_assert_str_eq(ended_reason(host, 1), "DELETE LINK: operator");
}

static const struct {
	uint32_t reason;
	const char *text;
} peers_deletions[] = {
	{ LLC_DELETE_OPERATOR, "peer: operator" },
	{ LLC_DELETE_ASYM_NOT_NEEDED, "peer: asymmetric link no longer needed" },
	{ LLC_DELETE_PROTOCOL, "peer: protocol violation" },
	{ 0, "peer: DELETE LINK" },
	{ 0xffffffff, "peer: DELETE LINK" },
};

/* What nobody here has asked for is the peer's, whatever it names as the reason; in order, or not from a server. */
START_LOOP_TEST(an_unrequested_deletion_is_the_peers, 0, 3 * 5)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	unsigned host = _i < 5 ? B : A;

	begin(2, 2, NULL);
	transfer(&c[0], &s[0], 10000);
	msg.delete_link.link_num = 1;
	msg.delete_link.orderly = _i < 10;
	msg.delete_link.reason = peers_deletions[_i % 5].reason;
	duo_inject(duo_link_nr(host, 2), &msg);
	duo_run(500);
	ck_assert_str_eq(ended_reason(host, 1), peers_deletions[_i % 5].text);
}

static bool
is_delete_link(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_DELETE_LINK;
}

static bool
is_delete_link_of_a(const struct sim_msg *msg)
{
	return is_delete_link(msg) && (msg->from == d.dev[A] || msg->from == d.more[A][0]);
}

/* The client closes a link at once, and what it answers goes over another one: no link is lost. */
START_LOOP_TEST(a_deleted_link_may_be_closed_before_the_answer, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(2, 2, NULL);
	transfer(&c[0], &s[0], 10000);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 1), 0);
	duo_until(B, "DELETE LINK");
	d.holds = is_delete_link_of_a;
	duo_run(20);
	ck_assert_ptr_null(duo_link_nr(A, 1));
	ck_assert_int_eq(duo_link_nr(B, 1)->state, LINK_LOST);
	ck_assert_str_eq(ended_reason(B, 1), host == B ? "DELETE LINK: operator" : "peer: operator");
	d.holds = NULL;
	duo_run(500);
	duo_expect_links(1);
}

/* This operator has asked for the end of link 1, and the peer deletes it for another reason, or link 2 for the same one. */
START_LOOP_TEST(a_deletion_other_than_the_one_asked_for_is_the_peers, 0, 4)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	unsigned host = (unsigned)_i / 2;
	bool other_link = _i % 2 == 1;

	begin(3, 3, &limit_8);
	duo_run(500);
	duo_expect_links(3);
	transfer(&c[0], &s[0], 10000);
	d.holds = is_delete_link;
	ck_assert_int_eq(smcr_link_delete(d.eng[host], duo_lgr(host)->id, 1), 0);
	msg.delete_link.link_num = other_link ? 2 : 1;
	msg.delete_link.orderly = true;
	msg.delete_link.reason = other_link ? LLC_DELETE_OPERATOR : LLC_DELETE_PROTOCOL;
	duo_inject(duo_link_nr(host, 3), &msg);
	duo_run(20);
	d.holds = NULL;
	duo_run(1000);
	ck_assert_str_eq(
	    ended_reason(host, other_link ? 2 : 1), other_link ? "peer: operator" : "peer: protocol violation");
}

/* A link that was taken out stays away until somebody asks for one. */
START_LOOP_TEST(the_operator_asks_for_a_link, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(2, 2, NULL);
	const uint32_t id = duo_lgr(host)->id;
	ck_assert_int_eq(smcr_link_add(d.eng[host], id), -EMLINK);
	ck_assert_int_eq(smcr_link_add(d.eng[host], id + 1), -ENOENT);
	ck_assert_int_eq(smcr_link_delete(d.eng[host], id, 1), 0);
	duo_run(5000);
	duo_expect_links(1);
	ck_assert(!timer_armed(&duo_lgr(A)->add_retry) && !timer_armed(&duo_lgr(B)->add_retry));
	ck_assert_int_eq(smcr_link_add(d.eng[host], id), 0);
	duo_run(500);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
	ck_assert_int_eq(smcr_link_add(d.eng[host], id), -EMLINK);
}

START_LOOP_TEST(a_link_needs_a_device_that_has_none, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(2, 2, NULL);
	sim_port(d.more[host][0], RNIC_PORT_DOWN);
	duo_run(1000);
	ck_assert_int_eq(smcr_link_add(d.eng[host], duo_lgr(host)->id), -ENODEV);
}

/* The wait for another try, which doubles, ends on the operator's word. */
START_TEST(a_planned_retry_is_made_at_once)
{
	begin(2, 2, NULL);
	sim_block_connect(d.more[A][0], true);
	sim_block_connect(d.more[B][0], true);
	duo_lose(duo_link_nr(B, 2), "cut");
	duo_run(30000);
	ck_assert(timer_armed(&duo_lgr(B)->add_retry));
	ck_assert_uint_gt(duo_lgr(B)->add_retry_ms, 1000);
	sim_block_connect(d.more[A][0], false);
	sim_block_connect(d.more[B][0], false);
	ck_assert_uint_eq(smcr_retry(d.eng[B], (const uint8_t[16]){ 77 }, "x").links, 0);
	ck_assert_uint_eq(smcr_retry(d.eng[B], NULL, NULL).links, 1);
	duo_run(500);
	duo_expect_links(2);
}

/* The server offers its only device again and again, for the sake of a client that gets another one; nobody misses a link. */
START_TEST(with_one_device_each_no_retry_is_shown)
{
	begin(1, 1, &quick_retry);
	for (unsigned i = 0; i < 20; i++) {
		duo_run(500);
		ck_assert_int_eq(retry_in(A), -1);
		ck_assert_int_eq(retry_in(B), -1);
	}
	ck_assert(timer_armed(&duo_lgr(B)->add_retry));
	ck_assert_uint_gt(d.eng[B]->ctr.add_link_rejected, 2);
	/* A device that has nothing to join yet is one to spare. */
	sim_block_connect(d.dev[B], true);
	duo_add_device(A);
	duo_run(300);
	ck_assert_int_gt(retry_in(A), 0);
}

START_TEST(the_retry_of_a_server_with_a_device_to_spare_is_shown)
{
	begin(2, 2, &quick_retry);
	ck_assert_int_eq(retry_in(B), -1);
	sim_block_connect(d.more[A][0], true);
	sim_block_connect(d.more[B][0], true);
	duo_lose(duo_link_nr(B, 2), "cut");
	duo_run(5000);
	ck_assert_int_gt(retry_in(B), 0);
	ck_assert_int_le(retry_in(B), 4000 * DUO_MS);
}

/* No rejection: the client may have a device to spare. */
START_TEST(the_retry_of_an_offer_without_an_answer_is_shown)
{
	begin(1, 1, &quick_retry);
	duo_run(100);
	ck_assert_int_eq(retry_in(B), -1);
	d.holds = is_add_link;
	for (unsigned i = 0; i < 100 && retry_in(B) < 0; i++)
		duo_run(100);
	ck_assert_int_gt(retry_in(B), 0);
	d.holds = NULL;
}

/* What is on its way over a link that was lost may arrive when the element has wrapped, and a card cannot refuse it. So
 * the sender does not write where it would do harm. */

static const struct rnic_dev *held_dev[3];

static bool
is_from_held(const struct sim_msg *msg)
{
	for (unsigned i = 0; i < 3; i++)
		if (msg->from == held_dev[i])
			return true;
	return false;
}

static bool
is_held_or_delete(const struct sim_msg *msg)
{
	return is_from_held(msg) || (msg->op == RNIC_WR_SEND && msg->data[0] == LLC_DELETE_LINK);
}

static const struct smcr_config three_links = { .links_max = 3, .llc_ms = 100000, .add_link_retry_ms = 100000 };

static void
begin_cards(void)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

	memset(held_dev, 0, sizeof(held_dev));
	duo_init_as(roce, true, &three_links);
	for (unsigned i = 0; i < 2; i++)
		duo_add_devices();
	duo_connect(0, 1, 1000);
	duo_expect_links(3);
	/* The other direction uses another link, so that the cursor comes back. */
	failover_ask(s[0].conn, duo_link_nr(B, 3));
	duo_run(5);
}

/* Writes and reads until the sender is stopped or has sent `most`; the receiver leaves what is behind `unread_from`. */
static void
write_on(uint64_t most, uint64_t unread_from)
{
	for (unsigned i = 0; i < 200; i++) {
		duo_write(&c[0], most - c[0].written < 1000 ? most - c[0].written : 1000);
		duo_run(1);
		if (s[0].read < unread_from)
			duo_read(&s[0]);
	}
}

START_TEST(late_writes_of_a_lost_link_are_not_placed_over_newer_data)
{
	begin_cards();
	struct link *old = c[0].conn->link;
	held_dev[0] = old->dev;
	d.holds = is_held_or_delete;
	duo_write(&c[0], 5000);
	duo_run(5);
	duo_lose(old, "test");
	write_on(SMCR_ELEM_MIN + 5000, SMCR_ELEM_MIN);
	/* No further than the ring: its beginning is not sure to be ours before the old link is given up. */
	ck_assert_uint_eq(c[0].conn->tx.sent, SMCR_ELEM_MIN);
	ck_assert_uint_ge(c[0].conn->tx.acked, 5000);
	held_dev[0] = NULL;
	duo_run(100);
	d.holds = NULL;
	duo_run(500);
	ck_assert_uint_eq(c[0].conn->tx.sent, SMCR_ELEM_MIN + 5000);
	duo_read(&s[0]);
	ck_assert_uint_eq(s[0].read, SMCR_ELEM_MIN + 5000);
	transfer(&c[0], &s[0], 50000);
}

/* It is full, and a larger one is there. What it holds is sent again over the other link before it is exchanged; at once, or
 * after the peer has got it. */
START_LOOP_TEST(a_link_is_lost_while_a_ring_runs_empty, 0, 2)
{
	begin(2, 2, NULL);
	struct smcr_config *cfg = &d.eng[A]->cfg;
	cfg->sndbuf_size = SMCR_ELEM_MIN;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(duo_write(&c[0], SMCR_ELEM_MIN), SMCR_ELEM_MIN);
		duo_run(10);
	}
	cfg->sndbuf_size = 4 * SMCR_ELEM_MIN;
	duo_run(1000);
	ck_assert_uint_eq(duo_write(&c[0], 1), 0);
	ck_assert(c[0].conn->tx.outgrown);
	sim_withhold(c[0].conn->link->dev, true);
	if (_i == 1)
		ck_assert_uint_eq(duo_read(&s[0]), SMCR_ELEM_MIN);
	duo_run(5);
	ck_assert_uint_eq(duo_write(&c[0], 1), 0);
	ck_assert_uint_eq(c[0].conn->tx.sent, (1 + (uint64_t)_i) * SMCR_ELEM_MIN);
	duo_lose(c[0].conn->link, "test");
	transfer(&c[0], &s[0], 100000);
	ck_assert_uint_eq(d.eng[A]->ctr.conns_moved, 1);
	ck_assert(!c[0].conn->tx.outgrown);
	duo_write(&c[0], 1);
	ck_assert_uint_eq(c[0].conn->tx.sndbuf->size, 4 * SMCR_ELEM_MIN);
}

/* A card notices nothing of the other's end. */
START_LOOP_TEST(the_reason_of_a_lost_link_names_the_peer, 0, 2)
{
	unsigned host = (unsigned)_i;
	struct smcr_group_info info;
	uint32_t pos = 0;

	begin_cards();
	duo_lose(duo_link_nr(host, 1), "test");
	duo_run(1000);
	ck_assert(smcr_group_next(d.eng[host], &pos, &info));
	ck_assert_str_eq(info.failover_why, "test");
	pos = 0;
	ck_assert(smcr_group_next(d.eng[1 - host], &pos, &info));
	ck_assert_str_eq(info.failover_why, "peer: lost path");
}

/* The peer has got, and consumed, what came over the first link; its repetition over the second is held up, and that
 * link is lost, too. */
START_TEST(a_repetition_that_is_late_is_not_placed_over_newer_data)
{
	begin_cards();
	struct link *old = c[0].conn->link;
	sim_withhold(old->dev, true);
	duo_write(&c[0], 5000);
	duo_run(5);
	ck_assert_uint_eq(duo_read(&s[0]), 5000);
	ck_assert_uint_eq(c[0].conn->tx.done + c[0].conn->tx.acked, 0);
	/* The first link is given up by both sides at once; the connection goes on over another one. */
	duo_lose(old, "test");
	held_dev[0] = c[0].conn->link->dev;
	d.holds = is_from_held;
	duo_write(&s[0], 100); /* brings the cursor along */
	duo_run(50);
	ck_assert_uint_eq(c[0].conn->tx.acked, 5000);
	ck_assert_uint_eq(c[0].conn->tx.replay, 5000);
	ck_assert_uint_eq(c[0].conn->tx.late, UINT64_MAX);
	d.holds = is_held_or_delete;
	duo_lose(c[0].conn->link, "test");
	write_on(SMCR_ELEM_MIN + 5000, SMCR_ELEM_MIN);
	ck_assert_uint_eq(c[0].conn->tx.sent, SMCR_ELEM_MIN);
	held_dev[0] = NULL;
	duo_run(100);
	d.holds = NULL;
	duo_run(500);
	duo_read(&s[0]);
	ck_assert_uint_eq(s[0].read, SMCR_ELEM_MIN + 5000);
}

/* The data arrives, and is acknowledged, when the last completions were handled and the queue pair has not been stopped yet. */
START_TEST(what_arrives_while_its_link_is_given_up_counts)
{
	begin_cards();
	duo_open(1); /* a bystander */
	duo_run(10);
	struct link *old = c[0].conn->link;
	held_dev[0] = old->dev;
	d.holds = is_from_held;
	duo_write(&c[0], 5000);
	duo_run(5);
	d.holds = NULL;
	d.now_ns += DUO_MS;
	sim_run(d.fab, d.now_ns);
	d.now_ns += DUO_MS;
	sim_run(d.fab, d.now_ns);
	smcr_poll(d.eng[A], d.now_ns);
	ck_assert_uint_eq(c[0].conn->tx.done, 5000);
	smcr_set_now(d.eng[B], d.now_ns);
	duo_lose(duo_link_nr(B, old->number), "test");
	(void)smcr_flush(d.eng[B]);
	duo_run(500);
	ck_assert_uint_eq(duo_read(&s[0]), 5000);
	ck_assert_uint_eq(d.eng[B]->ctr.failover_lost, 0);
	transfer(&c[0], &s[0], 10000);
	transfer(&c[1], &s[1], 10000);
}

static bool
is_test_link(const struct sim_msg *m)
{
	return m->op == RNIC_WR_SEND && m->len == LLC_LEN && m->data[0] == LLC_TEST_LINK;
}

/* A connection comes back to a link before a TEST LINK was answered there: it had left in peace, so nothing was closed to it. Moved by
 * somebody, or because the link that it had moved to is lost, with or without its word of the move; over two links, or three. */
START_LOOP_TEST(a_connection_comes_back_at_once, 0, 8)
{
	bool lost = (_i & 1) != 0, unsaid = (_i & 2) != 0, by_a_third = (_i & 4) != 0;
	unsigned cnt = 2 + by_a_third;

	begin(cnt, cnt, &three_links);
	duo_run(100);
	duo_expect_links(cnt);
	failover_ask(c[0].conn, duo_link_nr(A, (uint8_t)cnt));
	transfer(&c[0], &s[0], 1000);
	duo_run(100);
	/* When that is lost, the first of the others that are left is next. */
	struct link *first = c[0].conn->link, *other = duo_link_nr(A, (uint8_t)cnt - 1);

	d.holds = is_test_link;
	failover_ask(c[0].conn, other);
	if (!unsaid) {
		duo_write(&c[0], 5000);
		duo_run(5);
		ck_assert_uint_eq(duo_read(&s[0]), 5000);
		ck_assert_uint_eq(s[0].conn->rx.link, other->number);
		duo_write(&c[0], 1000);
	}
	ck_assert_ptr_eq(c[0].conn->link, other);
	if (lost)
		duo_lose(other, "test");
	if (by_a_third) {
		failover_ask(c[0].conn, duo_link_nr(A, 1));
		duo_write(&c[0], 1000);
		duo_run(5);
	}
	failover_ask(c[0].conn, first);
	duo_run(5);
	ck_assert_ptr_eq(c[0].conn->link, first);
	transfer(&c[0], &s[0], 100000);
	ck_assert_int_eq(first->state, LINK_ACTIVE);
	d.holds = NULL;
	ck_assert_uint_eq(d.eng[B]->ctr.failover_lost, 0);
}

static struct rnic_dev *slow_dev;

static bool
is_over_slow_dev(const struct sim_msg *m)
{
	return m->from == slow_dev;
}

/* It is moved to and fro while its word of the first move is under way, which must not come behind that of the second. */
START_TEST(a_connection_comes_back_behind_its_word_of_the_move)
{
	begin(2, 2, NULL);
	struct link *first = c[0].conn->link;
	struct link *other = LGR_FIND_LINK(l, duo_lgr(A), l->state == LINK_ACTIVE && l != first);

	transfer(&c[0], &s[0], 1000);
	duo_run(50);
	slow_dev = other->dev;
	d.holds = is_over_slow_dev;
	failover_ask(c[0].conn, other);
	ck_assert_ptr_eq(c[0].conn->link, other);
	duo_run(2);
	failover_ask(c[0].conn, first);
	duo_run(2);
	d.holds = NULL;
	transfer(&c[0], &s[0], 10000);
	duo_run(50);
	transfer(&c[0], &s[0], 10000);
	ck_assert_ptr_eq(c[0].conn->link, first);
}

/* Both close at once, each over another link. The peer's C says nothing of ours, which is lost with its link. */
START_TEST(c_that_is_lost_with_its_link_is_said_again)
{
	begin(2, 2, NULL);
	struct link *old = c[0].conn->link;
	failover_ask(s[0].conn, duo_link_nr(B, 2));
	duo_run(5);
	ck_assert_uint_ne(s[0].conn->link->number, old->number);
	memset(held_dev, 0, sizeof(held_dev));
	held_dev[0] = old->dev;
	d.holds = is_from_held;
	duo_close(0);
	duo_run(50);
	ck_assert(IS(c[0], CLOSED) && !IS(s[0], CLOSED));
	ck_assert(sim_break_qp(old->dev, old->qpn, SIM_CUT_RESET));
	d.holds = NULL;
	duo_run(1000);
	ck_assert(IS(s[0], CLOSED));
	ck_assert_int_eq(s[0].reason, SMCR_OK);
}

/* Linux asks for an orderly end of a link whose queue pair is no more: connections move at once, they do not wait for what
 * can never be complete. */
START_LOOP_TEST(an_orderly_end_of_a_lost_path_is_none, 0, 4)
{
	unsigned host = (unsigned)_i / 2;
	bool lost = _i % 2 == 1;
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	struct duo_end *mine = host == A ? &c[0] : &s[0];

	begin(2, 2, NULL);
	duo_open(1); /* a bystander */
	duo_run(10);
	struct link *old = mine->conn->link;
	failover_ask(
	    (host == A ? &s[0] : &c[0])->conn, old->number == 1 ? duo_link_nr(1 - host, 2) : duo_link_nr(1 - host, 1));
	duo_run(10);
	memset(held_dev, 0, sizeof(held_dev));
	held_dev[0] = old->dev;
	d.holds = is_from_held;
	duo_write(mine, 1000);
	duo_run(5);
	msg.delete_link.link_num = old->number;
	msg.delete_link.orderly = true;
	msg.delete_link.reason = lost ? LLC_DELETE_LOST_PATH : LLC_DELETE_OPERATOR;
	duo_inject(duo_link_nr(host, old->number == 1 ? 2 : 1), &msg);
	duo_run(20);
	ck_assert((mine->conn->link != old) == lost);
	d.holds = NULL;
	duo_run(500);
	ck_assert_uint_eq(duo_read(mine->peer), 1000);
	transfer(&c[1], &s[1], 10000);
}

static bool
is_delete_of_b(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_DELETE_LINK &&
	    (msg->from == d.dev[B] || msg->from == d.more[B][0]);
}

/* Linux drops a DELETE LINK that meets its own: what it says itself has to do. */
START_LOOP_TEST(a_delete_link_that_crosses_is_the_answer, 0, 2)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	bool lost = _i == 1;

	begin(2, 2, NULL);
	duo_open(1); /* a bystander */
	duo_run(10);
	d.holds = is_delete_of_b;
	duo_lose(duo_link_nr(B, 1), "test");
	(void)smcr_flush(d.eng[B]);
	ck_assert_int_eq(duo_lgr(B)->flow[LLC_FLOW_LINK].step, LLC_WAIT_DELETE_LINK_RSP);
	msg.delete_link.link_num = 1;
	msg.delete_link.orderly = true;
	msg.delete_link.reason = lost ? LLC_DELETE_LOST_PATH : LLC_DELETE_OPERATOR;
	duo_inject(duo_link_nr(B, 2), &msg);
	ck_assert((duo_link_nr(B, 1) == NULL) == lost);
	d.holds = NULL;
	duo_run(500);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
	transfer(&c[1], &s[1], 10000);
}

/* Each of them would make a queue pair. */
START_TEST(a_flood_of_offers_is_rejected)
{
	struct llc_msg msg = { .type = LLC_ADD_LINK };

	begin(1, 1, NULL);
	msg.add_link.mtu_code = 3;
	for (unsigned i = 0; i < 50; i++) {
		msg.add_link.link_num = (uint8_t)(100 + i);
		msg.add_link.mac[5] = (uint8_t)i;
		duo_inject(duo_link_nr(A, 1), &msg);
		duo_run(1);
		transfer(&c[0], &s[0], 10);
	}
	/* The first ones, and that of first contact. */
	ck_assert_uint_ge(d.eng[A]->ctr.llc_limited, 50 - 9);
	ck_assert_uint_le(d.eng[A]->ctr.llc_limited, 50 - 7);
	duo_expect_links(1);
	duo_run(2000);
	/* Later, offers are taken as before. */
	duo_add_devices();
	duo_run(200);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
}

START_TEST(a_flood_of_devices_that_a_client_tells_of_makes_few_offers)
{
	struct llc_msg msg = { .type = LLC_ADD_LINK };

	begin(1, 1, NULL);
	unsigned before = duo_count(B, "ADD LINK");
	msg.add_link.mtu_code = 3;
	for (unsigned i = 0; i < 150; i++) {
		duo_inject(duo_link_nr(B, 1), &msg);
		duo_run(20);
		transfer(&c[0], &s[0], 10);
	}
	ck_assert_uint_ge(duo_count(B, "ADD LINK"), before + 3);
	ck_assert_uint_le(duo_count(B, "ADD LINK"), before + 4);
	ck_assert_uint_ge(d.eng[B]->ctr.llc_limited, 140);
	/* A rejection is remembered all the same. */
	ck_assert_uint_gt(duo_lgr(B)->add_retry_ms, d.eng[B]->cfg.add_link_retry_ms);
}

/* Each time the server offers another: a queue pair and the registration of all memory on it. */
START_TEST(a_path_that_breaks_again_and_again_is_offered_at_intervals)
{
	begin(2, 2, NULL);
	struct lgr *lgr = duo_lgr(B);
	for (unsigned i = 0; i < 1500; i++) {
		for (unsigned k = 0; k < LINK_SLOTS && duo_lgr(A)->active_cnt == 2; k++)
			if (lgr->links[k].state == LINK_ACTIVE && lgr->links[k].order > 0)
				ck_assert(sim_break_qp(lgr->links[k].dev, lgr->links[k].qpn, SIM_CUT_RESET));
		duo_run(2);
		transfer(&c[0], &s[0], 10);
	}
	/* First contact's, seven at once, and one in 200 ms of 4.5 s; the client, which counts too, has no reason to reject one. */
	ck_assert_uint_ge(lgr->links_made, 8 + 20);
	ck_assert_uint_le(lgr->links_made, 8 + 24);
	ck_assert_uint_eq(d.eng[A]->ctr.add_link_rejected, 0);
	ck_assert_uint_gt(d.eng[B]->ctr.llc_limited, 0);
	/* The link is there again once it holds. */
	duo_run(500);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
}

static bool
is_anything_of_b(const struct sim_msg *msg)
{
	for (unsigned k = 0; k < DUO_MORE; k++)
		if (d.more[B][k] == msg->from)
			return true;
	return msg->from == d.dev[B];
}

/* The gap, in front of the first message that comes. */
enum { LINUX, LINUX_OPEN, LINUX_GAP, LINUX_GAP_FIRST, LINUX_LAST, LINUX_LAST_GAP, SMCRD, MOVES };

/* Linux moves a connection whose end has begun without asking; a message that is missing then is lost for good, but behind its D
 * there is only a cursor in it. */
START_LOOP_TEST(linux_moves_a_half_closed_connection_without_validation, 0, MOVES)
{
	bool gap = _i == LINUX_GAP || _i == LINUX_GAP_FIRST, last = _i == LINUX_LAST || _i == LINUX_LAST_GAP;

	begin(2, 2, NULL);
	duo_open(1); /* a bystander */
	duo_run(10);
	if (_i != LINUX_GAP_FIRST)
		transfer(&c[0], &s[0], 1000);
	if (_i != SMCRD)
		dialect_no_extension(&c[0].conn->lgr->dialect);
	if (last)
		smcr_shutdown_wr(s[0].conn);
	else if (_i != LINUX_OPEN)
		smcr_shutdown_wr(c[0].conn);
	duo_run(10);
	struct link *old = s[0].conn->link;
	if (gap) {
		d.holds = is_anything_of_b;
		duo_write(&s[0], 100);
		duo_run(5);
	}
	if (_i == LINUX_LAST_GAP) {
		d.holds = is_anything_of_b;
		s[0].conn->tx.pending = true;
		conn_tx_schedule(s[0].conn);
		duo_run(5);
	}
	duo_lose(old, "test");
	ck_assert(s[0].conn->tx.validate);
	s[0].conn->tx.validate = false;
	d.holds = NULL;
	if (last)
		smcr_close(s[0].conn);
	else
		duo_write(&s[0], 5000);
	duo_run(50);
	if (_i == LINUX) {
		ck_assert_uint_eq(duo_read(&c[0]), 5000);
		smcr_shutdown_wr(s[0].conn);
		duo_run(50);
		ck_assert(smcr_rx_eof(c[0].conn));
	} else if (last) {
		ck_assert(!IS(c[0], CLOSED));
		ck_assert_int_ne(c[0].conn->close.rx_flags & CDC_CLOSED, 0);
	} else {
		ck_assert(IS(c[0], CLOSED));
		ck_assert_int_eq(c[0].reason, SMCR_R_PROTOCOL);
		ck_assert_uint_eq(d.eng[A]->ctr.failover_lost, gap);
	}
	transfer(&c[1], &s[1], 10000);
}

static bool
is_delete(const struct sim_msg *msg)
{
	return msg->op == RNIC_WR_SEND && msg->data[0] == LLC_DELETE_LINK;
}

/* Two cards on each side, and two connections; B is a Linux, which says nothing of A's second one but over the other link. */
static void
begin_linux(void)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

	duo_init_as(roce, true, NULL);
	duo_add_devices();
	duo_connect(0, 2, 1000);
	transfer(&c[0], &s[0], 1000);
	transfer(&c[1], &s[1], 1000);
	ck_assert_uint_ne(c[1].conn->rx.link, c[0].conn->rx.link);
	dialect_no_extension(&c[0].conn->lgr->dialect);
	c[0].conn->lgr->terms.peer_os = CLC_OS_LINUX;
}

/* A loses the link over which B was last heard of the first connection, which B has not noticed. */
static void
lose_unnoticed(void)
{
	struct link *lost = duo_link_nr(A, c[0].conn->rx.link);

	d.holds = is_delete;
	duo_lose(lost, "test");
	duo_run(20);
	ck_assert_int_eq(lost->state, LINK_LOST);
}

/* B moves the first connection without validation, and has nothing to say over the other link. */
static void
move_unasked(void)
{
	duo_lose(duo_link_nr(B, c[0].conn->rx.link), "test");
	s[0].conn->tx.validate = s[0].conn->tx.pending = false;
	s[0].conn->rx.announced = s[0].conn->rx.tail;
}

/* A message as if it had come over this link, in the place of one that is to come. */
static void
arrives(struct link *link, const struct cdc_msg *msg)
{
	ck_assert_int_eq(cdc_encode(msg, link->recv_buf, CDC_LEN), CDC_LEN);
	link_recv(link, &(struct rnic_wc){ .qp = link->qp, .op = RNIC_WC_RECV, .status = RNIC_WC_OK, .len = CDC_LEN });
	link->recv_repost_cnt = 0;
}

static unsigned validations, in_peace;

static bool
counts_validations(const struct sim_msg *m)
{
	struct cdc_msg msg;

	if (m->op == RNIC_WR_SEND && cdc_decode((struct span){ m->data, m->len }, &msg) > 0 &&
	    (msg.prod_flags & CDC_FAILOVER) != 0 && m->from != d.dev[B] && m->from != d.more[B][0]) {
		validations++;
		in_peace += (msg.prod_flags & CDC_IN_PEACE) != 0;
	}
	return false;
}

/* The bit is reserved: it is not said to Linux, and means nothing when Linux has it. */
START_TEST(linux_knows_nothing_of_peace)
{
	begin_linux();
	struct link *old = duo_link_nr(A, c[0].conn->rx.link), *other = duo_link_nr(A, old->number == 1 ? 2 : 1);

	validations = in_peace = 0;
	d.holds = counts_validations;
	failover_ask(c[0].conn, c[0].conn->link == old ? other : old);
	duo_run(5);
	d.holds = NULL;
	ck_assert_uint_eq(validations, 1);
	ck_assert_uint_eq(in_peace, 0);
	arrives(other,
	    &(struct cdc_msg){
	        .seq = c[0].conn->rx.seq, .token = c[0].conn->id, .prod_flags = CDC_FAILOVER | CDC_IN_PEACE });
	ck_assert(rmb_elem_denied(c[0].conn->rmb, c[0].conn->elem_idx, old));
}

/* F is ahead of what has come over the other link. It waits, with what comes behind it over its own link and nothing else, and the
 * next turn comes without anything that wakes the loop. */
START_TEST(what_waits_for_another_link_waits_at_its_own)
{
	begin(2, 2, NULL);
	transfer(&s[0], &c[0], 1000);
	struct link *old = duo_link_nr(A, c[0].conn->rx.link), *other = duo_link_nr(A, old->number == 1 ? 2 : 1);
	struct cdc_msg msg = { .seq = (uint16_t)(c[0].conn->rx.seq + 1), .token = c[0].conn->id };
	uint64_t received = d.eng[A]->ctr.cdc_received;

	ck_assert(!smcr_flush(d.eng[A]));
	msg.prod_flags = CDC_FAILOVER;
	arrives(other, &msg);
	ck_assert_uint_eq(other->recv_wait_cnt, 1);
	ck_assert(smcr_flush(d.eng[A]));
	msg.prod_flags = 0;
	msg.token = 0; /* nobody's */
	arrives(other, &msg);
	ck_assert_uint_eq(other->recv_wait_cnt, 2);
	arrives(old, &msg);
	ck_assert_uint_eq(old->recv_wait_cnt, 0);
	ck_assert_uint_eq(d.eng[A]->ctr.cdc_received, received + 1);
	other->recv_wait_cnt = 0;
	list_remove(&other->wait_node);
	transfer(&c[0], &s[0], 1000);
	transfer(&s[0], &c[0], 1000);
}

/* What Linux says behind our D over a link that it has not found lost yet is not said again, so D waits until it has moved. Another
 * connection's D has nothing to wait for. */
START_LOOP_TEST(d_and_c_wait_until_linux_has_moved, 0, 2)
{
	begin_linux();
	lose_unnoticed();
	for (unsigned i = 0; i < 2; i++)
		if (_i == 0)
			smcr_shutdown_wr(c[i].conn);
		else
			smcr_close(c[i].conn);
	duo_write(&s[0], 500); /* over the lost link, as far as A is concerned */
	duo_run(50);
	ck_assert_int_eq(c[0].conn->close.tx_flags, 0);
	ck_assert_int_ne(c[1].conn->close.tx_flags, 0);
	d.holds = NULL;
	duo_run(50);
	ck_assert_int_ne(c[0].conn->close.tx_flags, 0);
	ck_assert_uint_eq(c[0].conn->rx.head, 1500);
}

/* D goes with the link, and data in front of it: the answer to their repetition would be lost as well. Only the
 * word that it has moved goes at once. */
START_TEST(what_has_been_said_is_said_again_when_linux_has_moved)
{
	begin_linux();
	struct link *lost = duo_link_nr(A, c[0].conn->rx.link);

	failover_ask(c[0].conn, lost);
	duo_run(5);
	memset(held_dev, 0, sizeof(held_dev));
	held_dev[0] = lost->dev;
	d.holds = is_held_or_delete;
	duo_write(&c[0], 500);
	smcr_shutdown_wr(c[0].conn);
	duo_run(20);
	ck_assert_int_ne(c[0].conn->close.tx_flags, 0);
	uint16_t said = c[0].conn->tx.seq;
	uint64_t sent = d.eng[A]->ctr.cdc_sent;

	duo_lose(lost, "test");
	duo_run(1000);
	ck_assert_uint_eq(d.eng[A]->ctr.cdc_sent, sent + 1);
	ck_assert_uint_eq(c[0].conn->tx.seq, said);
	ck_assert_uint_eq(s[0].conn->rx.head, 1000);
	d.holds = NULL;
	duo_run(1000);
	ck_assert_uint_eq(duo_read(&s[0]), 500);
	ck_assert(smcr_rx_eof(s[0].conn));
	duo_write(&s[0], 700);
	duo_run(50);
	ck_assert_uint_eq(duo_read(&c[0]), 700);
}

/* D has arrived, though A has no completion of it, and nothing is said again until B has moved. The message by which A asks whether
 * it has has D, and so has that of an abort. */
START_LOOP_TEST(what_has_been_said_is_not_taken_back, 0, 2)
{
	begin_linux();
	struct link *lost = duo_link_nr(A, c[0].conn->rx.link);

	failover_ask(c[0].conn, lost);
	duo_run(5);
	sim_withhold(lost->dev, true);
	smcr_shutdown_wr(c[0].conn);
	duo_run(20);
	ck_assert(smcr_rx_eof(s[0].conn));
	lose_unnoticed();
	ck_assert_int_eq(c[0].conn->close.tx_flags, 0);
	if (_i == 0) {
		conn_ask_alive(c[0].conn, true);
		conn_tx_schedule(c[0].conn);
	} else {
		conn_abort(c[0].conn, SMCR_R_PROTOCOL, "test");
	}
	duo_run(20);
	ck_assert_int_eq(c[0].conn->close.tx_flags, CDC_SENDING_DONE | (_i == 0 ? 0 : CDC_ABORT));
	sim_withhold(lost->dev, false);
	d.holds = NULL;
	duo_run(500);
	ck_assert_int_eq(IS(s[0], CLOSED), _i == 1);
	transfer(&c[1], &s[1], 10000);
}

/* The other way round: B has begun the end, and its word of that was lost, so it validates nothing. Another than Linux may do that
 * later. */
START_LOOP_TEST(what_linux_has_ended_over_a_lost_link_is_reset, 0, 2)
{
	begin_linux();
	if (_i == 1)
		c[0].conn->lgr->terms.peer_os = CLC_OS_ZOS;
	lose_unnoticed();
	smcr_shutdown_wr(c[0].conn);
	move_unasked();
	d.holds = NULL;
	duo_run(9000);
	ck_assert_int_eq(c[0].conn->close.tx_flags == 0, _i == 0);
	ck_assert(!IS(c[0], CLOSED));
	duo_run(2000);
	ck_assert_int_eq(IS(c[0], CLOSED), _i == 0);
	if (_i == 1)
		return;
	ck_assert_int_eq(c[0].reason, SMCR_R_PROTOCOL);
	ck_assert_uint_eq(d.eng[A]->ctr.failover_lost, 1);
	ck_assert(IS(s[0], CLOSED));
	transfer(&c[1], &s[1], 10000);
}

enum { UNHEARD_SILENT, UNHEARD_SPEAKS, UNHEARD_VALIDATES, UNHEARDS };

/* We have begun the end before: B may have nothing to say, or have said it over the lost link. It is asked, and has a while. */
START_LOOP_TEST(linux_is_asked_whether_it_said_more_over_a_lost_link, 0, UNHEARDS)
{
	begin_linux();
	smcr_shutdown_wr(c[0].conn);
	duo_run(20);
	ck_assert(smcr_rx_eof(s[0].conn));
	lose_unnoticed();
	if (_i != UNHEARD_VALIDATES)
		move_unasked();
	else
		duo_lose(duo_link_nr(B, c[0].conn->rx.link), "test");
	d.holds = NULL;
	duo_run(500);
	ck_assert(_i == UNHEARD_VALIDATES || s[0].conn->rx.update_req);
	ck_assert_int_eq(c[0].conn->close.doubt, _i != UNHEARD_VALIDATES);
	duo_run(15000);
	if (_i == UNHEARD_SPEAKS) {
		duo_write(&s[0], 1000);
		duo_run(50);
		ck_assert_uint_eq(duo_read(&c[0]), 1000);
	}
	ck_assert(!IS(c[0], CLOSED));
	duo_run(60000);
	ck_assert_int_eq(IS(c[0], CLOSED), _i == UNHEARD_SILENT);
	if (_i == UNHEARD_SILENT)
		ck_assert_int_eq(c[0].reason, SMCR_R_CLOSE_TIMEOUT);
	ck_assert_uint_eq(d.eng[A]->ctr.failover_lost, 0);
	transfer(&c[1], &s[1], 10000);
}

START_TEST(linux_is_asked_once)
{
	begin_linux();
	conn_ask_alive(c[0].conn, true);
	ck_assert(c[0].conn->close.ask);
	duo_run(20);
	ck_assert(c[0].conn->tx.asks && !c[0].conn->close.ask);
	c[0].conn->close.doubt = false;
	conn_ask_alive(c[0].conn, true);
	ck_assert(!c[0].conn->close.ask);
	conn_ask_alive(c[0].conn, false);
	duo_write(&c[0], 10);
	duo_run(20);
	ck_assert(!c[0].conn->tx.asks);
	/* What was asked over another link before one is lost counts for nothing: the answer may have been on that. */
	failover_ask(c[0].conn, duo_link_nr(A, c[1].conn->rx.link));
	duo_run(5);
	c[0].conn->tx.asks = true;
	lose_unnoticed();
	ck_assert(!c[0].conn->tx.asks);
	d.holds = NULL;
}

static const struct smcr_config brief_rmbs = { .rmb_elems = 1, .rmb_idle_ms = 1000 };

/* DELETE RKEY is lost with its link, and its repetition is refused, as it is of an RMB that the peer does not know; but
 * here the peer still holds an element of it (its connection is not through). */
START_TEST(an_rmb_whose_deletion_was_lost_stays_while_the_peer_holds_it)
{
	begin(2, 2, &brief_rmbs);
	duo_open(1);
	duo_run(100);
	struct lgr *a = duo_lgr(A);
	struct lgr *b = duo_lgr(B);
	ck_assert_uint_eq(a->rmb_cnt, 2);
	conn_end(c[1].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	duo_until(A, "DELETE RKEY");
	struct link *over = a->flow[LLC_FLOW_RKEY].link;
	ck_assert(sim_break_qp(over->dev, over->qpn, SIM_CUT_RESET));
	duo_run(500);
	duo_expect_links(2);
	ck_assert_uint_ge(duo_count(A, "DELETE RKEY"), 2);
	ck_assert_uint_eq(a->rmb_cnt, 2);
	ck_assert_uint_eq(b->remote_rmb_cnt, 2);
	/* The RMB is deleted when the peer is through. */
	conn_end(s[1].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	duo_run(5000);
	ck_assert_uint_eq(a->rmb_cnt, 1);
	ck_assert_uint_eq(b->remote_rmb_cnt, 1);
}

START_TEST(a_missing_second_link_is_tried_again)
{
	begin(1, 2, &quick_retry);
	duo_expect_links(2);
	sim_block_connect(d.dev[B], true);
	sim_block_connect(d.more[B][0], true);
	ck_assert(sim_break(d.fab, 1, SIM_CUT_RESET));
	duo_run(3500);
	ck_assert_uint_eq(duo_lgr(B)->active_cnt, 1);
	ck_assert_uint_ge(d.eng[B]->ctr.add_link_retries, 1);
	sim_block_connect(d.dev[B], false);
	sim_block_connect(d.more[B][0], false);
	duo_run(8000);
	duo_expect_links(2);
	transfer(&c[0], &s[0], 10000);
}

static const struct smcr_config three_links_one_element = { .links_max = 3, .rmb_elems = 1 };

/* The server gives a new link up, which the client is still at. Whoever wants an RMB in the same turn waits until the client
 * knows: it refuses everything else. */
START_TEST(a_link_that_is_given_up_is_deleted_before_an_rmb_is_confirmed)
{
	begin(2, 2, &three_links_one_element);
	d.holds = is_cont;
	duo_add_devices();
	duo_run(20);
	struct lgr *b = duo_lgr(B);
	ck_assert_int_eq(b->flow[LLC_FLOW_LINK].step, LLC_WAIT_ADD_CONT_RSP);
	smcr_remove_device(d.eng[B], b->flow[LLC_FLOW_LINK].new_link->dev);
	ck_assert_int_eq(llc_add_rmb(b, SMCR_ELEM_MIN), 0);
	ck_assert(llc_is_idle(b, LLC_FLOW_RKEY));
	d.holds = NULL;
	duo_connect(1, 1, 200);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 1);
	ck_assert_uint_eq(d.eng[B]->ctr.rkey_retries, 0);
	transfer(&c[0], &s[0], 10000);
}
