/* Listening sockets of all workers that outlive this process: for a successor, and in systemd's store of descriptors, from which the next
 * process gets them at a restart. Called by smcrd*.c. */
#pragma once

#include "daemon/net/listen_socket.h"
#include "daemon/handover/notify.h"
#include "daemon/worker/workers.h"

/* Copies of all listening sockets of services. 0 or -errno; the list is the caller's either way. */
int handover_sockets(struct workers *, struct listen_socket_list *out);
/* Copies of the ports of soft devices. */
int handover_ports(struct workers *, struct listen_socket_list *out);
/* Another process accepts on these of them: devices stop. */
void handover_drop_ports(struct workers *, const struct listen_socket_list *);
/* Another process accepts: workers stop, and files stay. */
void handover_release(struct workers *);
/* lent: the files of listening sockets stay when these are closed. */
void handover_lend(struct workers *, bool lent);
/* Stores them at systemd, in place of those that it has of us. Does nothing without systemd. */
void handover_store(struct workers *, struct notify *);
