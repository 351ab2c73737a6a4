/* Locked memory: see memlock.h. Called by devices.c. */
#include "daemon/device/memlock.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/minmax.h"
#include "wire/clc.h"

/* Links of version 2: one per connection, each with another peer, within the limit of queue pairs. Each link has receive
 * buffers, and one send buffer of the same size. */
static uint64_t
links_v2_bytes(const struct config *cfg)
{
	uint64_t groups = 0;
	uint32_t max_qp = 0;

	if (cfg->smcr.ueid_cnt == 0 || cfg->smcr.smc_version == 1)
		return 0;
	for (unsigned i = 0; i < cfg->device_cnt; i++)
		if (cfg->devices[i].type == CONFIG_DEVICE_VERBS)
			max_qp = max_u32(max_qp, cfg->devices[i].verbs.max_qp);
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (cfg->services[i].peer != SMCR_PEER_SMCRD)
			groups += cfg->services[i].max_connections;
	groups = min_u64(min_u64(groups, cfg->smcr.conns_max), max_qp);
	return groups * min_u32(cfg->smcr.links_max, CLC_MAX_MAX_LINKS) *
	    (min_u32(cfg->smcr.rq_depth, SMCR_V2_RECEIVES) + 1) * SMCR_V2_MSG_LEN;
}

/* What a connection gets on a card when the engine chooses sizes and none needs more. */
#define AUTO_ELEM (64u * 1024)
#define AUTO_RING (2 * AUTO_ELEM)

/* An element and a send ring for each connection; the kernel counts a region once per link. */
uint64_t
memlock_needed(const struct config *cfg)
{
	uint64_t connections = 0, bytes = 0;

	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		const struct config_service *svc = &cfg->services[i];

		uint32_t elem = svc->elem_size != 0 ? svc->elem_size : AUTO_ELEM;
		uint32_t ring = cfg->smcr.sndbuf_size != 0 ? cfg->smcr.sndbuf_size : AUTO_RING;

		connections += svc->max_connections;
		bytes += (uint64_t)svc->max_connections * (elem + ring);
	}
	/* The engine's limit, shared by the services on demand. */
	if (connections > cfg->smcr.conns_max)
		bytes = bytes / connections * cfg->smcr.conns_max;
	return bytes * cfg->smcr.links_max + links_v2_bytes(cfg);
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
	/* With this capability the kernel ignores the limit. */
	if (syscall(SYS_capget, &head, cap) == 0 && (cap[0].effective & 1u << CAP_IPC_LOCK) != 0)
		return;
	if (memlock_too_low(cfg, lim.rlim_max, text, sizeof(text)))
		log_msg(LOG_LVL_WARNING, "%s", text);
}
