/* Requests to the running daemon at its control socket. For smcrd --reload and smcrd -t; they block. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* A connected stream, or NULL with errno. wait_s: for connecting, and for each part of an answer. */
FILE *control_dial(const char *path, unsigned wait_s);
/* request: a line of JSON. The answer, of which the caller frees the reference; NULL with errno. */
json_t *control_ask(FILE *, const char *request);
