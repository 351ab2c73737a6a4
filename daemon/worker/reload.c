/* Replaces one set of services by the next, at start (from an empty set) and on reload. First come all steps that can
 * fail; after these in all workers, the change. Called by worker.c. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/net/net.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/probe/prober.h"
#include "daemon/service/service.h"
#include "daemon/worker/worker.h"

/* The change of one configured service. */
struct step {
	const struct config_service *cfg;
	struct service *svc; /* the old one of that name, or a new one */
	bool is_new;
	struct settings *next;     /* new settings of an old service */
	bool moves;                /* needs another listening socket */
	struct service *from;      /* its socket is taken over */
	bool file_stays;           /* its socket file keeps owners or mode that differ from the new settings */
	struct listen_socket sock; /* or this one, newly opened */
};

struct services_plan {
	struct session_pool *pool;
	struct listen_socket *socks; /* passed sockets; fd -1: taken */
	unsigned sock_cnt;
	bool starting; /* at start, not at a reload */
	unsigned cnt;
	struct step steps[];
};

static struct service *
find_listener(const struct session_pool *pool, const struct sockaddr_storage *addr)
{
	LIST_EACH(struct service, svc, &pool->services, node)
		if (svc->listener.sock.fd >= 0 && addr_same_place(&svc->settings->cfg.listen, addr))
			return svc;
	return NULL;
}

/* A passed socket that listens there; fd -1: not found. */
static struct listen_socket
reload_take_passed(struct services_plan *p, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < p->sock_cnt; i++) {
		struct listen_socket sock = p->socks[i];

		if (!listen_socket_listens_at(&sock, addr))
			continue;
		(void)fcntl(sock.fd, F_SETFL, O_NONBLOCK);
		(void)fcntl(sock.fd, F_SETFD, FD_CLOEXEC);
		p->socks[i] = LISTEN_SOCKET_NONE;
		return sock;
	}
	return LISTEN_SOCKET_NONE;
}

/* -- steps that can fail -- */

static unsigned
share_port(const struct session_pool *pool, uint16_t port, bool on)
{
	unsigned cnt = 0;

	LIST_EACH(struct service, svc, &pool->services, node) {
		if (svc->listener.sock.fd < 0 || addr_port(&svc->settings->cfg.listen) != port)
			continue;
		net_share_port(svc->listener.sock.fd, on);
		cnt++;
	}
	return cnt;
}

/* A new listening socket. From 127.0.0.1:80 to 0.0.0.0:80 the old one blocks the bind, but may be closed only when
 * nothing can fail. So both share the port until then. Checked configurations have no overlap: the old one closes. */
static int
listen_new(const struct session_pool *pool, const struct config_service *cfg)
{
	const struct tcp_option *option = peer_mode_wants_option(cfg->peer) ? pool->option : NULL;
	const struct sockaddr_storage *addr = &cfg->listen;
	const enum net_share share = net_share_of(pool->place.nr, pool->place.cnt);
	int fd = net_listen(addr, share, cfg->freebind, option);

	if (fd != -EADDRINUSE || share_port(pool, addr_port(addr), true) == 0)
		return fd;
	fd = net_listen(addr, NET_BESIDE, cfg->freebind, option);
	if (share == NET_ALONE) {
		(void)share_port(pool, addr_port(addr), false);
		if (fd >= 0)
			net_share_port(fd, false);
	}
	return fd;
}

/* A new file. At a reload the right to change its owner is gone; a missing file is better than a wrong owner. */
static int
reload_listen_unix(
    const struct services_plan *p, const struct config_service *cfg, struct listen_socket *out, FILE *err)
{
	const struct config_id *owner = &cfg->listen_owner, *group = &cfg->listen_group;

	if (!p->starting &&
	    ((owner->name[0] != '\0' && owner->id != geteuid()) ||
	        (group->name[0] != '\0' && group->id != getegid()))) {
		fprintf(err,
		    "service %s: socket %s: listen_owner and listen_group are set only at a start: " CONFIG_BY_TAKE_OVER
		    "\n",
		    cfg->name, addr_path(&cfg->listen));
		return -EPERM;
	}
	return listen_socket_listen(out, cfg, p->starting, err);
}

/* The right was dropped, unless something else needs it. */
static int
reload_capture(
    const struct services_plan *p, const struct config_service *cfg, const struct listen_socket *sock, FILE *err)
{
	return listen_socket_capture(
	    sock, cfg, p->starting ? ", see smcrd(8)" : " at the start: " CONFIG_BY_TAKE_OVER, err);
}

static int
listen_tcp(const struct services_plan *p, const struct config_service *cfg, struct listen_socket *out, FILE *err)
{
	const struct sockaddr_storage *addr = &cfg->listen;
	int fd = listen_new(p->pool, cfg);
	char text[ADDR_STR_MAX];

	if (fd < 0)
		fprintf(err, "service %s: cannot listen on %s: %s%s\n", cfg->name,
		    addr_format_port(addr, text, sizeof(text)), strerror(-fd),
		    fd == -EACCES && !p->starting && addr_port(addr) < 1024
		        ? " (no right to listen on ports below 1024, or it was dropped: see confine.low_ports): " CONFIG_BY_TAKE_OVER
		        : "");
	else
		*out = listen_socket_of_fd(fd);
	return fd < 0 ? fd : reload_capture(p, cfg, out, err);
}

static int
reload_prepare(struct services_plan *p, struct step *st, FILE *err)
{
	const struct config_service *cfg = st->cfg, *made;
	const struct sockaddr_storage *addr = &cfg->listen;

	st->svc = service_find(p->pool, st->cfg->kind, st->cfg->name);
	st->is_new = st->svc == NULL;
	if (st->is_new)
		st->svc = service_new(p->pool, st->cfg);
	else if (!config_service_equal(&st->svc->settings->cfg, st->cfg))
		st->next = settings_new(st->svc, st->cfg);
	else
		return 0;
	if (st->is_new ? st->svc == NULL : st->next == NULL) {
		fprintf(err, "service %s: out of memory\n", st->cfg->name);
		return -ENOMEM;
	}
	st->moves = st->is_new || !addr_same_place(&st->svc->settings->cfg.listen, addr);
	if (st->moves)
		st->from = find_listener(p->pool, addr);
	const struct service *maker = st->moves ? st->from : st->svc;
	made = maker != NULL ? &maker->settings->cfg : cfg;
	st->file_stays = addr->ss_family == AF_UNIX &&
	    (made->listen_mode != cfg->listen_mode || made->listen_owner.id != cfg->listen_owner.id ||
	        made->listen_group.id != cfg->listen_group.id);
	if (!st->moves || st->from != NULL)
		return reload_capture(p, cfg, &maker->listener.sock, err);
	st->sock = reload_take_passed(p, addr);
	if (st->sock.fd >= 0)
		return reload_capture(p, cfg, &st->sock, err);
	return (addr->ss_family == AF_UNIX ? reload_listen_unix : listen_tcp)(p, st->cfg, &st->sock, err);
}

void
services_abort(struct services_plan *p)
{
	for (unsigned i = 0; i < p->cnt; i++) {
		struct step *st = &p->steps[i];

		listen_socket_close(&st->sock);
		if (st->next != NULL)
			settings_put(st->next);
		if (st->is_new && st->svc != NULL)
			service_drop(st->svc);
	}
	free(p);
}

/* -- the change -- */

/* A socket of an earlier daemon that had the option enabled before listen(): our program has to mark it as well. */
static void
keep_option(const struct services_plan *p, const struct step *st)
{
	const struct tcp_option *option = p->pool->option;

	if (!st->moves || !peer_mode_wants_option(st->cfg->peer) || st->cfg->listen.ss_family == AF_UNIX)
		return;
	for (const struct listen_socket *l = &st->sock; l != NULL; l = l->next)
		if (l->lent && option != NULL && net_option(l->fd, IPPROTO_TCP, TCP_SAVE_SYN))
			tcp_option_mark(option, l->fd);
}

/* The change cannot be undone and needs no memory. A failure to watch a socket is logged; it does not listen then. */
static void
reload_commit(struct services_plan *p, struct step *st)
{
	char text[ADDR_STR_MAX], to[CONFIG_TO_STR_MAX];
	bool changed = st->next != NULL;
	int rc = 0;

	if (changed) {
		if (p->pool->place.nr == 0 && st->next->targets != st->svc->settings->targets)
			outage_forget(st->svc->outage);
		if (p->pool->place.nr == 0 && !config_via_equal(&st->next->cfg, &st->svc->settings->cfg))
			far_ends_forget(&st->svc->admission->far_ends);
		settings_put(st->svc->settings);
		st->svc->settings = st->next;
		target_probe_restart(st->svc);
	}
	if (p->pool->place.nr == 0)
		targets_load(st->svc->settings->targets, st->cfg);
	keep_option(p, st);
	if (st->moves)
		rc = listener_start(st->svc, &st->sock);
	else
		listener_tune(st->svc);
	if (changed && !st->moves) /* of other targets, or no longer of these */
		(void)service_follow(st->svc);
	if (rc != 0) {
		listen_socket_close(&st->sock);
		log_msg(LOG_LVL_ERROR, "service failed: service=%s reason=\"%s\"", st->cfg->name, strerror(-rc));
	}
	if (st->is_new)
		list_push(&p->pool->services, &st->svc->node);
	if (st->is_new || changed) {
		if (p->pool->place.nr == 0)
			/* The start's line has their number. */
			log_msg(p->starting ? LOG_LVL_INFO : LOG_LVL_NOTICE,
			    "service %s: service=%s kind=%s listen=%s to=%s", st->is_new ? "added" : "changed",
			    st->cfg->name, config_kind_words[st->cfg->kind],
			    addr_format_port(&st->cfg->listen, text, sizeof(text)), config_to_str(st->cfg, to));
		service_prewarm(st->svc);
	}
}

/* Warns once that the option cannot be used for services that want it, or which listening sockets do without it. */
static void
warn_of_option(struct services_plan *p, FILE *err)
{
	const struct tcp_option *option = p->pool->option;

	for (unsigned i = 0; i < p->cnt; i++) {
		const struct step *st = &p->steps[i];

		if (!peer_mode_wants_option(st->cfg->peer) || (!st->is_new && st->next == NULL))
			continue;
		if (!tcp_option_usable(option)) {
			fprintf(err,
			    "warning: SMC-R's TCP option cannot be used, services with peer = \"linux\" or \"auto\" "
			    "do without: %s\n",
			    option != NULL ? option->why : "");
			return;
		}
		if (st->cfg->kind == CONFIG_EGRESS && !tcp_option_is_marked(option, st->svc->listener.sock.fd))
			fprintf(err,
			    "warning: service %s: its listening socket was opened without SMC-R's TCP option, by systemd or "
			    "before the service had this peer; smcrd's own gets it by \"smcrctl disable %s\" and \"enable\"\n",
			    st->cfg->name, st->cfg->name);
	}
}

static void
warn_of_files(struct services_plan *p, FILE *err)
{
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->steps[i].file_stays)
			fprintf(err,
			    "warning: service %s: its socket exists already, listen_mode, listen_owner and listen_group count for "
			    "a new one: change the file by chmod or chown\n",
			    p->steps[i].cfg->name);
}

void
services_commit(struct services_plan *p, FILE *err)
{
	/* All sockets leave their old services before any enters a new one. */
	for (unsigned i = 0; i < p->cnt; i++)
		if (p->steps[i].from != NULL)
			p->steps[i].sock = listener_stop(p->steps[i].from);
	for (unsigned i = 0; i < p->cnt; i++) {
		struct listen_socket old = p->steps[i].moves ? listener_stop(p->steps[i].svc) : LISTEN_SOCKET_NONE;

		listen_socket_close(&old);
	}
	LIST_EACH(struct service, svc, &p->pool->services, node) {
		bool kept = false;

		for (unsigned i = 0; i < p->cnt; i++)
			kept = kept || p->steps[i].svc == svc;
		if (kept)
			continue;
		if (p->pool->place.nr == 0)
			log_msg(LOG_LVL_NOTICE, "service removed: service=%s", svc->settings->cfg.name);
		service_drop(svc);
	}
	p->pool->option_services = 0;
	for (unsigned i = 0; i < p->cnt; i++) {
		reload_commit(p, &p->steps[i]);
		p->pool->option_services += peer_mode_wants_option(p->steps[i].cfg->peer);
	}
	warn_of_option(p, err);
	warn_of_files(p, err);
	prober_follow(p->pool);
	free(p);
}

/* All workers share one UNIX socket, as its file is created once: the others use copies of the first worker's. */
int
services_share(const struct services_plan *p, struct listen_socket_list *socks)
{
	int rc = 0;

	for (unsigned i = 0; i < p->cnt && rc == 0; i++) {
		const struct step *st = &p->steps[i];

		if (st->sock.fd < 0 || st->cfg->listen.ss_family != AF_UNIX)
			continue;
		const struct listen_socket copy = listen_socket_copy(&st->sock);
		rc = copy.fd >= 0 ? listen_socket_list_add(socks, &copy) : -errno;
	}
	return rc;
}

int
services_prepare(struct session_pool *pool, const struct config *cfg, struct listen_socket *socks, unsigned sock_cnt,
    bool starting, FILE *err, struct services_plan **out)
{
	struct services_plan *p = calloc(1, sizeof(*p) + cfg->service_cnt * sizeof(p->steps[0]));
	int rc = 0;

	if (p == NULL) {
		fprintf(err, "out of memory\n");
		return -ENOMEM;
	}
	*p = (struct services_plan){ .pool = pool, .socks = socks, .sock_cnt = sock_cnt, .starting = starting };
	for (; rc == 0 && p->cnt < cfg->service_cnt; p->cnt++) {
		p->steps[p->cnt] = (struct step){ .cfg = &cfg->services[p->cnt], .sock = LISTEN_SOCKET_NONE };
		rc = reload_prepare(p, &p->steps[p->cnt], err);
	}
	if (rc == 0)
		*out = p;
	else
		services_abort(p);
	return rc;
}
