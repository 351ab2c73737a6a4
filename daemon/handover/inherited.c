/* Listening sockets opened before the rights are given up; see handover/inherited.h. */
#include "daemon/handover/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/net/net.h"
#include "daemon/handover/notify.h"
#include "daemon/leg/peer_mode.h"

#define LOW_PORTS 1024
#define PASSED_MAX 65536 /* services, times workers */

static struct listen_socket *
inherited_place(const struct inherited *e, unsigned worker, unsigned i)
{
	return &e->socks[(size_t)worker * e->cnt + i];
}

/* Takes the sockets of one address. If workers are more (one of systemd, one UNIX socket), the others get copies.
 * If sockets are more (the daemon before had more workers), none is closed: each has connections in its backlog. */
static int
inherited_add_group(struct inherited *e, const struct listen_socket *group, unsigned cnt)
{
	const unsigned i = e->used++;
	int rc = 0;

	for (unsigned j = 0; j < cnt; j++) {
		struct listen_socket dropped = group[j];

		if (j < e->workers)
			*inherited_place(e, j, i) = group[j];
		else if (rc == 0)
			rc = listen_socket_append(inherited_place(e, j % e->workers, i), &group[j]);
		if (rc != 0 && j >= e->workers)
			listen_socket_close(&dropped);
	}
	for (unsigned w = cnt; w < e->workers && rc == 0; w++) {
		struct listen_socket *of = inherited_place(e, w % cnt, i);

		of->shared = true;
		*inherited_place(e, w, i) = listen_socket_copy(of);
		if (inherited_place(e, w, i)->fd < 0)
			rc = -errno;
	}
	return rc;
}

static bool
is_passed(const struct inherited *e, const struct sockaddr_storage *addr)
{
	for (unsigned i = 0; i < e->used; i++)
		if (listen_socket_listens_at(inherited_place(e, 0, i), addr))
			return true;
	return false;
}

static int
open_unix(struct inherited *e, const struct config_service *svc, FILE *err)
{
	struct listen_socket sock;
	int rc = listen_socket_listen(&sock, svc, true, err);

	if (rc != 0)
		return rc;
	rc = inherited_add_group(e, &sock, 1);
	if (rc != 0)
		fprintf(err, "service %s: socket %s: %s\n", svc->name, addr_path(&svc->listen), strerror(-rc));
	return rc;
}

/* The sockets of a service, while there is the right. */
static int
capture(const struct inherited *e, const struct config_service *svc, FILE *err)
{
	int rc = 0;

	for (unsigned w = 0; w < e->workers; w++)
		for (unsigned i = 0; i < e->used && rc == 0; i++)
			if (listen_socket_listens_at(inherited_place(e, w, i), &svc->listen))
				rc = listen_socket_capture(inherited_place(e, w, i), svc, ", see smcrd(8)", err);
	return rc;
}

/* The reason is reported here: without the rights the kernel has the same error for all reasons. */
static int
open_low(struct inherited *e, const struct config_service *svc, const struct tcp_option *option, FILE *err)
{
	char text[ADDR_STR_MAX];

	for (unsigned w = 0; w < e->workers; w++) {
		int fd = net_listen(&svc->listen, net_share_of(w, e->workers), svc->freebind,
		    peer_mode_wants_option(svc->peer) ? option : NULL);

		if (fd < 0) {
			fprintf(err, "service %s: cannot listen on %s: %s%s\n", svc->name,
			    addr_format_port(&svc->listen, text, sizeof(text)), strerror(-fd),
			    fd == -EACCES ? ": ports below 1024 take root or CAP_NET_BIND_SERVICE" : "");
			return fd;
		}
		*inherited_place(e, w, e->used) = listen_socket_of_fd(fd);
	}
	e->used++;
	return capture(e, svc, err);
}

void
inherited_own_file(struct listen_socket *l, const char *path)
{
	struct stat st;

	if (strlen(path) >= sizeof(l->path) || lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return;
	strcpy(l->path, path);
	l->dev = st.st_dev;
	l->ino = st.st_ino;
}

static bool
inherited_same_place(const struct listen_socket *a, const struct listen_socket *b)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	return getsockname(a->fd, (struct sockaddr *)&ss, &len) == 0 && listen_socket_listens_at(a, &ss) &&
	    listen_socket_listens_at(b, &ss);
}

/* Systemd has copies of what the daemon before hands over. */
static bool
is_handed_over(const struct listen_socket_list *from_daemon, unsigned cnt, const struct listen_socket *sock)
{
	for (unsigned i = 0; i < cnt; i++)
		if (inherited_same_place(&from_daemon->v[i], sock))
			return true;
	return false;
}

/* Appends systemd's sockets to the list. */
static int
take_systemds(struct listen_socket_list *passed, FILE *err)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names), rc = n < 0 ? n : 0;
	const unsigned handed_over = passed->cnt;

	if (n > PASSED_MAX)
		rc = -E2BIG;
	for (int i = 0; i < n; i++) {
		struct listen_socket sock = listen_socket_of_fd(SD_LISTEN_FDS_START + i);
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		(void)fcntl(sock.fd, F_SETFL, O_NONBLOCK);
		/* From the store: the process before made its file. */
		if (strcmp(names[i], NOTIFY_FDNAME) != 0)
			sock.unit = sock.elsewhere = true;
		else if (getsockname(sock.fd, (struct sockaddr *)&ss, &len) == 0)
			inherited_own_file(&sock, addr_path(&ss));
		/* Of a service that was disabled when its process ended: it is opened again. */
		if (is_handed_over(passed, handed_over, &sock))
			close(sock.fd);
		else if (!sock.unit && !net_option(sock.fd, SOL_SOCKET, SO_ACCEPTCONN))
			listen_socket_close(&sock);
		else if (rc == 0)
			rc = listen_socket_list_add(passed, &sock);
		free(names[i]);
	}
	free(names);
	if (rc != 0)
		fprintf(err, "sockets passed by systemd: %s\n", strerror(-rc));
	return rc;
}

/* Sockets of one address are taken together; group has space for all. */
static int
take_passed(struct inherited *e, struct listen_socket_list *passed, struct listen_socket *group, FILE *err)
{
	int rc = 0;

	for (unsigned i = 0; i < passed->cnt && rc == 0; i++) {
		unsigned cnt = 0;

		if (passed->v[i].fd < 0)
			continue;
		group[cnt++] = passed->v[i];
		for (unsigned j = i + 1; j < passed->cnt; j++)
			if (passed->v[j].fd >= 0 && inherited_same_place(&passed->v[i], &passed->v[j])) {
				group[cnt++] = passed->v[j];
				passed->v[j] = LISTEN_SOCKET_NONE;
			}
		passed->v[i] = LISTEN_SOCKET_NONE;
		rc = inherited_add_group(e, group, cnt);
	}
	if (rc != 0)
		fprintf(err, "passed sockets: %s\n", strerror(-rc));
	return rc;
}

int
inherited_open(struct inherited *e, const struct config *cfg, unsigned workers, const struct tcp_option *option,
    struct listen_socket_list *passed, FILE *err)
{
	*e = (struct inherited){ .workers = workers };
	int rc = take_systemds(passed, err);
	if (rc != 0)
		return rc;
	struct listen_socket *group = malloc((passed->cnt + 1) * sizeof(*group));
	e->cnt = passed->cnt + cfg->service_cnt;
	e->socks = malloc(((size_t)workers * e->cnt + 1) * sizeof(e->socks[0]));
	for (size_t i = 0; e->socks != NULL && i < (size_t)workers * e->cnt; i++)
		e->socks[i] = LISTEN_SOCKET_NONE;
	if (e->socks == NULL || group == NULL) {
		free(group);
		fprintf(err, "listening sockets: %s\n", strerror(ENOMEM));
		return -ENOMEM;
	}
	rc = take_passed(e, passed, group, err);
	free(group);
	for (unsigned i = 0; i < cfg->service_cnt && rc == 0; i++) {
		const struct config_service *svc = &cfg->services[i];

		if (is_passed(e, &svc->listen))
			rc = capture(e, svc, err);
		else if (svc->listen.ss_family == AF_UNIX)
			rc = open_unix(e, svc, err);
		else if (addr_port(&svc->listen) < LOW_PORTS || svc->capture == CONFIG_CAPTURE_TPROXY)
			rc = open_low(e, svc, option, err);
	}
	return rc;
}

void
inherited_fini(struct inherited *e)
{
	for (size_t i = 0; e->socks != NULL && i < (size_t)e->workers * e->cnt; i++)
		listen_socket_close(&e->socks[i]);
	free(e->socks);
	*e = (struct inherited){ 0 };
}
