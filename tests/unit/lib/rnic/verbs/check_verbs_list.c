/* Ports and GIDs as verbs_list reads them, and which GID is chosen. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "fake_ibverbs.h"
#include "rnic/verbs/verbs.h"
#include "unit.h"

static struct verbs_port *ports;
static unsigned cnt;
static const char *why;

static void
setup(void)
{
	fake_reset();
}

static void
list_ok(unsigned n)
{
	free(ports);
	ports = NULL;
	ck_assert_int_eq(verbs_list(&ports, &cnt, &why), 0);
	ck_assert_uint_eq(cnt, n);
	fake_check_clean();
}

UNIT_FIXTURE(setup, NULL);

START_TEST(ports_are_listed_with_their_gids)
{
	struct fake_dev *d = &fake.devs[1];

	d->attr.phys_port_cnt = 2;
	d->ports[0].state = IBV_PORT_DOWN;
	d->ports[1].mtu = IBV_MTU_1024;
	fake_gid(&d->ports[1], 2, 0, IBV_GID_TYPE_ROCE_V2, 7, "2001:db8::9");
	fake_gid(&d->ports[1], 2, 5, IBV_GID_TYPE_ROCE_V2, 8, "::ffff:192.0.2.9");
	list_ok(3);
	ck_assert_str_eq(ports[0].dev, "fake0");
	ck_assert_str_eq(ports[0].provider, "rxe");
	ck_assert(ports[0].retries_forever);
	ck_assert_uint_eq(ports[0].port, 1);
	ck_assert_int_eq(ports[0].state, RNIC_PORT_UP);
	ck_assert_int_eq(ports[0].transport, RNIC_TRANSPORT_ROCE);
	ck_assert_uint_eq(ports[0].mtu_code, 5);
	ck_assert(!ports[0].infiniband);
	ck_assert_uint_eq(ports[0].gid_cnt, 4);
	ck_assert_int_eq(ports[0].gids[0].type, RNIC_GID_ROCE_V1);
	ck_assert_int_eq(ports[0].gids[3].type, RNIC_GID_ROCE_V2);
	ck_assert_uint_eq(ports[0].gids[3].index, 3);
	ck_assert_str_eq(ports[1].dev, "fake1");
	ck_assert_int_eq(ports[1].state, RNIC_PORT_DOWN);
	ck_assert_uint_eq(ports[2].port, 2);
	ck_assert_uint_eq(ports[2].mtu_code, 3);
	ck_assert_uint_eq(ports[2].gid_cnt, 2);
	ck_assert_uint_eq(ports[2].ifindex, 7);
	ck_assert_uint_eq(ports[2].gids[1].index, 5);
	ck_assert_uint_eq(ports[2].gids[1].ifindex, 8);
	free(ports);
}

START_TEST(kinds_of_cards_are_distinguished)
{
	fake.dev_cnt = 3;
	fake.devs[0].ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake.devs[1].dev.transport_type = IBV_TRANSPORT_IWARP;
	fake.devs[1].ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND; /* some say so */
	fake.devs[1].attr.vendor_id = 0x626d74;
	fake.devs[2].attr.vendor_id = 0x2c9;
	list_ok(3);
	ck_assert(ports[0].infiniband);
	ck_assert_int_eq(ports[1].transport, RNIC_TRANSPORT_IWARP);
	ck_assert(!ports[1].infiniband);
	ck_assert_str_eq(ports[1].provider, "siw");
	ck_assert_str_eq(ports[2].provider, "vendor-0002c9"); /* no driver in sysfs */
	ck_assert(!ports[1].retries_forever && !ports[2].retries_forever);
	free(ports);
}

START_TEST(a_card_that_does_not_open_is_left_out)
{
	fake.devs[0].open_err = EIO;
	list_ok(1);
	ck_assert_str_eq(ports[0].dev, "fake1");
	fake.devs[0].open_err = 0;
	fake.devs[0].attr.phys_port_cnt = 2;
	fake.devs[0].ports[0].query_err = EIO;
	list_ok(2);
	ck_assert_uint_eq(ports[0].port, 2);
	free(ports);
}

START_TEST(without_a_card_it_says_why)
{
	struct verbs_port *none = (struct verbs_port *)(void *)&fake, *p = none;
	unsigned n = 77;

#define EXPECT(rc, text)                                        \
	do {                                                    \
		ck_assert_int_eq(verbs_list(&p, &n, &why), rc); \
		ck_assert_str_eq(why, text);                    \
		ck_assert_ptr_eq(p, none);                      \
		ck_assert_uint_eq(n, 77);                       \
		fake_check_clean();                             \
	} while (0)
	fake.list_err = ENOSYS;
	EXPECT(-ENOSYS, "the kernel has no RDMA support (module ib_uverbs)");
	fake.list_err = EPERM;
	EXPECT(-EACCES, "the RDMA device files (/dev/infiniband/uverbs*) may not be opened");
	fake.list_err = 0;
	fake.devs[0].open_err = EACCES;
	fake.devs[1].open_err = EPERM;
	EXPECT(-EACCES, "the RDMA device files (/dev/infiniband/uverbs*) may not be opened");
	fake.devs[0].open_err = fake.devs[1].open_err = ENXIO;
	EXPECT(-ENXIO, "the RDMA device cannot be opened");
	fake_reset();
	fake.devs[0].ports[0].query_err = fake.devs[1].ports[0].query_err = EIO;
	EXPECT(-ENODEV, "no RDMA device has a port");
	fake_reset();
	fake.gid_table_err = EIO;
	EXPECT(-ENODEV, "no RDMA device has a port");
	fake_reset();
	fake.dev_cnt = 0;
	ck_assert_int_eq(verbs_list(&p, &n, &why), -ENODEV);
	ck_assert_ptr_nonnull(strstr(why, "RDMA device"));
	ck_assert_ptr_eq(p, none);
}

START_TEST(a_full_table_is_cut)
{
	struct fake_port *p = &fake.devs[0].ports[0];

	for (unsigned i = p->gid_cnt; i < FAKE_GIDS; i++)
		fake_gid(p, 1, i, IBV_GID_TYPE_ROCE_V2, 1, "2001:db8::1");
	list_ok(2);
	ck_assert_uint_eq(ports[0].gid_cnt, FAKE_GIDS);
	free(ports);
}

START_TEST(a_card_is_looked_for_without_opening_it)
{
	fake.devs[1].open_err = EMFILE;
	ck_assert(verbs_card_listed("fake0"));
	ck_assert(verbs_card_listed("fake1"));
	ck_assert(!verbs_card_listed("fake2"));
	ck_assert(!verbs_card_listed("fake"));
	fake.dev_cnt = 1;
	ck_assert(!verbs_card_listed("fake1"));
	/* Not known is not gone. */
	fake.list_err = ENOMEM;
	ck_assert(verbs_card_listed("fake1"));
	fake_check_clean();
}

/* -- the choice -- */

static uint32_t
chosen(const char *addr, unsigned ifindex)
{
	struct sockaddr_storage ss;
	const struct verbs_gid *g;

	if (addr != NULL)
		ck_assert_int_eq(addr_parse(addr, &ss), 0);
	g = verbs_choose_gid(&ports[0], RNIC_GID_NONE, addr != NULL ? &ss : NULL, ifindex);
	return g != NULL ? g->index : UINT32_MAX;
}

START_TEST(the_best_gid_is_chosen)
{
	struct fake_port *p = &fake.devs[0].ports[0];

	p->gid_cnt = 0;
	fake_gid(p, 1, 0, IBV_GID_TYPE_ROCE_V1, 1, "fe80::1");
	list_ok(2);
	ck_assert_uint_eq(chosen(NULL, 0), 0); /* better than nothing */
	fake_gid(p, 1, 1, IBV_GID_TYPE_ROCE_V1, 1, "::ffff:10.0.0.1");
	list_ok(2);
	ck_assert_uint_eq(chosen(NULL, 0), 1);
	fake_gid(p, 1, 2, IBV_GID_TYPE_ROCE_V2, 1, "fe80::1");
	list_ok(2);
	ck_assert_uint_eq(chosen(NULL, 0), 2); /* v2 before v1 */
	fake_gid(p, 1, 3, IBV_GID_TYPE_ROCE_V2, 1, "2001:db8::1");
	list_ok(2);
	ck_assert_uint_eq(chosen(NULL, 0), 3); /* global before link-local */
	fake_gid(p, 1, 9, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:10.0.0.2");
	fake_gid(p, 1, 8, IBV_GID_TYPE_ROCE_V2, 5, "::ffff:10.5.0.1");
	list_ok(2);
	ck_assert_uint_eq(chosen(NULL, 0), 8); /* IPv4, then the lowest index */
	ck_assert_uint_eq(chosen(NULL, 1), 9); /* on that interface */
	ck_assert_uint_eq(chosen(NULL, 5), 8);
	ck_assert_uint_eq(chosen(NULL, 6), UINT32_MAX);
	ck_assert_uint_eq(chosen("10.0.0.1", 0), 1);
	ck_assert_uint_eq(chosen("10.0.0.2", 0), 9);
	ck_assert_uint_eq(chosen("10.0.0.2", 5), UINT32_MAX);
	ck_assert_uint_eq(chosen("10.0.0.3", 0), UINT32_MAX);
	ck_assert_uint_eq(chosen("2001:db8::1", 0), 3);
	ck_assert_uint_eq(chosen("fe80::1", 0), 2);
	free(ports);
}

/* The same link-local address on a VLAN and below it: the scope says which. */
START_TEST(a_link_local_address_has_a_scope)
{
	struct fake_port *p = &fake.devs[0].ports[0];
	struct sockaddr_storage ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)(void *)&ss;

	p->gid_cnt = 0;
	fake_gid(p, 1, 0, IBV_GID_TYPE_ROCE_V2, 1, "fe80::1");
	fake_gid(p, 1, 1, IBV_GID_TYPE_ROCE_V2, 2, "fe80::1");
	list_ok(2);
	ck_assert_int_eq(addr_parse("fe80::1", &ss), 0);
	ck_assert_uint_eq(verbs_choose_gid(ports, RNIC_GID_NONE, &ss, 0)->index, 0);
	sin6->sin6_scope_id = 2;
	ck_assert_uint_eq(verbs_choose_gid(ports, RNIC_GID_NONE, &ss, 0)->index, 1);
	sin6->sin6_scope_id = 3;
	ck_assert_ptr_null(verbs_choose_gid(ports, RNIC_GID_NONE, &ss, 0));
	free(ports);
}
