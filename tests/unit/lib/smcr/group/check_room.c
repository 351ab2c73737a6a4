/* How many link groups, and so queue pairs, an address and strangers can have. Beside a bystander with a group of its own. */
#include "duo.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

enum { HERE = 1, ELSEWHERE = 2 };

static void
begin(void)
{
	memset(c, 0, sizeof(c));
	memset(s, 0, sizeof(s));
	duo_init(true, true, NULL);
	d.remote = HERE;
	duo_connect(0, 1, 100);
	d.remote = ELSEWHERE;
}

static void
configure(uint16_t groups_per_addr)
{
	struct smcr_config cfg = d.eng[B]->cfg;

	cfg.groups_per_addr = groups_per_addr;
	smcr_reconfigure(d.eng[B], &cfg);
}

/* Somebody with an invented id, who leaves it at that. */
static void
half_open(struct duo_end *e, uint8_t id)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1, .proposal.peer_id = { 0xee, id } };

	msg.proposal.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP };
	duo_open_one(e, SMCR_SERVER, false);
	duo_feed_msg(e, &msg);
	duo_run(1);
}

static bool
accepted(const struct duo_end *e)
{
	return !IS(*e, FALLBACK) && e->conn->rdv->step == RDV_WAIT_CONFIRM;
}

UNIT_CASE(duo_case(tc, 5000));

START_TEST(an_address_has_so_many_groups)
{
	begin();
	configure(4);
	for (uint8_t i = 1; i <= 6; i++) {
		half_open(&s[i], i);
		ck_assert(accepted(&s[i]) == (i <= 4));
	}
	ck_assert_uint_eq(s[5].diag.local, CLC_DIAG_MAX_LINKS);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_groups_addr, 2);
	/* Nobody else is touched by that. */
	d.remote = HERE;
	half_open(&s[7], 7);
	ck_assert(accepted(&s[7]));
	duo_bystander_is_well();
	d.remote = ELSEWHERE;
	smcr_tcp_event(s[2].conn, SMCR_TCP_FIN);
	duo_run(1);
	half_open(&s[8], 8);
	ck_assert(accepted(&s[8]));
	half_open(&s[9], 9);
	ck_assert(!accepted(&s[9]));
	duo_bystander_is_well();
}

/* A group that is full is no reserve of its address. */
START_TEST(full_groups_do_not_count)
{
	struct smcr_config cfg;

	begin();
	cfg = d.eng[B]->cfg;
	cfg.groups_per_addr = 1;
	cfg.conns_per_group = 1;
	smcr_reconfigure(d.eng[B], &cfg);
	for (unsigned i = 1; i < 4; i++)
		duo_connect(i, 1, 100);
	ck_assert_uint_eq(duo_lgr_cnt(B), 4);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_groups_addr, 0);
}

/* A group without connections, of a client with this id. */
static struct lgr *
prewarmed(struct duo_end *client, struct duo_end *server, uint8_t id)
{
	struct lgr *newest = NULL;

	d.eng[A]->peer_id[0] = id;
	duo_open_one(server, SMCR_SERVER, false);
	duo_open_one(client, SMCR_CLIENT, true);
	client->conn->rdv->open.peer_key[0] = (char)('a' + id);
	client->peer = server;
	server->peer = client;
	duo_run(400);
	ck_assert(IS(*client, CLOSED) && client->reason == SMCR_OK);
	duo_release(client);
	duo_release(server);
	LIST_FOREACH(n, &d.eng[B]->lgrs)
		newest = CONTAINER_OF(n, struct lgr, node);
	ck_assert_uint_eq(newest->owner.peer_id[0], id);
	ck_assert(lgr_unused(newest));
	return newest;
}

static unsigned
ended_for_room(void)
{
	return (unsigned)smcr_counters(d.eng[B])->groups_ended_for_room;
}

START_TEST(an_addresss_idle_groups_make_room_before_it_is_narrow)
{
	struct lgr *lgr[4];

	begin();
	configure(4);
	for (uint8_t i = 0; i < 3; i++)
		lgr[i] = prewarmed(&c[1 + i], &s[1 + i], i);
	ck_assert_uint_eq(ended_for_room(), 0);
	lgr[1]->idle_since_ns = 1; /* longest */
	lgr[3] = prewarmed(&c[4], &s[4], 3);
	ck_assert_uint_eq(ended_for_room(), 1);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_groups_addr, 0);
	ck_assert_uint_eq(duo_lgr_cnt(B), 4);
	LIST_FOREACH(n, &d.eng[B]->lgrs)
		ck_assert_uint_ne(CONTAINER_OF(n, struct lgr, node)->owner.peer_id[0], 1);
	duo_bystander_is_well();
}

/* First contacts go on while somebody walks through the groups, as at the end of a device: what ends for them stays where it is
 * for this turn, though nothing can be sent to its peer any more. */
START_TEST(making_room_does_not_disturb_a_walk_through_the_groups)
{
	struct smcr_identity remote = { .addr = { [15] = ELSEWHERE } };
	struct lgr *lgr[3];
	unsigned seen = 0;

	begin();
	configure(4);
	for (uint8_t i = 0; i < 3; i++)
		lgr[i] = prewarmed(&c[1 + i], &s[1 + i], i);
	lgr[0]->idle_since_ns = 1;
	lgr[0]->links[0].llc_cnt = LINK_LLC_QUEUE;
	LIST_FOREACH(n, &d.eng[B]->lgrs) {
		if (++seen == 1)
			ck_assert_uint_eq(room_for_group(d.eng[B], SMCR_SERVER, &remote, d.dev[B]), 0);
		ck_assert_uint_le(seen, 4);
		ck_assert_int_eq(CONTAINER_OF(n, struct lgr, node)->state, LGR_ACTIVE);
	}
	ck_assert_uint_eq(seen, 4);
	ck_assert_uint_eq(ended_for_room(), 1);
	/* The group is not ended twice: the next one goes. */
	ck_assert_uint_eq(room_for_group(d.eng[B], SMCR_SERVER, &remote, d.dev[B]), 0);
	ck_assert_uint_eq(ended_for_room(), 2);
	ck_assert(lgr[0]->end_wanted);
	ck_assert(lgr[1]->end_wanted != lgr[2]->end_wanted);
	lgr[0]->links[0].llc_cnt = 0;
	duo_run(1000);
	ck_assert_uint_eq(duo_lgr_cnt(B), 2);
	duo_bystander_is_well();
}

/* A first contact of B's own. */
static void
own_first_contact(struct duo_end *e)
{
	struct smcr_open open = { .role = SMCR_CLIENT, .app = e, .elem_size = SMCR_ELEM_MIN };
	struct clc_msg msg = { .type = CLC_ACCEPT, .version = 1 };
	int err;

	snprintf(open.peer_key, sizeof(open.peer_key), "own %td", e - c);
	msg.accept = (struct clc_accept){ .first_contact = true, .rmbe_idx = 1, .mtu_code = 3, .qpn = 1 };
	msg.accept.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP };
	*e = (struct duo_end){ .host = B };
	e->conn = smcr_open(d.eng[B], &open, &err);
	ck_assert_ptr_nonnull(e->conn);
	duo_feed_msg(e, &msg);
}

/* Of 16 queue pairs strangers get 14, whatever their addresses; what is left serves the daemon's own connections. */
START_TEST(strangers_do_not_get_the_last_queue_pairs)
{
	begin();
	sim_max_qp(d.dev[B], 16);
	for (uint8_t i = 1; i <= 15; i++) {
		d.remote = (uint8_t)(10 + i);
		half_open(&s[i], i);
		ck_assert(accepted(&s[i]) == (i <= 13)); /* the bystander has one */
	}
	ck_assert_uint_eq(s[14].diag.local, CLC_DIAG_READY_LINK);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_qp, 2);
	for (unsigned i = 1; i <= 3; i++) {
		own_first_contact(&c[i]);
		ck_assert((c[i].conn->rdv->step == RDV_CONNECTING) == (i <= 2));
	}
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_qp, 3);
	duo_bystander_is_well();
	smcr_abort(c[1].conn, SMCR_R_APP_RESET);
	smcr_abort(c[2].conn, SMCR_R_APP_RESET);
	smcr_tcp_event(s[5].conn, SMCR_TCP_FIN);
	duo_run(1);
	half_open(&s[16], 16);
	ck_assert(accepted(&s[16]));
	half_open(&s[17], 17);
	ck_assert(!accepted(&s[17]));
	duo_bystander_is_well();
}

/* Idle groups end before that, but not those that this daemon keeps ready for itself. */
START_TEST(idle_groups_make_room_before_queue_pairs_are_short)
{
	struct lgr *lgr[3];

	begin();
	sim_max_qp(d.dev[B], 5); /* an eighth of that is none: narrow and full at once */
	for (uint8_t i = 0; i < 3; i++)
		lgr[i] = prewarmed(&c[1 + i], &s[1 + i], i);
	lgr[0]->idle_since_ns = 1;
	lgr[0]->role = SMCR_CLIENT;
	lgr[2]->idle_since_ns = 2;
	half_open(&s[4], 4);
	ck_assert(accepted(&s[4]));
	ck_assert_uint_eq(ended_for_room(), 0);
	half_open(&s[5], 5);
	ck_assert(!accepted(&s[5]));
	ck_assert_uint_eq(ended_for_room(), 1);
	ck_assert_int_eq(lgr[0]->state, LGR_ACTIVE);
	ck_assert_int_eq(lgr[1]->state, LGR_ACTIVE);
	lgr[0]->role = SMCR_SERVER;
	duo_run(1000);
	half_open(&s[6], 6);
	ck_assert(accepted(&s[6]));
	duo_bystander_is_well();
}

/* First contacts of clients leave the daemon's own their places. */
START_TEST(each_role_has_a_table_of_peers)
{
	const char own[sizeof(((struct peer *)NULL)->key)] = "own";
	struct smcr_conn leader;
	struct peer *p;

	begin();
	for (unsigned i = 0; i < 1025; i++) {
		struct owner o = { .peer_id = { (uint8_t)i, (uint8_t)(i >> 8) } };

		p = peer_get(d.eng[B], SMCR_SERVER, NULL, &o);
		ck_assert((p != NULL) == (i < 1024));
		if (p != NULL)
			p->leader = &leader;
	}
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_peers_max, 1);
	ck_assert_ptr_nonnull(peer_get(d.eng[B], SMCR_CLIENT, own, NULL));
	own_first_contact(&c[1]);
	ck_assert_int_eq(c[1].conn->rdv->step, RDV_CONNECTING);
	peer_free_all(d.eng[B]);
	c[1].conn->rdv->peer_ent = NULL;
}
