/* A child that confines itself as the daemon does and tries something, for tests: with a configuration and a control
 * socket in directories of their own. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/confine/confine.h"
#include "unit.h"

/* The configuration and the control socket are in directories of their own; `foreign` is a file elsewhere. */
static char top[64], conf_dir[80], run_dir[80], conf_path[96], control_path[96], foreign[96];
static struct config cfg;
static bool keep_bpf;

static inline void
write_file(const char *path)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	fputs("text\n", f);
	ck_assert_int_eq(fclose(f), 0);
}

static inline void
setup(void)
{
	snprintf(top, sizeof(top), "/tmp/check_confine.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(conf_dir, sizeof(conf_dir), "%s/etc", top);
	snprintf(run_dir, sizeof(run_dir), "%s/run", top);
	snprintf(conf_path, sizeof(conf_path), "%s/smcrd.conf", conf_dir);
	snprintf(control_path, sizeof(control_path), "%s/control", run_dir);
	snprintf(foreign, sizeof(foreign), "%s/foreign", top);
	ck_assert_int_eq(mkdir(conf_dir, 0700), 0);
	ck_assert_int_eq(mkdir(run_dir, 0700), 0);
	write_file(conf_path);
	write_file(control_path);
	write_file(foreign);
	memset(&cfg, 0, sizeof(cfg));
	cfg.confine.mode = CONFIG_CONFINE_AUTO;
	strcpy(cfg.path, conf_path);
	strcpy(cfg.control_path, control_path);
	unsetenv(CONFINE_TEST_ENV);
	keep_bpf = false;
}

static inline void
teardown(void)
{
	unlink(foreign);
	unlink(control_path);
	unlink(conf_path);
	rmdir(run_dir);
	rmdir(conf_dir);
	rmdir(top);
}

/* Both steps of the daemon. */
static inline int
confine_self(struct confine_state *state)
{
	int rc = confine_rights(&cfg, keep_bpf, state);

	return rc != 0 ? rc : confine_calls(state);
}

/* -- a child that confines itself and tries something -- */

enum {
	EXIT_NO_PART = 254, /* the part that refuses is not to be had here */
	EXIT_BAD = 255,
};

/* What wait says of a child that ran fn: its errno, 0 for success, in the exit code. */
static inline int
confined(int (*fn)(void), enum confine_part part)
{
	struct confine_state state;
	int status;

	fflush(NULL);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (confine_self(&state) != 0)
			_exit(EXIT_BAD);
		if (!state.part[part].on)
			_exit(EXIT_NO_PART);
		errno = 0;
		_exit(fn() < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void
check_exit(const char *what, int status, int want)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PART) {
		printf("# %s: not tried, this part is not to be had here\n", what);
		return;
	}
	ck_assert_msg(WIFEXITED(status), "%s: signal %d", what, WTERMSIG(status));
	ck_assert_msg(
	    WEXITSTATUS(status) == want, "%s: %s, not %s", what, strerror(WEXITSTATUS(status)), strerror(want));
}

static inline int
open_and_close(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd >= 0)
		close(fd);
	return fd;
}

/* A system call that is never allowed, and harmless. */
static inline int
try_memfd(void)
{
	return (int)syscall(SYS_memfd_create, "x", 0);
}
