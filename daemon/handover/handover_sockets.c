/* Listening sockets for another process; see handover/handover_sockets.h. */
#include "daemon/handover/handover_sockets.h"

#include <string.h>

#include "base/log.h"

struct collected {
	int (*add)(struct worker *, struct listen_socket_list *);
	struct listen_socket_list *list;
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
handover_sockets(struct workers *ws, struct listen_socket_list *out)
{
	struct collected c = { .add = worker_add_sockets, .list = out };

	workers_call_all(ws, collect, &c);
	return c.rc;
}

int
handover_ports(struct workers *ws, struct listen_socket_list *out)
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
handover_drop_ports(struct workers *ws, const struct listen_socket_list *ports)
{
	for (unsigned i = 0; i < ports->cnt; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		if (getsockname(ports->v[i].fd, (struct sockaddr *)&ss, &len) == 0)
			workers_call_all(ws, drop_port, &ss);
	}
}

static void
handover_sockets_let_go(struct worker *w, void *arg)
{
	(void)arg;
	worker_release_sockets(w);
}

void
handover_release(struct workers *ws)
{
	workers_call_all(ws, handover_sockets_let_go, NULL);
}

static void
lend(struct worker *w, void *arg)
{
	worker_lend_sockets(w, *(bool *)arg);
}

void
handover_lend(struct workers *ws, bool lent)
{
	workers_call_all(ws, lend, &lent);
}

void
handover_store(struct workers *ws, struct notify *n)
{
	struct listen_socket_list list = { 0 };

	if (!n->enabled)
		return;
	int rc = handover_sockets(ws, &list);
	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "listening sockets are not kept over a restart: error=\"%s\"", strerror(-rc));
	else
		notify_store(n, &list);
	listen_socket_list_fini(&list);
}
