/* The table of system calls; see confine_parts.h. Calls that the tests do not use are for another C library,
 * processor, card driver or name service module; see the group's comment. */
#include "daemon/confine/confine_parts.h"

#include <config.h>
#include <linux/bpf.h>
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

#define SOCK_TYPE 0xf /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

#define WX (PROT_WRITE | PROT_EXEC)

/* A thread of this process, in its namespaces; not a process. */
#define THREAD_IS (CLONE_VM | CLONE_THREAD)
#define THREAD_ISNT \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* ioctls of RDMA devices have this type and any number. */
#define RDMA_TYPE_MASK 0xff00
#define RDMA_TYPE 0x1b00

const struct confine_call confine_allowed[] = {
	/* The loop: epoll, also by libevent. */
	{ .names = "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 "
	           "poll ppoll ppoll_time64 pselect6 pselect6_time64 select _newselect timerfd_create "
	           "timerfd_settime timerfd_settime64" },

	/* Sockets: TCP of legs, CLC connections and soft iWARP; UNIX sockets of control, systemd and name services;
	 * UDP of the resolver. Netlink for interfaces and libibverbs. No raw and no packet sockets. */
	{ "socket", { IS(0, AF_UNIX) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_RDMA) } },
	{ .names = "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg "
	           "recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown" },

	/* SMC-R's TCP option: mark a socket, read the option of its peer. Programs and maps are made earlier. */
	{ "bpf", { IS(0, BPF_MAP_LOOKUP_ELEM) } },
	{ "bpf", { IS(0, BPF_MAP_UPDATE_ELEM) } },

	{ .names = "close close_range fcntl fcntl64 pipe2 read readv write writev" },

	/* The urgent mark, queued bytes of a socket, name, MTU, hardware address and VLAN of an interface; whether
	 * stderr is a terminal; RDMA devices. No other ioctl: TIOCSTI inserts input into a terminal. */
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

	/* Files, which Landlock bounds: at a reload the configuration and the resolver's files, /proc/self for smcrctl
	 * status, cards below /sys and /dev. Removal of UNIX sockets. Only sockets are created (bind), with their mode
	 * from umask: calls that change mode or owner would apply to all files of the user. */
	{ "open", { ARG(1, O_CREAT, 0) } },
	{ "openat", { ARG(2, O_CREAT, 0) } },
	{ .names = "access faccessat faccessat2 fstat fstat64 fstatat64 getdents getdents64 lseek _llseek lstat "
	           "lstat64 newfstatat pread64 readlink readlinkat stat stat64 statfs statx umask unlink unlinkat "
	           "flock" },

	/* Memory. Code is mapped from files only, for name service modules and card drivers. No page is writable and
	 * executable, or becomes executable later. Cards: MADV_DONTFORK for registered memory. */
	{ "mmap", { ARG(2, WX, 0) } },
	{ "mmap", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mmap2", { ARG(2, WX, 0) } },
	{ "mmap2", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap2", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mprotect", { ARG(2, PROT_EXEC, 0) } },
	{ .names = "brk madvise membarrier mlock mremap munlock munmap" },

	/* Threads: the configuration loader, and blocking calls of libibverbs and librdmacm. No processes. */
	{ "clone", { ARG(CLONE_FLAGS, THREAD_IS | THREAD_ISNT, THREAD_IS) } },
	{ "prctl", { IS(0, PR_SET_NAME) } },
	{ "prctl", { IS(0, 0x53564d41) } }, /* PR_SET_VMA: newer C libraries name their memory */
	{ .names = "exit futex futex_time64 get_robust_list gettid rseq sched_getaffinity sched_yield "
	           "set_robust_list set_tid_address" },

	/* Time; mostly without a system call, except for clocks that only the kernel can read. */
	{ .names = "clock_getres clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 "
	           "gettimeofday nanosleep time" },

	/* Signals, sent only to this process: abort() of a failed assertion. */
	{ "tgkill", { { .index = 0, .mask = EXACT, .own_pid = 1 } } },
	{ .names = "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait sigaltstack "
	           "sigreturn" },

	/* Identity and environment: process id for status and systemd, users in logs of name services, processors,
	 * limits of descriptors and locked memory at a reload. Limits of this process only. */
	{ "prlimit64", { IS(0, 0) } },
	{ .names = "getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getpid getppid getrandom "
	           "getrlimit getrusage getuid getuid32 capget setrlimit sysinfo ugetrlimit uname exit_group" },

	/* Calls of particular processors: thread pointers, processor features. */
	{ .names = "riscv_hwprobe set_tls" },

#ifdef SMCRD_SANITIZERS
	/* Sanitizers: the leak checker is a process that stops this one at its end and reads its memory; reports. */
	{ .names = "arch_prctl clone dup2 mincore personality pipe prctl process_vm_readv ptrace tkill kill "
	           "wait4" },
#endif
	{ .names = NULL },
};

const char *const confine_absent[] = {
	"clone3",  /* flags in memory; clone has them in a register */
	"openat2", /* the same */
	NULL,
};
