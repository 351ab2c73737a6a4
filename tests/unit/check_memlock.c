/* How much memory cards may lock, and when it is said that the limit is too low. */
#include "daemon/device/memlock.h"

#include <string.h>

#include "unit.h"

static struct config_service svc[2];
static struct config cfg;

static void
setup(void)
{
	svc[0] = (struct config_service){ .max_connections = 100, .elem_size = 64 << 10 };
	svc[1] = (struct config_service){ .max_connections = 10, .elem_size = 512 << 10 };
	cfg = (struct config){ .services = svc, .service_cnt = 2 };
	cfg.smcr.links_max = 2;
	cfg.smcr.sndbuf_size = 32 << 10;
	cfg.smcr.conns_max = 1000;
}

UNIT_FIXTURE(setup, NULL);

/* For each link: elements and send rings. */
START_TEST(needs_memory_for_every_connection)
{
	ck_assert_uint_eq(memlock_needed(&cfg), 2 * (100 * 96 + 10 * 544) << 10);
	cfg.smcr.links_max = 1;
	ck_assert_uint_eq(memlock_needed(&cfg), (100 * 96 + 10 * 544) << 10);
	cfg.smcr.conns_max = 11;
	ck_assert_uint_eq(memlock_needed(&cfg), (uint64_t)((100 * 96 + 10 * 544) << 10) / 110 * 11);
	cfg.service_cnt = 0;
	ck_assert_uint_eq(memlock_needed(&cfg), 0);
}

/* Of the largest numbers that a configuration may have. */
START_TEST(does_not_overflow)
{
	svc[0] = svc[1] = (struct config_service){ .max_connections = 1048576, .elem_size = 512 << 10 };
	cfg.smcr.sndbuf_size = 4 << 20;
	cfg.smcr.links_max = 8;
	cfg.smcr.conns_max = 1u << 30;
	ck_assert_uint_eq(memlock_needed(&cfg), (uint64_t)2 * 1048576 * 8 * (512 + 4096) * 1024);
}

START_TEST(says_the_limit_and_how_to_raise_it)
{
	uint64_t needed = memlock_needed(&cfg);
	char text[512] = "";

	ck_assert(!memlock_too_low(&cfg, needed, text, sizeof(text)));
	ck_assert_str_eq(text, "");
	ck_assert(memlock_too_low(&cfg, needed - 1, text, sizeof(text)));
	ck_assert_ptr_nonnull(strstr(text, "RLIMIT_MEMLOCK"));
	ck_assert_ptr_nonnull(strstr(text, "LimitMEMLOCK="));
	ck_assert_ptr_nonnull(strstr(text, "limit_kib=30079 needed_kib=30080"));
}
