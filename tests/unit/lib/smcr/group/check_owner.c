/* The owner of a link group: rights of a stranger with the peer's id, and of a peer with several addresses. */
#include "duo.h"
#include "smcr/group/link.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"

#include <string.h>

enum { HERE = 1, ELSEWHERE = 2 };

UNIT_CASE(duo_case(tc, 5000));

/* addresses */

START_TEST(an_owner_is_a_peer_id_at_an_address)
{
	const uint8_t id[8] = { 1, 2 }, other_id[8] = { 1, 2, [7] = 1 };
	struct smcr_identity here = { .addr = { [15] = 1 } }, there = { .addr = { 1 } }, scoped = here, level = here,
	                     name = here;
	struct owner o = owner_of(id, &here), p[6];

	scoped.scope = 1;
	level.level = 1;
	name.name_id[31] = 1;
	p[0] = owner_of(id, &here);
	p[1] = owner_of(other_id, &here);
	p[2] = owner_of(id, &there);
	p[3] = owner_of(id, &scoped);
	p[4] = owner_of(id, &level);
	p[5] = owner_of(id, &name);
	for (unsigned i = 0; i < 6; i++)
		ck_assert(owner_same(&o, &p[i]) == (i == 0));
}

/* c[0] and s[0]: bystanders with a group, whose data must go on. */
static void
begin(const struct smcr_config *change)
{
	duo_init(true, true, change);
	d.remote = HERE;
	duo_connect(0, 1, 100);
}

static const uint8_t its_device[16] = { [10] = 0xff, 0xff, 10, 9, 9, 9 };

/* A Proposal with the peer id of host A. */
static void
propose_as_a(struct duo_end *e)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };

	memcpy(msg.proposal.peer_id, d.eng[A]->peer_id, 8);
	memcpy(msg.proposal.gid, its_device, sizeof(msg.proposal.gid));
	msg.proposal.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP };
	duo_open_one(e, SMCR_SERVER, false);
	duo_feed_msg(e, &msg);
	duo_run(5);
}

static void
decline_out_of_sync(struct duo_end *e)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	msg.decline.diag = CLC_DIAG_SYNC;
	msg.decline.out_of_sync = true;
	duo_feed_msg(e, &msg);
	duo_run(5);
	ck_assert(IS(*e, FALLBACK));
}

static struct clc_accept
accept_of(const struct duo_end *e)
{
	struct clc_msg msg;

	ck_assert_int_gt(clc_decode((struct span){ e->out, e->out_len }, &msg), 0);
	ck_assert_int_eq(msg.type, CLC_ACCEPT);
	return msg.accept;
}

/* The stranger declines the Accept, and says that it does not know the group (0), or says nothing (1). */
START_LOOP_TEST(a_stranger_with_a_peers_id_gets_a_group_of_its_own, 0, 2)
{
	uint32_t used;

	begin(NULL);
	struct lgr *lgr = duo_lgr(B);
	used = CONTAINER_OF(list_first(&lgr->rmbs), struct rmb, node)->used;
	d.remote = ELSEWHERE;
	propose_as_a(&s[1]);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 2);
	ck_assert_uint_ne(accept_of(&s[1]).qpn, lgr->links[0].qpn);
	ck_assert_uint_ne(accept_of(&s[1]).rkey, CONTAINER_OF(list_first(&lgr->rmbs), struct rmb, node)->mr[0]->rkey);
	if (_i == 0)
		decline_out_of_sync(&s[1]);
	duo_bystander_is_well();
	duo_run(10000);
	ck_assert_uint_eq(CONTAINER_OF(list_first(&lgr->rmbs), struct rmb, node)->used, used);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->elems_quarantined, 0);
	ck_assert_ptr_eq(duo_lgr(B), lgr);
	ck_assert_uint_eq(duo_lgr_cnt(B), 1);
	duo_bystander_is_well();
}

static const struct smcr_config long_hold = { .holdoff_ms = 60000 };

/* A stranger does not hold the peer off by failing in its name, or lead a first contact that the peer waits for. */
START_TEST(a_strangers_first_contacts_are_not_the_peers)
{
	duo_init(true, true, &long_hold);
	d.remote = ELSEWHERE;
	for (unsigned i = 1; i < 4; i++)
		propose_as_a(&s[i]);
	duo_run(20000);
	propose_as_a(&s[1]);
	d.remote = HERE;
	duo_connect(0, 1, 100);
	duo_bystander_is_well();
}

/* A peer that comes from two addresses is served, by a group for each. */
START_TEST(a_peer_with_two_addresses_has_two_groups)
{
	begin(NULL);
	for (unsigned i = 1; i < 4; i++) {
		d.remote = i == 3 ? HERE : ELSEWHERE;
		duo_open_one(&s[i], SMCR_SERVER, false);
		d.remote = HERE; /* the client's way to the server is the same */
		duo_open_one(&c[i], SMCR_CLIENT, false);
		duo_join(i);
		duo_run(100);
		ck_assert(BOTH(i, ESTABLISHED));
	}
	duo_expect_groups(2);
	ck_assert_ptr_eq(s[1].conn->lgr, s[2].conn->lgr);
	ck_assert_ptr_eq(s[0].conn->lgr, s[3].conn->lgr);
	ck_assert_ptr_ne(s[0].conn->lgr, s[1].conn->lgr);
	duo_bystander_is_well();
}

/* From the right address, too: the group is asked whether it lives, and is not offered meanwhile. */
START_TEST(out_of_sync_is_proven_before_it_counts)
{
	begin(NULL);
	struct lgr *lgr = duo_lgr(B);
	sim_freeze(d.dev[A], true); /* so that the answer takes its time */
	propose_as_a(&s[1]);
	ck_assert(!accept_of(&s[1]).first_contact);
	decline_out_of_sync(&s[1]);
	ck_assert_uint_eq(duo_count(B, "TEST LINK"), 1);
	ck_assert(lgr_is_suspect(lgr));
	ck_assert_uint_eq(smcr_counters(d.eng[B])->out_of_sync, 1);
	propose_as_a(&s[2]);
	ck_assert(accept_of(&s[2]).first_contact);
	sim_freeze(d.dev[A], false);
	duo_run(50);
	ck_assert(!lgr_is_suspect(lgr));
	propose_as_a(&s[3]);
	ck_assert(!accept_of(&s[3]).first_contact);
	duo_bystander_is_well();
	duo_run(20000);
	duo_bystander_is_well();
}

/* A test that was under way before says nothing of what came after. */
START_TEST(a_test_that_is_under_way_proves_nothing)
{
	begin(NULL);
	sim_freeze(d.dev[A], true);
	for (unsigned i = 1; i < 3; i++) {
		propose_as_a(&s[i]);
		if (i == 1)
			decline_out_of_sync(&s[i]);
	}
	lgr_mark_suspect(duo_lgr(B));
	duo_run(5);
	sim_freeze(d.dev[A], false);
	duo_run(50);
	ck_assert_uint_eq(duo_count(B, "TEST LINK"), 2);
	ck_assert(!lgr_is_suspect(duo_lgr(B)));
	duo_bystander_is_well();
}

/* A group whose links are all suspect takes no connection: the peer gets another group. */
START_TEST(a_silent_group_is_not_joined)
{
	begin(NULL);
	LGR_EACH_LINK(l, duo_lgr(B))
		l->suspect = "no answer";
	propose_as_a(&s[1]);
	ck_assert(accept_of(&s[1]).first_contact);
	LGR_EACH_LINK(l, duo_lgr(B))
		l->suspect = NULL;
	propose_as_a(&s[2]);
	ck_assert(!accept_of(&s[2]).first_contact);
	duo_bystander_is_well();
}

/* -- the client's side -- */

/* Another server answers with what the first one says: the group that it names is not its own. */
static void
offered_by_another(const struct clc_accept *a)
{
	struct clc_msg msg = { .type = CLC_ACCEPT, .version = 1, .accept = *a };

	d.remote = ELSEWHERE;
	duo_open_one(&c[1], SMCR_CLIENT, false);
	duo_run(5);
	duo_feed_msg(&c[1], &msg);
	duo_run(5);
	d.remote = HERE;
}

/* With an extension and the token 0, as who does not know it (0); a wrong token (1); no extension (2). */
START_LOOP_TEST(a_group_is_not_joined_on_another_servers_word, 0, 3)
{
	begin(NULL);
	propose_as_a(&s[2]);
	struct clc_accept a = accept_of(&s[2]);
	ck_assert(!a.first_contact);
	ck_assert_uint_eq(a.ext.token, duo_lgr(B)->token);
	a.ext.token = _i == 1 ? a.ext.token ^ 1 : 0;
	a.ext.present = _i < 2;
	a.rmbe_idx = s[0].conn->elem_idx; /* the bystander's */
	offered_by_another(&a);
	ck_assert(IS(c[1], FALLBACK) && !c[1].diag.out_of_sync);
	ck_assert_uint_eq(c[1].diag.local, CLC_DIAG_NO_SERVER_LINK);
	ck_assert_uint_eq(duo_count(A, "CONFIRM"), 1);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->elem_conflicts, 0);
	ck_assert_uint_eq(duo_lgr(A)->conn_cnt, 1);
	duo_bystander_is_well();
}

/* The same when the group has no token, as with a server that is no smcrd. */
START_TEST(a_token_that_was_never_agreed_on_shows_nothing)
{
	begin(NULL);
	propose_as_a(&s[2]);
	struct clc_accept a = accept_of(&s[2]);
	a.ext.token = duo_lgr(A)->token = 0;
	offered_by_another(&a);
	ck_assert(IS(c[1], FALLBACK));
	ck_assert_uint_eq(c[1].diag.local, CLC_DIAG_NO_SERVER_LINK);
	duo_bystander_is_well();
}

/* One server, two addresses: the group serves both. */
START_TEST(a_server_is_known_at_another_address_by_the_token)
{
	begin(NULL);
	for (unsigned i = 1; i < 4; i++) {
		d.remote = HERE;
		duo_open_one(&s[i], SMCR_SERVER, false);
		d.remote = ELSEWHERE;
		duo_open_one(&c[i], SMCR_CLIENT, false);
		duo_join(i);
	}
	duo_run(100);
	for (unsigned i = 1; i < 4; i++)
		ck_assert(BOTH(i, ESTABLISHED));
	duo_expect_groups(1);
	duo_bystander_is_well();
}

/* A token from a group in clear says nothing to a client that wants a proven name. */
START_TEST(groups_of_two_levels_never_mix)
{
	begin(NULL);
	d.level = 1;
	duo_connect(1, 2, 100);
	duo_expect_groups(2);
	d.level = 0;
	duo_open_one(&s[3], SMCR_SERVER, false);
	d.level = 1;
	duo_open_one(&c[3], SMCR_CLIENT, false);
	duo_join(3);
	duo_run(100);
	ck_assert(IS(c[3], FALLBACK));
	ck_assert_uint_eq(c[3].diag.local, CLC_DIAG_NO_SERVER_LINK);
	duo_bystander_is_well();
}

/* A server that claims the identity of another: its own half-made group does not stand in front of the other's. */
START_TEST(a_claimed_identity_does_not_hide_the_group)
{
	begin(NULL);
	struct lgr *lgr = duo_lgr(A);
	struct lgr *fake = lgr_new(d.eng[A], SMCR_CLIENT, &lgr->owner);
	fake->owner.remote.addr[15] = ELSEWHERE;
	ck_assert_int_eq(link_new(fake, d.dev[A], &(struct link *){ NULL }), 0);
	fake->links[0].remote = lgr->links[0].remote;
	fake->links[0].state = LINK_CONFIRMING;
	/* In front of the true one. */
	list_remove(&lgr->node);
	list_push(&d.eng[A]->lgrs, &lgr->node);
	duo_connect(1, 1, 100);
	ck_assert_ptr_eq(c[1].conn->lgr, lgr);
	lgr_down(fake, SMCR_R_LINK_LOST, "test");
	duo_bystander_is_well();
}

/* Where a middle comes from, the device that a Proposal names, the far end of a link: for as long as there is a group. */
START_TEST(peers_of_the_moment_are_known_by_address)
{
	const uint8_t here[16] = { [15] = HERE }, elsewhere[16] = { [15] = ELSEWHERE };
	const uint8_t device_of_a[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

	begin(NULL);
	ck_assert(smcr_has_peer(d.eng[B], here) && smcr_has_peer(d.eng[B], device_of_a));
	ck_assert(!smcr_has_peer(d.eng[B], elsewhere) && !smcr_has_peer(d.eng[B], its_device));
	d.remote = ELSEWHERE;
	propose_as_a(&s[1]);
	ck_assert(smcr_has_peer(d.eng[B], elsewhere) && smcr_has_peer(d.eng[B], its_device));
	decline_out_of_sync(&s[1]);
	duo_run(1000);
	ck_assert(!smcr_has_peer(d.eng[B], elsewhere) && !smcr_has_peer(d.eng[B], its_device));
	ck_assert(smcr_has_peer(d.eng[B], here) && smcr_has_peer(d.eng[B], device_of_a));
}
