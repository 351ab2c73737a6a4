/* Watches the interfaces of this host: one netlink socket on the loop keeps a table (netifs.h) equal to the kernel's.
 * After an overflow of the socket the whole table is read again. */
#pragma once

#include "daemon/device/netifs.h"
#include "daemon/loop/loop.h"

struct netwatch;

/* Reads the table once: 0, or -errno and *out is unchanged. */
int netwatch_read(struct netifs *out);

/* Reads the table and follows it: 0 or -errno. Where the kernel refuses that, which is logged, the table is that of
 * the last netwatch_new or netwatch_reload. */
int netwatch_new(struct loop *, struct netwatch **out);
void netwatch_free(struct netwatch *);
/* Reads a table that is not followed again; a failure is logged, and the table stays. */
void netwatch_reload(struct netwatch *);

const struct netifs *netwatch_table(const struct netwatch *);
/* True once after the table has changed. */
bool netwatch_take_change(struct netwatch *);
/* The number of full reads after an overflow. */
unsigned netwatch_overruns(const struct netwatch *);
