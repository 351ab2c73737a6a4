/* The old process's side of a hand-over, with a loop turned by hand: when it says that the other one may accept. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/control.h"
#include "daemon/control/handover_msg.h"
#include "fake_loop.h"
#include "fake_worker.h"
#include "fake_workers.h"
#include "unit.h"

#define MS 1000000

static struct loop *loop;
static struct worker *worker;
static struct workers *workers;
static struct control *ctl;
static struct listen_socket port;
static char dir[64], path[80];
static unsigned let_go, handed_over, asked;
static bool is_settled;

static int
on_sockets(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports)
{
	(void)arg;
	(void)services;
	return listen_socket_list_add_copies(ports, &port);
}

static void
on_release(void *arg, uint32_t pid, uint32_t unit_pid)
{
	(void)arg;
	(void)unit_pid;
	ck_assert_uint_eq(pid, (uint32_t)getpid());
	let_go++;
}

static bool
on_settled(void *arg)
{
	(void)arg;
	asked++;
	return is_settled;
}

static void
on_leave_ports(void *arg, const struct listen_socket_list *ports)
{
	(void)arg;
	(void)ports;
	ck_assert_uint_eq(let_go, 1);
	handed_over++;
}

static void
setup(void)
{
	static const struct control_hooks hooks = {
		.sockets = on_sockets, .let_go = on_release, .settled = on_settled, .leave_ports = on_leave_ports
	};
	struct config cfg = { .control_mode = 0600 };

	log_init(LOG_LVL_ERROR);
	strcpy(dir, "/tmp/check_handover.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	snprintf(cfg.control_path, sizeof(cfg.control_path), "%s", path);
	port = listen_socket_of_fd(socket(AF_INET, SOCK_STREAM, 0));
	ck_assert_int_eq(listen(port.fd, 1), 0);
	loop = loop_new();
	worker = fake_worker_new();
	workers = fake_workers_new(loop, worker, 1);
	ck_assert_int_eq(control_new(loop, workers, &cfg, &hooks, stderr, &ctl), 0);
	let_go = handed_over = asked = 0;
	is_settled = false;
}

static void
teardown(void)
{
	char moved[96];

	control_free(ctl);
	fake_worker_free(worker);
	fake_workers_free(workers);
	loop_free(loop);
	listen_socket_close(&port);
	snprintf(moved, sizeof(moved), "%s.%d", path, (int)getpid());
	ck_assert_int_ne(access(moved, F_OK), 0);
	unlink(path);
	rmdir(dir);
}

UNIT_FIXTURE(setup, teardown);

static void
turns(unsigned n)
{
	while (n-- > 0)
		(void)fake_loop_turn(loop);
}

static enum handover_type
hear(int fd, struct handover_rx *rx)
{
	struct handover_msg m;
	int got, rc;

	turns(20);
	rc = handover_recv(fd, rx, &m, &got);
	if (rc != 0)
		return 0;
	if (got >= 0)
		close(got);
	return m.type;
}

/* The other process, up to its READY; it uses the port or does not. */
static int
taker(struct handover_rx *rx, bool uses_port)
{
	const struct handover_msg used = { .type = HANDOVER_USED }, ready = { .type = HANDOVER_READY };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*rx = HANDOVER_RX_NONE;
	strcpy(sun.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(send(fd, HANDOVER_REQUEST " 1\n", sizeof(HANDOVER_REQUEST " 1\n") - 1, 0), 18);
	ck_assert_int_eq(hear(fd, rx), HANDOVER_HELLO);
	ck_assert_int_eq(hear(fd, rx), HANDOVER_SOCKET);
	ck_assert_int_eq(hear(fd, rx), HANDOVER_SOCKET);
	ck_assert_int_eq(hear(fd, rx), HANDOVER_END);
	if (uses_port)
		ck_assert_int_eq(handover_send(fd, &used, -1), 0);
	ck_assert_int_eq(handover_send(fd, &ready, -1), 0);
	turns(20);
	ck_assert_uint_eq(let_go, 1);
	return fd;
}

/* What is being set up may wait for a link that comes by a port which the other process is to accept at. */
START_TEST(connections_in_set_up_come_through_first)
{
	struct handover_rx rx;
	int fd = taker(&rx, true);

	for (unsigned i = 0; i < 10; i++) {
		fake_loop_advance(loop, 10 * MS);
		ck_assert_int_eq(hear(fd, &rx), 0);
	}
	ck_assert_uint_eq(handed_over, 0);
	ck_assert_uint_ge(asked, 10);
	is_settled = true;
	fake_loop_advance(loop, 10 * MS);
	ck_assert_int_eq(hear(fd, &rx), HANDOVER_DONE);
	ck_assert_uint_eq(handed_over, 1);
	close(fd);
}

START_TEST(one_that_never_comes_through_is_waited_for_300_ms)
{
	struct handover_rx rx;
	int fd = taker(&rx, true);

	fake_loop_advance(loop, 299 * MS);
	ck_assert_int_eq(hear(fd, &rx), 0);
	fake_loop_advance(loop, 3 * MS);
	ck_assert_int_eq(hear(fd, &rx), HANDOVER_DONE);
	ck_assert_uint_eq(handed_over, 1);
	close(fd);
}

/* An idle loop wakes for the next look by itself. */
START_TEST(the_loop_wakes_for_it)
{
	struct handover_rx rx;
	int fd = taker(&rx, true);

	ck_assert_int_le(fake_loop_next(loop) - loop_now(loop), 5 * MS);
	close(fd);
}

START_TEST(where_no_port_is_taken_over_nothing_is_waited_for)
{
	struct handover_rx rx;
	int fd = taker(&rx, false);

	ck_assert_int_eq(hear(fd, &rx), HANDOVER_DONE);
	ck_assert_uint_eq(asked, 0);
	close(fd);
}

/* Nobody else would accept any more. */
START_TEST(the_other_process_may_be_gone_meanwhile)
{
	struct handover_rx rx;
	int fd = taker(&rx, true);

	close(fd);
	turns(20);
	ck_assert_uint_eq(handed_over, 0);
	fake_loop_advance(loop, 301 * MS);
	turns(20);
	ck_assert_uint_eq(handed_over, 1);
}

/* It has drained meanwhile, or a signal ends it at once. */
START_LOOP_TEST(a_daemon_that_ends_meanwhile_says_so_before, 0, 2)
{
	struct handover_rx rx;
	int fd = taker(&rx, true);

	is_settled = _i == 0;
	control_free(ctl);
	ctl = NULL;
	ck_assert_uint_eq(handed_over, 1);
	ck_assert_int_eq(hear(fd, &rx), HANDOVER_DONE);
	close(fd);
}
