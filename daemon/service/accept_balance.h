/* Balances accepted connections over workers. On a listening socket shared by all workers (UNIX, or from systemd) an
 * awake worker would accept all. So each worker hands its connections to all workers in turn: their numbers differ by
 * at most one for each accepting worker. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

struct mailbox;
struct service;
struct session_pool;

struct worker_peer {
	struct mailbox *mail;      /* of the worker */
	atomic_uint under_way;     /* connections handed to it and not yet handled */
	struct session_pool *pool; /* for its own thread; NULL: not started, or ended */
};

/* Starts a session, or refuses the connection. */
typedef void (*colleague_admit)(struct service *, int fd, const struct sockaddr_storage *peer);

/* Hands an accepted connection to the next worker, whose thread calls admit. A worker without that service, during a
 * reload, returns it; one that has ended resets it. False: the caller keeps it (its turn, or the next worker is
 * busy). */
bool accept_balance(struct service *, int fd, const struct sockaddr_storage *peer, colleague_admit);
