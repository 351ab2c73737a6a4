/* What a configuration needs of open files, the limit, and when its being too low is said. */
#include "daemon/process/fd_limit.h"

#include <sys/resource.h>

#include "captured.h"
#include "control/files.h"
#include "unit.h"

static struct config_service services[2] = { { .max_connections = 4096 }, { .max_connections = UINT32_MAX } };

static struct config
with(unsigned service_cnt, unsigned device_cnt)
{
	return (
	    struct config){ .services = services, .service_cnt = service_cnt, .device_cnt = device_cnt, .workers = 1 };
}

static void
set_limit(rlim_t soft, rlim_t hard)
{
	struct rlimit lim = { soft, hard };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

static rlim_t
limit(void)
{
	struct rlimit lim;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	return lim.rlim_cur;
}

START_TEST(each_part_counts)
{
	struct config cfg = with(0, 0);

	ck_assert_uint_eq(open_files_of(&cfg, 1).needed, 64 + 8);
	ck_assert_uint_eq(open_files_of(&cfg, 1).connections, 0);
	/* Each worker has its listening sockets and its devices. */
	cfg = with(1, 2);
	ck_assert_uint_eq(open_files_of(&cfg, 1).needed, 64 + 8 + 1 + 2 * 32 + 2 * 4096);
	ck_assert_uint_eq(open_files_of(&cfg, 3).needed, 64 + 3 * (8 + 1 + 2 * 32) + 2 * 4096);
	ck_assert_uint_eq(open_files_of(&cfg, 3).connections, 2 * 4096);
	cfg.metrics.listen.ss_family = AF_INET;
	ck_assert_uint_eq(open_files_of(&cfg, 1).needed, 64 + 128 + 8 + 1 + 2 * 32 + 2 * 4096);
	/* No 32 bits are too few for. */
	cfg = with(2, 0);
	ck_assert_uint_eq(open_files_of(&cfg, 1).connections, 2 * (4096 + (uint64_t)UINT32_MAX));
}

START_TEST(what_is_left_is_for_connections)
{
	const struct fd_limit of = { .needed = 300, .connections = 200 };

	ck_assert_uint_eq(open_files_enough_for(&of, 0), 0);
	ck_assert_uint_eq(open_files_enough_for(&of, 100), 0);
	ck_assert_uint_eq(open_files_enough_for(&of, 101), 0);
	ck_assert_uint_eq(open_files_enough_for(&of, 102), 1);
	ck_assert_uint_eq(open_files_enough_for(&of, 300), 100);
	ck_assert_uint_eq(open_files_enough_for(&of, 1000), 450);
}

START_TEST(the_limit_is_raised_as_far_as_may_be)
{
	set_limit(512, 1000);
	fd_limit_raise();
	ck_assert_uint_eq(limit(), 1000);
	fd_limit_raise();
	ck_assert_uint_eq(limit(), 1000);
}

static void
setup(void)
{
	capture_begin(LOG_LVL_INFO);
}

UNIT_FIXTURE(setup, capture_end);

START_TEST(a_limit_that_is_too_low_is_said_once_for_a_number)
{
	struct config cfg = with(1, 1), other = with(1, 2);
	struct fd_limit before = { 0 };

	set_limit(1000, 1000);
	fd_limit_check(&before, &cfg);
	ck_assert_ptr_nonnull(strstr(capture_take(), "warning: the limit of open files is too low"));
	fd_limit_check(&before, &cfg);
	ck_assert_str_eq(capture_take(), "");
	fd_limit_check(&before, &other);
	ck_assert_ptr_nonnull(strstr(capture_take(), "limit=1000 needed=8329 enough_for_connections=431"));
	/* The one before is what counts. */
	fd_limit_check(&before, &cfg);
	ck_assert_ptr_nonnull(strstr(capture_take(), "limit=1000 needed=8297 enough_for_connections=447"));
}

START_LOOP_TEST(a_limit_that_will_do_is_not, 0, 2)
{
	struct config cfg = with(1, 1);
	struct fd_limit before = { 0 };

	services[0].max_connections = 100;
	set_limit(64 + 8 + 1 + 32 + 200 - (rlim_t)_i, 1000);
	fd_limit_check(&before, &cfg);
	ck_assert_int_eq(capture_take()[0] == '\0', _i == 0);
}

/* It is no plan that all services reach their max_connections at once. */
START_TEST(an_ample_limit_is_not)
{
	ck_assert(files_are_few(65535, 65536));
	ck_assert(!files_are_few(65536, UINT64_MAX));
	ck_assert(!files_are_few(1000, 1000));
	ck_assert(files_are_few(999, 1000));
}
