/* The file that control clients connect to: made, told apart from a live daemon's, removed. Made by smcrd.c, or by
 * control.c itself. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/un.h>

/* A listening socket with a name in the file system, and which file is ours. */
struct control_listen {
	int fd;   /* -1 = none */
	int lock; /* of the directory, until we listen; -1 = none */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev;
	ino_t ino;
};

/* Makes the file, on which nobody listens yet: connecting fails. Replaces a socket that nobody listens on; never anything
 * else. 0, or -errno with one line in err. */
int control_listen_open(struct control_listen *, const char *path, uint32_t mode, FILE *err);
/* From here on clients may connect. 0 or -errno with one line in err. */
int control_listen_start(struct control_listen *, FILE *err);
/* Removes the file if it is still ours. */
void control_listen_close(struct control_listen *);
