/* The targets of services, which threads share: whose they are, what they wait for, what a reload makes of them. */
#include <string.h>

#include "base/addr.h"
#include "daemon/target/targets.h"
#include "unit.h"
#include "tests/seeded_rng.h"

static struct targets_all all;
static struct config_target to[2];
static struct sockaddr_storage addrs[2];
static struct config_service cfg;

static void
setup(void)
{
	targets_all_init(&all);
	memset(to, 0, sizeof(to));
	strcpy(to[0].host, "db.example");
	to[0].port = 5432;
	to[1].srv = true;
	strcpy(to[1].host, "_db._tcp.example");
	cfg = (struct config_service){ .kind = CONFIG_EGRESS, .name = "db", .to = to, .to_cnt = 1 };
	ck_assert_int_eq(addr_parse_port("192.0.2.1:5432", &addrs[0]), 0);
	ck_assert_int_eq(addr_parse_port("192.0.2.2:5432", &addrs[1]), 0);
}

static void
teardown(void)
{
	targets_all_fini(&all);
}
UNIT_FIXTURE(setup, teardown);

static void
expect_waiting(struct targets *t, const char *want)
{
	char buf[TARGETS_WAIT_MAX];

	ck_assert_str_eq(targets_waiting(t, buf), want);
}

START_TEST(settings_of_the_same_targets_share_them)
{
	struct targets *t = targets_get(&all, &cfg), *again, *other;

	cfg.max_connections = 7;
	again = targets_get(&all, &cfg);
	ck_assert_ptr_eq(again, t);
	cfg.policy = CONFIG_POLICY_SPREAD;
	other = targets_get(&all, &cfg);
	ck_assert_ptr_ne(other, t);
	targets_put(&all, other);
	cfg.policy = CONFIG_POLICY_FIRST;
	to[0].port++;
	other = targets_get(&all, &cfg);
	ck_assert_ptr_ne(other, t);
	targets_put(&all, other);
	to[0].port--;
	cfg.kind = CONFIG_INGRESS;
	other = targets_get(&all, &cfg);
	ck_assert_ptr_ne(other, t);
	targets_put(&all, other);
	targets_put(&all, t);
	targets_put(&all, again);
}

static unsigned changes;

static void
on_change(void *arg)
{
	ck_assert_ptr_eq(arg, &changes);
	changes++;
}

/* Once for each change, and not while the first answer is to come. */
START_TEST(dependents_are_notified_that_no_target_works)
{
	const struct target_addr a = { .ss = addrs[0] };
	struct endpoint_pick pick;
	uint64_t tried = 0;
	struct rng rng;

	rng_init_seeded(&rng, 1);
	changes = 0;
	all.changed = on_change;
	all.arg = &changes;
	struct targets *plain = targets_get(&all, &cfg);
	cfg.when_down = CONFIG_DOWN_CLOSE_LISTENER;
	struct targets *t = targets_get(&all, &cfg);
	ck_assert_ptr_ne(t, plain);
	ck_assert(!config_names_wait() || !targets_down(t));
	for (unsigned i = 0; i < cfg.to_cnt; i++) {
		(void)targets_unresolved(t, i, "no such name");
		(void)targets_unresolved(plain, i, "no such name");
	}
	ck_assert(targets_down(t) && !targets_down(plain));
	ck_assert_uint_eq(changes, 1);
	ck_assert(targets_set(t, 0, false, &a, 1));
	ck_assert(!targets_down(t));
	ck_assert_uint_eq(changes, 2);
	struct endpoints *es = targets_lock(t);
	ck_assert(endpoints_pick(es, 0, &rng, &tried, &pick));
	ck_assert(endpoints_bad(es, &pick, ENDPOINT_CONNECT, "refused", 0, 1, 0));
	ck_assert(!endpoints_bad(es, &pick, ENDPOINT_CONNECT, "refused", 0, 1, 0));
	targets_unlock(t);
	ck_assert(targets_down(t));
	ck_assert_uint_eq(changes, 3);
	ck_assert(endpoints_good(targets_lock(t), &pick, true));
	targets_unlock(t);
	ck_assert(!targets_down(t));
	ck_assert_uint_eq(changes, 4);
	targets_put(&all, plain);
	targets_put(&all, t);
}

START_TEST(a_name_is_waited_for_until_it_has_an_address)
{
	struct targets *t = targets_get(&all, &cfg);
	const struct target_addr a = { .ss = addrs[0] };
	char why[ENDPOINT_WHY_MAX];

	expect_waiting(t, "waiting for the name db.example: no answer yet");
	ck_assert_int_eq(targets_pending(t), config_names_wait());
	ck_assert_str_eq(targets_name_error(t, 0, why), "no answer yet");
	ck_assert(targets_unresolved(t, 0, "NXDOMAIN"));
	expect_waiting(t, "waiting for the name db.example: NXDOMAIN");
	ck_assert(!targets_pending(t));
	ck_assert(targets_set(t, 0, false, &a, 1));
	expect_waiting(t, "");
	ck_assert_str_eq(targets_name_error(t, 0, why), "");
	ck_assert(!targets_set(t, 0, false, &a, 1));
	/* What was found stays. */
	ck_assert(!targets_unresolved(t, 0, "timeout"));
	expect_waiting(t, "");
	ck_assert_str_eq(targets_name_error(t, 0, why), "timeout");
	ck_assert(!targets_pending(t));
	targets_put(&all, t);
}

START_TEST(one_name_of_several_is_enough)
{
	cfg.to_cnt = 2;
	struct targets *t = targets_get(&all, &cfg);
	const struct target_addr a = { .ss = addrs[0], .priority = 1, .weight = 2 };
	struct endpoint e;

	ck_assert(targets_unresolved(t, 0, "NXDOMAIN"));
	expect_waiting(t, "waiting for the name db.example and others: NXDOMAIN");
	ck_assert_int_eq(targets_pending(t), config_names_wait());
	ck_assert(targets_set(t, 1, true, &a, 1));
	expect_waiting(t, "");
	ck_assert_uint_eq(endpoints_count(targets_lock(t)), 1);
	targets_unlock(t);
	ck_assert(targets_address(t, 0, &e));
	ck_assert_uint_eq(e.target, 1);
	ck_assert_uint_eq(e.weight, 2);
	ck_assert(!targets_address(t, 1, &e));
	targets_put(&all, t);
}

START_TEST(a_reload_brings_new_addresses)
{
	struct endpoint e;

	to[0].addrs = addrs;
	to[0].addr_cnt = 1;
	struct targets *t = targets_get(&all, &cfg);
	expect_waiting(t, "");
	to[0].addrs = addrs + 1;
	targets_load(t, &cfg);
	ck_assert(targets_address(t, 0, &e));
	ck_assert(addr_same_place(&e.addr, &addrs[1]));
	ck_assert(!targets_address(t, 1, &e));
	/* One that has found none takes none away. */
	to[0].addr_cnt = 0;
	targets_load(t, &cfg);
	ck_assert(targets_address(t, 0, &e));
	targets_put(&all, t);
}

START_TEST(a_place_is_found_with_the_first_target_that_leads_there)
{
	cfg.to_cnt = 2;
	struct targets *t = targets_get(&all, &cfg);
	struct sockaddr_storage host = addrs[0];
	struct target_addr a[2] = { { .ss = addrs[0] }, { .ss = addrs[0] } };
	unsigned nr = 77;

	addr_set_port(&host, 0);
	ck_assert(!targets_find(t, &addrs[0], &nr) && !targets_find(t, &host, &nr));
	(void)targets_set(t, 1, false, a, 1);
	ck_assert(!targets_find(t, &addrs[1], &nr));
	ck_assert_uint_eq(nr, 77);
	ck_assert(targets_find(t, &addrs[0], &nr));
	ck_assert_uint_eq(nr, 1);
	/* The same host by other ports; what is known first is not what stands first. */
	addr_set_port(&a[1].ss, 81);
	(void)targets_set(t, 0, false, &a[1], 1);
	addr_set_port(&a[1].ss, 82);
	(void)targets_set(t, 1, false, a, 2);
	ck_assert(targets_find(t, &addrs[0], &nr));
	ck_assert_uint_eq(nr, 1);
	ck_assert(targets_find(t, &host, &nr));
	ck_assert_uint_eq(nr, 0);
	targets_put(&all, t);
}
