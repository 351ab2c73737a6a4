/* What all parts of the control socket write to a client, and the sending of its bytes. Calls none of those parts. */
#include <errno.h>
#include <sys/socket.h>

#include "daemon/control/control_parts.h"

void
client_answer_error(struct control_client *c, const char *code, const char *text)
{
	report_error(&c->out, control_commands[c->req.command].name, report_wall_ms(), code, text);
}

bool
client_wants_worker(const struct control_request *req, const struct workers *ws, unsigned nr)
{
	return (req->worker == 0 || req->worker == nr + 1) &&
	    (req->group == 0 || workers_of_group(ws, req->group) == nr);
}

void
client_end_wait(struct control_client *c)
{
	c->active_ns = loop_now(c->ctl->loop);
	c->state = CLIENT_READING;
}

void
client_begin_line(struct control_client *c, struct json_writer *jw, const char *what, int64_t time_us)
{
	if (c->out.len == 0)
		c->active_ns = loop_now(c->ctl->loop); /* from here on it has something to read */
	const struct report_line row = { REPORT_SCHEMA, what, time_us, c->dropped };
	*jw = (struct json_writer){ .out = &c->out };
	jw_object(jw, NULL);
	field_write(jw, report_line_fields, &row);
	c->dropped = 0;
}

void
client_write_message(
    struct control_client *c, const struct smcr_trace *t, int64_t time_us, unsigned worker, const char *text)
{
	struct report_message row = { .text = text, .worker = worker };
	struct json_writer jw;

	if (t != NULL) {
		row.direction = t->sent ? "sent" : "received";
		row.kind = control_kind_words[t->kind];
		row.t = *t;
	}
	client_begin_line(c, &jw, t != NULL ? "message" : "dropped", time_us);
	field_write(&jw, report_message_fields, &row);
	jw_object_end(&jw);
	jw_end(&jw);
}

bool
client_send(struct control_client *c, int64_t now_ns)
{
	if (c->out.len == 0 || !c->can_write)
		return false;
	ssize_t n = send(c->io.fd, outbuf_data(&c->out), c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		c->can_write = false;
	else if (n < 0 && errno != EINTR)
		c->dead = true;
	if (n < 0)
		return false;
	outbuf_consume(&c->out, (size_t)n);
	c->active_ns = now_ns;
	return true;
}
