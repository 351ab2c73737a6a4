/* The HTTP side of metrics: a thread with libevent's evhttp, which takes requests, sends answers, and reports pauses of accept().
 * It knows no more of the daemon: it requests documents, and main delivers them. Only this file uses libevent: its descriptors
 * cannot be watched by our loop, and neither main nor workers are to pay for what clients do.
 * A client is a connection with one request. Clients, their bytes, their time, and how often new ones come are bounded (the constants
 * below). When there is no place, the source (address, or the UNIX socket) with the most clients loses one: the client whose answer has
 * stood still longest, beyond HTTP_STALL_MS; else the one connected longest without a complete request; else the newest. Answers share
 * the documents that they are made of, of which at most HTTP_TEXTS_MAX are kept. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/event/accept_pause.h"
#include "daemon/metrics/web.h"

#define HTTP_CLIENTS_MAX 32
#define HTTP_REQUEST_MS 5000    /* from accepting to a complete request */
#define HTTP_ANSWER_MS 20000    /* from there until the answer was taken */
#define HTTP_STALL_MS 2000      /* an answer of which nothing was taken for so long gives its place to another client */
#define HTTP_TEXTS_MAX 4        /* documents of different times on their way; clients with older ones are shut down */
#define HTTP_FRESH_MS 1000      /* for so long the same documents serve all */
#define HTTP_COLLECT_MS 10000   /* without documents until then: the answer is 503 */
#define HTTP_REQUEST_BYTES 8192 /* of the request's lines; more are refused */
#define HTTP_ACCEPTS 64         /* new clients in HTTP_TICK_MS */
#define HTTP_TICK_MS 200

struct http;

/* Owns fd, a nonblocking listening socket, on success. Starts no thread yet. The thread calls want() to request new documents, and
 * not again until they were delivered. The pauses outlive struct http. 0 or -errno. */
int http_new(int fd, const struct config *, struct accept_pauses *, void (*want)(void *arg), void *arg, struct http **);
/* 0 or -errno. */
int http_start(struct http *);
/* Ends the thread, if there is one: want() is not called after it. */
void http_stop(struct http *);
/* NULL is allowed. */
void http_free(struct http *);

/* From another thread: the documents that were requested; NULL: they cannot be made. */
void http_deliver(struct http *, struct documents *);
/* The networks that may connect, at a reload. 0 or -ENOMEM: as before. */
int http_allow(struct http *, const struct config_net *, unsigned cnt);
