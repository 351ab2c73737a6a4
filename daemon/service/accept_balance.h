/*
 * What the workers of a daemon know of each other. A listening socket that is one for all of them (a UNIX socket, one of
 * systemd's) gives its connections to whichever worker accepts first, so that a worker that is awake would have them all.
 * Each deals out what it accepted, to all in turn: whoever accepts, all have the same number, give or take one for each worker.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

struct mailbox;
struct service;
struct session_pool;

struct worker_peer {
	struct mailbox *mail;      /* to it */
	atomic_uint under_way;     /* connections that were given to it and that it has not looked at */
	struct session_pool *pool; /* its own thread's; NULL: not there yet, or no more */
};

/* Begins a session, or refuses. */
typedef void (*colleague_admit)(struct service *, int fd, const struct sockaddr_storage *peer);

/* Gives a connection that the service's listener accepted to the worker whose turn it is, where the service of that name takes
 * it and has not too many waiting. A worker that has no such service, in the midst of a reload, gives it back, and one that has
 * ended resets it. The callback runs in the thread of the worker that gets it. False: it is the caller's own. */
bool accept_balance(struct service *, int fd, const struct sockaddr_storage *peer, colleague_admit);
