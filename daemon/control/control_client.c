/* A control client: reads request lines, and sends the bytes that reports and traces put into its buffer. The contents are up to
 * control_command.c and report.c. An inactive client is closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/control_parts.h"

static void
on_client(struct loop_io *io, unsigned events)
{
	struct control_client *c = CONTAINER_OF(io, struct control_client, io);

	if ((events & (LOOP_READ | LOOP_RDHUP | LOOP_HUP | LOOP_ERR)) != 0)
		c->can_read = true;
	if ((events & (LOOP_WRITE | LOOP_HUP | LOOP_ERR)) != 0)
		c->can_write = true;
	if ((events & (LOOP_HUP | LOOP_ERR)) != 0)
		c->hup = true;
}

struct control_client *
client_new(const struct control_port *port, int fd)
{
	struct control *ctl = port->ctl;
	struct control_client *c = calloc(1, sizeof(*c));

	if (c != NULL && outbuf_init(&c->out, CONTROL_OUT_BYTES) == 0) {
		c->ctl = ctl;
		c->port = port;
		c->can_read = c->can_write = true;
		c->io = (struct loop_io){ .fd = fd, .cb = on_client };
		list_init(&c->node);
		if (loop_add(ctl->loop, &c->io) == 0)
			return c;
		outbuf_fini(&c->out);
	}
	free(c);
	close(fd);
	return NULL;
}

void
client_free(struct control_client *c)
{
	if (c->check != NULL)
		c->check->client = NULL;
	if (c->ctl->reloader == c)
		c->ctl->reloader = NULL;
	handover_end(c);
	list_remove(&c->node);
	loop_del(c->ctl->loop, &c->io);
	close(c->io.fd);
	outbuf_fini(&c->out);
	free(c);
}

int64_t
client_deadline(const struct control_client *c)
{
	/* Checks and reloads have limits of their own. */
	if (c->state == CLIENT_WAITING || (client_listens(c) && c->out.len == 0))
		return INT64_MAX;
	return c->active_ns + CONTROL_TIMEOUT_NS;
}

/* Handles the line of len bytes at the start of the input; skip more bytes end it. */
static void
take_line(struct control_client *c, size_t len, size_t skip, int64_t now_ns)
{
	struct control_request req;
	struct control_error err;

	c->ctl->stats.requests++;
	c->active_ns = now_ns;
	if (handover_start(c, c->in, len)) {
		c->in_len = 0; /* it sends nothing before our answer */
		return;
	}
	int rc = control_request_parse(c->in, len, &req, &err);
	c->in_len -= len + skip;
	memmove(c->in, c->in + len + skip, c->in_len);
	if (rc == 0) {
		client_answer(c, &req);
		return;
	}
	c->ctl->stats.requests_bad++;
	report_error(&c->out, "", report_wall_ms(), err.code, err.text);
}

static enum client_step
step_reading(struct control_client *c, int64_t now_ns)
{
	const char *nl = memchr(c->in, '\n', c->in_len);

	if (c->out.len > 0) /* one answer at a time */
		return STEP_BLOCKED;
	if (nl != NULL) {
		take_line(c, (size_t)(nl - c->in), 1, now_ns);
	} else if (c->in_len == sizeof(c->in)) {
		c->ctl->stats.requests_bad++;
		report_error(&c->out, "", report_wall_ms(), "too-long", "a request has to be shorter than 4096 bytes");
		c->state = CLIENT_CLOSING;
	} else if (c->eof && c->in_len > 0) {
		take_line(c, c->in_len, 0, now_ns);
	} else if (c->eof) {
		c->dead = true;
	} else if (c->can_read) {
		ssize_t n = recv(c->io.fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

		if (n > 0)
			c->in_len += (size_t)n;
		else if (n == 0)
			c->eof = true;
		else if (errno == EAGAIN)
			c->can_read = false;
		else if (errno != EINTR)
			c->dead = true;
	} else {
		return STEP_BLOCKED;
	}
	return STEP_MOVED;
}

static enum client_step
step_client(struct control_client *c, int64_t now_ns, unsigned *budget)
{
	switch (c->state) {
	case CLIENT_READING:
		return step_reading(c, now_ns);
	case CLIENT_REPORTING:
		if (outbuf_room(&c->out) < REPORT_STEP_BYTES)
			return STEP_BLOCKED;
		if (*budget == 0)
			return STEP_BUDGET;
		if (!report_run(&c->report, budget))
			c->state = CLIENT_READING;
		return STEP_MOVED;
	case CLIENT_WAITING:
		c->dead = c->hup;
		return STEP_BLOCKED;
	case CLIENT_TRACING:
		c->dead = c->hup;
		if (c->dropped > 0 && outbuf_room(&c->out) >= CONTROL_TRACE_BYTES)
			client_write_message(c, NULL, report_wall_us(), 0, "");
		return STEP_BLOCKED;
	case CLIENT_EVENTS:
		c->dead = c->hup;
		return control_events_step(c, budget);
	case CLIENT_TAKING:
		return handover_step(c, now_ns);
	case CLIENT_CLOSING:
		c->dead = c->out.len == 0;
		return c->dead ? STEP_MOVED : STEP_BLOCKED;
	}
	return STEP_BLOCKED;
}

bool
client_run(struct control_client *c, int64_t now_ns, unsigned *budget)
{
	while (!c->dead) {
		enum client_step s = step_client(c, now_ns, budget);

		if (c->out.overflow) {
			log_msg(LOG_LVL_ERROR, "control answer does not fit its buffer: command=%s",
			    control_commands[c->req.command].name);
			c->dead = true;
		}
		if (s == STEP_MOVED)
			continue;
		if (!client_send(c, now_ns) || s == STEP_BUDGET)
			return s == STEP_BUDGET && !c->dead;
	}
	return false;
}
