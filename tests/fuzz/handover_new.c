/*
 * The process that takes over: all that it does with what a rival that runs already has sent, as smcrd.c does it at a start. The
 * rival has said everything before it is asked, so nothing waits.
 */
#include "fuzz_handover.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/handover/inherited.h"
#include "daemon/handover/takeover.h"
#include "fuzz.h"
#include "handover_rival.h"
#include "tests/scenario/oom.h"

#define SERVICES 3
#define DEVICES 2
#define SEND_BUFFER (1 << 20) /* for all that a program says */

static int dialled = -1; /* target of the next connect(); -1: no listener */

int __real_connect(int, const struct sockaddr *, socklen_t);
int __wrap_connect(int, const struct sockaddr *, socklen_t);

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (dialled < 0 || addr->sa_family != AF_UNIX)
		return __real_connect(fd, addr, len);
	FUZZ_CHECK(dup3(dialled, fd, O_CLOEXEC) == fd);
	close(dialled);
	dialled = -1;
	return 0;
}

static bool
listens(int fd, bool tcp_only)
{
	int type = 0, on = 0, domain = 0;
	socklen_t len = sizeof(int);

	FUZZ_CHECK(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0);
	FUZZ_CHECK(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0);
	FUZZ_CHECK(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0);
	return type == SOCK_STREAM && on == 1 &&
	    (domain == AF_INET || domain == AF_INET6 || (!tcp_only && domain == AF_UNIX));
}

static void
check_none(const struct takeover *t)
{
	FUZZ_CHECK(
	    t->sock == -1 && t->control_cnt == 0 && t->services.cnt == 0 && t->mpa.cnt == 0 && t->files.cnt == 0);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		FUZZ_CHECK(t->control[i].fd == -1);
	FUZZ_CHECK(t->spares == NULL);
}

static void
check_taken(const struct takeover *t)
{
	FUZZ_CHECK(t->sock >= 0 && t->control_cnt > 0 && t->control_cnt <= CONTROL_PORTS && t->pid > 0);
	for (unsigned i = 0; i < t->control_cnt; i++)
		FUZZ_CHECK(listens(t->control[i].fd, false) && t->control[i].lent && t->control[i].elsewhere);
	for (unsigned i = 0; i < t->services.cnt; i++)
		FUZZ_CHECK(listens(t->services.v[i].fd, false) && t->services.v[i].lent && t->services.v[i].elsewhere);
	for (unsigned i = 0; i < t->mpa.cnt; i++)
		FUZZ_CHECK(listens(t->mpa.v[i].fd, true));
	for (unsigned i = 0; i < t->files.cnt; i++) {
		struct stat st;

		FUZZ_CHECK(t->files.v[i].fd == -1 && lstat(t->files.v[i].path, &st) == 0 && S_ISSOCK(st.st_mode));
	}
}

/* which: a bit for each service, at TCP addresses and paths that the rival may have, or at a path that is free; another for devices. */
static struct config *
configuration(uint8_t which)
{
	static struct config cfg;
	static struct config_service services[SERVICES];
	static struct config_device devices[DEVICES];
	const char *const paths[SERVICES] = { NULL, descriptors_path(DESC_UNIX), descriptors_path_of("new") };

	cfg = (struct config){ .services = services, .devices = devices, .device_cnt = which >> 3 & 1 ? DEVICES : 0 };
	for (unsigned i = 0; i < SERVICES; i++) {
		struct config_service *svc = &services[cfg.service_cnt];
		struct sockaddr_un *sun = (struct sockaddr_un *)&svc->listen;
		socklen_t len = sizeof(svc->listen);

		if ((which >> i & 1) == 0)
			continue;
		*svc = (struct config_service){ .kind = CONFIG_INGRESS, .name = "x", .listen_mode = 0600 };
		if (paths[i] == NULL) {
			(void)getsockname(descriptors_fd(DESC_TCP4), (struct sockaddr *)&svc->listen, &len);
		} else {
			sun->sun_family = AF_UNIX;
			strcpy(sun->sun_path, paths[i]);
		}
		cfg.service_cnt++;
	}
	return &cfg;
}

/* The services' sockets go to the workers, and are closed here in their place. */
static int
start_services(struct takeover *t, const struct config *cfg, unsigned workers, FILE *err)
{
	struct inherited early = { 0 };
	int rc = inherited_open(&early, cfg, workers, NULL, &t->services, err);

	for (size_t i = 0; rc == 0 && i < (size_t)workers * early.cnt; i++)
		for (const struct listen_socket *l = &early.socks[i]; l != NULL && l->fd >= 0; l = l->next)
			FUZZ_CHECK(listens(l->fd, false));
	inherited_fini(&early);
	return rc;
}

/* As soft devices would that find no other port free. */
static int
start_devices(struct takeover *t, struct config *cfg, uint8_t used)
{
	int rc = takeover_offer_ports(t, cfg);

	for (unsigned i = 0; rc == 0 && i < t->mpa.cnt; i++)
		t->spares[i].used = used >> i % 8 & 1;
	for (unsigned i = 0; rc == 0 && i < cfg->device_cnt; i++)
		FUZZ_CHECK(cfg->devices[i].siw.spare_cnt == t->mpa.cnt && cfg->devices[i].siw.spares == t->spares);
	takeover_settle_ports(t, cfg);
	return rc;
}

/* a: the configuration, then workers, less one; b: the ports that devices use. */
static void
take_over(const struct handover_header *h, const char *path, FILE *err)
{
	struct config *cfg = configuration(h->a);
	struct takeover t;
	int rc = takeover_begin(&t, path, err);

	fflush(err);
	FUZZ_CHECK(rc == 0 || ftell(err) > 0);
	if (rc != 0) {
		check_none(&t);
		return;
	}
	check_taken(&t);
	rc = start_services(&t, cfg, 1 + (h->a >> 4) % 4, err);
	if (rc == 0)
		rc = start_devices(&t, cfg, h->b);
	if (rc == 0) {
		rc = takeover_finish(&t, cfg, h->b, 0, err);
		fflush(err);
		FUZZ_CHECK(rc == 0 || ftell(err) > 0);
	}
	takeover_fini(&t);
	check_none(&t);
}

/* The ends of a connection to the rival, whose words all fit. */
static void
connect_rival(struct handover_rival *rival)
{
	const int room = SEND_BUFFER;
	const struct timeval soon = { .tv_sec = 1 };
	int ends[2];

	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	for (unsigned i = 0; i < 2; i++)
		(void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	(void)setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	dialled = ends[0];
	rival->sock = ends[1];
}

/* A file is removed only if the rival has announced it, by path and identity. */
static void
check_files(const struct handover_rival *rival)
{
	for (unsigned i = 0; i < DESC_CNT; i++)
		if (descriptors_path(i)[0] != '\0' && access(descriptors_path(i), F_OK) != 0)
			FUZZ_CHECK(rival->path_said[i] && rival->identity_said[i]);
	FUZZ_CHECK(access(descriptors_path_of("new"), F_OK) != 0);
}

void
handover_new_run(const struct handover_header *h, struct steps *steps)
{
	struct handover_rival rival = { .ops = RIVAL_CNT };
	static char text[8192];
	struct step st;

	connect_rival(&rival);
	while (steps_next(steps, &st))
		handover_rival_step(&rival, &st, steps);
	(void)shutdown(rival.sock, SHUT_WR);
	/* It is taken from what runs already where there is none of this process's own. */
	if (h->a >> 7 & 1)
		(void)unsetenv("NOTIFY_SOCKET");
	else
		(void)setenv("NOTIFY_SOCKET", "/nowhere", 1);
	FILE *err = fmemopen(text, sizeof(text), "w");
	FUZZ_CHECK(err != NULL);
	if (h->c != 0)
		oom_arm(h->c, 1);
	take_over(h, descriptors_path_of("control"), err);
	oom_disarm();
	fclose(err);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	if (dialled >= 0)
		close(dialled);
	dialled = -1;
	close(rival.sock);
	check_files(&rival);
}
