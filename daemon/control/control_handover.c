/* The old process's side of a hand-over (daemon/control/handover_msg.h), to a client of the control socket: sends the listening sockets,
 * waits until the new process is ready, stops accepting, and notifies it. Until it is ready nothing changes here, even if the client
 * disconnects. The actions are the daemon's (control_hooks). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control/control_parts.h"
#include "daemon/control/handover_msg.h"

#define REQUEST_LEN (sizeof(HANDOVER_REQUEST) - 1)
#define FIRST_VERSION HANDOVER_REQUEST " 1" /* a line without its end */
#define SETTLE_NS 300000000                 /* limit of the time in which neither process accepts */
#define LOOK_NS 2000000

/* Owner: its client. */
struct handover {
	struct listen_socket_list socks; /* copies: the control socket, the read-only one, then the others */
	unsigned control_cnt;            /* of them */
	struct listen_socket_list ports; /* of soft devices; LISTEN_SOCKET_NONE when moved to taken */
	struct listen_socket_list taken; /* those that the successor uses */
	unsigned sent;                   /* messages: HELLO, one for each socket, END */
	bool done;                       /* the successor is ready, this process has stopped accepting */
	int64_t done_ns;                 /* since then */
	int64_t until_ns;                /* then: limit of connections in their set-up here */
	int64_t look_ns;                 /* their next check; INT64_MAX = never */
	uint32_t pid;                    /* of the successor */
	struct handover_rx rx;
	struct targets_known_list known; /* health that the successor gets; empty: it does not know of it */
};

/* The last message to the client. */
static void
send_last(struct control_client *c, const struct handover_msg *m)
{
	uint8_t bytes[HANDOVER_LEN];

	handover_encode(m, bytes);
	outbuf_put(&c->out, bytes, sizeof(bytes));
	c->state = CLIENT_CLOSING;
}

static void
control_handover_refuse(struct control_client *c, const char *why)
{
	struct handover_msg m = { .type = HANDOVER_REFUSED };

	snprintf(m.text, sizeof(m.text), "%s", why);
	send_last(c, &m);
	log_msg(LOG_LVL_WARNING, "hand-over refused: why=\"%s\"", m.text);
}

/* The reason to refuse, or NULL. */
static const char *
may_start(const struct control_client *c, const char *line, size_t len)
{
	if (c->ctl->hooks.sockets == NULL || c->uid == (uid_t)-1)
		return "not supported";
	if (c->port->readonly)
		return "this socket is read-only";
	/* Root is refused as well: directory and files of the control socket would be another user's. */
	if (c->uid != geteuid())
		return "only a process of the daemon's own user may take over";
	if (len != sizeof(FIRST_VERSION) - 1 || memcmp(line, FIRST_VERSION, len) != 0)
		return "this daemon hands over in version 1 of the protocol only";
	if (c->ctl->successor_pid != 0)
		return "another process has taken over";
	if (c->ctl->successor != NULL)
		return "another process is taking over";
	return NULL;
}

static void
free_handover(struct handover *h)
{
	if (h == NULL)
		return;
	handover_rx_fini(&h->rx);
	listen_socket_list_fini(&h->socks);
	listen_socket_list_fini(&h->ports);
	listen_socket_list_fini(&h->taken);
	free(h->known.at);
	free(h);
}

/* The successor's keeper reports. */
static bool
hear_failure(struct control_client *c, const char *line, size_t len)
{
	const size_t head = sizeof(HANDOVER_FAILED) - 1;
	char why[HANDOVER_TEXT_MAX];

	if (len < head || memcmp(line, HANDOVER_FAILED, head) != 0)
		return false;
	snprintf(why, sizeof(why), "%.*s", (int)(len - head), line + head);
	for (char *p = why; *p != '\0'; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	if (c->ctl->hooks.successor_failed != NULL && !c->port->readonly && c->uid == geteuid())
		c->ctl->hooks.successor_failed(c->ctl->hooks.arg, why);
	c->state = CLIENT_CLOSING;
	return true;
}

bool
handover_start(struct control_client *c, const char *line, size_t len)
{
	if (hear_failure(c, line, len))
		return true;
	if (len < REQUEST_LEN || memcmp(line, HANDOVER_REQUEST, REQUEST_LEN) != 0)
		return false;
	const char *why = may_start(c, line, len);
	if (why != NULL) {
		control_handover_refuse(c, why);
		return true;
	}
	struct handover *h = calloc(1, sizeof(*h));
	int rc = -ENOMEM;
	if (h != NULL) {
		h->rx = HANDOVER_RX_NONE;
		h->look_ns = INT64_MAX;
		h->pid = (uint32_t)c->pid;
		rc = listen_socket_list_add_copies(&h->socks, &c->ctl->ports[CONTROL_FULL].listen);
		if (rc == 0)
			rc = listen_socket_list_add_copies(&h->socks, &c->ctl->ports[CONTROL_READONLY].listen);
		h->control_cnt = h->socks.cnt;
	}
	if (rc == 0)
		rc = c->ctl->hooks.sockets(c->ctl->hooks.arg, &h->socks, &h->ports);
	if (rc == 0 && h->socks.cnt + h->ports.cnt > HANDOVER_SOCKETS_MAX)
		rc = -E2BIG;
	if (rc != 0) {
		free_handover(h);
		control_handover_refuse(c, strerror(-rc));
		return true;
	}
	c->handover = h;
	c->ctl->successor = c;
	c->state = CLIENT_TAKING;
	log_msg(LOG_LVL_NOTICE, "a process takes over: pid=%u sockets=%u", (unsigned)h->pid, h->socks.cnt);
	return true;
}

static int
send_next(struct control_client *c)
{
	struct handover *h = c->handover;
	struct handover_msg m = { .type = HANDOVER_END };
	const struct listen_socket *l = NULL;

	if (h->sent == 0) {
		const char *notify = getenv("NOTIFY_SOCKET"), *watchdog = getenv("WATCHDOG_USEC");

		m = (struct handover_msg){
			.type = HANDOVER_HELLO, .cnt = h->socks.cnt + h->ports.cnt, .pid = (uint32_t)getpid()
		};
		if (notify != NULL && strlen(notify) < sizeof(m.text))
			strcpy(m.text, notify);
		if (watchdog != NULL)
			m.watchdog_us = strtoull(watchdog, NULL, 10);
	} else if (h->sent <= h->socks.cnt + h->ports.cnt) {
		const unsigned nr = h->sent - 1;

		l = nr < h->socks.cnt ? &h->socks.v[nr] : &h->ports.v[nr - h->socks.cnt];
		m.type = HANDOVER_SOCKET;
		m.kind = nr < h->control_cnt ? HANDOVER_CONTROL : nr < h->socks.cnt ? HANDOVER_SERVICE : HANDOVER_MPA;
		m.cnt = l->unit;
		if (l->path[0] != '\0') {
			snprintf(m.text, sizeof(m.text), "%s", l->path);
			m.dev = l->dev;
			m.ino = l->ino;
		}
	}
	int rc = handover_send(c->io.fd, &m, l != NULL ? l->fd : -1);
	if (rc == 0)
		h->sent++;
	else if (rc == -EAGAIN)
		c->can_write = false;
	return rc;
}

/* Before the probes end here. */
static void
note_health(struct control_client *c)
{
	struct targets_known_list *known = &c->handover->known;

	known->at = malloc(HANDOVER_HEALTH_MAX * sizeof(*known->at));
	if (known->at != NULL)
		targets_known(workers_targets(c->ctl->workers), known, HANDOVER_HEALTH_MAX);
}

static void
send_health(struct control_client *c)
{
	const int64_t now_ns = loop_now(c->ctl->loop);
	uint8_t bytes[HANDOVER_LEN];
	struct handover_msg m;

	for (unsigned i = 0; i < c->handover->known.cnt; i++) {
		handover_from_health(&m, &c->handover->known.at[i], now_ns);
		handover_encode(&m, bytes);
		outbuf_put(&c->out, bytes, sizeof(bytes));
	}
}

static void
complete(struct control_client *c, int64_t now_ns)
{
	struct handover_msg m = { .type = HANDOVER_DONE };
	struct control *ctl = c->ctl;
	char path[sizeof(ctl->ports[CONTROL_FULL].listen.path) + 16];

	snprintf(path, sizeof(path), "%s.%u", ctl->ports[CONTROL_FULL].listen.path, (unsigned)getpid());
	c->handover->look_ns = INT64_MAX;
	ctl->hooks.leave_ports(ctl->hooks.arg, &c->handover->taken);
	if (control_move(ctl, path) == 0)
		memcpy(m.text, path, strnlen(path, sizeof(m.text) - 1));
	send_health(c);
	log_msg(LOG_LVL_NOTICE, "handed over: successor=%u waited_ms=%lld control=%s", (unsigned)ctl->successor_pid,
	    (long long)((now_ns - c->handover->done_ns) / NS_PER_MS), m.text);
	send_last(c, &m);
}

void
handover_now(struct control_client *c)
{
	if (c->handover != NULL)
		c->handover->until_ns = INT64_MIN;
}

int64_t
handover_wakes(const struct control_client *c)
{
	return c->handover != NULL ? c->handover->look_ns : INT64_MAX;
}

static int
hear_ready(struct control_client *c, int64_t now_ns)
{
	struct handover *h = c->handover;
	struct handover_msg m;
	int fd, rc = handover_recv(c->io.fd, &h->rx, &m, &fd);

	if (rc == -EAGAIN)
		c->can_read = false;
	if (rc != 0)
		return rc;
	if (m.type == HANDOVER_USED) {
		if (m.cnt >= h->ports.cnt || h->ports.v[m.cnt].fd < 0)
			return -EPROTO;
		rc = listen_socket_list_add(&h->taken, &h->ports.v[m.cnt]);
		h->ports.v[m.cnt] = LISTEN_SOCKET_NONE;
		return rc;
	}
	if (m.type != HANDOVER_READY) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	/* The successor may have died since it sent READY. */
	if (recv(c->io.fd, &(char){ 0 }, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return -ECONNRESET;
	/* This process is the old one now, even if the successor disconnects. Links for connections in their set-up here come by the
	 * ports at which the successor will accept, so it has to wait for them. */
	h->done = true;
	h->done_ns = now_ns;
	h->until_ns = now_ns + (h->taken.cnt > 0 ? SETTLE_NS : 0);
	h->look_ns = now_ns;
	c->ctl->successor_pid = h->pid;
	if (m.dev != 0)
		note_health(c);
	c->ctl->hooks.let_go(c->ctl->hooks.arg, h->pid, m.pid != 0 ? m.pid : h->pid);
	return 0;
}

enum client_step
handover_step(struct control_client *c, int64_t now_ns)
{
	struct handover *h = c->handover;
	int rc = -EAGAIN;

	if (h->done) {
		h->look_ns = now_ns + LOOK_NS;
		/* No other process accepts before this one has settled, even if the client disconnects. */
		if (now_ns < h->until_ns && !c->ctl->hooks.settled(c->ctl->hooks.arg))
			return STEP_BLOCKED;
		complete(c, now_ns);
		return STEP_MOVED;
	}
	if (h->sent < h->socks.cnt + h->ports.cnt + 2) {
		if (c->can_write)
			rc = send_next(c);
	} else if (c->can_read) {
		rc = hear_ready(c, now_ns);
	}
	if (rc == 0)
		c->active_ns = now_ns;
	if (rc != 0 && (rc != -EAGAIN || c->hup))
		c->dead = true;
	return rc == 0 ? STEP_MOVED : STEP_BLOCKED;
}

void
handover_end(struct control_client *c)
{
	struct handover *h = c->handover;

	if (h == NULL)
		return;
	if (!h->done)
		log_msg(LOG_LVL_WARNING, "the successor has disconnected or timed out, this process goes on: pid=%u",
		    (unsigned)h->pid);
	if (c->ctl->successor == c)
		c->ctl->successor = NULL;
	free_handover(h);
	c->handover = NULL;
}

void
control_stop_handover(struct control *ctl)
{
	if (ctl == NULL || ctl->successor == NULL || ctl->successor->handover->done)
		return;
	ctl->successor->dead = true;
}
