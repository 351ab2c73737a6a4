/*
 * The ports of RDMA cards as they were listed last, and why there are none. Asked
 * for only when the configuration has an entry of type "verbs".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rnic/verbs/verbs.h"

/* Embedded in its owner; all zero: never listed. */
struct device_cards {
	struct verbs_port *ports;
	unsigned cnt;
	int rc;          /* of the list: 0 or -errno */
	const char *why; /* when it failed; static */
	int64_t at_ns;
	bool listed;
};

/* Lists them anew; pointers into the old list are invalid then. */
void device_cards_list(struct device_cards *, int64_t now_ns);
/* Frees the list: nothing is known. */
void device_cards_forget(struct device_cards *);

/* "RoCE v2" */
const char *device_gid_type_str(enum verbs_gid_type);
#define DEVICE_GID_MAX 48
/* As an IPv6 address, like smcrctl; returns buf. */
char *device_gid_format(const struct rnic_gid *, char buf[DEVICE_GID_MAX]);
