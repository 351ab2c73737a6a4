/*
 * Which peers a soft iWARP device reaches. In a network namespace of its own,
 * with interfaces that lead nowhere; where the machine does not let us have
 * one, only what holds on loopback is tested.
 */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/addr.h"
#include "siw_ends.h"

/* Two subnets, a default route by the first, an address beside the first one. */
static const char set_up[] =
    "exec >/dev/null 2>&1; PATH=$PATH:/usr/sbin:/sbin; set -e\n"
    "ip link set lo up\n"
    "ip link add e1 type veth peer name p1; ip link add e2 type veth peer name p2\n"
    "for i in 1 2; do ip addr add 10.9.$i.1/24 dev e$i; ip link set e$i up\n"
    "ip addr add fd09:$i::1/64 dev e$i nodad; ip link set p$i up; done\n"
    "ip addr add 10.9.1.2/24 dev e1\n"
    "ip route add default via 10.9.1.254 dev e1\n";

/* root of a user namespace of our own will do */
static bool
become_root(void)
{
	unsigned uid = geteuid();
	FILE *f;

	if (unshare(CLONE_NEWUSER) != 0)
		return false;
	f = fopen("/proc/self/uid_map", "w");
	if (f == NULL)
		return false;
	fprintf(f, "0 %u 1", uid);
	return fclose(f) == 0;
}

static bool
own_namespace(void)
{
	if (unshare(CLONE_NEWNET) != 0 && (!become_root() || unshare(CLONE_NEWNET) != 0))
		return false;
	return system(set_up) == 0;
}

static bool
reaches(const char *from, const char *to)
{
	struct siw_config c = config();
	struct sockaddr_storage ss;
	struct rnic_gid gid;
	bool yes;

	ck_assert_int_eq(addr_parse(from, &c.addr), 0);
	ck_assert_int_eq(addr_parse(to, &ss), 0);
	addr_to_v6(&ss, gid.b);
	end_open(&a, &c);
	yes = a.dev->ops->reaches(a.dev, &gid);
	end_close(&a);
	return yes;
}

START_TEST(loopback_reaches_this_machine)
{
	ck_assert(reaches("127.0.0.1", "127.0.0.2"));
	ck_assert(!reaches("127.0.0.1", "192.0.2.1"));
	ck_assert(!reaches("127.0.0.1", "2001:db8::1")); /* of another family */
}

END_TEST

START_TEST(a_route_counts_when_it_leaves_by_our_interface)
{
	if (!own_namespace()) {
		fprintf(stderr, "# no network namespace of our own: loopback alone is tested\n");
		return;
	}
	ck_assert(reaches("10.9.1.1", "10.9.1.9"));
	ck_assert(reaches("10.9.1.2", "10.9.1.9"));
	ck_assert(reaches("10.9.2.1", "10.9.2.9"));
	ck_assert(!reaches("10.9.1.1", "10.9.2.9"));
	ck_assert(!reaches("10.9.2.1", "10.9.1.9"));
	/* by the default route */
	ck_assert(reaches("10.9.1.1", "192.0.2.1"));
	ck_assert(!reaches("10.9.2.1", "192.0.2.1"));
	/* on this machine */
	ck_assert(reaches("10.9.1.1", "10.9.2.1"));
	ck_assert(reaches("10.9.1.1", "127.0.0.1"));
	ck_assert(reaches("fd09:1::1", "fd09:1::9"));
	ck_assert(!reaches("fd09:1::1", "fd09:2::9"));
	ck_assert(!reaches("fd09:1::1", "2001:db8::1")); /* no route at all */
}

END_TEST

static void
route_case(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, loopback_reaches_this_machine);
	tcase_add_test(tc, a_route_counts_when_it_leaves_by_our_interface);
}

UNIT_MAIN("siw_route", route_case)
