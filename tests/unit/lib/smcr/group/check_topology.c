/* Which devices a group takes where a port of a card is two of them, by the kind of its GIDs. More of it: check_failover.c. */
#include "duo.h"
#include "smcr/group/topology.h"
#include "unit.h"

#include <string.h>

static const enum rnic_transport roce[] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

UNIT_CASE(duo_case(tc, 5000));

/* The device of the link that came n-th, of those that are up. */
static struct rnic_dev *
nth_dev(unsigned host, unsigned n)
{
	LGR_EACH_LINK(l, duo_lgr(host))
		if (l->state == LINK_ACTIVE && n-- == 0)
			return l->dev;
	return NULL;
}

/* The first port of the host gets a second device, under a RoCE v1 GID. */
static struct rnic_dev *
add_v1(unsigned host)
{
	struct rnic_dev *dev = duo_add_neighbour(host);

	sim_gid_type(dev, RNIC_GID_ROCE_V1);
	return dev;
}

START_TEST(a_port_under_both_kinds_of_gid_is_one_way)
{
	duo_init_as(roce, true, NULL);
	add_v1(A);
	add_v1(B);
	duo_connect(0, 1, 500);
	for (unsigned h = A; h <= B; h++) {
		ck_assert_uint_eq(duo_lgr(h)->active_cnt, 1);
		ck_assert_ptr_eq(nth_dev(h, 0), d.dev[h]);
		ck_assert(!topology_can_add(duo_lgr(h)));
		ck_assert_ptr_null(topology_spare_device(duo_lgr(h)));
	}
	/* Nor in place of the one that was lost. */
	sim_port(d.dev[A], RNIC_PORT_DOWN);
	duo_run(1000);
	ck_assert(IS(c[0], CLOSED));
	duo_release_pair(0);
}

START_TEST(a_second_port_is_found_behind_it)
{
	struct rnic_dev *second[2];

	duo_init_as(roce, true, NULL);
	for (unsigned h = A; h <= B; h++) {
		add_v1(h);
		second[h] = duo_add_device(h);
	}
	duo_connect(0, 1, 500);
	for (unsigned h = A; h <= B; h++) {
		ck_assert_uint_eq(duo_lgr(h)->active_cnt, 2);
		ck_assert_ptr_eq(nth_dev(h, 0), d.dev[h]);
		ck_assert_ptr_eq(nth_dev(h, 1), second[h]);
		ck_assert_uint_eq(topology_symmetric_cnt(duo_lgr(h)), 2);
	}
}

/* To Linux a group is of one kind. */
START_TEST(a_group_with_linux_has_ports_of_one_kind)
{
	static const enum rnic_gid_type v1[2] = { RNIC_GID_ROCE_V1, RNIC_GID_ROCE_V1 };

	duo_init_linux(v1, NULL);
	for (unsigned h = A; h <= B; h++)
		sim_gid_type(duo_add_device(h), RNIC_GID_ROCE_V2);
	duo_connect(0, 1, 500);
	for (unsigned h = A; h <= B; h++) {
		ck_assert(duo_lgr(h)->dialect.foreign);
		ck_assert_uint_eq(duo_lgr(h)->active_cnt, 1);
		ck_assert(!topology_can_add(duo_lgr(h)));
	}
}

/* Packets of one kind are not understood by the other; the kind need not be the same on all ports. */
START_TEST(a_card_that_has_no_other_kind_is_taken)
{
	duo_init_as(roce, true, NULL);
	for (unsigned h = A; h <= B; h++)
		sim_gid_type(duo_add_device(h), RNIC_GID_ROCE_V1);
	duo_connect(0, 1, 500);
	for (unsigned h = A; h <= B; h++)
		ck_assert_uint_eq(duo_lgr(h)->active_cnt, 2);
}

static unsigned offers;

/* Looks at each ADD LINK of the server. */
static bool
goes_over_another_port(const struct sim_msg *msg)
{
	bool of_server = msg->from == d.dev[B] || msg->from == d.more[B][0] || msg->from == d.more[B][1];
	bool elsewhere = false;
	struct llc_msg m;

	if (!of_server || msg->op != RNIC_WR_SEND || msg->data[0] != LLC_ADD_LINK ||
	    llc_decode((struct span){ msg->data, msg->len }, LLC_VERSION, &m) <= 0 || m.response)
		return false;
	LGR_EACH_LINK(l, duo_lgr(B))
		elsewhere = elsewhere || (l->state == LINK_ACTIVE && memcmp(l->info.gid.b, m.add_link.gid, 16) != 0);
	ck_assert(!elsewhere || memcmp(rnic_query(msg->from).gid.b, m.add_link.gid, 16) != 0);
	offers++;
	return false;
}

/* Linux takes an offer of the port that it comes from for one of an asymmetric link. Each host gets two devices more, in
 * any order, and each link is lost once. */
START_LOOP_TEST(a_link_is_not_offered_over_one_of_its_port, 0, 6)
{
	static const char *const orders[] = { "AABB", "ABAB", "ABBA", "BAAB", "BABA", "BBAA" };
	static const struct smcr_config three = { .links_max = 3 };

	offers = 0;
	duo_init_as(roce, true, &three);
	d.holds = goes_over_another_port;
	duo_connect(0, 1, 500);
	for (const char *host = orders[_i]; *host != '\0'; host++) {
		duo_add_device(*host == 'A' ? A : B);
		duo_run(2000);
	}
	duo_expect_links(3);
	for (unsigned slot = 0; slot < LINK_SLOTS; slot++) {
		struct link *l = &duo_lgr(B)->links[slot];

		if (l->state == LINK_ACTIVE)
			duo_lose(l, "test");
		duo_run(2000);
		duo_expect_links(3);
	}
	ck_assert_uint_ge(offers, 6);
	duo_bystander_is_well();
}
