/* The daemon's life with a simulated worker and control socket: notifications of systemd, log and control
 * client, and its end. The daemon runs in a child process; this process plays systemd. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/confine/confine.h"
#include "daemon/control/control.h"
#include "daemon/control/report.h"
#include "daemon/metrics/metrics.h"
#include "daemon/smcrd.h"
#include "daemon/worker/workers.h"
#include "unit.h"

/* Stand-ins ignore most of what they are given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* -- the worker: refuses services named "refused"; never drains with one named "busy", in vain with "slow" -- */

struct worker {
	const struct config *cfg;
	void (*drained)(void *arg);
	void *drained_arg;
	struct loop *loop;
	bool empty;
};

static struct worker the_worker;

int
worker_new(struct loop *loop, const struct worker_place *place, const struct config *cfg,
    const struct tcp_option *option, struct listen_socket *socks, unsigned sock_cnt, FILE *err, struct worker **out)
{
	if (config_find_service(cfg, "refused") != NULL) {
		fprintf(err, "cannot listen\n");
		return -EADDRINUSE;
	}
	unsigned passed = 0;
	for (unsigned i = 0; i < sock_cnt; i++)
		passed += socks[i].fd >= 0;
	log_msg(LOG_LVL_NOTICE, "worker fds=%u", passed);
	the_worker.cfg = cfg;
	the_worker.loop = loop;
	*out = &the_worker;
	return 0;
}

int
worker_prepare(struct worker *w, const struct config *next, struct listen_socket *socks, unsigned sock_cnt, FILE *err)
{
	if (config_find_service(next, "refused") != NULL) {
		fprintf(err, "cannot listen\n");
		return -EADDRINUSE;
	}
	return 0;
}

int
worker_share(const struct worker *w, struct listen_socket_list *socks)
{
	return 0;
}

void
worker_commit(struct worker *w, const struct config *next, FILE *err)
{
	log_msg(LOG_LVL_NOTICE, "worker reload services=%u", next->service_cnt);
	w->cfg = next;
}

void
worker_abort(struct worker *w, void *unused)
{
}

void
worker_use_tls(struct worker *w, void *tls_ctx)
{
}

void
worker_count_tls_refused(struct worker *w, void *unused)
{
}

static int64_t
say_drained(void *arg, int64_t now_ns)
{
	struct worker *w = arg;

	loop_del_turn(w->loop, say_drained, w);
	w->empty = config_find_service(w->cfg, "slow") == NULL;
	w->drained(w->drained_arg);
	return INT64_MAX;
}

void
worker_drain(struct worker *w, uint32_t limit_ms, void (*done)(void *arg), void *arg)
{
	w->drained = done;
	w->drained_arg = arg;
	if (done != NULL && config_find_service(w->cfg, "busy") == NULL)
		loop_add_turn(w->loop, say_drained, w);
}

void
worker_limit_drain(struct worker *w, void *limit_ms)
{
	log_msg(LOG_LVL_NOTICE, "worker limit_ms=%u", *(uint32_t *)limit_ms);
}

int
worker_undrain(struct worker *w)
{
	loop_del_turn(w->loop, say_drained, w);
	log_msg(LOG_LVL_NOTICE, "worker undrained");
	return config_find_service(w->cfg, "shut") != NULL ? -EADDRINUSE : 0;
}

void
worker_follow_targets(struct worker *w, void *unused)
{
	(void)w;
}

int64_t
report_wall_ms(void)
{
	return 1;
}

void
worker_inherit_health(struct worker *w, void *known)
{
	(void)w;
	(void)known;
}

void
worker_targets_changed(struct worker *w, void *service)
{
}

void
worker_free(struct worker *w)
{
	log_msg(LOG_LVL_NOTICE, "worker freed");
}

/* One listening socket, and one port of a device. */
static int
add_socket(struct listen_socket_list *out)
{
	struct listen_socket l = listen_socket_of_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int rc = listen(l.fd, 1) == 0 ? listen_socket_list_add_copies(out, &l) : -errno;

	listen_socket_close(&l);
	return rc;
}

int
worker_add_sockets(struct worker *w, struct listen_socket_list *out)
{
	return add_socket(out);
}

int
worker_add_ports(struct worker *w, struct listen_socket_list *out)
{
	return add_socket(out);
}

void
worker_drop_port(struct worker *w, void *port)
{
	log_msg(LOG_LVL_NOTICE, "worker drops port");
}

void
worker_lend_sockets(struct worker *w, void *lent)
{
	log_msg(LOG_LVL_NOTICE, "worker files %s", *(bool *)lent ? "stay" : "go");
}

void
worker_release_sockets(struct worker *w, void *unused)
{
	log_msg(LOG_LVL_NOTICE, "worker lets go");
}

struct smcr *
worker_engine(struct worker *w)
{
	return NULL;
}

void
worker_stats(const struct worker *w, struct worker_stats *out)
{
	*out = (struct worker_stats){ .sessions_opened = 7, .sessions_closed = w->empty ? 7 : 4 };
}

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *info)
{
	return false;
}

void
smcr_conn_info(const struct smcr_conn *conn, struct smcr_conn_info *info)
{
}

bool
smcr_group_next(const struct smcr *eng, uint32_t *pos, struct smcr_group_info *info)
{
	return (*pos)++ < 2;
}

/* -- the control socket: SIGUSR1 is a client's "reload", SIGUSR2 its "drain", SIGWINCH its "undrain", SIGURG its "log-level
 * debug", and then "default"; SIGPWR is one that has taken over -- */

static struct control_hooks hooks;

static void
reloaded(void *arg, int rc, const char *msgs)
{
	log_msg(LOG_LVL_NOTICE, "client told rc=%d msgs=%.*s", rc, (int)strcspn(msgs, "\n"), msgs);
}

static void
on_usr1(void *arg)
{
	int rc = hooks.reload(hooks.arg, reloaded, arg);

	if (rc != 0)
		log_msg(LOG_LVL_NOTICE, "client refused rc=%d", rc);
}

static void
on_usr2(void *arg)
{
	hooks.drain(hooks.arg, config_find_service(the_worker.cfg, "exits") != NULL, 0);
}

static void
on_winch(void *arg)
{
	log_msg(LOG_LVL_NOTICE, "undrain rc=%d", hooks.undrain(hooks.arg));
}

static void
on_urg(void *arg)
{
	struct control_level l = hooks.log_level(hooks.arg, CONTROL_LEVEL_ASK);

	l = hooks.log_level(hooks.arg, l.set ? CONTROL_LEVEL_RESET : LOG_LVL_DEBUG);
	log_msg(LOG_LVL_ERROR, "level now=%d configured=%d set=%d", l.now, l.configured, l.set);
	log_msg(LOG_LVL_DEBUG, "level is debug");
}

static void
on_pwr(void *arg)
{
	struct listen_socket_list services = { 0 }, ports = { 0 };

	ck_assert_int_eq(hooks.sockets(hooks.arg, &services, &ports), 0);
	ck_assert_uint_eq(services.cnt, 1);
	ck_assert_uint_eq(ports.cnt, 1);
	hooks.let_go(hooks.arg, 4711, 4711);
	/* No service listens again here, however long links are still waited for. */
	ck_assert_int_eq(hooks.reload(hooks.arg, NULL, NULL), -EBUSY);
	ck_assert_int_eq(hooks.undrain(hooks.arg), -EALREADY);
	hooks.leave_ports(hooks.arg, &ports);
	listen_socket_list_fini(&services);
	listen_socket_list_fini(&ports);
}

void
control_adopt(struct control *ctl)
{
}

void
control_set_admins(struct control *ctl, const struct config *cfg)
{
}

void
control_stop_handover(struct control *ctl)
{
	log_msg(LOG_LVL_NOTICE, "control stops a hand-over");
}

int
control_new(struct loop *loop, struct workers *ws, const struct config *cfg, const struct control_hooks *h, FILE *err,
    struct control **out)
{
	if (config_find_service(cfg, "nocontrol") != NULL) {
		fprintf(err, "no control socket\n");
		return -EACCES;
	}
	hooks = *h;
	ck_assert_int_eq(loop_signal(loop, SIGUSR1, on_usr1, NULL), 0);
	ck_assert_int_eq(loop_signal(loop, SIGUSR2, on_usr2, NULL), 0);
	ck_assert_int_eq(loop_signal(loop, SIGWINCH, on_winch, NULL), 0);
	ck_assert_int_eq(loop_signal(loop, SIGURG, on_urg, NULL), 0);
	ck_assert_int_eq(loop_signal(loop, SIGPWR, on_pwr, NULL), 0);
	*out = NULL;
	return 0;
}

const struct control_stats *
control_counters(const struct control *ctl)
{
	static const struct control_stats none;

	return &none;
}

int
metrics_listen(const struct config *cfg, struct listen_socket_list *passed, struct listen_socket *out, FILE *err)
{
	return 0;
}

int
metrics_new(struct loop *loop, struct workers *ws, const struct config *cfg, const struct listen_socket *listen,
    const struct control_stats *control, const struct report_process *process, struct event_history *news, FILE *err,
    struct metrics **out)
{
	return 0;
}

int
metrics_start(struct metrics *m)
{
	return 0;
}

void
metrics_reload(struct metrics *m, const struct config *cfg)
{
}

void
metrics_free(struct metrics *m)
{
}

void
control_free(struct control *c)
{
}

/* -- systemd -- */

#define WAIT_MS 20000
#define TEXT_MAX 65536

static char conf[64], control[64], logfile[64];
static pid_t child;
static int notify_fd;
static char heard[TEXT_MAX]; /* all notifications, in order */

static void
write_file(const char *text)
{
	FILE *f = fopen(conf, "w");

	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	if (strstr(text, "control =") == NULL)
		fprintf(f, "\ncontrol = { path = \"%s\"; };\n", control);
	ck_assert_int_eq(fclose(f), 0);
}

static void
setup(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);

	snprintf(conf, sizeof(conf), "/tmp/check_smcrd.%d.conf", (int)getpid());
	snprintf(control, sizeof(control), "/tmp/check_smcrd.%d.ctl", (int)getpid());
	snprintf(logfile, sizeof(logfile), "/tmp/check_smcrd.%d.log", (int)getpid());
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(notify_fd, 0);
	/* An address of the kernel's choice in the abstract name space. */
	ck_assert_int_eq(bind(notify_fd, (struct sockaddr *)&un, len), 0);
	len = sizeof(un);
	ck_assert_int_eq(getsockname(notify_fd, (struct sockaddr *)&un, &len), 0);
	un.sun_path[0] = '@';
	un.sun_path[len - offsetof(struct sockaddr_un, sun_path)] = '\0';
	setenv("NOTIFY_SOCKET", un.sun_path, 1);
	setenv(CONFINE_TEST_ENV, "kill", 1);
	heard[0] = '\0';
	child = 0;
}

static void
teardown(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	close(notify_fd);
	unlink(conf);
	unlink(logfile);
}

static void
run_daemon(int argc, char **argv, int passed_fd)
{
	char pid[16];

	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child != 0)
		return;
	int fd = open(logfile, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(99);
	if (passed_fd >= 0) {
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "1", 1);
		if (dup2(passed_fd, 3) < 0)
			_exit(99);
	}
	int rc = smcrd_main(argc, argv);
	fflush(NULL);
	_exit(rc);
}

static void
start_daemon(const char *const *args)
{
	char *argv[16] = { (char *)"smcrd", (char *)"-f", conf };
	int argc = 3;

	for (; args != NULL && *args != NULL; args++)
		argv[argc++] = (char *)*args;
	run_daemon(argc, argv, -1);
}

/* What has come, or after a wait the next: the daemon does not wait for room in the socket, which takes ten messages. */
static void
listen_once(int flags)
{
	size_t len = strlen(heard);
	ssize_t n = recv(notify_fd, heard + len, sizeof(heard) - len - 2, flags);

	if (n > 0)
		memcpy(heard + len + n, "\n", 2);
	else
		ck_assert((flags & MSG_DONTWAIT) != 0);
}

/* Waits until `text` has been heard `times` times. */
static void
hear(const char *text, int times)
{
	for (;;) {
		struct pollfd p = { .fd = notify_fd, .events = POLLIN };
		int cnt = 0;

		for (const char *at = heard; (at = strstr(at, text)) != NULL; at++)
			cnt++;
		if (cnt >= times)
			return;
		ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "\"%s\" not heard %d times in:\n%s", text, times, heard);
		listen_once(0);
	}
}

static int
exit_code(void)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	child = 0;
	ck_assert_msg(WIFEXITED(status), "status %x", (unsigned)status);
	return WEXITSTATUS(status);
}

static const char *
log_text(void)
{
	static char text[TEXT_MAX];
	FILE *f = fopen(logfile, "r");

	ck_assert_ptr_nonnull(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

/* Lines are written by a thread of the log's own, so one may come behind what systemd or a client has heard. */
static void
in_log(const char *text)
{
	for (int ms = 0; strstr(log_text(), text) == NULL; ms += 10) {
		ck_assert_msg(ms < WAIT_MS, "\"%s\" not in:\n%s", text, log_text());
		listen_once(MSG_DONTWAIT);
		usleep(10000);
	}
}

#define SVC(name, port) "{ name = \"" name "\"; listen = \"127.0.0.1:1000" port "\"; to = \"127.0.0.1:1\"; }"

/* Starts with one egress service of this name. */
static void
start_ready(const char *service, const char *const *args)
{
	char text[256];

	snprintf(text, sizeof(text),
	    "egress = ( { name = \"%s\"; listen = \"127.0.0.1:10002\"; to = \"127.0.0.1:1\"; } );", service);
	write_file(text);
	start_daemon(args);
	hear("READY=1", 1);
}

static void
end_daemon(int signo)
{
	kill(child, signo);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(starts_and_ends)
{
	start_ready("a", NULL);
	hear("STATUS=3 connections, 2 link groups\n", 1);
	kill(child, SIGTERM);
	hear("STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000", 1);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
	in_log("draining: connections=3");
	in_log("ends with the last connection: limit_ms=30000");
	in_log("drained");
	in_log("worker freed");
	ck_assert_ptr_null(strstr(heard, "RELOADING"));
}

/* It drains, and says nothing more to systemd than who is the service now. */
START_TEST(a_successor_speaks_for_the_service)
{
	start_ready("a", NULL);
	hear("STATUS=3 connections, 2 link groups\n", 1);
	kill(child, SIGPWR);
	hear("MAINPID=4711", 1);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
	in_log("worker lets go");
	in_log("worker drops port");
	in_log("draining: connections=3");
	ck_assert_ptr_null(strstr(log_text(), "limit_ms"));
	ck_assert_ptr_null(strstr(heard, "STOPPING"));
	ck_assert_ptr_null(strstr(log_text(), "worker files"));
}

/* Nobody accepts here any more. */
START_TEST(a_drain_for_a_successor_is_not_taken_back)
{
	start_ready("busy", NULL);
	kill(child, SIGPWR);
	hear("MAINPID=4711", 1);
	kill(child, SIGWINCH);
	in_log("undrain rc=-114"); /* EALREADY */
	kill(child, SIGUSR1);
	in_log("client refused rc=-16");
	kill(child, SIGTERM);
	in_log("worker limit_ms=30000");
	end_daemon(SIGTERM);
}

/* What systemd keeps is what there is, after the start and after each reload; files of what it keeps stay at the end. */
START_TEST(systemd_keeps_the_listening_sockets)
{
	start_ready("a", NULL);
	hear("FDSTOREREMOVE=1\nFDNAME=smcrd-listen\n", 1);
	hear("FDSTORE=1\nFDNAME=smcrd-listen\n", 1);
	kill(child, SIGHUP);
	hear("FDSTOREREMOVE=1", 2);
	hear("FDSTORE=1\n", 2);
	end_daemon(SIGTERM);
	in_log("control stops a hand-over");
	in_log("worker files stay");
}

/* A client's drain refuses at once, SIGTERM may be half a restart. */
START_TEST(a_drain_by_a_client_leaves_systemd_nothing)
{
	start_ready("exits", NULL);
	hear("FDSTORE=1\n", 1);
	kill(child, SIGUSR2);
	hear("FDSTOREREMOVE=1", 2);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
	in_log("worker files go");
}

START_TEST(says_when_a_drain_was_cut_off)
{
	start_ready("slow", NULL);
	end_daemon(SIGTERM);
	in_log("warning: the time for draining has expired, connections are reset: connections=3");
	ck_assert_ptr_null(strstr(log_text(), "drained"));
}

START_TEST(second_signal_ends_at_once)
{
	start_ready("busy", NULL);
	kill(child, SIGTERM);
	hear("STATUS=Draining: 3 connections, 2 link groups", 1);
	kill(child, SIGHUP);
	in_log("no reload while draining");
	kill(child, SIGUSR1);
	in_log("client refused rc=-16");
	end_daemon(SIGINT);
	in_log("ending at once");
}

/* "smcrctl drain" and then "systemctl stop": the connections keep their time. */
START_TEST(the_first_signal_does_not_cut_a_clients_drain_short)
{
	start_ready("busy", NULL);
	kill(child, SIGUSR2);
	hear("STATUS=Draining: 3 connections, 2 link groups", 1);
	kill(child, SIGTERM);
	in_log("ends with the last connection: limit_ms=30000");
	ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
	end_daemon(SIGTERM);
	in_log("ending at once");
}

/* systemd is told of the end only when it is one: from STOPPING=1 there is no way back. */
START_TEST(a_clients_drain_is_taken_back)
{
	start_ready("busy", NULL);
	kill(child, SIGWINCH);
	in_log("undrain rc=-2"); /* ENOENT */
	kill(child, SIGUSR2);
	hear("STATUS=Draining: 3 connections, 2 link groups", 1);
	kill(child, SIGWINCH);
	in_log("undrain rc=0");
	in_log("worker undrained");
	in_log("drains no longer: connections=3");
	hear("STATUS=3 connections, 2 link groups\n", 2);
	ck_assert_ptr_null(strstr(heard, "STOPPING"));
	kill(child, SIGHUP);
	hear("READY=1", 3);
	kill(child, SIGTERM);
	hear("STOPPING=1", 1);
	kill(child, SIGWINCH);
	in_log("undrain rc=-16"); /* EBUSY */
	end_daemon(SIGINT);
}

START_TEST(an_idle_daemon_stays_when_a_client_drains_it)
{
	start_ready("a", NULL);
	kill(child, SIGUSR2);
	hear("STATUS=Draining: 3 connections, 2 link groups", 1);
	kill(child, SIGWINCH);
	in_log("undrain rc=0");
	ck_assert_ptr_null(strstr(log_text(), "notice: drained"));
	end_daemon(SIGTERM);
	in_log("drained");
}

START_TEST(a_clients_drain_ends_with_a_word_to_systemd)
{
	start_ready("exits", NULL);
	kill(child, SIGUSR2);
	hear("STOPPING=1", 1);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
	in_log("drained");
}

START_TEST(the_level_of_the_log_stays_as_set)
{
	start_ready("a", NULL);
	kill(child, SIGURG);
	in_log("level now=4 configured=2 set=1");
	in_log("level is debug");
	kill(child, SIGHUP);
	hear("READY=1", 2);
	in_log("the level of the log stays as it was set");
	kill(child, SIGURG);
	in_log("level now=2 configured=2 set=0");
	end_daemon(SIGTERM);
}

START_TEST(reloads)
{
	static const char *const args[] = { "-d", "info", NULL };

	start_ready("a", args);
	write_file("control = { path = \"/x\"; };\negress = ( " SVC("a", "3") "," SVC("b", "4") " );");
	kill(child, SIGHUP);
	hear("READY=1", 2);
	ck_assert_ptr_nonnull(strstr(heard, "RELOADING=1\nMONOTONIC_USEC="));
	ck_assert_ptr_nonnull(strstr(strstr(heard, "RELOADING=1"), "READY=1"));
	in_log("worker reload services=2");
	in_log("info: service a changed: listen");
	in_log("info: service b added");
	in_log("warning: control.path cannot be changed by a reload");
	ck_assert_ptr_null(strstr(log_text(), "warning: warning:"));
	in_log("configuration reloaded");
	in_log("added=1 changed=1 removed=0 settings=0 restart_needed_for=1");
	end_daemon(SIGTERM);
}

static void
fail_reload(const char *text, const char *why)
{
	char status[256];

	start_ready("a", NULL);
	write_file(text);
	kill(child, SIGHUP);
	hear("READY=1", 2);
	snprintf(status, sizeof(status),
	    "STATUS=3 connections, 2 link groups; "
	    "reload failed, old configuration in force: %s",
	    why);
	hear(status, 1);
	in_log("reload failed, the old configuration stays in force");
	in_log(why);
	ck_assert_ptr_null(strstr(log_text(), "configuration reloaded"));
	ck_assert_ptr_null(strstr(log_text(), "service refused added"));
	/* and it can be mended */
	write_file("egress = ( " SVC("c", "2") " );");
	kill(child, SIGHUP);
	hear("READY=1", 3);
	in_log("configuration reloaded");
	in_log("added=1 changed=0 removed=1 settings=0 restart_needed_for=0");
	end_daemon(SIGTERM);
}

START_TEST(keeps_the_old_configuration_when_the_file_is_wrong)
{
	char why[128];

	snprintf(why, sizeof(why), "%s:2: unknown key nope", conf);
	fail_reload("log_level = \"debug\";\nnope = 1;", why);
}

START_TEST(keeps_the_old_configuration_when_the_worker_refuses)
{
	fail_reload("egress = ( " SVC("refused", "2") " );", "cannot listen");
}

START_TEST(tells_the_control_client)
{
	char why[128];

	start_ready("a", NULL);
	write_file("nope = 1;");
	kill(child, SIGUSR1);
	snprintf(why, sizeof(why), "client told rc=-22 msgs=%s:1: unknown key nope", conf);
	in_log(why);
	write_file("egress = ( " SVC("b", "2") " );");
	kill(child, SIGUSR1);
	in_log("client told rc=0 msgs=service b added");
	kill(child, SIGTERM);
	hear("STOPPING=1", 1);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
}

START_TEST(what_found_no_room_is_said_at_the_end)
{
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	start_ready("a", NULL);
	ck_assert_int_eq(getsockname(notify_fd, (struct sockaddr *)&sun, &len), 0);
	while (sendto(fd, "full", 4, 0, (struct sockaddr *)&sun, len) == 4)
		;
	ck_assert_int_eq(errno, EAGAIN);
	close(fd);
	kill(child, SIGTERM);
	in_log("drained");
	hear("STOPPING=1", 1);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_OK);
}

START_TEST(feeds_the_watchdog)
{
	write_file("");
	setenv("WATCHDOG_USEC", "100000", 1);
	unsetenv("WATCHDOG_PID");
	start_daemon(NULL);
	hear("WATCHDOG=1", 3);
	end_daemon(SIGTERM);
	in_log("no ingress and no egress");
}

START_LOOP_TEST(does_not_say_ready_when_the_start_fails, 0, 2)
{
	write_file(_i == 0 ? "egress = ( " SVC("refused", "2") " );" : "egress = ( " SVC("nocontrol", "2") " );");
	start_daemon(NULL);
	ck_assert_int_eq(exit_code(), SMCRD_EXIT_FAILURE);
	in_log(_i == 0 ? "error: cannot listen" : "error: no control socket");
	ck_assert_int_eq(recv(notify_fd, heard, sizeof(heard), MSG_DONTWAIT), -1);
	if (_i == 1)
		in_log("worker freed");
}

static const struct {
	const char *text;
	const char *args[4];
	int code;
	const char *says;
} runs[] = {
	{ "nope = 1;", { NULL }, SMCRD_EXIT_CONFIG, ":1: unknown key nope" },
	{ "nope = 1;", { NULL }, SMCRD_EXIT_CONFIG, " error: /tmp/check_smcrd." },
	{ "nope = 1;", { "-d", "debug", NULL }, SMCRD_EXIT_CONFIG, " error: /tmp/check_smcrd." },
	{ "nope = 1;", { "-t", NULL }, SMCRD_EXIT_CONFIG, ":1: unknown key nope" },
	{ "nope = 1;", { "-T", NULL }, SMCRD_EXIT_CONFIG, ":1: unknown key nope" },
	{ "egress = ( " SVC("a", "2") " );", { "-t", NULL }, SMCRD_EXIT_OK, ": ok, 1 service, 1 device entry\n" },
	{ "", { "-t", NULL }, SMCRD_EXIT_OK, ": warning: no ingress and no egress: nothing to do\n" },
	{ "", { "-T", NULL }, SMCRD_EXIT_OK, "drain_timeout = \"30s\";" },
	{ "", { "-x", NULL }, SMCRD_EXIT_USAGE, "smcrd --help" },
	{ "", { "-f", NULL }, SMCRD_EXIT_USAGE, "smcrd --help" },
	{ "", { "-d", "loud", NULL }, SMCRD_EXIT_USAGE, "unknown log level loud" },
	{ "", { "more", NULL }, SMCRD_EXIT_USAGE, "unexpected argument more" },
	{ "", { "-i", "a/b", "-t", NULL }, SMCRD_EXIT_USAGE, "no name of an instance: a/b" },
	{ "", { "-i", "smcrd", "-t", NULL }, SMCRD_EXIT_USAGE, "no name of an instance: smcrd" },
	{ "", { "--version", NULL }, SMCRD_EXIT_OK, "smcrd 0." },
	{ "", { "-V", NULL }, SMCRD_EXIT_OK, "smcrd 0." },
	{ "", { "-tT", NULL }, SMCRD_EXIT_USAGE, "-t and -T exclude each other" },
	{ "", { "-T", "-t", NULL }, SMCRD_EXIT_USAGE, "-t and -T exclude each other" },
	{ "", { "-tt", NULL }, SMCRD_EXIT_OK, ": ok, 0 services, 0 device entries\n" },
	{ "", { "--help", NULL }, SMCRD_EXIT_OK, "usage: smcrd" },
	{ "", { "-h", NULL }, SMCRD_EXIT_OK, "usage: smcrd" },
};

START_LOOP_TEST(options_and_exit_codes, 0, sizeof(runs) / sizeof(runs[0]))
{
	write_file(runs[_i].text);
	start_daemon(runs[_i].args);
	ck_assert_int_eq(exit_code(), runs[_i].code);
	in_log(runs[_i].says);
}

START_TEST(the_command_line_level_wins_over_the_file)
{
	static const char *const args[] = { "-d", "error", NULL };

	write_file("log_level = \"debug\"; egress = ( " SVC("a", "2") " );");
	start_daemon(args);
	hear("READY=1", 1);
	kill(child, SIGHUP);
	hear("READY=1", 2);
	end_daemon(SIGTERM);
	ck_assert_str_eq(log_text(), "");
}

/* As those of a reload are; of -t they are plain. */
START_TEST(warnings_of_the_file_are_lines_of_the_log)
{
	char plain[128], line[128];

	snprintf(plain, sizeof(plain), "\n%s:1: warning: metrics has no effect", conf);
	snprintf(line, sizeof(line), " warning: %s:1: metrics has no effect without metrics.listen\n", conf);
	write_file("metrics = { mode = \"0600\"; };");
	start_daemon(NULL);
	hear("READY=1", 1);
	in_log(line);
	ck_assert_ptr_null(strstr(log_text(), plain));
	end_daemon(SIGTERM);
}

START_TEST(says_when_descriptors_will_not_do)
{
	struct rlimit lim = { 512, 1000 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	start_ready("a", NULL);
	in_log("limit=1000 needed=8297 enough_for_connections=447");
	/* Said again when it is another number. */
	kill(child, SIGHUP);
	hear("READY=1", 2);
	write_file("egress = ( " SVC("a", "2") "," SVC("b", "3") " );");
	kill(child, SIGHUP);
	hear("READY=1", 3);
	in_log("needed=16490 ");
	const char *first = strstr(log_text(), "limit=1000 needed=8297 ");
	ck_assert_ptr_null(strstr(first + 1, "limit=1000 needed=8297 "));
	end_daemon(SIGTERM);
}

START_TEST(passes_sockets_of_systemd_on)
{
	char *argv[] = { (char *)"smcrd", (char *)"-f", conf, NULL };

	write_file("");
	run_daemon(3, argv, notify_fd);
	hear("READY=1", 1);
	in_log("worker fds=1");
	end_daemon(SIGTERM);
}
