/* The event loop for RNIC devices: the descriptors that they watch (struct rnic_loop). Owned by devices.c. */
#pragma once

#include "daemon/loop/loop.h"
#include "rnic/rnic.h"

struct watch;

struct device_watches {
	struct loop *loop;
	struct watch **watches; /* by descriptor */
	int cap;
};

/* Returns the loop for the devices, valid as long as the watches. */
struct rnic_loop device_watches_init(struct device_watches *, struct loop *);
/* Drops the watches that devices left. */
void device_watches_fini(struct device_watches *);
