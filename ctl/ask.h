/* The way to the daemon: its control socket, requests out, lines in. Errors are sentences on stderr. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ctl/options.h"

struct ask {
	const char *path;
	int fd;
	FILE *in;
	char *line;
	size_t cap; /* of line */
};

/* A connection to o->socket. A send and the wait for bytes may take as long as o->command needs. 0, or -errno with one
 * line of error unless quiet. */
int ask_open(struct ask *, const struct options *o, bool quiet);
void ask_close(struct ask *);
/* 0: for ever. */
void ask_set_timeout(struct ask *, int64_t timeout_ms);
/* Opens it and sends the request of o; peer is for `check`. 0, or negative with one line of error, not open. */
int ask_begin(struct ask *, const struct options *o, const char *peer);
/* The next line without its end, valid until the next call; NULL with one line of error. */
const char *ask_line(struct ask *);
