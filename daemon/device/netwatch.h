/* Watches the interfaces of this host: one netlink socket on the loop keeps a table (netifs.h) equal to the kernel's.
 * After an overflow of the socket the whole table is read again. */
#pragma once

#include "daemon/device/netifs.h"
#include "daemon/loop/loop.h"

/* Embedded in its owner. */
struct netwatch {
	struct loop_io io; /* fd < 0: the table is not followed */
	struct loop *loop;
	struct netifs table;
	bool changed;
	unsigned overruns; /* full reads after an overflow */
};

/* Reads the table once: 0, or -errno and *out is unchanged. */
int netwatch_read(struct netifs *out);

/* Reads the table and follows it: 0 or -errno. Where the kernel refuses that, which is logged, the table is that of
 * the last netwatch_init or netwatch_reload. netwatch_fini is needed either way. */
int netwatch_init(struct netwatch *, struct loop *);
void netwatch_fini(struct netwatch *);
/* Reads a table that is not followed again; a failure is logged, and the table stays. */
void netwatch_reload(struct netwatch *);
/* True once after the table has changed. */
bool netwatch_take_change(struct netwatch *);
