/* The control socket with a fake worker and a loop turned by hand; the clients are real sockets. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/control.h"
#include "daemon/control/control_parts.h"
#include "fake_loop.h"
#include "fake_worker.h"
#include "fake_workers.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define TURNS_MAX 20000

static struct loop *loop;
static struct worker *worker;
static struct workers *workers;
static struct control *ctl;
static struct event_history news;

static unsigned
client_cnt(void)
{
	unsigned cnt = 0;

	LIST_FOREACH(n, &ctl->clients)
		cnt++;
	return cnt;
}
static char dir[64], path[80], readonly[88];
static unsigned reloads, drains;
static int reload_rc;
static void (*reload_done)(void *, int, const char *);
static void *reload_done_arg;

static int
on_reload(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	ck_assert_ptr_eq(arg, &reloads);
	if (reload_rc != 0)
		return reload_rc;
	reloads++;
	reload_done = done;
	reload_done_arg = done_arg;
	return 0;
}

static void
on_drain(void *arg, bool then_exit, uint32_t limit_ms)
{
	ck_assert_uint_eq(limit_ms, then_exit ? 7 : 0);
	ck_assert_ptr_eq(arg, &reloads);
	drains += then_exit ? 10 : 1;
}

static unsigned listenings;

static void
on_listening(void *arg)
{
	ck_assert_ptr_eq(arg, &reloads);
	listenings++;
}

static int undrain_rc;

static int
on_undrain(void *arg)
{
	ck_assert_ptr_eq(arg, &reloads);
	return undrain_rc;
}

static int level_set;

static struct control_level
on_log_level(void *arg, int level)
{
	ck_assert_ptr_eq(arg, &reloads);
	if (level != CONTROL_LEVEL_ASK)
		level_set = level;
	return (struct control_level){ level_set >= 0 ? level_set : LOG_LVL_NOTICE, LOG_LVL_NOTICE, level_set >= 0 };
}

static unsigned
on_retry_names(void *arg)
{
	ck_assert_ptr_eq(arg, &reloads);
	return 6;
}

/* With root's group a client as another user may order all the same: its groups stay. */
static struct config_admins admins = { CONFIG_ORDERS_GROUP, 0, "staff" };

static int
try_new(const char *at, uint32_t mode, char *text, size_t cap, struct control **out)
{
	static const struct control_hooks hooks = { .arg = &reloads,
		.reload = on_reload,
		.drain = on_drain,
		.undrain = on_undrain,
		.listening = on_listening,
		.log_level = on_log_level,
		.retry_names = on_retry_names,
		.news = &news };
	struct config cfg = { .control_mode = mode, .control_readonly_mode = 0666, .control_admins = admins };
	FILE *err = fmemopen(text, cap, "w");

	snprintf(cfg.control_path, sizeof(cfg.control_path), "%s", at);
	snprintf(cfg.control_readonly, sizeof(cfg.control_readonly), "%s.r", at);
	int rc = control_new(loop, workers, &cfg, &hooks, err, out);
	fclose(err);
	return rc;
}

static void
setup(void)
{
	char text[256] = "";

	log_init(LOG_LVL_ERROR);
	strcpy(dir, "/tmp/check_control.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/control", dir);
	snprintf(readonly, sizeof(readonly), "%s.r", path);
	loop = loop_new();
	worker = fake_worker_new();
	workers = fake_workers_new(loop, worker, 1);
	ck_assert_int_eq(event_history_init(&news), 0);
	ck_assert_msg(try_new(path, 0640, text, sizeof(text), &ctl) == 0, "%s", text);
	reloads = drains = listenings = 0;
	reload_rc = undrain_rc = 0;
	level_set = CONTROL_LEVEL_RESET;
}

static void
teardown(void)
{
	control_free(ctl);
	fake_worker_free(worker);
	fake_workers_free(workers);
	event_history_fini(&news);
	loop_free(loop);
	unlink(path);
	unlink(readonly);
	rmdir(dir);
}

static int
dial(const char *at)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(sun.sun_path, at);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static void
say(int fd, const char *text)
{
	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void
turns(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fake_loop_turn(loop);
}

/* The next line with its end, byte by byte, turning the loop; NULL when the daemon closed. To be freed. */
static char *
hear(int fd)
{
	size_t cap = 8 << 20, len = 0;
	char *line = malloc(cap);

	for (unsigned i = 0; i < TURNS_MAX;) {
		ssize_t n = recv(fd, line + len, 1, 0);

		ck_assert_uint_lt(len + 2, cap);
		if (n == 1 && line[len++] == '\n') {
			line[len] = '\0';
			return line;
		}
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			free(line);
			return NULL;
		}
		if (n < 0) {
			fake_loop_turn(loop);
			i++;
		}
	}
	ck_abort_msg("no answer");
	return NULL;
}

static json_t *
hear_json(int fd)
{
	char *line = hear(fd);
	json_error_t err;
	ck_assert_ptr_nonnull(line);
	json_t *root = json_loads(line, 0, &err);
	ck_assert_msg(root != NULL, "%s: %s", err.text, line);
	free(line);
	return root;
}

/* The next answer is of this command and well. */
static void
hear_ok(int fd, const char *command)
{
	json_t *root = hear_json(fd);

	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema")), 1);
	ck_assert_str_eq(json_string_value(json_object_get(root, "command")), command);
	ck_assert(json_is_null(json_object_get(root, "error")));
	ck_assert(json_is_object(json_object_get(root, "data")));
	json_decref(root);
}

static void
hear_event(int fd, const char *kind, uint64_t number)
{
	json_t *root = hear_json(fd);

	ck_assert_str_eq(json_string_value(json_object_get(root, "event")), kind[0] != '\0' ? "change" : "end");
	ck_assert_str_eq(json_string_value(json_object_get(root, "kind")), kind);
	ck_assert_uint_eq((uint64_t)json_integer_value(json_object_get(root, "number")), number);
	json_decref(root);
}

static void
hear_error(int fd, const char *command, const char *code, const char *text)
{
	json_t *root = hear_json(fd);
	json_t *err = json_object_get(root, "error");

	ck_assert_str_eq(json_string_value(json_object_get(root, "command")), command);
	ck_assert(json_is_null(json_object_get(root, "data")));
	ck_assert_str_eq(json_string_value(json_object_get(err, "code")), code);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(err, "text")), text));
	json_decref(root);
}

static void
hear_close(int fd)
{
	ck_assert_ptr_null(hear(fd));
	close(fd);
}

static uint64_t
counter(const char *key)
{
	int fd = dial(path);

	say(fd, "{\"command\":\"stats\"}\n");
	json_t *root = hear_json(fd);
	uint64_t v = (uint64_t)json_integer_value(
	    json_object_get(json_object_get(json_object_get(root, "data"), "counters"), key));
	json_decref(root);
	close(fd);
	return v;
}

UNIT_FIXTURE(setup, teardown);

/* -- requests -- */

START_TEST(answers_requests_one_after_another)
{
	int fd = dial(path);

	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	say(fd, "{\"command\":\"groups\"}\n{\"command\":\"links\"}\n{\"comm");
	hear_ok(fd, "groups");
	hear_ok(fd, "links");
	turns(3);
	say(fd, "and\":\"rmbs\"}\n");
	hear_ok(fd, "rmbs");
	shutdown(fd, SHUT_WR);
	hear_close(fd);
}

START_TEST(the_last_line_needs_no_line_end)
{
	int fd = dial(path);

	say(fd, "{\"command\":\"devices\"}\n{\"command\":\"connections\"}");
	shutdown(fd, SHUT_WR);
	hear_ok(fd, "devices");
	hear_ok(fd, "connections");
	hear_close(fd);
}

START_TEST(bad_lines_are_answered_and_forgotten)
{
	char deep[2001];
	int fd = dial(path);

	say(fd, "\n");
	hear_error(fd, "", "bad-json", "");
	say(fd, "{\"command\":\"stat\n");
	hear_error(fd, "", "bad-json", "");
	say(fd, "{\"command\":\"format\"}\n");
	hear_error(fd, "", "unknown-command", "format");
	say(fd, "\x16\x03\x01\x02\x01\x01\xfc\x03\x03\n");
	hear_error(fd, "", "bad-json", "");
	ck_assert_int_eq(send(fd, "\0\0\0{}\n", 6, 0), 6);
	hear_error(fd, "", "bad-json", "");
	memset(deep, '[', 2000);
	deep[2000] = '\0';
	say(fd, deep);
	say(fd, "\n");
	hear_error(fd, "", "bad-json", "");
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
	ck_assert_uint_eq(counter("control_requests_bad"), 6);
}

START_TEST(a_line_without_end_is_cut_off)
{
	char huge[20000];
	int fd = dial(path), other = dial(path);

	memset(huge, 'x', sizeof(huge));
	ck_assert_int_eq(send(fd, huge, sizeof(huge), 0), (ssize_t)sizeof(huge));
	hear_error(fd, "", "too-long", "4096");
	hear_close(fd);
	say(other, "{\"command\":\"status\"}\n");
	hear_ok(other, "status");
	close(other);
}

START_TEST(the_longest_line_is_taken)
{
	char line[CONTROL_LINE_MAX + 1];
	int fd = dial(path);

	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"command\":\"status\"}", 20);
	line[CONTROL_LINE_MAX - 1] = '\n';
	line[CONTROL_LINE_MAX] = '\0';
	say(fd, line);
	hear_ok(fd, "status");
	close(fd);
}

/* -- limits -- */

/* One whose user is neither root nor the daemon's: SO_PEERCRED says who connected. Needs root, or false. */
static bool
dial_as_stranger(int *fd)
{
	if (geteuid() != 0)
		return false;
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	*fd = dial(path);
	ck_assert_int_eq(seteuid(0), 0);
	return true;
}

START_TEST(an_operator_finds_a_place_whatever_others_do)
{
	int fds[CONTROL_CLIENTS_MAX], fd;

	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (!dial_as_stranger(&fds[i]))
			return; /* who is no root cannot be somebody else */
		turns(1);
	}
	for (unsigned i = CONTROL_CLIENTS_MAX - CONTROL_CLIENTS_KEPT; i < CONTROL_CLIENTS_MAX; i++) {
		hear_error(fds[i], "", "busy", "too many");
		hear_close(fds[i]);
	}
	for (unsigned i = 0; i < CONTROL_CLIENTS_KEPT; i++) {
		fds[CONTROL_CLIENTS_MAX - 1 - i] = fd = dial(path);
		say(fd, "{\"command\":\"status\"}\n");
		hear_ok(fd, "status");
	}
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
}

START_TEST(silent_traces_make_room)
{
	int fds[CONTROL_CLIENTS_MAX];
	struct smcr_trace t = { .kind = SMCR_TRACE_LLC, .msg = (const uint8_t[44]){ 7, 44 }, .len = 44 };

	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = dial(path);
		say(fds[i], "{\"command\":\"trace\"}\n");
		hear_ok(fds[i], "trace");
	}
	/* The older ones have made room for the younger, and were told so. */
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX; i++) {
		hear_error(fds[i], "trace", "busy", "has ended");
		hear_close(fds[i]);
	}
	ck_assert_uint_eq(client_cnt(), CONTROL_TRACES_MAX);
	/* Others fill what is left; one more ends the oldest trace, not a request that is under way. */
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX; i++)
		fds[i] = dial(path);
	turns(2);
	int fd = dial(path);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	hear_error(fds[CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX], "trace", "busy", "has ended");
	hear_close(fds[CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX]);
	ck_assert_uint_eq(client_cnt(), CONTROL_CLIENTS_MAX);
	ck_assert(fake_worker_trace(worker, &t));
	json_decref(hear_json(fds[CONTROL_CLIENTS_MAX - 1]));
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (i != CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX)
			close(fds[i]);
	close(fd);
	turns(2);
	ck_assert_uint_eq(counter("control_traces_evicted"), CONTROL_CLIENTS_MAX - CONTROL_TRACES_MAX + 1);
}

START_TEST(a_trace_of_an_operator_makes_no_room_for_others)
{
	int mine[CONTROL_TRACES_MAX], other;

	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++) {
		mine[i] = dial(path);
		say(mine[i], "{\"command\":\"trace\"}\n");
		hear_ok(mine[i], "trace");
	}
	if (!dial_as_stranger(&other))
		return;
	say(other, "{\"command\":\"trace\"}\n");
	hear_error(other, "trace", "busy", "too many traces");
	close(mine[0]);
	turns(2);
	say(other, "{\"command\":\"trace\"}\n");
	hear_ok(other, "trace");
	/* The other one's goes first, though it is the youngest. */
	int fd = dial(path);
	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	hear_error(other, "trace", "busy", "has ended");
	hear_close(other);
	close(fd);
	for (unsigned i = 1; i < CONTROL_TRACES_MAX; i++)
		close(mine[i]);
}

START_TEST(too_many_clients_hear_so)
{
	int fds[CONTROL_CLIENTS_MAX];

	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		fds[i] = dial(path);
	turns(10);
	int fd = dial(path);
	hear_error(fd, "", "busy", "too many");
	hear_close(fd);
	close(fds[3]);
	turns(2);
	fd = dial(path);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (i != 3)
			close(fds[i]);
	turns(2);
	ck_assert_uint_eq(counter("control_clients_refused"), 1);
}

START_TEST(clients_wait_while_descriptors_are_out)
{
	struct rlimit old;
	int fd = dial(path);

	say(fd, "{\"command\":\"status\"}\n");
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	struct rlimit none = old;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert(!fake_loop_turn(loop)); /* no spinning */
	ck_assert_int_eq(fake_loop_next(loop), loop_now(loop) + S / 10);
	fake_loop_advance(loop, S / 10);
	ck_assert(!fake_loop_turn(loop));
	ck_assert_uint_eq(workers_accept_pauses(workers)->paused, 1);
	ck_assert_uint_eq(workers_accept_pauses(workers)->failures.cnt, 2);
	ck_assert_int_eq(workers_accept_pauses(workers)->err, EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	fake_loop_advance(loop, S / 10);
	hear_ok(fd, "status");
	close(fd);
	ck_assert_uint_eq(workers_accept_pauses(workers)->paused, 0);
}

START_TEST(a_socket_that_is_closed_pauses_no_more)
{
	struct rlimit old, none;
	int fd = dial(path);

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	fake_loop_turn(loop);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_uint_eq(workers_accept_pauses(workers)->paused, 1);
	control_free(ctl);
	ctl = NULL;
	ck_assert_uint_eq(workers_accept_pauses(workers)->paused, 0);
	close(fd);
}

START_TEST(silent_and_dripping_clients_are_given_up)
{
	int silent = dial(path), dripping = dial(path), asking = dial(path);

	for (int i = 0; i < 29; i++) {
		say(dripping, "{");
		if (i % 10 == 0) {
			say(asking, "{\"command\":\"status\"}\n");
			hear_ok(asking, "status");
		}
		fake_loop_turn(loop);
		ck_assert_int_le(fake_loop_next(loop), 31 * S);
		fake_loop_advance(loop, S);
	}
	ck_assert_int_eq(recv(silent, &(char){ 0 }, 1, 0), -1);
	fake_loop_advance(loop, S);
	fake_loop_turn(loop);
	hear_close(silent);
	hear_close(dripping);
	say(asking, "{\"command\":\"status\"}\n");
	hear_ok(asking, "status");
	close(asking);
	ck_assert_uint_eq(counter("control_clients_timed_out"), 2);
}

START_TEST(a_reader_that_stops_is_given_up_one_that_is_slow_is_not)
{
	int stopped = dial(path), slow = dial(path);
	static char buf[65536];

	fake_worker.sessions = 5000;
	say(stopped, "{\"command\":\"connections\"}\n");
	say(slow, "{\"command\":\"connections\"}\n");
	for (int i = 0; i < 40; i++) {
		turns(20);
		ck_assert_int_gt(recv(slow, buf, sizeof(buf), 0), 0);
		fake_loop_advance(loop, S);
	}
	while (recv(stopped, buf, sizeof(buf), 0) > 0)
		;
	ck_assert_int_eq(recv(stopped, buf, 1, 0), 0);
	close(stopped);
	ck_assert_int_ne(recv(slow, buf, sizeof(buf), 0), 0);
	close(slow);
	turns(2);
	ck_assert_uint_eq(counter("control_clients_timed_out"), 1);
}

START_TEST(a_turn_looks_at_few_connections_however_many_there_are)
{
	int fds[4];
	unsigned most = 0;

	fake_worker.sessions = 5000;
	for (unsigned i = 0; i < 4; i++) {
		fds[i] = dial(path);
		say(fds[i], i % 2 != 0 ? "{\"command\":\"status\"}\n" : "{\"command\":\"connections\"}\n");
	}
	fake_worker.looked_at = 0;
	for (unsigned i = 0; i < 200; i++) {
		fake_loop_turn(loop);
		unsigned n = fake_worker.looked_at;
		fake_worker.looked_at = 0;
		most = n > most ? n : most;
	}
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_le(most, CONTROL_STEPS_PER_TURN * REPORT_STEP_ITEMS);
	for (unsigned i = 0; i < 4; i++) {
		hear_ok(fds[i], i % 2 != 0 ? "status" : "connections");
		close(fds[i]);
	}
}

START_TEST(a_client_may_go_at_any_time)
{
	int other = dial(path);

	fake_worker.sessions = 1000;
	for (unsigned i = 0; i < 30; i++) {
		int fd = dial(path);

		say(fd,
		    i % 3 == 0       ? "{\"command\":\"trace\"}\n"
		        : i % 3 == 1 ? "{\"command\":\"conn"
		                     : "{\"command\":\"connections\"}\n");
		turns(i % 4);
		close(fd);
		turns(i % 2);
	}
	turns(3);
	ck_assert_uint_eq(client_cnt(), 1);
	say(other, "{\"command\":\"status\"}\n");
	hear_ok(other, "status");
	close(other);
}

/* -- the socket file -- */

START_TEST(the_file_has_its_mode_and_goes_with_the_daemon)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	control_free(ctl);
	ctl = NULL;
	ck_assert_int_ne(stat(path, &st), 0);
}

START_TEST(a_live_socket_is_refused_a_dead_one_replaced)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct control *second = NULL;
	char text[256] = "";

	ck_assert_int_eq(try_new(path, 0600, text, sizeof(text), &second), -EADDRINUSE);
	ck_assert_ptr_null(second);
	ck_assert_ptr_nonnull(strstr(text, "a running daemon"));
	int fd = dial(path);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/dead", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	ck_assert_int_eq(try_new(sun.sun_path, 0600, text, sizeof(text), &second), 0);
	fd = dial(sun.sun_path);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
	control_free(second);
	ck_assert_int_ne(access(sun.sun_path, F_OK), 0);
}

/* Made while the process has all rights, used when it has started. */
START_TEST(a_file_made_early_is_for_clients_later)
{
	struct listen_socket early[CONTROL_PORTS] = { LISTEN_SOCKET_NONE, LISTEN_SOCKET_NONE };
	struct control_hooks hooks = { .listen = early };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct config cfg = { .control_mode = 0600 };
	struct control *second;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/early", dir);
	strcpy(cfg.control_path, sun.sun_path);
	const struct listen_socket_file file = control_file(&cfg, CONTROL_FULL);
	ck_assert_int_eq(listen_socket_open(&early[0], &file, stderr), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(control_new(loop, workers, &cfg, &hooks, stderr, &second), 0);
	ck_assert_int_eq(early[0].fd, -1);
	listen_socket_close(&early[0]);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
	control_free(second);
	ck_assert_int_eq(access(sun.sun_path, F_OK), -1);
}

START_TEST(other_files_are_left_alone)
{
	struct control *second = NULL;
	char text[256] = "", other[96];

	snprintf(other, sizeof(other), "%s/file", dir);
	int fd = open(other, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(try_new(other, 0600, text, sizeof(text), &second), -EEXIST);
	ck_assert_ptr_nonnull(strstr(text, "not a socket"));
	ck_assert_int_eq(access(other, F_OK), 0);
	ck_assert_int_eq(unlink(other), 0);

	snprintf(other, sizeof(other), "%s/none/control", dir);
	ck_assert_int_eq(try_new(other, 0600, text, sizeof(text), &second), -ENOENT);
	ck_assert_ptr_nonnull(strstr(text, "directory"));

	/* Somebody else's by now. */
	ck_assert_int_eq(unlink(path), 0);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	control_free(ctl);
	ctl = NULL;
	ck_assert_int_eq(access(path, F_OK), 0);
}

/* -- commands that act -- */

START_TEST(reload_passes_on_what_the_daemon_says)
{
	static const char msgs[] = "smcrd.conf:3: \"lisen\" is not known\nsmcrd.conf:9: second\n";
	int fd = dial(path);

	say(fd, "{\"command\":\"reload\"}\n");
	turns(3);
	ck_assert_uint_eq(reloads, 1);
	fake_loop_advance(loop, 100 * S); /* the resolver is slow */
	turns(3);
	reload_done(reload_done_arg, 0, msgs);
	json_t *root = hear_json(fd);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "data"), "messages")), msgs);
	json_decref(root);
	say(fd, "{\"command\":\"reload\"}\n");
	turns(3);
	reload_done(reload_done_arg, -EINVAL, msgs);
	hear_error(fd, "reload", "reload-failed", "smcrd.conf:3: \"lisen\"");
	ck_assert_uint_eq(reloads, 2);
	close(fd);
}

/* A thousand services, say: whole lines, and how many are left out. */
START_TEST(what_a_long_reload_says_is_cut_between_lines)
{
	static char msgs[1000 * 32];
	int fd = dial(path);
	size_t len = 0;
	unsigned left;

	for (unsigned i = 0; i < 1000; i++)
		len += (size_t)snprintf(msgs + len, sizeof(msgs) - len, "service many-%u added\n", 10000 + i);
	say(fd, "{\"command\":\"reload\"}\n");
	turns(3);
	reload_done(reload_done_arg, 0, msgs);
	json_t *root = hear_json(fd);
	const char *text = json_string_value(json_object_get(json_object_get(root, "data"), "messages"));
	const char *more = strstr(text, "\nand ");
	ck_assert_ptr_nonnull(more);
	size_t shown = (size_t)(more + 1 - text);
	ck_assert_int_eq(strncmp(text, msgs, shown), 0);
	ck_assert_int_eq(sscanf(more, "\nand %u more, which the log has\n", &left), 1);
	ck_assert_uint_eq(left, 1000 - shown / strlen("service many-10000 added\n"));
	json_decref(root);
	close(fd);
}

START_TEST(reload_outlives_its_client_and_one_at_a_time)
{
	static char huge[100000];
	int fd = dial(path);

	say(fd, "{\"command\":\"reload\"}\n");
	turns(3);
	close(fd);
	turns(3);
	reload_done(reload_done_arg, 0, "");
	fd = dial(path);
	reload_rc = -EBUSY;
	say(fd, "{\"command\":\"reload\"}\n");
	hear_error(fd, "reload", "busy", "draining");
	reload_rc = 0;
	say(fd, "{\"command\":\"reload\"}\n");
	turns(3);
	memset(huge, '\n', sizeof(huge) - 1);
	reload_done(reload_done_arg, -EINVAL, huge);
	hear_error(fd, "reload", "reload-failed", "\n\n\n");
	close(fd);
}

START_TEST(drain_is_answered_even_by_a_daemon_that_ends_at_once)
{
	int fd = dial(path);

	/* More connections than are counted in one turn. */
	fake_worker.sessions = CONTROL_STEPS_PER_TURN * REPORT_STEP_ITEMS + 100;
	say(fd, "{\"command\":\"drain\",\"then_exit\":true,\"timeout_ms\":7}\n");
	turns(1);
	control_free(ctl);
	ctl = NULL;
	ck_assert_uint_eq(drains, 10);
	hear_ok(fd, "drain");
	hear_close(fd);
}

START_TEST(links_are_managed)
{
	int fd = dial(path);

	say(fd, "{\"command\":\"rebalance\"}\n");
	hear_ok(fd, "rebalance");
	say(fd, "{\"command\":\"rebalance\",\"group\":2}\n");
	hear_ok(fd, "rebalance");
	ck_assert_uint_eq(fake_worker.rebalanced, 2);
	say(fd, "{\"command\":\"rebalance\",\"group\":3}\n");
	hear_error(fd, "rebalance", "not-found", "link group");
	say(fd, "{\"command\":\"link-delete\",\"group\":2,\"link\":1}\n");
	hear_ok(fd, "link-delete");
	ck_assert_uint_eq(fake_worker.deleted, 0x201);
	say(fd, "{\"command\":\"link-delete\",\"group\":2,\"link\":9}\n");
	hear_error(fd, "link-delete", "not-found", "link");
	say(fd, "{\"command\":\"link-delete\",\"group\":1,\"link\":1}\n");
	hear_error(fd, "link-delete", "last-link", "last");
	close(fd);
}

/* An order, and what the answer has. */
static const struct {
	const char *request, *answer;
} asked[] = {
	{ "{\"command\":\"close\",\"id\":3}", "\"closed\":1" }, { "{\"command\":\"close\",\"id\":7}", "\"closed\":0" },
	{ "{\"command\":\"close\",\"service\":\"web\"}", "\"closed\":3" },
	{ "{\"command\":\"close\",\"peer\":\"192.0.2.9\"}", "\"closed\":3" },
	{ "{\"command\":\"close\",\"service\":\"gone\"}", "\"closed\":0" },
	{ "{\"command\":\"disable\",\"service\":\"web\"}", "{\"service\":\"web\",\"disabled\":true}" },
	{ "{\"command\":\"enable\",\"service\":\"web\"}", "{\"service\":\"web\",\"disabled\":false}" },
	{ "{\"command\":\"disable\",\"service\":\"none\"}", "\"code\":\"not-found\"" },
	{ "{\"command\":\"link-add\",\"group\":2}", "{\"group\":2}" },
	{ "{\"command\":\"link-add\",\"group\":1}", "\"code\":\"complete\"" },
	{ "{\"command\":\"link-add\",\"group\":3}", "\"code\":\"no-device\"" },
	{ "{\"command\":\"link-add\",\"group\":4}", "\"code\":\"not-found\"" },
	{ "{\"command\":\"retry\"}",
	    "{\"peers\":2,\"links\":1,\"prewarms\":3,\"targets\":5,\"devices\":4,\"names\":6}" },
	{ "{\"command\":\"retry\",\"peer\":\"192.0.2.9:81\"}",
	    "{\"peers\":2,\"links\":1,\"prewarms\":3,\"targets\":5,\"devices\":0,\"names\":0}" },
	{ "{\"command\":\"retry\",\"peer\":\"192.0.2.9:9\"}",
	    "{\"peers\":0,\"links\":0,\"prewarms\":0,\"targets\":0,\"devices\":0,\"names\":0}" },
	{ "{\"command\":\"log_level\"}", "{\"level\":\"notice\",\"configured\":\"notice\",\"set\":false}" },
	{ "{\"command\":\"log_level\",\"level\":\"debug\"}",
	    "{\"level\":\"debug\",\"configured\":\"notice\",\"set\":true}" },
	{ "{\"command\":\"log_level\",\"level\":\"default\"}",
	    "{\"level\":\"notice\",\"configured\":\"notice\",\"set\":false}" },
	{ "{\"command\":\"undrain\"}", "\"draining\":true" }, /* the worker of fixed data says so */
};

START_LOOP_TEST(orders_are_carried_out_and_logged, 0, sizeof(asked) / sizeof(asked[0]))
{
	bool is_order = strstr(asked[_i].request, "log_level\"}") == NULL;
	int fd, log[2], err = dup(STDERR_FILENO);
	char text[1024], who[64];

	ck_assert_int_eq(pipe2(log, O_NONBLOCK), 0);
	log_init(LOG_LVL_NOTICE);
	ck_assert_int_eq(dup2(log[1], STDERR_FILENO), STDERR_FILENO);
	fd = dial(path);
	say(fd, asked[_i].request);
	say(fd, "\n");
	char *line = hear(fd);
	ck_assert_int_eq(dup2(err, STDERR_FILENO), STDERR_FILENO);
	ssize_t n = read(log[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	ck_assert_msg(strstr(line, asked[_i].answer) != NULL, "%s%s", asked[_i].request, line);
	/* Whoever asked is in the log, and so is what it was about. */
	snprintf(
	    who, sizeof(who), "asked for on the control socket: uid=%u pid=%d", (unsigned)geteuid(), (int)getpid());
	ck_assert_msg((strstr(text, who) != NULL) == is_order, "%s: %s", asked[_i].request, text);
	if (strstr(asked[_i].request, "192.0.2.9:81") != NULL) {
		ck_assert_ptr_nonnull(strstr(text, " peer=192.0.2.9:81\n"));
		ck_assert_int_eq(fake_worker.retried, 81);
	}
	ck_assert_uint_eq(listenings, strstr(asked[_i].answer, "\"service\":\"web\"") != NULL ? 1 : 0);
	if (strstr(asked[_i].request, "debug") != NULL)
		ck_assert_ptr_nonnull(strstr(text, "log-level asked for on the control socket"));
	free(line);
	close(fd);
	close(err);
	close(log[0]);
	close(log[1]);
}

START_TEST(a_drain_is_taken_back_or_not)
{
	static const struct {
		int rc;
		const char *code, *text;
	} cases[] = { { -ENOENT, "not-draining", "does not drain" }, { -EBUSY, "stopping", "a signal" },
		{ -EALREADY, "stopping", "another process has taken over" },
		{ -EADDRINUSE, "failed", "a service cannot listen again" } };
	int fd = dial(path);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		undrain_rc = cases[i].rc;
		say(fd, "{\"command\":\"undrain\"}\n");
		hear_error(fd, "undrain", cases[i].code, cases[i].text);
	}
	close(fd);
}

/* Each costs system calls: of many, some a turn. */
START_TEST(closing_many_takes_many_turns)
{
	int fd = dial(path);

	fake_worker.sessions = 10 * REPORT_STEP_ITEMS;
	say(fd, "{\"command\":\"close\",\"peer\":\"192.0.2.9\"}\n");
	for (unsigned before = 0, i = 0; i < 10; i++) {
		turns(1);
		ck_assert_uint_le(fake_worker.closed - before, REPORT_STEP_ITEMS / 2);
		ck_assert_uint_gt(fake_worker.closed, before);
		before = fake_worker.closed;
	}
	json_t *root = hear_json(fd);
	ck_assert_int_eq(
	    json_integer_value(json_object_get(json_object_get(root, "data"), "closed")), 5 * REPORT_STEP_ITEMS);
	json_decref(root);
	close(fd);
}

/* -- the read-only socket -- */

/* Of each command the least that is a whole request. */
static void
least_request(int command, char *buf, size_t cap)
{
	const struct control_command_row *row = &control_commands[command];
	unsigned needs = row->needs | (row->needs_any & CONTROL_F_ID);

	snprintf(buf, cap, "{\"command\":\"%s\"%s%s%s%s%s}\n", row->name,
	    (needs & CONTROL_F_SERVICE) != 0 ? ",\"service\":\"web\"" : "",
	    (needs & CONTROL_F_PEER) != 0 ? ",\"peer\":\"192.0.2.9:1\"" : "",
	    (needs & CONTROL_F_GROUP) != 0 ? ",\"group\":2" : "", (needs & CONTROL_F_LINK) != 0 ? ",\"link\":1" : "",
	    (needs & CONTROL_F_ID) != 0 ? ",\"id\":1" : "");
}

/* Of the command, with the field that makes an order of it. */
static void
order_of(int command, char *buf, size_t cap)
{
	least_request(command, buf, cap);
	if (control_commands[command].orders_with != 0)
		snprintf(buf + strlen(buf) - 2, cap - strlen(buf) + 2, "%s",
		    command == CONTROL_CHECK ? ",\"bulk_bytes\":1}\n" : ",\"level\":\"debug\"}\n");
}

START_LOOP_TEST(the_readonly_socket_takes_questions_alone, 0, CONTROL_COMMAND_CNT)
{
	const struct control_command_row *row = &control_commands[_i];
	char line[256];
	int fd = dial(readonly);

	if (row->kind == CONTROL_LOCAL)
		return;
	least_request(_i, line, sizeof(line));
	say(fd, line);
	if (row->kind == CONTROL_ASKS)
		hear_ok(fd, row->name);
	else
		hear_error(fd, row->name, "read-only", "this socket is read-only");
	ck_assert_uint_eq(reloads + drains + fake_worker.closed + fake_worker.deleted + fake_worker.checks, 0);
	ck_assert(!fake_worker.disabled && fake_worker.retried == 0);
	if (row->orders_with != 0) {
		order_of(_i, line, sizeof(line));
		say(fd, line);
		hear_error(fd, row->name, "read-only", "this socket is read-only");
		ck_assert_int_eq(level_set, CONTROL_LEVEL_RESET);
	}
	if (_i == CONTROL_EVENTS)
		hear_event(fd, "", 0);
	/* It goes on. */
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
}

/* -- the right to give orders -- */

#define MANY_GROUPS 200

/* As another user, with this group and those supplementary ones. Needs root, or -1. */
static int
dial_with_groups(gid_t gid, size_t cnt, const gid_t *groups)
{
	gid_t before[NGROUPS_MAX];
	int had = getgroups(NGROUPS_MAX, before), fd;

	if (geteuid() != 0)
		return -1;
	ck_assert(had >= 0 && setgroups(cnt, groups) == 0 && setegid(gid) == 0);
	ck_assert(dial_as_stranger(&fd) && setegid(0) == 0 && setgroups((size_t)had, before) == 0);
	return fd;
}

START_LOOP_TEST(orders_are_for_members_of_the_admin_group, 0, CONTROL_COMMAND_CNT)
{
	const struct control_command_row *row = &control_commands[_i];
	const bool looks = row->kind == CONTROL_ASKS || row->kind == CONTROL_TRIES,
	           orders = row->kind == CONTROL_ORDERS;
	char line[256];

	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_GROUP, 77, "staff" } });
	int fd = dial_with_groups(76, 2, (gid_t[]){ 78, 76 });
	if (fd < 0 || row->kind == CONTROL_LOCAL)
		return;
	least_request(_i, line, sizeof(line));
	if (_i != CONTROL_CHECK) { /* whose answer is the worker's */
		say(fd, line);
		if (looks)
			hear_ok(fd, row->name);
		else
			hear_error(fd, row->name, "not-permitted", "usermod -aG staff USER");
		if (_i == CONTROL_EVENTS)
			hear_event(fd, "", 0);
	}
	order_of(_i, line, sizeof(line));
	if (orders || row->orders_with != 0) {
		say(fd, line);
		hear_error(fd, row->name, "not-permitted", "root, the daemon's user and group staff");
	}
	ck_assert_uint_eq(reloads + drains + fake_worker.closed + fake_worker.deleted + fake_worker.checks, 0);
	ck_assert(!fake_worker.disabled && fake_worker.retried == 0 && level_set == CONTROL_LEVEL_RESET);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
}

/* Is a trace permitted to a client with these groups? */
static bool
may_trace(gid_t gid, size_t cnt, const gid_t *groups)
{
	int fd = dial_with_groups(gid, cnt, groups);

	say(fd, "{\"command\":\"trace\"}\n");
	json_t *root = hear_json(fd);
	const bool may = json_is_null(json_object_get(root, "error"));
	json_decref(root);
	close(fd);
	turns(2);
	return may;
}

START_TEST(each_kind_of_membership_counts)
{
	gid_t many[MANY_GROUPS];

	for (gid_t i = 0; i < MANY_GROUPS; i++)
		many[i] = 1000 + i;
	if (geteuid() != 0)
		return;
	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_GROUP, 77, "staff" } });
	ck_assert(may_trace(77, 0, NULL));
	ck_assert(may_trace(76, 2, (gid_t[]){ 78, 77 }));
	ck_assert(!may_trace(76, MANY_GROUPS, many));
	many[MANY_GROUPS - 1] = 77; /* the kernel gives them sorted */
	ck_assert(may_trace(76, MANY_GROUPS, many));
	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_GROUP, 1190, "staff" } });
	ck_assert(may_trace(76, MANY_GROUPS, many));
	/* Without the group: nobody, or as the mode says. */
	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_NONE, 77, "staff" } });
	ck_assert(!may_trace(77, 1, (gid_t[]){ 77 }));
	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_ALL, 77, "staff" } });
	ck_assert(may_trace(76, 0, NULL));
	/* The daemon's own user, always. */
	control_set_admins(ctl, &(struct config){ .control_admins = { CONFIG_ORDERS_NONE, 77, "staff" } });
	int fd = dial(path);
	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	close(fd);
}

START_TEST(readers_take_no_place_of_an_operator)
{
	int readers[CONTROL_READERS_MAX], fds[CONTROL_CLIENTS_MAX];

	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++)
		readers[i] = dial(readonly);
	turns(4);
	int more = dial(readonly);
	hear_error(more, "", "busy", "too many");
	hear_close(more);
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		fds[i] = dial(path);
	turns(4);
	ck_assert_uint_eq(client_cnt(), CONTROL_READERS_MAX + CONTROL_CLIENTS_MAX);
	say(fds[CONTROL_CLIENTS_MAX - 1], "{\"command\":\"status\"}\n");
	hear_ok(fds[CONTROL_CLIENTS_MAX - 1], "status");
	/* Nor the other way round. */
	close(readers[0]);
	turns(2);
	readers[0] = dial(readonly);
	say(readers[0], "{\"command\":\"stats\"}\n");
	hear_ok(readers[0], "stats");
	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++)
		close(readers[i]);
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
}

START_TEST(a_reader_ends_no_trace)
{
	int traces[CONTROL_TRACES_MAX], readers[CONTROL_READERS_MAX];

	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++) {
		traces[i] = dial(path);
		say(traces[i], "{\"command\":\"trace\"}\n");
		hear_ok(traces[i], "trace");
	}
	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++)
		readers[i] = dial(readonly);
	turns(4);
	int more = dial(readonly);
	hear_error(more, "", "busy", "too many");
	ck_assert_uint_eq(client_cnt(), CONTROL_TRACES_MAX + CONTROL_READERS_MAX);
	close(more);
	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++)
		close(traces[i]);
	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++)
		close(readers[i]);
}

START_TEST(the_readonly_socket_has_a_mode_and_goes_with_the_daemon)
{
	struct stat st;

	ck_assert_int_eq(stat(readonly, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0666);
	control_free(ctl);
	ctl = NULL;
	ck_assert_int_ne(access(readonly, F_OK), 0);
}

START_TEST(an_order_goes_to_the_worker_that_it_is_about)
{
	static const struct {
		const char *request;
		unsigned asked;
		const char *error;
	} orders[] = {
		{ "{\"command\":\"rebalance\"}\n", 7, NULL },
		{ "{\"command\":\"rebalance\",\"worker\":3}\n", 4, NULL },
		{ "{\"command\":\"rebalance\",\"group\":2}\n", 2, NULL },
		{ "{\"command\":\"rebalance\",\"group\":2,\"worker\":3}\n", 0, "not-found" },
		{ "{\"command\":\"link-delete\",\"group\":2,\"link\":1}\n", 2, NULL },
		{ "{\"command\":\"link-add\",\"group\":2}\n", 2, NULL },
		{ "{\"command\":\"disable\",\"service\":\"web\"}\n", 7, NULL },
		{ "{\"command\":\"retry\"}\n", 7, NULL },
		{ "{\"command\":\"close\",\"id\":1}\n", 7, NULL },
		{ "{\"command\":\"trace\",\"worker\":4}\n", 0, "not-found" },
		{ "{\"command\":\"trace\",\"group\":2}\n", 2, NULL },
	};

	control_free(ctl);
	fake_workers_free(workers);
	workers = fake_workers_new(loop, worker, 3);
	ck_assert_int_eq(try_new(path, 0640, (char[256]){ "" }, 256, &ctl), 0);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		int fd = dial(path);

		fake_workers_asked = 0;
		say(fd, orders[i].request);
		char *line = hear(fd);
		ck_assert_msg(
		    strstr(line, orders[i].error != NULL ? orders[i].error : "\"error\":null") != NULL, "%s", line);
		ck_assert_msg(fake_workers_asked == orders[i].asked, "%s%x", orders[i].request, fake_workers_asked);
		free(line);
		close(fd);
	}
}

static const char check_line[] = "{\"command\":\"check\",\"peer\":\"192.0.2.1:80\"}\n";

START_TEST(check_is_answered_when_the_worker_knows)
{
	static const struct check_result no = { .finding = CHECK_PEER_DECLINED,
		.text = "peer declined: no RDMA device",
		.took_ns = 7500000,
		.held_off_ns = 3 * S,
		.steps = { [CHECK_TCP] = { CHECK_STEP_OK, 1500000, NULL },
		    [CHECK_CLC] = { CHECK_STEP_FAILED, 6000000, NULL },
		    [CHECK_LINK] = { CHECK_STEP_SKIPPED, 0, "why" } },
		.diag = { .local = 0x05000000, .peer = 0x03030000 } };
	int fd = dial(path);

	say(fd, check_line);
	turns(5);
	ck_assert_uint_eq(fake_worker.checks, 1);
	fake_loop_advance(loop, 50 * S); /* it has its own limit of time */
	turns(2);
	ck_assert_int_eq(fake_loop_next(loop), INT64_MAX);
	fake_worker_end_check(worker, &no);
	json_t *root = hear_json(fd);
	json_t *data = json_object_get(root, "data");
	ck_assert_str_eq(json_string_value(json_object_get(data, "peer")), "192.0.2.1:80");
	ck_assert(json_is_false(json_object_get(data, "possible")));
	ck_assert_str_eq(json_string_value(json_object_get(data, "text")), no.text);
	ck_assert_str_eq(
	    json_string_value(json_object_get(json_object_get(data, "reason"), "peer_text")), "no RDMA device");
	ck_assert_str_eq(json_string_value(json_object_get(data, "finding")), "declined");
	ck_assert_int_eq(json_integer_value(json_object_get(data, "took_us")), 7500);
	ck_assert_int_eq(json_integer_value(json_object_get(data, "held_off_ms")), 3000);
	char *steps = json_dumps(json_object_get(data, "steps"), JSON_COMPACT);
	ck_assert_str_eq(steps,
	    "[{\"step\":\"tcp\",\"result\":\"ok\",\"took_us\":1500,\"text\":\"\"},"
	    "{\"step\":\"clc\",\"result\":\"failed\",\"took_us\":6000,\"text\":\"peer declined: no RDMA device\"},"
	    "{\"step\":\"connect\",\"result\":\"not-reached\",\"took_us\":0,\"text\":\"\"},"
	    "{\"step\":\"link\",\"result\":\"skipped\",\"took_us\":0,\"text\":\"why\"},"
	    "{\"step\":\"round-trip\",\"result\":\"not-reached\",\"took_us\":0,\"text\":\"\"},"
	    "{\"step\":\"server\",\"result\":\"not-reached\",\"took_us\":0,\"text\":\"\"}]");
	free(steps);
	ck_assert_str_eq(fake_worker.tried_again, "");
	ck_assert_uint_eq(json_array_size(json_object_get(data, "bulk")), 0);
	json_decref(root);
	say(fd, "{\"command\":\"check\",\"peer\":\"192.0.2.1:80\",\"bulk_bytes\":4096}\n");
	turns(5);
	ck_assert_uint_eq(fake_worker.check_bulk, 4096);
	fake_worker_end_check(worker,
	    &(const struct check_result){
	        .possible = true, .text = "yes", .bulk = { { 4096, 5000, 7000 } }, .bulk_text = "no TCP" });
	root = hear_json(fd);
	steps = json_dumps(json_object_get(json_object_get(root, "data"), "bulk"), JSON_COMPACT);
	ck_assert_str_eq(steps,
	    "[{\"path\":\"smcr\",\"direction\":\"out\",\"bytes\":4096,\"took_us\":5},"
	    "{\"path\":\"smcr\",\"direction\":\"back\",\"bytes\":4096,\"took_us\":7}]");
	free(steps);
	ck_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "data"), "bulk_text")), "no TCP");
	json_decref(root);
	ck_assert_str_eq(fake_worker.tried_again, "192.0.2.1:80");
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	close(fd);
}

START_TEST(check_outlives_its_client_and_the_control_socket)
{
	static const struct check_result yes = { .possible = true, .text = "yes" };
	int gone = dial(path), stays = dial(path);

	say(gone, check_line);
	say(stays, check_line);
	turns(3);
	ck_assert_uint_eq(fake_worker.checks, 2);
	close(gone);
	turns(3);
	ck_assert_uint_eq(client_cnt(), 1);
	fake_worker_end_check(worker, &yes); /* of the one that is gone */
	control_free(ctl);
	ctl = NULL;
	fake_worker_end_check(worker, &yes);
	hear_close(stays);
}

START_TEST(checks_are_bounded_and_failures_reported)
{
	static const struct check_result yes = { .possible = true, .text = "yes" };
	int fds[CONTROL_CHECKS_MAX], fd = dial(path);

	fake_worker.check_rc = -ENOBUFS;
	say(fd, check_line);
	hear_error(fd, "check", "failed", strerror(ENOBUFS));
	fake_worker.check_rc = 0;
	for (unsigned i = 0; i < CONTROL_CHECKS_MAX; i++) {
		fds[i] = dial(path);
		say(fds[i], check_line);
		turns(3);
	}
	say(fd, check_line);
	hear_error(fd, "check", "busy", "too many checks");
	for (unsigned i = 0; i < CONTROL_CHECKS_MAX; i++) {
		fake_worker_end_check(worker, &yes);
		hear_ok(fds[i], "check");
		close(fds[i]);
	}
	close(fd);
}

/* -- trace -- */

/* A TEST LINK request: type 7, length 44. */
static const uint8_t test_link[44] = { 7, 44, 0, 0, 1, 2, 3 };

static struct smcr_trace
message(enum smcr_trace_kind kind, uint32_t group, uint32_t token)
{
	return (struct smcr_trace){ .kind = kind,
		.sent = true,
		.group_id = group,
		.link = 1,
		.conn_id = token,
		.msg = test_link,
		.len = sizeof(test_link) };
}

START_TEST(trace_runs_only_with_a_listener)
{
	struct smcr_trace t = message(SMCR_TRACE_LLC, 3, 0);
	int fd = dial(path);

	ck_assert(!fake_worker_trace(worker, &t));
	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	ck_assert(fake_worker_trace(worker, &t));
	json_t *root = hear_json(fd);
	ck_assert_str_eq(json_string_value(json_object_get(root, "event")), "message");
	ck_assert_str_eq(json_string_value(json_object_get(root, "kind")), "llc");
	ck_assert_str_eq(json_string_value(json_object_get(root, "direction")), "sent");
	ck_assert_int_eq(json_integer_value(json_object_get(root, "group")), 3);
	ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(root, "text")), "TEST LINK"));
	json_decref(root);
	fake_loop_advance(loop, 1000 * S); /* silence is no reason to end it */
	turns(2);
	ck_assert(fake_worker_trace(worker, &t));
	close(fd);
	turns(2);
	ck_assert(!fake_worker_trace(worker, &t));
}

START_TEST(trace_is_filtered_for_each_client)
{
	struct smcr_trace llc = message(SMCR_TRACE_LLC, 1, 0), cdc = message(SMCR_TRACE_CDC, 2, 0x1000a);
	int a = dial(path), b = dial(path), c = dial(path);

	say(a, "{\"command\":\"trace\",\"kinds\":[\"cdc\"]}\n");
	say(b, "{\"command\":\"trace\",\"group\":1}\n");
	say(c, "{\"command\":\"trace\",\"token\":65546}\n");
	hear_ok(a, "trace");
	hear_ok(b, "trace");
	hear_ok(c, "trace");
	for (int i = 0; i < 3; i++)
		fake_worker_trace(worker, &llc);
	fake_worker_trace(worker, &cdc);
	turns(2);
	for (int i = 0; i < 3; i++)
		json_decref(hear_json(b));
	json_decref(hear_json(a));
	json_decref(hear_json(c));
	ck_assert_int_eq(recv(a, &(char){ 0 }, 1, 0), -1);
	ck_assert_int_eq(recv(b, &(char){ 0 }, 1, 0), -1);
	ck_assert_int_eq(recv(c, &(char){ 0 }, 1, 0), -1);
	ck_assert_uint_eq(counter("control_trace_sent"), 5);
	close(a);
	close(b);
	close(c);
}

/* It would be silent for ever. */
START_TEST(trace_of_what_is_not_there_is_refused)
{
	static const struct {
		const char *filter, *text;
	} none[] = {
		{ "\"group\":99", "there is no such link group" },
		{ "\"group\":99,\"token\":65546", "there is no such link group" },
		{ "\"token\":77", "there is no such connection" },
		{ "\"group\":1,\"token\":77", "there is no such connection" },
		{ "\"group\":2,\"worker\":1", "there is no such link group" }, /* it is the second one's */
	};
	struct smcr_trace t = message(SMCR_TRACE_LLC, 1, 0);
	char line[128];

	control_free(ctl);
	fake_workers_free(workers);
	workers = fake_workers_new(loop, worker, 2);
	ck_assert_int_eq(try_new(path, 0640, (char[256]){ "" }, 256, &ctl), 0);
	int fd = dial(path);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		(void)snprintf(line, sizeof(line), "{\"command\":\"trace\",%s}\n", none[i].filter);
		say(fd, line);
		hear_error(fd, "trace", "not-found", none[i].text);
		turns(1);
		ck_assert(!fake_worker_trace(worker, &t));
	}
	/* The client may go on, and ask for what is there. */
	say(fd, "{\"command\":\"trace\",\"group\":2,\"worker\":2,\"token\":65546}\n");
	hear_ok(fd, "trace");
	ck_assert(fake_worker_trace(worker, &t));
	close(fd);
}

START_TEST(trace_lines_that_find_no_room_are_counted)
{
	struct smcr_trace t = message(SMCR_TRACE_LLC, 1, 0);
	int fd = dial(path);
	uint64_t lines = 0, dropped = 0, n = 10000;

	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	for (uint64_t i = 0; i < n; i++) {
		fake_worker_trace(worker, &t);
		if (i % 100 == 0)
			turns(1);
	}
	/* What was left out before a line is told with it, the rest by a line of its own. */
	while (lines + dropped < n) {
		json_t *root = hear_json(fd);

		if (strcmp(json_string_value(json_object_get(root, "event")), "message") == 0)
			lines++;
		dropped += (uint64_t)json_integer_value(json_object_get(root, "dropped"));
		json_decref(root);
	}
	ck_assert_uint_eq(lines + dropped, n);
	ck_assert_uint_gt(lines, 100);
	ck_assert_uint_gt(dropped, 100);
	close(fd);
	turns(2);
	ck_assert_uint_eq(counter("control_trace_dropped"), dropped);
}

START_TEST(an_unread_trace_ends)
{
	struct smcr_trace t = message(SMCR_TRACE_LLC, 1, 0);
	int fd = dial(path);

	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 500; k++)
			fake_worker_trace(worker, &t);
		turns(2);
		fake_loop_advance(loop, S);
	}
	ck_assert(!fake_worker_trace(worker, &t));
	close(fd);
}

/* -- events -- */

/* Far apart, so that the limit of a kind does not count. */
static void
tell(enum event_kind kind, const char *service, uint64_t group)
{
	static int64_t now_ns;
	struct event e = { .kind = kind, .group = group, .peer = "192.0.2.1", .reason = "because" };

	strcpy(e.service, service);
	event_report(&news, now_ns += 10 * S, 2, &e);
}

START_TEST(only_kept_events_are_sent)
{
	int fd = dial(path);

	tell(EVENT_PEER_UNREACHABLE, "web", 0);
	tell(EVENT_LINK_UP, "", 7);
	say(fd, "{\"command\":\"events\"}\n");
	hear_ok(fd, "events");
	json_t *root = hear_json(fd);
	ck_assert_str_eq(json_string_value(json_object_get(root, "event")), "change");
	ck_assert_str_eq(json_string_value(json_object_get(root, "kind")), "peer-unreachable");
	ck_assert_str_eq(json_string_value(json_object_get(root, "level")), "warning");
	ck_assert_str_eq(json_string_value(json_object_get(root, "service")), "web");
	ck_assert_str_eq(json_string_value(json_object_get(root, "text")),
	    "peer not available: service=web peer=192.0.2.1 reason=because");
	ck_assert_int_eq(json_integer_value(json_object_get(root, "worker")), 2);
	ck_assert_uint_eq(json_object_size(root), 10 + EVENT_FIELD_CNT);
	json_decref(root);
	hear_event(fd, "link-up", 2);
	hear_event(fd, "", 0);
	tell(EVENT_LINK_UP, "", 7);
	turns(3);
	ck_assert_int_eq(recv(fd, &(char){ 0 }, 1, 0), -1);
	/* The same client may go on asking. */
	say(fd, "{\"command\":\"events\",\"kind\":\"link-down\"}\n");
	hear_ok(fd, "events");
	hear_event(fd, "", 0);
	close(fd);
}

START_TEST(events_are_filtered_for_each_client)
{
	static const char *const requests[] = {
		"{\"command\":\"events\",\"service\":\"web\"}\n",
		"{\"command\":\"events\",\"group\":7}\n",
		"{\"command\":\"events\",\"kind\":\"group-up\"}\n",
	};

	tell(EVENT_PEER_UNREACHABLE, "web", 0);
	tell(EVENT_LINK_UP, "", 7);
	tell(EVENT_GROUP_UP, "", 8);
	for (uint64_t i = 0; i < 3; i++) {
		static const char *const kinds[] = { "peer-unreachable", "link-up", "group-up" };
		int fd = dial(path);

		say(fd, requests[i]);
		hear_ok(fd, "events");
		hear_event(fd, kinds[i], i + 1);
		hear_event(fd, "", 0);
		close(fd);
	}
}

START_TEST(a_follower_gets_new_events_and_causes_no_wake_up_afterwards)
{
	int fd = dial(path);

	tell(EVENT_PEER_UNREACHABLE, "web", 0);
	say(fd, "{\"command\":\"events\",\"follow\":true}\n");
	hear_ok(fd, "events");
	hear_event(fd, "peer-unreachable", 1);
	fake_loop_advance(loop, 1000 * S); /* silence is no reason to end it */
	turns(2);
	tell(EVENT_PEER_REACHABLE, "web", 0);
	ck_assert(news.pending);
	hear_event(fd, "peer-reachable", 2);
	close(fd);
	turns(2);
	tell(EVENT_PEER_UNREACHABLE, "web", 0);
	ck_assert(!news.pending);
}

START_TEST(events_exceed_a_block_and_a_slow_reader_gets_the_gap)
{
	int fd = dial(path);
	uint64_t heard = 0, dropped = 0, last = 0;

	for (unsigned i = 0; i < EVENT_HISTORY_KEPT; i++)
		tell(EVENT_LINK_UP, "", 7);
	say(fd, "{\"command\":\"events\",\"follow\":true}\n");
	hear_ok(fd, "events");
	turns(50);
	/* Its block and its socket are full: of these it will not hear. */
	for (unsigned i = 0; i < 8 * EVENT_HISTORY_KEPT; i++)
		tell(EVENT_LINK_UP, "", 7);
	while (last < 9 * EVENT_HISTORY_KEPT) {
		json_t *root = hear_json(fd);

		heard++;
		dropped += (uint64_t)json_integer_value(json_object_get(root, "dropped"));
		last = (uint64_t)json_integer_value(json_object_get(root, "number"));
		ck_assert_uint_eq(heard + dropped, last);
		json_decref(root);
	}
	ck_assert_uint_gt(dropped, 100);
	close(fd);
}

START_TEST(followers_yield_like_traces)
{
	int fds[CONTROL_TRACES_MAX], fd;

	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++) {
		fds[i] = dial(path);
		say(fds[i], "{\"command\":\"events\",\"follow\":true}\n");
		hear_ok(fds[i], "events");
	}
	fd = dial(path);
	say(fd, "{\"command\":\"trace\"}\n");
	hear_ok(fd, "trace");
	hear_error(fds[0], "events", "busy", "has ended");
	close(fd);
	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++)
		close(fds[i]);
}

START_TEST(followers_on_the_readonly_socket_yield_to_readers_only)
{
	int trace = dial(path), fds[CONTROL_READERS_MAX];

	say(trace, "{\"command\":\"trace\"}\n");
	hear_ok(trace, "trace");
	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++) {
		fds[i] = dial(readonly);
		say(fds[i], "{\"command\":\"events\",\"follow\":true}\n");
		hear_ok(fds[i], "events");
	}
	int fd = dial(readonly);
	say(fd, "{\"command\":\"status\"}\n");
	hear_ok(fd, "status");
	hear_error(fds[0], "events", "busy", "has ended");
	/* Who asks once takes nobody's place. */
	say(fd, "{\"command\":\"events\"}\n");
	hear_ok(fd, "events");
	hear_event(fd, "", 0);
	turns(2);
	ck_assert_uint_eq(client_cnt(), 1 + CONTROL_READERS_MAX);
	tell(EVENT_LINK_UP, "", 7);
	hear_event(fds[1], "link-up", 1);
	close(trace);
	close(fd);
	for (unsigned i = 0; i < CONTROL_READERS_MAX; i++)
		close(fds[i]);
}

START_TEST(a_single_query_of_events_ends_no_trace)
{
	int traces[CONTROL_TRACES_MAX], fd = dial(path);

	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++) {
		traces[i] = dial(path);
		say(traces[i], "{\"command\":\"trace\"}\n");
		hear_ok(traces[i], "trace");
	}
	say(fd, "{\"command\":\"events\"}\n");
	hear_ok(fd, "events");
	hear_event(fd, "", 0);
	turns(2);
	ck_assert_uint_eq(client_cnt(), 1 + CONTROL_TRACES_MAX);
	close(fd);
	for (unsigned i = 0; i < CONTROL_TRACES_MAX; i++)
		close(traces[i]);
}
