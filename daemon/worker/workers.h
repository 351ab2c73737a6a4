/*
 * The workers and their threads. The main thread has the control plane: signals, systemd, the control socket, the loader,
 * the order of a reload. Each worker runs its own loop in a thread of its own, and nobody else touches what is a worker's:
 * main has a function run there, between two turns, and waits for it. So main sees one worker at a time, standing still, and a
 * worker waits for nobody. A worker that is busy delays main, not another worker.
 */
#pragma once

#include "daemon/loop/mailbox.h"
#include "daemon/worker/worker.h"

struct workers;

struct workers_hooks {
	void *arg;
	struct event_history *news; /* what workers tell operators; outlives them. NULL in tests */
	/* In the main loop: the loop of a worker cannot go on. The worker still answers, but serves nobody. */
	void (*failed)(void *arg, unsigned nr, int err);
};

/* How many a configuration asks for; with "auto" as many as there are processors for this process. */
unsigned workers_wanted(const struct config *);
/* cnt of them. Listening sockets are handed in as in worker_new, sock_cnt for each, those of worker 0 first. No threads yet,
 * which have the rights of who starts them. On failure nothing is left behind and err says what and where. For cfg
 * and the option see worker_new. */
int workers_new(struct loop *main, unsigned cnt, const struct config *cfg, const struct tcp_option *,
    struct listen_socket *socks, unsigned sock_cnt, const struct workers_hooks *, FILE *err, struct workers **);
/* There are threads, but no loop turns before workers_release: until then calls below are made in the caller's thread. 0 or
 * -errno. */
int workers_start(struct workers *);
/* From now on they run. */
void workers_release(struct workers *);
/* Ends the threads, and with each its worker; calls neither hooks nor what waits for a drain, but the mails of others. NULL is
 * allowed. */
void workers_free(struct workers *);

unsigned workers_cnt(const struct workers *);
/* The worker, from 0, that a group with this id would be of; ids of groups are not 0. */
unsigned workers_of_group(const struct workers *, uint32_t group_id);
/* Runs fn in the thread of worker nr, from 0, and returns when it has run. Main thread only. */
void workers_call(struct workers *, unsigned nr, void (*fn)(struct worker *, void *arg), void *arg);
/* One after the other. */
void workers_call_all(struct workers *, void (*fn)(struct worker *, void *arg), void *arg);
/* Main's own, for what workers have to say; there as long as they are. */
struct mailbox *workers_mailbox(struct workers *);

/* The targets of all services; there as long as the workers are. */
struct targets_all *workers_targets(struct workers *);

/* Of all listening sockets of the daemon, not of the workers' alone; there as long as the workers are. */
struct accept_pauses *workers_accept_pauses(struct workers *);

/* All of them or none; see worker_prepare. next is in force when it returns 0, and what was before is used by nobody. */
int workers_reload(struct workers *, const struct config *next, FILE *err);
/* As worker_drain for each; done(arg) in the main loop when all are done. */
void workers_drain(struct workers *, uint32_t deadline_ms, void (*done)(void *arg), void *arg);
/* Takes that back; done is not called any more. 0, or -errno of a worker_undrain, and all have done it. */
int workers_undrain(struct workers *);
