/* Pauses of accept(): descriptors or memory are exhausted, or accept() failed with another error that is not of one
 * connection. The resource is the process's, so all listening sockets fail together and one report covers them.
 * Reported: the first pause, a change of the reason, and the end of the last pause with the number of failed accept()
 * calls. Any thread. Owner: struct workers. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/event/event_history.h"
#include "daemon/event/lasting.h"

struct accept_pauses {
	struct event_history *news;
	pthread_mutex_t lock; /* of the fields below */
	unsigned paused;      /* paused sockets; 0: the pause is over */
	int err;              /* of the last failure */
	struct lasting failures;
};

/* Of a listening socket, or of several that pause together. Used by one thread; zeroed: not paused. */
struct accept_pause {
	bool on;
};

/* The reporter. */
struct pause_place {
	int64_t now_ns;      /* as for event_report */
	unsigned worker;     /* from 1; 0: main, or another thread */
	const char *service; /* "": not of a service */
};

/* news as for event_report. */
void accept_pauses_init(struct accept_pauses *, struct event_history *);
void accept_pauses_fini(struct accept_pauses *);

/* accept() failed with err: this one pauses, or stays paused. */
void accept_pauses_failed(struct accept_pauses *, struct accept_pause *, const struct pause_place *, int err);
/* accept() works again, or no connection waits; cheap without a pause. NULL: the socket is closed, no report. */
void accept_pauses_over(struct accept_pauses *, struct accept_pause *, const struct pause_place *);
