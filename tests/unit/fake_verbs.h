/* A stand-in for the verbs device (rnic/verbs/verbs.h) and the cards of a machine: the test says which ports there are
 * and what the calls return. Devices can be opened, asked and freed; nothing can be posted. */
#pragma once

#include "rnic/verbs/verbs.h"

#define FAKE_PORTS 8

struct fake_verbs {
	struct verbs_port ports[FAKE_PORTS];
	unsigned cnt;
	int list_rc; /* of verbs_list, with why; -ENODEV comes by itself when there is no port */
	int open_rc; /* of verbs_open, with why */
	const char *why;
	uint32_t qps;              /* in use on each device */
	uint64_t refused, flushed; /* counters of each device */
	const char *from;          /* who was refused last; NULL: not known */
	/* seen */
	unsigned lists, opens, frees;
	struct verbs_config last; /* opened */
};
extern struct fake_verbs fake_verbs;

/* No cards, nothing seen. */
void fake_verbs_reset(void);
/* An RoCE port that is up, without GIDs, on an interface. */
struct verbs_port *fake_verbs_port(const char *dev, uint8_t port, unsigned ifindex);
/* Its next GID, an address. */
void fake_verbs_gid(struct verbs_port *, const char *addr, enum rnic_gid_type, unsigned ifindex);
/* The card and its ports are gone. */
void fake_verbs_unplug(const char *dev);
