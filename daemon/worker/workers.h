/* The workers and their threads. The main thread has the control plane: signals, systemd, the control socket, the
 * loader, the steps of a reload. Each worker runs its own loop in its own thread, and no other thread uses a worker's
 * state. Main posts a function to the worker's loop, between two turns, and waits for its end. So main sees one worker
 * at a time, stopped, and a worker waits for no other thread. A busy worker delays main, not another worker. */
#pragma once

#include "daemon/loop/mailbox.h"
#include "daemon/worker/worker.h"

struct workers;

struct workers_hooks {
	void *arg;
	struct event_history *news; /* events of workers for the operator; outlives them. NULL in tests */
	/* In the main loop: the loop of a worker failed. The worker still answers, but serves no connections. */
	void (*failed)(void *arg, unsigned nr, int err);
};

/* The number that a configuration wants; with "auto" the processors of this process. */
unsigned workers_wanted(const struct config *);
/* Creates cnt workers. Listening sockets are passed as in worker_new, sock_cnt for each, those of worker 0 first. No
 * threads yet, as these get the rights of their creator. On failure all is undone and err has the reason. cfg, option:
 * see worker_new. */
int workers_new(struct loop *main, unsigned cnt, const struct config *cfg, const struct tcp_option *,
    struct listen_socket *socks, unsigned sock_cnt, const struct workers_hooks *, FILE *err, struct workers **);
/* Creates the threads. Until workers_release no loop turns, and calls run in the caller's thread. 0 or -errno. */
int workers_start(struct workers *);
/* Starts the loops. */
void workers_release(struct workers *);
/* Ends the threads and workers. Calls no hooks and no drain callback, but runs others' mails. NULL is allowed. */
void workers_free(struct workers *);

unsigned workers_cnt(const struct workers *);
/* The worker, from 0, of a group with this id; ids of groups are not 0. */
unsigned workers_of_group(const struct workers *, uint32_t group_id);
/* Runs fn in the thread of worker nr, from 0, and returns after it. Main thread only. */
void workers_call(struct workers *, unsigned nr, void (*fn)(struct worker *, void *arg), void *arg);
/* One after the other. */
void workers_call_all(struct workers *, void (*fn)(struct worker *, void *arg), void *arg);
/* Main's own, for mails of workers; exists as long as they do. */
struct mailbox *workers_mailbox(struct workers *);

/* The targets of all services; exist as long as the workers. */
struct targets_all *workers_targets(struct workers *);

/* Of all listening sockets of the daemon, not only the workers'; exist as long as the workers. */
struct accept_pauses *workers_accept_pauses(struct workers *);

/* All workers or none; see worker_prepare. After 0 next is in force, and the earlier one is no longer used. */
int workers_reload(struct workers *, const struct config *next, FILE *err);
/* worker_drain for each; done(arg), unless that is NULL, runs in the main loop when all are done. */
void workers_drain(struct workers *, uint32_t limit_ms, void (*done)(void *arg), void *arg);
/* Cancels that; done is not called. 0, or -errno of a worker_undrain, after all have done it. */
int workers_undrain(struct workers *);
