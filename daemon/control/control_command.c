/*
 * Requests carried out: those that only look are reports (report.h), the others are here.
 *
 * A trace gives a client the protocol messages that it asked for as they come. The client's buffer is its queue: a message
 * that finds no room is counted and left out, and the engine never waits. Without such clients the engine traces nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "daemon/control/control_parts.h"
#include "wire/describe.h"

#define MESSAGES_MAX 6144 /* bytes of a reload's messages that are passed on */

void
client_answer_error(struct control_client *c, const char *code, const char *text)
{
	report_error(&c->out, control_commands[c->req.command].name, report_wall_ms(), code, text);
}

static void
start_report(struct control_client *c)
{
	struct report_source src;

	report_source_init(&src, c->ctl->worker, &c->ctl->stats, c->ctl->hooks.confine);
	report_start(&c->report, &src, &c->req, &c->out);
	c->state = CLIENT_REPORTING;
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
	c->state = CLIENT_READING;
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
start_reload(struct control_client *c)
{
	struct control *ctl = c->ctl;

	log_request(c, "reload");
	int rc = ctl->hooks.reload(ctl->hooks.arg, on_reload_done, ctl);
	if (rc != 0) {
		client_answer_error(c, rc == -EBUSY ? "busy" : "failed",
		    rc == -EBUSY ? "a reload is going on already, or the daemon is draining" : strerror(-rc));
		return;
	}
	ctl->reloader = c;
	c->state = CLIENT_WAITING;
}

static void
rebalance(struct control_client *c)
{
	struct json_writer jw;

	log_request(c, "rebalance");
	int moving = smcr_rebalance(worker_engine(c->ctl->worker), c->req.group);
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
link_delete(struct control_client *c)
{
	struct json_writer jw;

	log_request(c, "link delete");
	int rc = smcr_link_delete(worker_engine(c->ctl->worker), c->req.group, (uint8_t)c->req.link);
	if (rc == -ENOENT)
		client_answer_error(c, "not-found", "there is no such active link");
	else if (rc == -EBUSY)
		client_answer_error(c, "last-link", "this is the last active link of its group");
	else if (rc != 0)
		client_answer_error(c, "failed", strerror(-rc));
	if (rc != 0)
		return;
	loop_again(c->ctl->loop);
	report_begin(&jw, &c->out, CONTROL_LINK_DELETE, report_wall_ms());
	jw_uint(&jw, "group", c->req.group);
	jw_uint(&jw, "link", c->req.link);
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
		if (res->group.id != 0)
			report_peer(&jw, &res->group.peer);
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
start_check(struct control_client *c)
{
	struct control *ctl = c->ctl;

	if (ctl->check_cnt >= CONTROL_CHECKS_MAX) {
		client_answer_error(c, "busy", "too many checks are running");
		return;
	}
	struct control_check *k = malloc(sizeof(*k));
	int rc = -ENOMEM;
	if (k != NULL) {
		*k = (struct control_check){ .ctl = ctl, .client = c, .peer = c->req.peer };
		rc = worker_check(ctl->worker, &k->peer, c->req.timeout_ms, on_check_done, k);
	}
	if (rc != 0) {
		free(k);
		client_answer_error(c, "failed", strerror(-rc));
		return;
	}
	list_push(&ctl->checks, &k->node);
	ctl->check_cnt++;
	c->check = k;
	c->state = CLIENT_WAITING;
}

static void
start_drain(struct control_client *c)
{
	log_request(c, "drain");
	c->ctl->hooks.drain(c->ctl->hooks.arg);
	start_report(c);
}

/* -- traces -- */

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
	static int (*const describe[])(struct span, char *, size_t) = {
		[SMCR_TRACE_CLC] = wire_describe_clc,
		[SMCR_TRACE_LLC] = wire_describe_llc,
		[SMCR_TRACE_CDC] = wire_describe_cdc,
	};
	struct control *ctl = ctx;
	char text[WIRE_DESCRIBE_LEN];

	if ((ctl->trace_kinds & 1u << t->kind) == 0)
		return;
	text[0] = '\0';
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
		if (text[0] == '\0')
			(void)describe[t->kind]((struct span){ t->msg, t->len }, text, sizeof(text));
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

static void
start_trace(struct control_client *c)
{
	struct json_writer jw;

	if (!control_make_trace_place(c->ctl, c)) {
		client_answer_error(c, "busy", "too many traces");
		return;
	}
	c->trace_nr = ++c->ctl->traces_begun;
	report_begin(&jw, &c->out, CONTROL_TRACE, report_wall_ms());
	report_end(&jw);
	c->state = CLIENT_TRACING;
}

void
client_answer(struct control_client *c, const struct control_request *req)
{
	/* The commands that act; the others only look. */
	static void (*const actions[CONTROL_COMMAND_CNT])(struct control_client *) = {
		[CONTROL_DRAIN] = start_drain,
		[CONTROL_RELOAD] = start_reload,
		[CONTROL_CHECK] = start_check,
		[CONTROL_TRACE] = start_trace,
		[CONTROL_REBALANCE] = rebalance,
		[CONTROL_LINK_DELETE] = link_delete,
	};

	c->req = *req;
	(actions[req->command] != NULL ? actions[req->command] : start_report)(c);
}
