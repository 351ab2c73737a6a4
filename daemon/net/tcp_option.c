/* SMC-R's TCP option; see net/tcp_option.h. */
#include "daemon/net/tcp_option.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/confine/confine.h"
#include "daemon/net/tcp_option_bpf.h"
#include "wire/tcpopt.h"

#define SAVED_SYN_MAX 256 /* IP and TCP header with all options */

void
tcp_option_init(struct tcp_option *opt, const char *why)
{
	*opt = (struct tcp_option){ .map = -1, .link = -1 };
	(void)snprintf(opt->why, sizeof(opt->why), "%s", why);
}

/* -- bpf(2), which the C library does not wrap -- */

/* A descriptor, 0, or -errno. */
static int
bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long rc = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return rc < 0 ? -errno : (int)rc;
}

static uint64_t
tcp_option_address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Types in the kernel's format (BTF), which a map of sockets has to name: one 32-bit integer, with number 1. */
static const struct {
	struct btf_header head;
	struct btf_type type;
	uint32_t bits; /* the rest of an integer's description: no encoding, from bit 0 */
	char names[8]; /* offset 0 is the empty name */
} btf = {
	.head = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(btf.head),
		.type_len = sizeof(btf.type) + sizeof(btf.bits),
		.str_off = sizeof(btf.type) + sizeof(btf.bits),
		.str_len = sizeof(btf.names),
	},
	.type = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = sizeof(uint32_t) },
	.bits = 32,
	.names = "\0int",
};

/* A value for each socket. Accepted sockets copy that of their listener; it ends with the socket. */
static int
make_map(void)
{
	union bpf_attr load = { .btf = tcp_option_address(&btf), .btf_size = sizeof(btf) };
	int btf_fd = bpf(BPF_BTF_LOAD, &load);

	if (btf_fd < 0)
		return btf_fd;
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SK_STORAGE,
		.key_size = sizeof(int), /* a socket's descriptor */
		.value_size = sizeof(uint32_t),
		.map_flags = BPF_F_NO_PREALLOC | BPF_F_CLONE,
		.map_name = "smcr_option",
		.btf_fd = (uint32_t)btf_fd,
		.btf_key_type_id = 1,
		.btf_value_type_id = 1,
	};
	int map = bpf(BPF_MAP_CREATE, &attr);
	close(btf_fd);
	return map;
}

static int
load_prog(int map)
{
	struct bpf_insn insns[TCP_OPTION_INSNS_MAX];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCK_OPS,
		.expected_attach_type = BPF_CGROUP_SOCK_OPS,
		.insn_cnt = tcp_option_prog_make(insns, map),
		.insns = tcp_option_address(insns),
		.license = tcp_option_address("Apache-2.0"), /* it calls no GPL-only function */
		.prog_name = "smcr_option",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

/* -- the daemon's cgroup -- */

/* The directory of the cgroup in the version 2 tree, opened: a descriptor, or -errno. */
static int
open_cgroup(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char line[PATH_MAX], dir[PATH_MAX + 32];
	FILE *f = fopen("/proc/self/cgroup", "re");
	int fd = -ENOENT;

	if (f == NULL)
		return -errno;
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) != 0)
			continue;
		/* On a host with both versions the second root is right. The first then has no such directory, or it
		 * is no cgroup of version 2, which attaching detects. */
		for (int i = 1; i >= 0 && fd < 0; i--) {
			(void)snprintf(dir, sizeof(dir), "%s%s", roots[i], line + 3);
			fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0)
				fd = -errno;
		}
	}
	(void)fclose(f);
	return fd;
}

/* The link ends with its descriptor, and the program and the map end with the link. */
static int
attach(int prog, int cgroup)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = (uint32_t)prog,
			.target_fd = (uint32_t)cgroup,
			.attach_type = BPF_CGROUP_SOCK_OPS,
		},
	};

	return bpf(BPF_LINK_CREATE, &attr);
}

/* Reads or writes the value of a socket. */
static int
map_value(enum bpf_cmd cmd, int map, int fd, uint32_t *value)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map, .key = tcp_option_address(&fd), .value = tcp_option_address(value)
	};

	return bpf(cmd, &attr);
}

/* Does reading the map need a right? Kernels before 5.19 refuse bpf(2) without one, unless
 * kernel.unprivileged_bpf_disabled allows it. Tested with the rights off for a moment. CAP_SYS_ADMIN is not kept. */
static void
test_right(struct tcp_option *opt)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3] = { 0 }, none[_LINUX_CAPABILITY_U32S_3];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t value;

	if (fd >= 0 && syscall(SYS_capget, &head, have) == 0) {
		opt->lacks_right = (have[CAP_BPF / 32].permitted & 1u << CAP_BPF % 32) == 0;
		memcpy(none, have, sizeof(none));
		for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
			none[i].effective = 0;
		if (syscall(SYS_capset, &head, none) == 0) {
			opt->keeps_right = map_value(BPF_MAP_LOOKUP_ELEM, opt->map, fd, &value) == -EPERM;
			(void)syscall(SYS_capset, &head, have);
		}
	}
	if (fd >= 0)
		close(fd);
}

void
tcp_option_open(struct tcp_option *opt)
{
	static const char *const advice[] = {
		[EPERM] =
		    ": CAP_BPF and CAP_NET_ADMIN are needed at start, and a filter that allows bpf(2): see smcrd(8)",
		[EINVAL] = ": Linux 5.10 is needed",
		[EBADF] = ": cgroups of version 2 are needed",
		[ENOENT] = ": cgroups of version 2 are needed",
		[ENOSYS] = ": the kernel has no bpf(2), or a filter refuses it",
	};
	const char *step = "map";
	int map = make_map(), prog = -1, cgroup = -1, rc = map;

	if (rc >= 0) {
		step = "program";
		rc = prog = load_prog(map);
	}
	if (rc >= 0) {
		step = "cgroup";
		rc = cgroup = open_cgroup();
	}
	if (rc >= 0) {
		step = "link";
		rc = attach(prog, cgroup);
	}
	/* The link holds the program, which holds the map. */
	if (prog >= 0)
		close(prog);
	if (cgroup >= 0)
		close(cgroup);
	if (rc >= 0) {
		*opt = (struct tcp_option){ .map = map, .link = rc };
		test_right(opt);
		return;
	}
	if (map >= 0)
		close(map);
	const char *more = (size_t)-rc < sizeof(advice) / sizeof(advice[0]) ? advice[-rc] : NULL;
	(void)snprintf(opt->why, sizeof(opt->why), "BPF %s: %s%s", step, strerror(-rc), more != NULL ? more : "");
}

void
tcp_option_confined(struct tcp_option *opt, bool confined)
{
	if (!tcp_option_usable(opt) || !confined || !opt->keeps_right || !opt->lacks_right)
		return;
	tcp_option_close(opt);
	tcp_option_init(opt,
	    "this kernel refuses a BPF map without CAP_BPF, which smcrd needs at start so that it can keep "
	    "it: see smcrd(8)");
}

void
tcp_option_close(struct tcp_option *opt)
{
	if (opt->link >= 0)
		close(opt->link);
	if (opt->map >= 0)
		close(opt->map);
	tcp_option_init(opt, "closed");
}

void
tcp_option_mark(const struct tcp_option *opt, int fd)
{
	uint32_t value = TCP_OPTION_WANTED;

	/* Without memory for the value the connection has no option, which tcp_option_read reports. */
	if (tcp_option_usable(opt))
		(void)map_value(BPF_MAP_UPDATE_ELEM, opt->map, fd, &value);
}

void
tcp_option_mark_listener(const struct tcp_option *opt, int fd)
{
	int on = 1;

	/* Without it the kernel has no SYN to compare with when it retransmits a SYN/ACK. That one then lacks the
	 * option, and the two ends disagree. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof(on));
	tcp_option_mark(opt, fd);
}

bool
tcp_option_is_marked(const struct tcp_option *opt, int fd)
{
	uint32_t value;

	return tcp_option_usable(opt) && map_value(BPF_MAP_LOOKUP_ELEM, opt->map, fd, &value) == 0;
}

enum tcp_option_state
tcp_option_read(const struct tcp_option *opt, int fd)
{
	uint32_t value;

	if (!tcp_option_usable(opt) || map_value(BPF_MAP_LOOKUP_ELEM, opt->map, fd, &value) != 0 ||
	    (value & TCP_OPTION_KNOWN) == 0)
		return TCP_OPTION_UNKNOWN;
	return (value & TCP_OPTION_PEER) != 0 ? TCP_OPTION_AGREED : TCP_OPTION_MISSING;
}

bool
tcp_option_in_segment(struct span segment)
{
	const uint8_t *ip = segment.ptr;
	unsigned version = segment.len >= 20 ? ip[0] >> 4 : 0;
	size_t head_len = version == 4 ? (ip[0] & 0xfu) * 4 : 40;

	/* IPv6 extension headers are not followed. */
	if ((version != 4 && version != 6) || head_len < 20 || head_len > segment.len ||
	    ip[version == 4 ? 9 : 6] != IPPROTO_TCP)
		return false;
	struct rcur r = rcur_make(ip + head_len, segment.len - head_len);
	const uint8_t *tcp = rcur_take(&r, 20);
	size_t tcp_len = tcp != NULL ? (size_t)(tcp[12] >> 4) * 4 : 0;
	if (tcp_len < 20 || tcp_len - 20 > rcur_left(&r))
		return false;
	return tcpopt_find_smcr((struct span){ tcp + 20, tcp_len - 20 }) == 1;
}

bool
tcp_option_syn_had_it(int fd)
{
	uint8_t syn[SAVED_SYN_MAX];
	socklen_t len = sizeof(syn);

	return getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len) == 0 &&
	    tcp_option_in_segment((struct span){ syn, len });
}
