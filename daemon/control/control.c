/* The control socket: accepting, the turns of clients, its end; see control.h. */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/minmax.h"
#include "daemon/net/net.h"
#include "daemon/control/control_parts.h"

#define ACCEPTS_PER_TURN 8
#define ACCEPT_PAUSE_NS 100000000
#define REFUSALS_BURST 20 /* lines about refused orders */
#define REFUSALS_MS 60000

/* A line to a client that is refused, as far as its socket takes it. */
static void
refuse_client(struct control *ctl, int fd)
{
	char bytes[512];
	struct outbuf out = { .p = bytes, .cap = sizeof(bytes) };

	ctl->stats.clients_refused++;
	report_error(&out, "", report_wall_ms(), "busy", "too many control clients");
	(void)!send(fd, outbuf_data(&out), out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
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
		if (fd < 0) { /* out of descriptors: clients wait in the backlog */
			accept_pauses_failed(workers_accept_pauses(ctl->workers), &port->paused, &at, errno);
			port->accept_at_ns = now_ns + ACCEPT_PAUSE_NS;
			return;
		}
		union net_addr peer;
		net_addr_set_client(&peer, fd);
		const bool trusted = peer.un.uid == 0 || peer.un.uid == geteuid();
		if (!control_make_place(port, trusted)) {
			refuse_client(ctl, fd);
			continue;
		}
		struct control_client *c = client_new(port, fd);
		if (c == NULL) {
			ctl->stats.clients_refused++;
			continue;
		}
		c->active_ns = now_ns;
		c->uid = peer.un.uid;
		c->pid = peer.un.pid;
		c->trusted = trusted;
		ctl->stats.clients++;
		list_push(&ctl->clients, &c->node);
	}
	accept_pauses_over(workers_accept_pauses(ctl->workers), &port->paused, &at);
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
	/* The first client of this turn is the last of the next: a big report does not take all steps. */
	if (!list_empty(&ctl->clients))
		list_push(&ctl->clients, list_pop(&ctl->clients));
	control_update_trace(ctl);
	control_update_events(ctl);
	return more ? INT64_MIN : next;
}

int
control_new(struct loop *loop, struct workers *ws, const struct config *cfg, const struct control_hooks *hooks,
    FILE *err, struct control **out)
{
	struct control *ctl = calloc(1, sizeof(*ctl));

	if (ctl == NULL) {
		fprintf(err, "control socket %s: out of memory\n", cfg->control_path);
		return -ENOMEM;
	}
	ctl->loop = loop;
	ctl->workers = ws;
	ctl->hooks = *hooks;
	ctl->mode = cfg->control_mode;
	control_set_admins(ctl, cfg);
	ctl->refusals = (struct log_limit){ .burst = REFUSALS_BURST, .interval_ms = REFUSALS_MS };
	list_init(&ctl->clients);
	list_init(&ctl->checks);
	int rc = control_start_ports(ctl, cfg, hooks->listen, err);
	if (rc == 0 && (rc = loop_add_turn(loop, control_turn, ctl)) != 0)
		fprintf(err, "control socket %s: no turn of the loop left\n", cfg->control_path);
	if (rc != 0) {
		control_stop_ports(ctl);
		free(ctl);
		return rc;
	}
	*out = ctl;
	return 0;
}

void
control_set_admins(struct control *ctl, const struct config *cfg)
{
	ctl->admins = cfg->control_admins;
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
	/* The answer to the drain that ended the daemon may still be buffered, or a successor be connected. */
	LIST_EACH(struct control_client, c, &ctl->clients, node) {
		handover_now(c);
		client_run(c, loop_now(ctl->loop), &budget);
		client_free(c);
	}
	control_update_trace(ctl);
	mailbox_run(workers_mailbox(ctl->workers)); /* taps whose mails were pending can end now */
	control_update_trace(ctl);
	control_update_events(ctl);
	LIST_EACH(struct control_check, k, &ctl->checks, node) {
		k->ctl = NULL;
		list_remove(&k->node);
	}
	loop_del_turn(ctl->loop, control_turn, ctl);
	control_stop_ports(ctl);
	free(ctl->taps);
	free(ctl);
}
