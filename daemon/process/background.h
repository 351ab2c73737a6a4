/* smcrd --background: the command returns when the daemon is ready, or has failed. The daemon is a child in its own session. Called by
 * smcrd.c before threads are started. */
#pragma once

struct background {
	int fd; /* to the waiting process; -1 = none */
};

#define BACKGROUND_NONE ((struct background){ .fd = -1 })

/* Forks. Returns 0 in the daemon; the calling process waits for the daemon, and exits with 0 when that is ready, or with its exit status
 * when it ends before. -errno when the fork fails. */
int background_start(struct background *);
/* The daemon is ready: the waiting process exits. */
void background_ready(struct background *);
