/* Takes messages from the engines' traces and finds what they belong to; see trace.h. */
#include "tests/scenario/trace.h"

#include <stdarg.h>
#include <stdlib.h>

#include "tests/scenario/liar.h"
#include "tests/scenario/script_run.h"
#include "tests/scenario/trace_int.h"
#include "wire/describe.h"

#define QUEUED_NS (20 * MS)

/* Faults that may keep a send queue full for as long as they last: the peer of a process that does not run is out of receives. */
static bool
holds_up(enum fault_kind kind)
{
	return kind == FAULT_WITHHOLD || kind == FAULT_FREEZE || kind == FAULT_PORT || kind == FAULT_STALL;
}

static int64_t
queued_ns(const struct plan *p)
{
	uint32_t ms = 0;

	for (unsigned i = 0; i < p->fault_cnt; i++) {
		const struct plan_fault *f = &p->fault[i];

		if (holds_up(f->kind) && f->for_ms > ms)
			ms = f->for_ms;
	}
	return QUEUED_NS + ms * MS;
}

struct trace *
trace_new(struct world *w, const struct plan *p)
{
	struct trace *t = must_calloc(1, sizeof(*t));

	t->w = w;
	t->faulty = plan_faulty(p);
	t->kept = p->af_smc != 0 ? 16 : 0;
	t->hostile = p->hostile != 0;
	t->llc_ns = p->llc_ms * MS;
	t->queued_ns = queued_ns(p);
	list_init(&t->groups);
	for (unsigned i = 0; i < TRACE_BUCKETS; i++) {
		list_init(&t->conns[i]);
		list_init(&t->aliases[i]);
	}
	return t;
}

void
trace_free(struct trace *t)
{
	struct list_node *n;

	for (unsigned i = 0; i < TRACE_BUCKETS; i++) {
		while ((n = list_pop(&t->conns[i])) != NULL)
			free(CONTAINER_OF(n, struct tconn, node));
		while ((n = list_pop(&t->aliases[i])) != NULL)
			free(CONTAINER_OF(n, struct talias, node));
	}
	while ((n = list_pop(&t->groups)) != NULL)
		free(CONTAINER_OF(n, struct tgroup, node));
	free(t);
}

void
trace_set_hosts(struct trace *t, const struct host *hosts)
{
	t->hosts = hosts;
}

void
trace_set_script(struct trace *t, struct script_run *s)
{
	t->script = s;
}

void
trace_bad(const struct watcher *wr, const struct tconn *c, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	world_fail(wr->t->w, "host%u conn %08x: %s", wr->host, c != NULL ? c->id : 0, text);
}

struct tconn *
trace_conn(const struct watcher *wr, uint32_t id, bool make)
{
	struct list_node *bucket = &wr->t->conns[(id ^ id >> 20) % TRACE_BUCKETS];
	struct tconn *c;

	LIST_FOREACH(n, bucket) {
		c = CONTAINER_OF(n, struct tconn, node);
		if (c->id == id && c->host == wr->host)
			return c;
	}
	if (!make)
		return NULL;
	c = must_calloc(1, sizeof(*c));
	c->id = id;
	c->host = wr->host;
	list_push(bucket, &c->node);
	return c;
}

struct tgroup *
trace_group(const struct watcher *wr, uint32_t id)
{
	struct tgroup *g;

	LIST_FOREACH(n, &wr->t->groups) {
		g = CONTAINER_OF(n, struct tgroup, node);
		if (g->id == id && g->host == wr->host)
			return g;
	}
	g = must_calloc(1, sizeof(*g));
	g->id = id;
	g->host = wr->host;
	list_push(&wr->t->groups, &g->node);
	return g;
}

uint32_t
trace_first_rkey(const struct trace *t, uint32_t rkey)
{
	LIST_FOREACH(n, &t->aliases[rkey % TRACE_BUCKETS]) {
		const struct talias *a = CONTAINER_OF(n, struct talias, node);

		if (a->rkey == rkey)
			return a->first;
	}
	return rkey;
}

void
trace_alias(struct trace *t, uint32_t rkey, uint32_t known_as)
{
	struct talias *a;

	if (trace_first_rkey(t, rkey) == trace_first_rkey(t, known_as))
		return;
	a = must_calloc(1, sizeof(*a));
	a->rkey = rkey;
	a->first = trace_first_rkey(t, known_as);
	list_push_front(&t->aliases[rkey % TRACE_BUCKETS], &a->node);
}

bool
trace_conn_over(const struct tconn *c)
{
	const uint8_t end = CDC_CLOSED | CDC_ABORT;

	if (c->declined || c->peer_through)
		return true; /* 4.4.2 */
	if (c->middle_ended && !c->confirm)
		return true;
	return (c->out.conn_flags & end) != 0 && (c->in.conn_flags & end) != 0;
}

static void
show(const struct watcher *wr, const struct smcr_trace *m)
{
	char line[WIRE_DESCRIBE_LEN];
	struct span in = { m->msg, m->len };

	if (!world_listens(wr->t->w))
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

/* In a hostile run: the liar's own messages, and what is said with it, are anything. */
static bool
is_judged(const struct watcher *wr, const struct smcr_trace *m)
{
	const struct tconn *c = m->conn_id != 0 ? trace_conn(wr, m->conn_id, false) : NULL;

	if (!wr->t->hostile)
		return true;
	if (wr->host == LIAR_HOST || (c != NULL && c->hostile))
		return false;
	if (c != NULL && m->group_id != 0)
		trace_group(wr, m->group_id)->honest = true;
	return m->kind == SMCR_TRACE_CLC || trace_group(wr, m->group_id)->honest;
}

static void
on_msg(void *ctx, const struct smcr_trace *m)
{
	const struct watcher *wr = ctx;

	show(wr, m);
	if (!is_judged(wr, m))
		return;
	if (wr->t->script != NULL)
		script_sent(wr->t->script, wr->host, m);
	switch (m->kind) {
	case SMCR_TRACE_CLC:
		trace_clc(wr, m, trace_conn(wr, m->conn_id, true));
		break;
	case SMCR_TRACE_LLC:
		if (!trace_open(wr, m, trace_group(wr, m->group_id)))
			trace_llc(wr, m, trace_group(wr, m->group_id));
		break;
	case SMCR_TRACE_CDC:
		trace_group(wr, m->group_id)->cdc = true;
		if (m->conn_id != 0)
			trace_cdc(wr, m, trace_conn(wr, m->conn_id, true));
		else if (!m->sent)
			trace_late_cdc(wr, m);
		break;
	}
}

void
trace_attach(struct trace *t, unsigned host, struct smcr *eng)
{
	t->watcher[host] = (struct watcher){ .t = t, .host = host };
	smcr_set_trace(eng, on_msg, &t->watcher[host]);
}

void
trace_forget(struct trace *t, unsigned host)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &t->conns[i]) {
			struct tconn *c = CONTAINER_OF(n, struct tconn, node);

			if (c->host == host) {
				list_remove(n);
				free(c);
			}
		}
	LIST_FOREACH(n, &t->groups) {
		struct tgroup *g = CONTAINER_OF(n, struct tgroup, node);

		if (g->host == host) {
			list_remove(n);
			free(g);
		}
	}
}

void
trace_hostile(struct trace *t, unsigned host, uint32_t conn_id)
{
	trace_conn(&t->watcher[host], conn_id, true)->hostile = true;
}

bool
trace_is_hostile(const struct trace *t, unsigned host, uint32_t conn_id)
{
	const struct tconn *c = trace_conn(&t->watcher[host], conn_id, false);

	return c != NULL && c->hostile;
}

void
trace_middle_ended(struct trace *t, unsigned host, uint32_t conn_id)
{
	struct tconn *c = trace_conn(&t->watcher[host], conn_id, false);

	if (c != NULL)
		c->middle_ended = true;
}
