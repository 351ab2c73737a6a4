/* The table of interfaces, fed with messages as the kernel makes them. */
#include "daemon/device/netifs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "addrs.h"
#include "unit.h"

union msg {
	struct nlmsghdr nh;
	uint8_t bytes[512];
};

static struct netifs t;

static void
setup(void)
{
	t = (struct netifs){ 0 };
}

static void
teardown(void)
{
	netifs_fini(&t);
}

static void
put_attr(union msg *m, unsigned short type, const void *data, size_t len)
{
	const struct rtattr a = { .rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len) };
	uint8_t *at = m->bytes + NLMSG_ALIGN(m->nh.nlmsg_len);

	memcpy(at, &a, sizeof(a));
	memcpy(at + RTA_LENGTH(0), data, len);
	m->nh.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->nh.nlmsg_len) + RTA_ALIGN(a.rta_len));
}

static union msg
link_msg(uint16_t type, int index, const char *name, unsigned flags)
{
	union msg m = { .nh = { .nlmsg_type = type, .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)) } };
	struct ifinfomsg *ifi = NLMSG_DATA(&m.nh);
	uint32_t mtu = 1500;

	*ifi = (struct ifinfomsg){ .ifi_index = index, .ifi_flags = flags };
	put_attr(&m, IFLA_MTU, &mtu, sizeof(mtu));
	put_attr(&m, IFLA_IFNAME, name, strlen(name) + 1);
	return m;
}

static int
link_is(uint16_t type, int index, const char *name, unsigned flags)
{
	union msg m = link_msg(type, index, name, flags);

	return netifs_apply(&t, &m.nh);
}

static union msg
addr_msg(uint16_t type, unsigned index, const char *text, unsigned char scope, uint32_t flags)
{
	union msg m = { .nh = { .nlmsg_type = type, .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)) } };
	struct ifaddrmsg *ifa = NLMSG_DATA(&m.nh);
	uint8_t bytes[16];
	bool v6 = strchr(text, ':') != NULL;

	ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes), 1);
	*ifa = (struct ifaddrmsg){
		.ifa_family = v6 ? AF_INET6 : AF_INET,
		.ifa_index = index,
		.ifa_scope = scope,
		.ifa_prefixlen = v6 ? 64 : 24,
		.ifa_flags = (uint8_t)flags,
	};
	put_attr(&m, IFA_ADDRESS, bytes, v6 ? 16 : 4);
	put_attr(&m, IFA_FLAGS, &flags, sizeof(flags));
	return m;
}

static int
addr_is(uint16_t type, unsigned index, const char *text, unsigned char scope, uint32_t flags)
{
	union msg m = addr_msg(type, index, text, scope, flags);

	return netifs_apply(&t, &m.nh);
}

static const struct netif_addr *
find(const char *text)
{
	struct sockaddr_storage ss = addr_of(text);

	return netifs_find(&t, &ss);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(interfaces_come_change_and_go)
{
	ck_assert_ptr_null(netifs_by_index(&t, 2));
	ck_assert_int_eq(link_is(RTM_NEWLINK, 1, "lo", IFF_UP | IFF_RUNNING | IFF_LOOPBACK), 1);
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_UP), 1);
	ck_assert(netifs_by_index(&t, 1)->loopback);
	ck_assert(netifs_by_index(&t, 1)->up);
	ck_assert_str_eq(netifs_by_index(&t, 2)->name, "eth0");
	ck_assert(!netifs_by_index(&t, 2)->up); /* no carrier */
	ck_assert(!netifs_by_index(&t, 2)->loopback);
	/* other flags are no news */
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_UP | IFF_PROMISC), 0);
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_UP | IFF_RUNNING), 1);
	ck_assert(netifs_by_index(&t, 2)->up);
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_RUNNING), 1);
	ck_assert(!netifs_by_index(&t, 2)->up);
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "wan", IFF_RUNNING), 1);
	ck_assert_str_eq(netifs_by_index(&t, 2)->name, "wan");
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "192.0.2.1", 0, 0), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 1, "192.0.2.2", 0, 0), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::1", 0, 0), 1);
	ck_assert_int_eq(link_is(RTM_DELLINK, 2, "wan", 0), 1);
	ck_assert_int_eq(link_is(RTM_DELLINK, 2, "wan", 0), 0);
	ck_assert_uint_eq(t.if_cnt, 1);
	ck_assert_uint_eq(t.addr_cnt, 1);
	ck_assert_ptr_nonnull(find("192.0.2.2"));
}

/* Left a bridge: such a message says so, not that the interface is gone. */
START_TEST(other_families_say_nothing_about_interfaces)
{
	union msg m = link_msg(RTM_DELLINK, 2, "eth0", IFF_UP);

	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_UP), 1);
	((struct ifinfomsg *)NLMSG_DATA(&m.nh))->ifi_family = AF_BRIDGE;
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	m.nh.nlmsg_type = RTM_NEWROUTE;
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	ck_assert_uint_eq(t.if_cnt, 1);
}

START_TEST(addresses_come_change_and_go)
{
	ck_assert_int_eq(link_is(RTM_NEWLINK, 2, "eth0", IFF_UP), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "192.0.2.1", 0, IFA_F_PERMANENT), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "192.0.2.1", 0, IFA_F_NOPREFIXROUTE), 0);
	ck_assert(find("192.0.2.1")->usable && find("192.0.2.1")->lasting);
	/* "secondary" is the bit that means "temporary" in IPv6 */
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "192.0.2.7", 0, IFA_F_SECONDARY), 1);
	ck_assert(find("192.0.2.7")->lasting);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::1", 0, IFA_F_TENTATIVE), 1);
	ck_assert(!find("2001:db8::1")->usable);
	ck_assert(find("2001:db8::1")->lasting);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::1", 0, IFA_F_PERMANENT), 1);
	ck_assert(find("2001:db8::1")->usable);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::1", 0, IFA_F_DADFAILED | IFA_F_TENTATIVE), 1);
	ck_assert(!find("2001:db8::1")->usable);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::2", 0, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC), 1);
	ck_assert(find("2001:db8::2")->usable);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "2001:db8::3", 0, IFA_F_TEMPORARY), 1);
	ck_assert(!find("2001:db8::3")->lasting);
	ck_assert_int_eq(addr_is(RTM_DELADDR, 2, "192.0.2.1", 0, 0), 1);
	ck_assert_int_eq(addr_is(RTM_DELADDR, 2, "192.0.2.1", 0, 0), 0);
	ck_assert_ptr_null(find("192.0.2.1"));
	ck_assert_uint_eq(t.addr_cnt, 4);
}

/* The same on two interfaces: two addresses. */
START_TEST(link_local_addresses_belong_to_their_interface)
{
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 2, "fe80::1", RT_SCOPE_LINK, IFA_F_PERMANENT), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 3, "fe80::1", RT_SCOPE_LINK, IFA_F_PERMANENT), 1);
	ck_assert_int_eq(addr_is(RTM_NEWADDR, 3, "fe80::1", RT_SCOPE_LINK, IFA_F_PERMANENT), 0);
	ck_assert_uint_eq(t.addr_cnt, 2);
	ck_assert(!t.addrs[0].lasting);
	ck_assert_uint_eq(((struct sockaddr_in6 *)(void *)&t.addrs[0].addr)->sin6_scope_id, 2);
	ck_assert_int_eq(addr_is(RTM_DELADDR, 2, "fe80::1", RT_SCOPE_LINK, 0), 1);
	ck_assert_uint_eq(t.addrs[0].index, 3);
}

START_TEST(on_a_point_to_point_link_the_local_end_counts)
{
	union msg m = addr_msg(RTM_NEWADDR, 4, "192.0.2.99", 0, 0);
	struct in_addr local;

	ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.1", &local), 1);
	put_attr(&m, IFA_LOCAL, &local, sizeof(local));
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 1);
	ck_assert_ptr_nonnull(find("192.0.2.1"));
	ck_assert_ptr_null(find("192.0.2.99"));
}

static bool
near(const char *local, const char *other)
{
	return netifs_near(&t, gid_of(local).b, gid_of(other).b);
}

START_TEST(networks_are_those_of_interfaces_that_are_on)
{
	const struct sockaddr_storage at = addr_of("192.0.2.1"), at_v6 = addr_of("2001:db8:2::1");
	struct smcr_subnet nets[SMCR_NETWORKS_MAX];

	link_is(RTM_NEWLINK, 2, "eth0", IFF_UP); /* without carrier */
	link_is(RTM_NEWLINK, 3, "eth1", 0);
	addr_is(RTM_NEWADDR, 2, "192.0.2.1", 0, 0);
	addr_is(RTM_NEWADDR, 2, "2001:db8:1::1", 0, 0);
	addr_is(RTM_NEWADDR, 2, "2001:db8:2::1", 0, 0);
	addr_is(RTM_NEWADDR, 3, "198.51.100.1", 0, 0);
	ck_assert_uint_eq(netifs_networks(&t, nets), 3);
	ck_assert(!nets[0].v6);
	ck_assert_uint_eq(nets[0].prefix_len, 24);
	ck_assert_mem_eq(nets[0].addr, ((const uint8_t[16]){ 192, 0, 2 }), 16);
	ck_assert_uint_eq(netifs_networks_of(&t, &at, nets), 1);
	ck_assert_uint_eq(netifs_networks_of(&t, &at_v6, nets), 2);
	ck_assert_mem_eq(nets[0].addr, ((const uint8_t[16]){ 0x20, 1, 0xd, 0xb8, 0, 2 }), 16);
	ck_assert(near("192.0.2.1", "192.0.2.99") && !near("192.0.2.1", "192.0.3.1"));
	ck_assert(near("2001:db8:1::1", "2001:db8:2::9") && !near("2001:db8:1::1", "2001:db8:3::9"));
	ck_assert(!near("198.51.100.1", "198.51.100.2"));
	ck_assert_int_eq(link_is(RTM_NEWLINK, 3, "eth1", IFF_UP), 1);
	ck_assert(near("198.51.100.1", "198.51.100.2"));
	ck_assert(!near("203.0.113.1", "203.0.113.1"));
}

/* Every length that a message may be cut to: nothing is read behind it, and nothing is taken from half of one. */
START_TEST(short_messages_are_ignored)
{
	union msg msgs[2] = { link_msg(RTM_NEWLINK, 2, "eth0", IFF_UP), addr_msg(RTM_NEWADDR, 2, "2001:db8::1", 0, 0) };

	for (unsigned i = 0; i < 2; i++) {
		/* IFA_FLAGS comes last and may be missing. */
		uint32_t whole = msgs[i].nh.nlmsg_len - (i == 1 ? 8 : 0);

		for (uint32_t len = NLMSG_HDRLEN; len < whole; len++) {
			struct nlmsghdr *cut = malloc(len);

			memcpy(cut, &msgs[i], len);
			cut->nlmsg_len = len;
			/* the name's last byte is padding */
			if (i == 0 && len > whole - 4)
				(void)netifs_apply(&t, cut);
			else
				ck_assert_int_eq(netifs_apply(&t, cut), 0);
			free(cut);
		}
	}
}

START_TEST(odd_attributes_are_ignored)
{
	union msg m = link_msg(RTM_NEWLINK, 2, "a-name-that-is-longer-than-names-are", IFF_UP);

	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	m = link_msg(RTM_NEWLINK, 2, "", IFF_UP);
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	m = addr_msg(RTM_NEWADDR, 2, "192.0.2.1", 0, 0);
	((struct ifaddrmsg *)NLMSG_DATA(&m.nh))->ifa_family = AF_INET6; /* 4 bytes of address */
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	((struct ifaddrmsg *)NLMSG_DATA(&m.nh))->ifa_family = AF_PACKET;
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	m = addr_msg(RTM_NEWADDR, 2, "192.0.2.1", 0, 0);
	((struct ifaddrmsg *)NLMSG_DATA(&m.nh))->ifa_prefixlen = 33;
	ck_assert_int_eq(netifs_apply(&t, &m.nh), 0);
	ck_assert_uint_eq(t.if_cnt + t.addr_cnt, 0);
}
