/* The control socket: its listener, places for clients, their turns, its end; see control.h. */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/minmax.h"
#include "daemon/control/control_parts.h"

#define BACKLOG 16
#define ACCEPTS_PER_TURN 8
#define ACCEPT_PAUSE_NS 100000000

/*
 * -- places --
 *
 * A client that may connect by the socket's mode may hold a place for as long as a trace is silent, or no event comes; so some
 * places are kept for the daemon's own user and root, traces are bounded, and when there is no place left, the oldest trace makes
 * room. A trace of those two users makes room for them alone. Who follows events counts as a trace. Each socket has its own
 * places, so one makes no room for a client of the other.
 */

/* Is the process at the other end the daemon's own user, or root? */
static bool
is_trusted(int fd)
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

/* Ends the oldest trace that has to make room for a client of this kind, if there is one; its client is dead then. */
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
control_make_trace_place(const struct control_client *for_whom)
{
	unsigned cnt = 0;

	LIST_EACH(const struct control_client, c, &for_whom->ctl->clients, node)
		cnt += c->port == for_whom->port && !c->dead && client_listens(c);
	return cnt < CONTROL_TRACES_MAX || evict_trace(for_whom->port, for_whom->trusted);
}

/* -- the listener -- */

static void
on_listener(struct loop_io *io, unsigned events)
{
	struct control_port *port = CONTAINER_OF(io, struct control_port, io);

	(void)events;
	port->acceptable = true;
}

/* One line, as far as it goes, to a client that is not let in. */
static void
refuse_client(struct control *ctl, int fd)
{
	struct outbuf out;

	ctl->stats.clients_refused++;
	if (outbuf_init(&out, 512) == 0) {
		report_error(&out, "", report_wall_ms(), "busy", "too many control clients");
		size_t len;
		const char *p = outbuf_data(&out, &len);
		(void)!send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		outbuf_fini(&out);
	}
	close(fd);
}

static bool
make_place(const struct control_port *port, bool trusted)
{
	return has_place(port, trusted) || (evict_trace(port, trusted) && has_place(port, trusted));
}

static void
accept_clients(struct control_port *port, int64_t now_ns)
{
	const struct pause_place at = { .now_ns = now_ns, .service = "" };
	struct control *ctl = port->ctl;

	for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(port->listen.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 && errno == EAGAIN) {
			port->acceptable = false;
			break;
		}
		if (fd < 0) { /* out of descriptors: they wait in the backlog */
			pauses_failed(workers_pauses(ctl->workers), &port->paused, &at, errno);
			port->accept_at_ns = now_ns + ACCEPT_PAUSE_NS;
			return;
		}
		bool trusted = is_trusted(fd);
		if (!make_place(port, trusted)) {
			refuse_client(ctl, fd);
			continue;
		}
		struct control_client *c = client_new(port, fd);
		if (c == NULL) {
			ctl->stats.clients_refused++;
			continue;
		}
		c->active_ns = now_ns;
		c->trusted = trusted;
		ctl->stats.clients++;
		list_push(&ctl->clients, &c->node);
	}
	pauses_over(workers_pauses(ctl->workers), &port->paused, &at);
}

static int64_t
control_turn(void *arg, int64_t now_ns)
{
	struct control *ctl = arg;
	unsigned budget = CONTROL_STEPS_PER_TURN;
	int64_t next = INT64_MAX;
	bool more = false;

	for (struct control_port *port = ctl->ports; port < ctl->ports + CONTROL_PORTS; port++) {
		if (port->acceptable && now_ns >= port->accept_at_ns)
			accept_clients(port, now_ns);
		if (port->acceptable)
			next = min_i64(next, port->accept_at_ns);
	}
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		if (client_run(c, now_ns, &budget))
			more = true;
		if (!c->dead && now_ns >= client_deadline(c)) {
			ctl->stats.clients_timed_out++;
			c->dead = true;
		}
	}
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		if (c->dead)
			client_free(c);
		else
			next = min_i64(next, min_i64(client_deadline(c), handover_wakes(c)));
	}
	/* The first client of this turn is the last of the next, so that a big report does not take all steps. */
	if (!list_empty(&ctl->clients))
		list_push(&ctl->clients, list_pop(&ctl->clients));
	control_update_trace(ctl);
	control_update_events(ctl);
	return more ? INT64_MIN : next;
}

/* Opened by now, or before; without a path there is none. 0, or -errno with a line in err. */
static int
start_port(struct control_port *port, const struct lsock_file *file, struct lsock *opened, FILE *err)
{
	int rc = 0;

	if (file->path[0] == '\0')
		return 0;
	if (opened != NULL) {
		port->listen = *opened;
		*opened = LSOCK_NONE;
	} else {
		rc = lsock_open(&port->listen, file, err);
	}
	if (rc == 0 && !port->listen.lent)
		rc = lsock_start(&port->listen, file->what, BACKLOG, err);
	if (rc != 0)
		return rc;
	port->io.fd = port->listen.fd;
	rc = loop_add(port->ctl->loop, &port->io);
	if (rc != 0) {
		fprintf(err, "%s %s: cannot watch it: error %d\n", file->what, file->path, -rc);
		port->io.fd = -1;
	}
	return rc;
}

static void
stop_port(struct control_port *port)
{
	if (port->io.fd >= 0)
		loop_del(port->ctl->loop, &port->io);
	port->io.fd = -1;
	port->acceptable = false;
	pauses_forget(workers_pauses(port->ctl->workers), &port->paused);
	lsock_close(&port->listen);
}

static void
stop_ports(struct control *ctl)
{
	for (struct control_port *port = ctl->ports; port < ctl->ports + CONTROL_PORTS; port++)
		stop_port(port);
}

static int
start(struct control *ctl, const struct config *cfg, struct lsock *opened, FILE *err)
{
	int rc = 0;

	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++) {
		const struct lsock_file file = control_file(cfg, i);

		rc = start_port(&ctl->ports[i], &file, opened != NULL ? &opened[i] : NULL, err);
	}
	if (rc == 0) {
		rc = loop_add_turn(ctl->loop, control_turn, ctl);
		if (rc != 0)
			fprintf(err, "control socket %s: no turn of the loop left\n", cfg->control_path);
	}
	return rc;
}

int
control_new(struct loop *loop, struct workers *ws, const struct config *cfg, const struct control_hooks *hooks,
    FILE *err, struct control **out)
{
	struct control *ctl = calloc(1, sizeof(*ctl));

	if (ctl != NULL)
		ctl->taps = calloc(workers_cnt(ws), sizeof(ctl->taps[0]));
	if (ctl == NULL || ctl->taps == NULL) {
		fprintf(err, "control socket %s: out of memory\n", cfg->control_path);
		free(ctl);
		return -ENOMEM;
	}
	ctl->loop = loop;
	ctl->workers = ws;
	ctl->hooks = *hooks;
	ctl->mode = cfg->control_mode;
	list_init(&ctl->clients);
	list_init(&ctl->checks);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		ctl->ports[i] = (struct control_port){
			.ctl = ctl,
			.listen = LSOCK_NONE,
			.io = { .fd = -1, .cb = on_listener },
			.clients_max = i == CONTROL_FULL ? CONTROL_CLIENTS_MAX : CONTROL_READERS_MAX,
			.readonly = i == CONTROL_READONLY,
		};
	int rc = start(ctl, cfg, hooks->listen, err);
	if (rc != 0) {
		stop_ports(ctl);
		free(ctl->taps);
		free(ctl);
		return rc;
	}
	*out = ctl;
	return 0;
}

const struct control_stats *
control_counters(const struct control *ctl)
{
	return &ctl->stats;
}

void
control_free(struct control *ctl)
{
	unsigned budget = CONTROL_STEPS_PER_TURN;

	if (ctl == NULL)
		return;
	/* The answer to the "drain" that ended the daemon may still be here, or a process that is to take its place. */
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		handover_hurry(c);
		client_run(c, loop_now(ctl->loop), &budget);
		client_free(c);
	}
	control_end_traces(ctl);
	control_update_events(ctl);
	LIST_EACH(struct control_check, k, &ctl->checks, node) {
		k->ctl = NULL;
		list_remove(&k->node);
	}
	loop_del_turn(ctl->loop, control_turn, ctl);
	stop_ports(ctl);
	free(ctl->taps);
	free(ctl);
}

void
control_adopt(struct control *ctl)
{
	for (struct control_port *port = ctl->ports; port < ctl->ports + CONTROL_PORTS; port++)
		lsock_set_lent(&port->listen, false);
}

int
control_move(struct control *ctl, const char *path)
{
	const struct lsock_file file = {
		.what = "control socket", .path = path, .mode = ctl->mode, .owner = (uid_t)-1, .group = (gid_t)-1
	};
	struct control_port *port = &ctl->ports[CONTROL_FULL];
	char *text = NULL;
	size_t len;
	FILE *err = open_memstream(&text, &len);

	/* Readers find the new process. */
	for (unsigned i = 0; i < CONTROL_PORTS; i++) {
		lsock_set_lent(&ctl->ports[i].listen, true);
		stop_port(&ctl->ports[i]);
	}
	int rc = err != NULL ? start_port(port, &file, NULL, err) : -ENOMEM;
	if (rc != 0)
		lsock_close(&port->listen);
	if (err != NULL)
		fclose(err);
	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "no control socket while draining: %.*s",
		    text != NULL ? (int)strcspn(text, "\n") : 0, text != NULL ? text : "");
	free(text);
	return rc;
}
