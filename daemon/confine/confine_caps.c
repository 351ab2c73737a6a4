/* Capabilities: all are dropped except four. The right to bind ports below 1024 stays where the configuration keeps
 * it for reloads. The right to connect by foreign addresses stays where a service does. The right to lock memory stays where RDMA cards need it and the limit could not be raised. The right
 * to read a BPF map stays where the kernel requires it. Uses system calls, no library. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
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

void
confine_capabilities(const struct config *cfg, enum confine_do what, bool keep_bpf, struct confine_part_state *out)
{
	unsigned others = what == CONFINE_APPLY ? confine_threads() - 1 : 0;
	char kept[CONFINE_TEXT_MAX] = "";
	struct caps have = { 0 };
	int rc = read_caps(&have);
	uint64_t keep = 0;

	if (rc != 0) {
		confine_part_set(out, false, "capget: %s", strerror(-rc));
		return;
	}
	const struct {
		unsigned cap;
		bool wanted;
		const char *words;
	} rights[] = {
		{ CAP_NET_BIND_SERVICE, cfg->confine.low_ports, "CAP_NET_BIND_SERVICE, for confine.low_ports" },
		{ CAP_NET_RAW, config_connects_as_client(cfg) != NULL, "CAP_NET_RAW, for client_address" },
		{ CAP_IPC_LOCK, needs_ipc_lock(cfg, what, &have), "CAP_IPC_LOCK, for RDMA cards" },
		{ CAP_BPF, keep_bpf, "CAP_BPF, for SMC-R's TCP option on this kernel" },
	};
	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		if (!rights[i].wanted || (have.permitted & CAP_BIT(rights[i].cap)) == 0)
			continue;
		keep |= CAP_BIT(rights[i].cap);
		str_append(kept, sizeof(kept), "%s%s", kept[0] != '\0' ? "; " : "", rights[i].words);
	}
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
		confine_part_set(out, true, "%s", kept[0] != '\0' ? kept : "none");
}
