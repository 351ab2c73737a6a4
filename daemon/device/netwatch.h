/*
 * Watches the interfaces of this machine: one netlink socket on the loop keeps
 * a table (netifs.h) as it is in the kernel. When the kernel had more to say
 * than the socket holds, everything is read anew.
 */
#ifndef SMCRD_DAEMON_NETWATCH_H
#define SMCRD_DAEMON_NETWATCH_H

#include "daemon/loop.h"
#include "daemon/device/netifs.h"

struct netwatch;

/* The table as it is now, once: 0, or -errno and nothing. */
int netwatch_read(struct netifs *out);

/* Reads the table and follows it: 0 or -errno. */
int netwatch_new(struct loop *, struct netwatch **out);
void netwatch_free(struct netwatch *);

const struct netifs *netwatch_table(const struct netwatch *);
/* True once after the table became another: in the turn that follows the kernel's word. */
bool netwatch_take_news(struct netwatch *);
/* How often everything had to be read anew. */
unsigned netwatch_overruns(const struct netwatch *);

#endif
