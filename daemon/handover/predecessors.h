/* Processes that were taken over and serve their connections still. They are found at the start by their control sockets, which are
 * beside the one of this process, and watched until they end: the rights for both are given up later. Owner: smcrd.c. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon/loop/loop.h"

#define PREDECESSORS_MAX 16
#define PREDECESSORS_PATH_MAX 108 /* of a UNIX socket */

struct predecessor {
	struct loop_io io; /* a pidfd; -1: it has ended, or was never there */
	struct predecessors *all;
	uint32_t pid;
	char path[PREDECESSORS_PATH_MAX]; /* of its control socket */
};

struct predecessors {
	struct loop *loop;
	void (*ended)(void *arg); /* called after each end */
	void *arg;
	unsigned cnt; /* of those that run */
	struct predecessor v[PREDECESSORS_MAX];
};

void predecessors_init(struct predecessors *, struct loop *, void (*ended)(void *arg), void *arg);
/* The processes of this user that listen at path with a dot and a number behind it. Files at which no process listens are removed.
 * 0; or -E2BIG with a line in err, when there are more than PREDECESSORS_MAX. */
int predecessors_find(struct predecessors *, const char *path, FILE *err);
/* The process, and the path at which its control socket is or will be. 0; -E2BIG as above; or another -errno: it cannot be watched. */
int predecessors_add(struct predecessors *, pid_t, const char *path, FILE *err);
/* Requests their end with the last connection, after limit_ms at the latest; 0: their drain_timeout. One that cannot be
 * asked is not counted any longer. */
void predecessors_end(struct predecessors *, uint32_t limit_ms);
void predecessors_fini(struct predecessors *);
