/* Files of `tls` that change while the daemon runs: looked at by tls.recheck, in a thread, and read again, all or none. A
 * change counts when two looks in succession have seen the same: several files of it are written one after the other.
 * Owner: smcrd.c. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/loop/job.h"

#define TLS_WATCH_NOTE_MAX 400

struct tls_watch {
	struct loop *loop;
	/* New ones of the configuration in force, a counted reference; or NULL: they are refused, for this reason. */
	void (*apply)(void *arg, struct tls_ctx *, const char *why);
	void *arg;

	struct job *job;
	int64_t due_ns;
	struct tls_stamp seen, refused;
	char note[TLS_WATCH_NOTE_MAX]; /* why the present files are not in force, for the status; else "" */
};

/* In each turn: returns when to call it again. */
int64_t tls_watch_turn(struct tls_watch *, const struct config *, int64_t now_ns);
/* Another configuration comes into force, which has read the files; or the end. */
void tls_watch_reset(struct tls_watch *);
