/*
 * Slots of clients.
 *
 * A client holds its slot while a trace is silent or no event comes. So some slots are reserved for the daemon's user and root, and
 * traces are bounded. When no slot is left, the oldest trace is ended; a trace of those two users is ended for them alone. A client that
 * follows events counts as a trace. Each socket has its own slots.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control/control_parts.h"

bool
control_is_trusted(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && (cred.uid == 0 || cred.uid == geteuid());
}

static bool
has_place(const struct control_port *port, bool trusted)
{
	unsigned living = 0, strangers = 0;

	LIST_EACH(const struct control_client, c, &port->ctl->clients, node) {
		living += c->port == port && !c->dead;
		strangers += c->port == port && !c->dead && !c->trusted;
	}
	return living < port->clients_max && (trusted || strangers < port->clients_max - CONTROL_CLIENTS_KEPT);
}

/* Ends the oldest trace that a client of this kind may replace; its client is dead then. False: no such trace. */
static bool
evict_trace(const struct control_port *port, bool trusted)
{
	struct control_client *best = NULL;

	LIST_EACH(struct control_client, c, &port->ctl->clients, node) {
		if (c->port != port || c->dead || !client_listens(c) || (c->trusted && !trusted))
			continue;
		if (best == NULL || (best->trusted && !c->trusted) ||
		    (best->trusted == c->trusted && c->trace_nr < best->trace_nr))
			best = c;
	}
	if (best != NULL)
		client_evict(best);
	return best != NULL;
}

bool
control_make_trace_place(const struct control_client *asking)
{
	unsigned cnt = 0;

	LIST_EACH(const struct control_client, c, &asking->ctl->clients, node)
		cnt += c->port == asking->port && !c->dead && client_listens(c);
	return cnt < CONTROL_TRACES_MAX || evict_trace(asking->port, asking->trusted);
}

bool
control_make_place(const struct control_port *port, bool trusted)
{
	return has_place(port, trusted) || (evict_trace(port, trusted) && has_place(port, trusted));
}
