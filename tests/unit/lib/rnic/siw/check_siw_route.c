/* Which peers a soft iWARP device reaches. In a network namespace of its own, with interfaces that lead nowhere; where
 * the machine does not let us have one, only what holds on loopback is tested. */
#include "base/addr.h"
#include "own_netns.h"
#include "siw_ends.h"

/* Two subnets, a default route by the first, an address beside the first one. */
static const char interfaces[] =
    "link set lo up\n"
    "link add e1 type veth peer name p1\n"
    "link add e2 type veth peer name p2\n"
    "link set p1 up\nlink set p2 up\nlink set e1 up\nlink set e2 up\n"
    "addr add 10.9.1.1/24 dev e1\naddr add 10.9.2.1/24 dev e2\n"
    "addr add fd09:1::1/64 dev e1 nodad\naddr add fd09:2::1/64 dev e2 nodad\n"
    "addr add 10.9.1.2/24 dev e1\n"
    "route add default via 10.9.1.254 dev e1\n"
    "route add fd09:3::/64 via fd09:1::9 dev e1\n"
    "route add 10.9.3.0/24 via inet6 fe80::9 dev e1\n"
    "route add 10.9.4.0/24 dev e2\n";

static enum rnic_reach
reaches(const char *from, const char *to)
{
	struct siw_config c = config();
	struct sockaddr_storage ss;
	struct rnic_gid gid;

	ck_assert_int_eq(addr_parse(from, &c.addr), 0);
	ck_assert_int_eq(addr_parse(to, &ss), 0);
	addr_to_v6(&ss, gid.b);
	end_open(&a, &c);
	enum rnic_reach reach = a.dev->ops->reaches(a.dev, &gid);
	end_close(&a);
	return reach;
}

UNIT_FIXTURE(setup, NULL);

START_TEST(loopback_reaches_this_machine)
{
	ck_assert_int_eq(reaches("127.0.0.1", "127.0.0.2"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("127.0.0.1", "192.0.2.1"), RNIC_REACH_NONE);
	ck_assert_int_eq(reaches("127.0.0.1", "2001:db8::1"), RNIC_REACH_NONE); /* of another family */
}

START_TEST(a_route_counts_when_it_leaves_by_our_interface)
{
	if (!own_netns(interfaces))
		return;
	ck_assert_int_eq(reaches("10.9.1.1", "10.9.1.9"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("10.9.1.2", "10.9.1.9"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("10.9.2.1", "10.9.2.9"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("10.9.1.1", "10.9.2.9"), RNIC_REACH_NONE);
	ck_assert_int_eq(reaches("10.9.2.1", "10.9.1.9"), RNIC_REACH_NONE);
	/* by the default route */
	ck_assert_int_eq(reaches("10.9.1.1", "192.0.2.1"), RNIC_REACH_GATEWAY);
	ck_assert_int_eq(reaches("10.9.2.1", "192.0.2.1"), RNIC_REACH_NONE);
	ck_assert_int_eq(reaches("fd09:1::1", "fd09:3::9"), RNIC_REACH_GATEWAY);
	ck_assert_int_eq(reaches("10.9.1.1", "10.9.3.9"), RNIC_REACH_GATEWAY); /* of the other family */
	ck_assert_int_eq(reaches("10.9.2.1", "10.9.4.9"), RNIC_REACH_DIRECT);  /* of another subnet on the same wire */
	/* on this machine */
	ck_assert_int_eq(reaches("10.9.1.1", "10.9.2.1"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("10.9.1.1", "127.0.0.1"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("fd09:1::1", "fd09:1::9"), RNIC_REACH_DIRECT);
	ck_assert_int_eq(reaches("fd09:1::1", "fd09:2::9"), RNIC_REACH_NONE);
	ck_assert_int_eq(reaches("fd09:1::1", "2001:db8::1"), RNIC_REACH_NONE); /* no route at all */
}

static const char vlans[] =
    "link add v0 type veth peer name v1\n"
    "link add link v0 name v0.10 type vlan id 10\n"
    "link set v0 up\nlink set v1 up\nlink set v0.10 up\n"
    "address add 10.9.3.1/24 dev v0\naddress add 10.9.4.1/24 dev v0.10\n";

static uint16_t
vlan_at(const char *addr)
{
	struct siw_config c = config();
	uint16_t vlan;

	ck_assert_int_eq(addr_parse(addr, &c.addr), 0);
	end_open(&a, &c);
	vlan = rnic_query(a.dev).vlan;
	end_close(&a);
	return vlan;
}

START_TEST(the_vlan_is_that_of_the_interface)
{
	ck_assert_uint_eq(vlan_at("127.0.0.1"), 0);
	if (!own_netns(vlans))
		return;
	ck_assert_uint_eq(vlan_at("10.9.3.1"), 0);
	ck_assert_uint_eq(vlan_at("10.9.4.1"), 10);
}
