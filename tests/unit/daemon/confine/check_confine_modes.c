/* What a confined process can go on doing, and how far the confinement goes: by setting, beside threads, in tests. */
#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "confine_child.h"

#define LANDLOCK_CREATE_RULESET 444 /* on every processor */

/* -- ports below 1024 -- */

static int
bind_low_port(void)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(1), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return bind(fd, (struct sockaddr *)&sin, sizeof(sin));
}

static bool
low_ports_are_special(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
	int start = 1024;

	if (f != NULL && fscanf(f, "%d", &start) != 1)
		start = 1024;
	if (f != NULL)
		fclose(f);
	return start > 1;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(low_ports_need_the_kept_capability)
{
	if (!low_ports_are_special()) {
		puts("# any port is for everybody here");
		return;
	}
	check_exit("a port below 1024", confined(bind_low_port, CONFINE_CAPABILITIES), EACCES);
	cfg.confine.low_ports = true;
	if (geteuid() == 0)
		check_exit("a port below 1024, kept", confined(bind_low_port, CONFINE_CAPABILITIES), 0);
}

/* 0 when there is no capability but CAP_BPF, and that one. */
static int
only_bpf_is_kept(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data) != 0)
		return -1;
	errno = EPERM;
	return data[0].permitted == 0 && data[1].permitted == 1u << (39 - 32) && data[1].effective == data[1].permitted
	    ? 0
	    : -1;
}

/* For kernels that let nobody read a BPF map without. */
START_TEST(the_right_to_bpf_is_kept_on_request)
{
	check_exit("nothing is kept", confined(only_bpf_is_kept, CONFINE_CAPABILITIES), EPERM);
	keep_bpf = true;
	if (geteuid() == 0)
		check_exit("CAP_BPF alone", confined(only_bpf_is_kept, CONFINE_CAPABILITIES), 0);
}

/* 0 when CAP_NET_RAW is the only capability, does what it is kept for, and opens neither raw nor packet sockets. */
static int
connects_as_others_alone(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	bool good = syscall(SYS_capget, &head, data) == 0 && data[1].permitted == 0 &&
	    data[0].permitted == 1u << CAP_NET_RAW && data[0].effective == data[0].permitted;

	good = good && setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_MARK, &on, sizeof(on)) == 0;
	good = good && socket(AF_INET, SOCK_RAW, IPPROTO_TCP) < 0 && errno == ENOSYS;
	good = good && socket(AF_INET6, SOCK_RAW, IPPROTO_TCP) < 0 && errno == ENOSYS;
	good = good && socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == ENOSYS;
	errno = EPERM;
	return good ? 0 : -1;
}

START_TEST(the_right_to_clients_addresses_is_kept_on_request)
{
	struct config_service services[] = { { .kind = CONFIG_EGRESS },
		{ .kind = CONFIG_EGRESS, .client_address = CONFIG_CLIENT_CONNECT } };

	if (geteuid() != 0)
		return;
	cfg.services = services;
	cfg.service_cnt = 1;
	check_exit("nothing is kept", confined(connects_as_others_alone, CONFINE_SYSTEM_CALLS), EPERM);
	cfg.service_cnt = 2;
	check_exit("CAP_NET_RAW alone", confined(connects_as_others_alone, CONFINE_SYSTEM_CALLS), 0);
	cfg.services = NULL;
	cfg.service_cnt = 0;
}

/* -- allowed: what a daemon goes on doing -- */

static int
can_reload(void)
{
	char path[128];
	struct addrinfo *ai = NULL;

	if (open_and_close(conf_path, O_RDONLY) < 0 || open_and_close("/etc/hosts", O_RDONLY) < 0)
		return -1;
	/* Another file in its place. */
	snprintf(path, sizeof(path), "%s/./smcrd.conf", conf_dir);
	if (open_and_close(path, O_RDONLY) < 0)
		return -1;
	if (getaddrinfo("localhost", "80", NULL, &ai) != 0)
		return -1;
	freeaddrinfo(ai);
	return 0;
}

static int
can_look(void)
{
	int at, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (open_and_close("/proc/self/statm", O_RDONLY) < 0 || fd < 0)
		return -1;
	return ioctl(fd, FIONREAD, &at) < 0 && errno == ENOSYS ? -1 : 0;
}

static int
can_remove_control(void)
{
	return unlink(control_path);
}

static void *
nothing(void *arg)
{
	return arg;
}

static int
can_start_thread(void)
{
	pthread_t t;

	errno = pthread_create(&t, NULL, nothing, NULL);
	return errno != 0 || pthread_join(t, NULL) != 0 ? -1 : 0;
}

static int
can_open_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : 0;
}

static const struct {
	const char *name;
	int (*fn)(void);
} allowed[] = {
	{ "a reload", can_reload },
	{ "status", can_look },
	{ "the control socket's end", can_remove_control },
	{ "a thread", can_start_thread },
	{ "interfaces", can_open_netlink },
};

START_LOOP_TEST(is_allowed, 0, sizeof(allowed) / sizeof(allowed[0]))
{
	setenv(CONFINE_TEST_ENV, "kill", 1);
	check_exit(allowed[_i].name, confined(allowed[_i].fn, CONFINE_PRIVILEGES), 0);
}

static char next_cert[96];

static int
can_read_next_cert(void)
{
	return open_and_close(cfg.tls.cert, O_RDONLY) < 0 ? -1 : open_and_close(next_cert, O_RDONLY);
}

/* As certbot places certificates: a link in one directory to the present one of another. */
START_TEST(a_link_to_a_certificate_may_change_to_its_neighbour)
{
	char live[96], archive[96], cert[128];

	snprintf(live, sizeof(live), "%s/live", top);
	snprintf(archive, sizeof(archive), "%s/archive", top);
	ck_assert(mkdir(live, 0700) == 0 && mkdir(archive, 0700) == 0);
	snprintf(cert, sizeof(cert), "%s/1.pem", archive);
	snprintf(next_cert, sizeof(next_cert), "%s/archive/2.pem", top);
	snprintf(cfg.tls.cert, sizeof(cfg.tls.cert), "%s/live/cert.pem", top);
	write_file(cert);
	write_file(next_cert);
	ck_assert_int_eq(symlink("../archive/1.pem", cfg.tls.cert), 0);
	check_exit("the next certificate", confined(can_read_next_cert, CONFINE_FILES), 0);
	ck_assert(unlink(cfg.tls.cert) == 0 && unlink(cert) == 0 && unlink(next_cert) == 0);
	ck_assert(rmdir(live) == 0 && rmdir(archive) == 0);
}

static int
end_by_assertion(void)
{
	abort();
}

START_TEST(an_assertion_still_ends_it)
{
	setenv(CONFINE_TEST_ENV, "kill", 1);
	int status = confined(end_by_assertion, CONFINE_PRIVILEGES);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}

/* -- a filter around it, as of a container -- */

static int
landlock_text_under_a_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LANDLOCK_CREATE_RULESET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };
	struct confine_state state = { 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		return EXIT_NO_PART;
	confine_preview(&cfg, false, &state);
	return strcmp(state.part[CONFINE_FILES].text, "Landlock cannot be used here: Operation not permitted") != 0;
}

START_TEST(a_filter_is_no_old_kernel)
{
	int status;

#ifdef SMCRD_COVERAGE
	return;
#endif
	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(landlock_text_under_a_filter());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	check_exit("a filter", status, 0);
}

/* -- threads that run already -- */

static int go[2];

static void *
try_in_thread(void *arg)
{
	char c;

	(void)!read(go[0], &c, 1);
	*(int *)arg = try_memfd() < 0 ? errno : 0;
	return NULL;
}

START_TEST(threads_that_run_already)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* The filter is theirs, too; what is not, is not claimed. */
		struct confine_state state;
		pthread_t t;
		int err = 0;

		if (pipe(go) != 0 || pthread_create(&t, NULL, try_in_thread, &err) != 0)
			_exit(1);
		if (confine_self(&state) != 0)
			_exit(2);
		if (state.part[CONFINE_FILES].on)
			_exit(3);
		if (geteuid() == 0 && state.part[CONFINE_CAPABILITIES].on)
			_exit(4);
		if (write(go[1], "x", 1) != 1 || pthread_join(t, NULL) != 0)
			_exit(5);
		if (state.part[CONFINE_SYSTEM_CALLS].on && err != ENOSYS)
			_exit(6);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* -- modes -- */

static int
mode_of_files(void)
{
	return open_and_close(foreign, O_RDONLY);
}

START_TEST(off_changes_nothing)
{
	struct confine_state state;
	struct rlimit before, after;

	cfg.confine.mode = CONFIG_CONFINE_OFF;
	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	ck_assert_int_eq(confine_self(&state), 0);
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
	ck_assert_int_ge(mode_of_files(), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &after), 0);
	ck_assert(before.rlim_max == after.rlim_max);
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++) {
		ck_assert(!state.part[i].on);
		ck_assert_str_eq(state.part[i].text, "confine.mode is \"off\"");
	}
}

/* Looking says what entering does, and does nothing. */
START_LOOP_TEST(a_preview_is_what_comes, 0, 2)
{
	struct confine_state preview, state;
	int status;

	keep_bpf = _i == 1;
	confine_preview(&cfg, keep_bpf, &preview);
	if (geteuid() == 0)
		ck_assert((strstr(preview.part[CONFINE_CAPABILITIES].text, "CAP_BPF") != NULL) == (_i == 1));
	ck_assert_int_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
	ck_assert_int_ge(mode_of_files(), 0);
	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)confine_self(&state);
		for (unsigned i = 0; i < CONFINE_PART_CNT; i++)
			if (state.part[i].on != preview.part[i].on ||
			    strcmp(state.part[i].text, preview.part[i].text) != 0)
				_exit(1 + (int)i);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

START_TEST(require_is_all_or_nothing)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct confine_state state;
		pthread_t t;
		int err = 0;

		cfg.confine.mode = CONFIG_CONFINE_REQUIRE;
		if (pipe(go) != 0 || pthread_create(&t, NULL, try_in_thread, &err) != 0)
			_exit(1);
		_exit(confine_self(&state) == CONFINE_REFUSED ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

START_TEST(only_logs_when_asked)
{
	setenv(CONFINE_TEST_ENV, "log", 1);
	/* The part is not on then. */
	check_exit("memfd", confined(try_memfd, CONFINE_PRIVILEGES), 0);
}

/* -- the kernel's log -- */

static int
try_clone3_and_memfd(void)
{
	(void)syscall(SYS_clone3, NULL, 0);
	return try_memfd();
}

/* Does the kernel's log have a refusal of this call by the process? Negative: the log cannot be read. */
static int
is_logged(pid_t pid, long call)
{
	static char log[1 << 20];
	char by[32], nr[32];
	int len = klogctl(3 /* SYSLOG_ACTION_READ_ALL */, log, sizeof(log) - 1), found = 0;

	if (len < 0)
		return -1;
	log[len] = '\0';
	snprintf(by, sizeof(by), " pid=%d ", (int)pid);
	snprintf(nr, sizeof(nr), " syscall=%ld ", call);
	for (char *line = strtok(log, "\n"); line != NULL; line = strtok(NULL, "\n"))
		found |= strstr(line, "type=1326") != NULL && strstr(line, by) != NULL && strstr(line, nr) != NULL;
	return found;
}

/* A new thread asks for clone3 first, so that a reload looked like an attempt at something. */
START_TEST(a_refused_clone3_is_not_logged)
{
	struct confine_state state;
	int status;

	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (confine_self(&state) != 0 || !state.part[CONFINE_SYSTEM_CALLS].on)
			_exit(EXIT_NO_PART);
		_exit(try_clone3_and_memfd() < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	check_exit("clone3, memfd", status, ENOSYS);
	/* The kernel writes them in their order, when it comes to it, and of many at once only some. */
	int logged = is_logged(pid, SYS_memfd_create);
	for (unsigned i = 0; logged == 0 && i < 100; i++) {
		usleep(20000);
		logged = is_logged(pid, SYS_memfd_create);
	}
	if (logged != 1)
		puts("# the kernel's log cannot be read, or does not have this refusal");
	else
		ck_assert_int_eq(is_logged(pid, SYS_clone3), 0);
}
