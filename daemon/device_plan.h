/*
 * Which RNIC devices there should be: the configuration's entries laid over
 * the interfaces and addresses that there are. Pure; devices.c carries it out.
 */
#ifndef SMCRD_DAEMON_DEVICE_PLAN_H
#define SMCRD_DAEMON_DEVICE_PLAN_H

#include "daemon/config.h"
#include "daemon/netifs.h"

enum device_place {
	DEVICE_PLACE_UNKNOWN, /* no interface has this address; it may be local all the same (127.0.0.2) */
	DEVICE_PLACE_DOWN,    /* the interface is down, or the address not usable yet */
	DEVICE_PLACE_UP,
};

struct device_want {
	const struct config_device *cfg;
	struct sockaddr_storage addr;
	const char *base; /* its name, unless that is taken */
	enum device_place place;
	bool open; /* worth opening now; false: to be kept when it is there */
};

/* Up to max, each address once: how many. They point into cfg and ifs. Entries with an address come first, then
 * those that name an interface, then "*". ifs may be NULL: not known. */
unsigned device_plan(const struct config *cfg, const struct netifs *ifs, struct device_want *out, unsigned max);

#endif
