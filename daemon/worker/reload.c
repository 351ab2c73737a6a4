/*
 * From one set of services to the next, at start (from none) and on reload:
 * first everything that can fail, then the change. Called by worker.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/net.h"
#include "daemon/session/peer_rule.h"
#include "daemon/session/service.h"
#include "daemon/worker/worker.h"

/* What becomes of one configured service. */
struct step {
	const struct config_service *cfg;
	struct service *svc; /* the old one of that name, or a new one */
	bool is_new;
	struct settings *next; /* an old one gets these */
	bool moves;            /* needs another listening socket than it has */
	struct service *from;  /* whose socket it takes over */
	int fd;                /* or this one, opened for it */
};

struct plan {
	struct session_pool *pool;
	struct step *steps;
	unsigned cnt;
	const int *fds; /* from systemd */
	unsigned fd_cnt;
	FILE *err;
};

static bool
same_place(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	return addr_same_host(a, b) && addr_port(a) == addr_port(b);
}

static struct service *
find_service(const struct session_pool *pool, const struct config_service *cfg)
{
	LIST_EACH(struct service, svc, &pool->services, node)
		if (svc->settings->cfg.kind == cfg->kind && strcmp(svc->settings->cfg.name, cfg->name) == 0)
			return svc;
	return NULL;
}

static struct service *
find_listener(const struct session_pool *pool, const struct sockaddr_storage *addr)
{
	LIST_EACH(struct service, svc, &pool->services, node)
		if (svc->listener.io.fd >= 0 && same_place(&svc->settings->cfg.listen, addr))
			return svc;
	return NULL;
}

/* A socket of systemd's that listens there, or -1. */
static int
take_passed_fd(struct plan *p, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < p->fd_cnt; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss), int_len = sizeof(int);
		int fd = p->fds[i], type = 0, on = 0;

		/* A socket unit may have ListenDatagram= or Accept=yes. */
		(void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_len);
		(void)getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &int_len);
		if (type != SOCK_STREAM || on == 0 || getsockname(fd, (struct sockaddr *)&ss, &len) != 0 ||
		    !same_place(&ss, addr))
			continue;
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		return fd;
	}
	return -1;
}

/* -- what can fail -- */

static unsigned
share_port(const struct session_pool *pool, uint16_t port, bool on)
{
	unsigned cnt = 0;

	LIST_EACH(struct service, svc, &pool->services, node) {
		if (svc->listener.io.fd < 0 || addr_port(&svc->settings->cfg.listen) != port)
			continue;
		net_share_port(svc->listener.io.fd, on);
		cnt++;
	}
	return cnt;
}

/*
 * A new listening socket. From 127.0.0.1:80 to 0.0.0.0:80 the old one is in the
 * way, and may be closed only when nothing can fail: so they share the
 * port until then. Checked configurations have no overlap, so the old one goes.
 */
static int
listen_anew(const struct session_pool *pool, const struct config_service *cfg)
{
	const struct smcopt *option = peer_rule_wants_option(cfg->peer) ? pool->option : NULL;
	const struct sockaddr_storage *addr = &cfg->listen;
	int fd = net_listen(addr, false, option);

	if (fd != -EADDRINUSE || share_port(pool, addr_port(addr), true) == 0)
		return fd;
	fd = net_listen(addr, true, option);
	(void)share_port(pool, addr_port(addr), false);
	if (fd >= 0)
		net_share_port(fd, false);
	return fd;
}

static int
prepare(struct plan *p, struct step *st)
{
	const struct sockaddr_storage *addr = &st->cfg->listen;
	char text[ADDR_STR_MAX];

	st->svc = find_service(p->pool, st->cfg);
	st->is_new = st->svc == NULL;
	if (st->is_new)
		st->svc = service_new(p->pool, st->cfg);
	else if (!config_service_equal(&st->svc->settings->cfg, st->cfg))
		st->next = settings_new(st->svc, st->cfg);
	else
		return 0;
	if (st->is_new ? st->svc == NULL : st->next == NULL) {
		fprintf(p->err, "service %s: out of memory\n", st->cfg->name);
		return -ENOMEM;
	}
	st->moves = st->is_new || !same_place(&st->svc->settings->cfg.listen, addr);
	if (st->moves)
		st->from = find_listener(p->pool, addr);
	if (!st->moves || st->from != NULL)
		return 0;
	st->fd = take_passed_fd(p, addr);
	if (st->fd < 0)
		st->fd = listen_anew(p->pool, st->cfg);
	if (st->fd >= 0)
		return 0;
	fprintf(p->err, "service %s: cannot listen on %s: %s%s\n", st->cfg->name,
	    addr_format_port(addr, text, sizeof(text)), strerror(-st->fd),
	    st->fd == -EACCES && addr_port(addr) < 1024
	        ? " (the right to listen on ports below 1024 was given up, see confine.low_ports, or never there)"
	        : "");
	return st->fd;
}

static void
undo(struct plan *p)
{
	for (unsigned i = 0; i < p->cnt; i++) {
		struct step *st = &p->steps[i];

		if (st->fd >= 0)
			close(st->fd);
		if (st->next != NULL)
			settings_put(st->next);
		if (st->is_new && st->svc != NULL)
			service_drop(st->svc);
	}
}

/* -- the change -- */

/* Past the point of no return; nothing here needs memory of ours. What fails all the same, watching the socket, is logged,
 * and leaves a service that does not listen. */
static void
commit(struct plan *p, struct step *st)
{
	char text[ADDR_STR_MAX];
	bool changed = st->next != NULL;
	int rc = 0;

	if (changed) {
		settings_put(st->svc->settings);
		st->svc->settings = st->next;
	}
	if (st->moves)
		rc = listener_start(st->svc, st->fd);
	else
		net_tune(st->svc->listener.io.fd, &p->pool->keepalive);
	if (rc != 0) {
		close(st->fd);
		log_msg(LOG_LVL_ERROR, "service out of order: service=%s reason=\"%s\"", st->cfg->name, strerror(-rc));
	}
	if (st->is_new)
		list_push(&p->pool->services, &st->svc->node);
	if (st->is_new || changed) {
		log_msg(LOG_LVL_NOTICE, "service %s: service=%s kind=%s listen=%s to=%s:%u",
		    st->is_new ? "added" : "changed", st->cfg->name,
		    st->cfg->kind == CONFIG_INGRESS ? "ingress" : "egress",
		    addr_format_port(&st->cfg->listen, text, sizeof(text)), st->cfg->to.host, st->cfg->to.port);
		service_prewarm(st->svc);
	}
}

/* Says once that the option cannot be used where services want it, or else which listening sockets are without it: the
 * kernel has to know before listen(). */
static void
warn_of_option(struct plan *p)
{
	const struct smcopt *option = p->pool->option;

	for (unsigned i = 0; i < p->cnt; i++) {
		const struct step *st = &p->steps[i];

		if (!peer_rule_wants_option(st->cfg->peer) || (!st->is_new && st->next == NULL))
			continue;
		if (!smcopt_usable(option)) {
			fprintf(p->err,
			    "warning: SMC-R's TCP option cannot be used, services with peer = \"linux\" or \"auto\" "
			    "do without: %s\n",
			    option != NULL ? option->why : "");
			return;
		}
		if (st->cfg->kind == CONFIG_EGRESS && !smcopt_is_marked(option, st->svc->listener.io.fd))
			fprintf(p->err,
			    "warning: service %s: its listening socket was opened without SMC-R's TCP option, by systemd or "
			    "before the service had this peer: restart smcrd, or let it open the socket\n",
			    st->cfg->name);
	}
}

static void
close_unused(struct plan *p)
{
	char text[ADDR_STR_MAX];

	for (unsigned i = 0; i < p->fd_cnt; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);
		bool used = false;

		for (unsigned k = 0; k < p->cnt; k++)
			used = used || p->steps[k].fd == p->fds[i];
		if (used)
			continue;
		(void)getsockname(p->fds[i], (struct sockaddr *)&ss, &len);
		log_msg(LOG_LVL_WARNING, "passed socket is no TCP listener of a service, closed: address=%s",
		    addr_format_port(&ss, text, sizeof(text)));
		close(p->fds[i]);
	}
}

static void
carry_out(struct plan *p)
{
	/* Sockets change hands: each one is out of its old service before it goes into the new one. */
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->steps[i].from != NULL)
			p->steps[i].fd = listener_stop(p->steps[i].from);
	for (unsigned i = 0; i < p->cnt; i++) {
		int fd = p->steps[i].moves ? listener_stop(p->steps[i].svc) : -1;

		if (fd >= 0)
			close(fd);
	}
	LIST_EACH(struct service, svc, &p->pool->services, node) {
		bool kept = false;

		for (unsigned i = 0; i < p->cnt; i++)
			kept = kept || p->steps[i].svc == svc;
		if (kept)
			continue;
		log_msg(LOG_LVL_NOTICE, "service removed: service=%s", svc->settings->cfg.name);
		service_drop(svc);
	}
	for (unsigned i = 0; i < p->cnt; i++)
		commit(p, &p->steps[i]);
	p->pool->option_services = 0;
	for (unsigned i = 0; i < p->cnt; i++)
		p->pool->option_services += peer_rule_wants_option(p->steps[i].cfg->peer);
	warn_of_option(p);
	close_unused(p);
}

int
services_apply(struct session_pool *pool, const struct config *cfg, const int *fds, unsigned fd_cnt, FILE *err)
{
	struct plan p = { .pool = pool, .fds = fds, .fd_cnt = fd_cnt, .err = err };
	int rc = 0;

	p.steps = calloc(cfg->service_cnt + 1, sizeof(*p.steps));
	if (p.steps == NULL) {
		fprintf(err, "out of memory\n");
		return -ENOMEM;
	}
	for (; rc == 0 && p.cnt < cfg->service_cnt; p.cnt++) {
		p.steps[p.cnt] = (struct step){ .cfg = &cfg->services[p.cnt], .fd = -1 };
		rc = prepare(&p, &p.steps[p.cnt]);
	}
	if (rc == 0)
		carry_out(&p);
	else
		undo(&p);
	free(p.steps);
	return rc;
}
