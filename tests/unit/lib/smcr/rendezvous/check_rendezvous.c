/* Rendezvous of two engines: RFC 7609 3.5 and Appendix C. */
#include "duo.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"
#include "smcr/proof.h"

#include <stdio.h>
#include <string.h>

UNIT_CASE(duo_case(tc, 5000));

START_TEST(first_contact_then_subsequent)
{
	duo_begin(NULL);
	duo_expect(0, A, "PROPOSAL");
	duo_expect(1, B, "ACCEPT first contact");
	duo_expect(2, A, "CONFIRM");
	duo_expect(3, B, "CONFIRM LINK");
	duo_expect(4, A, "CONFIRM LINK response");
	duo_expect(5, B, "ADD LINK");
	duo_expect(6, A, "ADD LINK response");
	duo_connect(1, 1, 100);
	duo_expect(7, A, "PROPOSAL");
	duo_expect(8, B, "ACCEPT");
	duo_expect(9, A, "CONFIRM");
	ck_assert_uint_eq(d.seen_cnt, 10);
	duo_expect_groups(1);
	ck_assert_uint_eq(duo_lgr(A)->conn_cnt, 2);
}

START_TEST(simultaneous_first_contacts_make_one_group)
{
	duo_init(true, true, NULL);
	duo_connect(0, 8, 500);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 1);
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
}

static const struct smcr_config small_groups = { .conns_per_group = 2 };

START_TEST(full_groups_get_parallel_ones)
{
	duo_init(true, true, &small_groups);
	duo_connect(0, 5, 1000);
	duo_expect_groups(3);
}

/* Were a connection forgotten when a group ends, it would find a dead group, not freed memory. */
START_TEST(a_dead_group_stays_until_its_last_connection_is_released)
{
	duo_begin(NULL);
	struct lgr *lgr = duo_lgr(A);
	ck_assert_uint_eq(lgr->rdv_cnt, 0);
	lgr->rdv_cnt++;
	lgr_down(lgr, SMCR_R_LINK_LOST, "test");
	duo_run(100);
	ck_assert_ptr_null(duo_lgr(A));
	ck_assert(!smcr_idle(d.eng[A]));
	ck_assert_int_eq(lgr->state, LGR_DEAD);
	lgr->rdv_cnt--;
	duo_run(1);
	ck_assert(smcr_idle(d.eng[A]));
}

/* -- Decline -- */

START_TEST(server_without_device_declines)
{
	duo_init(true, false, NULL);
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_NO_DEVICE);
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_NO_DEVICE);
	ck_assert_ptr_null(s[0].diag.detail); /* it has none of whatever transport */
	ck_assert_uint_ne(s[0].diag.offered, 0);
	ck_assert(!IS(s[0], PROPOSAL));
}

START_TEST(client_without_device_declines_in_place_of_the_proposal)
{
	duo_init(false, true, NULL);
	duo_open(0);
	duo_run(100);
	duo_expect(0, A, "DECLINE");
	ck_assert_uint_eq(d.seen_cnt, 1);
	ck_assert(BOTH(0, FALLBACK));
}

/* By either end, or both, each time with an answer of the server; no group, and no hold-off. */
START_LOOP_TEST(where_no_link_may_be_used_both_fall_back, 1, 4)
{
	duo_init(true, true, NULL);
	d.tcp_only[A] = (_i & 1) != 0 ? "no link" : NULL;
	d.tcp_only[B] = (_i & 2) != 0 ? "no link" : NULL;
	for (unsigned i = 0; i < 8; i++)
		duo_open(i);
	duo_run(100);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert(BOTH(i, FALLBACK));
		ck_assert_uint_eq(c[i].diag.local, 0);
		ck_assert_uint_eq(c[i].diag.peer, (_i & 2) != 0 ? CLC_DIAG_CONFIG : CLC_DIAG_NO_DEVICE);
	}
	duo_expect_groups(0);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->first_contacts, 0);
	ck_assert_int_eq(smcr_held_off_ns(d.eng[A], "server:1"), 0);
}

/* In TLS, links on TCP are a transport of their own. An end that takes only these never has another, whatever the other end
 * takes; bits of i % 4: the client, the server. */
START_LOOP_TEST(links_in_tls, 0, 12)
{
	static const enum rnic_transport of[] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_ROCE,
		RNIC_TRANSPORT_IWARP_SCTP };
	const enum rnic_transport transport[2] = { of[_i / 4], of[_i / 4] };

	duo_init_as(transport, false, NULL);
	d.in_tls = true;
	d.level = 2;
	d.only_tls[A] = (_i & 1) != 0;
	d.only_tls[B] = (_i & 2) != 0;
	duo_open(0);
	duo_run(100);
	if (_i < 4 || _i % 4 == 0)
		ck_assert(BOTH(0, ESTABLISHED));
	else
		ck_assert(BOTH(0, FALLBACK));
	duo_expect_groups(_i < 4 || _i % 4 == 0);
}

/* A peer whose messages lack our extension, as Linux's of either version, has links in clear alone: bits of i / 2 + 1 as above. */
START_LOOP_TEST(no_link_in_clear_with_a_peer_that_poses_as_linux, 0, 6)
{
	duo_init_version(1 + _i % 2, NULL);
	d.in_tls = true;
	d.level = 2;
	d.only_tls[A] = ((_i / 2 + 1) & 1) != 0;
	d.only_tls[B] = ((_i / 2 + 1) & 2) != 0;
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	duo_expect_groups(0);
}

/* An iWARP card has the transport of soft iWARP, and no TLS: its links would be in clear. Bits: only_tls of client, server. */
START_LOOP_TEST(links_of_iwarp_cards_are_not_in_tls, 0, 4)
{
	const enum rnic_transport transport[2] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP };

	duo_init_as(transport, true, NULL);
	d.in_tls = true;
	d.level = 2;
	d.only_tls[A] = (_i & 1) != 0;
	d.only_tls[B] = (_i & 2) != 0;
	duo_open(0);
	duo_run(10000);
	if (_i == 0)
		ck_assert(BOTH(0, ESTABLISHED));
	else
		ck_assert(BOTH(0, FALLBACK));
	duo_expect_groups(_i == 0);
}

/* Bits of i % 4: the client's, the server's card; further ones of the client are not, and get no link. */
START_LOOP_TEST(only_protected_cards_have_links_beside_tls, 0, 8)
{
	const enum rnic_transport transport[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };
	struct smcr_link_info l;
	unsigned links = 0;

	duo_init_as(transport, true, NULL);
	for (unsigned host = A; host <= B; host++)
		if ((_i & 1 << host) != 0)
			sim_protect(d.dev[host], RNIC_PROTECTED_MACSEC);
	if (_i >= 4)
		duo_add_devices();
	d.in_tls = d.only_tls[A] = d.only_tls[B] = true;
	d.level = 3;
	duo_open(0);
	duo_run(10000);
	if (_i % 4 == 3)
		ck_assert(BOTH(0, ESTABLISHED));
	else
		ck_assert(BOTH(0, FALLBACK));
	for (uint32_t pos = 0; smcr_link_next(d.eng[A], &pos, &l); links++)
		ck_assert_int_eq(l.protection, RNIC_PROTECTED_MACSEC);
	ck_assert_uint_eq(links, _i % 4 == 3);
}

START_LOOP_TEST(a_group_says_what_its_peer_has_proven, 0, 2)
{
	struct smcr_group_info g;

	duo_init(true, true, NULL);
	d.level = (uint8_t)(2 * _i);
	duo_connect(0, 1, 100);
	for (unsigned host = A; host <= B; host++) {
		ck_assert(smcr_group_next(d.eng[host], &(uint32_t){ 0 }, &g));
		ck_assert_uint_eq(g.level, 2 * _i);
		ck_assert_str_eq(g.peer_name, _i == 0 ? "" : "spiffe://duo");
	}
}

static int held[2];

static void
hold(void *proof, bool on)
{
	ck_assert(proof == &held[0] || proof == &held[1]);
	*(int *)proof += on ? 1 : -1;
}

/* At either host: it is the user's, who ends it when the proof is no longer good. */
START_LOOP_TEST(a_group_keeps_the_last_proof, A, B + 1)
{
	struct smcr_group_info g;

	held[0] = held[1] = 0;
	duo_init(true, true, NULL);
	smcr_set_proofs(d.eng[A], hold);
	smcr_set_proofs(d.eng[B], hold);
	d.level = 2;
	d.proof = &held[0];
	duo_connect(0, 1, 100);
	ck_assert_int_eq(held[0], 2);
	d.proof = &held[1]; /* of a later one, which joins */
	duo_connect(1, 1, 100);
	d.proof = NULL;
	duo_connect(2, 1, 100);
	ck_assert_int_eq(held[0], 0);
	ck_assert_int_eq(held[1], 2);
	ck_assert_ptr_eq(smcr_proof(s[0].conn), &held[1]);
	ck_assert(smcr_group_next(d.eng[_i], &(uint32_t){ 0 }, &g));
	ck_assert_ptr_eq(g.proof, &held[1]);
	ck_assert(!smcr_end_group(d.eng[_i], g.id + 1, "no longer permitted"));
	ck_assert(smcr_end_group(d.eng[_i], g.id, "no longer permitted"));
	ck_assert(!smcr_end_group(d.eng[_i], g.id, "no longer permitted"));
	duo_run(1000);
	for (unsigned i = 0; i < 3; i++) {
		struct duo_end *mine = _i == A ? &c[i] : &s[i], *peers = _i == A ? &s[i] : &c[i];

		ck_assert_int_eq(mine->reason, SMCR_R_OPERATOR);
		ck_assert_int_eq(peers->reason, SMCR_R_LINK_LOST);
		duo_release_pair(i);
	}
	duo_run(1000);
	ck_assert_int_eq(held[1], 0);
}

/* An end in clear and one in TLS, as no user has them: no link on TCP. */
START_LOOP_TEST(links_in_tls_need_it_at_both_ends, 0, 2)
{
	const enum rnic_transport transport[2] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP };

	duo_init_as(transport, false, NULL);
	d.in_tls = _i == 0;
	duo_open_one(&s[0], SMCR_SERVER, false);
	d.in_tls = _i == 1;
	duo_open_one(&c[0], SMCR_CLIENT, false);
	duo_join(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_NO_DEVICE);
	duo_expect_groups(0);
}

/* An Accept is declined all the same. */
START_TEST(an_accept_is_declined_where_no_link_may_be_used)
{
	struct clc_msg msg = { .type = CLC_ACCEPT, .version = 1 };

	duo_init(true, true, NULL);
	d.tcp_only[A] = "no link";
	duo_open_one(&c[0], SMCR_CLIENT, false);
	msg.accept = (struct clc_accept){ .first_contact = true,
		.qpn = 5,
		.rkey = 1,
		.rmbe_idx = 1,
		.alert_token = 1,
		.mtu_code = 3,
		.ext = { .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP, .mpa_port = 7471 } };
	duo_feed_msg(&c[0], &msg);
	duo_run(10);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_eq(c[0].diag.local, CLC_DIAG_CONFIG);
	ck_assert_str_eq(c[0].diag.detail, "no link");
	ck_assert_uint_eq(rnic_query(d.dev[A]).qp_cnt, 0);
}

START_TEST(a_proposal_for_another_mode_is_declined)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 2 };

	duo_init(true, true, NULL);
	duo_open_one(&s[0], SMCR_SERVER, false);
	msg.proposal.typev1 = CLC_PATH_D;
	msg.proposal.typev2 = CLC_PATH_NONE;
	duo_feed_msg(&s[0], &msg);
	duo_run(10);
	ck_assert(IS(s[0], FALLBACK));
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_MODE_MISMATCH);
}

START_TEST(a_foreign_peer_finds_no_iwarp_device)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };

	duo_init(true, true, NULL);
	duo_open_one(&s[0], SMCR_SERVER, false);
	duo_feed_msg(&s[0], &msg); /* no extension: RoCE only */
	duo_run(10);
	ck_assert(IS(s[0], FALLBACK));
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_NO_DEVICE);
	ck_assert_uint_eq(s[0].diag.offered, 0);
}

/* 3.5.1.2: RoCE stays within a subnet, of either family, with the same length of prefix. */
START_LOOP_TEST(roce_from_another_subnet_is_declined, 0, 7)
{
	static const struct {
		uint32_t v4;
		uint8_t v4_len, v6_last, v6_len;
		bool fits;
	} rows[] = {
		{ 0x0a000000, 24, 0, 0, true },
		{ 0x0a000100, 24, 0, 0, false },
		{ 0x0a000000, 16, 0, 0, false },
		{ 0x0a000000, 0, 0, 0, false }, /* none given */
		{ 0x0a000100, 24, 1, 64, true },
		{ 0x0a000100, 24, 2, 64, false },
		{ 0x0a000100, 24, 1, 48, false },
	};
	const struct rnic_gid gid = { .b = { 0xfe, 0x80, [15] = 2 } };
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 };
	struct smcr_open o = { .role = SMCR_SERVER, .app = &s[0], .elem_size = SMCR_ELEM_MIN, .subnet_cnt = 2 };
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };
	int err;

	duo_init(true, false, NULL);
	d.dev[B] = sim_dev_new(d.fab, "b", RNIC_TRANSPORT_ROCE, &gid, mac);
	sim_gid_type(d.dev[B], RNIC_GID_ROCE_V1);
	ck_assert_int_eq(smcr_add_device(d.eng[B], d.dev[B]), 0);
	o.subnet[0] = (struct smcr_subnet){ .prefix_len = 24, .addr = { 10 } };
	o.subnet[1] = (struct smcr_subnet){ .v6 = true, .prefix_len = 64, .addr = { 0x20, 1, [7] = 1 } };
	s[0] = (struct duo_end){ .host = B };
	s[0].conn = smcr_open(d.eng[B], &o, &err);
	ck_assert_ptr_nonnull(s[0].conn);
	msg.proposal.ipv4_subnet = rows[_i].v4;
	msg.proposal.ipv4_len = rows[_i].v4_len;
	msg.proposal.ipv6_cnt = rows[_i].v6_len != 0;
	msg.proposal.ipv6[0].len = rows[_i].v6_len;
	msg.proposal.ipv6[0].addr[0] = 0x20;
	msg.proposal.ipv6[0].addr[1] = 1;
	msg.proposal.ipv6[0].addr[7] = rows[_i].v6_last;
	s[0].refuse = true;
	duo_feed_msg(&s[0], &msg);
	duo_run(10);
	ck_assert(IS(s[0], PROPOSAL) == rows[_i].fits && IS(s[0], FALLBACK) != rows[_i].fits);
	ck_assert_uint_eq(s[0].diag.local, rows[_i].fits ? 0 : CLC_DIAG_PREFIX_MISMATCH);
}

/* Services may have addresses of no network: it is enough that some interface is on the client's. And who has a group has a
 * path. */
START_TEST(a_server_looks_at_all_of_its_interfaces_at_first_contact)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };
	struct smcr_subnet nets[SMCR_NETWORKS_MAX + 1] = { { .addr = { 10, 1 }, .prefix_len = 16 },
		{ .v6 = true, .prefix_len = 64 }, { .addr = { 10, 0 }, .prefix_len = 16 } };

	duo_init_as(roce, false, NULL);
	for (unsigned i = 0; i < 5; i++) {
		if (i == 1)
			smcr_set_networks(d.eng[B], nets, 2);
		if (i == 2)
			smcr_set_networks(d.eng[B], nets, 3);
		if (i == 3)
			smcr_set_networks(d.eng[B], nets, 0);
		duo_open(i);
		s[i].conn->rdv->open.subnet[0] = (struct smcr_subnet){ .addr = { 10, 255, 0, 1 }, .prefix_len = 32 };
		duo_run(300);
		ck_assert(IS(c[i], ESTABLISHED) == (i == 2 || i == 3));
		ck_assert_uint_eq(c[i].diag.peer, i == 2 || i == 3 ? 0 : CLC_DIAG_PREFIX_MISMATCH);
		if (i == 3)
			lgr_down(duo_lgr(B), SMCR_R_LINK_LOST, "test");
	}
	smcr_set_networks(d.eng[B], nets, SMCR_NETWORKS_MAX + 1);
	ck_assert_uint_eq(d.eng[B]->net_cnt, SMCR_NETWORKS_MAX);
}

/* 2, 5.1: all links of a group are in one VLAN, and so are its connections. */
START_TEST(a_group_is_in_one_vlan)
{
	struct rnic_gid gid[2];
	struct rnic_dev *other[2];

	duo_init(true, true, NULL);
	for (unsigned h = A; h <= B; h++) {
		other[h] = duo_add_device(h);
		gid[h] = rnic_query(other[h]).gid;
		sim_vlan(other[h], 10);
	}
	duo_connect(0, 1, 300);
	ck_assert_uint_eq(duo_lgr(A)->active_cnt, 1);
	/* A middle in the other VLAN, as the addresses say. */
	duo_open_one(&s[1], SMCR_SERVER, false);
	s[1].conn->rdv->open.local_addr = gid[B];
	duo_open_one(&c[1], SMCR_CLIENT, false);
	c[1].conn->rdv->open.local_addr = gid[A];
	duo_join(1);
	duo_run(300);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(duo_lgr_cnt(A), 2);
	ck_assert_uint_eq(s[1].conn->lgr->vlan, 10);
	ck_assert_uint_eq(c[1].conn->lgr->vlan, 10);
	ck_assert_ptr_eq(s[1].conn->link->dev, other[B]);
	ck_assert_ptr_eq(c[1].conn->link->dev, other[A]);
	/* The server offers a group that is not in the client's: that is no reason to end it. */
	duo_open(2);
	c[2].conn->rdv->open.local_addr = gid[A];
	duo_run(300);
	ck_assert(IS(c[2], FALLBACK) && !c[2].diag.out_of_sync);
	ck_assert(!IS(c[0], CLOSED) && !IS(c[1], CLOSED));
	/* With a device of its VLAN the group has a second link. */
	sim_vlan(other[A], 0);
	sim_vlan(other[B], 0);
	duo_run(20000);
	ck_assert_uint_eq(c[0].conn->lgr->active_cnt, 2);
	ck_assert_uint_eq(c[1].conn->lgr->active_cnt, 1);
}

/* The device at the middle's address; among equals the card, whichever came first. */
START_TEST(a_device_is_picked_by_address_then_by_transport)
{
	const struct rnic_gid gid = { .b = { 0xfe, 0x80, [15] = 2 } }, other = { .b = { 0xfe, 0x80, [15] = 3 } };
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 }, both = CLC_TRANSPORT_IWARP | CLC_TRANSPORT_ROCE;

	duo_init(true, false, NULL);
	struct rnic_dev *soft = d.dev[A];
	struct rnic_gid soft_gid = rnic_query(soft).gid;
	struct rnic_dev *card = d.more[A][0] = sim_dev_new(d.fab, "card", RNIC_TRANSPORT_ROCE, &gid, mac);
	ck_assert_int_eq(smcr_add_device(d.eng[A], card), 0);
	ck_assert_uint_eq(rdv_transports(d.eng[A]), both);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], both, NULL, NULL), card);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], both, &other, NULL), card);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], both, &gid, NULL), card);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], both, &soft_gid, NULL), soft);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], CLC_TRANSPORT_ROCE, &soft_gid, NULL), card);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], CLC_TRANSPORT_IWARP, &gid, NULL), soft);
	/* A device that is down is neither used nor promised to the peer. */
	sim_port(card, RNIC_PORT_DOWN);
	ck_assert_uint_eq(rdv_transports(d.eng[A]), CLC_TRANSPORT_IWARP);
	ck_assert_ptr_eq(rdv_pick_device(d.eng[A], both, &gid, NULL), soft);
	ck_assert_ptr_null(rdv_pick_device(d.eng[A], CLC_TRANSPORT_ROCE, NULL, NULL));
	duo_run(10);
}

/* C.4: the server offers a group that the client has lost; its link does not answer any more. */
START_TEST(out_of_sync_is_declined_with_the_flag_and_drops_the_group)
{
	duo_begin(NULL);
	duo_lgr(A)->owner.peer_id[0] ^= 1; /* the client knows the group under another name */
	sim_freeze(d.dev[A], true);
	duo_open(1);
	duo_run(100);
	ck_assert_uint_eq(duo_count(A, "DECLINE out of sync"), 1);
	ck_assert(IS(c[1], FALLBACK) && c[1].diag.out_of_sync);
	ck_assert(IS(s[1], FALLBACK) && s[1].diag.out_of_sync);
	ck_assert(!IS(s[0], CLOSED));
	duo_run(d.eng[B]->cfg.keepalive_answer_ms);
	ck_assert_uint_eq(duo_lgr_cnt(B), 0);
	ck_assert(IS(s[0], CLOSED));
	ck_assert_int_eq(s[0].reason, SMCR_R_LINK_LOST);
	sim_freeze(d.dev[A], false);
}

/* -- first contact that fails -- */

static const struct smcr_config short_hold = { .holdoff_ms = 2000, .holdoff_max_ms = 3000 };

/* 8 connections at once: one leads, fails; one more tries for the others; then all fall back together. */
START_TEST(a_failed_first_contact_is_retried_once_for_waiting_connections)
{
	duo_init(true, true, &short_hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 8; i++)
		duo_open(i);
	duo_run(30000);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_msg(BOTH(i, FALLBACK), "%u: events %x and %x, reasons %d %d", i, c[i].events, s[i].events,
		    c[i].reason, s[i].reason);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 2);
	duo_expect_groups(0);
}

/* A user that names a new peer with each connection takes places, not memory without end. */
START_TEST(first_contacts_at_once_are_bounded_and_counted)
{
	struct smcr_conn *conn[1025];
	struct smcr_diag diag;
	unsigned events;
	int err;

	duo_init(true, true, NULL);
	for (unsigned i = 0; i < 1025; i++) {
		struct smcr_open o = { .role = SMCR_CLIENT, .app = &d, .elem_size = SMCR_ELEM_MIN };

		ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_peers_max, 0);
		snprintf(o.peer_key, sizeof(o.peer_key), "server:%u", i);
		conn[i] = smcr_open(d.eng[A], &o, &err);
		ck_assert_ptr_nonnull(conn[i]);
	}
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_peers_max, 1);
	smcr_fallback(conn[1024], &diag);
	ck_assert_uint_eq(diag.local, CLC_DIAG_NO_MEMORY);
	smcr_fallback(conn[1023], &diag);
	ck_assert_uint_eq(diag.local, 0);
	while (smcr_next_event(d.eng[A], &events) != NULL)
		;
	for (unsigned i = 0; i < 1025; i++)
		smcr_release(conn[i]);
	(void)smcr_flush(d.eng[A]);
}

/* How many lines of this type the host's log has had since it was looked at last, for any type. */
static unsigned held_lines[2][SMCR_LOG_TYPE_CNT];
static bool cut_short; /* hold-offs, by the operator */

static unsigned
log_lines(unsigned host, enum smcr_log_type type)
{
	struct smcr_log l;

	while (smcr_next_log(d.eng[host], &l)) {
		held_lines[host][l.type]++;
		if (l.type != SMCR_LOG_HELD_OFF && l.type != SMCR_LOG_HOLD_OVER)
			continue;
		ck_assert_int_eq(l.is_key, host == A);
		ck_assert(host == A || l.peer_id[0] != '\0');
		ck_assert_uint_ge(l.value, l.type == SMCR_LOG_HELD_OFF || !cut_short ? 2000 : 1);
	}
	return held_lines[host][type];
}

START_TEST(begin_and_end_of_a_hold_off_are_reported_at_both_ends)
{
	memset(held_lines, 0, sizeof(held_lines));
	cut_short = false;
	duo_init(true, true, &short_hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 4; i++) {
		duo_open(i);
		duo_run(12000); /* more than the hold */
		ck_assert_uint_eq(log_lines(A, SMCR_LOG_HELD_OFF), i > 0);
		ck_assert_uint_eq(log_lines(A, SMCR_LOG_HELD_LONGER), i > 1 ? i - 1 : 0);
		ck_assert_uint_eq(log_lines(B, SMCR_LOG_HELD_OFF), i > 0);
		ck_assert_uint_eq(log_lines(A, SMCR_LOG_HOLD_OVER) + log_lines(B, SMCR_LOG_HOLD_OVER), 0);
	}
	sim_block_connect(d.dev[B], false);
	duo_run(4000);
	duo_connect(4, 1, 500);
	for (unsigned host = A; host <= B; host++) {
		ck_assert_uint_eq(log_lines(host, SMCR_LOG_HOLD_OVER), 1);
		ck_assert_uint_eq(log_lines(host, SMCR_LOG_HELD_OFF), 1);
	}
}

START_TEST(a_server_knows_which_of_its_ports_the_client_could_not_use)
{
	struct rnic_info info;

	duo_init(true, true, &short_hold);
	sim_block_connect(d.dev[B], true);
	duo_open(0);
	duo_run(12000);
	info = rnic_query(d.dev[B]);
	ck_assert(s[0].diag.local == 0 && s[0].diag.peer == CLC_DIAG_READY_LINK);
	ck_assert_mem_eq(&s[0].diag.rnic, &info.gid, sizeof(info.gid));
	ck_assert_uint_ne(info.mpa_port, 0);
	ck_assert_uint_eq(s[0].diag.mpa_port, info.mpa_port);
}

START_TEST(a_peer_that_fails_repeatedly_is_held_off_for_a_while)
{
	struct rnic_info info;
	unsigned proposals;

	duo_init(true, true, &short_hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 2; i++) {
		duo_open(i);
		duo_run(12000);
		ck_assert(IS(c[i], FALLBACK) && !c[i].diag.held_off);
		/* In the device's words, and which address it is about. */
		ck_assert_ptr_nonnull(c[i].diag.detail);
		ck_assert(strstr(c[i].diag.detail, "MPA") != NULL && c[i].diag.mpa_port != 0);
		ck_assert(c[i].diag.silent && !s[i].diag.silent);
		info = rnic_query(d.dev[B]);
		ck_assert_mem_eq(&c[i].diag.rnic, &info.gid, sizeof(info.gid));
		if (i == 0)
			continue;
		proposals = duo_count(A, "PROPOSAL");
	}
	/* The second failure was followed by 12 s, more than the hold: fail once more to be held off now. */
	duo_open(2);
	while (!IS(c[2], FALLBACK))
		duo_run(10);
	proposals = duo_count(A, "PROPOSAL");
	duo_open(3);
	duo_run(1);
	ck_assert(IS(c[3], FALLBACK) && c[3].diag.held_off);
	ck_assert_uint_eq(duo_count(A, "PROPOSAL"), proposals);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->fallback_held_off, 1);
	/* Over, and the peer works again. */
	sim_block_connect(d.dev[B], false);
	duo_run(4000);
	duo_connect(4, 1, 500);
	ck_assert(list_empty(&d.eng[A]->peers));
}

/* The peer is well again, and the operator does not wait for the end of the hold-off. */
START_LOOP_TEST(a_hold_off_ends_on_the_operators_word, 0, 4)
{
	static const struct {
		uint8_t addr;
		const char *key; /* NULL: everybody */
		unsigned peers;
	} cases[] = { { 9, "server:1", 1 }, { 9, "server:", 1 }, { 9, NULL, 1 }, { 9, "server:12", 0 } };
	const uint8_t addr[16] = { cases[_i].addr };
	struct smcr_retried done;

	memset(held_lines, 0, sizeof(held_lines));
	cut_short = true;
	duo_init(true, true, &short_hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 3; i++) {
		duo_open(i);
		while (!IS(c[i], FALLBACK))
			duo_run(10);
	}
	duo_open(3);
	duo_run(1);
	ck_assert(IS(c[3], FALLBACK) && c[3].diag.held_off);
	sim_block_connect(d.dev[B], false);
	done = smcr_retry(d.eng[A], cases[_i].key != NULL ? addr : NULL, cases[_i].key);
	ck_assert_uint_eq(done.peers, cases[_i].peers);
	ck_assert_uint_eq(done.links, 0);
	/* The server holds the client off as well, by its address. */
	done = smcr_retry(d.eng[B], NULL, NULL);
	ck_assert_uint_eq(done.peers, 1);
	duo_open(4);
	duo_run(500);
	ck_assert(cases[_i].peers > 0 ? IS(c[4], ESTABLISHED) : IS(c[4], FALLBACK) && c[4].diag.held_off);
	/* What was told to have begun has its end told. */
	ck_assert_uint_eq(log_lines(A, SMCR_LOG_HOLD_OVER), cases[_i].peers);
	ck_assert_uint_eq(log_lines(B, SMCR_LOG_HOLD_OVER), cases[_i].peers);
	ck_assert_uint_eq(log_lines(A, SMCR_LOG_HELD_OFF), 1);
	ck_assert_uint_eq(smcr_retry(d.eng[A], NULL, NULL).peers, 1 - cases[_i].peers);
}

/* RoCE v1 and RoCE v2 do not hear each other, which two smcrd cannot tell by a GID: as with any path that lets nothing through, the
 * server's card gives up what is not acknowledged. */
START_LOOP_TEST(roce_of_two_kinds_is_tcp_and_held_off, 0, 2)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };
	uint32_t qpn;

	duo_init_as(roce, true, &short_hold);
	sim_gid_type(d.dev[_i], RNIC_GID_ROCE_V1);
	for (unsigned i = 0; i < 2; i++) {
		duo_open(i);
		duo_run(100);
		ck_assert_str_eq(rdv_steps[s[i].conn->rdv->step].name, "first contact");
		ck_assert(sim_nth_qp_of(d.dev[B], 0, &qpn) && sim_break_qp(d.dev[B], qpn, SIM_CUT_RESET));
		duo_run(100);
		ck_assert(BOTH(i, FALLBACK));
		ck_assert_uint_eq(c[i].diag.peer, CLC_DIAG_READY_LINK);
		ck_assert(s[i].diag.local == CLC_DIAG_READY_LINK && s[i].diag.detail != NULL);
		ck_assert(!c[i].diag.held_off);
	}
	duo_open(2);
	duo_run(10);
	ck_assert(BOTH(2, FALLBACK) && c[2].diag.held_off);
	ck_assert_uint_eq(duo_count(A, "PROPOSAL"), 2);
}

/* Linux's Proposal says what there is: no first contact begins, and each connection costs a Proposal. */
START_LOOP_TEST(linux_without_a_common_kind_of_roce_is_tcp_at_once, 0, 2)
{
	enum rnic_gid_type type[2] = { RNIC_GID_ROCE_V2, RNIC_GID_ROCE_V2 };
	struct smcr_config cfg = short_hold;

	cfg.ueid_cnt = 1;
	memset(&cfg.ueids[0], 'U', sizeof(cfg.ueids[0]));
	type[_i] = RNIC_GID_ROCE_V1;
	duo_init_linux(type, &cfg);
	for (unsigned i = 0; i < 4; i++) {
		duo_open(i);
		duo_run(10);
		ck_assert(BOTH(i, FALLBACK) && !c[i].diag.held_off);
		ck_assert_uint_eq(s[i].diag.local, _i == 0 ? CLC_DIAG_NO_DEVICE : CLC_DIAG_NO_SMCR_DEVICE);
		ck_assert_uint_eq(c[i].diag.peer, s[i].diag.local);
	}
}

/* The peer resets the middle after clc_ms: before that both fall back, and the server may still come. */
START_TEST(a_server_leg_that_takes_long_is_a_fallback_and_no_failure)
{
	duo_init(true, true, NULL);
	duo_open(0);
	s[0].refuse = true;
	duo_run(4400);
	ck_assert(!IS(c[0], FALLBACK) && !IS(s[0], FALLBACK));
	duo_run(200);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_SERVER_LATE);
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_SERVER_LATE);
	smcr_admit(s[0].conn); /* too late, and harmless */
	duo_run(10);
	ck_assert(IS(s[0], FALLBACK));
	/* Neither end holds it against the other. */
	ck_assert_uint_eq(smcr_counters(d.eng[A])->first_contacts_failed, 0);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->first_contacts_failed, 0);
	ck_assert(list_empty(&d.eng[A]->peers) && list_empty(&d.eng[B]->peers));
	duo_connect(1, 1, 200);
}

static bool
nowhere(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	unsigned *asked = ctx;

	ck_assert(to->b[0] != 0 || to->b[15] != 0);
	ck_assert_ptr_nonnull(middle);
	++*asked;
	return false;
}

/* A server names an address that we may not connect to: nothing is made, and both ends go on by TCP. */
START_TEST(an_accept_does_not_send_us_anywhere)
{
	unsigned asked = 0;

	duo_init(true, true, NULL);
	smcr_set_dial_policy(d.eng[A], nowhere, &asked);
	for (unsigned i = 0; i < 3; i++) {
		duo_open(i);
		duo_run(1500);
		ck_assert(BOTH(i, FALLBACK));
		ck_assert_uint_eq(c[i].diag.local, CLC_DIAG_NO_ROUTE);
		ck_assert_ptr_nonnull(strstr(c[i].diag.detail, "mpa_peers"));
		ck_assert_uint_ne(c[i].diag.mpa_port, 0);
	}
	ck_assert_uint_eq(asked, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_mpa_peers, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->first_contacts, 0);
	ck_assert_uint_eq(rnic_query(d.dev[A]).qp_cnt, 0);
}

START_TEST(a_leader_that_goes_away_hands_over_and_is_no_failure)
{
	duo_init(true, true, NULL);
	c[0].hold = false;
	duo_open(0);
	s[0].refuse = true; /* its server leg never connects: the leader hangs */
	duo_open(1);
	duo_run(50);
	ck_assert(!IS(c[1], ESTABLISHED));
	smcr_abort(c[0].conn, SMCR_R_APP_RESET);
	duo_run(200);
	ck_assert(IS(c[0], CLOSED));
	ck_assert(BOTH(1, ESTABLISHED));
}

/* Two mappings to one peer: the client names the peer by two keys, the server knows it by one id. */
static void
open_keyed(struct duo_end *client, struct duo_end *server, const char *key)
{
	struct smcr_open open = { .role = SMCR_CLIENT, .app = client, .elem_size = SMCR_ELEM_MIN };
	int err;

	duo_open_one(server, SMCR_SERVER, false);
	*client = (struct duo_end){ .host = A, .peer = server };
	server->peer = client;
	memcpy(open.peer_key, key, strlen(key) + 1);
	client->conn = smcr_open(d.eng[A], &open, &err);
	ck_assert_ptr_nonnull(client->conn);
}

static const struct smcr_config slow_clc = { .clc_ms = 10000 };

/* 6 s until the client gives up: TCP after three quarters of that, for those who wait for the group, too. And nobody is to
 * blame. */
START_TEST(a_slow_server_leg_is_declined_before_the_client_resets)
{
	duo_init(true, true, NULL);
	for (unsigned i = 0; i < 3; i++) {
		duo_open(i);
		s[i].refuse = i == 0;
	}
	c[1].hold = true;
	duo_run(4400);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!IS(c[i], FALLBACK) && !IS(s[i], FALLBACK) && !IS(c[i], ESTABLISHED));
	c[1].hold = false;
	duo_run(200);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(!IS(c[i], CLOSED) && !IS(s[i], CLOSED));
	ck_assert(BOTH(0, FALLBACK));
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_SERVER_LATE);
	smcr_admit(s[0].conn); /* too late: nothing */
	duo_run(5000);
	for (unsigned i = 1; i < 3; i++)
		ck_assert(IS(c[i], ESTABLISHED) || IS(c[i], FALLBACK));
	duo_connect(3, 1, 200);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->clc_timeouts, 0);
}

START_TEST(a_waiter_for_a_peers_group_is_declined_before_it_resets)
{
	duo_init(true, true, &slow_clc);
	duo_open(0);
	duo_until(B, "ACCEPT first contact");
	c[0].hold = s[0].hold = true; /* first contact stands still */
	open_keyed(&c[1], &s[1], "server:2");
	duo_run(7400);
	ck_assert_int_eq(s[1].conn->rdv->step, RDV_WAIT_TURN);
	duo_run(200);
	ck_assert(BOTH(1, FALLBACK));
	ck_assert(!IS(c[1], CLOSED) && !IS(s[1], CLOSED));
}

/* C.7: the CONFIRM LINK never comes through: the server breaks the TCP connection, the client declines, and does so when no answer
 * comes. */
START_TEST(silence_during_llc_resets_both)
{
	duo_init(true, true, NULL);
	duo_open(0);
	duo_until(A, "CONFIRM");
	sim_freeze(d.dev[A], true);
	duo_run(7000);
	ck_assert(IS(s[0], CLOSED) || IS(s[0], FALLBACK));
	ck_assert(IS(c[0], CLOSED) || IS(c[0], FALLBACK));
	ck_assert(!IS(c[0], ESTABLISHED) && !IS(s[0], ESTABLISHED));
	sim_freeze(d.dev[A], false);
	duo_release_pair(0);
	duo_run(5000);
	duo_expect_groups(0);
}

/* -- CLC: bad input and silence at each step -- */

enum step { WAIT_PROPOSAL, WAIT_ACCEPT, WAIT_CONFIRM, STEP_CNT };

/* Brings one end to the step; the test plays the other. */
static struct duo_end *
bring_to(enum step step)
{
	duo_init(true, true, NULL);
	duo_open(0);
	if (step == WAIT_PROPOSAL) {
		c[0].hold = true;
		duo_run(5);
		return &s[0];
	}
	if (step == WAIT_ACCEPT) {
		s[0].hold = true;
		duo_run(5);
		return &c[0];
	}
	duo_until(B, "ACCEPT first contact");
	c[0].hold = true;
	duo_run(5);
	return &s[0];
}

START_LOOP_TEST(garbage_ends_the_connection_at_every_step, 0, STEP_CNT)
{
	struct duo_end *e = bring_to((enum step)_i);

	duo_feed(e, "GET / HTTP/1.1\r\n", 16);
	duo_run(5);
	ck_assert(IS(*e, CLOSED) && !IS(*e, FALLBACK));
	ck_assert_int_eq(e->reason, SMCR_R_PROTOCOL);
}

START_LOOP_TEST(silence_ends_the_connection_at_every_step, 0, STEP_CNT)
{
	struct duo_end *e = bring_to((enum step)_i);

	duo_run(9000);
	ck_assert(IS(*e, CLOSED) && !IS(*e, FALLBACK));
	ck_assert_int_eq(e->reason, SMCR_R_CLC_TIMEOUT);
}

START_LOOP_TEST(a_message_cut_short_waits_and_times_out, 0, 1)
{
	struct duo_end *e = bring_to((enum step)_i);
	static const uint8_t part[] = { 0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10, 0 };

	duo_feed(e, part, sizeof(part));
	duo_run(5);
	ck_assert(!IS(*e, CLOSED));
	duo_run(9000);
	ck_assert(IS(*e, CLOSED));
	ck_assert_int_eq(e->reason, SMCR_R_CLC_TIMEOUT);
}

START_LOOP_TEST(a_decline_is_honoured_at_every_step, 0, STEP_CNT)
{
	struct duo_end *e = bring_to((enum step)_i);
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	msg.decline.diag = CLC_DIAG_IPSEC;
	duo_feed_msg(e, &msg);
	duo_run(5);
	ck_assert(IS(*e, FALLBACK) && !IS(*e, CLOSED));
	ck_assert_uint_eq(e->diag.peer, CLC_DIAG_IPSEC);
	ck_assert_uint_eq(e->diag.local, 0);
}

START_LOOP_TEST(a_message_out_of_place_ends_the_connection, 0, STEP_CNT)
{
	/* by step: what may not come there */
	static const enum clc_type wrong[STEP_CNT] = { CLC_CONFIRM, CLC_PROPOSAL, CLC_ACCEPT };
	struct duo_end *e = bring_to((enum step)_i);
	struct clc_msg msg = { .type = wrong[_i], .version = 1 };

	if (msg.type != CLC_PROPOSAL) {
		msg.accept.rmbe_idx = 1;
		msg.accept.mtu_code = 3;
	}
	duo_feed_msg(e, &msg);
	duo_run(5);
	ck_assert(IS(*e, CLOSED));
	ck_assert_int_eq(e->reason, SMCR_R_PROTOCOL);
}

START_LOOP_TEST(the_middle_ending_ends_the_rendezvous, 0, STEP_CNT)
{
	struct duo_end *e = bring_to((enum step)_i);

	smcr_tcp_event(e->conn, SMCR_TCP_RST);
	duo_run(5);
	ck_assert(IS(*e, CLOSED));
	ck_assert_int_eq(e->reason, SMCR_R_TCP_RESET);
}

/* C.6: a reserved MTU in the Accept is a Decline, not an end. */
START_TEST(a_reserved_value_is_declined)
{
	struct duo_end *e = bring_to(WAIT_ACCEPT);

	ck_assert_uint_ge(s[0].out_len, 68);
	s[0].out[50] = (uint8_t)((s[0].out[50] & 0xf0) | 0x0f);
	duo_feed(e, s[0].out, s[0].out_len);
	duo_run(5);
	ck_assert(IS(*e, FALLBACK));
	ck_assert_uint_ne(e->diag.local, 0);
}

START_TEST(clc_input_never_takes_what_follows)
{
	struct duo_end *e = bring_to(WAIT_ACCEPT);
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };
	uint8_t buf[64];
	size_t at = 0;

	msg.decline.diag = CLC_DIAG_CONFIG;
	int n = clc_encode(&msg, buf, sizeof(buf));
	while (smcr_clc_want(e->conn) > 0) {
		size_t want = smcr_clc_want(e->conn);

		ck_assert_uint_le(at + want, (size_t)n);
		smcr_clc_input(e->conn, buf + at, want);
		at += want;
	}
	ck_assert_uint_eq(at, (size_t)n);
	duo_run(5);
	ck_assert(IS(*e, FALLBACK));
}

static const struct smcr_config one_element_each = { .rmb_elems = 1 };

/* -- Confirm that does not fit (subsequent contact): past the Accept only a reset is left (C.1) -- */

START_LOOP_TEST(a_confirm_that_names_something_else_ends_the_connection, 0, 4)
{
	size_t where[] = { 38, 41, 16, 55 }; /* QPN, RKey, GID, address */

	duo_begin(NULL);
	duo_open(1);
	c[1].hold = true;
	duo_run(0);
	/* The Proposal is held too: let it through, then hold the Confirm. */
	duo_feed_held(&c[1], &s[1]);
	duo_run(50);
	ck_assert_uint_gt(c[1].out_len, 0);
	c[1].out[where[_i]] ^= 0x55;
	duo_feed(&s[1], c[1].out, c[1].out_len);
	duo_run(5);
	ck_assert(IS(s[1], CLOSED) && !IS(s[1], ESTABLISHED));
	ck_assert_int_eq(s[1].reason, SMCR_R_PROTOCOL);
	ck_assert(!IS(s[0], CLOSED)); /* nobody else is disturbed */
}

/* Reserved values of a Confirm, past the Accept: those that may be ignored are, and nothing is declined. */
START_LOOP_TEST(a_confirm_of_later_contact_is_never_declined, 0, 3)
{
	static const struct {
		uint8_t version_byte, mtu;
		bool goes_on;
	} rows[] = { { 0x08, 0x00, true }, { 0x08, 0x0f, true }, { 0x20, 0x03, false } };

	duo_begin(NULL);
	duo_open(1);
	c[1].hold = true;
	duo_run(0);
	duo_feed_held(&c[1], &s[1]);
	duo_run(50);
	ck_assert_uint_gt(c[1].out_len, 50);
	if (rows[_i].goes_on)
		c[1].out[7] |= rows[_i].version_byte;
	else
		c[1].out[7] = (uint8_t)((c[1].out[7] & 0x0f) | 0x30); /* version 3 */
	c[1].out[50] = (uint8_t)((c[1].out[50] & 0xf0) | rows[_i].mtu);
	duo_feed(&s[1], c[1].out, c[1].out_len);
	duo_run(5);
	ck_assert(!IS(s[1], FALLBACK));
	ck_assert_int_eq(IS(s[1], ESTABLISHED), rows[_i].goes_on);
	ck_assert_int_eq(IS(s[1], CLOSED), !rows[_i].goes_on);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->elems_quarantined, !rows[_i].goes_on);
	ck_assert_uint_eq(s[1].out_len, 0);
}

/* The client kept an RMB whose DELETE RKEY it refused, and the server has another one there now, with elements of another size. */
START_TEST(an_unused_rmb_may_change_its_size)
{
	duo_init(true, true, &one_element_each);
	for (unsigned i = 0; i < 2; i++)
		duo_connect(i, 1, 100);
	ck_assert_ptr_ne(c[0].conn->peer_rmb, c[1].conn->peer_rmb);
	c[1].conn->peer_rmb->elem_size = 2 * SMCR_ELEM_MIN;
	duo_close(1);
	duo_run(100);
	duo_connect(2, 1, 100);
	/* While somebody uses it, it may not. */
	c[2].conn->peer_rmb->elem_size = 2 * SMCR_ELEM_MIN;
	conn_end(s[2].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	duo_open(3);
	duo_run(100);
	ck_assert(IS(c[3], FALLBACK));
	ck_assert_uint_eq(c[3].diag.local, CLC_DIAG_RTOKEN);
}

/* 4.4.2: a side gives an element to a new connection that the other believes in use: the old one is aborted there. */
START_LOOP_TEST(an_element_conflict_aborts_the_old_connection, A, B + 1)
{
	unsigned host = (unsigned)_i; /* that gives it away: the server in its Accept, the client in its Confirm */
	struct duo_end *giver = host == B ? s : c, *holder = host == B ? c : s;

	duo_begin(NULL);
	/* Pretend that the element is free again. */
	conn_end(giver[0].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	struct remote_rmb *rr = holder[0].conn->peer_rmb;
	ck_assert_uint_eq(rr->conn_id[1], holder[0].conn->id);
	duo_open(1);
	duo_run(100);
	ck_assert(IS(holder[0], CLOSED));
	ck_assert_int_eq(holder[0].reason, SMCR_R_ELEM_CONFLICT);
	ck_assert_uint_eq(smcr_counters(d.eng[1 - host])->elem_conflicts, 1);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert_uint_eq(rr->conn_id[1], holder[1].conn->id);
}

/* C.2: both sides decline at the same moment, after the Confirm: neither takes the other's Decline for data, and data
 * that begins like a Decline is not swallowed. */
static void
first_contact_held_by(const struct smcr_config *change)
{
	duo_init(true, true, change);
	duo_open(0);
	duo_until(A, "CONFIRM");
	c[0].hold = s[0].hold = true;
}

static void
first_contact_held(void)
{
	first_contact_held_by(NULL);
}

static void
both_in_first_contact(void)
{
	first_contact_held();
	rdv_decline(c[0].conn, CLC_DIAG_READY_LINK);
	duo_run(5);
	ck_assert(!IS(c[0], FALLBACK));
}

START_TEST(declines_that_cross_are_not_taken_for_data)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	both_in_first_contact();
	msg.decline.diag = CLC_DIAG_IPSEC;
	duo_feed_msg(&c[0], &msg);
	duo_run(1);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_eq(c[0].diag.local, CLC_DIAG_READY_LINK);
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_IPSEC);
	ck_assert_uint_eq(c[0].left_len, 0);
}

START_LOOP_TEST(data_after_our_decline_is_data, 0, 4)
{
	static const char *const data[] = { "x", "GET / HTTP/1.1",
		"\xe2\xd4\xc3\xd9\x04\x00\x1c\x10 no Decline is this!", "\xe2\xd4\xc3\xd9\x01\x00\x34\x10" };
	size_t len = _i == 2 ? 28 : _i == 3 ? 8 : strlen(data[_i]);

	both_in_first_contact();
	for (size_t i = 0; i < len && smcr_clc_want(c[0].conn) > 0; i++) {
		smcr_clc_input(c[0].conn, data[_i] + i, 1);
		c[0].left_len++;
	}
	len = c[0].left_len;
	c[0].left_len = 0;
	duo_run(1);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_eq(c[0].left_len, len);
	ck_assert_mem_eq(c[0].left, data[_i], len);
}

/* Past the Confirm only a Decline may come: of a message that says it is another one, nothing is read behind its header,
 * and nothing of it is left when we decline ourselves. A witness beside it notices nothing. */
START_LOOP_TEST(what_is_no_decline_past_the_confirm_ends_the_connection_at_its_header, 0, 4)
{
	static const uint8_t hdr[2][CLC_HDR_LEN] = { { 0xe2, 0xd4, 0xc3, 0xd9, CLC_CONFIRM, 0x08, 0x00, 0x10 },
		{ 0xe2, 0xd4, 0xc3, 0xd9, CLC_DECLINE, 0x08, 0x00, 0x10 } };
	static const uint8_t rest[1000];
	struct duo_end *e = _i < 2 ? &c[0] : &s[0];

	first_contact_held();
	if (e == &s[0]) {
		duo_feed_held(&c[0], &s[0]); /* the Confirm */
	}
	duo_feed(e, hdr[_i % 2], CLC_HDR_LEN);
	if (smcr_clc_want(e->conn) > 0)
		duo_feed(e, rest, sizeof(rest));
	duo_run(1);
	ck_assert(IS(*e, CLOSED));
	ck_assert_int_eq(e->reason, SMCR_R_PROTOCOL);
	ck_assert_uint_eq(e->left_len, 0);
	c[0].hold = s[0].hold = false;
}

/* C.2: a client that has heard no CONFIRM LINK may still decline, and TCP carries on where RoCE packets do not arrive. To a Linux (0)
 * data goes out a second later, an smcrd (1) answers. */
START_LOOP_TEST(a_client_that_hears_no_confirm_link_declines, 0, 2)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	first_contact_held();
	sim_freeze(d.dev[A], true);
	c[0].conn->rdv->peer.ext.present = _i == 1;
	duo_run(400);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->clc_sent, 2);
	duo_run(200);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->clc_sent, 3);
	ck_assert(!IS(c[0], FALLBACK) && !IS(c[0], CLOSED));
	if (_i == 0)
		duo_run(1000);
	msg.decline.diag = CLC_DIAG_PEER_DECLINED;
	if (_i == 1)
		duo_feed_msg(&c[0], &msg);
	duo_run(1);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_eq(c[0].diag.local, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->llc_timeouts, 1);
	sim_freeze(d.dev[A], false);
	c[0].hold = s[0].hold = false;
}

/* Later than Linux looks for one, a Decline of ours would be data to its program: its own is awaited, and comes (0, 2), or does not
 * (1, 3). It may be our own host that has stood still (2, 3). */
START_LOOP_TEST(a_decline_that_is_too_late_for_linux_is_kept_back, 0, 4)
{
	struct smcr_config slow = { .confirm_link_ms = _i < 2 ? 4000 : 500 };
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	first_contact_held_by(&slow);
	sim_freeze(d.dev[A], true);
	c[0].conn->rdv->peer.ext.present = false;
	if (_i >= 2)
		smcr_stood_still(d.eng[A], 4000 * MS);
	duo_run(_i < 2 ? 4100 : 600);
	ck_assert(!IS(c[0], FALLBACK) && !IS(c[0], CLOSED));
	msg.decline.diag = CLC_DIAG_TIMEOUT_CONFIRM_LINK;
	if (_i % 2 == 0)
		duo_feed_msg(&c[0], &msg);
	else
		duo_run(5800);
	ck_assert(!IS(c[0], CLOSED));
	duo_run(200);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->clc_sent, 2);
	ck_assert(IS(c[0], FALLBACK) == (_i % 2 == 0) && IS(c[0], CLOSED) == (_i % 2 == 1));
	if (_i % 2 == 0)
		ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
	else
		ck_assert_int_eq(c[0].reason, SMCR_R_CLC_TIMEOUT);
	sim_freeze(d.dev[A], false);
	c[0].hold = s[0].hold = false;
}

/* Linux: the network, or the peer, may have stood still for longer than the fallback waits; what comes in the end is a Decline (0),
 * data (1), the beginning of one of them and nothing more (2), or the end of it (3). */
START_LOOP_TEST(a_decline_of_linux_may_be_later_than_the_fallback, 0, 4)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };
	size_t left = _i == 0 ? 0 : _i == 1 ? 1 : 2;

	first_contact_held();
	c[0].conn->rdv->peer.ext.present = false;
	rdv_decline(c[0].conn, CLC_DIAG_READY_LINK);
	duo_run(30000);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_gt(smcr_clc_want(c[0].conn), 0);
	msg.decline.diag = CLC_DIAG_IPSEC;
	if (_i == 0)
		duo_feed_msg(&c[0], &msg);
	else if (_i == 1)
		duo_feed(&c[0], "x", 1);
	else
		duo_feed(&c[0], "\xe2\xd4", 2);
	ck_assert((smcr_clc_want(c[0].conn) > 0) == (_i >= 2));
	if (_i == 3)
		smcr_tcp_event(c[0].conn, SMCR_TCP_FIN);
	duo_run(_i == 2 ? 1100 : 1);
	ck_assert_uint_eq(smcr_clc_want(c[0].conn), 0);
	ck_assert_uint_eq(c[0].left_len, left);
	ck_assert_mem_eq(c[0].left, _i == 1 ? "x" : "\xe2\xd4", left);
	ck_assert_uint_eq(c[0].diag.peer, _i == 0 ? CLC_DIAG_IPSEC : 0);
}

/* As Linux waits. */
START_TEST(a_linux_that_says_nothing_after_our_decline_holds_the_fallback_up_for_a_second)
{
	first_contact_held();
	c[0].conn->rdv->peer.ext.present = false;
	rdv_decline(c[0].conn, CLC_DIAG_READY_LINK);
	smcr_clc_input(c[0].conn, "\xe2", 1);
	duo_run(900);
	ck_assert(!IS(c[0], FALLBACK));
	duo_run(200);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert_uint_eq(c[0].left_len, 1);
	ck_assert_uint_eq(c[0].left[0], 0xe2);
}

/* A Decline that has crossed ours may be late, and is never data. */
START_TEST(an_smcrd_that_does_not_answer_our_decline_is_given_up)
{
	both_in_first_contact();
	duo_run(5900);
	ck_assert(!IS(c[0], FALLBACK) && !IS(c[0], CLOSED));
	duo_run(200);
	ck_assert(IS(c[0], CLOSED) && !IS(c[0], FALLBACK));
	ck_assert_int_eq(c[0].reason, SMCR_R_CLC_TIMEOUT);
}

START_LOOP_TEST(a_decline_in_first_contact_is_answered, 0, 2)
{
	struct duo_end *who = _i == 0 ? &c[0] : &s[0], *other = _i == 0 ? &s[0] : &c[0];

	first_contact_held();
	duo_feed_held(&c[0], &s[0]); /* the Confirm */
	c[0].hold = s[0].hold = false;
	rdv_decline(who->conn, CLC_DIAG_READY_LINK);
	duo_run(5);
	ck_assert(IS(*who, FALLBACK) && IS(*other, FALLBACK));
	ck_assert_uint_eq(who->diag.local, CLC_DIAG_READY_LINK);
	ck_assert_uint_eq(who->diag.peer, 0);
	ck_assert_uint_eq(other->diag.local, 0);
	ck_assert_uint_eq(other->diag.peer, CLC_DIAG_READY_LINK);
	ck_assert_uint_eq(who->left_len + other->left_len, 0);
	ck_assert_uint_eq(duo_count(A, "DECLINE"), 1);
	ck_assert_uint_eq(duo_count(B, "DECLINE"), 1);
}

/* -- transports -- */

START_LOOP_TEST(roce_devices_need_no_mpa, 0, 2)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

	duo_init_as(roce, _i == 1, NULL);
	duo_add_devices();
	duo_connect(0, 1, 200);
	ck_assert_int_eq(duo_link(A)->info.transport, RNIC_TRANSPORT_ROCE);
	ck_assert_uint_eq(duo_lgr(A)->active_cnt, 2);
	ck_assert_uint_eq(duo_write(&c[0], 9000), 9000);
	duo_run(10);
	ck_assert_uint_eq(duo_read(&s[0]), 9000);
}

#define TRANSPORTS (RNIC_TRANSPORT_IWARP_SCTP_UDP + 1)

/* Each two of them. Bit 0: which side has both; its first device is the one that the other side has not. */
START_LOOP_TEST(hosts_of_several_transports_agree_on_what_both_have, 0, 2 * TRANSPORTS * TRANSPORTS)
{
	const enum rnic_transport first = (enum rnic_transport)(_i / 2 % TRANSPORTS);
	const enum rnic_transport second = (enum rnic_transport)(_i / 2 / TRANSPORTS);
	unsigned both = (unsigned)_i % 2;
	enum rnic_transport t[2] = { second, second };

	if (first == second)
		return;
	t[both] = first;
	duo_init_as(t, false, NULL);
	d.transport[both] = second;
	duo_add_device(both);
	duo_connect(0, 1, 500);
	ck_assert_int_eq(duo_link(A)->info.transport, second);
	ck_assert_int_eq(duo_link(B)->info.transport, second);
	/* The other transport makes no second link. */
	ck_assert_uint_eq(duo_lgr(A)->active_cnt, 1);
}

/* SCTP in UDP and SCTP alone do not meet, either. */
START_LOOP_TEST(hosts_without_a_common_transport_fall_back_and_know_why, 0, TRANSPORTS *TRANSPORTS)
{
	const enum rnic_transport t[2] = { (enum rnic_transport)(_i % TRANSPORTS),
		(enum rnic_transport)(_i / TRANSPORTS) };

	if (t[A] == t[B])
		return;
	duo_init_as(t, false, NULL);
	duo_open(0);
	duo_run(500);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert_uint_eq(s[0].diag.local, CLC_DIAG_NO_DEVICE);
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_NO_DEVICE);
	/* What the client has, at both ends; the server has something else. */
	ck_assert_uint_eq(c[0].diag.offered, rdv_transport_bit(t[A]));
	ck_assert_uint_eq(s[0].diag.offered, rdv_transport_bit(t[A]));
	ck_assert_str_eq(s[0].diag.detail, "our devices have none of the transports that the peer offers");
	ck_assert_ptr_null(s[0].diag.over);
}

/* Of transports that both have, a server takes that of the device that it has first; a client's order does not matter. Links
 * that follow are of the same, however many other devices there are. */
START_LOOP_TEST(a_server_picks_by_the_order_of_its_devices, 0, 2 * TRANSPORTS * TRANSPORTS)
{
	const enum rnic_transport first = (enum rnic_transport)(_i / 2 % TRANSPORTS);
	const enum rnic_transport second = (enum rnic_transport)(_i / 2 / TRANSPORTS);
	bool turned = _i % 2 == 1;

	if (!rnic_is_iwarp(first) || !rnic_is_iwarp(second) || first == second)
		return;
	duo_init_as((const enum rnic_transport[]){ turned ? second : first, first }, false, NULL);
	d.transport[A] = turned ? first : second;
	d.transport[B] = second;
	duo_add_devices();
	d.transport[A] = d.transport[B] = first;
	duo_add_devices();
	duo_connect(0, 1, 500);
	duo_expect_links(2);
	for (unsigned h = A; h <= B; h++)
		LGR_EACH_LINK(l, duo_lgr(h))
			if (l->state != LINK_FREE)
				ck_assert_int_eq(l->info.transport, first);
}

/* A first contact by this pair over this transport, which leaves nothing behind. */
static void
contact_over(unsigned pair, enum rnic_transport transport)
{
	duo_connect(pair, 1, 100);
	ck_assert_int_eq(duo_link(A)->info.transport, transport);
	duo_close(pair);
	duo_run(1000);
	duo_expect_groups(0);
}

static void
contact_fails(unsigned pair)
{
	duo_open(pair);
	duo_run(3000);
	ck_assert(BOTH(pair, FALLBACK));
	ck_assert_uint_eq(c[pair].diag.local, CLC_DIAG_READY_LINK);
	ck_assert_str_eq(c[pair].diag.detail, "no SCTP association in time");
	ck_assert_uint_eq(s[pair].diag.peer, CLC_DIAG_READY_LINK);
	/* Both ends say over what. The server alone decides what is next. */
	ck_assert_str_eq(c[pair].diag.over, "iwarp-sctp");
	ck_assert_str_eq(s[pair].diag.over, "iwarp-sctp");
	ck_assert(!c[pair].diag.sctp_held_off);
	ck_assert(s[pair].diag.sctp_held_off);
}

/* What comes next goes over TCP, even when it comes later than any hold-off, and so does all within it. */
START_TEST(sctp_that_does_not_pass_is_left_alone)
{
	const struct smcr_config change = { .holdoff_max_ms = 5000, .group_idle_ms = 10 };
	static const enum rnic_transport sctp[2] = { RNIC_TRANSPORT_IWARP_SCTP, RNIC_TRANSPORT_IWARP_SCTP };

	duo_init_as(sctp, false, &change);
	d.transport[A] = d.transport[B] = RNIC_TRANSPORT_IWARP;
	duo_add_devices();
	sim_block_connect(d.dev[B], true);
	contact_fails(0);
	duo_run(10000);
	contact_over(1, RNIC_TRANSPORT_IWARP);
	contact_fails(2);
	contact_over(3, RNIC_TRANSPORT_IWARP);
	contact_over(4, RNIC_TRANSPORT_IWARP);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->sctp_shunned, 3);
	duo_run(5000);
	sim_block_connect(d.dev[B], false);
	contact_over(5, RNIC_TRANSPORT_IWARP_SCTP);
	contact_over(6, RNIC_TRANSPORT_IWARP_SCTP);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->sctp_shunned, 3);
	ck_assert(list_empty(&d.eng[B]->peers));
}

/* Nothing but SCTP in common: it is tried as anything else would be, until the peer is held off. */
START_TEST(sctp_alone_is_tried_again)
{
	static const enum rnic_transport sctp[2] = { RNIC_TRANSPORT_IWARP_SCTP_UDP, RNIC_TRANSPORT_IWARP_SCTP_UDP };

	duo_init_as(sctp, false, NULL);
	sim_block_connect(d.dev[B], true);
	duo_open(0);
	duo_run(3000);
	ck_assert(BOTH(0, FALLBACK));
	sim_block_connect(d.dev[B], false);
	duo_connect(1, 1, 100);
	ck_assert_int_eq(duo_link(A)->info.transport, RNIC_TRANSPORT_IWARP_SCTP_UDP);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->sctp_shunned, 0);
}

/* -- prewarm, drain, idle -- */

/* A client that says so, and sends data all the same: the server's user never heard of a connection, and hears of no
 * data. */
static bool
is_cdc_of_server(const struct sim_msg *m)
{
	return m->from == d.dev[B] && m->data[0] == CDC_TYPE;
}

START_TEST(a_prewarmed_connection_has_no_data)
{
	struct iovec iov[2];
	bool urgent;

	duo_init(true, true, NULL);
	duo_open(0);
	c[0].hold = true;
	duo_run(5);
	ck_assert_uint_gt(c[0].out_len, 58);
	c[0].out[58] |= CLC_TRANSPORT_PREWARM;
	duo_feed_held(&c[0], &s[0]);
	c[0].hold = false;
	d.holds = is_cdc_of_server; /* that it is closed already */
	duo_run(100);
	ck_assert_uint_eq(duo_write(&c[0], 1000), 1000);
	duo_run(100);
	ck_assert_uint_eq(duo_lgr(B)->conn_cnt, 1);
	ck_assert(!IS(s[0], PROPOSAL) && !IS(s[0], ESTABLISHED));
	ck_assert(!IS(s[0], READABLE) && !IS(s[0], WRITABLE));
	ck_assert_uint_eq(smcr_rx_data(s[0].conn, iov, &urgent), 0);
	d.holds = NULL;
}

START_TEST(prewarm_makes_a_group_without_an_application)
{
	duo_init(true, true, NULL);
	duo_open_one(&s[0], SMCR_SERVER, false);
	duo_open_one(&c[0], SMCR_CLIENT, true);
	duo_join(0);
	duo_run(500);
	ck_assert(!IS(s[0], PROPOSAL) && !IS(s[0], ESTABLISHED) && !IS(c[0], ESTABLISHED));
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_OK);
	ck_assert_int_eq(s[0].reason, SMCR_OK);
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
	ck_assert_uint_eq(duo_lgr(A)->conn_cnt, 0);
	duo_release_pair(0);
	duo_connect(1, 1, 100);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 1);
}

START_TEST(a_draining_server_declines_and_ends_its_groups)
{
	duo_begin(NULL);
	smcr_drain(d.eng[B], true);
	duo_open(1);
	duo_run(100);
	ck_assert(IS(c[1], FALLBACK));
	ck_assert(!IS(c[0], CLOSED) && !smcr_idle(d.eng[B]));
	duo_close(0);
	duo_run(1000);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_OK);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 1);
	ck_assert(smcr_idle(d.eng[A]) && smcr_idle(d.eng[B]));
}

START_TEST(a_drain_that_is_taken_back_leaves_no_trace)
{
	duo_begin(NULL);
	smcr_drain(d.eng[B], true);
	duo_open(1);
	duo_run(100);
	ck_assert(IS(c[1], FALLBACK));
	smcr_drain(d.eng[B], false);
	duo_connect(2, 1, 100);
	duo_close(0);
	duo_close(2);
	duo_run(1000);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_OK);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 0);
	duo_connect(3, 1, 100);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 1);
}

START_TEST(a_second_name_of_a_peer_is_remembered)
{
	duo_init(true, true, NULL);
	for (unsigned i = 0; i < 2; i++) {
		open_keyed(&c[i], &s[i], i == 0 ? "server:1" : "server:2");
		duo_run(100);
		ck_assert(IS(c[i], ESTABLISHED));
	}
	/* None waits for another whose server leg hangs. */
	for (unsigned i = 2; i < 6; i++) {
		open_keyed(&c[i], &s[i], "server:2");
		s[i].refuse = i == 2;
	}
	duo_run(100);
	for (unsigned i = 3; i < 6; i++)
		ck_assert(IS(c[i], ESTABLISHED));
	ck_assert(!IS(c[2], ESTABLISHED));
	ck_assert_uint_eq(duo_lgr_cnt(A), 1);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 1);
	/* Without the group the name means nothing: one makes a new one. */
	lgr_down(duo_lgr(A), SMCR_R_LINK_LOST, "test");
	lgr_down(duo_lgr(B), SMCR_R_LINK_LOST, "test");
	for (unsigned i = 0; i < 6; i++)
		duo_release_pair(i);
	duo_run(100);
	for (unsigned i = 6; i < 10; i++)
		open_keyed(&c[i], &s[i], "server:2");
	duo_run(200);
	for (unsigned i = 6; i < 10; i++) {
		ck_assert(IS(c[i], ESTABLISHED));
		duo_release_pair(i);
	}
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 2);
}

/* The server had no second link to offer, so its group is ready while the client still waits for ADD LINK. */
START_TEST(a_group_that_the_server_offers_is_ready)
{
	duo_init(true, true, NULL);
	duo_open(0);
	duo_until(A, "CONFIRM LINK response");
	ck_assert_int_eq(duo_lgr(A)->state, LGR_FORMING);
	/* The server's ADD LINK is lost, and it goes on without. */
	for (unsigned i = 0; i < SMCR_LINKS_MAX; i++)
		duo_lgr(B)->links[i + 1].state = LINK_CONNECTING;
	while (duo_lgr(B)->state == LGR_FORMING)
		duo_run(1);
	for (unsigned i = 0; i < SMCR_LINKS_MAX; i++)
		duo_lgr(B)->links[i + 1].state = LINK_FREE;
	ck_assert(IS(s[0], ESTABLISHED) && !IS(c[0], ESTABLISHED));
	open_keyed(&c[1], &s[1], "server:2");
	duo_run(50);
	ck_assert_uint_eq(duo_count(A, "DECLINE out of sync"), 0);
	ck_assert(IS(c[0], ESTABLISHED) && BOTH(1, ESTABLISHED));
}

/* A peer that takes the TCP connection and says nothing: one timeout, not one for each that waits; with the next it is held off. */
START_TEST(a_silent_peer_is_a_failed_first_contact)
{
	duo_init(true, true, &short_hold);
	for (unsigned i = 0; i < 8; i++)
		duo_open_one(&c[i], SMCR_CLIENT, false);
	duo_run(6100);
	for (unsigned i = 0; i < 8; i++) {
		/* Connections that wait fall back before a peer that is not silent would reset them. */
		ck_assert(IS(c[i], CLOSED) == (i == 0) && IS(c[i], FALLBACK) == (i != 0));
		if (i == 0)
			ck_assert_int_eq(c[i].reason, SMCR_R_CLC_TIMEOUT);
		else
			ck_assert_uint_eq(c[i].diag.local, CLC_DIAG_READY_LINK);
		duo_release(&c[i]);
	}
	ck_assert_uint_eq(duo_count(A, "PROPOSAL"), 1);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->clc_timeouts, 1);
	duo_open_one(&c[0], SMCR_CLIENT, false);
	duo_run(6100);
	ck_assert_int_eq(c[0].reason, SMCR_R_CLC_TIMEOUT);
	duo_open_one(&c[1], SMCR_CLIENT, false);
	duo_run(1);
	ck_assert(IS(c[1], FALLBACK) && c[1].diag.held_off);
}

/* Health checks that leave before their Confirm say nothing about SMC-R: the peer is not held off. */
START_LOOP_TEST(a_client_that_leaves_before_its_confirm_is_no_failure, 0, 2)
{
	duo_init(true, true, &short_hold);
	for (unsigned i = 0; i < 3; i++) {
		d.seen_cnt = 0;
		duo_open(i);
		duo_until(B, "ACCEPT first contact");
		smcr_tcp_event(s[i].conn, _i == 0 ? SMCR_TCP_RST : SMCR_TCP_FIN);
		ck_assert_int_eq(s[i].conn->reason, _i == 0 ? SMCR_R_TCP_RESET : SMCR_R_TCP_FIN);
		ck_assert(list_empty(&d.eng[B]->peers));
		duo_release(&s[i]);
		smcr_abort(c[i].conn, SMCR_R_APP_RESET);
		duo_release(&c[i]);
		duo_run(5);
	}
	ck_assert_uint_eq(smcr_counters(d.eng[B])->first_contacts_failed, 0);
	duo_connect(3, 1, 200);
}

/* The device goes away while others wait for the first contact over it: none of them makes a group on it. */
START_LOOP_TEST(no_connection_follows_on_a_removed_device, 0, 2)
{
	unsigned host = (unsigned)_i;

	duo_init(true, true, NULL);
	for (unsigned i = 0; i < 4; i++) {
		open_keyed(&c[i], &s[i], i == 0 ? "server:1" : i == 1 ? "server:2" : i == 2 ? "server:3" : "server:4");
		if (i == 0)
			duo_until(A, "CONFIRM");
	}
	/* The others have proposed and wait for the group. */
	for (unsigned i = 0; i < 4; i++)
		c[i].hold = i == 0;
	duo_run(0);
	smcr_remove_device(d.eng[host], d.dev[host]);
	d.dev[host] = NULL;
	for (unsigned i = 0; i < 4; i++)
		c[i].hold = false;
	duo_run(30000);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(IS(c[i], FALLBACK) || IS(c[i], CLOSED));
		duo_release_pair(i);
	}
	duo_run(100);
	duo_expect_groups(0);
}

static const struct smcr_config one_element = { .rmb_elems = 1, .group_idle_ms = 1000 };

/* The last that waits for an RMB leaves without one: the group is as unused as when a connection ends. */
START_LOOP_TEST(a_group_ends_though_its_last_user_only_waited, 0, 2)
{
	duo_begin(&one_element);
	struct lgr *lgr = duo_lgr(B);
	duo_open(1);
	duo_until(B, "CONFIRM RKEY");
	ck_assert(!list_empty(&lgr->wait_rmb));
	if (_i == 1)
		smcr_drain(d.eng[B], true);
	conn_end(s[0].conn, SMCR_R_CLOSE_TIMEOUT, "", true);
	ck_assert_uint_eq(lgr->conn_cnt, 0);
	mark_lgr(lgr)->rmb = RMB_REFUSED;
	duo_run(2000);
	ck_assert(IS(s[1], FALLBACK));
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), 1);
	ck_assert_uint_eq(duo_lgr_cnt(B), 0);
}

/* A reload amid first contact: both sides still agree on the cursors. */
START_TEST(cursors_are_agreed_in_one_first_contact)
{
	duo_init(true, true, NULL);
	duo_open(0);
	duo_until(B, "CONFIRM LINK");
	struct smcr_config cfg = d.eng[B]->cfg;

	cfg.rfc_cursors = true;
	smcr_reconfigure(d.eng[B], &cfg);
	duo_run(100);
	ck_assert(BOTH(0, ESTABLISHED));
	ck_assert(duo_lgr(A)->eye_catcher == duo_lgr(B)->eye_catcher);
}
