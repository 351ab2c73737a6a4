/*
 * The process that runs already: the control socket with a worker of fixed data, and rivals among its clients that say they take over.
 * What it sends is judged: all its listening sockets in order, each with its descriptor, or a refusal, and DONE only behind the one
 * moment in which it gave them up.
 */
#include "fuzz_handover.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/control_parts.h"
#include "daemon/control/handover_msg.h"
#include "fuzz.h"
#include "handover_rival.h"
#include "tests/scenario/oom.h"
#include "tests/unit/fake_loop.h"
#include "tests/unit/fake_worker.h"
#include "tests/unit/fake_workers.h"

#define RIVALS 3
#define SERVICES_MAX 8
#define WORKER_PORTS_MAX 4
#define LAST_TURNS 8
#define S INT64_C(1000000000)

enum {
	STEP_LINE = RIVAL_CNT, /* a: which */
	STEP_DIAL,             /* a: where */
	STEP_TURN,             /* a: how many */
	STEP_READ,
	STEP_HANG_UP, /* a: both ways, or no more words */
	STEP_WAIT,    /* a: half seconds */
	STEP_STOP,    /* what changes listening sockets ends a hand-over */
	STEP_CNT,
};

/* What has come of the messages of a hand-over. */
enum heard {
	HEARD_NOTHING,
	HEARD_HELLO,
	HEARD_END,
	HEARD_LAST,
};

struct rival {
	struct handover_rival says;
	struct handover_rx rx;
	enum heard heard;
	unsigned socks; /* of HEARD_HELLO */
	bool in_line;   /* of an answer in JSON */
	bool readonly;  /* at that socket */
};

static struct {
	struct loop *loop;
	struct control *ctl;
	struct rival rivals[RIVALS];
	enum descriptor services[SERVICES_MAX], ports[WORKER_PORTS_MAX];
	unsigned service_cnt, port_cnt;
	bool fails; /* the sockets cannot be had */
	unsigned let_go, looked, handed_over;
} me;

/* -- the daemon's part -- */

static int
add(struct listen_socket_list *list, const enum descriptor *which, unsigned cnt)
{
	int rc = 0;

	for (unsigned i = 0; i < cnt && rc == 0; i++) {
		const struct listen_socket l = descriptors_lsock(which[i]);

		rc = listen_socket_list_add_copies(list, &l);
	}
	return rc;
}

static int
on_sockets(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports)
{
	(void)arg;
	int rc = add(services, me.services, me.service_cnt);
	if (rc == 0)
		rc = add(ports, me.ports, me.port_cnt);
	return rc == 0 && me.fails ? -EMFILE : rc;
}

static void
on_release(void *arg, uint32_t pid, uint32_t unit_pid)
{
	(void)arg;
	(void)unit_pid;
	FUZZ_CHECK(me.let_go++ == 0 && pid == (uint32_t)getpid());
}

/* At the third look. */
static bool
on_settled(void *arg)
{
	(void)arg;
	return ++me.looked >= 3;
}

static void
on_leave_ports(void *arg, const struct listen_socket_list *ports)
{
	(void)arg;
	FUZZ_CHECK(me.let_go == 1 && me.handed_over++ == 0 && ports->cnt <= me.port_cnt);
	for (unsigned i = 0; i < ports->cnt; i++) {
		FUZZ_CHECK(ports->v[i].fd >= 0);
		for (unsigned k = 0; k < i; k++)
			FUZZ_CHECK(ports->v[k].fd != ports->v[i].fd);
	}
}

static int
on_reload(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	(void)arg;
	(void)done;
	(void)done_arg;
	control_stop_handover(me.ctl);
	return -EBUSY;
}

static void
on_drain(void *arg, bool then_exit, uint32_t limit_ms)
{
	(void)arg;
	(void)limit_ms;
	(void)then_exit;
	control_stop_handover(me.ctl);
}

static int
on_undrain(void *arg)
{
	(void)arg;
	return -ENOENT;
}

static void
on_listening(void *arg)
{
	(void)arg;
}

static struct control_level
on_log_level(void *arg, int level)
{
	(void)arg;
	(void)level;
	return (struct control_level){ 0 };
}

/* -- what a rival hears -- */

static enum handover_kind
kind_of(unsigned nr)
{
	return nr < CONTROL_PORTS                 ? HANDOVER_CONTROL
	    : nr < CONTROL_PORTS + me.service_cnt ? HANDOVER_SERVICE
	                                          : HANDOVER_MPA;
}

/* It is the socket whose turn it is. */
static void
check_socket(const struct rival *r, const struct handover_msg *m, int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);
	struct stat got, want;

	FUZZ_CHECK(m->kind == kind_of(r->socks));
	FUZZ_CHECK(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) == 0 && on == 1);
	if (r->socks < CONTROL_PORTS)
		return;
	const unsigned nr = r->socks - CONTROL_PORTS;
	const enum descriptor which = nr < me.service_cnt ? me.services[nr] : me.ports[nr - me.service_cnt];
	FUZZ_CHECK(fstat(fd, &got) == 0 && fstat(descriptors_fd(which), &want) == 0 && got.st_ino == want.st_ino);
	FUZZ_CHECK(strcmp(m->text, descriptors_path(which)) == 0);
}

static void
hear_message(struct rival *r, const struct handover_msg *m, int fd)
{
	const unsigned all = CONTROL_PORTS + me.service_cnt + me.port_cnt;

	switch (m->type) {
	case HANDOVER_HELLO:
		FUZZ_CHECK(r->heard == HEARD_NOTHING && m->cnt == all && m->pid == (uint32_t)getpid() && !r->readonly);
		r->heard = HEARD_HELLO;
		r->socks = 0;
		break;
	case HANDOVER_SOCKET:
		FUZZ_CHECK(r->heard == HEARD_HELLO && r->socks < all);
		check_socket(r, m, fd);
		r->socks++;
		break;
	case HANDOVER_END:
		FUZZ_CHECK(r->heard == HEARD_HELLO && r->socks == all);
		r->heard = HEARD_END;
		break;
	case HANDOVER_HEALTH:
		FUZZ_CHECK(r->heard == HEARD_END && me.handed_over == 1);
		break;
	case HANDOVER_DONE:
		FUZZ_CHECK(r->heard == HEARD_END && me.handed_over == 1);
		r->heard = HEARD_LAST;
		break;
	case HANDOVER_REFUSED:
		FUZZ_CHECK(r->heard == HEARD_NOTHING && m->text[0] != '\0');
		r->heard = HEARD_LAST;
		break;
	case HANDOVER_USED:
	case HANDOVER_READY:
		FUZZ_CHECK(false); /* the new process's words */
	}
	if (fd >= 0)
		close(fd);
}

/* Takes of an answer in JSON what is there of its line. */
static void
hear_line(struct rival *r)
{
	static char bytes[4096];
	ssize_t n = recv(r->says.sock, bytes, sizeof(bytes), MSG_PEEK);

	if (n <= 0)
		return;
	const char *nl = memchr(bytes, '\n', (size_t)n);
	r->in_line = nl == NULL;
	(void)!recv(r->says.sock, bytes, nl != NULL ? (size_t)(nl - bytes) + 1 : (size_t)n, 0);
}

static void
hear(struct rival *r)
{
	struct handover_msg m;
	char first;
	int fd;

	while (r->says.sock >= 0 && recv(r->says.sock, &first, 1, MSG_PEEK) == 1) {
		if (r->in_line || (r->rx.len == 0 && first == '{')) {
			FUZZ_CHECK(r->heard == HEARD_NOTHING);
			hear_line(r);
			continue;
		}
		int rc = handover_recv(r->says.sock, &r->rx, &m, &fd);
		FUZZ_CHECK(rc == 0 || rc == -EAGAIN);
		if (rc == 0)
			hear_message(r, &m, fd);
	}
}

/* -- steps -- */

static const struct rival nobody = { .says = { .sock = -1, .ops = STEP_CNT }, .rx = HANDOVER_RX_NONE };

static void
hang_up(struct rival *r)
{
	handover_rx_fini(&r->rx);
	if (r->says.sock >= 0)
		close(r->says.sock);
	*r = nobody;
}

static void
dial(struct rival *r, unsigned where)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	hang_up(r);
	r->readonly = where % 8 == 1;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", descriptors_path_of(r->readonly ? "old.r" : "old"));
	if (where % 8 == 2) /* where it is when another process has taken over */
		snprintf(sun.sun_path, sizeof(sun.sun_path), "%s.%d", descriptors_path_of("old"), (int)getpid());
	r->says.sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(r->says.sock >= 0);
	if (connect(r->says.sock, (struct sockaddr *)&sun, sizeof(sun)) != 0)
		hang_up(r);
}

static void
line(const struct rival *r, unsigned which)
{
	static const char *const lines[] = { "smcrd-take-over 1\n", "smcrd-take-over 1\n", "smcrd-take-over 1\n",
		"smcrd-take-over 1", "smcrd-take-over 2\n", "smcrd-take-over\n", "smcrd-take-over 1 \n",
		"smcrd-take-over 11111111111111111111\n", "smcrd-take-over 1\nSMCH", "\n", "{\"command\":\"status\"}\n",
		"{\"command\":\"drain\"}\n", "{\"command\":\"disable\",\"service\":\"web\"}\n",
		"{\"command\":\"trace\"}\n", "{\"command\":\"reload\"}\n", "{" };
	const char *text = lines[which % (sizeof(lines) / sizeof(lines[0]))];

	descriptors_send(r->says.sock, text, strlen(text), descriptors_fd(DESC_NULL), which / 128);
}

static void
turns(unsigned n)
{
	oom_suspend(false);
	while (n-- > 0)
		(void)fake_loop_turn(me.loop);
	oom_suspend(true);
	LIST_EACH(const struct control_client, c, &me.ctl->clients, node)
		FUZZ_CHECK(c->state != CLIENT_TAKING || c == me.ctl->successor);
}

static void
step(const struct step *st, struct steps *steps)
{
	struct rival *r = &me.rivals[st->op / STEP_CNT % RIVALS];
	const unsigned op = st->op % STEP_CNT;

	if (r->says.sock < 0 && op <= STEP_LINE)
		return;
	switch (op) {
	case STEP_LINE:
		line(r, st->a);
		break;
	case STEP_DIAL:
		dial(r, st->a);
		break;
	case STEP_TURN:
		turns(1 + st->a % 8);
		break;
	case STEP_READ:
		hear(r);
		break;
	case STEP_HANG_UP:
		if (st->a % 2 == 0)
			hang_up(r);
		else if (r->says.sock >= 0)
			(void)shutdown(r->says.sock, SHUT_WR);
		break;
	case STEP_WAIT:
		fake_loop_advance(me.loop, st->a * S / 2);
		break;
	case STEP_STOP:
		control_stop_handover(me.ctl);
		break;
	default:
		handover_rival_step(&r->says, st, steps);
	}
}

/* -- life -- */

/* a: sockets of services and ports; b: whether they can be had. */
static void
begin(const struct handover_header *h)
{
	static const enum descriptor services[] = { DESC_UNIX, DESC_TCP4, DESC_TCP4_TWIN, DESC_TCP6, DESC_ABSTRACT };

	memset(&me, 0, sizeof(me));
	me.service_cnt = h->a % SERVICES_MAX;
	me.port_cnt = h->a / SERVICES_MAX % WORKER_PORTS_MAX;
	me.fails = h->b % 8 == 7;
	for (unsigned i = 0; i < me.service_cnt; i++)
		me.services[i] = services[i % 5];
	for (unsigned i = 0; i < me.port_cnt; i++)
		me.ports[i] = i == 0 ? DESC_TCP6 : DESC_TCP4;
	for (unsigned i = 0; i < RIVALS; i++)
		me.rivals[i] = nobody;
}

static void
end(void)
{
	for (unsigned i = 0; i < RIVALS; i++) {
		hear(&me.rivals[i]);
		hang_up(&me.rivals[i]);
	}
	oom_disarm();
	turns(LAST_TURNS);
	fake_loop_advance(me.loop, S); /* a hand-over that waits for connections in set-up has waited long enough */
	turns(LAST_TURNS);
	FUZZ_CHECK(list_empty(&me.ctl->clients) && me.ctl->successor == NULL);
	FUZZ_CHECK((me.ctl->successor_pid != 0) == (me.handed_over != 0));
	control_free(me.ctl);
}

/* A successor's files stay; it would have its own descriptors of them. */
static void
remove_files(void)
{
	char moved[128];

	snprintf(moved, sizeof(moved), "%s.%d", descriptors_path_of("old"), (int)getpid());
	FUZZ_CHECK(access(moved, F_OK) != 0);
	FUZZ_CHECK((access(descriptors_path_of("old"), F_OK) == 0) == (me.handed_over != 0));
	(void)unlink(descriptors_path_of("old"));
	(void)unlink(descriptors_path_of("old.r"));
}

void
handover_old_run(const struct handover_header *h, struct steps *steps)
{
	static const struct control_hooks hooks = {
		.reload = on_reload,
		.drain = on_drain,
		.undrain = on_undrain,
		.listening = on_listening,
		.log_level = on_log_level,
		.sockets = on_sockets,
		.let_go = on_release,
		.settled = on_settled,
		.leave_ports = on_leave_ports,
	};
	struct config cfg = { .control_mode = 0600, .control_readonly_mode = 0600 };
	struct step st;

	begin(h);
	snprintf(cfg.control_path, sizeof(cfg.control_path), "%s", descriptors_path_of("old"));
	snprintf(cfg.control_readonly, sizeof(cfg.control_readonly), "%s", descriptors_path_of("old.r"));
	me.loop = loop_new();
	struct worker *worker = fake_worker_new();
	struct workers *workers = fake_workers_new(me.loop, worker, 1);
	FUZZ_CHECK(control_new(me.loop, workers, &cfg, &hooks, stderr, &me.ctl) == 0);
	oom_suspend(true);
	if (h->c != 0)
		oom_arm(h->c, 1);
	while (steps_next(steps, &st))
		step(&st, steps);
	end();
	oom_suspend(false);
	fake_worker_free(worker);
	fake_workers_free(workers);
	loop_free(me.loop);
	remove_files();
}
