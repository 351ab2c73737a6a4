/* Carries out requests: those that only look are reports (report.h); orders, which change something, and the rest are here. Closing
 * connections takes as many steps as a report of them, and is one (report_lists.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/log.h"
#include "base/str.h"
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
	struct service_info info;

	q->service = q->service || worker_service_find(w, q->req->service, &info, NULL);
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

/* The answer is made in steps, by the client's turns. */
static void
start_report(struct control_client *c)
{
	struct report_source src;

	report_source_init(&src, c->ctl->workers, &c->ctl->stats, c->ctl->hooks.process);
	if (c->req.command == CONTROL_STATUS)
		report_source_measure(&src);
	report_start(&c->report, &src, &c->req, &c->out);
	c->state = CLIENT_REPORTING;
}

static void
start_service(struct control_client *c)
{
	if (look_up(c).service)
		start_report(c);
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

/* The user and process of the client are logged, even if the order fails. */
static void
log_order(struct control_client *c, bool permitted)
{
	char what[CONFIG_NAME_MAX + ADDR_STR_MAX + 128] = "", text[ADDR_STR_MAX], name[32];
	const struct control_request *r = &c->req;

	snprintf(name, sizeof(name), "%s", control_commands[r->command].name);
	for (char *p = name; *p != '\0'; p++)
		if (*p == '-' || *p == '_')
			*p = *p == '-' ? ' ' : '-';
	if (r->id != 0)
		str_append(what, sizeof(what), " id=%llu", (unsigned long long)r->id);
	if (r->service[0] != '\0')
		str_append(what, sizeof(what), " service=%s", r->service);
	if (r->peer.ss_family != AF_UNSPEC)
		str_append(what, sizeof(what), " peer=%s",
		    (addr_port(&r->peer) != 0 ? addr_format_port : addr_format)(&r->peer, text, sizeof(text)));
	if (r->group != 0)
		str_append(what, sizeof(what), " group=%u", r->group);
	if (r->link != 0)
		str_append(what, sizeof(what), " link=%u", r->link);
	if ((r->given & CONTROL_F_LEVEL) != 0)
		str_append(what, sizeof(what), " level=%s",
		    r->level >= 0 ? control_level_words[r->level] : CONTROL_LEVEL_DEFAULT);
	if (permitted)
		log_msg(LOG_LVL_NOTICE, "%s asked for on the control socket: uid=%u pid=%d%s", name, (unsigned)c->uid,
		    (int)c->pid, what);
	else
		log_limited(&c->ctl->refusals, loop_now(c->ctl->loop), LOG_LVL_NOTICE,
		    "%s refused on the control socket, no right to give orders: uid=%u pid=%d%s", name,
		    (unsigned)c->uid, (int)c->pid, what);
}

/* False: refused, with the way to the right. */
static bool
may_order(struct control_client *c)
{
	const struct config_admins *admins = &c->ctl->admins;
	const bool permitted = control_may_order(c);
	char text[320];

	log_order(c, permitted);
	if (permitted)
		return true;
	snprintf(text, sizeof(text),
	    admins->orders == CONFIG_ORDERS_GROUP
	        ? "this order is for root, the daemon's user and group %s: as root \"usermod -aG %s USER\", and log in again"
	        : "this order is for root and the daemon's user: as root \"groupadd --system %s\", "
	          "\"usermod -aG %s USER\" and \"systemctl reload smcrd\", and log in again",
	    admins->group, admins->group);
	client_answer_error(c, "not-permitted", text);
	return false;
}

/* The answer to an errno of an order; rc 0: to any other than those before. */
static const struct {
	enum control_command command;
	int rc;
	const char *code, *text;
} errors[] = {
	{ CONTROL_DISABLE, -ENOENT, "not-found", "there is no such service" },
	{ CONTROL_ENABLE, -ENOENT, "not-found", "there is no such service" },
	{ CONTROL_REBALANCE, -ENOENT, "not-found", "there is no such link group" },
	{ CONTROL_LINK_ADD, -ENOENT, "not-found", "there is no such link group" },
	{ CONTROL_LINK_ADD, -EMLINK, "complete", "the link group has as many links as both ends agreed" },
	{ CONTROL_LINK_ADD, -ENODEV, "no-device", "no device is left for another link of the group" },
	{ CONTROL_LINK_DELETE, -ENOENT, "not-found", "there is no such active link" },
	{ CONTROL_LINK_DELETE, -EBUSY, "last-link", "this is the last active link of its group" },
	{ CONTROL_UNDRAIN, -ENOENT, "not-draining", "the daemon does not drain" },
	{ CONTROL_UNDRAIN, -EBUSY, "stopping", "a signal has asked the daemon to end, which is not taken back" },
	{ CONTROL_UNDRAIN, -EALREADY, "stopping", "another process has taken over, which is not taken back" },
	{ CONTROL_UNDRAIN, 0, "failed", "the daemon drains no longer, but a service cannot listen again: see its log" },
};

/* False when rc is no error. */
static bool
refused(struct control_client *c, int rc)
{
	for (size_t i = 0; rc < 0 && i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].command == c->req.command && (errors[i].rc == rc || errors[i].rc == 0)) {
			client_answer_error(c, errors[i].code, errors[i].text);
			return true;
		}
	if (rc < 0)
		client_answer_error(c, "failed", strerror(-rc));
	return rc < 0;
}

/* An order to workers, and its result: negative errno, or a count. */
struct order {
	const struct control_request *req;
	int rc;
	struct worker_retried retried;
};

static void
order_worker(struct worker *w, void *arg)
{
	struct order *o = arg;
	const struct control_request *req = o->req;
	int rc;

	if (req->command == CONTROL_REBALANCE)
		rc = smcr_rebalance(worker_engine(w), req->group);
	else if (req->command == CONTROL_LINK_ADD)
		rc = smcr_link_add(worker_engine(w), req->group);
	else if (req->command == CONTROL_LINK_DELETE)
		rc = smcr_link_delete(worker_engine(w), req->group, (uint8_t)req->link);
	else
		rc = worker_set_disabled(w, req->service, req->command == CONTROL_DISABLE);
	o->rc = rc < 0 ? rc : o->rc + rc;
}

/* Of all workers that the request is about; only one of them has a group. */
static int
order_workers(const struct control_client *c)
{
	struct order o = { .req = &c->req };
	struct workers *ws = c->ctl->workers;
	bool asked = false;

	for (unsigned i = 0; i < workers_cnt(ws); i++) {
		if (!client_wants_worker(&c->req, ws, i))
			continue;
		workers_call(ws, i, order_worker, &o);
		asked = true;
	}
	return asked ? o.rc : -ENOENT; /* not asked: the group would be another worker's */
}

static void
set_disabled(struct control_client *c)
{
	const int rc = order_workers(c);

	/* The sockets that a successor has got would be shut under it, or would not be all. */
	if (rc != -ENOENT) {
		control_stop_handover(c->ctl);
		c->ctl->hooks.listening(c->ctl->hooks.arg);
	}
	if (!refused(c, rc))
		report_answer(&c->out, c->req.command,
		    &(struct report_disable){ c->req.service, c->req.command == CONTROL_DISABLE });
}

static void
rebalance(struct control_client *c)
{
	const int rc = order_workers(c);

	if (!refused(c, rc))
		report_answer(&c->out, CONTROL_REBALANCE, &(uint64_t){ (uint64_t)rc });
}

static void
order_link(struct control_client *c)
{
	if (!refused(c, order_workers(c)))
		report_answer(&c->out, c->req.command, &c->req);
}

static void
retry_worker(struct worker *w, void *arg)
{
	struct order *o = arg;
	const struct worker_retried one = worker_retry(w, o->req->peer.ss_family != AF_UNSPEC ? &o->req->peer : NULL);

	o->retried.engine.peers += one.engine.peers;
	o->retried.engine.links += one.engine.links;
	o->retried.prewarms += one.prewarms;
	o->retried.targets += one.targets;
	o->retried.devices += one.devices;
}

static void
retry(struct control_client *c)
{
	const struct control_hooks *hooks = &c->ctl->hooks;
	struct order o = { .req = &c->req };

	workers_call_all(c->ctl->workers, retry_worker, &o);
	const unsigned names = o.req->peer.ss_family == AF_UNSPEC ? hooks->retry_names(hooks->arg) : 0;
	report_answer(&c->out, CONTROL_RETRY, &(struct report_retry){ o.retried, names });
}

/* Without a level it is no order, and only reports. */
static void
log_level(struct control_client *c)
{
	const struct control_level l = c->ctl->hooks.log_level(c->ctl->hooks.arg, c->req.level);

	report_answer(&c->out, CONTROL_LOG_LEVEL, &l);
}

static void
drain(struct control_client *c)
{
	c->ctl->hooks.drain(
	    c->ctl->hooks.arg, c->req.then_exit, (c->req.given & CONTROL_F_TIMEOUT_MS) != 0 ? c->req.timeout_ms : 0);
	start_report(c);
}

static void
undrain(struct control_client *c)
{
	if (!refused(c, c->ctl->hooks.undrain(c->ctl->hooks.arg)))
		start_report(c);
}

void
client_answer(struct control_client *c, const struct control_request *req)
{
	/* Of requests that are more than a report. */
	static void (*const actions[CONTROL_COMMAND_CNT])(struct control_client *) = {
		[CONTROL_SERVICE] = start_service,
		[CONTROL_HISTORY] = start_service,
		[CONTROL_RELOAD] = start_reload,
		[CONTROL_CHECK] = client_check,
		[CONTROL_TRACE] = start_trace,
		[CONTROL_EVENTS] = control_start_events,
		[CONTROL_DISABLE] = set_disabled,
		[CONTROL_ENABLE] = set_disabled,
		[CONTROL_REBALANCE] = rebalance,
		[CONTROL_LINK_ADD] = order_link,
		[CONTROL_LINK_DELETE] = order_link,
		[CONTROL_RETRY] = retry,
		[CONTROL_LOG_LEVEL] = log_level,
		[CONTROL_DRAIN] = drain,
		[CONTROL_UNDRAIN] = undrain,
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
	if (kind == CONTROL_ORDERS && !may_order(c))
		return;
	if (actions[req->command] != NULL)
		actions[req->command](c);
	else
		start_report(c);
}
