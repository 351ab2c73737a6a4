/* Messages between threads of the daemon: a function that is to run in the loop of another thread. Threads meet
 * nowhere else. Each has one mailbox beside its loop and reads it when the eventfd is readable, so a thread without
 * mail takes no lock. A mail is embedded in its subject; posting allocates no memory. */
#pragma once

#include <pthread.h>

#include "daemon/loop/loop.h"

/* Owned by the poster until posted, then by the reader until it calls fn, which may post it again. */
struct mail {
	struct mail *next;
	void (*fn)(struct mail *);
};

struct mailbox {
	struct loop *loop;
	struct loop_io io; /* an eventfd; < 0: not open */
	pthread_mutex_t lock;
	struct mail *first, **end; /* in the order of posting */
};

/* 0 or -errno. */
int mailbox_init(struct mailbox *, struct loop *);
/* After the last post. Pending mails are not run. A zeroed mailbox is ignored. */
void mailbox_fini(struct mailbox *);

/* From any thread: fn runs in a turn of the loop, before the turn functions. */
void mailbox_post(struct mailbox *, struct mail *);
/* Runs all pending mails; called in the reader's thread where its loop does not run. */
void mailbox_run(struct mailbox *);
/* Sleeps until a mail arrives, then runs it. */
void mailbox_wait(struct mailbox *);
