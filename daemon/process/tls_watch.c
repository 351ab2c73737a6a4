/* Changed files of `tls`; see tls_watch.h. */
#include "daemon/process/tls_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/minmax.h"

#define SETTLE_MS 2000 /* between two looks at a change */
#define HOUR_S 3600
#define DAY_S (24 * HOUR_S)

/* One look, and what it found. */
struct look {
	struct tls_watch *w;
	struct config_tls tls;
	unsigned uses;
	struct tls_stamp in_force, refused, seen, now;
	struct tls_ctx *ctx;
	char *msgs;
	bool read; /* they were read */
};

static bool
stamp_same(const struct tls_stamp *a, const struct tls_stamp *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void
tls_watch_look(void *arg)
{
	struct look *l = arg;
	size_t len;

	config_tls_look(&l->tls, &l->now);
	if (stamp_same(&l->now, &l->in_force) || stamp_same(&l->now, &l->refused) || !stamp_same(&l->now, &l->seen))
		return;
	FILE *err = open_memstream(&l->msgs, &len);
	if (err == NULL)
		return;
	l->read = true;
	l->ctx = config_tls_read(&l->tls, l->uses, err);
	(void)fclose(err);
}

static void
tls_watch_refuse(struct tls_watch *w, const struct look *l)
{
	const char *msgs = l->msgs != NULL && l->msgs[0] != '\0' ? l->msgs : "out of memory";

	w->refused = l->now;
	(void)snprintf(w->note, sizeof(w->note), "%.*s", (int)strcspn(msgs, "\n"), msgs);
	w->apply(w->arg, NULL, w->note);
}

static void
tls_watch_looked(void *arg)
{
	struct look *l = arg;
	struct tls_watch *w = l->w;

	w->job = NULL;
	w->due_ns = loop_now(w->loop) + (int64_t)l->tls.recheck_ms * 1000000;
	if (l->read && l->ctx != NULL) {
		w->note[0] = '\0';
		w->expiry_due_ns = 0;
		w->apply(w->arg, l->ctx, "");
		l->ctx = NULL;
	} else if (l->read) {
		tls_watch_refuse(w, l);
	} else if (stamp_same(&l->now, &l->in_force)) {
		w->note[0] = '\0';
		w->refused = (struct tls_stamp){ 0 };
	} else if (!stamp_same(&l->now, &l->refused) && !stamp_same(&l->now, &l->seen)) {
		w->seen = l->now;
		w->due_ns = loop_now(w->loop) + min_i64(l->tls.recheck_ms, SETTLE_MS) * 1000000;
	}
}

static void
tls_watch_drop(void *arg)
{
	struct look *l = arg;

	tls_ctx_put(l->ctx);
	free(l->msgs);
	free(l);
}

static void
tls_watch_start(struct tls_watch *w, const struct config *cfg)
{
	static const struct job_ops ops = { tls_watch_look, tls_watch_looked, tls_watch_drop };
	struct look *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return;
	*l = (struct look){ .w = w,
		.tls = cfg->tls,
		.uses = config_tls_uses(cfg),
		.in_force = *tls_ctx_stamp(cfg->tls_ctx),
		.refused = w->refused,
		.seen = w->seen };
	if (job_start(w->loop, &ops, l, &w->job) != 0)
		free(l);
}

/* -- the end of our certificate -- */

static const int64_t stages_s[] = { TLS_EXPIRES_SOON_DAYS * DAY_S, 3 * DAY_S, 1 * DAY_S, 0 };

/* At least once an hour, as somebody may set the clock. */
static int64_t
follow_expiry(struct tls_watch *w, const struct config *cfg, int64_t now_ns)
{
	unsigned stage = 0;

	if (now_ns < w->expiry_due_ns)
		return w->expiry_due_ns;
	w->not_after_s = cfg->tls_ctx != NULL ? tls_ctx_not_after(cfg->tls_ctx) : 0;
	const int64_t left_s = w->not_after_s - (int64_t)time(NULL);
	int64_t next_s = HOUR_S;
	while (w->not_after_s != 0 && stage < sizeof(stages_s) / sizeof(stages_s[0]) && left_s <= stages_s[stage])
		stage++;
	if (w->not_after_s != 0 && stage < sizeof(stages_s) / sizeof(stages_s[0]))
		next_s = min_i64(next_s, left_s - stages_s[stage]);
	w->expiry[0] = '\0';
	if (stage > 0 && left_s > 0)
		(void)snprintf(w->expiry, sizeof(w->expiry), "the certificate in %s expires in %lld %s", cfg->tls.cert,
		    (long long)(left_s >= 2 * DAY_S ? left_s / DAY_S : left_s / HOUR_S),
		    left_s >= 2 * DAY_S ? "days" : "hours");
	else if (stage > 0)
		(void)snprintf(w->expiry, sizeof(w->expiry),
		    "the certificate in %s has expired: handshakes fail, connections under way continue",
		    cfg->tls.cert);
	if (stage > w->stage)
		w->expires(w->arg, w->expiry, left_s > 0 ? (uint64_t)left_s * 1000 : 0);
	w->stage = stage;
	w->expiry_due_ns = now_ns + next_s * 1000000000;
	return w->expiry_due_ns;
}

static int64_t
follow_files(struct tls_watch *w, const struct config *cfg, int64_t now_ns)
{
	const int64_t every_ns = (int64_t)cfg->tls.recheck_ms * 1000000;

	if (cfg->tls_ctx == NULL || every_ns == 0 || w->job != NULL)
		return INT64_MAX;
	if (w->due_ns == 0)
		w->due_ns = now_ns + every_ns;
	if (now_ns < w->due_ns)
		return w->due_ns;
	w->due_ns = now_ns + every_ns; /* without a thread, again then */
	tls_watch_start(w, cfg);
	return w->job != NULL ? INT64_MAX : w->due_ns;
}

int64_t
tls_watch_turn(struct tls_watch *w, const struct config *cfg, int64_t now_ns)
{
	const int64_t at = follow_expiry(w, cfg, now_ns);

	return min_i64(at, follow_files(w, cfg, now_ns));
}

void
tls_watch_reset(struct tls_watch *w)
{
	w->expiry_due_ns = 0;
	job_cancel(w->job);
	w->job = NULL;
	w->due_ns = 0;
	w->seen = w->refused = (struct tls_stamp){ 0 };
	w->note[0] = '\0';
}
