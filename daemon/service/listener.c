/* Listening sockets of a service; see service.h. */
#include "daemon/service/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/net/net.h"
#include "daemon/service/accept_balance.h"
#include "daemon/service/arrival.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/session/session.h"
#include "daemon/service/session_pool.h"

#define ACCEPT_BATCH 64 /* connections per socket and turn */
#define PAUSE_MS 100
#define LAST_BATCHES (NET_BACKLOG / ACCEPT_BATCH)

static struct pause_place
listener_place_of(const struct service *svc)
{
	return (struct pause_place){
		.now_ns = svc->pool->env->now_ns, .worker = svc->pool->place.nr + 1, .service = svc->settings->cfg.name
	};
}

static void
on_connections(struct loop_io *io, unsigned events)
{
	struct service *svc = CONTAINER_OF(io, struct listener_io, io)->svc;

	(void)events;
	if (list_empty(&svc->listener.accepting) && !timer_armed(&svc->listener.pause))
		list_push(&svc->pool->accepting, &svc->listener.accepting);
}

static void
on_pause_end(struct timer *t)
{
	struct service *svc = CONTAINER_OF(t, struct service, listener.pause);

	list_push(&svc->pool->accepting, &svc->listener.accepting);
}

void
listener_init(struct listener *l)
{
	l->sock = LISTEN_SOCKET_NONE;
	list_init(&l->accepting);
	timer_init(&l->pause, on_pause_end);
}

static bool
is_watched(enum listener_mode mode)
{
	return mode == LISTENER_OPEN || mode == LISTENER_REFUSES;
}

static void
unwatch_sockets(struct service *svc)
{
	struct listener_io *first = &svc->listener.io;

	for (struct listener_io *l; (l = first->next) != NULL; free(l)) {
		first->next = l->next;
		loop_del(svc->pool->env->loop, &l->io);
	}
	loop_del(svc->pool->env->loop, &first->io);
}

/* Connections that wait already bring an edge at once. A single socket needs no memory. */
static int
watch(struct service *svc, const struct listen_socket *sock)
{
	struct loop *loop = svc->pool->env->loop;
	struct listener_io *first = &svc->listener.io;

	*first = (struct listener_io){ { .fd = sock->fd, .cb = on_connections }, svc, NULL };
	int err = loop_add(loop, &first->io);
	if (err != 0)
		return err;
	while ((sock = sock->next) != NULL && err == 0) {
		struct listener_io *l = malloc(sizeof(*l));

		if (l != NULL)
			*l = (struct listener_io){ { .fd = sock->fd, .cb = on_connections }, svc, first->next };
		err = l != NULL ? loop_add(loop, &l->io) : -ENOMEM;
		if (err == 0)
			first->next = l;
		else
			free(l);
	}
	if (err != 0)
		unwatch_sockets(svc);
	return err;
}

static void
unwatch(struct service *svc)
{
	struct env *env = svc->pool->env;

	unwatch_sockets(svc);
	timer_cancel(&env->timers, &svc->listener.pause);
	accept_pauses_over(svc->pool->place.pauses, &svc->listener.paused, NULL);
	list_remove(&svc->listener.accepting);
}

/* The first worker distributes the connections of a shared port. Never changes a socket of another process. */
static void
deal_port(const struct service *svc, const struct listen_socket *sock)
{
	const struct worker_place *place = &svc->pool->place;

	if (place->cnt > 1 && place->nr == 0 && !sock->lent && !sock->shared &&
	    net_option(sock->fd, SOL_SOCKET, SO_REUSEPORT) && svc->settings->cfg.kind == CONFIG_EGRESS)
		(void)worker_ports_deal(sock->fd, place->cnt);
}

/* Reopens a socket that was shut, maybe by another service; it kept its address, and is marked and tuned as a new one.
 * The first worker's socket is again the first of its port: all sockets of a shared port were shut together. */
static int
listen_again(struct service *svc, const struct listen_socket *sock)
{
	for (; sock != NULL; sock = sock->next) {
		if (sock->lent || net_option(sock->fd, SOL_SOCKET, SO_ACCEPTCONN))
			continue;
		if (svc->pool->option != NULL && peer_mode_wants_option(svc->settings->cfg.peer))
			tcp_option_mark_listener(svc->pool->option, sock->fd);
		if (listen(sock->fd, NET_BACKLOG) != 0)
			return -errno;
		deal_port(svc, sock);
	}
	return 0;
}

int
listener_start(struct service *svc, const struct listen_socket *sock)
{
	const struct worker_place *place = &svc->pool->place;
	int err = listen_again(svc, sock);

	if (err == 0)
		err = watch(svc, sock);
	if (err != 0)
		return err;
	svc->listener.mode = LISTENER_OPEN;
	svc->listener.sock = *sock;
	svc->listener.shared = place->cnt > 1 && (sock->shared || !net_option(sock->fd, SOL_SOCKET, SO_REUSEPORT));
	deal_port(svc, sock);
	if (sock->unit && place->nr == 0 && svc->settings->cfg.when_down == CONFIG_DOWN_CLOSE_LISTENER)
		log_msg(LOG_LVL_WARNING, "when_down has no effect on a socket of a socket unit: service=%s",
		    svc->settings->cfg.name);
	listener_tune(svc);
	return listener_follow(svc);
}

void
listener_tune(struct service *svc)
{
	if (svc->settings->cfg.listen.ss_family == AF_UNIX)
		return;
	for (const struct listen_socket *l = &svc->listener.sock; l != NULL; l = l->next)
		net_tune(l->fd, &svc->pool->cfg->keepalive);
}

struct listen_socket
listener_stop(struct service *svc)
{
	struct listen_socket sock = svc->listener.sock;

	svc->listener.sock = LISTEN_SOCKET_NONE;
	if (sock.fd >= 0 && is_watched(svc->listener.mode))
		unwatch(svc);
	return sock;
}

void
listener_refuse(struct service *svc, int fd, const union net_addr *peer, const char *why, uint64_t *counter)
{
	char addr[ADDR_STR_MAX];

	++*counter;
	svc->ctr.accepted += svc->settings->cfg.kind == CONFIG_EGRESS;
	log_limited(&svc->pool->lim_refused, svc->pool->env->now_ns, LOG_LVL_NOTICE,
	    "connection refused: service=%s from=%s why=\"%s\"", svc->settings->cfg.name,
	    net_addr_str(peer, addr, sizeof(addr)), why);
	net_reset(fd);
}

void
listener_admit(struct service *svc, int fd, const struct sockaddr_storage *source, const struct sockaddr_storage *ss)
{
	const struct config_service *cfg = &svc->settings->cfg;
	bool local = ss->ss_family == AF_UNIX;
	union net_addr addr, behind, *peer = &addr, *from = &addr;

	/* A path that a client has bound does not identify it. */
	if (local)
		net_addr_set_client(peer, fd);
	else
		net_addr_set(peer, ss);
	if (source != ss) {
		net_addr_set(&behind, source);
		from = &behind;
	}
	if (svc->listener.mode == LISTENER_REFUSES) {
		listener_refuse(svc, fd, peer, svc->disabled ? "the service is disabled" : "the daemon drains",
		    &svc->ctr.refused_disabled);
		return;
	}
	/* At an egress the session counts it, when it has a client. */
	svc->ctr.accepted += cfg->kind == CONFIG_INGRESS;
	if (local ? !net_allowed_user(cfg->allow_users, cfg->allow_users_cnt, peer->un.uid)
	          : !net_allowed(cfg->allow, cfg->allow_cnt, ss)) {
		listener_refuse(svc, fd, peer, local ? "not on the allow_users list" : "not on the allow list",
		    &svc->ctr.refused_allow);
		return;
	}
	char why[WAY_WHY_MAX];
	uint64_t *counter;
	struct way *way = NULL;
	if (cfg->to_word == CONFIG_TO_ORIGINAL && (way = way_find(svc, fd, why, &counter)) == NULL) {
		if (counter != NULL)
			listener_refuse(svc, fd, peer, why, counter);
		return;
	}
	const enum admission_verdict v = admission_take(svc->admission, cfg, peer);
	if (v == ADMISSION_OK || v == ADMISSION_UNCOUNTED) {
		session_start(svc, fd, from, peer, way, v == ADMISSION_OK);
		return;
	}
	way_free(svc, way);
	if (v == ADMISSION_MAX)
		listener_refuse(svc, fd, peer, "max_connections reached", &svc->ctr.refused_max);
	else
		listener_refuse(svc, fd, peer, "max_connections_per_peer reached", &svc->ctr.refused_per_peer);
}

static void
admit(struct service *svc, int fd, const struct sockaddr_storage *source)
{
	if (arrival_expected(svc, source))
		arrival_start(svc, fd, source);
	else
		listener_admit(svc, fd, source, source);
}

/* By the rules of now, the peer of this group was permitted by a handshake within the last minutes. */
static bool
ticket_holds(const struct service *svc, const struct smcr_conn *conn)
{
	const struct smcr_scope was = smcr_opened_scope(conn);
	struct smcr_scope now;

	return leg_tls_scope(svc->settings, NULL, &now) && memcmp(&was, &now, sizeof(now)) == 0;
}

/* As admit(), but nothing is counted or logged: the peer comes again by a CLC connection. */
static bool
admit_opened(struct service *svc, struct smcr_conn *conn, const struct clc_dest *dest)
{
	const struct config_service *cfg = &svc->settings->cfg;
	const struct smcr_identity from = smcr_opened_by(conn);
	struct sockaddr_storage ss = { 0 };
	union net_addr peer;

	addr_from_v6(from.addr, 0, &ss);
	if (ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&ss)->sin6_scope_id = from.scope;
	net_addr_set(&peer, &ss);
	if (svc->listener.mode != LISTENER_OPEN || !net_allowed(cfg->allow, cfg->allow_cnt, &ss) ||
	    !ticket_holds(svc, conn))
		return false;
	/* A reload may have changed `to` since the ticket. */
	if ((dest->kind != CLC_DEST_NONE) != (cfg->to_word == CONFIG_TO_REQUESTED))
		return false;
	/* The service's connections need more than they did when it was granted. */
	if (smcr_opened_is_small(conn, &(struct smcr_open){ .rmb_size_hint = svc->rmb_size_hint.bytes }))
		return false;
	const enum admission_verdict v = admission_take(svc->admission, cfg, &peer);
	if (v != ADMISSION_OK && v != ADMISSION_UNCOUNTED)
		return false;
	if (session_opened(svc, conn, dest, &peer, v == ADMISSION_OK))
		return true;
	admission_give(svc->admission, v == ADMISSION_OK ? &peer : NULL);
	return false;
}

struct conn_owner *
listener_opened(struct session_pool *pool, struct smcr_conn *conn)
{
	uint32_t ticket = smcr_opened_ticket(conn);
	struct clc_dest dest = { .kind = CLC_DEST_NONE };

	if ((ticket & DEST_TICKET_BIT) != 0 &&
	    !dest_tickets_find(&pool->place.admissions->dest_tickets, ticket, &ticket, &dest))
		ticket = 0;
	struct service *svc = LIST_FIND(struct service, s, &pool->services, node, s->settings->ticket == ticket);

	if (ticket == 0 || svc == NULL || pool->draining || !admit_opened(svc, conn, &dest)) {
		smcr_abort(conn, SMCR_R_NOT_OPENED);
		smcr_release(conn);
		return NULL;
	}
	return smcr_app(conn);
}

/* The error concerns one connection (accept(2)); the next one may succeed. */
static bool
is_of_connection(int err)
{
	static const int errs[] = { ECONNABORTED, EINTR, EPERM, EPROTO, ENOPROTOOPT, EOPNOTSUPP, ENETDOWN, ENETUNREACH,
		EHOSTDOWN, EHOSTUNREACH, ENONET, ETIMEDOUT };

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++)
		if (errs[i] == err)
			return true;
	return false;
}

/* Mostly for lack of descriptors or memory, whose release brings no edge here. No error may spin the loop. */
static void
pause_accepting(struct service *svc, int err)
{
	const struct pause_place at = listener_place_of(svc);

	accept_pauses_failed(svc->pool->place.pauses, &svc->listener.paused, &at, err);
	svc->pool->stats.accept_pauses++;
	env_arm(svc->pool->env, &svc->listener.pause, PAUSE_MS);
}

/* True when more may be waiting. */
static bool
accept_from(struct service *svc, int listening)
{
	if (svc->pool->env->now_ns < svc->pool->short_until_ns) {
		pause_accepting(svc, EMFILE);
		return false;
	}
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage peer = { 0 };
		socklen_t len = sizeof(peer);
		int fd = accept4(listening, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			if (!svc->listener.shared || svc->listener.mode != LISTENER_OPEN ||
			    !accept_balance(svc, fd, &peer, admit))
				admit(svc, fd, &peer);
		} else if (errno == EAGAIN) {
			return false;
		} else if (!is_of_connection(errno)) {
			pause_accepting(svc, errno);
			return false;
		}
	}
	return true;
}

static bool
accept_batch(struct service *svc)
{
	const struct listener_io *l = &svc->listener.io;
	bool more = accept_from(svc, l->io.fd);

	while ((l = l->next) != NULL && !timer_armed(&svc->listener.pause))
		more = accept_from(svc, l->io.fd) || more;
	if (svc->listener.paused.on && !timer_armed(&svc->listener.pause)) {
		const struct pause_place at = listener_place_of(svc);

		accept_pauses_over(svc->pool->place.pauses, &svc->listener.paused, &at);
	}
	return more;
}

/* The listener is to be shut, as no target works. Not a socket from systemd, which must stay listening. */
static bool
is_down(const struct service *svc)
{
	const struct listener *l = &svc->listener;

	return svc->settings->cfg.listen.ss_family != AF_UNIX && targets_down(svc->settings->targets) &&
	    (l->mode == LISTENER_SHUT || !l->sock.elsewhere);
}

static enum listener_mode
wanted(const struct service *svc)
{
	if (!svc->disabled && !svc->pool->draining)
		return is_down(svc) ? LISTENER_SHUT : LISTENER_OPEN;
	if (svc->listener.sock.elsewhere)
		return svc->pool->draining ? LISTENER_IDLE : LISTENER_REFUSES;
	/* A UNIX socket that was shut cannot listen again, and the right to create one may be dropped. */
	return svc->settings->cfg.listen.ss_family == AF_UNIX ? LISTENER_REFUSES : LISTENER_SHUT;
}

/* As in haproxy: after shutdown() of a listening TCP socket the kernel refuses connections, the socket stays bound, and
 * listen() reopens it. A closed one could not be replaced: smcrd drops the right to its port. */
int
listener_follow(struct service *svc)
{
	struct listener *l = &svc->listener;
	enum listener_mode want = wanted(svc);

	if (l->sock.fd < 0 || want == l->mode)
		return 0;
	/* Waiting connections would be reset, unless another process serves the socket. */
	if (l->mode == LISTENER_OPEN && want != LISTENER_IDLE)
		for (unsigned i = 0; i < LAST_BATCHES && accept_batch(svc); i++)
			;
	int rc = is_watched(want) ? listen_again(svc, &l->sock) : 0;
	if (rc == 0 && is_watched(want) && !is_watched(l->mode))
		rc = watch(svc, &l->sock);
	if (rc != 0)
		return rc;
	if (!is_watched(want) && is_watched(l->mode))
		unwatch(svc);
	if (want == LISTENER_SHUT)
		for (const struct listen_socket *s = &l->sock; s != NULL; s = s->next)
			(void)shutdown(s->fd, SHUT_RD);
	l->mode = want;
	listener_tune(svc);
	return 0;
}

bool
session_pool_accept(struct session_pool *pool)
{
	struct list_node batch;
	struct service *svc;

	list_move_all(&batch, &pool->accepting);
	while ((svc = LIST_POP(struct service, &batch, listener.accepting)) != NULL)
		if (accept_batch(svc))
			list_push(&pool->accepting, &svc->listener.accepting);
	return !list_empty(&pool->accepting);
}
