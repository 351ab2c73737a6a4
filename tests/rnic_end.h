/* The end of a device, for tests: asked for, then waited for. */
#pragma once

#include <assert.h>
#include <time.h>

#include "rnic/rnic.h"

static inline void
rnic_end(struct rnic_dev *dev)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct rnic_event ev = { .type = RNIC_EV_TROUBLE };

	dev->ops->free(dev);
	for (unsigned i = 0; ev.type != RNIC_EV_DEV_FREED; i++) {
		assert(i < 20000);
		if (i > 0)
			nanosleep(&ms, NULL);
		if (dev->ops->progress != NULL)
			dev->ops->progress(dev, dev->now_ns);
		while (ev.type != RNIC_EV_DEV_FREED && dev->ops->poll_event(dev, &ev))
			continue;
	}
}
