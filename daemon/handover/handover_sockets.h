/*
 * Listening sockets that outlive this process, of all workers: for a process that takes over, and in systemd's store of
 * descriptors, from which the next process gets them at a restart. Called by smcrd*.c.
 */
#pragma once

#include "daemon/net/listen_socket.h"
#include "daemon/handover/notify.h"
#include "daemon/worker/workers.h"

/* Other descriptors of all listening sockets of services. 0 or -errno; the list is the caller's either way. */
int handover_sockets(struct workers *, struct listen_socket_list *out);
/* And of the ports of soft devices. */
int handover_ports(struct workers *, struct listen_socket_list *out);
/* Another process accepts on these of them: no device does any more. */
void handover_drop_ports(struct workers *, const struct listen_socket_list *);
/* Another process accepts: no worker does any more, and files stay. */
void handover_release(struct workers *);
/* The files of listening sockets go with them (lent: they stay). */
void handover_lend(struct workers *, bool lent);
/* Tells systemd to keep them, in place of those that it has of us. Nothing without systemd. */
void handover_store(struct workers *, struct notify *);
