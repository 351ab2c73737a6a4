/* Locked memory: see memlock.h. Called by devices.c. */
#include "daemon/device/memlock.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

/* An element and a send ring for each connection, and the kernel counts a region again for each link. */
uint64_t
memlock_needed(const struct config *cfg)
{
	uint64_t connections = 0, bytes = 0;

	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		const struct config_service *svc = &cfg->services[i];

		connections += svc->max_connections;
		bytes += (uint64_t)svc->max_connections * (svc->elem_size + cfg->smcr.sndbuf_size);
	}
	/* The engine's limit, shared by the services as they come. */
	if (connections > cfg->smcr.conns_max)
		bytes = bytes / connections * cfg->smcr.conns_max;
	return bytes * cfg->smcr.links_max;
}

bool
memlock_too_low(const struct config *cfg, uint64_t limit, char *buf, size_t cap)
{
	uint64_t needed = memlock_needed(cfg);

	if (needed <= limit)
		return false;
	(void)snprintf(buf, cap,
	    "the limit of locked memory (RLIMIT_MEMLOCK) is too low for max_connections of all services on RDMA cards, "
	    "connections fall back when it is reached; raise it with LimitMEMLOCK= in the systemd unit or ulimit -l: "
	    "limit_kib=%llu needed_kib=%llu",
	    (unsigned long long)(limit / 1024), (unsigned long long)((needed + 1023) / 1024));
	return true;
}

void
memlock_check(const struct config *cfg)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct rlimit lim;
	char text[512];

	if (getrlimit(RLIMIT_MEMLOCK, &lim) != 0)
		return;
	if (lim.rlim_cur != lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		(void)setrlimit(RLIMIT_MEMLOCK, &lim);
	}
	if (lim.rlim_max == RLIM_INFINITY)
		return;
	/* With this capability the kernel does not look at the limit. */
	if (syscall(SYS_capget, &head, cap) == 0 && (cap[0].effective & 1u << CAP_IPC_LOCK) != 0)
		return;
	if (memlock_too_low(cfg, lim.rlim_max, text, sizeof(text)))
		log_msg(LOG_LVL_WARNING, "%s", text);
}
