/* Carries out requests: those that only look are reports (report.h), orders are in control_order.c, the others are here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control/control_parts.h"

#define MESSAGES_MAX 6144 /* bytes of a reload's messages that are passed on */

/* The objects of a request that were found in the workers so far. */
struct lookup {
	const struct control_request *req;
	bool service, group, conn;
};

static void
look_up_in_worker(struct worker *w, void *arg)
{
	struct lookup *q = arg;
	struct outage_info outage;
	struct service_info info;

	q->service = q->service || worker_service_find(w, q->req->service, &info, &outage);
	q->group = q->group || smcr_has_group(worker_engine(w), q->req->group);
	q->conn = q->conn || smcr_has_conn(worker_engine(w), q->req->token);
}

/* What the request does not name counts as found. */
static struct lookup
look_up(const struct control_client *c)
{
	struct lookup q = { &c->req, c->req.service[0] == '\0', c->req.group == 0, c->req.token == 0 };

	for (unsigned i = 0; i < workers_cnt(c->ctl->workers) && !(q.service && q.group && q.conn); i++)
		if (client_wants_worker(&c->req, c->ctl->workers, i))
			workers_call(c->ctl->workers, i, look_up_in_worker, &q);
	return q;
}

static void
start_service(struct control_client *c)
{
	if (look_up(c).service)
		client_start_report(c);
	else
		client_answer_error(c, "not-found", "there is no such service");
}

static void
on_reload_done(void *arg, int rc, const char *msgs)
{
	struct control *ctl = arg;
	struct control_client *c = ctl->reloader;
	char text[MESSAGES_MAX], more[64] = "";
	size_t len = strlen(msgs);
	unsigned left = 0;

	if (c == NULL)
		return;
	ctl->reloader = NULL;
	if (len >= sizeof(text)) { /* as many whole lines as fit, and the number of those left out */
		for (len = sizeof(text) - sizeof(more); len > 0 && msgs[len - 1] != '\n'; len--)
			;
		for (const char *p = msgs + len; *p != '\0'; left++) {
			p += strcspn(p, "\n");
			p += *p == '\n';
		}
		(void)snprintf(more, sizeof(more), "and %u more, which the log has\n", left);
	}
	(void)snprintf(text, sizeof(text), "%.*s%s", (int)len, msgs, more);
	if (rc != 0)
		client_answer_error(c, "reload-failed", text);
	else
		report_answer(&c->out, CONTROL_RELOAD, &(const char *){ text });
	client_end_wait(c);
}

static void
start_reload(struct control_client *c)
{
	struct control *ctl = c->ctl;
	const int rc = ctl->hooks.reload(ctl->hooks.arg, on_reload_done, ctl);

	if (rc != 0) {
		client_answer_error(c, rc == -EBUSY ? "busy" : "failed",
		    rc == -EBUSY ? "a reload is running, or the daemon is draining" : strerror(-rc));
		return;
	}
	ctl->reloader = c;
	c->state = CLIENT_WAITING;
}

/* Of objects that exist: ids of future ones are not known, and such a trace would stay empty. */
static void
start_trace(struct control_client *c)
{
	const struct lookup found = look_up(c);

	if (!found.group)
		client_answer_error(c, "not-found", "there is no such link group");
	else if (!found.conn)
		client_answer_error(c, "not-found", "there is no such connection");
	else
		control_start_trace(c);
}

void
client_answer(struct control_client *c, const struct control_request *req)
{
	/* Requests that are more than a report; orders are in control_order.c. */
	static void (*const actions[CONTROL_COMMAND_CNT])(struct control_client *) = {
		[CONTROL_SERVICE] = start_service,
		[CONTROL_RELOAD] = start_reload,
		[CONTROL_CHECK] = client_check,
		[CONTROL_TRACE] = start_trace,
		[CONTROL_EVENTS] = control_start_events,
	};
	const enum control_kind kind = control_request_kind(req);

	c->req = *req;
	if (c->port->readonly && kind != CONTROL_ASKS) {
		client_answer_error(
		    c, "read-only", "this socket is read-only: send orders and checks to the control socket");
		return;
	}
	if (req->worker > workers_cnt(c->ctl->workers)) {
		client_answer_error(c, "not-found", "there is no such worker");
		return;
	}
	if (kind == CONTROL_ORDERS)
		client_log_order(c);
	if (actions[req->command] != NULL)
		actions[req->command](c);
	else if (!client_order(c))
		client_start_report(c);
}
