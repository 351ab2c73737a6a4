/* The daemon when memory runs out: each allocation in turn of its start, of a reload, of connections and of reading a
 * configuration, with the real engine and device. The daemon reports it and continues; other connections do not notice. */
#define GATEWAY_REAL
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "daemon/config/config_int.h"
#include "daemon/control/control.h"
#include "daemon/handover/inherited.h"
#include "daemon/control/handover_msg.h"
#include "daemon/handover/takeover.h"
#include "fake_workers.h"
#include "gateway.h"
#include "open_fds.h"
#include "sweep.h"
#include "unit.h"

#define PATIENCE_MS 60000

static void
begin(void)
{
	gw_addrs_taken = 0; /* those of the run before are free again */
	gw_setup();
	gw.cfg.smcr.clc_ms = gw.cfg.smcr.llc_ms = gw.cfg.smcr.confirm_link_ms = 1500;
	gw.cfg.smcr.add_link_ms = 50;
	gw.device.siw.connect_ms = 1500;
	gw.svc[GW_IN].connect_ms = gw.svc[GW_OUT].connect_ms = 2500;
}

/* A connection that gets through, or is refused by an end that can be seen. */
static bool
one_more(void)
{
	int c = gw_client(), s = -1;
	int64_t give_up = loop_now(gw.loop) + PATIENCE_MS * MS;
	char text[64] = "", waste[64] = "";
	bool through = false, over = false;

	gw_say(c, "more");
	while (!through && !over) {
		ck_assert(loop_now(gw.loop) < give_up);
		gw_once();
		if (s < 0)
			s = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK);
		if (s >= 0)
			over = gw_read(s, text, sizeof(text)) != GW_OPEN;
		over = gw_read(c, waste, sizeof(waste)) != GW_OPEN || over;
		through = strcmp(text, "more") == 0;
	}
	close(c);
	if (s >= 0)
		close(s);
	return through;
}

static void
strays(void)
{
	int s;

	while ((s = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		close(s);
}

START_TEST(it_starts_or_says_why_not)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		begin();
		gw.cfg.service_cnt = GW_SERVICES;
		sweep_arm(&s);
		int rc = gw_try_start(NULL, 0);
		if (!sweep_over(&s))
			ck_assert_int_eq(rc, 0);
		if (rc < 0) {
			ck_assert_str_ne(gw.err, "");
			ck_assert_ptr_null(gw.w);
			ck_assert_int_eq(gw_try_start(NULL, 0), 0);
		}
		gw_teardown();
	}
}

START_TEST(the_first_connection_gets_through_or_ends)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		begin();
		gw_start();
		sweep_arm(&s);
		bool through = one_more();
		if (!sweep_over(&s))
			ck_assert(through);
		gw_run_ms(20);
		strays();
		gw_connect();
		gw_carries_both_ways();
		gw_teardown();
	}
}

START_TEST(another_connection_does_not_notice)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		begin();
		gw_begin();
		sweep_arm(&s);
		(void)one_more();
		(void)sweep_over(&s);
		gw_carries_both_ways();
		gw_run_ms(20);
		strays();
		ck_assert(one_more());
		gw_teardown();
	}
}

START_TEST(a_reload_happens_or_leaves_all_as_it_was)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		begin();
		gw_begin();
		gw.svc[GW_IN].idle_ms = 60000;
		gw_free_addr(&gw.svc[GW_IN].listen);
		sweep_arm(&s);
		int rc = gw_reload();
		if (!sweep_over(&s))
			ck_assert_int_eq(rc, 0);
		if (rc < 0)
			ck_assert_str_ne(gw.err, "");
		gw_carries_both_ways();
		ck_assert_uint_eq(gw_info(GW_IN).cfg->idle_ms, rc == 0 ? 60000 : 0);
		if (rc < 0)
			ck_assert_int_eq(gw_reload(), 0);
		ck_assert(one_more());
		gw_teardown();
	}
}

/* -- the control socket -- */

static int
no_reload(void *arg, void (*done)(void *, int, const char *), void *done_arg)
{
	(void)arg;
	(void)done;
	(void)done_arg;
	return -EBUSY;
}

static void
no_drain(void *arg, bool then_exit, uint32_t limit_ms)
{
	(void)arg;
	(void)limit_ms;
	(void)then_exit;
}

static struct workers *workers;

static int
try_control(const char *path, struct control **out)
{
	static const struct control_hooks hooks = { .reload = no_reload, .drain = no_drain };
	FILE *err = fmemopen(gw.err, sizeof(gw.err), "w");

	gw.err[0] = '\0';
	gw.cfg.control_mode = 0600;
	snprintf(gw.cfg.control_path, sizeof(gw.cfg.control_path), "%s", path);
	int rc = control_new(gw.loop, workers, &gw.cfg, &hooks, err, out);
	fclose(err);
	return rc;
}

/* An answer, or the end of the connection. */
static bool
asked(const char *path, const char *question)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int64_t give_up = loop_now(gw.loop) + PATIENCE_MS * MS;
	char answer[65536];
	ssize_t n = -1;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	gw_say(fd, question);
	while ((n = recv(fd, answer, sizeof(answer), 0)) < 0 && errno == EAGAIN) {
		ck_assert(loop_now(gw.loop) < give_up);
		gw_once();
	}
	close(fd);
	gw_once();
	return n > 0;
}

START_LOOP_TEST(control_clients_are_served_or_turned_away, 0, 2)
{
	static const char *const questions[] = { "{\"command\":\"status\"}\n", "{\"command\":\"trace\"}\n" };
	char dir[] = "/tmp/check_daemon_memory.XXXXXX", path[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		struct control *ctl = NULL;
		bool answered = false;

		begin();
		gw_begin();
		workers = fake_workers_new(gw.loop, gw.w, 1);
		sweep_arm(&s);
		int rc = try_control(path, &ctl);
		if (rc == 0)
			answered = asked(path, questions[_i]);
		if (!sweep_over(&s))
			ck_assert(rc == 0 && answered);
		ck_assert(rc == 0 || (gw.err[0] != '\0' && ctl == NULL));
		if (rc != 0)
			ck_assert_int_eq(try_control(path, &ctl), 0);
		ck_assert(asked(path, questions[_i]));
		gw_carries_both_ways();
		control_free(ctl);
		fake_workers_free(workers);
		gw_teardown();
	}
	unlink(path);
	rmdir(dir);
}

/* -- listening sockets of a process before this one -- */

START_TEST(sockets_that_are_passed_are_taken_or_closed)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		struct listen_socket_list passed = { 0 };
		struct inherited early = { 0 };
		FILE *err = fmemopen(gw.err, sizeof(gw.err), "w");

		begin();
		gw.err[0] = '\0';
		int fd = gw_listen(&gw.svc[GW_IN].listen);
		const unsigned before = open_fds();
		for (unsigned i = 0; i < 3; i++) {
			const struct listen_socket l = listen_socket_of_fd(dup(fd));

			ck_assert_int_eq(listen_socket_list_add(&passed, &l), 0);
		}
		sweep_arm(&s);
		int rc = inherited_open(&early, &gw.cfg, 2, NULL, &passed, err);
		if (!sweep_over(&s))
			ck_assert_int_eq(rc, 0);
		fclose(err);
		ck_assert(rc == 0 || gw.err[0] != '\0');
		inherited_fini(&early);
		listen_socket_list_fini(&passed);
		ck_assert_uint_eq(open_fds(), before);
		close(fd);
		gw_teardown();
	}
}

static int
listen_at(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	return fd;
}

/* What a process says that runs at this control socket: the socket, that of a service with its file, the port of a device. */
static void
be_taken_over_from(int control, const char *path, int service, const char *file, int port)
{
	const struct handover_msg hello = { .type = HANDOVER_HELLO, .cnt = 3, .pid = (uint32_t)getpid() },
	                          end = { .type = HANDOVER_END };
	struct handover_msg socks[3] = { { .kind = HANDOVER_CONTROL }, { .kind = HANDOVER_SERVICE },
		{ .kind = HANDOVER_MPA } };
	const int fds[3] = { control, service, port };
	const char *const paths[3] = { path, file, NULL };
	struct pollfd come = { .fd = control, .events = POLLIN }; /* who takes it over has made it non-blocking */
	char request[64];

	(void)poll(&come, 1, -1);
	int s = accept(control, NULL, NULL), rc = handover_send(s, &hello, -1);
	for (unsigned i = 0; i < 3 && rc == 0; i++) {
		struct stat st = { 0 };

		socks[i].type = HANDOVER_SOCKET;
		if (paths[i] != NULL && lstat(paths[i], &st) == 0)
			strcpy(socks[i].text, paths[i]);
		socks[i].dev = st.st_dev;
		socks[i].ino = st.st_ino;
		rc = handover_send(s, &socks[i], fds[i]);
	}
	if (rc == 0)
		rc = handover_send(s, &end, -1);
	while (rc == 0 && recv(s, request, sizeof(request), 0) > 0)
		;
	_exit(0); /* it may have given up */
}

START_TEST(a_process_takes_over_or_has_taken_nothing)
{
	char dir[] = "/tmp/check_daemon_memory.XXXXXX", path[64], file[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	snprintf(file, sizeof(file), "%s/service", dir);
	begin();
	const int control = listen_at(path), service = listen_at(file), port = gw_listen(&gw.svc[GW_IN].listen);
	const unsigned before = open_fds();
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		FILE *err = fmemopen(gw.err, sizeof(gw.err), "w");
		struct takeover t;
		int status;

		gw.err[0] = '\0';
		pid_t old = fork();
		if (old == 0)
			be_taken_over_from(control, path, service, file, port);
		sweep_arm(&s);
		int rc = takeover_begin(&t, path, err);
		fflush(err);
		ck_assert(rc == 0 || (gw.err[0] != '\0' && t.sock < 0));
		if (rc == 0)
			rc = takeover_offer_ports(&t, &gw.cfg);
		if (!sweep_over(&s))
			ck_assert_msg(
			    rc == 0 && t.control_cnt == 1 && t.services.cnt == 1 && t.mpa.cnt == 1, "%s", gw.err);
		fclose(err);
		if (rc == 0)
			takeover_settle_ports(&t, &gw.cfg);
		takeover_fini(&t);
		ck_assert_int_eq(waitpid(old, &status, 0), old);
		ck_assert_int_eq(status, 0);
		ck_assert_uint_eq(open_fds(), before);
	}
	ck_assert(access(path, F_OK) == 0 && access(file, F_OK) == 0);
	close(control);
	close(service);
	close(port);
	gw_teardown();
	unlink(path);
	unlink(file);
	rmdir(dir);
}

/* -- reading a configuration -- */

static const char text[] =
    "ingress = ( { name = \"in\"; listen = \"127.0.0.1:15432\"; to = \"127.0.0.2:15432\";\n"
    "    allow = [ \"127.0.0.0/8\", \"::1\" ]; } );\n"
    "egress = ( { name = \"out\"; listen = \"127.0.0.2:15432\"; to = \"127.0.0.3:5432\"; } );\n";

START_TEST(a_configuration_is_read_or_refused)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		struct config *cfg = NULL;
		char msgs[1024] = "";
		FILE *err = fmemopen(msgs, sizeof(msgs), "w");

		sweep_arm(&s);
		int rc = config_parse("test.conf", text, strlen(text), CONFIG_NO_LOOKUP, err, &cfg);
		fclose(err);
		if (sweep_over(&s)) {
			ck_assert_int_lt(rc, 0);
			ck_assert_ptr_nonnull(strstr(msgs, "memory"));
			ck_assert_ptr_null(cfg);
		} else {
			ck_assert_msg(rc == 0, "%s", msgs);
		}
		config_free(cfg);
	}
	ck_assert_uint_gt(s.nth, 4);
}
