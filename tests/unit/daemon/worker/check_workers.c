/* Workers in threads: where what is called runs, reloads all or nothing, drains, sockets, what is said once. Engine and
 * devices are the real ones. */
#include "daemon/worker/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "addrs.h"
#include "daemon/config/config_keys.h"
#include "gateway.h"
#include "unit.h"

#define WORKERS 3

static struct workers *ws;
static char said[4096];

UNIT_FIXTURE(gw_setup, gw_stop);

static void
on_failed(void *arg, unsigned nr, int err)
{
	(void)arg;
	ck_abort_msg("worker %u failed: %s", nr, strerror(-err));
}

static int
begin_held(unsigned cnt)
{
	static const struct workers_hooks hooks = { .failed = on_failed };
	FILE *err = fmemopen(said, sizeof(said), "w");

	said[0] = '\0';
	gw.cfg.service_cnt = GW_SERVICES;
	int rc = workers_new(gw.loop, cnt, &gw.cfg, NULL, NULL, 0, &hooks, err, &ws);
	fclose(err);
	if (rc == 0)
		ck_assert_int_eq(workers_start(ws), 0);
	return rc;
}

static int
begin(unsigned cnt)
{
	int rc = begin_held(cnt);

	if (rc == 0)
		workers_release(ws);
	return rc;
}

static int
reload(void)
{
	FILE *err = fmemopen(said, sizeof(said), "w");

	said[0] = '\0';
	int rc = workers_reload(ws, &gw.cfg, err);
	fclose(err);
	return rc;
}

/* -- calls -- */

struct seen {
	pthread_t thread[WORKERS];
	struct worker *worker[WORKERS];
	unsigned cnt;
};

static void
look(struct worker *w, void *arg)
{
	struct seen *seen = arg;

	seen->thread[seen->cnt] = pthread_self();
	seen->worker[seen->cnt++] = w;
}

START_TEST(each_worker_answers_in_a_thread_of_its_own)
{
	struct seen a = { 0 }, b = { 0 };

	ck_assert_int_eq(begin(WORKERS), 0);
	ck_assert_uint_eq(workers_cnt(ws), WORKERS);
	workers_call_all(ws, look, &a);
	workers_call_all(ws, look, &b);
	ck_assert_uint_eq(a.cnt, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++) {
		ck_assert(pthread_equal(a.thread[i], b.thread[i]));
		ck_assert_ptr_eq(a.worker[i], b.worker[i]);
		ck_assert(!pthread_equal(a.thread[i], pthread_self()));
		for (unsigned k = 0; k < i; k++)
			ck_assert(!pthread_equal(a.thread[i], a.thread[k]) && a.worker[i] != a.worker[k]);
	}
	workers_free(ws);
}

START_TEST(automatic_is_as_many_as_processors)
{
	cpu_set_t one;

	gw.cfg.workers = 0;
	ck_assert_uint_ge(workers_wanted(&gw.cfg), 1);
	sched_getaffinity(0, sizeof(one), &one);
	for (int i = 0; CPU_COUNT(&one) > 1; i++)
		CPU_CLR(i, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_uint_eq(workers_wanted(&gw.cfg), 1);
	gw.cfg.workers = 7;
	ck_assert_uint_eq(workers_wanted(&gw.cfg), 7);
}

START_TEST(a_group_belongs_to_the_worker_that_its_id_says)
{
	ck_assert_int_eq(begin(WORKERS), 0);
	for (uint32_t id = 1; id < 10; id++)
		ck_assert_uint_eq(workers_of_group(ws, id), (id - 1) % WORKERS);
	workers_free(ws);
}

/* -- listening -- */

static void
read_accepted(struct worker *w, void *arg)
{
	struct service_info info;
	uint32_t pos = 0;

	ck_assert(worker_service_next(w, &pos, &info));
	*(unsigned *)arg = (unsigned)info.accepted;
}

static unsigned
accepted_by(unsigned nr)
{
	unsigned cnt = 0;

	workers_call(ws, nr, read_accepted, &cnt);
	return cnt;
}

static int
dial(const struct sockaddr_storage *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)to, sizeof(struct sockaddr_in)), 0);
	return fd;
}

START_TEST(connections_go_to_all_workers)
{
	int fds[120];
	unsigned total = 0;

	ck_assert_int_eq(begin(WORKERS), 0);
	for (unsigned i = 0; i < 120; i++)
		fds[i] = dial(&gw.svc[GW_IN].listen);
	for (unsigned round = 0; round < 5000 && total < 120; round++) {
		usleep(1000);
		total = accepted_by(0) + accepted_by(1) + accepted_by(2);
	}
	ck_assert_uint_eq(total, 120);
	for (unsigned i = 0; i < WORKERS; i++)
		ck_assert_uint_gt(accepted_by(i), 0);
	for (unsigned i = 0; i < 120; i++)
		close(fds[i]);
	workers_free(ws);
}

/* A process that takes over is ready, and waits until the other one has come to its end. */
START_TEST(no_worker_accepts_before_the_release)
{
	struct seen seen = { 0 };
	unsigned total = 0;

	ck_assert_int_eq(begin_held(WORKERS), 0);
	int fd = dial(&gw.svc[GW_IN].listen);
	usleep(100000);
	ck_assert_uint_eq(accepted_by(0) + accepted_by(1) + accepted_by(2), 0);
	workers_call_all(ws, look, &seen);
	ck_assert(pthread_equal(seen.thread[0], pthread_self()));
	workers_release(ws);
	for (unsigned round = 0; round < 5000 && total == 0; round++) {
		usleep(1000);
		total = accepted_by(0) + accepted_by(1) + accepted_by(2);
	}
	ck_assert_uint_eq(total, 1);
	close(fd);
	workers_free(ws);
}

/* Nothing was begun, so nothing is lost: here a connection that waits, which another process could serve. */
START_TEST(workers_freed_before_the_release_have_accepted_nothing)
{
	ck_assert_int_eq(begin_held(1), 0);
	int shared = -1, fd = dial(&gw.svc[GW_IN].listen);

	for (int i = 3; i < 200 && shared < 0; i++) {
		struct sockaddr_storage at = { 0 };
		socklen_t len = sizeof(at), on_len = sizeof(int);
		int on = 0;

		if (getsockopt(i, SOL_SOCKET, SO_ACCEPTCONN, &on, &on_len) == 0 && on != 0 &&
		    getsockname(i, (struct sockaddr *)&at, &len) == 0 &&
		    memcmp(&at, &gw.svc[GW_IN].listen, sizeof(struct sockaddr_in)) == 0)
			shared = dup(i);
	}
	ck_assert_int_ge(shared, 0);
	workers_free(ws);
	int got = accept(shared, NULL, NULL);
	ck_assert_int_ge(got, 0);
	close(got);
	close(shared);
	close(fd);
}

START_TEST(a_port_of_another_process_is_in_use_even_when_it_shares_it)
{
	int other = net_listen(&gw.svc[GW_IN].listen, NET_BESIDE, false, NULL);

	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(begin(WORKERS), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(said, "service in: cannot listen on"));
	close(other);
	/* And the other way round: ours is out of reach for who does not share. */
	ck_assert_int_eq(begin(WORKERS), 0);
	ck_assert_int_eq(net_listen(&gw.svc[GW_IN].listen, NET_ALONE, false, NULL), -EADDRINUSE);
	ck_assert_int_eq(net_listen(&gw.svc[GW_IN].listen, NET_FIRST, false, NULL), -EADDRINUSE);
	workers_free(ws);
}

/* -- reload -- */

static void
count_services(struct worker *w, void *arg)
{
	struct service_info info;

	for (uint32_t pos = 0; worker_service_next(w, &pos, &info);)
		++*(unsigned *)arg;
}

static unsigned
services(void)
{
	unsigned cnt = 0;

	workers_call_all(ws, count_services, &cnt);
	return cnt;
}

START_TEST(a_reload_is_all_or_nothing)
{
	ck_assert_int_eq(begin(WORKERS), 0);
	ck_assert_uint_eq(services(), WORKERS * GW_SERVICES);
	/* The last service's new port is taken: nobody has the first one's new settings, or a socket more. */
	int taken = net_listen(&gw.server_addrs[0], NET_ALONE, false, NULL);
	struct sockaddr_storage was = gw.svc[GW_IN].listen;
	gw_free_addr(&gw.svc[GW_IN].listen);
	struct sockaddr_storage wanted = gw.svc[GW_IN].listen, out = gw.svc[GW_OUT].listen;
	socklen_t len = sizeof(gw.svc[GW_OUT].listen);
	if (taken < 0) {
		gw_free_addr(&gw.svc[GW_OUT].listen);
		taken = net_listen(&gw.svc[GW_OUT].listen, NET_ALONE, false, NULL);
	}
	ck_assert_int_ge(taken, 0);
	ck_assert_int_eq(getsockname(taken, (struct sockaddr *)&gw.svc[GW_OUT].listen, &len), 0);
	ck_assert_int_eq(reload(), -EADDRINUSE);
	ck_assert_ptr_nonnull(strstr(said, "service out: cannot listen on"));
	int free_again = net_listen(&wanted, NET_ALONE, false, NULL);
	ck_assert_int_ge(free_again, 0);
	close(free_again);
	close(dial(&was));
	/* As soon as it can be had, all have it. */
	close(taken);
	gw.svc[GW_OUT].listen = out;
	ck_assert_int_eq(reload(), 0);
	ck_assert_int_eq(net_listen(&wanted, NET_ALONE, false, NULL), -EADDRINUSE);
	ck_assert_uint_eq(services(), WORKERS * GW_SERVICES);
	gw.cfg.service_cnt = 1;
	ck_assert_int_eq(reload(), 0);
	ck_assert_uint_eq(services(), WORKERS);
	workers_free(ws);
}

/* -- drain -- */

static void
on_drained(void *arg)
{
	++*(unsigned *)arg;
	loop_stop(gw.loop);
}

START_TEST(a_drain_is_over_when_all_workers_are_done)
{
	unsigned done = 0;

	ck_assert_int_eq(begin(WORKERS), 0);
	workers_drain(ws, 60000, on_drained, &done);
	ck_assert_int_eq(loop_run(gw.loop), 0);
	ck_assert_uint_eq(done, 1);
	ck_assert_int_eq(reload(), -ESHUTDOWN);
	workers_free(ws);
	ck_assert_uint_eq(done, 1);
}

START_TEST(their_end_gives_no_notice_of_a_drain)
{
	unsigned done = 0;

	ck_assert_int_eq(begin(WORKERS), 0);
	workers_drain(ws, 60000, on_drained, &done);
	workers_free(ws);
	ck_assert_uint_eq(done, 0);
}
