/* Accepting connections; see listener.h. */
#include "daemon/worker/listener.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/net.h"
#include "daemon/session/session.h"

#define ACCEPT_BATCH 64 /* a listener and turn */
#define PAUSE_MS 100

static void
on_listener(struct loop_io *io, unsigned events)
{
	struct service *svc = CONTAINER_OF(io, struct service, listener.io);

	(void)events;
	if (list_empty(&svc->listener.accepting) && !timer_armed(&svc->listener.pause))
		list_push(&svc->w->accepting, &svc->listener.accepting);
}

static void
on_pause_over(struct timer *t, int64_t now_ns)
{
	struct service *svc = CONTAINER_OF(t, struct service, listener.pause);

	(void)now_ns;
	list_push(&svc->w->accepting, &svc->listener.accepting);
}

void
listener_init(struct listener *l)
{
	l->io = (struct loop_io){ .fd = -1, .cb = on_listener };
	list_init(&l->accepting);
	timer_init(&l->pause, on_pause_over);
}

int
listener_start(struct service *svc, int fd)
{
	struct worker *w = svc->w;
	int err;

	svc->listener.io.fd = fd;
	err = loop_add(w->loop, &svc->listener.io);
	if (err != 0) {
		svc->listener.io.fd = -1;
		return err;
	}
	net_tune(fd, &w->keepalive);
	return 0;
}

int
listener_stop(struct service *svc)
{
	struct worker *w = svc->w;
	int fd = svc->listener.io.fd;

	if (fd < 0)
		return -1;
	loop_del(w->loop, &svc->listener.io);
	timer_cancel(&w->timers, &svc->listener.pause);
	list_remove(&svc->listener.accepting);
	svc->listener.io.fd = -1;
	return fd;
}

static void
refuse(struct service *svc, int fd, const struct sockaddr_storage *peer, const char *why, uint64_t *counter)
{
	char addr[ADDR_STR_MAX];

	++*counter;
	log_limited(&svc->w->lim_refused, svc->w->now_ns, LOG_LVL_NOTICE,
	    "connection refused: service=%s from=%s why=\"%s\"", svc->settings->cfg.name,
	    addr_format_port(peer, addr, sizeof(addr)), why);
	net_reset(fd);
}

static void
admit(struct service *svc, int fd, const struct sockaddr_storage *peer)
{
	const struct config_service *cfg = &svc->settings->cfg;

	svc->accepted++;
	if (!net_allowed(cfg->allow, cfg->allow_cnt, peer))
		refuse(svc, fd, peer, "not on the allow list", &svc->refused_allow);
	else if (svc->connections >= cfg->max_connections)
		refuse(svc, fd, peer, "max_connections reached", &svc->refused_max);
	else if (cfg->max_per_peer > 0 && sources_count(&svc->sources, peer) >= cfg->max_per_peer)
		refuse(svc, fd, peer, "max_connections_per_peer reached", &svc->refused_per_peer);
	else
		session_start(svc, fd, peer);
}

/* An error of the connection that accept4() would have returned (accept(2)): it is gone, the next one may be well. */
static bool
is_of_connection(int err)
{
	switch (err) {
	case ECONNABORTED:
	case EINTR:
	case EPERM:
	case EPROTO:
	case ENOPROTOOPT:
	case EOPNOTSUPP:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case ENONET:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

/* True when more may be waiting. */
static bool
accept_batch(struct service *svc)
{
	struct worker *w = svc->w;

	for (int i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage peer = { 0 };
		socklen_t len = sizeof(peer);
		int fd = accept4(svc->listener.io.fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			admit(svc, fd, &peer);
		} else if (errno == EAGAIN) {
			return false;
		} else if (!is_of_connection(errno)) {
			/* Out of descriptors or memory, mostly: they come back when connections end, which brings no
			 * edge here. Whatever else it is, it must not keep the loop from sleeping. */
			log_limited(&w->lim_refused, w->now_ns, LOG_LVL_WARNING,
			    "accepting paused: service=%s why=\"%s\"", svc->settings->cfg.name, strerror(errno));
			w->stats.accept_pauses++;
			worker_arm(w, &svc->listener.pause, PAUSE_MS);
			return false;
		}
	}
	return true;
}

bool
listeners_accept(struct worker *w)
{
	struct list_node batch, *n;

	list_move_all(&batch, &w->accepting);
	while ((n = list_pop(&batch)) != NULL) {
		struct service *svc = CONTAINER_OF(n, struct service, listener.accepting);

		if (accept_batch(svc))
			list_push(&w->accepting, n);
	}
	return !list_empty(&w->accepting);
}
