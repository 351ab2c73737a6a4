/*
 * Places on the control socket. A client that may connect by the socket's
 * mode may hold a place for as long as a trace is silent; so some places are
 * kept for the daemon's own user and root, traces are bounded, and when there
 * is no place left, the oldest trace makes room. A trace of those two users
 * makes room for them alone.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control/control_parts.h"

bool
control_trusts(int fd)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && (cred.uid == 0 || cred.uid == geteuid());
}

static bool
has_place(const struct control *ctl, bool trusted)
{
	unsigned living = 0, strangers = 0;

	LIST_EACH(const struct control_client, c, &ctl->clients, node) {
		living += !c->dead;
		strangers += !c->dead && !c->trusted;
	}
	return living < CONTROL_CLIENTS_MAX && (trusted || strangers < CONTROL_CLIENTS_MAX - CONTROL_CLIENTS_KEPT);
}

/* The oldest trace that has to make room for a client of this kind; *cnt: how many traces there are. */
static struct control_client *
oldest_trace(const struct control *ctl, bool trusted, unsigned *cnt)
{
	struct control_client *best = NULL;

	*cnt = 0;
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		if (c->dead || c->state != CLIENT_TRACING)
			continue;
		++*cnt;
		if (c->trusted && !trusted)
			continue;
		if (best == NULL || (best->trusted && !c->trusted) ||
		    (best->trusted == c->trusted && c->trace_nr < best->trace_nr))
			best = c;
	}
	return best;
}

bool
control_make_place(struct control *ctl, bool trusted)
{
	struct control_client *c;
	unsigned cnt;

	if (has_place(ctl, trusted))
		return true;
	c = oldest_trace(ctl, trusted, &cnt);
	if (c == NULL)
		return false;
	client_evict(c);
	return has_place(ctl, trusted);
}

bool
control_make_trace_place(struct control *ctl, const struct control_client *for_whom)
{
	struct control_client *c;
	unsigned cnt;

	c = oldest_trace(ctl, for_whom->trusted, &cnt);
	if (cnt < CONTROL_TRACES_MAX)
		return true;
	if (c == NULL)
		return false;
	client_evict(c);
	return true;
}
