/*
 * One RNIC device that is open: soft iWARP at an address, or a port of a card
 * under one of its GIDs; how it is opened, and followed as its address or card
 * changes. devices.c has the list.
 */
#pragma once

#include "daemon/device/device_plan.h"
#include "daemon/device/devices.h"

#define DEVICE_LOGGED_CNT 10 /* counters that are logged */

struct device {
	struct rnic_dev *dev;
	char name[RNIC_NAME_MAX];
	int64_t gone_ns; /* its address, GID or card is gone since then; 0 = it is there */
	/* soft iWARP */
	struct siw_config siw; /* as it was opened */
	bool placed;           /* an interface has, or had, this address: it is followed */
	/* verbs; card is "" otherwise */
	char card[VERBS_DEV_NAME_MAX];
	uint8_t port;
	struct rnic_gid gid;
	enum rnic_gid_type gid_type;
	unsigned ifindex;           /* of the GID */
	enum rnic_port_state state; /* as it was logged last */
	uint64_t logged[DEVICE_LOGGED_CNT];
};

/* A round of looks at all devices. */
struct device_round {
	int64_t now_ns;
	const struct device_want *want; /* the plan */
	unsigned want_cnt;
	bool cards_known; /* the plan knows all cards that there are */
	bool unsettled;   /* out: look again soon */
};

static inline bool
device_is_verbs(const struct device *me)
{
	return me->card[0] != '\0';
}

/* What each device is opened with. */
struct device_needs {
	struct rnic_loop loop;
	struct rng *rng;
	struct devices_gate gate;
};

/* Opens *me, whose name is set already, as it is wanted: 0, or -errno with *why a static text about what is at fault. */
int device_open(struct device *me, const struct device_want *, const struct device_needs *, const char **why);
/* The row of the plan that this device is; NULL when there is none. */
const struct device_want *device_find(const struct device *, const struct device_want *, unsigned cnt);
/* Looks at what has become of its address or card, takes its port down and up and logs that. Returns why the device is to be
 * closed (static), or NULL. */
const char *device_follow(struct device *, struct device_round *);
/* When a device whose address is gone is to be closed; INT64_MAX for others. */
int64_t device_deadline(const struct device *);
/* Logs counters that an operator should hear of and that have changed since the last call. */
void device_log_counters(struct device *);
