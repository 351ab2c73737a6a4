/*
 * smcrd --background: the command returns when the daemon is ready, or has failed. The daemon is a child of its own session.
 * Called by smcrd.c, before there are threads.
 */
#pragma once

struct background {
	int fd; /* to who waits; -1 = nobody */
};

#define BACKGROUND_NONE ((struct background){ .fd = -1 })

/* Forks. 0 in the daemon; in the process that was called it does not return: it waits for the daemon, and exits with 0 when that is
 * ready, with its exit status when it ends before. -errno when there is no second process. */
int background_start(struct background *);
/* The daemon is ready: the one that waits may go. */
void background_ready(struct background *);
