/* Messages from a worker's thread to main; see trace_tap.h. */
#include "daemon/control/trace_tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "daemon/control/report.h"

#define BLOCK_BYTES 262144u

struct tap_block {
	size_t len;
	uint8_t bytes[BLOCK_BYTES]; /* struct record, each with its message */
};

struct record {
	struct smcr_trace trace; /* its msg is not set */
	int64_t time_us;
};

/* Records are aligned. */
static size_t
padded(size_t len)
{
	return (len + _Alignof(struct record) - 1) & ~(_Alignof(struct record) - 1);
}

static bool
put(struct tap_block *b, const struct smcr_trace *t)
{
	const struct record rec = { .trace = *t, .time_us = report_wall_us() };
	const size_t need = sizeof(rec) + padded(t->len);

	if (need > BLOCK_BYTES - b->len)
		return false;
	memcpy(b->bytes + b->len, &rec, sizeof(rec));
	memcpy(b->bytes + b->len + sizeof(rec), t->msg, t->len);
	b->len += need;
	return true;
}

/* Called by the engine with every message. */
static void
trace_tap_on_message(void *ctx, const struct smcr_trace *t)
{
	struct trace_tap *tap = ctx;

	if ((tap->kinds & 1u << t->kind) == 0)
		return;
	(void)pthread_mutex_lock(&tap->lock);
	/* In order: behind a message that was left out no other is stored until main has counted it. */
	if (tap->left_out > 0 || !put(tap->fill, t))
		tap->left_out++;
	bool tell = !tap->told;
	tap->told = true;
	(void)pthread_mutex_unlock(&tap->lock);
	if (tell)
		mailbox_post(tap->main, &tap->mail);
}

static void
trace_tap_on_mail(struct mail *mail)
{
	struct trace_tap *tap = CONTAINER_OF(mail, struct trace_tap, mail);

	(void)pthread_mutex_lock(&tap->lock);
	struct tap_block *b = tap->fill;
	uint64_t left_out = tap->left_out;
	tap->fill = tap->full;
	tap->full = b;
	tap->left_out = 0;
	tap->told = false;
	(void)pthread_mutex_unlock(&tap->lock);
	for (size_t at = 0; at < b->len;) {
		struct record rec;

		memcpy(&rec, b->bytes + at, sizeof(rec));
		rec.trace.msg = b->bytes + at + sizeof(rec);
		tap->deliver(tap, &rec.trace, rec.time_us, 0);
		at += sizeof(rec) + padded(rec.trace.len);
	}
	b->len = 0;
	if (left_out > 0)
		tap->deliver(tap, NULL, 0, left_out);
}

int
trace_tap_init(struct trace_tap *tap, struct mailbox *box)
{
	struct tap_block *blocks = malloc(2 * sizeof(*blocks));

	if (blocks == NULL)
		return -ENOMEM;
	blocks[0].len = blocks[1].len = 0;
	*tap = (struct trace_tap){ { .fn = trace_tap_on_mail }, box, .blocks = blocks, .full = &blocks[0],
		.fill = &blocks[1] };
	(void)pthread_mutex_init(&tap->lock, NULL);
	return 0;
}

void
trace_tap_fini(struct trace_tap *tap)
{
	if (tap->main == NULL)
		return;
	(void)pthread_mutex_lock(&tap->lock);
	bool told = tap->told;
	(void)pthread_mutex_unlock(&tap->lock);
	if (told)
		return;
	free(tap->blocks);
	(void)pthread_mutex_destroy(&tap->lock);
	*tap = (struct trace_tap){ 0 };
}

void
trace_tap_set(struct worker *w, void *arg)
{
	struct trace_tap *tap = arg;

	tap->kinds = tap->wanted;
	smcr_set_trace(worker_engine(w), tap->kinds != 0 ? trace_tap_on_message : NULL, tap);
}
