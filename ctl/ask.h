/* The way to the daemon: its control socket, requests out, lines in. Errors are sentences on err. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ask {
	const char *path;
	int fd;
	char *buf;
	size_t len, cap; /* bytes received; the first `used` of them are the line handed out last */
	size_t used;
};

/* 0, or -errno with one line in err, unless that is NULL. timeout_ms: how long a send or the wait for bytes may take, 0 = for ever. */
int ask_open(struct ask *, const char *path, unsigned timeout_ms, FILE *err);
void ask_close(struct ask *);
void ask_set_timeout(struct ask *, unsigned timeout_ms);

/* Sends a request and its line end. 0, or -errno with one line in err. */
int ask_send(struct ask *, const char *request, FILE *err);
/* The next line without its end, valid until the next call; NULL with one line in err. */
const char *ask_line(struct ask *, FILE *err);
