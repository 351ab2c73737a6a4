/* Capabilities: all are dropped except three. The right to bind ports below 1024 stays where the configuration keeps
 * it for reloads. The right to lock memory stays where RDMA cards need it and the limit could not be raised. The right
 * to read a BPF map stays where the kernel requires it. Uses system calls, no library. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/confine/confine_parts.h"

#define CAP_BIT(cap) (UINT64_C(1) << (cap))

struct caps {
	uint64_t effective, permitted;
};

static int
read_caps(struct caps *out)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	out->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	out->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

/* Permitted and effective; the inheritable set is empty. */
static int
write_caps(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = (uint32_t)keep, .permitted = (uint32_t)keep },
		{ .effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32) },
	};

	return syscall(SYS_capset, &head, data) != 0 ? -errno : 0;
}

/* Cards keep memory locked. The limit is lifted while the process may do it; the capability is then not needed. */
static bool
needs_ipc_lock(const struct config *cfg, enum confine_do what, const struct caps *have)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit lim;

	if (!config_has_verbs(cfg) || (have->effective & CAP_BIT(CAP_IPC_LOCK)) == 0)
		return false;
	if (getrlimit(RLIMIT_MEMLOCK, &lim) == 0 && lim.rlim_cur == RLIM_INFINITY)
		return false;
	if (what == CONFINE_LOOK)
		return (have->effective & CAP_BIT(CAP_SYS_RESOURCE)) == 0;
	return setrlimit(RLIMIT_MEMLOCK, &none) != 0;
}

static void
confine_caps_describe(uint64_t kept, struct confine_part_state *out)
{
	static const struct {
		unsigned cap;
		const char *words;
	} reasons[] = {
		{ CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE, for confine.low_ports" },
		{ CAP_IPC_LOCK, "CAP_IPC_LOCK, for RDMA cards" },
		{ CAP_BPF, "CAP_BPF, for SMC-R's TCP option on this kernel" },
	};
	char text[CONFINE_TEXT_MAX] = "none";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if ((kept & CAP_BIT(reasons[i].cap)) != 0)
			len += (size_t)snprintf(
			    text + len, sizeof(text) - len, "%s%s", len > 0 ? "; " : "", reasons[i].words);
	confine_part_set(out, true, "%s", text);
}

void
confine_capabilities(const struct config *cfg, enum confine_do what, bool keep_bpf, struct confine_part_state *out)
{
	unsigned others = what == CONFINE_APPLY ? confine_threads() - 1 : 0;
	struct caps have = { 0 };
	int rc = read_caps(&have);
	uint64_t keep;

	if (rc != 0) {
		confine_part_set(out, false, "capget: %s", strerror(-rc));
		return;
	}
	keep = cfg->confine.low_ports ? CAP_BIT(CAP_NET_BIND_SERVICE) : 0;
	if (needs_ipc_lock(cfg, what, &have))
		keep |= CAP_BIT(CAP_IPC_LOCK);
	if (keep_bpf)
		keep |= CAP_BIT(CAP_BPF);
	keep &= have.permitted;
	if (what == CONFINE_APPLY) {
		/* The bounding and ambient sets could give rights to an executed program. Without the right to change
		 * the bounding set, no_new_privs alone prevents that. */
		for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
		rc = write_caps(keep);
	}
	if (rc != 0)
		confine_part_set(out, false, "capset: %s", strerror(-rc));
	else if (others > 0 && have.permitted != keep)
		confine_part_set(out, false, "%u other threads run already and keep their capabilities", others);
	else
		confine_caps_describe(keep, out);
}
