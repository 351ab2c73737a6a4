/* Which devices there should be, by entries, interfaces and cards. */
#include "daemon/device/device_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "fake_verbs.h"
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
	fake_verbs_reset();
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

	if (addr_parse(place, &d->addr) != 0)
		strcpy(d->interface, place);
	strcpy(d->name, name);
	return d;
}

/* One of type verbs, by card ("mlx5_0" or "mlx5_0/2" or "*"), or like entry() when there is no such card. */
static struct config_device *
card_entry(const char *place, const char *name)
{
	struct config_device *d;
	const char *slash = strchr(place, '/');

	for (unsigned i = 0; i < fake_verbs.cnt; i++) {
		if (strncmp(place, fake_verbs.ports[i].dev, strlen(fake_verbs.ports[i].dev)) != 0)
			continue;
		d = &entries[cfg.device_cnt++];
		*d = (struct config_device){ .type = CONFIG_DEVICE_VERBS };
		strcpy(d->card, fake_verbs.ports[i].dev);
		d->port = slash != NULL ? (uint8_t)atoi(slash + 1) : 0;
		strcpy(d->name, name);
		return d;
	}
	d = entry(place, name);
	d->type = CONFIG_DEVICE_VERBS;
	return d;
}

static const struct device_cards *
there(void)
{
	static struct device_cards all;

	all = (struct device_cards){ .ports = fake_verbs.ports, .cnt = fake_verbs.cnt };
	return &all;
}

static char *
print_want(char *p, const struct device_want *w)
{
	static const char *const places[] = { "unknown", "down", "up" };
	char where[DEVICE_WHERE_MAX];

	return p +
	    sprintf(p, w->open ? "%s %s %s" : "(%s %s %s)", w->base, device_where(w, " ", where, sizeof(where)),
	        places[w->place]);
}

/* The plan in words: "base address state, ..."; a device that is not worth opening in brackets. */
static const char *
plan(void)
{
	static char text[2048];
	struct device_want want[WANTS];
	unsigned cnt = device_plan(&cfg, &table, there(), want, WANTS);
	char *p = text;

	text[0] = '\0';
	for (unsigned i = 0; i < cnt; i++) {
		if (i > 0)
			p += sprintf(p, ", ");
		p = print_want(p, &want[i]);
	}
	return text;
}

UNIT_FIXTURE(setup, NULL);

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

START_TEST(up_while_one_of_several_addresses_is)
{
	struct config_device *d = entry("192.0.2.1", "many");

	has_if(1, "eth0", false);
	has_if(2, "eth1", true);
	has_addr(1, "192.0.2.1");
	ck_assert_int_eq(addr_parse("198.51.100.1", &d->siw.more_addrs.at[d->siw.more_addrs.cnt++]), 0);
	ck_assert_str_eq(plan(), "many 192.0.2.1 down");
	has_addr(2, "198.51.100.1")->usable = false;
	ck_assert_str_eq(plan(), "many 192.0.2.1 down");
	addrs[1].usable = true;
	ck_assert_str_eq(plan(), "many 192.0.2.1 up");
	ifs[1].up = false;
	ck_assert_str_eq(plan(), "many 192.0.2.1 down");
}

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

START_TEST(without_a_table_only_addresses_count)
{
	struct device_want want[WANTS];
	const struct device_cards nothing = { 0 };

	entry("*", "");
	entry("192.0.2.1", "a");
	card_entry("*", "");
	card_entry("eth0", "");
	card_entry("192.0.2.1", "");
	ck_assert_uint_eq(device_plan(&cfg, NULL, &nothing, want, WANTS), 1);
	ck_assert_int_eq(want[0].place, DEVICE_PLACE_UNKNOWN);
	ck_assert(want[0].open);
}

START_TEST(no_more_than_there_is_room_for)
{
	struct device_want want[WANTS];

	has_if(2, "eth0", true);
	has_addr(2, "192.0.2.1");
	has_addr(2, "192.0.2.2");
	has_addr(2, "192.0.2.3");
	entry("eth0", "");
	ck_assert_uint_eq(device_plan(&cfg, &table, there(), want, 2), 2);
	fake_verbs_gid(fake_verbs_port("a", 1, 2), "192.0.2.1", RNIC_GID_ROCE_V2, 2);
	fake_verbs_gid(fake_verbs_port("b", 1, 2), "192.0.2.2", RNIC_GID_ROCE_V2, 2);
	fake_verbs_gid(fake_verbs_port("c", 1, 2), "192.0.2.3", RNIC_GID_ROCE_V2, 2);
	cfg.device_cnt = 0;
	card_entry("*", "");
	ck_assert_uint_eq(device_plan(&cfg, &table, there(), want, 2), 2);
}

/* -- cards -- */

#define V1 RNIC_GID_ROCE_V1
#define V2 RNIC_GID_ROCE_V2

/* Card "one" with a port on eth0 and its VLAN, "two" with two ports on eth1 and eth2. */
static void
cards(void)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", true);
	has_if(4, "eth2", true);
	has_if(5, "eth0.7", true);
	has_addr(2, "192.0.2.1");
	struct verbs_port *p = fake_verbs_port("one", 1, 2);
	fake_verbs_gid(p, "fe80::1", V1, 2);
	fake_verbs_gid(p, "fe80::1", V2, 2);
	fake_verbs_gid(p, "192.0.2.1", V1, 2);
	fake_verbs_gid(p, "192.0.2.1", V2, 2);
	fake_verbs_gid(p, "198.51.100.1", V1, 5);
	fake_verbs_gid(p, "198.51.100.1", V2, 5);
	p = fake_verbs_port("two", 1, 3);
	fake_verbs_gid(p, "2001:db8::1", V2, 3);
	p = fake_verbs_port("two", 2, 4);
	fake_verbs_gid(p, "fe80::2", V1, 4);
}

START_TEST(cards_by_name_and_port)
{
	cards();
	card_entry("one", "");
	ck_assert_str_eq(plan(), "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up");
	cfg.device_cnt = 0;
	card_entry("two", "");
	ck_assert_str_eq(plan(),
	    "two/1 card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" up, "
	    "two/2 card two/2 gid fe80::2 gid_type \"RoCE v1\" up");
	cfg.device_cnt = 0;
	card_entry("two/2", "fast");
	fake_verbs.ports[2].state = RNIC_PORT_DOWN;
	/* Opened all the same: it is this one that is asked for. */
	ck_assert_str_eq(plan(), "fast card two/2 gid fe80::2 gid_type \"RoCE v1\" down");
	fake_verbs.ports[2].gid_cnt = 0;
	ck_assert_str_eq(plan(), "");
}

START_TEST(cards_by_interface)
{
	cards();
	card_entry("eth0", "");
	card_entry("eth0.7", "vlan");
	ck_assert_str_eq(plan(),
	    "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up, "
	    "vlan card one/1 gid ::ffff:198.51.100.1 gid_type \"RoCE v2\" up");
	cfg.device_cnt = 0;
	card_entry("eth9", "");
	has_if(6, "eth3", true);
	card_entry("eth3", "");
	ck_assert_str_eq(plan(), "");
}

START_TEST(cards_by_address)
{
	cards();
	card_entry("198.51.100.1", "");
	card_entry("2001:db8::1", "six");
	card_entry("203.0.113.1", "");
	ck_assert_str_eq(plan(),
	    "one card one/1 gid ::ffff:198.51.100.1 gid_type \"RoCE v2\" up, "
	    "six card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" up");
}

/* The GID of an iWARP port is a MAC. */
START_TEST(an_iwarp_card_is_found_by_the_interface_that_has_the_address)
{
	has_if(2, "eth0", true);
	has_if(3, "eth1", true);
	has_addr(3, "192.0.2.1");
	struct verbs_port *p = fake_verbs_port("iw0", 1, 2);
	p->transport = RNIC_TRANSPORT_IWARP;
	fake_verbs_gid(p, "200:0:0:1::", RNIC_GID_IB, 2);
	p = fake_verbs_port("iw1", 1, 3);
	p->transport = RNIC_TRANSPORT_IWARP;
	fake_verbs_gid(p, "200:0:0:2::", RNIC_GID_IB, 3);
	card_entry("192.0.2.1", "");
	ck_assert_str_eq(plan(), "iw1 card iw1/1 gid 200:0:0:2:: gid_type \"IB\" up");
	table.addr_cnt = 0;
	ck_assert_str_eq(plan(), "");
}

START_TEST(all_cards_whose_ports_are_up)
{
	cards();
	fake_verbs.ports[1].state = RNIC_PORT_DOWN;
	card_entry("*", "");
	strcpy(entries[0].interface, "");
	strcpy(entries[0].card, "*");
	ck_assert_str_eq(plan(),
	    "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up, "
	    "(two/1 card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" down), "
	    "two/2 card two/2 gid fe80::2 gid_type \"RoCE v1\" up");
	/* "*" for the interface means the same. */
	strcpy(entries[0].card, "");
	strcpy(entries[0].interface, "*");
	fake_verbs_unplug("two");
	ck_assert_str_eq(plan(), "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up");
}

START_TEST(a_gid_type_that_is_asked_for)
{
	cards();
	card_entry("one", "")->gid_type = CONFIG_GID_ROCE_V1;
	card_entry("two", "")->gid_type = CONFIG_GID_ROCE_V2;
	ck_assert_str_eq(plan(),
	    "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v1\" up, "
	    "two/1 card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" up");
}

/* Not for soft iWARP, and not where the entry or the version says otherwise. */
START_TEST(a_port_is_two_devices_where_peers_may_have_af_smc)
{
	static const char both[] =
	    "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up, "
	    "two/1 card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" up, "
	    "two/2 card two/2 gid fe80::2 gid_type \"RoCE v1\" up, "
	    "one card one/1 gid fe80::1 gid_type \"RoCE v1\" up";
	struct config_service services[2] = { { .peer = SMCR_PEER_SMCRD }, { .peer = SMCR_PEER_LINUX } };
	struct device_want want[WANTS];

	cards();
	card_entry("one", "");
	card_entry("two", "");
	cfg.services = services;
	cfg.service_cnt = 1;
	ck_assert_ptr_null(strstr(plan(), "fe80::1"));
	cfg.service_cnt = 2;
	ck_assert_str_eq(plan(), both);
	services[1].peer = SMCR_PEER_AUTO;
	cfg.smcr.smc_version = 1;
	ck_assert_str_eq(plan(), both);
	/* Those that were there before come first. */
	ck_assert_uint_eq(device_plan(&cfg, &table, there(), want, 3), 3);
	ck_assert_str_eq(want[2].base, "two/2");
	cfg.smcr.smc_version = 2;
	ck_assert_ptr_null(strstr(plan(), "fe80::1"));
	cfg.smcr.smc_version = 0;
	entries[0].gid_type = CONFIG_GID_ROCE_V2;
	ck_assert_ptr_null(strstr(plan(), "fe80::1"));
	/* An interface's own ones, and none twice. */
	cfg.device_cnt = 0;
	memset(entries, 0, sizeof(entries));
	card_entry("eth0.7", "");
	card_entry("fe80::1", "six")->gid_type = CONFIG_GID_ROCE_V1;
	card_entry("one", "");
	ck_assert_str_eq(plan(),
	    "six card one/1 gid fe80::1 gid_type \"RoCE v1\" up, "
	    "one card one/1 gid ::ffff:198.51.100.1 gid_type \"RoCE v2\" up, "
	    "one card one/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" up, "
	    "one card one/1 gid ::ffff:198.51.100.1 gid_type \"RoCE v1\" up");
}

/* "*" leaves a port alone that has an entry of its own, whichever GID that names; soft iWARP comes last among equals. */
START_TEST(the_most_exact_entry_counts_for_cards)
{
	cards();
	entry("*", "soft");
	card_entry("*", "");
	card_entry("two", "");
	card_entry("eth0.7", "");
	card_entry("2001:db8::1", "six");
	ck_assert_str_eq(plan(),
	    "six card two/1 gid 2001:db8::1 gid_type \"RoCE v2\" up, "
	    "one card one/1 gid ::ffff:198.51.100.1 gid_type \"RoCE v2\" up, "
	    "two/2 card two/2 gid fe80::2 gid_type \"RoCE v1\" up, "
	    "soft 192.0.2.1 up");
}

START_TEST(says_why_there_is_none)
{
	static const struct {
		const char *place, *why;
	} cases[] = {
		{ "two/7", "the card has no such port" },
		{ "one", "the port has no GID" },
		{ "eth9", "there is no such interface" },
		{ "eth2", "no card has a GID on this interface" },
		{ "203.0.113.1", "no port has this address as a GID" },
		{ "*", "no port is up and has a GID" },
	};
	char text[DEVICE_WHERE_MAX];

	cards();
	for (unsigned i = 0; i < fake_verbs.cnt; i++)
		fake_verbs.ports[i].gid_cnt = 0;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cfg.device_cnt = 0;
		memset(entries, 0, sizeof(entries));
		ck_assert_str_eq(device_plan_why_not(card_entry(cases[i].place, ""), &table, there()), cases[i].why);
	}
	cfg.device_cnt = 0;
	struct config_device *d = card_entry("two/2", "");
	d->gid_type = CONFIG_GID_ROCE_V2;
	ck_assert_str_eq(device_plan_why_not(d, &table, there()), "the port has no GID of the type asked for");
	ck_assert_str_eq(device_entry_name(d, text, sizeof(text)), "device \"two\" port 2");
	strcpy(d->card, "three");
	ck_assert_str_eq(device_plan_why_not(d, &table, there()), "there is no card of this name");
	ck_assert_str_eq(device_entry_name(card_entry("eth0", ""), text, sizeof(text)), "interface \"eth0\"");
	ck_assert_str_eq(device_entry_name(card_entry("192.0.2.1", ""), text, sizeof(text)), "address 192.0.2.1");
}
