/*
 * Listening sockets that outlive this process, of all workers: for a process that takes over, and in systemd's store of
 * descriptors, from which the next process gets them at a restart. Called by smcrd*.c.
 */
#pragma once

#include "daemon/lsock.h"
#include "daemon/notify.h"
#include "daemon/worker/workers.h"

/* Other descriptors of all listening sockets of services. 0 or -errno; the list is the caller's either way. */
int upgrade_sockets(struct workers *, struct lsock_list *out);
/* And of the ports of soft devices. */
int upgrade_ports(struct workers *, struct lsock_list *out);
/* Another process accepts on these of them: no device does any more. */
void upgrade_drop_ports(struct workers *, const struct lsock_list *);
/* Another process accepts: no worker does any more, and files stay. */
void upgrade_let_go(struct workers *);
/* The files of listening sockets go with them (lent: they stay). */
void upgrade_lend(struct workers *, bool lent);
/* Tells systemd to keep them, in place of those that it has of us. Nothing without systemd. */
void upgrade_store(struct workers *, struct notify *);
