/* Between devices.c, which opens, follows and closes them, and devices_info.c, which looks. */
#ifndef SMCRD_DAEMON_DEVICES_PRIV_H
#define SMCRD_DAEMON_DEVICES_PRIV_H

#include "daemon/device/device_cards.h"
#include "daemon/device/device_plan.h"
#include "daemon/device/device_watch.h"
#include "daemon/worker/worker_priv.h"

#define DEVICES_MAX 64
#define WANTS_MAX 64
#define DEVICE_TOLD_MAX 9 /* counters that are logged */

struct device {
	struct rnic_dev *dev;
	char name[RNIC_NAME_MAX];
	int64_t gone_ns; /* its address, GID or card is gone since then; 0 = it is there */
	/* soft iWARP */
	struct sockaddr_storage addr;
	bool placed; /* an interface has, or had, this address: it is followed */
	/* verbs; card is "" otherwise */
	char card[VERBS_DEV_NAME_MAX];
	uint8_t port;
	struct rnic_gid gid;
	enum verbs_gid_type gid_type;
	unsigned ifindex;           /* of the GID */
	enum rnic_port_state state; /* told */
	uint64_t told[DEVICE_TOLD_MAX];
};

/* A device that is wanted and does not open. */
struct failure {
	char where[DEVICE_WHERE_MAX];
	int rc;    /* told */
	bool seen; /* in this round */
};

struct devices {
	struct worker *w;
	const struct config *cfg; /* the worker's */
	struct device_watches watches;
	struct device_cards cards;
	int cards_rc; /* of the list, as it was told */
	struct device devs[DEVICES_MAX];
	unsigned cnt;
	bool full; /* the engine takes no more */
	struct failure failures[WANTS_MAX];
	unsigned failure_cnt;
	bool memlock_seen; /* the limit was looked at */
	bool unsettled;    /* interfaces have changed: GIDs may change now */
	int64_t look_ns;   /* a whole round is due */
	int64_t log_ns;    /* the counters are looked at no sooner */
	struct timer timer;
	bool due;  /* the timer says so */
	bool news; /* a device has some */
};

static inline bool
device_is_verbs(const struct device *me)
{
	return me->card[0] != '\0';
}

#endif
