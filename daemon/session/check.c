/* `smcrctl check`: is SMC-R possible to this peer? One probe, its verdict handed on. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/session/probe.h"
#include "daemon/worker/worker_priv.h"

/* Each check is a connection; an operator who runs more at once has a script that went wrong. */
#define CHECKS_MAX 16

struct check {
	struct worker *w;
	void (*done)(void *arg, const struct check_result *);
	void *arg;
};

static void
on_done(void *arg, const struct check_result *r)
{
	struct check c = *(struct check *)arg;

	free(arg);
	c.w->checks--;
	c.done(c.arg, r);
}

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
	struct check *c;

	if (w->checks >= CHECKS_MAX)
		return -EBUSY;
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	*c = (struct check){ .w = w, .done = done, .arg = arg };
	if (probe_start(w, &target, on_done, c) == NULL) {
		free(c);
		return -ENOMEM;
	}
	w->checks++;
	return 0;
}
