/* The configuration's name for an address. */
#include "daemon/account/peer_name.h"

#include "base/addr.h"
#include "daemon/service/service.h"
#include "daemon/target/targets.h"
#include "unit.h"

#define CNT 4

static struct session_pool pool;
static struct service services[CNT];
static struct settings settings[CNT];
static struct sockaddr_storage addrs[CNT];
static struct config_target to[CNT];
static struct targets_all all;

static void
add(unsigned i, enum config_kind kind, const char *name, const char *host, const char *at)
{
	ck_assert_int_eq(addr_parse_port(at, &addrs[i]), 0);
	settings[i].cfg.kind = kind;
	strcpy(settings[i].cfg.name, name);
	to[i] = (struct config_target){ .port = addr_port(&addrs[i]), .addrs = &addrs[i], .addr_cnt = 1 };
	strcpy(to[i].host, host);
	settings[i].cfg.to = &to[i];
	settings[i].cfg.to_cnt = 1;
	settings[i].targets = targets_get(&all, &settings[i].cfg);
	services[i].settings = &settings[i];
	list_init(&services[i].node);
	list_push(&pool.services, &services[i].node);
}

static void
setup(void)
{
	targets_all_init(&all);
	list_init(&pool.services);
	add(0, CONFIG_INGRESS, "db", "192.0.2.1", "192.0.2.1:15432");
	add(1, CONFIG_INGRESS, "web", "pg1.example", "192.0.2.1:8080");
	add(2, CONFIG_INGRESS, "web6", "[2001:db8::1]", "[2001:db8::1]:8080");
	add(3, CONFIG_EGRESS, "out", "server.example", "192.0.2.9:80");
}

static void
teardown(void)
{
	for (unsigned i = 0; i < CNT; i++)
		targets_put(&all, settings[i].targets);
	targets_all_fini(&all);
}

UNIT_FIXTURE(setup, teardown);

static const struct service *
find(const char *at, bool port, unsigned *cnt)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse_port(at, &ss), 0);
	if (!port)
		addr_set_port(&ss, 0);
	return peer_name_find(&pool, &ss, cnt);
}

START_TEST(a_place_has_the_name_of_the_ingress_that_leads_there)
{
	unsigned cnt;

	ck_assert_str_eq(find("192.0.2.1:8080", true, &cnt)->settings->cfg.name, "web");
	ck_assert_uint_eq(cnt, 1);
	ck_assert_str_eq(find("192.0.2.1:15432", true, &cnt)->settings->cfg.name, "db");
	ck_assert_ptr_null(find("192.0.2.1:81", true, &cnt));
	ck_assert_ptr_null(find("192.0.2.9:80", true, &cnt)); /* an egress leads to no peer */
	ck_assert_uint_eq(cnt, 0);
}

START_TEST(a_host_has_a_name_when_any_ingress_has_one_for_it)
{
	struct sockaddr_storage host = addrs[0];
	unsigned cnt;

	addr_set_port(&host, 0);
	ck_assert_str_eq(peer_name_of(find("192.0.2.1:1", false, &cnt), &host), "pg1.example");
	ck_assert_uint_eq(cnt, 2);
}

START_TEST(addresses_and_paths_are_no_names)
{
	ck_assert_str_eq(peer_name_of(&services[0], &addrs[0]), "");
	ck_assert_str_eq(peer_name_of(&services[1], &addrs[1]), "pg1.example");
	ck_assert_str_eq(peer_name_of(&services[2], &addrs[2]), "");
	strcpy(to[3].host, "unix:/run/x");
	ck_assert_str_eq(peer_name_of(&services[3], &addrs[3]), "");
}

/* Each address has the name of its own target; what no target stands for any more has none. */
START_TEST(of_several_targets_the_one_that_leads_there)
{
	struct config_target both[2] = { to[0], to[1] };
	struct sockaddr_storage elsewhere;

	targets_put(&all, settings[1].targets);
	settings[1].cfg.to = both;
	settings[1].cfg.to_cnt = 2;
	settings[1].targets = targets_get(&all, &settings[1].cfg);
	ck_assert_str_eq(peer_name_of(&services[1], &addrs[0]), "");
	ck_assert_str_eq(peer_name_of(&services[1], &addrs[1]), "pg1.example");
	ck_assert_int_eq(addr_parse_port("192.0.2.7:8080", &elsewhere), 0);
	ck_assert_str_eq(peer_name_of(&services[1], &elsewhere), "");
}
