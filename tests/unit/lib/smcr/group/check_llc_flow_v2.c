/* LLC of SMC version 2 between two engines, and what a peer that is no smcrd does otherwise: long messages, ADD LINK with all
 * RTokens, REQUEST ADD LINK, DELETE RKEY of many; and what a peer that lies makes of them. */
#include "duo.h"
#include "smcr/data/link_tx.h"
#include "smcr/group/llc_impl.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#include <string.h>

static const struct smcr_config one_element = { .rmb_elems = 1 };

/* Two hosts with so many devices, groups of version 2, and the first connection, which has to notice nothing of what follows. */
static void
begin(unsigned devs, const struct smcr_config *change)
{
	duo_init_version(2, change);
	while (--devs > 0)
		duo_add_devices();
	duo_connect(0, 1, 300);
}

/* The last message of this kind from the host. */
static const struct duo_seen *
seen(unsigned host, const char *text)
{
	for (unsigned i = d.seen_cnt; i-- > 0;)
		if (d.seen[i].host == host && strcmp(d.seen[i].text, text) == 0)
			return &d.seen[i];
	ck_abort_msg("%c has not sent %s", "AB"[host], text);
}

/* It has a header of version 2 that says this length, in this order. */
static void
expect_v2(unsigned host, const char *text, size_t len, bool little)
{
	const struct duo_seen *m = seen(host, text);

	ck_assert_uint_eq(m->len, len);
	ck_assert_uint_eq(m->head[0] & 0xf0, 0x20);
	ck_assert_uint_eq(m->head[1] | m->head[2] << 8, little ? len : (len << 8 | len >> 8) & 0xffff);
}

/* All RMBs of the other host are known on the link with this number. */
static void
expect_rtokens(unsigned host, uint8_t number)
{
	struct link *mine = duo_link_nr(host, number), *theirs = duo_link_nr(1 - host, number);

	ck_assert_uint_eq(duo_lgr(host)->remote_rmb_cnt, duo_lgr(1 - host)->rmb_cnt);
	LIST_EACH(const struct rmb, rmb, &duo_lgr(1 - host)->rmbs, node) {
		const struct rnic_mr *mr = rmb->mr[theirs->slot];

		ck_assert_ptr_nonnull(remote_rmb_find(mine->lgr, mine, mr->rkey, &mr->addr));
	}
}

UNIT_CASE(duo_case(tc, 200));

/* -- links -- */

START_TEST(first_contact_speaks_version_2)
{
	begin(1, NULL);
	duo_expect_links(1);
	/* 44 bytes, and 72 with 16 for one RToken. */
	expect_v2(B, "CONFIRM LINK", 44, false);
	expect_v2(A, "CONFIRM LINK response", 44, false);
	expect_v2(B, "ADD LINK", 88, false);
	expect_v2(A, "ADD LINK response", 44, false);
	/* A rejection, as there is no other path: flags 0xc0. */
	ck_assert_uint_eq(seen(A, "ADD LINK response")->head[3], 0xc0);
	ck_assert_uint_eq(d.eng[B]->ctr.add_link_rejected, 1);
	ck_assert(BOTH(0, ESTABLISHED));
	duo_bystander_is_well();
}

/* A message may have 8 KiB; so that not too much is pinned, a link posts as few of them as Linux. */
START_LOOP_TEST(receives_are_as_long_as_the_version_asks, 0, 2)
{
	bool v2 = _i == 1;

	duo_init_version(v2 ? 2 : 1, NULL);
	duo_connect(0, 1, 300);
	for (unsigned h = 0; h < 2; h++) {
		const struct link *l = duo_link(h);

		ck_assert_uint_eq(l->recv_len, v2 ? LLC_MAX_LEN : 64);
		ck_assert_uint_eq(l->rq_depth, v2 ? 48 : 64);
		ck_assert((l->long_buf != NULL) == v2);
		ck_assert_uint_eq(l->recv_mr->len, v2 ? 49 * LLC_MAX_LEN : 64 * 64);
	}
}

START_TEST(two_devices_make_two_links_without_continuations)
{
	begin(2, NULL);
	duo_expect_links(2);
	ck_assert_uint_eq(duo_count(B, "ADD LINK"), 1);
	expect_v2(B, "ADD LINK", 88, false);
	expect_v2(A, "ADD LINK response", 88, false);
	ck_assert_uint_eq(duo_count(B, "ADD LINK CONTINUATION"), 0);
	expect_rtokens(A, 2);
	expect_rtokens(B, 2);
	duo_bystander_is_well();
	/* Both links serve: the first connection moves when the link that it is on is lost. */
	duo_lose(c[0].conn->link, "test");
	duo_run(500);
	duo_bystander_is_well();
}

/* One RMB, so many that the length reads the same in both orders, and all that a group may have. */
START_LOOP_TEST(a_new_link_learns_all_rmbs_by_one_message_each_way, 0, 3)
{
	static const unsigned cnts[] = { 1, 124, SMCR_RMBS_PER_GROUP };
	unsigned n = cnts[_i];

	begin(1, &one_element);
	for (unsigned i = 1; i < n; i++)
		duo_connect(i, 1, 5);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, n);
	d.seen_cnt = 0;
	duo_add_devices();
	duo_run(500);
	duo_expect_links(2);
	expect_v2(B, "ADD LINK", 72 + 16 * n, false);
	expect_v2(A, "ADD LINK response", 72 + 16 * n, false);
	for (unsigned h = 0; h < 2; h++) {
		LGR_EACH_LINK(l, duo_lgr(h))
			if (l->state == LINK_ACTIVE) {
				expect_rtokens(h, l->number);
				ck_assert(l->long_cnt == 0);
			}
	}
	duo_lose(c[0].conn->link, "test");
	duo_run(500);
	duo_bystander_is_well();
}

/* -- the order of 16-bit numbers -- */

static bool
is_confirm_link_of_a(const struct sim_msg *msg)
{
	return msg->from == d.dev[A] && msg->op == RNIC_WR_SEND && msg->data[0] == (0x20 | LLC_CONFIRM_LINK);
}

/* First contact up to the answer of A to CONFIRM LINK, which does not arrive. */
static void
hold_confirm_link_of_a(void)
{
	d.holds = is_confirm_link_of_a;
	duo_open(0);
	duo_until(A, "CONFIRM LINK response");
	duo_run(1);
}

/* Linux on a little-endian machine: what a server says after the client's first message is in the client's order. */
START_LOOP_TEST(the_order_is_that_of_the_peer, 0, 2)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK, .response = true, .little = _i == 1 };

	duo_init_version(2, NULL);
	duo_add_devices();
	hold_confirm_link_of_a();
	const struct link *at_a = &duo_lgr(A)->links[0];
	struct link *at_b = &duo_lgr(B)->links[0];
	msg.confirm_link.qpn = at_a->qpn;
	msg.confirm_link.link_num = at_b->number;
	msg.confirm_link.max_links = 2;
	msg.confirm_link.no_eyecatcher = true;
	memcpy(msg.confirm_link.gid, at_a->info.gid.b, 16);
	duo_inject(at_b, &msg);
	ck_assert(duo_lgr(B)->dialect.little == msg.little);
	(void)smcr_flush(d.eng[B]);
	expect_v2(B, "ADD LINK", 88, msg.little);
	/* A client answers in the order of the server's first message. */
	ck_assert(!duo_lgr(A)->dialect.little);
	/* A later message in the other order is read, and does not change it. */
	msg = (struct llc_msg){ .type = LLC_TEST_LINK, .little = !msg.little };
	duo_inject(at_b, &msg);
	ck_assert(duo_lgr(B)->dialect.little == !msg.little);
	(void)smcr_flush(d.eng[B]);
	expect_v2(B, "TEST LINK response", 44, !msg.little);
	ck_assert_uint_eq(d.eng[B]->ctr.bad_llc, 0);
}

static bool
is_confirm_link_of_b(const struct sim_msg *msg)
{
	return msg->from == d.dev[B] && msg->op == RNIC_WR_SEND && msg->data[0] == (0x20 | LLC_CONFIRM_LINK);
}

/* A client answers the server's first message in the server's order. */
START_LOOP_TEST(a_client_answers_in_the_order_of_the_server, 0, 2)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK, .little = _i == 1 };

	duo_init_version(2, NULL);
	d.holds = is_confirm_link_of_b;
	duo_open(0);
	duo_until(B, "CONFIRM LINK");
	duo_run(1);
	const struct link *at_b = &duo_lgr(B)->links[0];
	msg.confirm_link.qpn = at_b->qpn;
	msg.confirm_link.link_num = at_b->number;
	msg.confirm_link.max_links = 2;
	msg.confirm_link.no_eyecatcher = true;
	memcpy(msg.confirm_link.gid, at_b->info.gid.b, 16);
	duo_inject(&duo_lgr(A)->links[0], &msg);
	(void)smcr_flush(d.eng[A]);
	expect_v2(A, "CONFIRM LINK response", 44, msg.little);
}

/* -- CONFIRM LINK -- */

struct limits {
	uint8_t conns, links; /* of the peer's message */
	uint8_t conns_then, links_then;
	uint8_t agreed; /* connections, in CLC */
};

START_LOOP_TEST(the_smaller_limits_of_both_count, 0, 6)
{
	static const struct limits limits[] = {
		{ 255, 2, 255, 2, 255 }, { 32, 2, 32, 2, 255 }, { 16, 1, 16, 1, 255 }, { 64, 2, 40, 2, 40 },
		{ 0, 0, 255, 2, 255 },  /* release 0 says nothing */
		{ 15, 8, 255, 2, 255 }, /* and this is nothing that may be said */
	};
	const struct limits *l = &limits[_i];
	bool release_0 = _i >= 4;
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK, .response = true };

	duo_init_version(2, &(struct smcr_config){ .links_max = 8 });
	hold_confirm_link_of_a();
	const struct link *at_a = &duo_lgr(A)->links[0];
	struct link *at_b = &duo_lgr(B)->links[0];
	/* What the client has read. */
	ck_assert_uint_eq(duo_lgr(A)->links_limit, CLC_MAX_MAX_LINKS);
	ck_assert_uint_eq(duo_lgr(A)->conns_limit, SMCR_CONNS_PER_GROUP);
	if (release_0) /* CLC has settled nothing then */
		duo_lgr(B)->links_limit = 0;
	duo_lgr(B)->conns_limit = l->agreed;
	msg.confirm_link.qpn = at_a->qpn;
	msg.confirm_link.link_num = at_b->number;
	msg.confirm_link.max_links = l->links;
	msg.confirm_link.max_conns = l->conns;
	msg.confirm_link.no_eyecatcher = true;
	memcpy(msg.confirm_link.gid, at_a->info.gid.b, 16);
	duo_inject(at_b, &msg);
	ck_assert_uint_eq(duo_lgr(B)->links_limit, l->links_then);
	ck_assert_uint_eq(duo_lgr(B)->conns_limit, l->conns_then);
	ck_assert(!duo_lgr(B)->eye_catcher);
}

/* The message may have crossed a router, and Linux keeps the router's MAC then. In version 1 it is part of the name. */
START_LOOP_TEST(a_mac_says_nothing_in_version_2, 0, 2)
{
	uint8_t other[6] = { 2, 4, 6, 8, 10, 12 };
	unsigned version = (unsigned)_i + 1;

	duo_init_version(version, NULL);
	duo_connect(0, 1, 300);
	const struct link *l = duo_link(A);
	struct clc_accept accept = { .qpn = l->remote.qpn };
	memcpy(accept.gid, l->remote.gid.b, 16);
	memcpy(accept.mac, l->remote.mac, 6);
	ck_assert(link_leads_to(l, l->remote.gid.b, l->remote.mac));
	ck_assert_ptr_eq(link_named(duo_lgr(A), &accept), l);
	memcpy(accept.mac, other, 6);
	ck_assert((link_named(duo_lgr(A), &accept) == l) == (version == 2));
	ck_assert(topology_is_parallel(duo_lgr(A), l->dev, &l->remote.gid, other) == (version == 2));
	accept.gid[15]++;
	ck_assert_ptr_null(link_named(duo_lgr(A), &accept));
}

/* -- REQUEST ADD LINK -- */

static struct llc_add_link last_offer;
static struct rnic_dev *offered_from, *offered_to, *asked_at;

static bool
notes_offers(const struct sim_msg *msg)
{
	struct llc_msg m;

	if (msg->op != RNIC_WR_SEND || msg->data[0] == CDC_TYPE ||
	    llc_decode((struct span){ msg->data, msg->len }, 2, &m) <= 0 || m.response)
		return false;
	if (m.type == LLC_ADD_LINK)
		last_offer = m.add_link, offered_from = msg->from, offered_to = msg->to;
	if (m.type == LLC_REQUEST_ADD_LINK)
		asked_at = msg->to;
	return false;
}

START_TEST(a_client_asks_for_a_link_with_its_gids)
{
	memset(&last_offer, 0, sizeof(last_offer));
	begin(1, NULL);
	d.seen_cnt = 0;
	duo_add_device(B);
	duo_run(500);
	duo_expect_links(2); /* asymmetric: the server offers without being asked */
	d.holds = notes_offers;
	duo_add_device(A);
	duo_run(500);
	d.holds = NULL;
	/* The server wants to reach the device that was told of and has no link. */
	ck_assert_mem_eq(last_offer.client_gid, rnic_query(d.more[A][0]).gid.b, 16);
	ck_assert(last_offer.direct);
	/* Linux would take an offer over a link of the port that it offers for one of an asymmetric link. */
	ck_assert_mem_eq(last_offer.gid, rnic_query(d.more[B][0]).gid.b, 16);
	ck_assert_ptr_eq(offered_from, d.dev[B]);
	/* Linux would not offer the port that it is asked at: that of the asymmetric link is the one that is wanted. */
	ck_assert_ptr_eq(asked_at, d.dev[B]);
	/* 28 bytes, and 16 for each of both devices. */
	expect_v2(A, "REQUEST ADD LINK", 60, false);
	ck_assert_uint_eq(duo_count(A, "ADD LINK"), 0);
	duo_expect_links(2);
	ck_assert_uint_eq(d.eng[B]->ctr.asymmetric_replaced, 1);
	duo_bystander_is_well();
}

/* Linux takes a port other than the one that an offer comes to (smc_llc_cli_add_link): that of the link without an equal, for one that
 * comes over the asymmetric link, and both links would lead to that port for good. */
START_TEST(a_link_is_not_offered_over_the_asymmetric_one)
{
	begin(1, NULL);
	duo_add_device(A);
	duo_run(500);
	duo_expect_links(2); /* asymmetric: of the server's only device */
	ck_assert_ptr_eq(
	    duo_link(B), topology_asymmetric_link(duo_lgr(B))); /* the least used, which carries what may go over any */
	d.holds = notes_offers;
	duo_add_device(B);
	duo_run(500);
	d.holds = NULL;
	ck_assert_ptr_eq(offered_to, d.dev[A]);
	duo_expect_links(2);
	ck_assert_uint_eq(d.eng[B]->ctr.asymmetric_replaced, 1);
	duo_bystander_is_well();
}

/* Linux offers a link once in the place of a lost one: when nothing comes of that the client asks, again and again. */
START_TEST(a_client_asks_for_a_link_that_the_server_does_not_offer_again)
{
	static const struct smcr_config quick = { .add_link_retry_ms = 1000, .add_link_retry_max_ms = 4000 };

	begin(2, &quick);
	duo_expect_links(2);
	d.seen_cnt = 0;
	duo_lgr(B)->links_limit = 1;
	duo_lose(duo_link_nr(A, 2), "test");
	duo_run(500);
	duo_expect_links(1);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 0);
	duo_run(8000);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 3);
	duo_expect_links(1);
	duo_lgr(B)->links_limit = 2;
	duo_run(5000);
	duo_expect_links(2);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 4);
	duo_run(20000);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 4);
	duo_bystander_is_well();
}

static struct rnic_gid wanted[8];
static unsigned wanted_cnt;

/* A message is shown more than once: one offer for each failure is noted. */
static bool
notes_wanted(const struct sim_msg *msg)
{
	unsigned before = duo_lgr(B)->add_failures;

	last_offer.link_num = 0;
	(void)notes_offers(msg);
	if (last_offer.link_num == 0 || before != wanted_cnt || wanted_cnt == 8)
		return false;
	memcpy(wanted[wanted_cnt++].b, last_offer.client_gid, 16);
	return false;
}

/* The path to the client's first unused RNIC may be silent though its port is up. */
START_TEST(after_a_failure_an_offer_is_for_another_gid)
{
	static const struct smcr_config quick = { .add_link_retry_ms = 1000, .add_link_retry_max_ms = 2000 };

	begin(3, &quick);
	duo_expect_links(2);
	wanted_cnt = 0;
	d.holds = notes_wanted;
	duo_lgr(A)->links_limit = 1; /* so it rejects */
	duo_lose(duo_link_nr(A, 2), "test");
	duo_run(20000);
	ck_assert_uint_ge(wanted_cnt, 3);
	ck_assert_mem_ne(wanted[0].b, wanted[1].b, 16);
	for (unsigned i = 0; i < wanted_cnt; i++)
		ck_assert_mem_ne(wanted[i].b, duo_link(B)->remote.gid.b, 16);
	d.holds = NULL;
	duo_lgr(A)->links_limit = 2;
	duo_run(5000);
	duo_expect_links(2);
	duo_bystander_is_well();
}

/* Linux would wait for what it has sent over the link to be complete, and soft RoCE never stops sending: the link is for the server
 * to find lost. One over which it has nothing to send, and which it does not test, is deleted in the end. */
START_LOOP_TEST(a_client_asks_for_no_deletion_that_would_not_end, 0, 3)
{
	begin(2, NULL);
	duo_link_nr(A, 2)->info.retries_forever = _i > 0;
	d.seen_cnt = 0;
	duo_lose(duo_link_nr(A, 2), "test");
	duo_run(500);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK"), _i == 0);
	if (_i == 1)
		duo_lose(duo_link_nr(B, 2), "found lost");
	duo_run(39000);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK"), _i == 0);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), _i < 2);
	duo_run(1000);
	ck_assert_uint_eq(duo_count(A, "DELETE LINK"), _i != 1);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 1);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_timeouts, 0);
	duo_expect_links(2);
	duo_bystander_is_well();
}

static enum rnic_reach
by_router(struct rnic_dev *dev, const struct rnic_gid *gid)
{
	(void)dev;
	return gid->b[14] == 1 ? RNIC_REACH_GATEWAY : RNIC_REACH_DIRECT; /* sim_dev_at: the second device */
}

START_LOOP_TEST(an_offer_says_whether_a_router_is_on_the_way, 0, 2)
{
	uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, (uint8_t)_i, 77 };
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .request_add_link = { .gid_cnt = 1, .gids = gid } };
	struct rnic_ops ops;

	begin(1, NULL);
	const struct rnic_ops *sim = d.dev[B]->ops;
	ops = *sim;
	ops.reaches = by_router;
	d.dev[B]->ops = &ops;
	d.holds = notes_offers;
	duo_inject(duo_link_nr(B, 1), &msg);
	duo_run(50);
	d.holds = NULL;
	ck_assert_mem_eq(last_offer.client_gid, gid, 16);
	ck_assert(last_offer.direct == (_i == 0));
	ck_assert_uint_eq(duo_count(B, "REQUEST ADD LINK response"), 0); /* the offer was the answer */
	duo_bystander_is_well();
	d.dev[B]->ops = sim;
}

/* Linux would wait for one of the two, with its RKEY exchanges held back. */
START_TEST(a_request_that_brings_no_link_is_answered)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 77 };
	const struct smcr_config one_link = { .links_max = 1 };
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .request_add_link = { .gid_cnt = 1, .gids = gid } };

	begin(1, &one_link);
	duo_inject(duo_link_nr(B, 1), &msg);
	duo_run(50);
	ck_assert_uint_eq(duo_count(B, "REQUEST ADD LINK response"), 1);
	ck_assert_uint_eq(duo_count(B, "ADD LINK"), 0);
	duo_expect_links(1);
	duo_bystander_is_well();
}

/* As Linux answers when it has no device for another link, or no queue pair: all zeroes. */
/* The link that the request came over ends before the answer, and its number is another link's: the peer waits all the same. */
START_LOOP_TEST(a_request_is_answered_though_its_link_has_ended, 0, 2)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 77 };
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .request_add_link = { .gid_cnt = 1, .gids = gid } };
	bool anew = _i == 1;

	begin(2, NULL);
	duo_expect_links(2);
	d.seen_cnt = 0;
	struct lgr *lgr = duo_lgr(B);
	struct link *left = duo_link_nr(B, 2);
	duo_inject(duo_link_nr(B, 1), &msg);
	duo_lose(duo_link_nr(B, 1), "test");
	if (anew)
		left->number = 1;
	lgr->links_limit = 1; /* no offer */
	llc_answer_asked(lgr);
	if (anew)
		left->number = 2;
	duo_run(20);
	ck_assert_uint_eq(duo_count(B, "REQUEST ADD LINK response"), 1);
	ck_assert_uint_eq(duo_count(B, "ADD LINK"), 0);
	duo_run(1000);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc + d.eng[B]->ctr.bad_llc, 0);
	duo_bystander_is_well();
}

START_TEST(a_server_that_makes_nothing_of_a_request_loses_no_link)
{
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .response = true };

	begin(1, NULL);
	uint64_t ignored = d.eng[A]->ctr.llc_ignored;
	duo_inject(duo_link_nr(A, 1), &msg);
	duo_run(50);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_ignored, ignored + 1);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 0);
	duo_expect_links(1);
	duo_bystander_is_well();
}

/* Each would make a queue pair. */
START_TEST(a_flood_of_requests_makes_few_offers)
{
	static const uint8_t gids[LLC_MAX_GIDS * 16];
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .request_add_link = { .gids = gids } };

	begin(1, NULL);
	unsigned before = duo_count(B, "ADD LINK");
	for (unsigned i = 0; i < 150; i++) {
		msg.request_add_link.gid_cnt = (uint8_t)(i % LLC_MAX_GIDS + 1);
		duo_inject(duo_link_nr(B, 1), &msg);
		duo_run(20);
	}
	ck_assert_uint_ge(duo_count(B, "ADD LINK"), before + 3);
	ck_assert_uint_le(duo_count(B, "ADD LINK"), before + 4);
	ck_assert_uint_ge(d.eng[B]->ctr.llc_limited, 140);
	ck_assert_uint_ge(duo_count(B, "REQUEST ADD LINK response"), 140);
	duo_bystander_is_well();
}

START_LOOP_TEST(only_a_client_asks_for_a_link, 0, 2)
{
	static const uint8_t gid[16];
	struct llc_msg msg = { .type = LLC_REQUEST_ADD_LINK, .request_add_link = { .gid_cnt = 1, .gids = gid } };

	/* To the client; an answer to the server. */
	msg.response = _i > 0;
	begin(1, NULL);
	unsigned host = _i == 1 ? B : A;
	duo_inject(duo_link(host), &msg);
	ck_assert_uint_eq(d.eng[host]->ctr.bad_llc, 1);
	ck_assert_uint_eq(duo_lgr_cnt(host), 0);
}

/* -- ADD LINK of a peer that lies -- */

/* Room for what a test puts into a message. */
static uint8_t pairs[LLC_MAX_PAIRS * LLC_PAIR_LEN];

/* An offer of the server for a link that could be. */
static struct llc_msg
offer(uint8_t number)
{
	struct rnic_info info = rnic_query(d.dev[B]);
	struct llc_msg msg = { .type = LLC_ADD_LINK, .add_link.pairs = pairs };

	msg.add_link.link_num = number;
	msg.add_link.mtu_code = 3;
	msg.add_link.qpn = 0x777;
	memcpy(msg.add_link.gid, info.gid.b, 16);
	msg.add_link.gid[15] = 200; /* a device of the server that has no link yet */
	return msg;
}

enum lie {
	NO_PAIR,
	UNKNOWN_PAIRS,
	ALL_BUT_ONE, /* of three RMBs in use, two; the rest is garbage */
	LIES,
};

static void
put_lie(struct llc_msg *msg, unsigned host, enum lie lie)
{
	unsigned n = 0;

	memset(pairs, 0x5a, sizeof(pairs));
	msg->add_link.pair_cnt = lie == NO_PAIR ? 0 : LLC_MAX_PAIRS;
	if (lie != ALL_BUT_ONE)
		return;
	LIST_EACH(const struct remote_rmb, rr, &duo_lgr(host)->remote_rmbs, node) {
		const struct link *l = duo_link(host);
		struct llc_rkey_pair pair = { rr->on[l->slot].rkey, 0x1000 + n, 0x100000 };

		if (++n == duo_lgr(host)->remote_rmb_cnt)
			break;
		/* Again and again: the first one counts. */
		for (unsigned i = n; i < LLC_MAX_PAIRS; i += 3)
			llc_pair_put(pairs, i, &pair);
	}
}

/* RMBs in use without an RToken on the new link: it is rejected, one after the other, and nothing else suffers. */
START_LOOP_TEST(an_offer_that_leaves_out_an_rmb_in_use_is_rejected, 0, LIES)
{
	begin(1, &one_element);
	duo_connect(1, 2, 50);
	duo_add_device(A);
	duo_run(2000);
	unsigned links = duo_lgr(A)->active_cnt, rmbs = duo_lgr(A)->remote_rmb_cnt;
	unsigned rejected = (unsigned)d.eng[A]->ctr.add_link_rejected;
	for (unsigned i = 0; i < 5; i++) {
		struct llc_msg msg = offer((uint8_t)(100 + i));

		put_lie(&msg, A, (enum lie)_i);
		duo_inject(duo_link(A), &msg);
		ck_assert_uint_eq(d.eng[A]->ctr.add_link_rejected, ++rejected);
		ck_assert_int_eq(duo_lgr(A)->flow[LLC_FLOW_LINK].step, LLC_IDLE);
		duo_run(100);
		ck_assert_uint_eq(duo_lgr(A)->active_cnt, links);
		ck_assert_uint_eq(duo_lgr(A)->remote_rmb_cnt, rmbs);
		duo_bystander_is_well();
	}
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 0);
}

/* Something long is not complete yet: the client rejects the offer, the server does not make it. The links are well. */
START_LOOP_TEST(an_add_link_that_finds_no_room_is_made_later, 0, 2)
{
	unsigned host = (unsigned)_i;

	begin(1, &(struct smcr_config){ .add_link_retry_ms = 1000 });
	d.seen_cnt = 0;
	struct link *link = duo_link(host);
	link->long_used = LLC_MAX_LEN - LINK_MSG_LEN;
	link->long_cnt = 1;
	duo_add_devices();
	duo_run(100);
	duo_expect_links(1);
	ck_assert((duo_count(B, "ADD LINK") > 0) == (host == A));
	ck_assert_uint_eq(d.eng[A]->ctr.add_link_rejected, duo_count(A, "ADD LINK response") + 1);
	link->long_used = link->long_cnt = 0;
	duo_run(5000);
	duo_expect_links(2);
	duo_bystander_is_well();
}

static bool
is_answer_of_a(const struct sim_msg *msg)
{
	return msg->from == d.dev[A] && msg->op == RNIC_WR_SEND && msg->data[0] == (0x20 | LLC_ADD_LINK);
}

/* And the client's answer: the new link is deleted. The first RMB, at first contact, is where it was (i < LIES). */
START_LOOP_TEST(an_answer_that_leaves_out_an_rmb_in_use_makes_no_link, 0, 2 * LIES)
{
	bool first = _i < LIES;

	duo_init_version(2, &one_element);
	if (!first)
		duo_connect(0, 3, 300);
	duo_add_devices();
	d.holds = is_answer_of_a;
	if (first)
		duo_open(0);
	duo_run(100);
	struct lgr *lgr = duo_lgr(B);
	ck_assert_int_eq(lgr->state, first ? LGR_FORMING : LGR_ACTIVE);
	ck_assert_int_eq(lgr->flow[LLC_FLOW_LINK].step, LLC_WAIT_ADD_LINK_RSP);
	unsigned rmbs = lgr->remote_rmb_cnt;
	struct llc_msg msg = offer(lgr->flow[LLC_FLOW_LINK].number);
	msg.response = true;
	put_lie(&msg, B, (enum lie)(_i % LIES));
	duo_inject(lgr->flow[LLC_FLOW_LINK].link, &msg);
	ck_assert_ptr_null(lgr->flow[LLC_FLOW_LINK].new_link); /* it is to be deleted, not to be confirmed */
	ck_assert_uint_eq(lgr->remote_rmb_cnt, rmbs);
	ck_assert_uint_eq(lgr->active_cnt, 1);
	d.holds = NULL;
	duo_run(3000);
	ck_assert(BOTH(0, ESTABLISHED));
	duo_bystander_is_well();
	ck_assert_uint_eq(duo_lgr(B)->remote_rmb_cnt, rmbs);
}

/* All bytes of a long message, one after the other, cut off; each in a group of its own. */
static enum rnic_reach
only_where_links_are(struct rnic_dev *dev, const struct rnic_gid *gid)
{
	(void)dev;
	return gid->b[15] == 200 ? RNIC_REACH_NONE : RNIC_REACH_DIRECT; /* offer() */
}

/* The client answers from a port that no route leads to. */
START_LOOP_TEST(an_answer_from_a_port_without_a_route_makes_no_link, 0, 2)
{
	bool routed = _i == 1;
	struct rnic_ops ops;

	begin(1, NULL);
	duo_add_devices();
	const struct rnic_ops *sim = d.dev[B]->ops;
	ops = *sim;
	ops.reaches = routed ? sim->reaches : only_where_links_are;
	d.holds = is_answer_of_a;
	duo_run(100);
	struct lgr *lgr = duo_lgr(B);
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	ck_assert_int_eq(f->step, LLC_WAIT_ADD_LINK_RSP);
	struct llc_msg msg = offer(f->number);
	msg.response = true;
	put_lie(&msg, B, NO_PAIR);
	msg.add_link.pair_cnt = 1;
	LIST_EACH(const struct remote_rmb, rr, &lgr->remote_rmbs, node)
		llc_pair_put(pairs, 0, &(struct llc_rkey_pair){ rr->on[f->link->slot].rkey, 0x4711, 0x1000 });
	struct rnic_dev *dev = f->new_link->dev;
	dev->ops = &ops;
	duo_inject(f->link, &msg);
	ck_assert((f->new_link != NULL) == routed);
	dev->ops = sim;
	d.holds = NULL;
	duo_run(3000);
	duo_bystander_is_well();
}

START_LOOP_TEST(a_message_that_is_cut_off_ends_its_group_alone, 0, 6)
{
	static const size_t lens[] = { 0, 43, 44, 71, 87, 103 };
	uint8_t buf[LLC_MAX_SENT_LEN];

	duo_init_version(2, &(struct smcr_config){ .conns_per_group = 1 });
	duo_connect(0, 2, 300);
	duo_expect_groups(2);
	struct llc_msg msg = offer(100);
	msg.add_link.pair_cnt = 2;
	ck_assert_int_eq(llc_encode(&msg, 2, buf, sizeof(buf)), 104);
	llc_recv(c[1].conn->link, buf, lens[_i]);
	duo_run(100);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 1);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
	duo_bystander_is_well();
}

/* A type of version 1, and one that version 2 does not have. */
START_LOOP_TEST(types_of_the_other_version_are_a_protocol_error, 0, 3)
{
	static const uint8_t types[] = { LLC_TEST_LINK, 0x20 | LLC_ADD_LINK_CONT, 0x20 | LLC_CONFIRM_RKEY_CONT };
	uint8_t buf[LLC_LEN] = { types[_i], LLC_LEN };

	begin(1, NULL);
	llc_recv(duo_link(A), buf, sizeof(buf));
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 1);
	engine_act_on_marks(d.eng[A]);
	ck_assert_uint_eq(duo_lgr_cnt(A), 0);
}

/* -- DELETE RKEY -- */

START_TEST(idle_rmbs_are_deleted_and_the_answer_names_nothing)
{
	begin(1, &(struct smcr_config){ .rmb_elems = 1, .rmb_idle_ms = 1000 });
	duo_connect(1, 3, 50);
	duo_end_pairs(1, 3, 100);
	duo_run(10000);
	for (unsigned h = 0; h < 2; h++) {
		ck_assert_uint_eq(duo_lgr(h)->rmb_cnt, 1);
		ck_assert_uint_eq(duo_lgr(h)->remote_rmb_cnt, 1);
		ck_assert_uint_eq(duo_count(h, "DELETE RKEY"), 3);
		expect_v2(h, "DELETE RKEY response", 44, false);
	}
	duo_bystander_is_well();
}

/* Some are ours, one is in use, the others nobody knows. */
START_LOOP_TEST(up_to_255_rmbs_are_deleted_by_one_message, 0, 2)
{
	uint8_t rkeys[LLC_MAX_DELETE_RKEYS_V2 * LLC_RKEY_LEN];
	struct llc_msg msg = { .type = LLC_DELETE_RKEY }, answer;
	bool foreign = _i == 1;

	begin(1, NULL);
	struct lgr *lgr = duo_lgr(A);
	struct link *link = duo_link(A);
	ck_assert(lgr->dialect.foreign);
	if (!foreign)
		lgr->dialect.delete_rkey_is_final = false;
	for (unsigned i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(remote_rmb_add(lgr, link, 0x5000 + i, i));
	for (unsigned i = 0; i < LLC_MAX_DELETE_RKEYS_V2; i++)
		llc_rkey_put(rkeys, i, 0x5000 + i);
	llc_rkey_put(rkeys, 200, c[0].conn->peer_rmb->on[link->slot].rkey);
	msg.delete_rkey.cnt = LLC_MAX_DELETE_RKEYS_V2;
	msg.delete_rkey.rkeys = rkeys;
	duo_inject(link, &msg);
	const struct link_llc *q = &link->llc_queue[link->llc_first];
	ck_assert_uint_eq(q->len, LLC_LEN);
	ck_assert_int_gt(llc_decode((struct span){ q->msg, q->len }, 2, &answer), 0);
	ck_assert(answer.response && answer.delete_rkey.negative);
	ck_assert_uint_eq(answer.delete_rkey.cnt, LLC_MAX_DELETE_RKEYS_V2);
	/* Linux does not wait for what we say: its RMB is gone, and the connection holds but the place where it was. */
	ck_assert_uint_eq(answer.delete_rkey.invalid_cnt, foreign ? 154 : 155);
	ck_assert_uint_eq(lgr->remote_rmb_cnt, foreign ? 0 : 1);
	link->llc_cnt = 0; /* the other side never asked */
	if (!foreign)
		duo_bystander_is_well();
}

static unsigned answers_let_through;

static bool
is_delete_answer_of_b(const struct sim_msg *msg)
{
	if (msg->from != d.dev[B] || msg->op != RNIC_WR_SEND || msg->data[0] != (0x20 | LLC_DELETE_RKEY) ||
	    (msg->data[3] & 0x80) == 0)
		return false;
	if (answers_let_through == 0)
		return true;
	answers_let_through--;
	return false;
}

/* A second pair's RMBs are idle, and deleted; B's answers are as late as the test says. */
static struct llc_flow *
deletes_without_answer(void)
{
	answers_let_through = 0;
	begin(1, &(struct smcr_config){ .rmb_elems = 1, .rmb_idle_ms = 1000, .keepalive_answer_ms = 2000 });
	duo_connect(1, 1, 50);
	duo_close(1);
	duo_run(100);
	duo_release_pair(1);
	d.seen_cnt = 0;
	d.holds = is_delete_answer_of_b;
	duo_until(A, "DELETE RKEY");
	duo_run(350);
	ck_assert_uint_eq(duo_count(A, "DELETE RKEY"), 2);
	return &duo_lgr(A)->flow[LLC_FLOW_RKEY];
}

/* It names nothing, and is not that to the exchange which was begun meanwhile. */
START_TEST(a_late_answer_to_delete_rkey_is_none_to_the_next_one)
{
	struct llc_flow *f = deletes_without_answer();

	ck_assert_int_eq(f->step, LLC_WAIT_DELETE_RKEY_RSP);
	uint64_t ignored = d.eng[A]->ctr.llc_ignored;
	answers_let_through = 1;
	duo_run(50);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_ignored, ignored + 1);
	ck_assert_int_eq(f->step, LLC_WAIT_DELETE_RKEY_RSP);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, 2);
	d.holds = NULL;
	duo_run(10000);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, 1);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 0);
	duo_bystander_is_well();
}

/* Linux drops a request that meets another: when the test behind it is answered, no answer will come, and the next is of use. */
START_LOOP_TEST(an_answer_that_never_comes_is_not_waited_for, 0, 2)
{
	bool test_under_way = _i == 1; /* before the request was given up: its answer says nothing */

	begin(1, &(struct smcr_config){ .rmb_elems = 1, .rmb_idle_ms = 1000 });
	struct link *link = duo_link(A);
	link->owed_deletes = link->late_rkeys = 1;
	link->test_again = test_under_way;
	llc_ask_alive(link, "test");
	duo_run(50);
	ck_assert_uint_eq(link->owed_deletes, 0);
	ck_assert_uint_eq(duo_count(A, "TEST LINK"), test_under_way ? 2 : 1);
	duo_connect(1, 1, 50);
	duo_close(1);
	duo_run(100);
	duo_release_pair(1);
	duo_run(2200);
	ck_assert_uint_eq(duo_lgr(A)->rmb_cnt, 1);
	ck_assert_uint_eq(duo_count(A, "DELETE RKEY"), 1);
	duo_bystander_is_well();
}

/* What is not asked for is no answer, in version 2 as well. */
START_TEST(an_answer_to_no_delete_rkey_takes_the_link_down)
{
	struct llc_msg msg = { .type = LLC_DELETE_RKEY, .response = true, .delete_rkey.cnt = 1 };

	begin(1, NULL);
	duo_inject(duo_link(B), &msg);
	ck_assert_uint_eq(d.eng[B]->ctr.bad_llc, 1);
	ck_assert_uint_eq(duo_lgr_cnt(B), 0);
}

/* -- Linux asks for an RKEY but once -- */

static bool
is_offer_of_b(const struct sim_msg *msg)
{
	return msg->from == d.dev[B] && msg->op == RNIC_WR_SEND && (msg->data[0] & 0x0f) == LLC_ADD_LINK;
}

/* An smcrd (0), Linux of version 1 or 2. */
START_LOOP_TEST(an_rkey_that_crosses_our_offer_is_taken_from_linux, 0, 3)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .confirm_rkey = { .rkey = 0x4711, .vaddr = 0x1000 } };
	bool foreign = _i != 0;

	duo_init_version(_i == 2 ? 2 : 1, NULL);
	d.peer = foreign ? SMCR_PEER_LINUX : SMCR_PEER_SMCRD;
	duo_connect(0, 1, 300);
	d.holds = is_offer_of_b;
	duo_add_devices();
	duo_run(10);
	struct lgr *lgr = duo_lgr(B);
	struct link *link = duo_link(B);
	ck_assert_int_eq(lgr->flow[LLC_FLOW_LINK].step, LLC_WAIT_ADD_LINK_RSP);
	duo_inject(link, &msg);
	ck_assert((remote_rmb_find(lgr, link, 0x4711, NULL) != NULL) == foreign);
	ck_assert_uint_eq(link->llc_queue[link->llc_first].msg[3], foreign ? 0x80 : 0xb0);
	link->llc_cnt = 0; /* the other side never asked */
	d.holds = NULL;
	duo_run(500);
	duo_expect_links(2);
	/* Of the RMBs that the peer's answer names it was none. */
	ck_assert_uint_eq(lgr->remote_rmb_cnt, 1);
	duo_bystander_is_well();
}

static bool
is_delete_of_b(const struct sim_msg *msg)
{
	return msg->from != d.dev[A] && msg->op == RNIC_WR_SEND && (msg->data[0] & 0x0f) == LLC_DELETE_LINK;
}

/* The same with the deletion of a link: bit 0: the peer is no smcrd; bit 1: DELETE RKEY. */
START_LOOP_TEST(an_rkey_that_crosses_our_delete_link_is_taken_from_linux, 0, 4)
{
	uint8_t rkey[LLC_RKEY_LEN];
	struct llc_msg confirm = { .type = LLC_CONFIRM_RKEY, .confirm_rkey = { .rkey = 0x4711, .vaddr = 0x1000 } };
	struct llc_msg delete = { .type = LLC_DELETE_RKEY, .delete_rkey = { .cnt = 1, .rkeys = rkey } };
	bool foreign = (_i & 1) != 0, deletes = (_i & 2) != 0;

	duo_init_version(foreign ? 2 : 1, NULL);
	d.peer = foreign ? SMCR_PEER_LINUX : SMCR_PEER_SMCRD;
	duo_add_devices();
	duo_connect(0, 1, 300);
	duo_expect_links(2);
	struct lgr *lgr = duo_lgr(B);
	d.holds = is_delete_of_b;
	duo_lose(duo_link_nr(B, 1), "test");
	(void)smcr_flush(d.eng[B]);
	ck_assert_int_eq(lgr->flow[LLC_FLOW_LINK].step, LLC_WAIT_DELETE_LINK_RSP);
	struct link *link = duo_link_nr(B, 2);
	llc_rkey_put(rkey, 0, 0x4711);
	if (deletes)
		ck_assert_ptr_nonnull(remote_rmb_add(lgr, link, 0x4711, 0x1000));
	unsigned before = lgr->remote_rmb_cnt;
	duo_inject(link, deletes ? &delete : &confirm);
	ck_assert_uint_eq(lgr->remote_rmb_cnt, !foreign ? before : deletes ? before - 1 : before + 1);
	link->llc_cnt = 0; /* the other side never asked */
	d.holds = NULL;
	duo_run(1000);
	duo_expect_links(2);
	duo_bystander_is_well();
}

/* Before the group is there, there is nothing to be confirmed, or deleted. */
START_TEST(an_rkey_amid_first_contact_is_refused)
{
	uint8_t rkey[LLC_RKEY_LEN];
	struct llc_msg msg = { .type = LLC_DELETE_RKEY, .delete_rkey = { .cnt = 1, .rkeys = rkey } };

	duo_init_version(2, NULL);
	duo_add_devices();
	d.holds = is_offer_of_b;
	duo_open(0);
	duo_run(10);
	struct lgr *lgr = duo_lgr(B);
	ck_assert_int_eq(lgr->state, LGR_FORMING);
	llc_rkey_put(rkey, 0, s[0].conn->rdv->peer.rkey);
	duo_inject(&lgr->links[0], &msg);
	ck_assert_uint_eq(lgr->remote_rmb_cnt, 1);
	lgr->links[0].llc_cnt = 0;
	d.holds = NULL;
	duo_run(500);
	ck_assert(BOTH(0, ESTABLISHED));
	duo_bystander_is_well();
}

/* Version 2 of Linux is over IPv4: a port with another address is of no use to such a group, and not told of. */
START_TEST(a_link_of_version_2_is_over_ipv4)
{
	const struct rnic_gid gid = { .b = { 0xfe, 0x80, [15] = 7 } };
	uint8_t gids[LLC_MAX_GIDS * 16];

	begin(1, NULL);
	struct rnic_dev *dev = sim_dev_new(d.fab, "ipv6", RNIC_TRANSPORT_ROCE, &gid, (const uint8_t[6]){ 2, 7 });
	sim_gid_type(dev, RNIC_GID_ROCE_V2);
	ck_assert_int_eq(smcr_add_device(d.eng[A], dev), 0);
	duo_run(500);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 0);
	ck_assert_uint_eq(topology_gids(duo_lgr(A), gids), 1);
	ck_assert_mem_eq(gids, rnic_query(d.dev[A]).gid.b, 16);
	duo_add_device(A);
	duo_run(500);
	ck_assert_uint_eq(duo_count(A, "REQUEST ADD LINK"), 1);
	ck_assert_uint_eq(topology_gids(duo_lgr(A), gids), 2);
	ck_assert_mem_eq(gids + 16, rnic_query(d.more[A][0]).gid.b, 16);
	duo_expect_links(2);
}

/* -- lies in any order -- */

#define LIES_A_RUN 150

static struct rng dice;

static bool
one_in(uint32_t n)
{
	return rng_below(&dice, n) == 0;
}

/* A key that the group knows at either end, or a number near one. */
static uint32_t
some_rkey(const struct lgr *lgr, const struct link *link)
{
	uint32_t rkey = (uint32_t)rng_u64(&dice);

	LIST_EACH(const struct remote_rmb, rr, &lgr->remote_rmbs, node)
		if (one_in(2))
			rkey = rr->on[link->slot].rkey + (one_in(4) ? 1 : 0);
	LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node)
		if (one_in(3) && rmb->mr[link->slot] != NULL)
			rkey = rmb->mr[link->slot]->rkey;
	return rkey;
}

static uint8_t
some_number(const struct lgr *lgr)
{
	const struct link *l = &lgr->links[rng_below(&dice, LINK_SLOTS)];

	return one_in(3) ? (uint8_t)rng_u64(&dice) : one_in(3) ? lgr->flow[LLC_FLOW_LINK].number : l->number;
}

static void
some_gid(uint8_t *out, const struct lgr *lgr)
{
	const struct link *l = &lgr->links[rng_below(&dice, LINK_SLOTS)];

	memcpy(out, one_in(2) ? l->remote.gid.b : rnic_query(d.more[rng_below(&dice, 2)][0]).gid.b, 16);
	if (one_in(4))
		out[15] ^= 0x80;
}

static void
lie_about_links(struct llc_msg *m, const struct lgr *lgr, const struct link *over)
{
	static uint8_t room[LLC_MAX_PAIRS * LLC_PAIR_LEN];
	struct llc_add_link *add = &m->add_link;

	if (m->type == LLC_CONFIRM_LINK) {
		m->confirm_link.link_num = some_number(lgr);
		m->confirm_link.qpn = one_in(4) ? 1 : over->remote.qpn;
		m->confirm_link.max_links = (uint8_t)rng_u64(&dice);
		m->confirm_link.max_conns = (uint8_t)rng_u64(&dice);
		memcpy(m->confirm_link.gid, over->remote.gid.b, 16);
	} else if (m->type == LLC_ADD_LINK) {
		add->link_num = some_number(lgr);
		add->mtu_code = (uint8_t)rng_below(&dice, 7);
		add->qpn = (uint32_t)rng_below(&dice, 1 << 24);
		add->rejected = m->response && one_in(3);
		add->pair_cnt = one_in(3) ? LLC_MAX_PAIRS : (uint8_t)rng_below(&dice, 5);
		add->pairs = room;
		some_gid(add->gid, lgr);
		for (unsigned i = 0; i < add->pair_cnt; i++)
			llc_pair_put(room, i, &(struct llc_rkey_pair){ some_rkey(lgr, over), i, i });
	} else if (m->type == LLC_DELETE_LINK) {
		m->delete_link.link_num = some_number(lgr);
		m->delete_link.reason = (uint32_t)rng_below(&dice, 6) << 16;
		m->delete_link.all = one_in(20);
		m->delete_link.orderly = one_in(2);
	} else {
		m->request_add_link.gid_cnt = (uint8_t)(1 + rng_below(&dice, LLC_MAX_GIDS));
		m->request_add_link.gids = room;
		some_gid(room, lgr);
	}
}

static void
lie_about_rmbs(struct llc_msg *m, const struct lgr *lgr, const struct link *over)
{
	static uint8_t room[LLC_MAX_DELETE_RKEYS_V2 * LLC_RKEY_LEN];

	if (m->type == LLC_CONFIRM_RKEY) {
		m->confirm_rkey.rkey = some_rkey(lgr, over);
		m->confirm_rkey.other_cnt = (uint8_t)rng_below(&dice, 3);
		m->confirm_rkey.negative = m->response && one_in(3);
		m->confirm_rkey.retry = one_in(2);
		for (unsigned i = 0; i < m->confirm_rkey.other_cnt; i++)
			m->confirm_rkey.others[i] = (struct llc_link_rkey){ some_number(lgr), some_rkey(lgr, over), i };
	} else if (m->type == LLC_DELETE_RKEY) {
		m->delete_rkey.cnt = one_in(3) ? LLC_MAX_DELETE_RKEYS_V2 : (uint8_t)(1 + rng_below(&dice, 4));
		m->delete_rkey.negative = m->response && one_in(3);
		m->delete_rkey.rkeys = room;
		for (unsigned i = 0; i < m->delete_rkey.cnt; i++)
			llc_rkey_put(room, i, some_rkey(lgr, over));
	} else if (m->response) {
		memcpy(m->test_link.user_data, over->test_data, sizeof(over->test_data));
	}
}

/* A message as the peer might send it, or nearly, over one of the links of this group. */
static void
tell_lie(struct lgr *lgr)
{
	static const enum llc_type types[] = { LLC_CONFIRM_LINK, LLC_ADD_LINK, LLC_ADD_LINK, LLC_DELETE_LINK,
		LLC_REQUEST_ADD_LINK, LLC_CONFIRM_RKEY, LLC_DELETE_RKEY, LLC_TEST_LINK };
	struct llc_msg m = { .type = types[rng_below(&dice, 8)], .response = one_in(3), .little = one_in(2) };
	struct link *over = &lgr->links[rng_below(&dice, LINK_SLOTS)];
	uint8_t buf[LLC_MAX_SENT_LEN];

	if (link_has_ended(over))
		return;
	if (m.type <= LLC_REQUEST_ADD_LINK)
		lie_about_links(&m, lgr, over);
	else
		lie_about_rmbs(&m, lgr, over);
	int n = llc_encode(&m, LLC_VERSION_2, buf, sizeof(buf));
	ck_assert_int_ge(n, LLC_LEN);
	if (one_in(20))
		buf[rng_below(&dice, (uint32_t)n)] ^= (uint8_t)(1u << rng_below(&dice, 8));
	if (one_in(50))
		n = (int)rng_below(&dice, (uint32_t)n);
	llc_recv(over, buf, (size_t)n);
	engine_act_on_marks(lgr->eng);
}

/* In one group after the other, which may break of it, at either end; the first one, which is not lied to, does not. */
START_LOOP_TEST(lies_in_any_order_harm_their_own_group_alone, 0, 200)
{
	unsigned pair = 1;

	rng_init_seeded(&dice, (uint64_t)_i + 1);
	duo_init_version(
	    2, &(struct smcr_config){ .conns_per_group = 1, .keepalive_ms = 500, .keepalive_answer_ms = 500 });
	duo_add_devices();
	duo_connect(0, 1, 300);
	const struct lgr *bystander[2] = { duo_lgr(A), duo_lgr(B) };
	for (unsigned i = 0; i < LIES_A_RUN; i++) {
		struct lgr *lgr = NULL;
		unsigned host = (unsigned)rng_below(&dice, 2);

		LIST_EACH(struct lgr, l, &d.eng[host]->lgrs, node)
			if (l != bystander[host])
				lgr = l;
		if (lgr != NULL)
			tell_lie(lgr);
		else if (pair < DUO_PAIRS)
			duo_open(pair++);
		if (!one_in(3))
			duo_run((int64_t)rng_below(&dice, one_in(10) ? 400 : 5));
	}
	duo_run(3000);
	duo_bystander_is_well();
	ck_assert_ptr_eq(c[0].conn->lgr, bystander[A]);
	ck_assert_ptr_eq(s[0].conn->lgr, bystander[B]);
}

/* -- a card that is silent -- */

static bool
is_by_second_device_of_a(const struct sim_msg *msg)
{
	return msg->from == d.more[A][0];
}

/* What the log says of links since the last time. */
static void
expect_lines(unsigned host, unsigned up, unsigned down, unsigned ended)
{
	struct smcr_log l;
	unsigned cnt[SMCR_LOG_TYPE_CNT] = { 0 };

	while (smcr_next_log(d.eng[host], &l))
		cnt[l.type]++;
	ck_assert_uint_eq(cnt[SMCR_LOG_LINK_UP], up);
	ck_assert_uint_eq(cnt[SMCR_LOG_LINK_DOWN], down);
	ck_assert_uint_eq(cnt[SMCR_LOG_LINK_ENDED], ended);
}

/* What a client's card sends gets nowhere, but it hears of new links. The log says once that the link is gone, and once that
 * it is back. */
START_LOOP_TEST(links_that_nothing_is_heard_over_are_no_news, 0, 2)
{
	static const struct smcr_config quick = {
		.add_link_retry_ms = 500, .keepalive_ms = 500, .keepalive_answer_ms = 300
	};

	duo_init_version((unsigned)_i + 1, &quick);
	duo_add_devices();
	duo_connect(0, 1, 300);
	duo_expect_links(2);
	duo_run(1000);
	expect_lines(A, 2, 0, 0);
	d.holds = is_by_second_device_of_a;
	uint64_t up = d.eng[A]->ctr.links_up;
	duo_run(20000);
	ck_assert_uint_ge(d.eng[A]->ctr.links_up, up + 5);
	expect_lines(A, 0, 1, 0);
	d.holds = NULL;
	duo_run(10000);
	duo_expect_links(2);
	expect_lines(A, 1, 0, 0);
	duo_bystander_is_well();
}
