/* The table of system calls; see confine_parts.h. What the tests do not use is here for another C library, processor,
 * driver of a card or module of the name service, which the group's comment names. */
#include "daemon/confine/confine_parts.h"

#include <config.h>
#include <linux/bpf.h>
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
	/* The loop: epoll by us and by libevent, whose signals come by a pipe of its own; ppoll lets them in. */
	{ .names = "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 "
	           "poll ppoll ppoll_time64 pselect6 pselect6_time64 select _newselect timerfd_create "
	           "timerfd_settime timerfd_settime64" },

	/* Sockets: TCP of legs, middles and soft iWARP; the control socket, systemd and name services by Unix sockets; UDP of
	 * the resolver; interfaces (and libibverbs) by netlink. No raw and no packet sockets. */
	{ "socket", { IS(0, AF_UNIX) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_STREAM) } },
	{ "socket", { IS(0, AF_INET6), ARG(1, SOCK_TYPE, SOCK_DGRAM) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socket", { IS(0, AF_NETLINK), IS(2, NETLINK_RDMA) } },
	{ .names = "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg "
	           "recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown" },

	/* SMC-R's TCP option: mark a socket, ask what its peer had. Programs and maps are made before. */
	{ "bpf", { IS(0, BPF_MAP_LOOKUP_ELEM) } },
	{ "bpf", { IS(0, BPF_MAP_UPDATE_ELEM) } },

	/* Descriptors. */
	{ .names = "close close_range fcntl fcntl64 pipe2 read readv write writev" },

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
	 * below /sys and /dev; the end of UNIX sockets. Nothing is created but those (bind), whose mode is umask's business: calls
	 * that change mode or owner would be for all files of the user. */
	{ "open", { ARG(1, O_CREAT, 0) } },
	{ "openat", { ARG(2, O_CREAT, 0) } },
	{ .names = "access faccessat faccessat2 fstat fstat64 fstatat64 getdents getdents64 lseek _llseek lstat "
	           "lstat64 newfstatat pread64 readlink readlinkat stat stat64 statfs statx umask unlink unlinkat "
	           "flock" },

	/* Memory. Code comes from files alone, when a module of the name service or a card's driver is loaded: nothing is
	 * writable and executable, and nothing becomes executable that was not mapped so. Cards: no copy of registered memory
	 * in a child (MADV_DONTFORK). */
	{ "mmap", { ARG(2, WX, 0) } },
	{ "mmap", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mmap2", { ARG(2, WX, 0) } },
	{ "mmap2", { ARG(2, WX, PROT_WRITE) } },
	{ "mmap2", { ARG(2, WX, PROT_EXEC), ARG(3, MAP_ANONYMOUS, 0) } },
	{ "mprotect", { ARG(2, PROT_EXEC, 0) } },
	{ .names = "brk madvise membarrier mlock mremap munlock munmap" },

	/* Threads: loading a configuration, and what blocks in libibverbs and librdmacm. No processes. */
	{ "clone", { ARG(CLONE_FLAGS, THREAD_IS | THREAD_ISNT, THREAD_IS) } },
	{ "prctl", { IS(0, PR_SET_NAME) } },
	{ "prctl", { IS(0, 0x53564d41) } }, /* PR_SET_VMA: newer C libraries name their memory */
	{ .names = "exit futex futex_time64 get_robust_list gettid rseq sched_getaffinity sched_yield "
	           "set_robust_list set_tid_address" },

	/* Time; mostly without a system call, except on clocks that the kernel has to read. */
	{ .names = "clock_getres clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 "
	           "gettimeofday nanosleep time" },

	/* Signals, of which only our own go to us: abort() of a failed assertion. */
	{ "tgkill", { OWN_PID(0) } },
	{ .names = "restart_syscall rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait sigaltstack "
	           "sigreturn" },

	/* Identity and surroundings: process id in status and for systemd, users in logs of name services, limits of descriptors
	 * and locked memory at a reload, processors. Limits of this process alone. */
	{ "prlimit64", { IS(0, 0) } },
	{ .names = "getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getpid getppid getrandom "
	           "getrlimit getrusage getuid getuid32 capget setrlimit sysinfo ugetrlimit uname exit_group" },

	/* Calls of single processors: thread pointers, features of the processor. */
	{ .names = "riscv_hwprobe set_tls" },

#ifdef SMCRD_SANITIZERS
	/* Sanitizers: the leak checker at the end is a process that stops this one and reads its memory; reports. */
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
