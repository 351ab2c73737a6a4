/*
 * A gateway pair in one process for tests of the daemon: an ingress and an egress on loopback, the egress being the
 * ingress's peer, and a server's listening socket. The test plays client and server with its own sockets and turns the
 * loop until what it waits for is there.
 *
 * With the engine's stand-in (fake_smcr.h) one worker has both services. With GATEWAY_REAL each service has a worker of
 * its own, with the real engine and a soft iWARP device.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/str.h"
#include "checks.h"
#include "daemon/net/net.h"
#include "daemon/leg/circle.h"
#include "daemon/account/admission.h"
#include "daemon/session/session.h"
#include "daemon/service/accept_balance.h"
#include "daemon/worker/worker.h"
#ifdef GATEWAY_REAL
#include "smcr_help.h"
#else
#include "fake_smcr.h"
#endif

#define MS 1000000LL
#define GW_DEADLINE (60000 * MS)

enum { GW_IN, GW_OUT, GW_SERVICES };

#ifdef GATEWAY_REAL
#define GW_WORKERS 2
#else
#define GW_WORKERS 1
#endif

struct gateway {
	struct loop *loop;
	struct admissions admissions;
	struct targets_all targets;
	struct circles circles;
	struct accept_pauses pauses;
	struct worker_place place;
	struct worker_peer colleague;
	struct worker *w;  /* the only one, or the ingress's */
	struct worker *w2; /* the egress's; NULL with the stand-in */
	struct config cfg;
	struct config cfg2; /* of w2 */
	struct config_service svc[GW_SERVICES];
	struct config_target to[GW_SERVICES]; /* of svc */
	struct config_device device;
	struct sockaddr_storage peer_addrs[4], server_addrs[4];
	const struct tcp_option *option;
	int listener; /* the server's; -1 = nobody listens */
	int64_t give_up;
	unsigned turns;
	unsigned stall_us; /* the next turn takes so long, once */
	char err[1024];
	char dir[32]; /* of UNIX sockets; "" = none */
};

static struct gateway gw;
static int client, server; /* the ends of the test's connection; -1 = closed, or none yet */

static inline int64_t
gw_turn(void *arg, int64_t now_ns)
{
	(void)arg;
	if (gw.stall_us > 0)
		(void)usleep(gw.stall_us);
	gw.stall_us = 0;
	/* loop_run begins with a turn that has waited for nothing. */
	if (++gw.turns == 2)
		loop_stop(gw.loop);
	return now_ns + 5 * MS;
}

static inline void
gw_once(void)
{
	gw.turns = 0;
	ck_assert_int_eq(loop_run(gw.loop), 0);
}

/* The states of all sessions. */
static inline const char *gw_states(void);

/* Turns the loop until the expression holds. */
#define UNTIL(expr)                                                                                                  \
	do {                                                                                                         \
		gw.give_up = loop_now(gw.loop) + GW_DEADLINE;                                                        \
		while (!(expr)) {                                                                                    \
			ck_assert_msg(                                                                               \
			    loop_now(gw.loop) < gw.give_up, "never came true: %s, sessions:%s", #expr, gw_states()); \
			gw_once();                                                                                   \
		}                                                                                                    \
	} while (0)

/* Turns the loop for a while: for what must not happen. */
static inline void
gw_run_ms(int ms)
{
	int64_t until = loop_now(gw.loop) + ms * MS;

	while (loop_now(gw.loop) < until)
		gw_once();
}

/*
 * A free address: this process's own one in 127.0.0.0/8, with ports below those that the kernel gives to connections.
 * Tests run side by side, and a port of 127.0.0.1 that was free a moment ago may be anybody's by now. The ports differ
 * from process to process and from those of the end-to-end tests, because some tests listen on all addresses.
 */
static unsigned gw_addrs_taken;

static inline void
gw_free_addr(struct sockaddr_storage *addr)
{
	uint32_t pid = (uint32_t)getpid();
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(20000 + pid % 500 * 20 + gw_addrs_taken++)),
		.sin_addr.s_addr = htonl(0x7f800000 | (pid & 0x7fffff)),
	};

	ck_assert_uint_le(gw_addrs_taken, 20);
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &sin, sizeof(sin));
}

/* A listening socket on a free address. */
static inline int
gw_listen(struct sockaddr_storage *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	gw_free_addr(addr);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)addr, sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(listen(fd, 64), 0);
	return fd;
}

/* An address of this name in the test's directory, which is made at the first one. */
static inline void
gw_file(struct sockaddr_storage *addr, const char *name)
{
	char text[ADDR_STR_MAX];

	if (gw.dir[0] == '\0') {
		strcpy(gw.dir, "/tmp/gateway.XXXXXX");
		ck_assert_ptr_nonnull(mkdtemp(gw.dir));
	}
	snprintf(text, sizeof(text), "unix:%s/%s", gw.dir, name);
	ck_assert_int_eq(addr_parse_unix(text, addr), 0);
}

static inline bool
gw_file_is_there(const char *name)
{
	struct sockaddr_storage ss;

	gw_file(&ss, name);
	return access(addr_path(&ss), F_OK) == 0;
}

/* The ingress listens there from the next start or reload on. */
static inline void
gw_listen_at(const char *name)
{
	gw_file(&gw.svc[GW_IN].listen, name);
	gw.svc[GW_IN].listen_mode = 0600;
}

/* Before the start: the server listens on a UNIX socket. */
static inline void
gw_serve_at(const char *name, int backlog)
{
	close(gw.listener);
	gw_file(&gw.server_addrs[0], name);
	gw.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(gw.listener, (struct sockaddr *)&gw.server_addrs[0], addr_len(&gw.server_addrs[0])), 0);
	ck_assert_int_eq(listen(gw.listener, backlog), 0);
}

/* An address where connecting takes for ever: a listener whose backlog is full. */
static inline void
gw_black_hole(struct sockaddr_storage *addr)
{
	int fd = gw_listen(addr);

	ck_assert_int_eq(listen(fd, 0), 0);
	for (int i = 0; i < 4; i++) {
		int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		(void)connect(c, (struct sockaddr *)addr, sizeof(struct sockaddr_in));
	}
}

static inline void
gw_init(void)
{
	memset(&gw, 0, sizeof(gw));
	gw.listener = gw_listen(&gw.server_addrs[0]);
	gw_free_addr(&gw.peer_addrs[0]);
	gw.to[GW_IN] = (struct config_target){ .host = "peer", .addrs = gw.peer_addrs, .addr_cnt = 1 };
	gw.to[GW_OUT] = (struct config_target){ .host = "server", .addrs = gw.server_addrs, .addr_cnt = 1 };
	gw.svc[GW_IN] = (struct config_service){
		.kind = CONFIG_INGRESS,
		.name = "in",
		.to = &gw.to[GW_IN],
		.to_cnt = 1,
		.retry_ms = 10000,
		.max_connections = 1000,
		.connect_ms = 5000,
		.elem_size = 65536,
	};
	gw_free_addr(&gw.svc[GW_IN].listen);
	gw.svc[GW_OUT] = (struct config_service){
		.kind = CONFIG_EGRESS,
		.name = "out",
		.listen = gw.peer_addrs[0],
		.to = &gw.to[GW_OUT],
		.to_cnt = 1,
		.retry_ms = 10000,
		.max_connections = 1000,
		.connect_ms = 5000,
		.elem_size = 65536,
	};
	smcr_config_init(&gw.cfg.smcr);
	gw.cfg.services = gw.svc;
	gw.cfg.service_cnt = GW_SERVICES;
	gw.loop = loop_new();
	admissions_init(&gw.admissions);
	targets_all_init(&gw.targets);
	circles_init(&gw.circles);
	accept_pauses_init(&gw.pauses, NULL);
	gw.place = (struct worker_place){ .cnt = 1,
		.admissions = &gw.admissions,
		.targets = &gw.targets,
		.circles = &gw.circles,
		.all = &gw.colleague,
		.pauses = &gw.pauses };
	ck_assert_ptr_nonnull(gw.loop);
#ifdef GATEWAY_REAL
	siw_config_init(&gw.device.siw);
	gw.device.siw.connect_ms = 30000;
	gw.device.addr = gw.server_addrs[0];
	gw.cfg.devices = &gw.device;
	gw.cfg.device_cnt = 1;
	gw.cfg.service_cnt = 1;
	gw.cfg.smcr.fin_grace_ms = 100;
	gw.cfg.reset_grace_ms = 2000;
#endif
}

static inline int
gw_try_start(struct listen_socket *socks, unsigned sock_cnt)
{
	FILE *err = fmemopen(gw.err, sizeof(gw.err), "w");
	int rc = worker_new(gw.loop, &gw.place, &gw.cfg, gw.option, socks, sock_cnt, err, &gw.w);

	fclose(err);
	return rc;
}

static inline void
gw_start(void)
{
	ck_assert_msg(gw_try_start(NULL, 0) == 0, "%s", gw.err);
#ifdef GATEWAY_REAL
	gw.cfg2 = gw.cfg;
	gw.cfg2.services = &gw.svc[GW_OUT];
	ck_assert_int_eq(worker_new(gw.loop, &gw.place, &gw.cfg2, gw.option, NULL, 0, stderr, &gw.w2), 0);
#endif
	ck_assert_int_eq(loop_add_turn(gw.loop, gw_turn, NULL), 0);
}

/* The worker of a service. */
static inline struct worker *
gw_worker(int service)
{
	return service == GW_OUT && gw.w2 != NULL ? gw.w2 : gw.w;
}

static inline struct session_pool *
gw_pool(int service)
{
	return worker_sessions(gw_worker(service));
}

static inline int
gw_reload(void)
{
	FILE *err = fmemopen(gw.err, sizeof(gw.err), "w");

	gw.err[0] = '\0';
	int rc = worker_prepare(gw.w, &gw.cfg, NULL, 0, err);
	if (rc == 0)
		worker_commit(gw.w, &gw.cfg, err);
	fclose(err);
	return rc;
}

static inline void
gw_free_workers(void)
{
	worker_free(gw.w);
	worker_free(gw.w2);
	gw.w = gw.w2 = NULL;
}

static inline void
gw_stop(void)
{
	gw_free_workers();
	admissions_fini(&gw.admissions);
	accept_pauses_fini(&gw.pauses);
	targets_all_fini(&gw.targets);
	circles_fini(&gw.circles);
	loop_free(gw.loop);
	if (gw.listener >= 0)
		close(gw.listener);
	if (gw.server_addrs[0].ss_family == AF_UNIX)
		unlink(addr_path(&gw.server_addrs[0]));
	/* Files of services are gone. */
	if (gw.dir[0] != '\0')
		ck_assert_int_eq(rmdir(gw.dir), 0);
}

static inline int
gw_dial(const struct sockaddr_storage *addr)
{
	int fd = socket(addr->ss_family, SOCK_STREAM, 0), on = 1;

	ck_assert_int_eq(connect(fd, (const struct sockaddr *)addr, addr_len(addr)), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)), 0);
	ck_assert_int_eq(ioctl(fd, FIONBIO, &on), 0);
	return fd;
}

static inline int
gw_client(void)
{
	return gw_dial(&gw.svc[GW_IN].listen);
}

/* The server's side of a proxied connection. */
static inline int
gw_accept(void)
{
	int fd, on = 1;

	UNTIL((fd = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)), 0);
	return fd;
}

static inline void
gw_say(int fd, const char *text)
{
	ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

	ck_assert_msg(n == (ssize_t)strlen(text), "%zd: %s, sessions:%s", n, strerror(errno), gw_states());
}

static inline void
gw_urgent(int fd, char c)
{
	ck_assert_int_eq(send(fd, &c, 1, MSG_OOB), 1);
}

enum gw_end { GW_OPEN, GW_EOF, GW_RESET };

/* Reads what has arrived into text (urgent bytes in brackets) and tells whether the end came. */
static inline enum gw_end
gw_read(int fd, char *text, size_t cap)
{
	for (;;) {
		size_t have = strlen(text);
		char buf[2048];
		int mark = 0;

		ck_assert_int_lt(have + 4, cap);
		(void)ioctl(fd, SIOCATMARK, &mark);
		ssize_t n = recv(fd, buf, mark ? 1 : cap - have - 4 < sizeof(buf) ? cap - have - 4 : sizeof(buf), 0);
		if (n == 0)
			return GW_EOF;
		if (n < 0)
			return errno == EAGAIN ? GW_OPEN : GW_RESET;
		snprintf(text + have, cap - have, mark ? "[%.*s]" : "%.*s", (int)n, buf);
	}
}

/* Until exactly this text has arrived and the connection is in this state. */
static inline void
gw_expect(int fd, const char *want, enum gw_end end)
{
	char text[4096] = "";
	enum gw_end got = GW_OPEN;

	gw.give_up = loop_now(gw.loop) + GW_DEADLINE;
	while (strcmp(text, want) != 0 || got != end) {
		if (got == GW_OPEN)
			got = gw_read(fd, text, sizeof(text));
		if (strcmp(text, want) == 0 && got == end)
			break;
		ck_assert_msg(got == GW_OPEN && loop_now(gw.loop) < gw.give_up, "got \"%s\" end %d, want \"%s\" end %d",
		    text, got, want, end);
		gw_once();
	}
}

static inline void
gw_expect_reset(int fd)
{
	gw_expect(fd, "", GW_RESET);
}

static inline void
gw_expect_eof(int fd)
{
	gw_expect(fd, "", GW_EOF);
}

/* The session of a service, NULL when there is none. */
static inline struct session *
gw_session(int service)
{
	uint32_t pos = 0;
	struct session *s;

	while ((s = idtable_next(&gw_pool(service)->sessions, &pos)) != NULL)
		if (strcmp(s->settings->cfg.name, gw.svc[service].name) == 0)
			return s;
	return NULL;
}

static inline const char *
gw_states(void)
{
	static char text[512];
	uint32_t pos;
	struct session *s;

	text[0] = '\0';
	for (int i = 0; i < GW_WORKERS; i++)
		for (pos = 0; (s = idtable_next(&gw_pool(i)->sessions, &pos)) != NULL;)
			str_append(text, sizeof(text), " %s of %s", session_state_str(s->state), s->settings->cfg.name);
	return text[0] != '\0' ? text : " none";
}

static inline bool
gw_in_state(int service, enum session_state state)
{
	const struct session *s = gw_session(service);

	return s != NULL && s->state == state;
}

static inline struct service_info
gw_info(int service)
{
	struct service_info info;
	uint32_t pos = 0;

	while (worker_service_next(gw_worker(service), &pos, &info))
		if (strcmp(info.cfg->name, gw.svc[service].name) == 0)
			return info;
	ck_abort_msg("no such service");
}

static inline unsigned
gw_sessions(void)
{
	return gw_pool(GW_IN)->sessions.used + (gw.w2 != NULL ? gw_pool(GW_OUT)->sessions.used : 0);
}

static inline void
gw_carries_both_ways(void)
{
	gw_say(client, "more");
	gw_expect(server, "more", GW_OPEN);
	gw_say(server, "back");
	gw_expect(client, "back", GW_OPEN);
}

/* A new client, the server's end of its connection, and the first bytes between them. */
static inline void
gw_connect(void)
{
	client = gw_client();
	server = gw_accept();
	gw_carries_both_ways();
}

static inline void
gw_hang_up(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A fixture. The test may change gw.cfg and gw.svc before gw_start or gw_begin. */
static inline void
gw_setup(void)
{
#ifndef GATEWAY_REAL
	memset(&fake, 0, sizeof(fake));
	memset(&fake_seen, 0, sizeof(fake_seen));
#endif
	log_init(LOG_LVL_ERROR);
	gw_init();
	client = server = -1;
}

static inline void
gw_teardown(void)
{
	gw_hang_up(&client);
	gw_hang_up(&server);
	gw_stop();
}

static inline void
gw_begin(void)
{
	gw_start();
	gw_connect();
}

/* Breaks a connection from this end: the far end gets RST, our own end of it is dead. */
static inline void
gw_break(int fd)
{
	struct sockaddr sa = { .sa_family = AF_UNSPEC };

	ck_assert_int_eq(connect(fd, &sa, sizeof(sa)), 0);
}
