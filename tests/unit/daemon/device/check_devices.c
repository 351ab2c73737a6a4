/* Devices of a worker as interfaces and cards come and go: what is opened, reported and closed, and how often cards are
 * listed. Engine, interfaces, soft device and cards are made up here; time is the test's. */
#include "daemon/device/devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/device/device_plan.h"
#include "daemon/device/netwatch.h"
#include "daemon/service/service.h"
#include "daemon/worker/mpa_policy.h"
#include "addrs.h"
#include "captured.h"
#include "fake_verbs.h"
#include "unit.h"

/* Stand-ins ignore most of what they are given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static struct env env;
static struct devices *devs;
static struct config cfg;
static struct config_device entries[4];
static struct netif ifs[4];
static struct netifs table;
static bool if_news;
static char *said; /* what err got */
static size_t said_len;

/* -- the engine: has a list, and passes on what the test says of devices -- */

static struct rnic_dev *engine_devs[16];
static unsigned engine_cnt;
static bool dev_news;
static const struct rnic_dev *gone;

int
smcr_add_device(struct smcr *eng, struct rnic_dev *dev)
{
	engine_devs[engine_cnt++] = dev;
	return 0;
}

void
smcr_remove_device(struct smcr *eng, struct rnic_dev *dev)
{
	for (unsigned i = 0; i < engine_cnt; i++)
		if (engine_devs[i] == dev)
			engine_devs[i] = engine_devs[--engine_cnt];
	dev->ops->free(dev);
}

void
smcr_set_networks(struct smcr *eng, const struct smcr_subnet *nets, unsigned cnt)
{
}

bool
smcr_take_device_changes(struct smcr *eng)
{
	bool news = dev_news;

	dev_news = false;
	return news;
}

bool
smcr_device_gone(const struct smcr *eng, const struct rnic_dev *dev)
{
	return dev == gone;
}

/* -- interfaces -- */

int
netwatch_init(struct netwatch *nw, struct loop *loop)
{
	nw->table = table;
	return 0;
}

void
netwatch_fini(struct netwatch *nw)
{
}

void
netwatch_reload(struct netwatch *nw)
{
	nw->table = table;
}

bool
netwatch_take_change(struct netwatch *nw)
{
	bool news = if_news;

	nw->table = table;
	if_news = false;
	return news;
}

/* -- the soft device: none here -- */

int
siw_open(const struct siw_config *siw, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **err)
{
	*err = "address";
	return -EADDRNOTAVAIL;
}

void
siw_set_port_state(struct rnic_dev *dev, enum rnic_port_state to)
{
}

int
siw_listening(const struct rnic_dev *dev)
{
	return -1;
}

void
siw_stop_listening(struct rnic_dev *dev)
{
}

/* -- the test's hands -- */

static void
setup(void)
{
	fake_verbs_reset();
	memset(entries, 0, sizeof(entries));
	memset(&env, 0, sizeof(env));
	engine_cnt = 0;
	gone = NULL;
	dev_news = if_news = false;
	ifs[0] = (struct netif){ .index = 2, .name = "eth0", .enabled = true, .up = true };
	ifs[1] = (struct netif){ .index = 3, .name = "eth1", .enabled = true, .up = true };
	table = (struct netifs){ .ifs = ifs, .if_cnt = 2 };
	cfg = (struct config){ .devices = entries };
	env.loop = loop_new();
	env.now_ns = 1000 * NS_PER_MS;
	timerq_init(&env.timers);
	log_init(LOG_LVL_ERROR);
}

static void
teardown(void)
{
	devices_free(devs);
	ck_assert_uint_eq(engine_cnt, 0);
	ck_assert_uint_eq(fake_verbs.opens - fake_verbs.frees, 0);
	timerq_fini(&env.timers);
	loop_free(env.loop);
	free(said);
	said = NULL;
}

static struct config_device *
entry(const char *card)
{
	struct config_device *d = &entries[cfg.device_cnt++];

	d->type = CONFIG_DEVICE_VERBS;
	strcpy(d->card, card);
	return d;
}

static struct verbs_port *
card(const char *name, const char *gid)
{
	struct verbs_port *p = fake_verbs_port(name, 1, 2);

	fake_verbs_gid(p, gid, RNIC_GID_ROCE_V2, 2);
	return p;
}

static void
start(void)
{
	static const struct devices_gate nobody = { NULL, NULL };
	FILE *f = open_memstream(&said, &said_len);

	ck_assert_int_eq(devices_new(&env, &cfg, &nobody, f, &devs), 0);
	fclose(f);
}

/* The usual case: an entry for a card that is there. */
static struct verbs_port *
one_card(void)
{
	struct verbs_port *p = card("c0", "192.0.2.1");

	entry("c0");
	start();
	return p;
}

static void
reload(void)
{
	free(said);
	FILE *f = open_memstream(&said, &said_len);
	devices_reload(devs, &cfg, f);
	fclose(f);
}

/* Turns of the worker: time goes on in steps of 100 ms. */
static void
pass(int64_t ms)
{
	for (int64_t end = env.now_ns + ms * NS_PER_MS; env.now_ns < end;) {
		env.now_ns += 100 * NS_PER_MS;
		(void)devices_listen(devs);
		(void)devices_follow(devs);
		timerq_run(&env.timers, env.now_ns);
		(void)devices_listen(devs);
		(void)devices_follow(devs);
	}
}

/* "name gid port" of each device. */
static const char *
devices(void)
{
	static char text[512];
	char *p = text, gid[DEVICE_GID_MAX];
	struct rnic_dev *dev;

	text[0] = '\0';
	for (unsigned i = 0; (dev = devices_get(devs, i)) != NULL; i++) {
		struct rnic_info info = rnic_query(dev);
		const char *addr = device_gid_format(&info.gid, gid);

		p += sprintf(p, "%s%s %s %s", i > 0 ? ", " : "", info.name,
		    strncmp(addr, "::ffff:", 7) == 0 ? addr + 7 : addr, info.port == RNIC_PORT_UP ? "up" : "down");
	}
	return text;
}

UNIT_FIXTURE(setup, teardown);

/* -- start -- */

START_TEST(a_card_is_opened_under_its_gid)
{
	struct config_device *d = entry("c0");

	d->verbs.timeout = 17;
	card("c0", "192.0.2.1");
	start();
	ck_assert_str_eq(said, "");
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_str_eq(fake_verbs.last.name, "c0");
	ck_assert_str_eq(fake_verbs.last.dev, "c0");
	ck_assert_uint_eq(fake_verbs.last.port, 1);
	ck_assert_int_eq(fake_verbs.last.gid_type, RNIC_GID_ROCE_V2);
	ck_assert_uint_eq(fake_verbs.last.timeout, 17);
	ck_assert_uint_eq(engine_cnt, 1);
}

START_TEST(without_any_card_it_is_said_once_and_looked_for)
{
	entry("c0");
	entry("c1");
	start();
	ck_assert_str_eq(said, "warning: no RDMA devices now: this machine has no RDMA device\n");
	ck_assert_uint_eq(fake_verbs.lists, 1);
	pass(10000);
	ck_assert_uint_eq(fake_verbs.lists, 6); /* every two seconds */
	reload();
	ck_assert_str_eq(said, "warning: no RDMA devices now: this machine has no RDMA device\n");
	card("c1", "192.0.2.1");
	pass(2000);
	ck_assert_str_eq(devices(), "c1 192.0.2.1 up");
}

START_TEST(each_entry_without_a_device_is_named)
{
	entry("c0");
	strcpy(entry("")->interface, "eth1");
	card("c1", "192.0.2.1");
	start();
	ck_assert_str_eq(said,
	    "warning: no RDMA device for device \"c0\" now: there is no card of this name\n"
	    "warning: no RDMA device for interface \"eth1\" now: no card has a GID on this interface\n");
}

START_TEST(no_permission_fails_no_start)
{
	entry("*");
	fake_verbs.list_rc = -EACCES;
	fake_verbs.why = "the device files may not be opened";
	start();
	ck_assert_str_eq(said, "warning: no RDMA devices now: the device files may not be opened\n");
	fake_verbs.list_rc = 0;
	card("c0", "192.0.2.1");
	pass(2000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
}

START_TEST(a_card_that_does_not_open_is_reported_and_tried_again)
{
	entry("c0");
	card("c0", "192.0.2.1");
	fake_verbs.open_rc = -ENOMEM;
	fake_verbs.why = "RLIMIT_MEMLOCK";
	start();
	ck_assert_str_eq(said,
	    "warning: device c0 at card c0/1 gid ::ffff:192.0.2.1 gid_type \"RoCE v2\" is not there: "
	    "RLIMIT_MEMLOCK: Cannot allocate memory\n");
	reload();
	ck_assert_str_eq(said, "");
	fake_verbs.open_rc = 0;
	pass(10000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
}

/* -- on the operator's word -- */

START_TEST(a_missing_card_is_looked_for_on_the_operators_word)
{
	entry("c0");
	start();
	pass(500);
	card("c0", "192.0.2.1");
	pass(500);
	ck_assert_str_eq(devices(), "");
	ck_assert_uint_eq(devices_retry(devs), 1);
	pass(100);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_uint_eq(fake_verbs.lists, 2);
	ck_assert_uint_eq(devices_retry(devs), 0);
}

START_TEST(a_card_that_did_not_open_is_tried_on_the_operators_word)
{
	entry("c0");
	card("c0", "192.0.2.1");
	fake_verbs.open_rc = -ENOMEM;
	fake_verbs.why = "RLIMIT_MEMLOCK";
	start();
	/* It fails again, and is tried again by itself as long after that as after any other try. */
	pass(5000);
	ck_assert_uint_eq(devices_retry(devs), 1);
	pass(9000);
	ck_assert_str_eq(devices(), "");
	fake_verbs.open_rc = 0;
	pass(900);
	ck_assert_str_eq(devices(), "");
	ck_assert_uint_eq(devices_retry(devs), 1);
	pass(100);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_uint_eq(devices_retry(devs), 0);
}

/* Entries without a card, and devices of others that do not open; a card that is gone makes its entry one of the former. */
START_TEST(a_retry_reports_the_number_of_missing_devices)
{
	entry("c0");
	entry("c1");
	strcpy(entry("")->interface, "eth1");
	card("c1", "192.0.2.1");
	fake_verbs.open_rc = -ENOMEM;
	fake_verbs.why = "RLIMIT_MEMLOCK";
	start();
	ck_assert_uint_eq(devices_retry(devs), 3);
	fake_verbs.open_rc = 0;
	pass(100);
	ck_assert_str_eq(devices(), "c1 192.0.2.1 up");
	ck_assert_uint_eq(devices_retry(devs), 2);
	fake_verbs_unplug("c1");
	pass(20000);
	ck_assert_str_eq(devices(), "");
	ck_assert_uint_eq(devices_retry(devs), 3);
}

/* Nothing is opened twice, told anew or closed, and the next look is as rare as before. */
START_TEST(a_complete_set_stays_on_the_operators_word)
{
	one_card();
	pass(5000);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(devices_retry(devs), 0);
	pass(100);
	ck_assert_uint_eq(fake_verbs.lists, 2);
	pass(9800);
	ck_assert_uint_eq(fake_verbs.lists, 2);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_uint_eq(fake_verbs.opens, 1);
	ck_assert_uint_eq(fake_verbs.frees, 0);
}

/* -- how often -- */

START_TEST(without_an_entry_cards_are_not_listed)
{
	card("c0", "192.0.2.1");
	start();
	if_news = true;
	pass(30000);
	reload();
	ck_assert_uint_eq(devices_retry(devs), 0);
	pass(2000);
	ck_assert_uint_eq(fake_verbs.lists, 0);
}

START_TEST(a_complete_set_is_looked_at_rarely)
{
	one_card();
	pass(60000);
	ck_assert_uint_eq(fake_verbs.lists, 1 + 6);
}

/* The GIDs follow addresses a little later than the network's news. */
START_TEST(changes_of_interfaces_are_followed_twice_and_boundedly)
{
	one_card();
	pass(5000);
	fake_verbs.lists = 0;
	if_news = true;
	pass(100);
	ck_assert_uint_eq(fake_verbs.lists, 1);
	pass(2000);
	ck_assert_uint_eq(fake_verbs.lists, 2);
	/* A storm of news. */
	fake_verbs.lists = 0;
	for (unsigned i = 0; i < 100; i++) {
		if_news = true;
		pass(100);
	}
	ck_assert_uint_le(fake_verbs.lists, 21);
	ck_assert_uint_ge(fake_verbs.lists, 9);
}

/* -- come and go -- */

START_TEST(a_card_that_is_gone_is_closed_and_opened_again)
{
	entry("*");
	card("c0", "192.0.2.1");
	card("c1", "192.0.2.2");
	start();
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up, c1 192.0.2.2 up");
	/* The device says so itself. */
	gone = devices_get(devs, 0);
	fake_verbs_unplug("c0");
	dev_news = true;
	pass(100);
	ck_assert_str_eq(devices(), "c1 192.0.2.2 up");
	ck_assert_uint_eq(fake_verbs.frees, 1);
	gone = NULL;
	card("c0", "192.0.2.1");
	pass(10000);
	ck_assert_str_eq(devices(), "c1 192.0.2.2 up, c0 192.0.2.1 up");
}

/* A driver that waits for us to let go says nothing: the list does. */
START_TEST(a_card_that_is_no_more_listed_is_closed)
{
	one_card();
	pass(2500);
	fake_verbs.lists = 0;
	fake_verbs_unplug("c0");
	/* Found within a second, sure another one later. */
	pass(1100);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 down");
	pass(1100);
	ck_assert_str_eq(devices(), "");
	ck_assert_uint_eq(fake_verbs.lists, 2);
	card("c0", "192.0.2.1");
	pass(2500);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
}

START_TEST(a_list_that_fails_closes_nothing)
{
	one_card();
	fake_verbs.list_rc = -EMFILE;
	fake_verbs.why = "out of descriptors";
	pass(60000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
}

START_TEST(a_card_that_is_missing_for_a_moment_stays)
{
	struct verbs_port kept = *one_card();
	fake_verbs_unplug("c0");
	if_news = true;
	pass(100);
	fake_verbs.ports[fake_verbs.cnt++] = kept;
	pass(20000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_uint_eq(fake_verbs.opens, 1);
}

START_TEST(a_gid_that_vanishes_is_waited_for)
{
	struct verbs_port *p = one_card();
	p->gid_cnt = 0;
	dev_news = true;
	pass(5000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 down");
	p->gid_cnt = 1;
	dev_news = true;
	pass(20000);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	ck_assert_uint_eq(fake_verbs.opens, 1);
	p->gid_cnt = 0;
	dev_news = true;
	pass(13000);
	ck_assert_str_eq(devices(), "");
}

START_TEST(another_gid_takes_the_place_of_one_that_is_gone)
{
	struct verbs_port *p = one_card();
	fake_verbs.qps = 1;
	p->gid_cnt = 0;
	fake_verbs_gid(p, "192.0.2.9", RNIC_GID_ROCE_V2, 2);
	if_news = true;
	pass(1500);
	ck_assert_str_eq(devices(), "c0 192.0.2.1 down, c0:2 192.0.2.9 up");
	pass(14000);
	ck_assert_str_eq(devices(), "c0:2 192.0.2.9 up");
}

START_TEST(a_better_gid_waits_for_the_links_on_the_old_one)
{
	entry("c0");
	struct verbs_port *p = card("c0", "fe80::1");
	start();
	fake_verbs.qps = 1;
	fake_verbs_gid(p, "192.0.2.1", RNIC_GID_ROCE_V2, 2);
	if_news = true;
	pass(15000);
	ck_assert_str_eq(devices(), "c0 fe80::1 up, c0:2 192.0.2.1 up");
	fake_verbs.qps = 0;
	pass(10000);
	ck_assert_str_eq(devices(), "c0:2 192.0.2.1 up");
}

START_TEST(a_reload_adds_a_card)
{
	entry("c0");
	card("c0", "192.0.2.1");
	card("c1", "192.0.2.2");
	start();
	entry("c1");
	reload();
	ck_assert_str_eq(said, "");
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up, c1 192.0.2.2 up");
}

START_TEST(tells_card_gid_and_interface)
{
	struct device_info info;

	entry("c0")->gid_type = CONFIG_GID_ROCE_V1;
	struct verbs_port *p = card("c0", "192.0.2.1");
	fake_verbs_gid(p, "192.0.2.1", RNIC_GID_ROCE_V1, 3);
	start();
	ck_assert(devices_info(devs, 0, &info));
	ck_assert_str_eq(info.rnic.name, "c0");
	ck_assert_str_eq(info.card->dev, "c0");
	ck_assert_uint_eq(info.card->gid_cnt, 2);
	ck_assert_int_eq(info.gid.type, RNIC_GID_ROCE_V1);
	ck_assert_uint_eq(info.gid.index, 1);
	ck_assert_str_eq(info.interface, "eth1");
	ck_assert(!devices_info(devs, 1, &info));
	ck_assert_str_eq(devices_interface(devs, 9), "");
}

/* At once when it is the first for a while, then once a second what came together; each device by its name. */
START_TEST(refusals_of_a_device_are_logged)
{
	one_card();
	capture_begin(LOG_LVL_NOTICE);
	env.now_ns += 5000 * NS_PER_MS;
	ck_assert_int_eq(devices_log(devs), INT64_MAX);
	env.now_ns += 5000 * NS_PER_MS;
	fake_verbs.refused = 3;
	fake_verbs.flushed = 9; /* no refusal */
	(void)capture_take();
	ck_assert_int_eq(devices_log(devs), INT64_MAX);
	const char *text = capture_take();
	ck_assert_msg(strstr(text, "iWARP connections refused: not from a peer") != NULL, "%s", text);
	ck_assert_msg(strstr(text, "device=c0 count=3 total=3\n") != NULL, "%s", text);
	fake_verbs.refused = 10;
	fake_verbs.from = "192.0.2.7:40000";
	int64_t at = env.now_ns + 1000 * NS_PER_MS;
	env.now_ns += 10 * NS_PER_MS;
	ck_assert_int_eq(devices_log(devs), at);
	env.now_ns = at;
	ck_assert_int_eq(devices_log(devs), INT64_MAX);
	text = capture_take();
	ck_assert_msg(strstr(text, "device=c0 count=7 total=10 from=192.0.2.7:40000\n") != NULL, "%s", text);
	fake_verbs.from = "[2001:db8::7]:40000";
	fake_verbs.refused = 11;
	env.now_ns += 5000 * NS_PER_MS;
	(void)devices_log(devs);
	text = capture_take();
	ck_assert_msg(strstr(text, "device=c0 count=1 total=11 from=[2001:db8::7]:40000\n") != NULL, "%s", text);
	capture_end();
}

static const char *peer_of_the_moment;

bool
smcr_has_peer(const struct smcr *eng, const uint8_t addr[16])
{
	return peer_of_the_moment != NULL && memcmp(gid_of(peer_of_the_moment).b, addr, 16) == 0;
}

static struct session_pool pool;

static bool
may_connect(const char *text)
{
	const struct rnic_gid gid = gid_of(text);

	return mpa_may_connect(&pool, &gid);
}

START_TEST(permitted_clients_of_the_mpa_port)
{
	struct config_net user = { .addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .prefix_len = 128 };
	struct config_net list = { .addr = { [10] = 0xff, 0xff, 203, 0, 113, 0 }, .prefix_len = 96 + 24 };
	struct settings in = { .cfg = { .kind = CONFIG_INGRESS } };
	struct settings out = { .cfg = { .kind = CONFIG_EGRESS, .allow = &user, .allow_cnt = 1 } };
	struct service svc[2] = { { .settings = &in }, { .settings = &out } };
	struct netif_addr here = { .addr = addr_of("127.0.0.1"), .index = 2, .prefix_len = 8 };

	list_init(&pool.services);
	for (unsigned i = 0; i < 2; i++) {
		list_init(&svc[i].node);
		list_push(&pool.services, &svc[i].node);
	}
	table.addrs = &here;
	table.addr_cnt = 1;
	entry("c0");
	card("c0", "127.0.0.1");
	start();
	pool.env = &env;
	pool.cfg = &cfg;
	pool.devices = devs;
	/* a user of a service, a neighbour of a device, strangers */
	ck_assert(may_connect("10.0.0.1"));
	ck_assert(may_connect("127.9.9.9"));
	ck_assert(!may_connect("10.0.0.2"));
	ck_assert(!may_connect("203.0.113.5"));
	ck_assert(!may_connect("2001:db8::1"));
	/* a service for everybody */
	out.cfg.allow_cnt = 0;
	ck_assert(may_connect("2001:db8::1"));
	/* the list in place of all that, and peers of the moment */
	cfg.mpa_clients = &list;
	cfg.mpa_clients_cnt = 1;
	ck_assert(!may_connect("2001:db8::1"));
	ck_assert(!may_connect("10.0.0.1"));
	ck_assert(!may_connect("127.9.9.9"));
	ck_assert(may_connect("203.0.113.5"));
	peer_of_the_moment = "10.0.0.1";
	ck_assert(may_connect("10.0.0.1"));
	ck_assert(!may_connect("10.0.0.2"));
	peer_of_the_moment = NULL;
}

/* The GID that a connection of this local address should use. */
static const char *
gid_at(const struct sockaddr_storage *local)
{
	static char text[DEVICE_GID_MAX];
	struct smcr_open o = { 0 };

	devices_describe(devs, local, &o);
	return device_gid_format(&o.local_addr, text);
}

/* A middle over IPv6, or over a second address, belongs to the card of its interface all the same. */
START_TEST(a_connection_finds_the_card_of_its_interface)
{
	struct netif_addr addrs[] = {
		{ .addr = addr_of("2001:db8::1"), .index = 2 },
		{ .addr = addr_of("2001:db8::2"), .index = 3 },
		{ .addr = addr_of("2001:db8::3"), .index = 9 },
	};
	const struct sockaddr_storage at = addr_of("192.0.2.2");

	table.addrs = addrs;
	table.addr_cnt = 3;
	entry("*");
	card("c0", "192.0.2.1");
	struct verbs_port *p = fake_verbs_port("c1", 1, 3);
	fake_verbs_gid(p, "192.0.2.2", RNIC_GID_ROCE_V2, 3);
	start();
	for (unsigned i = 0; i < 3; i++) {
		static const char *const want[] = { "::ffff:192.0.2.1", "::ffff:192.0.2.2", "2001:db8::3" };

		ck_assert_str_eq(gid_at(&addrs[i].addr), want[i]);
	}
	ck_assert_str_eq(gid_at(&at), "::ffff:192.0.2.2");
	/* Not to a port that is down. */
	fake_verbs.ports[1].state = RNIC_PORT_DOWN;
	dev_news = true;
	pass(100);
	ck_assert_str_eq(gid_at(&addrs[1].addr), "2001:db8::2");
}

/* A port is two devices as long as a service may have a peer with AF_SMC; a connection is told of the one that other smcrd have,
 * whichever came first. */
START_TEST(a_port_is_a_second_device_for_linux)
{
	struct netif_addr addrs[] = { { .addr = addr_of("2001:db8::1"), .index = 2 } };
	struct config_service svc = { .peer = SMCR_PEER_AUTO };
	struct verbs_port *p = fake_verbs_port("c0", 1, 2);

	table.addrs = addrs;
	table.addr_cnt = 1;
	fake_verbs_gid(p, "fe80::1", RNIC_GID_ROCE_V1, 2);
	fake_verbs_gid(p, "192.0.2.1", RNIC_GID_ROCE_V2, 2);
	entry("c0");
	start();
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
	cfg.services = &svc;
	cfg.service_cnt = 1;
	reload();
	ck_assert_str_eq(said, "");
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up, c0:2 fe80::1 up");
	ck_assert_str_eq(gid_at(&addrs[0].addr), "::ffff:192.0.2.1");
	/* The first one goes, and comes back behind the second. */
	p->gid_cnt = 1;
	if_news = true;
	pass(15000);
	ck_assert_str_eq(devices(), "c0:2 fe80::1 up");
	ck_assert_str_eq(gid_at(&addrs[0].addr), "fe80::1");
	p->gid_cnt = 2;
	if_news = true;
	pass(2000);
	ck_assert_str_eq(devices(), "c0:2 fe80::1 up, c0 192.0.2.1 up");
	ck_assert_str_eq(gid_at(&addrs[0].addr), "::ffff:192.0.2.1");
	svc.peer = SMCR_PEER_SMCRD;
	reload();
	ck_assert_str_eq(devices(), "c0 192.0.2.1 up");
}
