/* Slots of clients. A client holds its slot while a trace is silent or no event comes. So some slots are reserved for the daemon's user and
 * root, and traces are bounded. When no slot is left, the oldest trace is ended; a trace of those two users is ended for them alone. A client
 * that follows events counts as a trace. Each socket has its own slots. */
#include "daemon/control/control_parts.h"

#define CONTROL_ERROR_BYTES 512

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

/* Ends the oldest trace that a client of this kind may replace: an error is sent if it fits, and its client is dead. False: no such trace. */
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
	if (best == NULL)
		return false;
	best->ctl->stats.traces_evicted++;
	best->state = CLIENT_CLOSING;
	if (outbuf_room(&best->out) >= CONTROL_ERROR_BYTES)
		client_answer_error(best, "busy", "the trace has ended: its place is needed for another client");
	(void)client_send(best, best->active_ns);
	best->dead = true;
	return true;
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
