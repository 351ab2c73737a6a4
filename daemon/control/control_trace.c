/*
 * Live protocol messages for control clients that asked for them. A client's
 * buffer is its queue: a message that finds no room is counted and left out,
 * and the engine never waits. Without such clients the engine traces nothing.
 */
#include "daemon/control/control_parts.h"
#include "wire/describe.h"

static const char *
describe(const struct smcr_trace *t, char *buf, size_t cap)
{
	struct span msg = { t->msg, t->len };

	buf[0] = '\0';
	switch (t->kind) {
	case SMCR_TRACE_CLC:
		wire_describe_clc(msg, buf, cap);
		break;
	case SMCR_TRACE_LLC:
		wire_describe_llc(msg, buf, cap);
		break;
	case SMCR_TRACE_CDC:
		wire_describe_cdc(msg, buf, cap);
		break;
	}
	return buf;
}

/* One line; t is NULL for one that only says how many were left out. */
static void
write_line(struct control_client *c, const struct smcr_trace *t, const char *text)
{
	struct json_writer jw;

	if (c->out.len == 0)
		c->active_ns = loop_now(c->ctl->loop); /* from now on it has something to read */
	jw_init(&jw, &c->out);
	jw_object(&jw, NULL);
	jw_int(&jw, "schema", REPORT_SCHEMA);
	jw_string(&jw, "event", t != NULL ? "message" : "dropped");
	jw_int(&jw, "time_us", report_wall_us());
	jw_uint(&jw, "dropped", c->dropped);
	jw_string(&jw, "direction", t == NULL ? "" : t->sent ? "sent" : "received");
	jw_string(&jw, "kind", t != NULL ? control_kind_words[t->kind] : "");
	jw_uint(&jw, "group", t != NULL ? t->group_id : 0);
	jw_uint(&jw, "link", t != NULL ? t->link : 0);
	report_hex32(&jw, "token", t != NULL ? t->conn_id : 0);
	jw_uint(&jw, "bytes", t != NULL ? t->len : 0);
	jw_string(&jw, "text", text);
	jw_object_end(&jw);
	jw_end(&jw);
	c->dropped = 0;
}

/* Called by the engine with every message. */
static void
on_message(void *ctx, const struct smcr_trace *t)
{
	struct control *ctl = ctx;
	char buf[WIRE_DESCRIBE_LEN];
	const char *text = NULL;

	if ((ctl->trace_kinds & 1u << t->kind) == 0)
		return;
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		const struct control_request *want = &c->req;

		if (c->state != CLIENT_TRACING || (want->kinds & 1u << t->kind) == 0 ||
		    (want->group != 0 && want->group != t->group_id) || (want->token != 0 && want->token != t->conn_id))
			continue;
		if (outbuf_room(&c->out) < CONTROL_TRACE_BYTES) {
			c->dropped++;
			ctl->stats.trace_dropped++;
			continue;
		}
		if (text == NULL)
			text = describe(t, buf, sizeof(buf));
		write_line(c, t, text);
		ctl->stats.trace_sent++;
	}
}

void
client_flush_dropped(struct control_client *c)
{
	if (c->dropped > 0 && outbuf_room(&c->out) >= CONTROL_TRACE_BYTES)
		write_line(c, NULL, "");
}

void
control_update_trace(struct control *ctl)
{
	unsigned kinds = 0;

	LIST_EACH(const struct control_client, c, &ctl->clients, node)
		if (c->state == CLIENT_TRACING)
			kinds |= c->req.kinds;
	if ((kinds != 0) != (ctl->trace_kinds != 0))
		smcr_set_trace(worker_engine(ctl->worker), kinds != 0 ? on_message : NULL, ctl);
	ctl->trace_kinds = kinds;
}

void
client_start_trace(struct control_client *c, const struct control_request *req)
{
	struct json_writer jw;

	(void)req;
	if (!control_make_trace_place(c->ctl, c)) {
		client_answer_error(c, "busy", "too many traces");
		return;
	}
	c->trace_nr = ++c->ctl->traces_begun;
	report_begin(&jw, &c->out, CONTROL_TRACE, report_wall_ms());
	report_end(&jw);
	client_set_state(c, CLIENT_TRACING);
}
