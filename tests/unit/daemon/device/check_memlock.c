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

/* A group of version 2 for each connection with who may have AF_SMC, as long as there are queue pairs; 392 KiB a link. */
START_TEST(needs_memory_for_receives_of_version_2)
{
	struct config_device dev[2] = { { .type = CONFIG_DEVICE_SIW, .siw.max_qp = 1024 },
		{ .type = CONFIG_DEVICE_VERBS, .verbs.max_qp = 64 } };
	uint64_t without = memlock_needed(&cfg), link = 392 << 10;

	cfg.devices = dev;
	cfg.device_cnt = 2;
	cfg.smcr.ueid_cnt = 1;
	cfg.smcr.rq_depth = 1024;
	ck_assert_uint_eq(memlock_needed(&cfg), without); /* both services are for smcrd alone */
	svc[1].peer = SMCR_PEER_LINUX;
	ck_assert_uint_eq(memlock_needed(&cfg), without + 10 * 2 * link);
	svc[0].peer = SMCR_PEER_AUTO;
	ck_assert_uint_eq(memlock_needed(&cfg), without + 64 * 2 * link);
	cfg.smcr.links_max = 8; /* version 2 has two */
	ck_assert_uint_eq(memlock_needed(&cfg), 4 * without + 64 * 2 * link);
	cfg.smcr.links_max = 1;
	ck_assert_uint_eq(memlock_needed(&cfg), without / 2 + 64 * link);
	cfg.smcr.links_max = 2;
	cfg.smcr.rq_depth = 16;
	ck_assert_uint_eq(memlock_needed(&cfg), without + 64 * 2 * (uint64_t)(17 * 8 << 10));
	cfg.smcr.smc_version = 1;
	ck_assert_uint_eq(memlock_needed(&cfg), without);
	cfg.smcr.smc_version = 0;
	cfg.smcr.ueid_cnt = 0;
	ck_assert_uint_eq(memlock_needed(&cfg), without);
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
