/* Requests carried out: those that only look are reports (report.h), the others are here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "daemon/control/control_parts.h"

#define MESSAGES_MAX 6144 /* bytes of a reload's messages that are passed on */

void
client_answer_error(struct control_client *c, const char *code, const char *text)
{
	report_error(&c->out, control_commands[c->req.command].name, report_wall_ms(), code, text);
}

static void
start_report(struct control_client *c, const struct control_request *req)
{
	struct report_source src;

	report_source_init(&src, c->ctl->worker, &c->ctl->stats);
	src.confine = c->ctl->hooks.confine;
	report_start(&c->report, &src, req, &c->out);
	client_set_state(c, CLIENT_REPORTING);
}

/* A client that changes something is named in the log. */
static void
log_request(const struct control_client *c, const char *what)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (getsockopt(c->io.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		log_msg(LOG_LVL_NOTICE, "%s asked for on the control socket: uid=%u pid=%d", what, (unsigned)cred.uid,
		    (int)cred.pid);
}

/* The answer that the client waited for is in its buffer. */
static void
end_wait(struct control_client *c)
{
	c->active_ns = loop_now(c->ctl->loop);
	client_set_state(c, CLIENT_READING);
}

static void
on_reload_done(void *arg, int rc, const char *msgs)
{
	struct control *ctl = arg;
	struct control_client *c = ctl->reloader;
	struct json_writer jw;
	char text[MESSAGES_MAX];

	if (c == NULL)
		return;
	ctl->reloader = NULL;
	snprintf(text, sizeof(text), "%s", msgs);
	if (rc != 0) {
		client_answer_error(c, "reload-failed", text);
	} else {
		report_begin(&jw, &c->out, CONTROL_RELOAD, report_wall_ms());
		jw_string(&jw, "messages", text);
		report_end(&jw);
	}
	end_wait(c);
}

static void
start_reload(struct control_client *c, const struct control_request *req)
{
	struct control *ctl = c->ctl;
	int rc;

	(void)req;
	log_request(c, "reload");
	rc = ctl->hooks.reload(ctl->hooks.arg, on_reload_done, ctl);
	if (rc != 0) {
		client_answer_error(c, rc == -EBUSY ? "busy" : "failed",
		    rc == -EBUSY ? "a reload is going on already, or the daemon is draining" : strerror(-rc));
		return;
	}
	ctl->reloader = c;
	client_set_state(c, CLIENT_WAITING);
}

static void
rebalance(struct control_client *c, const struct control_request *req)
{
	struct json_writer jw;
	int moving;

	log_request(c, "rebalance");
	moving = smcr_rebalance(worker_engine(c->ctl->worker), req->group);
	if (moving < 0) {
		client_answer_error(c, moving == -ENOENT ? "not-found" : "failed",
		    moving == -ENOENT ? "there is no such link group" : strerror(-moving));
		return;
	}
	loop_again(c->ctl->loop); /* the worker had its turn before: it needs another one */
	report_begin(&jw, &c->out, CONTROL_REBALANCE, report_wall_ms());
	jw_uint(&jw, "moving", (uint64_t)moving);
	report_end(&jw);
}

static void
link_delete(struct control_client *c, const struct control_request *req)
{
	struct json_writer jw;
	int rc;

	log_request(c, "link delete");
	rc = smcr_link_delete(worker_engine(c->ctl->worker), req->group, (uint8_t)req->link);
	if (rc != 0) {
		client_answer_error(c,
		    rc == -ENOENT      ? "not-found"
		        : rc == -EBUSY ? "last-link"
		                       : "failed",
		    rc == -ENOENT      ? "there is no such active link"
		        : rc == -EBUSY ? "this is the last active link of its group"
		                       : strerror(-rc));
		return;
	}
	loop_again(c->ctl->loop);
	report_begin(&jw, &c->out, CONTROL_LINK_DELETE, report_wall_ms());
	jw_uint(&jw, "group", req->group);
	jw_uint(&jw, "link", req->link);
	report_end(&jw);
}

/* Runs inside the worker's turn; the client's own turn sends the answer. */
static void
on_check_done(void *arg, const struct check_result *res)
{
	struct control_check *k = arg;
	struct control_client *c = k->client;
	struct json_writer jw;

	if (c != NULL) {
		report_begin(&jw, &c->out, CONTROL_CHECK, report_wall_ms());
		report_sockaddr(&jw, "peer", &k->peer);
		jw_bool(&jw, "possible", res->possible);
		jw_string(&jw, "text", res->text);
		report_reason(&jw, "reason", &res->diag);
		report_end(&jw);
		c->check = NULL;
		end_wait(c);
	}
	if (k->ctl != NULL) {
		k->ctl->check_cnt--;
		list_remove(&k->node);
	}
	free(k);
}

static void
start_check(struct control_client *c, const struct control_request *req)
{
	struct control *ctl = c->ctl;
	struct control_check *k;
	int rc;

	if (ctl->check_cnt >= CONTROL_CHECKS_MAX) {
		client_answer_error(c, "busy", "too many checks are running");
		return;
	}
	k = calloc(1, sizeof(*k));
	rc = -ENOMEM;
	if (k != NULL) {
		k->ctl = ctl;
		k->client = c;
		k->peer = req->peer;
		rc = worker_check(ctl->worker, &req->peer, req->timeout_ms, on_check_done, k);
	}
	if (rc != 0) {
		free(k);
		client_answer_error(c, "failed", strerror(-rc));
		return;
	}
	list_push(&ctl->checks, &k->node);
	ctl->check_cnt++;
	c->check = k;
	client_set_state(c, CLIENT_WAITING);
}

static void
start_drain(struct control_client *c, const struct control_request *req)
{
	log_request(c, "drain");
	c->ctl->hooks.drain(c->ctl->hooks.arg);
	start_report(c, req);
}

void
client_answer(struct control_client *c, const struct control_request *req)
{
	/* The commands that act; the others only look. */
	static void (*const actions[CONTROL_COMMAND_CNT])(struct control_client *, const struct control_request *) = {
		[CONTROL_DRAIN] = start_drain,
		[CONTROL_RELOAD] = start_reload,
		[CONTROL_CHECK] = start_check,
		[CONTROL_TRACE] = client_start_trace,
		[CONTROL_REBALANCE] = rebalance,
		[CONTROL_LINK_DELETE] = link_delete,
	};

	c->req = *req;
	(actions[req->command] != NULL ? actions[req->command] : start_report)(c, req);
}
