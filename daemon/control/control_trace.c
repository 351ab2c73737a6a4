/* Traces: protocol messages for clients. The engine's trace function copies them, in the worker's thread, into a block of the worker's tap; a
 * mail notifies main, which exchanges the whole block for an empty one. The client's buffer is its queue. A message without space is counted
 * and left out, so no engine waits. A lock is held while a message is copied or blocks are exchanged. Without a tracing client no engine
 * traces. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/control_parts.h"
#include "daemon/loop/mailbox.h"
#include "wire/describe.h"

#define BLOCK_BYTES 262144u

struct tap_block {
	size_t len;
	uint8_t bytes[BLOCK_BYTES]; /* struct record, each with its message */
};

struct record {
	struct smcr_trace trace; /* its msg is not set */
	int64_t time_us;
};

/* Of a worker; zeroed while there is no trace. */
struct trace_tap {
	struct mail mail;         /* to main: the block has messages */
	struct control *ctl;      /* NULL: zeroed */
	struct tap_block *blocks; /* both, in one piece of memory */
	struct tap_block *full;   /* main's: empty, or being delivered */
	unsigned wanted;          /* by main: 1 << enum smcr_trace_kind; 0: none */
	unsigned kinds;           /* the worker's, as they were when it was called last */
	pthread_mutex_t lock;     /* of what follows */
	struct tap_block *fill;
	bool told; /* the mail is pending */
	uint64_t left_out;
};

/* Records are aligned. */
static size_t
padded(size_t len)
{
	return (len + _Alignof(struct record) - 1) & ~(_Alignof(struct record) - 1);
}

/* Called by the engine with every message. */
static void
on_engine_message(void *ctx, const struct smcr_trace *t)
{
	struct trace_tap *tap = ctx;

	if ((tap->kinds & 1u << t->kind) == 0)
		return;
	const struct record rec = { .trace = *t, .time_us = report_wall_us() };
	const size_t need = sizeof(rec) + padded(t->len);

	(void)pthread_mutex_lock(&tap->lock);
	struct tap_block *b = tap->fill;
	/* In order: behind a message that was left out no other is stored until main has counted it. */
	if (tap->left_out > 0 || need > BLOCK_BYTES - b->len) {
		tap->left_out++;
	} else {
		memcpy(b->bytes + b->len, &rec, sizeof(rec));
		memcpy(b->bytes + b->len + sizeof(rec), t->msg, t->len);
		b->len += need;
	}
	bool tell = !tap->told;
	tap->told = true;
	(void)pthread_mutex_unlock(&tap->lock);
	if (tell)
		mailbox_post(workers_mailbox(tap->ctl->workers), &tap->mail);
}

static bool
wants_message(const struct control_client *c, const struct smcr_trace *t)
{
	const struct control_request *want = &c->req;

	return (want->kinds & 1u << t->kind) != 0 && (want->group == 0 || want->group == t->group_id) &&
	    (want->token == 0 || want->token == t->conn_id);
}

/* To each client that wants the message of this worker. */
static void
deliver(struct control *ctl, unsigned nr, const struct smcr_trace *t, int64_t time_us)
{
	static int (*const describe_as[])(struct span, char *, size_t) = {
		[SMCR_TRACE_CLC] = wire_describe_clc,
		[SMCR_TRACE_LLC] = wire_describe_llc,
		[SMCR_TRACE_CDC] = wire_describe_cdc,
	};
	char text[WIRE_DESCRIBE_LEN] = "";

	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		if (c->state != CLIENT_TRACING || !client_wants_worker(&c->req, ctl->workers, nr) ||
		    !wants_message(c, t))
			continue;
		if (outbuf_room(&c->out) < CONTROL_TRACE_BYTES) {
			c->dropped++;
			ctl->stats.trace_dropped++;
			continue;
		}
		if (text[0] == '\0')
			(void)describe_as[t->kind]((struct span){ t->msg, t->len }, text, sizeof(text));
		client_write_message(c, t, time_us, nr + 1, text);
		ctl->stats.trace_sent++;
	}
}

/* In the main loop. */
static void
on_tap_mail(struct mail *mail)
{
	struct trace_tap *tap = CONTAINER_OF(mail, struct trace_tap, mail);
	struct control *ctl = tap->ctl;
	const unsigned nr = (unsigned)(tap - ctl->taps);
	struct record rec;

	(void)pthread_mutex_lock(&tap->lock);
	struct tap_block *b = tap->fill;
	const uint64_t left_out = tap->left_out;
	tap->fill = tap->full;
	tap->full = b;
	tap->left_out = 0;
	tap->told = false;
	(void)pthread_mutex_unlock(&tap->lock);
	for (size_t at = 0; at < b->len; at += sizeof(rec) + padded(rec.trace.len)) {
		memcpy(&rec, b->bytes + at, sizeof(rec));
		rec.trace.msg = b->bytes + at + sizeof(rec);
		deliver(ctl, nr, &rec.trace, rec.time_us);
	}
	b->len = 0;
	/* Of connections that are not known: they count for each client that traces the worker. */
	ctl->stats.trace_dropped += left_out;
	LIST_EACH(struct control_client, c, &ctl->clients, node)
		if (c->state == CLIENT_TRACING && client_wants_worker(&c->req, ctl->workers, nr))
			c->dropped += left_out;
}

/* In the worker's thread. */
static void
set_tap(struct worker *w, void *arg)
{
	struct trace_tap *tap = arg;

	tap->kinds = tap->wanted;
	smcr_set_trace(worker_engine(w), tap->kinds != 0 ? on_engine_message : NULL, tap);
}

/* Of a tap whose engine has stopped writing; not while its mail is pending. */
static void
fini_tap(struct trace_tap *tap)
{
	(void)pthread_mutex_lock(&tap->lock);
	const bool told = tap->told;
	(void)pthread_mutex_unlock(&tap->lock);
	if (told)
		return;
	free(tap->blocks);
	(void)pthread_mutex_destroy(&tap->lock);
	*tap = (struct trace_tap){ 0 };
}

void
control_update_trace(struct control *ctl)
{
	for (unsigned i = 0; ctl->taps != NULL && i < workers_cnt(ctl->workers); i++) {
		struct trace_tap *tap = &ctl->taps[i];

		if (tap->ctl == NULL)
			continue;
		tap->wanted = 0;
		LIST_EACH(const struct control_client, c, &ctl->clients, node)
			if (c->state == CLIENT_TRACING && client_wants_worker(&c->req, ctl->workers, i))
				tap->wanted |= c->req.kinds;
		if (tap->wanted != tap->kinds)
			workers_call(ctl->workers, i, set_tap, tap);
		if (tap->wanted == 0)
			fini_tap(tap);
	}
}

/* Makes a tap for each worker to trace: false when memory is out. */
static bool
have_taps(struct control *ctl, const struct control_request *req)
{
	if (ctl->taps == NULL)
		ctl->taps = calloc(workers_cnt(ctl->workers), sizeof(ctl->taps[0]));
	for (unsigned i = 0; ctl->taps != NULL && i < workers_cnt(ctl->workers); i++) {
		struct trace_tap *tap = &ctl->taps[i];

		if (tap->ctl != NULL || !client_wants_worker(req, ctl->workers, i))
			continue;
		struct tap_block *blocks = malloc(2 * sizeof(*blocks));
		if (blocks == NULL)
			return false;
		blocks[0].len = blocks[1].len = 0;
		*tap = (struct trace_tap){ { .fn = on_tap_mail }, ctl, blocks, .full = &blocks[0], .fill = &blocks[1] };
		(void)pthread_mutex_init(&tap->lock, NULL);
	}
	return ctl->taps != NULL;
}

void
control_start_trace(struct control_client *c)
{
	if (!control_make_trace_place(c)) {
		client_answer_error(c, "busy", "too many traces");
	} else if (!have_taps(c->ctl, &c->req)) {
		client_answer_error(c, "failed", strerror(ENOMEM));
	} else {
		c->trace_nr = ++c->ctl->traces_begun;
		report_answer(&c->out, CONTROL_TRACE, NULL);
		c->state = CLIENT_TRACING;
	}
}
