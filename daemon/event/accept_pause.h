/*
 * Pauses of accepting: descriptors or memory have run out, or accept() has another error that is no connection's. What runs out
 * is the process's, and all its listening sockets notice it, so it is told once for all of them: when the first one pauses, when
 * the reason changes, and when none pauses any more, with how often accept() failed meanwhile. Any thread. Owner: struct workers.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "daemon/event/event_history.h"

struct accept_pauses {
	struct event_history *news;
	pthread_mutex_t lock; /* of what follows */
	unsigned paused;      /* sockets; none: it is over */
	int err;              /* of the last failure */
	bool told;            /* its beginning was, so its end will be */
	uint64_t failures;
	int64_t since_ns;
	int64_t told_ns;
	struct log_limit limit; /* so that one which comes and goes fills no log; ends come on top */
};

/* The part of a listening socket, or of several that pause together. Its thread's alone; zeroed: it does not pause. */
struct accept_pause {
	bool on;
};

/* Who tells. */
struct pause_place {
	int64_t now_ns;      /* as for event_report */
	unsigned worker;     /* from 1; 0: main, or another thread */
	const char *service; /* "": it is no service's */
};

/* news as for event_report. */
void accept_pauses_init(struct accept_pauses *, struct event_history *);
void accept_pauses_fini(struct accept_pauses *);

/* accept() has failed by err: this one pauses, or goes on doing so. */
void accept_pauses_failed(struct accept_pauses *, struct accept_pause *, const struct pause_place *, int err);
/* It works again, or nobody waits; cheap when it does not pause. */
void accept_pauses_over(struct accept_pauses *, struct accept_pause *, const struct pause_place *);
/* The socket accepts no more: it goes on no more than it pauses. */
void accept_pauses_forget(struct accept_pauses *, struct accept_pause *);
