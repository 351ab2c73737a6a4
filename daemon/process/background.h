/* smcrd --background: the command returns when the daemon, a child in its own session, is ready or has failed. */
#pragma once

/* Forks, before there are threads. 0 in the daemon; the calling process exits with 0 when that is ready, or with its
 * exit status when it ends before. -errno when the fork fails. *fd: for background_ready. */
int background_start(int *fd);
/* The daemon is ready: the waiting process exits. fd: of background_start; -1 = no process waits. */
void background_ready(int fd);
