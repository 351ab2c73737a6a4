/* The keeper of the daemon; see process/keeper.h. */
#include "daemon/process/keeper.h"

#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/process/background.h"
#include "daemon/process/reload_client.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define BUS_WAIT_US 10000000 /* for an answer of systemd */
#define ABORT_WAIT_MS 1000   /* from SIGABRT to SIGKILL: for a core dump */

struct keeper {
	pid_t pid; /* of the daemon */
	bool adopted;
	bool ready;
	bool stops;   /* the unit ends */
	bool is_main; /* systemd said so when that began */
	int signals;  /* signalfd */
	int process;  /* pidfd */
	int news;     /* a byte when the child is ready */
	int waiting;  /* the command that started the keeper waits there; -1 = none */
};

/* -- systemd -- */

/* Of the unit of this process: its job, as "restart"; "" for none. *is_main: this is its main process. 0 or -errno. */
static int
ask_systemd(char job_type[32], bool *is_main)
{
	sd_bus *bus = NULL;
	sd_bus_message *reply = NULL;
	char *group = NULL, *path = NULL, *type = NULL;
	const char *job = "/";
	uint32_t main_pid = 0;
	/* Its last part is the unit. sd_pid_get_unit() would read /proc/1, which ProtectProc= hides. */
	int rc = sd_pid_get_cgroup(0, &group);

	const char *slash = rc >= 0 ? strrchr(group, '/') : NULL;

	if (rc >= 0)
		rc = slash != NULL ? sd_bus_path_encode("/org/freedesktop/systemd1/unit", slash + 1, &path) : -ENODATA;
	if (rc >= 0)
		rc = sd_bus_open_system(&bus);
	if (rc >= 0)
		rc = sd_bus_set_method_call_timeout(bus, BUS_WAIT_US);
	if (rc >= 0)
		rc = sd_bus_get_property_trivial(
		    bus, SYSTEMD, path, SYSTEMD ".Service", "MainPID", NULL, 'u', &main_pid);
	if (rc >= 0)
		rc = sd_bus_get_property(bus, SYSTEMD, path, SYSTEMD ".Unit", "Job", NULL, &reply, "(uo)");
	if (rc >= 0)
		rc = sd_bus_message_read(reply, "(uo)", NULL, &job);
	if (rc >= 0 && strcmp(job, "/") != 0)
		rc = sd_bus_get_property_string(bus, SYSTEMD, job, SYSTEMD ".Job", "JobType", NULL, &type);
	(void)snprintf(job_type, 32, "%s", rc >= 0 && type != NULL ? type : "");
	*is_main = main_pid == (uint32_t)getpid();
	free(group);
	free(path);
	free(type);
	(void)sd_bus_message_unref(reply);
	(void)sd_bus_flush_close_unref(bus);
	return rc < 0 ? rc : 0;
}

/* Is this stop the first half of a restart? Without an answer it is a stop alone. */
static bool
is_restart(struct keeper *k)
{
	char job_type[32];
	const int rc = ask_systemd(job_type, &k->is_main);

	if (rc != 0)
		log_msg(LOG_LVL_WARNING,
		    "systemd does not say whether this is a restart, the daemon ends: error=\"%s\"", strerror(-rc));
	return strcmp(job_type, "restart") == 0;
}

static bool
in_same_unit(pid_t pid)
{
	char *ours = NULL, *its = NULL;
	const bool is = sd_pid_get_cgroup(0, &ours) >= 0 && sd_pid_get_cgroup(pid, &its) >= 0 && strcmp(ours, its) == 0;

	free(ours);
	free(its);
	return is;
}

/* The unit has ended: so do processes of it that hang. KillMode=process of the unit leaves that to its main process. */
static void
end_left_processes(void)
{
	char *group = NULL, path[512];
	int pid;

	if (sd_pid_get_cgroup(0, &group) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.procs", group);
	FILE *f = fopen(path, "re");
	while (f != NULL && fscanf(f, "%d", &pid) == 1)
		if (pid > 1 && pid != getpid() && kill(pid, SIGKILL) == 0)
			log_msg(LOG_LVL_WARNING, "a process of the unit was killed: pid=%d", pid);
	if (f != NULL)
		(void)fclose(f);
	free(group);
}

/* -- the daemon -- */

static void
set_pid(const char *variable, pid_t pid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	(void)setenv(variable, text, 1);
}

/* Systemd has named the keeper as the process that gets sockets and feeds the watchdog. */
static void
become_daemon(const sigset_t *before)
{
	(void)sigprocmask(SIG_SETMASK, before, NULL);
	if (getenv("LISTEN_PID") != NULL && atoi(getenv("LISTEN_PID")) == getppid())
		set_pid("LISTEN_PID", getpid());
	(void)unsetenv("WATCHDOG_PID");
}

static void
close_sockets(void)
{
	const int n = sd_listen_fds(1);

	for (int i = 0; i < n; i++)
		close(SD_LISTEN_FDS_START + i);
}

static bool
keeper_watch(struct keeper *k, pid_t pid)
{
	if (k->process >= 0)
		close(k->process);
	k->pid = pid;
	k->process = (int)syscall(SYS_pidfd_open, pid, 0);
	return k->process >= 0;
}

/* Another daemon of the unit serves: it goes on. */
static bool
adopt_daemon(struct keeper *k, const char *control_path)
{
	const pid_t pid = reload_client_find(control_path);

	if (pid <= 0 || !in_same_unit(pid) || !keeper_watch(k, pid))
		return false;
	log_msg(LOG_LVL_ERROR, "the process that was running goes on: pid=%d", (int)pid);
	k->adopted = true;
	(void)sd_notify(0, "READY=1");
	return true;
}

/* The running daemon shows why it was not replaced. */
static void
report_failure(const char *control_path, int status)
{
	char why[80];

	(void)snprintf(why, sizeof(why), "smcrd " PACKAGE_VERSION " failed at its start, %s %d",
	    WIFSIGNALED(status) ? "signal" : "exit status",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	log_msg(LOG_LVL_ERROR, "%s", why);
	reload_client_report(control_path, why);
}

static void
take_signal(struct keeper *k, int signo)
{
	struct pollfd ended = { .fd = k->process, .events = POLLIN };

	if (signo == SIGCHLD)
		return;
	if (signo == SIGTERM && !k->stops && is_restart(k)) {
		log_msg(
		    LOG_LVL_NOTICE, "a restart: the daemon goes on until the next one takes over: pid=%d", (int)k->pid);
		_exit(EXIT_SUCCESS);
	}
	k->stops = k->stops || signo == SIGTERM || signo == SIGINT;
	(void)kill(k->pid, signo);
	if (signo == SIGABRT && poll(&ended, 1, ABORT_WAIT_MS) == 0)
		(void)kill(k->pid, SIGKILL);
}

static void
on_ready(struct keeper *k)
{
	char byte;

	k->ready = read(k->news, &byte, 1) == 1 && byte == EXIT_SUCCESS; /* otherwise it ends */
	close(k->news);
	k->news = -1;
	if (k->ready) {
		background_ready(k->waiting);
		k->waiting = -1;
	}
}

/* Until the daemon has ended: its status of wait(), 0 of an adopted one. */
static int
keep_daemon(struct keeper *k)
{
	struct signalfd_siginfo info;
	int status = 0;

	for (;;) {
		struct pollfd fds[] = { { .fd = k->signals, .events = POLLIN }, { .fd = k->news, .events = POLLIN },
			{ .fd = k->process, .events = POLLIN } };

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return EXIT_FAILURE << 8;
		if (fds[0].revents != 0 && read(k->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
			take_signal(k, (int)info.ssi_signo);
		if (fds[1].revents != 0)
			on_ready(k);
		if (fds[2].revents == 0)
			continue;
		if (!k->adopted)
			(void)waitpid(k->pid, &status, 0);
		return status;
	}
}

/* Ends like the daemon. */
static int
end_as(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &(sigset_t){ 0 }, NULL);
	(void)raise(WTERMSIG(status));
	return EXIT_FAILURE;
}

int
keeper_run(const char *control_path, int failed, bool adopts, int *ready)
{
	static const int taken[] = { SIGTERM, SIGINT, SIGHUP, SIGABRT, SIGCHLD };
	struct keeper k = { .signals = -1, .process = -1, .news = -1, .waiting = *ready };
	int ends[2] = { -1, -1 }, status = failed << 8;
	sigset_t set, before;

	(void)sigemptyset(&set);
	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		(void)sigaddset(&set, taken[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	k.signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (k.signals < 0 || pipe2(ends, O_CLOEXEC) != 0)
		return EXIT_FAILURE;
	const pid_t pid = failed == 0 ? fork() : -1;
	if (pid == 0) {
		close(ends[0]);
		close(k.signals);
		if (k.waiting >= 0)
			close(k.waiting);
		*ready = ends[1];
		become_daemon(&before);
		return KEEPER_IS_DAEMON;
	}
	close(ends[1]);
	k.news = ends[0];
	close_sockets();
	if (pid > 0)
		status = keeper_watch(&k, pid) ? keep_daemon(&k) : EXIT_FAILURE << 8;
	else if (failed == 0)
		status = EXIT_FAILURE << 8;
	if (status != 0 && !k.ready && !k.stops) {
		report_failure(control_path, status);
		if (adopts && adopt_daemon(&k, control_path))
			(void)keep_daemon(&k); /* the end is that of the start, unless it is a stop */
	}
	if (k.adopted && k.stops)
		status = 0;
	if (k.stops && k.is_main)
		end_left_processes();
	*ready = k.waiting;
	return end_as(status);
}
