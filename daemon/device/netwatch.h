/*
 * Watches the interfaces of this machine: one netlink socket on the loop keeps
 * a table (netifs.h) as it is in the kernel. When the socket has overflowed,
 * everything is read anew.
 */
#pragma once

#include "daemon/device/netifs.h"
#include "daemon/loop/loop.h"

struct netwatch;

/* Reads the table once: 0, or -errno and *out is untouched. */
int netwatch_read(struct netifs *out);

/* Reads the table and follows it: 0 or -errno. Where the kernel lets nobody follow, which is logged, the table is that of the
 * last netwatch_new or netwatch_reload. */
int netwatch_new(struct loop *, struct netwatch **out);
void netwatch_free(struct netwatch *);
/* Reads a table that is not followed anew; a failure is logged, and the table stays. */
void netwatch_reload(struct netwatch *);

const struct netifs *netwatch_table(const struct netwatch *);
/* True once after the table has changed. */
bool netwatch_take_change(struct netwatch *);
/* How often everything had to be read anew. */
unsigned netwatch_overruns(const struct netwatch *);
