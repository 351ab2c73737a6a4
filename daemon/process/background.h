/* smcrd --background: the command returns when the daemon, a child in its own session, is ready or has failed. */
#pragma once

/* Forks, before there are threads. 0 in the daemon, which is no child of the calling process; that exits with 0 when the daemon is ready,
 * or with its exit status when it ends before. -errno when the fork fails. *fd: for the others. */
int background_start(int *fd);
/* The daemon is ready, or ends: the waiting process exits. fd: of background_start; -1 = no process waits. */
void background_ready(int fd);
void background_failed(int fd, int code);
