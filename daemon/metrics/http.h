/*
 * The HTTP side of metrics: a thread with libevent's evhttp, which takes requests and gives answers, and knows nothing of the
 * daemon. What it needs is asked for and delivered. Beside loop/loop.c the only file that knows libevent: its descriptors cannot be
 * watched by our loop, and neither main nor workers are to pay for what clients do.
 *
 * A client is known by its connection, which has one request. Clients, their bytes, their time, and how often new ones come are
 * bounded (the constants below). When there is no room, the source (address, or the UNIX socket) with the most clients loses one: whose
 * answer has stood still longest, beyond HTTP_STALL_MS; else who has been connected longest without a complete request; else the
 * newest. Answers share the text that they are made of, and so many texts are kept at most as there are HTTP_TEXTS_MAX.
 */
#pragma once

#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/metrics/documents.h"

#define HTTP_CLIENTS_MAX 32
#define HTTP_REQUEST_MS 5000 /* from accepting to a complete request */
#define HTTP_ANSWER_MS 20000 /* from there until the answer was taken */
#define HTTP_STALL_MS 2000   /* an answer of which nothing was taken for so long gives its place to somebody else */
#define HTTP_TEXTS_MAX 4   /* of different times, which clients have not taken yet; those with the oldest have to go */
#define HTTP_FRESH_MS 1000 /* so long the same documents serve all */
#define HTTP_COLLECT_MS 10000   /* without any until then: the answer is 503 */
#define HTTP_REQUEST_BYTES 8192 /* of the request's lines; more are refused */
#define HTTP_ACCEPTS 64         /* new clients in HTTP_TICK_MS */
#define HTTP_TICK_MS 200

struct http;

struct http_hooks {
	void *arg;
	/* In the thread of http: new documents are wanted. Not called again until they were delivered. */
	void (*want)(void *arg);
	/* In the same thread: accepting has failed by this error, and pauses until the next tick; 0: it goes on. */
	void (*accepting)(void *arg, int64_t now_ms, int err);
};

/* Takes fd, a listening socket that does not block, over when it succeeds. No thread yet. 0 or -errno. */
int http_new(int fd, const struct config *, const struct http_hooks *, struct http **);
/* 0 or -errno. */
int http_start(struct http *);
/* Ends the thread, if there is one: want() is not called any more. */
void http_stop(struct http *);
/* NULL is allowed. */
void http_free(struct http *);

/* From another thread: what was wanted; NULL is allowed, and says that it cannot be had. */
void http_deliver(struct http *, struct documents *);
/* Who may connect; a reload. 0 or -ENOMEM: as before. */
int http_allow(struct http *, const struct config_net *, unsigned cnt);
