/* The table of system calls; see confine_table.h. What the tests do not use is here for another C library, processor,
 * driver of a card or module of the name service, which the group's comment names. */
#include "daemon/confine/confine_table.h"

#include <config.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <fcntl.h>

#define EXACT UINT64_C(0xffffffff) /* ints, whatever the upper half of the register has */
#define ARG(n, m, v)                                    \
	{                                               \
		.index = (n), .mask = (m), .value = (v) \
	}
#define IS(n, v) ARG(n, EXACT, v)
#define OWN_PID(n)                                        \
	{                                                 \
		.index = (n), .mask = EXACT, .own_pid = 1 \
	}

#define SOCK_TYPE 0xf /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

#define WX (PROT_WRITE | PROT_EXEC)

/* A thread of this process, in its namespaces; no process. */
#define THREAD_IS (CLONE_VM | CLONE_THREAD)
#define THREAD_ISNT \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* ioctls of RDMA devices have this type, whatever their number. */
#define RDMA_TYPE_MASK 0xff00
#define RDMA_TYPE 0x1b00

const struct confine_call confine_allowed[] = {
	/* The loop: epoll by libevent and by us, wake-ups by eventfd, signals by a pipe of libevent's. */
	{ .name = "epoll_create" },
	{ .name = "epoll_create1" },
	{ .name = "epoll_ctl" },
	{ .name = "epoll_pwait" },
	{ .name = "epoll_pwait2" },
	{ .name = "epoll_wait" },
	{ .name = "eventfd" },
	{ .name = "eventfd2" },
	{ .name = "poll" },
	{ .name = "ppoll" },
	{ .name = "ppoll_time64" },
	{ .name = "pselect6" },
	{ .name = "pselect6_time64" },
	{ .name = "select" },
	{ .name = "_newselect" },
	{ .name = "timerfd_create" },
	{ .name = "timerfd_settime" },
	{ .name = "timerfd_settime64" },

	/* Sockets: TCP of legs, middles and soft iWARP; the control socket, systemd and name services by Unix sockets; UDP of
	 * the resolver; interfaces (and libibverbs) by netlink. No raw and no packet sockets. */
	{ "socket", { IS(0, AF_UNIX) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_RDMA) } },
	{ .name = "accept" },
	{ .name = "accept4" },
	{ .name = "bind" },
	{ .name = "connect" },
	{ .name = "getpeername" },
	{ .name = "getsockname" },
	{ .name = "getsockopt" },
	{ .name = "listen" },
	{ .name = "recv" },
	{ .name = "recvfrom" },
	{ .name = "recvmmsg" },
	{ .name = "recvmmsg_time64" },
	{ .name = "recvmsg" },
	{ .name = "send" },
	{ .name = "sendmmsg" },
	{ .name = "sendmsg" },
	{ .name = "sendto" },
	{ .name = "setsockopt" },
	{ .name = "shutdown" },

	/* Descriptors. */
	{ .name = "close" },
	{ .name = "close_range" },
	{ .name = "fcntl" },
	{ .name = "fcntl64" },
	{ .name = "pipe2" },
	{ .name = "read" },
	{ .name = "readv" },
	{ .name = "write" },
	{ .name = "writev" },

	/* The urgent mark, what a socket holds, an interface's name, MTU, hardware address and VLAN; is standard error a terminal;
	 * RDMA devices. Nothing else of what ioctl does: TIOCSTI puts words into somebody's terminal. */
	{ "ioctl", { IS(1, SIOCATMARK) } },
	{ "ioctl", { IS(1, FIONREAD) } },
	{ "ioctl", { IS(1, FIONBIO) } },
	{ "ioctl", { IS(1, SIOCOUTQ) } },
	{ "ioctl", { IS(1, SIOCGIFNAME) } },
	{ "ioctl", { IS(1, SIOCGIFINDEX) } },
	{ "ioctl", { IS(1, SIOCGIFFLAGS) } },
	{ "ioctl", { IS(1, SIOCGIFADDR) } },
	{ "ioctl", { IS(1, SIOCGIFMTU) } },
	{ "ioctl", { IS(1, SIOCGIFHWADDR) } },
	{ "ioctl", { IS(1, SIOCGIFVLAN) } },
	{ "ioctl", { IS(1, TCGETS) } },
	{ "ioctl", { ARG(1, RDMA_TYPE_MASK, RDMA_TYPE) } },

	/* Files, which Landlock bounds: the configuration and the resolver's at a reload, /proc/self for smcrctl status, cards
	 * below /sys and /dev; the control socket's end. Nothing is created. */
	{ "open", { ARG(1, O_CREAT, 0) } },
	{ "openat", { ARG(2, O_CREAT, 0) } },
	{ .name = "access" },
	{ .name = "faccessat" },
	{ .name = "faccessat2" },
	{ .name = "fstat" },
	{ .name = "fstat64" },
	{ .name = "fstatat64" },
	{ .name = "getdents" },
	{ .name = "getdents64" },
	{ .name = "lseek" },
	{ .name = "_llseek" },
	{ .name = "lstat" },
	{ .name = "lstat64" },
	{ .name = "newfstatat" },
	{ .name = "pread64" },
	{ .name = "readlink" },
	{ .name = "readlinkat" },
	{ .name = "stat" },
	{ .name = "stat64" },
	{ .name = "statfs" },
	{ .name = "statx" },
	{ .name = "unlink" },
	{ .name = "unlinkat" },

	/* Memory. Code comes from files alone, when a module of the name service or a card's driver is loaded: nothing is
	 * writable and executable, and nothing becomes executable that was not mapped so. Cards: no copy of registered memory
	 * in a child (MADV_DONTFORK). */
	{ .name = "brk" },
	{ "mmap", { ARG(2, WX, 0) } },
	{ "mmap", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mmap2", { ARG(2, WX, 0) } },
	{ "mmap2", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap2", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mprotect", { ARG(2, PROT_EXEC, 0) } },
	{ .name = "madvise" },
	{ .name = "membarrier" },
	{ .name = "mlock" },
	{ .name = "mremap" },
	{ .name = "munlock" },
	{ .name = "munmap" },

	/* Threads: loading a configuration, and what blocks in libibverbs and librdmacm. No processes. */
	{ "clone", { ARG(CLONE_FLAGS, THREAD_IS | THREAD_ISNT, THREAD_IS) } },
	{ .name = "exit" },
	{ .name = "futex" },
	{ .name = "futex_time64" },
	{ .name = "get_robust_list" },
	{ .name = "gettid" },
	{ .name = "rseq" },
	{ .name = "sched_getaffinity" },
	{ .name = "sched_yield" },
	{ .name = "set_robust_list" },
	{ .name = "set_tid_address" },
	{ "prctl", { IS(0, PR_SET_NAME) } },
	{ "prctl", { IS(0, 0x53564d41) } }, /* PR_SET_VMA: newer C libraries name their memory */

	/* Time; mostly without a system call, except on clocks that the kernel has to read. */
	{ .name = "clock_getres" },
	{ .name = "clock_gettime" },
	{ .name = "clock_gettime64" },
	{ .name = "clock_nanosleep" },
	{ .name = "clock_nanosleep_time64" },
	{ .name = "gettimeofday" },
	{ .name = "nanosleep" },
	{ .name = "time" },

	/* Signals, of which only our own go to us: abort() of a failed assertion. */
	{ .name = "restart_syscall" },
	{ .name = "rt_sigaction" },
	{ .name = "rt_sigprocmask" },
	{ .name = "rt_sigreturn" },
	{ .name = "rt_sigtimedwait" },
	{ .name = "sigaltstack" },
	{ .name = "sigreturn" },
	{ "tgkill", { OWN_PID(0) } },

	/* Who and where we are: process id in status and for systemd, users in logs of name services, limits of descriptors
	 * and locked memory at a reload, processors. Limits of this process alone. */
	{ .name = "getcpu" },
	{ .name = "getegid" },
	{ .name = "getegid32" },
	{ .name = "geteuid" },
	{ .name = "geteuid32" },
	{ .name = "getgid" },
	{ .name = "getgid32" },
	{ .name = "getpid" },
	{ .name = "getppid" },
	{ .name = "getrandom" },
	{ .name = "getrlimit" },
	{ .name = "getrusage" },
	{ .name = "getuid" },
	{ .name = "getuid32" },
	{ .name = "capget" },
	{ "prlimit64", { IS(0, 0) } },
	{ .name = "setrlimit" },
	{ .name = "sysinfo" },
	{ .name = "ugetrlimit" },
	{ .name = "uname" },
	{ .name = "exit_group" },

	/* Some processors' ways: thread pointers, what the processor can do. */
	{ .name = "riscv_hwprobe" },
	{ .name = "set_tls" },

#ifdef SMCRD_SANITIZERS
	/* Sanitizers: the leak checker at the end is a process that stops this one and reads its memory; reports. */
	{ .name = "arch_prctl" },
	{ .name = "clone" },
	{ .name = "dup2" },
	{ .name = "mincore" },
	{ .name = "personality" },
	{ .name = "pipe" },
	{ .name = "prctl" },
	{ .name = "process_vm_readv" },
	{ .name = "ptrace" },
	{ .name = "tkill" },
	{ .name = "kill" },
	{ .name = "wait4" },
#endif
	{ .name = NULL },
};

const char *const confine_absent[] = {
	"clone3",  /* flags in memory; clone has them in a register */
	"openat2", /* the same */
	NULL,
};
