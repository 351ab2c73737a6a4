/* The files of `tls` while the daemon runs: the end of our certificate, and changes. They are looked at by tls.recheck, in a thread, and read again, all or none. A
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
	/* Our certificate ends soon, or has ended, for_ms = 0: once for each of 14, 3, 1 and 0 days, at a start for the last of
	 * them alone. */
	void (*expires)(void *arg, const char *text, uint64_t for_ms);
	void *arg;

	unsigned stage; /* of these days, passed */
	int64_t expiry_due_ns;
	int64_t not_after_s;             /* of our certificate; 0: none */
	char expiry[TLS_WATCH_NOTE_MAX]; /* for the status, from 14 days before; else "" */

	struct job *job;
	int64_t due_ns;
	struct tls_stamp seen, refused;
	char note[TLS_WATCH_NOTE_MAX]; /* why the present files are not in force, for the status; else "" */
};

/* In each turn: returns when to call it again. */
int64_t tls_watch_turn(struct tls_watch *, const struct config *, int64_t now_ns);
/* Another configuration comes into force, which has read the files; or the end. */
void tls_watch_reset(struct tls_watch *);
