/* Listening sockets before the rights are given up; see early.h. */
#include "daemon/early.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/addr.h"
#include "daemon/config/config_keys.h"
#include "daemon/net.h"
#include "daemon/session/peer_rule.h"

#define LOW_PORTS 1024

static struct lsock *
place(const struct early *e, unsigned worker, unsigned i)
{
	return &e->socks[(size_t)worker * e->cnt + i];
}

/* One of systemd's, or a UNIX socket, is one socket, whoever accepts from it. Takes it over. */
static int
add_shared(struct early *e, const struct lsock *sock)
{
	unsigned i = e->used++;

	*place(e, 0, i) = *sock;
	for (unsigned w = 1; w < e->workers; w++) {
		*place(e, w, i) = lsock_copy(sock);
		if (place(e, w, i)->fd < 0)
			return -errno;
	}
	return 0;
}

static bool
is_passed(const struct early *e, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < e->used; i++)
		if (lsock_listens_at(place(e, 0, i), addr))
			return true;
	return false;
}

static int
open_unix(struct early *e, const struct config_service *svc, FILE *err)
{
	struct lsock sock;
	int rc = lsock_listen(&sock, svc, true, err);

	if (rc != 0)
		return rc;
	rc = add_shared(e, &sock);
	if (rc != 0)
		fprintf(err, "service %s: socket %s: %s\n", svc->name, addr_path(&svc->listen), strerror(-rc));
	return rc;
}

static void
open_low(struct early *e, const struct config_service *svc, const struct smcopt *option)
{
	for (unsigned w = 0; w < e->workers; w++) {
		int fd = net_listen(&svc->listen, net_share_of(w, e->workers), svc->freebind,
		    peer_rule_wants_option(svc->peer) ? option : NULL);

		if (fd < 0) {
			while (w-- > 0)
				lsock_close(place(e, w, e->used));
			return;
		}
		*place(e, w, e->used) = lsock_of_fd(fd);
	}
	e->used++;
}

static int
take_passed(struct early *e, unsigned cnt, FILE *err)
{
	int rc = 0;

	for (unsigned i = 0; i < cnt && rc == 0; i++) {
		struct lsock sock = lsock_of_fd(SD_LISTEN_FDS_START + (int)i);

		sock.elsewhere = true;
		rc = add_shared(e, &sock);
	}
	if (rc != 0)
		fprintf(err, "sockets passed by systemd: %s\n", strerror(-rc));
	return rc;
}

int
early_open(struct early *e, const struct config *cfg, unsigned workers, const struct smcopt *option, FILE *err)
{
	int n = sd_listen_fds(1);

	*e = (struct early){ .workers = workers };
	if (n < 0 || n > CONFIG_SERVICES_MAX) {
		fprintf(err, "sockets passed by systemd: %s\n", n < 0 ? strerror(-n) : "too many");
		return -EINVAL;
	}
	e->cnt = (unsigned)n + cfg->service_cnt;
	e->socks = malloc(((size_t)workers * e->cnt + 1) * sizeof(e->socks[0]));
	if (e->socks == NULL) {
		fprintf(err, "listening sockets: %s\n", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < (size_t)workers * e->cnt; i++)
		e->socks[i] = LSOCK_NONE;
	int rc = take_passed(e, (unsigned)n, err);
	for (unsigned i = 0; i < cfg->service_cnt && rc == 0; i++) {
		const struct config_service *svc = &cfg->services[i];

		if (is_passed(e, &svc->listen))
			continue;
		if (svc->listen.ss_family == AF_UNIX)
			rc = open_unix(e, svc, err);
		else if (addr_port(&svc->listen) < LOW_PORTS)
			open_low(e, svc, option);
	}
	return rc;
}

void
early_fini(struct early *e)
{
	for (size_t i = 0; e->socks != NULL && i < (size_t)e->workers * e->cnt; i++)
		lsock_close(&e->socks[i]);
	free(e->socks);
	*e = (struct early){ 0 };
}
