/* Which devices there should be, by entries and interfaces. */
#include "daemon/device_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "unit.h"

#define WANTS 16

static struct netif ifs[8];
static struct netif_addr addrs[16];
static struct netifs table;
static struct config_device entries[8];
static struct config cfg;

static void
setup(void)
{
	memset(entries, 0, sizeof(entries));
	table = (struct netifs){ .ifs = ifs, .addrs = addrs };
	cfg = (struct config){ .devices = entries };
}

static void
has_if(unsigned index, const char *name, bool up)
{
	struct netif *i = &ifs[table.if_cnt++];

	*i = (struct netif){ .index = index, .up = up, .loopback = strcmp(name, "lo") == 0 };
	strcpy(i->name, name);
}

static struct netif_addr *
has_addr(unsigned index, const char *text)
{
	struct netif_addr *a = &addrs[table.addr_cnt++];

	*a = (struct netif_addr){ .index = index, .usable = true, .lasting = true };
	ck_assert_int_eq(addr_parse(text, &a->addr), 0);
	return a;
}

/* An entry with an address or the name of an interface. */
static struct config_device *
entry(const char *place, const char *name)
{
	struct config_device *d = &entries[cfg.device_cnt++];

	if (addr_parse(place, &d->siw.addr) != 0)
		strcpy(d->interface, place);
	strcpy(d->siw.name, name);
	return d;
}

/* The plan in words: "base address state, ..."; a device that is not worth opening in brackets. */
static const char *
plan(void)
{
	static const char *const places[] = { "unknown", "down", "up" };
	static char text[1024];
	struct device_want want[WANTS];
	unsigned cnt = device_plan(&cfg, &table, want, WANTS);
	char addr[ADDR_STR_MAX], *p = text;

	text[0] = '\0';
	for (unsigned i = 0; i < cnt; i++)
		p += sprintf(p, want[i].open ? "%s%s %s %s" : "%s(%s %s %s)", i > 0 ? ", " : "", want[i].base,
		    addr_format(&want[i].addr, addr, sizeof(addr)), places[want[i].place]);
	return text;
}

START_TEST(by_address)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", false);
	has_addr(2, "192.0.2.1");
	has_addr(3, "192.0.2.2");
	has_addr(2, "2001:db8::1")->usable = false;
	entry("192.0.2.1", "a");
	entry("192.0.2.2", "b");
	entry("2001:db8::1", "c"); /* still tentative */
	entry("127.0.0.9", "d");
	ck_assert_str_eq(plan(), "a 192.0.2.1 up, b 192.0.2.2 down, (c 2001:db8::1 down), d 127.0.0.9 unknown");
}

END_TEST

START_TEST(by_interface)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", true);
	has_addr(2, "2001:db8::1");
	has_addr(3, "198.51.100.1");
	has_addr(2, "fe80::1%lo")->lasting = false;
	has_addr(2, "192.0.2.1");
	has_addr(2, "192.0.2.2");
	entry("eth0", "");
	ck_assert_str_eq(plan(), "eth0 192.0.2.1 up, eth0 192.0.2.2 up, eth0 2001:db8::1 up");
	entry("eth1", "fast");
	ck_assert_str_eq(plan(), "eth0 192.0.2.1 up, eth0 192.0.2.2 up, eth0 2001:db8::1 up, fast 198.51.100.1 up");
	entry("eth2", "");
	entry("lo", "");
	ifs[0].up = false;
	table.addr_cnt = 2;
	ck_assert_str_eq(plan(), "eth0 2001:db8::1 down, fast 198.51.100.1 up");
	has_if(1, "lo", true);
	has_addr(1, "127.0.0.1");
	ck_assert_str_eq(plan(), "eth0 2001:db8::1 down, fast 198.51.100.1 up, lo 127.0.0.1 up");
}

END_TEST

START_TEST(all_interfaces_that_are_up)
{
	has_if(1, "lo", true);
	has_if(2, "eth0", true);
	has_if(3, "docker0", false);
	has_addr(1, "127.0.0.1");
	has_addr(2, "192.0.2.1");
	has_addr(3, "172.17.0.1");
	entry("*", "");
	/* kept when it is open already */
	ck_assert_str_eq(plan(), "eth0 192.0.2.1 up, (docker0 172.17.0.1 down)");
}

END_TEST

START_TEST(the_most_exact_entry_counts)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", true);
	has_addr(2, "192.0.2.1");
	has_addr(3, "192.0.2.2");
	has_addr(3, "192.0.2.3");
	entry("*", "all");
	entry("eth1", "one");
	entry("192.0.2.3", "this");
	ck_assert_str_eq(plan(), "this 192.0.2.3 up, one 192.0.2.2 up, all 192.0.2.1 up");
}

END_TEST

/* One address on two interfaces, as with failover setups: one device. */
START_TEST(an_address_counts_once)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", false);
	has_addr(2, "192.0.2.1");
	has_addr(3, "192.0.2.1");
	entry("eth0", "");
	entry("eth1", "");
	ck_assert_str_eq(plan(), "eth0 192.0.2.1 up");
}

END_TEST

START_TEST(without_a_table_only_addresses_count)
{
	struct device_want want[WANTS];

	entry("*", "");
	entry("192.0.2.1", "a");
	ck_assert_uint_eq(device_plan(&cfg, NULL, want, WANTS), 1);
	ck_assert_int_eq(want[0].place, DEVICE_PLACE_UNKNOWN);
	ck_assert(want[0].open);
}

END_TEST

START_TEST(no_more_than_there_is_room_for)
{
	struct device_want want[WANTS];

	has_if(2, "eth0", true);
	has_addr(2, "192.0.2.1");
	has_addr(2, "192.0.2.2");
	has_addr(2, "192.0.2.3");
	entry("eth0", "");
	ck_assert_uint_eq(device_plan(&cfg, &table, want, 2), 2);
}

END_TEST

static void
device_plan_case(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, by_address);
	tcase_add_test(tc, by_interface);
	tcase_add_test(tc, all_interfaces_that_are_up);
	tcase_add_test(tc, the_most_exact_entry_counts);
	tcase_add_test(tc, an_address_counts_once);
	tcase_add_test(tc, without_a_table_only_addresses_count);
	tcase_add_test(tc, no_more_than_there_is_room_for);
}

UNIT_MAIN("device_plan", device_plan_case)
