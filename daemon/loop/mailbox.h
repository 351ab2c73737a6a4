/*
 * What threads of the daemon tell each other: a function that is to run in another thread's loop. The only meeting place of
 * threads: each has one, next to its loop, and looks at it when its descriptor is readable, so a thread that nobody writes
 * to takes no lock. A mail is embedded in what it is about; no memory is asked for.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "daemon/loop/loop.h"

/* The poster's until it is posted, the reader's from the call of fn on; may be posted again from then on, not before. */
struct mail {
	struct mail *next;
	void (*fn)(struct mail *);
};

struct mailbox {
	struct loop *loop;
	struct loop_io io; /* an eventfd; < 0: none */
	pthread_mutex_t lock;
	struct mail *first, **end; /* in the order of posting */
};

/* 0 or -errno. */
int mailbox_init(struct mailbox *, struct loop *);
/* When nobody posts any more. Mails that are still there are not run. A zeroed mailbox is left alone. */
void mailbox_fini(struct mailbox *);

/* From any thread: fn runs in a turn of the loop, before the turn functions. */
void mailbox_post(struct mailbox *, struct mail *);
/* Runs all that is there now; in the reader's thread, where its loop does not. */
void mailbox_run(struct mailbox *);
/* Sleeps until there is something, and runs it. */
void mailbox_wait(struct mailbox *);
