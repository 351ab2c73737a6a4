/* What smcrd -t says about devices. */
#include "daemon/device/device_preview.h"

#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "fake_verbs.h"
#include "unit.h"

static struct config_device entries[5];
static struct config cfg;
static struct netif ifs[3];
static struct netif_addr addrs[2];
static struct netifs table;
static char *text, *warnings;

static void
setup(void)
{
	fake_verbs_reset();
	memset(entries, 0, sizeof(entries));
	cfg = (struct config){ .path = "t.conf", .devices = entries };
	ifs[0] = (struct netif){ .index = 2, .name = "eth0", .up = true };
	ifs[1] = (struct netif){ .index = 3, .name = "eth1" };
	ifs[2] = (struct netif){ .index = 4, .name = "eth2", .up = true };
	addrs[0] = (struct netif_addr){ .index = 2, .usable = true, .lasting = true };
	addrs[1] = (struct netif_addr){ .index = 3, .usable = true, .lasting = true };
	ck_assert_int_eq(addr_parse("192.0.2.1", &addrs[0].addr), 0);
	ck_assert_int_eq(addr_parse("2001:db8::1", &addrs[1].addr), 0);
	table = (struct netifs){ .ifs = ifs, .if_cnt = 3, .addrs = addrs, .addr_cnt = 2 };
}

static const char *
preview(void)
{
	struct device_cards cards = { 0 };
	size_t len, warn_len;

	free(text);
	free(warnings);
	FILE *f = open_memstream(&text, &len), *warn = open_memstream(&warnings, &warn_len);
	if (config_has_verbs(&cfg))
		device_cards_list(&cards, 0);
	device_preview_print(&cfg, &table, &cards, f, warn);
	device_cards_forget(&cards);
	fclose(f);
	fclose(warn);
	return text;
}

static void
teardown(void)
{
	free(text);
	free(warnings);
	text = warnings = NULL;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(cards_and_soft_devices)
{
	struct verbs_port *p = fake_verbs_port("mlx5_0", 1, 2);

	fake_verbs_gid(p, "fe80::1", RNIC_GID_ROCE_V1, 2);
	fake_verbs_gid(p, "192.0.2.1", RNIC_GID_ROCE_V2, 2);
	entries[0] = (struct config_device){ .type = CONFIG_DEVICE_VERBS, .card = "mlx5_0" };
	entries[1] = (struct config_device){ .interface = "eth0", .name = "soft" };
	entries[2] = (struct config_device){ .interface = "eth1", .name = "soft" };
	entries[3] = (struct config_device){ .name = "siw3" };
	ck_assert_int_eq(addr_parse("127.0.0.9", &entries[3].addr), 0);
	entries[4] = (struct config_device){ .name = "siw4", .siw.transport = SIW_SCTP };
	ck_assert_int_eq(addr_parse("127.0.0.9", &entries[4].addr), 0);
	cfg.device_cnt = 5;
	ck_assert_str_eq(preview(),
	    "device siw3: soft iWARP, address 127.0.0.9, which no interface has\n"
	    "device siw4: soft iWARP over SCTP, address 127.0.0.9, which no interface has\n"
	    "device soft: soft iWARP, address 192.0.2.1, interface eth0, up\n"
	    "device soft:2: soft iWARP, address 2001:db8::1, interface eth1, down\n"
	    "device mlx5_0: card mlx5_0 (fake) port 1, interface eth0, GID ::ffff:192.0.2.1, RoCE v2, index 1, port up\n");
}

START_TEST(why_there_are_none)
{
	entries[0] = (struct config_device){ .type = CONFIG_DEVICE_VERBS, .card = "mlx5_0", .port = 2 };
	entries[1] = (struct config_device){ .type = CONFIG_DEVICE_VERBS, .interface = "eth9" };
	entries[2] = (struct config_device){ .interface = "eth9" };
	entries[3] = (struct config_device){ .interface = "eth2" };
	cfg.device_cnt = 4;
	for (unsigned i = 0; i < 3; i++)
		entries[i].place = i + 1;
	ck_assert_str_eq(preview(), "");
	ck_assert_str_eq(warnings,
	    "t.conf:1: warning: no device for device \"mlx5_0\" port 2 now: this machine has no RDMA device\n"
	    "t.conf:2: warning: no device for interface \"eth9\" now: this machine has no RDMA device\n"
	    "t.conf:3: warning: no device for interface \"eth9\" now: there is no such interface\n"
	    "t.conf: warning: no device for interface \"eth2\" now: it has no address\n");
	fake_verbs_gid(fake_verbs_port("mlx5_0", 1, 2), "192.0.2.1", RNIC_GID_ROCE_V2, 2);
	ck_assert_str_eq(preview(), "");
	ck_assert_str_eq(warnings,
	    "t.conf:1: warning: no device for device \"mlx5_0\" port 2 now: the card has no such port\n"
	    "t.conf:2: warning: no device for interface \"eth9\" now: there is no such interface\n"
	    "t.conf:3: warning: no device for interface \"eth9\" now: there is no such interface\n"
	    "t.conf: warning: no device for interface \"eth2\" now: it has no address\n");
}

/* All of 127.0.0.0/8 is there, whatever interfaces say. */
START_TEST(an_address_that_no_interface_has)
{
	entries[0] = (struct config_device){ .name = "siw0" };
	ck_assert_int_eq(addr_parse("127.0.0.9", &entries[0].addr), 0);
	entries[1] = (struct config_device){ .name = "siw1", .place = 7 };
	ck_assert_int_eq(addr_parse("203.0.113.9", &entries[1].addr), 0);
	cfg.device_cnt = 2;
	ck_assert_str_eq(preview(),
	    "device siw0: soft iWARP, address 127.0.0.9, which no interface has\n"
	    "device siw1: soft iWARP, address 203.0.113.9, which no interface has\n");
	ck_assert_str_eq(warnings, "t.conf:7: warning: no interface has the address 203.0.113.9 of device siw1 now\n");
	cfg.devices_default = true;
	(void)preview();
	ck_assert_str_eq(warnings, "");
}

/* Cards are not looked for when nobody wants them. */
START_TEST(the_real_interfaces)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	ck_assert_int_eq(addr_parse("127.0.0.1", &entries[0].addr), 0);
	strcpy(entries[0].name, "siw0");
	cfg.device_cnt = 1;
	device_preview(&cfg, f, stderr);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(out, "device siw0: soft iWARP, address 127.0.0.1"));
	ck_assert_uint_eq(fake_verbs.lists, 0);
	free(out);
}
