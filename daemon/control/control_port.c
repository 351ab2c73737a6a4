/* The listening sockets of control: start, end, and the move to another path while the daemon drains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control/control_parts.h"

#define BACKLOG 16

static void
on_listener(struct loop_io *io, unsigned events)
{
	struct control_port *port = CONTAINER_OF(io, struct control_port, io);

	(void)events;
	port->acceptable = true;
}

/* Takes the opened socket, or opens it; without a path does nothing. 0, or -errno with a line in err. */
static int
start_port(struct control_port *port, const struct listen_socket_file *file, struct listen_socket *opened, FILE *err)
{
	int rc = 0;

	if (file->path[0] == '\0')
		return 0;
	if (opened != NULL) {
		port->listen = *opened;
		*opened = LISTEN_SOCKET_NONE;
	} else {
		rc = listen_socket_open(&port->listen, file, err);
	}
	if (rc == 0 && !port->listen.lent)
		rc = listen_socket_start(&port->listen, file->what, BACKLOG, err);
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

int
control_start_ports(struct control *ctl, const struct config *cfg, struct listen_socket *opened, FILE *err)
{
	int rc = 0;

	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		ctl->ports[i] = (struct control_port){
			.ctl = ctl,
			.listen = LISTEN_SOCKET_NONE,
			.io = { .fd = -1, .cb = on_listener },
			.clients_max = i == CONTROL_FULL ? CONTROL_CLIENTS_MAX : CONTROL_READERS_MAX,
			.readonly = i == CONTROL_READONLY,
		};
	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++) {
		const struct listen_socket_file file = control_file(cfg, i);

		rc = start_port(&ctl->ports[i], &file, opened != NULL ? &opened[i] : NULL, err);
	}
	return rc;
}

void
control_stop_ports(struct control *ctl)
{
	for (struct control_port *port = ctl->ports; port < ctl->ports + CONTROL_PORTS; port++) {
		if (port->io.fd >= 0)
			loop_del(ctl->loop, &port->io);
		port->io.fd = -1;
		port->acceptable = false;
		accept_pauses_over(workers_accept_pauses(ctl->workers), &port->paused, NULL);
		listen_socket_close(&port->listen);
	}
}

void
control_adopt(struct control *ctl)
{
	for (struct control_port *port = ctl->ports; port < ctl->ports + CONTROL_PORTS; port++)
		listen_socket_set_lent(&port->listen, false);
}

int
control_move(struct control *ctl, const char *path)
{
	const struct listen_socket_file file = {
		.what = "control socket", .path = path, .mode = ctl->mode, .owner = (uid_t)-1, .group = (gid_t)-1
	};
	struct control_port *port = &ctl->ports[CONTROL_FULL];
	char *text = NULL;
	size_t len;
	FILE *err = open_memstream(&text, &len);

	/* The read-only path belongs to the new process. */
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		listen_socket_set_lent(&ctl->ports[i].listen, true);
	control_stop_ports(ctl);
	int rc = err != NULL ? start_port(port, &file, NULL, err) : -ENOMEM;
	if (rc != 0)
		listen_socket_close(&port->listen);
	if (err != NULL)
		fclose(err);
	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "no control socket while draining: %.*s",
		    text != NULL ? (int)strcspn(text, "\n") : 0, text != NULL ? text : "");
	free(text);
	return rc;
}
