/*
 * The event loop as RNIC devices see it: descriptors that they watch (struct
 * rnic_loop). Owned by devices.c.
 */
#pragma once

#include "daemon/loop/loop.h"
#include "rnic/rnic.h"

struct watch;

struct device_watches {
	struct loop *loop;
	struct watch **watches; /* by descriptor */
	int cap;
};

/* Returns the loop for the devices, valid for as long as the watches are. */
struct rnic_loop device_watches_init(struct device_watches *, struct loop *);
/* Drops those that a device left behind. */
void device_watches_fini(struct device_watches *);
