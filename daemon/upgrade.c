/* Listening sockets for another process; see upgrade.h. */
#include "daemon/upgrade.h"

#include <string.h>

#include "base/log.h"

struct collected {
	int (*add)(struct worker *, struct lsock_list *);
	struct lsock_list *list;
	int rc;
};

static void
collect(struct worker *w, void *arg)
{
	struct collected *c = arg;

	if (c->rc == 0)
		c->rc = c->add(w, c->list);
}

int
upgrade_sockets(struct workers *ws, struct lsock_list *out)
{
	struct collected c = { .add = worker_add_sockets, .list = out };

	workers_call_all(ws, collect, &c);
	return c.rc;
}

int
upgrade_ports(struct workers *ws, struct lsock_list *out)
{
	struct collected c = { .add = worker_add_ports, .list = out };

	workers_call_all(ws, collect, &c);
	return c.rc;
}

static void
drop_port(struct worker *w, void *arg)
{
	worker_drop_port(w, arg);
}

void
upgrade_drop_ports(struct workers *ws, const struct lsock_list *ports)
{
	for (unsigned i = 0; i < ports->cnt; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		if (getsockname(ports->v[i].fd, (struct sockaddr *)&ss, &len) == 0)
			workers_call_all(ws, drop_port, &ss);
	}
}

static void
let_go(struct worker *w, void *arg)
{
	(void)arg;
	worker_let_go(w);
}

void
upgrade_let_go(struct workers *ws)
{
	workers_call_all(ws, let_go, NULL);
}

static void
lend(struct worker *w, void *arg)
{
	worker_lend_sockets(w, *(bool *)arg);
}

void
upgrade_lend(struct workers *ws, bool lent)
{
	workers_call_all(ws, lend, &lent);
}

void
upgrade_store(struct workers *ws, struct notify *n)
{
	struct lsock_list list = { 0 };

	if (!n->enabled)
		return;
	int rc = upgrade_sockets(ws, &list);
	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "listening sockets are not kept over a restart: error=\"%s\"", strerror(-rc));
	else
		notify_store(n, &list);
	lsock_list_fini(&list);
}
