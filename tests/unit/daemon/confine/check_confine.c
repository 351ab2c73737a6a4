/* What a confined process is refused: one thing a test, each tried in a child that has confined itself as the daemon
 * does. What it can do: check_confine_modes.c. */
#include <config.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "confine_child.h"

#ifdef SMCRD_SANITIZERS
#define SANITIZERS true
#else
#define SANITIZERS false
#endif

/* -- denied: system calls -- */

static int
try_execve(void)
{
	char *argv[] = { (char *)"true", NULL };

	return execve("/bin/true", argv, argv + 1);
}

static int
try_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static int
try_ptrace(void)
{
	return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int
try_read_parent(void)
{
	return (int)syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static int
try_kill_parent(void)
{
	return kill(getppid(), 0);
}

static int
try_tgkill_parent(void)
{
	return (int)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static int
try_packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static int
try_raw_socket(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int
try_bluetooth_socket(void)
{
	return socket(AF_BLUETOOTH, SOCK_RAW, 0);
}

static int
try_netfilter_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 12);
}

static int
try_map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static int
try_map_writable_code(void)
{
	int fd = open(conf_path, O_RDONLY);

	return mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}

static int
try_make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static int
try_create(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/new", conf_dir);
	return open(path, O_WRONLY | O_CREAT, 0600);
}

static int
try_mkdir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/new", conf_dir);
	return mkdir(path, 0700);
}

static int
try_rename(void)
{
	return rename(conf_path, control_path);
}

static int
try_chmod(void)
{
	return chmod(conf_path, 0666);
}

static int
try_terminal_input(void)
{
	return ioctl(STDIN_FILENO, TIOCSTI, "x");
}

static int
try_limit_of_parent(void)
{
	struct rlimit lim;

	return (int)syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, NULL, &lim);
}

static int
try_user_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int
try_namespace_thread(void)
{
	return (int)syscall(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_NEWUSER, 0, 0, 0, 0);
}

static int
try_prctl(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

#define TRY_PLAIN(name, ...)                      \
	static int try_##name(void)               \
	{                                         \
		return (int)syscall(__VA_ARGS__); \
	}
TRY_PLAIN(clone3, SYS_clone3, NULL, 0)
TRY_PLAIN(setuid, SYS_setuid, 0)
TRY_PLAIN(chroot, SYS_chroot, "/")
TRY_PLAIN(mount, SYS_mount, "none", "/mnt", "tmpfs", 0, NULL)
TRY_PLAIN(module, SYS_finit_module, -1, "", 0)
TRY_PLAIN(bpf, SYS_bpf, 0, NULL, 0)
TRY_PLAIN(bpf_program, SYS_bpf, 5, NULL, 0)
TRY_PLAIN(bpf_attach, SYS_bpf, 8, NULL, 0)
TRY_PLAIN(perf, SYS_perf_event_open, NULL, 0, -1, -1, 0)
TRY_PLAIN(io_uring, SYS_io_uring_setup, 1, NULL)
TRY_PLAIN(userfault, SYS_userfaultfd, 0)
TRY_PLAIN(keys, SYS_keyctl, 0, 0, 0, 0, 0)
TRY_PLAIN(open_handle, SYS_open_by_handle_at, -1, NULL, 0)
TRY_PLAIN(pidfd, SYS_pidfd_open, 1, 0)
TRY_PLAIN(reboot, SYS_reboot, 0, 0, 0, NULL)

/* -- denied: files, capabilities, privileges -- */

static int
try_foreign_file(void)
{
	return open_and_close(foreign, O_RDONLY);
}

static int
try_program(void)
{
	return open_and_close("/bin/sh", O_RDONLY);
}

static int
try_root_directory(void)
{
	return open_and_close("/", O_RDONLY | O_DIRECTORY);
}

static int
try_init(void)
{
	return open_and_close("/proc/1/status", O_RDONLY);
}

static int
try_write_config(void)
{
	return open_and_close(conf_path, O_WRONLY);
}

static int
try_remove_config(void)
{
	return unlink(conf_path);
}

static int
try_memory(void)
{
	return open_and_close("/proc/self/mem", O_RDWR);
}

static int
try_raise_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_CORE, &lim) != 0)
		return 0;
	lim = (struct rlimit){ 1, 1 };
	if (setrlimit(RLIMIT_CORE, &lim) != 0)
		return 0;
	lim = (struct rlimit){ 2, 2 };
	return setrlimit(RLIMIT_CORE, &lim);
}

static int
has_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t any = 0;

	if (syscall(SYS_capget, &head, data) != 0)
		return 0;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		any |= data[i].effective | data[i].permitted | data[i].inheritable;
	errno = ENOENT;
	return any == 0 ? -1 : 0;
}

static const struct {
	const char *name;
	int (*fn)(void);
	enum confine_part part;
	int want;
	bool sanitizers_may;
} denied[] = {
	{ "a program", try_execve, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a process", try_fork, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "ptrace", try_ptrace, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "memory of a process", try_read_parent, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "a signal to a process", try_kill_parent, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "a signal to a thread of another process", try_tgkill_parent, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a packet socket", try_packet_socket, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a raw socket", try_raw_socket, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a socket of another family", try_bluetooth_socket, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "another netlink", try_netfilter_socket, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "new code", try_map_code, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "writable code", try_map_writable_code, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "data that becomes code", try_make_code, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a new file", try_create, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a new directory", try_mkdir, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a file's new name", try_rename, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a file's mode", try_chmod, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "words into a terminal", try_terminal_input, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "limits of another process", try_limit_of_parent, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a user namespace", try_user_namespace, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a user namespace by clone", try_namespace_thread, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "clone3", try_clone3, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "settings of the process", try_prctl, CONFINE_SYSTEM_CALLS, ENOSYS, true },
	{ "another user", try_setuid, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "chroot", try_chroot, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "mount", try_mount, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a kernel module", try_module, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "bpf", try_bpf, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a BPF program", try_bpf_program, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "attaching a BPF program", try_bpf_attach, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "perf events", try_perf, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "io_uring", try_io_uring, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "userfaultfd", try_userfault, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "keyrings", try_keys, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "memfd", try_memfd, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "files by handle", try_open_handle, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "pidfd", try_pidfd, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "reboot", try_reboot, CONFINE_SYSTEM_CALLS, ENOSYS, false },
	{ "a file elsewhere", try_foreign_file, CONFINE_FILES, EACCES, false },
	{ "a program's file", try_program, CONFINE_FILES, EACCES, false },
	{ "the root directory", try_root_directory, CONFINE_FILES, EACCES, false },
	{ "another process's status", try_init, CONFINE_FILES, EACCES, false },
	{ "writing the configuration", try_write_config, CONFINE_FILES, EACCES, false },
	{ "removing the configuration", try_remove_config, CONFINE_FILES, EACCES, false },
	{ "writing memory by /proc", try_memory, CONFINE_FILES, EACCES, false },
	{ "a limit above the hard one", try_raise_limit, CONFINE_CAPABILITIES, EPERM, false },
	{ "capabilities", has_capabilities, CONFINE_CAPABILITIES, ENOENT, false },
};

UNIT_FIXTURE(setup, teardown);

START_LOOP_TEST(is_denied, 0, sizeof(denied) / sizeof(denied[0]))
{
	if (SANITIZERS && denied[_i].sanitizers_may)
		return;
	check_exit(denied[_i].name, confined(denied[_i].fn, denied[_i].part), denied[_i].want);
}

/* In tests of the daemon the same is the end. */
START_LOOP_TEST(kills_in_tests, 0, sizeof(denied) / sizeof(denied[0]))
{
	int fds[2];
	char text[128];

	if (SANITIZERS && denied[_i].sanitizers_may)
		return;
	if (denied[_i].part != CONFINE_SYSTEM_CALLS || denied[_i].fn == try_clone3)
		return;
	setenv(CONFINE_TEST_ENV, "kill", 1);
	ck_assert_int_eq(pipe(fds), 0);
	fflush(NULL);
	int n = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
	int status = confined(denied[_i].fn, CONFINE_SYSTEM_CALLS);
	ck_assert_int_ge(dup2(n, STDERR_FILENO), 0);
	close(fds[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PART)
		return;
	ck_assert_msg(
	    WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s: status %x", denied[_i].name, (unsigned)status);
	n = (int)read(fds[0], text, sizeof(text) - 1);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "confine: system call refused: number="));
}
