/* `smcrctl check`: is SMC-R possible to this peer? One probe. How many run at once is limited by who asks. */
#include <errno.h>

#include "daemon/session/probe.h"
#include "daemon/worker/worker_priv.h"

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

	return probe_start(w, &target, done, arg) != NULL ? 0 : -ENOMEM;
}
