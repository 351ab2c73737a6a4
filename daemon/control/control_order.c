/* Orders: requests that change something. The user and process of the client are logged, even if the order fails. Closing
 * connections takes as many steps as a report of them, and is one (report_lists.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/control/control_parts.h"

void
client_log_order(const struct control_client *c)
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
	log_msg(LOG_LVL_NOTICE, "%s asked for on the control socket: uid=%u pid=%d%s", name, (unsigned)c->uid,
	    (int)c->pid, what);
}

/* An order to a worker, and its result: negative errno, or a count. */
struct order {
	const struct control_request *req;
	int rc;
	struct worker_retried retried;
};

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

static void
set_disabled_worker(struct worker *w, void *arg)
{
	struct order *o = arg;
	int rc = worker_set_disabled(w, o->req->service, o->req->command == CONTROL_DISABLE);

	o->rc = rc != 0 ? rc : o->rc;
}

static void
set_disabled(struct control_client *c)
{
	struct order o = { .req = &c->req };

	workers_call_all(c->ctl->workers, set_disabled_worker, &o);
	/* The sockets that a successor has got would be shut under it, or would not be all. */
	if (o.rc != -ENOENT) {
		control_stop_handover(c->ctl);
		c->ctl->hooks.listening(c->ctl->hooks.arg);
	}
	if (!refused(c, o.rc))
		report_answer(&c->out, c->req.command,
		    &(struct report_disable){ c->req.service, c->req.command == CONTROL_DISABLE });
}

static void
rebalance_worker(struct worker *w, void *arg)
{
	struct order *o = arg;
	int moving = smcr_rebalance(worker_engine(w), o->req->group);

	o->rc = moving < 0 ? moving : o->rc + moving;
}

static void
rebalance(struct control_client *c)
{
	struct order o = { .req = &c->req };
	struct workers *ws = c->ctl->workers;
	bool asked = false;

	for (unsigned i = 0; i < workers_cnt(ws) && o.rc >= 0; i++) {
		if (!client_wants_worker(&c->req, ws, i))
			continue;
		workers_call(ws, i, rebalance_worker, &o);
		asked = true;
	}
	/* Not asked: the group would be another worker's. */
	if (!refused(c, asked ? o.rc : -ENOENT))
		report_answer(&c->out, CONTROL_REBALANCE, &(uint64_t){ (uint64_t)o.rc });
}

static void
link_worker(struct worker *w, void *arg)
{
	struct order *o = arg;

	o->rc = o->req->command == CONTROL_LINK_ADD
	    ? smcr_link_add(worker_engine(w), o->req->group)
	    : smcr_link_delete(worker_engine(w), o->req->group, (uint8_t)o->req->link);
}

static void
order_link(struct control_client *c)
{
	struct order o = { .req = &c->req };
	struct workers *ws = c->ctl->workers;

	workers_call(ws, workers_of_group(ws, c->req.group), link_worker, &o);
	if (!refused(c, o.rc))
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
	c->ctl->hooks.drain(c->ctl->hooks.arg);
	client_start_report(c);
}

static void
undrain(struct control_client *c)
{
	if (!refused(c, c->ctl->hooks.undrain(c->ctl->hooks.arg)))
		client_start_report(c);
}

bool
client_order(struct control_client *c)
{
	static void (*const orders[CONTROL_COMMAND_CNT])(struct control_client *) = {
		[CONTROL_CLOSE] = client_start_report,
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

	if (orders[c->req.command] == NULL)
		return false;
	orders[c->req.command](c);
	return true;
}
