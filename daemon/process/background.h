/* smcrd --background: the command returns when the daemon is ready, or has failed. The daemon is a child in its own session. Called by
 * smcrd.c before threads are started. */
#pragma once

/* Forks. Returns 0 in the daemon; the calling process waits for the daemon, and exits with 0 when that is ready, or with its exit status
 * when it ends before. -errno when the fork fails. *fd: for background_ready. */
int background_start(int *fd);
/* The daemon is ready: the waiting process exits. fd: of background_start; -1 = no process waits. */
void background_ready(int fd);
