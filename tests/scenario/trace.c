/* Checks of protocol messages; see trace.h. */
#include "tests/scenario/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "tests/scenario/plan.h"
#include "wire/describe.h"

struct watcher {
	struct trace *t;
	unsigned host;
};

struct trace {
	struct world *w;
	struct watcher watcher[PLAN_HOSTS_MAX];
};

struct trace *
trace_new(struct world *w)
{
	struct trace *t = must_calloc(1, sizeof(*t));

	t->w = w;
	return t;
}

void
trace_free(struct trace *t)
{
	free(t);
}

static void
log_msg_line(struct watcher *wr, const struct smcr_trace *m)
{
	char line[WIRE_DESCRIBE_LEN];
	struct span in = { m->msg, m->len };

	if (wr->t->w->log == NULL)
		return;
	switch (m->kind) {
	case SMCR_TRACE_CLC:
		wire_describe_clc(in, line, sizeof(line));
		break;
	case SMCR_TRACE_LLC:
		wire_describe_llc(in, line, sizeof(line));
		break;
	case SMCR_TRACE_CDC:
		wire_describe_cdc(in, line, sizeof(line));
		break;
	}
	world_log(wr->t->w, "host%u %s group %u link %u conn %08x %s", wr->host, m->sent ? "->" : "<-", m->group_id,
	    m->link, m->conn_id, line);
}

static void
on_msg(void *ctx, const struct smcr_trace *m)
{
	struct watcher *wr = ctx;

	log_msg_line(wr, m);
}

void
trace_attach(struct trace *t, unsigned host, struct smcr *eng)
{
	t->watcher[host] = (struct watcher){ .t = t, .host = host };
	smcr_set_trace(eng, on_msg, &t->watcher[host]);
}

void
trace_turn(struct trace *t, unsigned host)
{
	(void)t;
	(void)host;
}
