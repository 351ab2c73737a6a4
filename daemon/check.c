/* `smcrctl check`: is SMC-R possible to this peer? One probe, its verdict handed on. */
#include <errno.h>

#include "daemon/probe.h"
#include "daemon/worker_priv.h"

/* Each check is a connection; an operator who runs more at once has a script that went wrong. */
#define CHECKS_MAX 16

int
worker_check(struct worker *w, const struct sockaddr_storage *peer, uint32_t timeout_ms,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	const struct probe_target target = {
		.addrs = peer,
		.addr_cnt = 1,
		.elem_size = SMCR_ELEM_MIN,
		.timeout_ms = timeout_ms,
	};
	unsigned running = 0;

	LIST_FOREACH(n, &w->probes)
		running++;
	if (running >= CHECKS_MAX)
		return -EBUSY;
	return probe_start(w, &target, done, arg) != NULL ? 0 : -ENOMEM;
}
