/* One open RNIC device: soft iWARP at an address, or a port of a card under one of its GIDs. Opens it and follows
 * changes of its address or card. devices.c has the list. */
#pragma once

#include "daemon/device/device_plan.h"
#include "daemon/device/devices.h"

#define DEVICE_LOGGED_CNT 10               /* counters that are logged */
#define DEVICE_GONE_NS (10000 * NS_PER_MS) /* an address may return: its device keeps name and port for this time */

struct device {
	struct rnic_dev *dev;
	char name[RNIC_NAME_MAX];
	int64_t gone_ns; /* its address, GID or card is gone since then; 0 = present */
	/* soft iWARP */
	struct siw_config siw; /* as opened */
	bool placed;           /* an interface has or had this address, so it is followed */
	/* verbs; card is "" otherwise */
	char card[VERBS_DEV_NAME_MAX];
	uint8_t port;
	struct verbs_gid gid;
	enum rnic_port_state state; /* as last logged */
	uint64_t logged[DEVICE_LOGGED_CNT];
};

/* One check of all devices. */
struct device_round {
	int64_t now_ns;
	const struct device_want *want; /* the plan */
	unsigned want_cnt;
	bool cards_known; /* the plan has all present cards */
	bool unsettled;   /* output: check again soon */
};

static inline bool
device_is_verbs(const struct device *me)
{
	return me->card[0] != '\0';
}

/* The parameters for opening any device. */
struct device_needs {
	struct rnic_loop loop;
	struct rng *rng;
	struct devices_gate gate;
};

/* Opens *me, whose name is already set, as wanted: 0, or -errno with *why a static text for the failed part. */
int device_open(struct device *me, const struct device_want *, const struct device_needs *, const char **why);
/* The row of the plan for this device; NULL: no row. */
const struct device_want *device_find(const struct device *, const struct device_want *, unsigned cnt);
/* Checks its address or card, sets its port down or up and logs that. Returns why to close it (static), or NULL. */
const char *device_follow(struct device *, struct device_round *);
/* Logs the watched counters that have changed since the last call. */
void device_log_counters(struct device *);
