/* Connections that workers deal out to each other: whose turn it is, reloads in between, ends, a worker that does not look. */
#include "daemon/service/accept_balance.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "daemon/loop/mailbox.h"
#include "daemon/service/service.h"
#include "unit.h"

#define WORKERS 3
#define UNDER_WAY_MAX 64 /* of accept_balance.c */

static struct worker_peer all[WORKERS];
static struct session_pool pool[WORKERS];
static struct settings settings;
static struct service svc[WORKERS];
static struct mailbox mail[WORKERS];
static struct loop *loop;
static unsigned admitted[WORKERS];

static void
admit(struct service *s, int fd, const struct sockaddr_storage *peer)
{
	ck_assert_int_eq(peer->ss_family, AF_UNIX);
	admitted[s->pool->place.nr]++;
	close(fd);
}

static void
setup(void)
{
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	settings = (struct settings){ .cfg = { .kind = CONFIG_INGRESS, .name = "web" } };
	for (unsigned i = 0; i < WORKERS; i++) {
		ck_assert_int_eq(mailbox_init(&mail[i], loop), 0);
		all[i] = (struct worker_peer){ .mail = &mail[i], .pool = &pool[i] };
		pool[i] = (struct session_pool){ .place = { .nr = i, .cnt = WORKERS, .all = all } };
		list_init(&pool[i].services);
		svc[i] = (struct service){ .pool = &pool[i], .settings = &settings };
		list_push(&pool[i].services, &svc[i].node);
		admitted[i] = 0;
	}
}

static void
teardown(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		mailbox_fini(&mail[i]);
	loop_free(loop);
}

UNIT_FIXTURE(setup, teardown);

static const struct sockaddr_storage peer = { .ss_family = AF_UNIX };

/* The worker accepts one, whose other end is returned. */
static int
accept_one(unsigned nr, bool *dealt)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	*dealt = accept_balance(&svc[nr], fds[0], &peer, admit);
	if (!*dealt)
		admit(&svc[nr], fds[0], &peer);
	return fds[1];
}

static void
run_all(void)
{
	for (unsigned i = 0; i < WORKERS; i++)
		mailbox_run(&mail[i]);
}

static void
admitted_are(unsigned a, unsigned b, unsigned c)
{
	ck_assert_uint_eq(admitted[0], a);
	ck_assert_uint_eq(admitted[1], b);
	ck_assert_uint_eq(admitted[2], c);
}

START_TEST(all_get_the_same_number_from_any_acceptor)
{
	bool dealt;

	for (unsigned i = 0; i < 9; i++)
		close(accept_one(1, &dealt));
	run_all();
	admitted_are(3, 3, 3);
	close(accept_one(2, &dealt));
	ck_assert(!dealt); /* the first is one's own */
	close(accept_one(2, &dealt));
	close(accept_one(2, &dealt));
	run_all();
	admitted_are(4, 4, 4);
}

static void
closed_unread(int fd)
{
	char byte;

	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
}

START_TEST(a_worker_without_the_service_gives_it_back)
{
	bool dealt;

	list_remove(&svc[1].node);
	close(accept_one(0, &dealt));
	int fd = accept_one(0, &dealt);
	ck_assert(dealt);
	mailbox_run(&mail[1]);
	admitted_are(1, 0, 0);
	mailbox_run(&mail[0]);
	admitted_are(2, 0, 0);
	ck_assert_uint_eq(all[0].under_way + all[1].under_way, 0);
	close(fd);

	/* It went from both meanwhile. */
	close(accept_one(0, &dealt));
	close(accept_one(0, &dealt));
	fd = accept_one(0, &dealt);
	ck_assert(dealt);
	list_remove(&svc[0].node);
	mailbox_run(&mail[1]);
	mailbox_run(&mail[0]);
	closed_unread(fd);
	run_all();
	admitted_are(3, 0, 1);
}

/* One of the same name in the other direction is another one. */
START_TEST(the_kind_counts)
{
	struct settings egress = { .cfg = { .kind = CONFIG_EGRESS, .name = "web" } };
	bool dealt;

	svc[1].settings = &egress;
	close(accept_one(0, &dealt));
	close(accept_one(0, &dealt));
	ck_assert(dealt);
	run_all();
	run_all();
	admitted_are(2, 0, 0);
}

START_TEST(a_worker_that_has_ended_takes_none)
{
	bool dealt;

	close(accept_one(0, &dealt));
	int fd = accept_one(0, &dealt);
	ck_assert(dealt);
	all[1].pool = NULL;
	mailbox_run(&mail[1]);
	closed_unread(fd);
	admitted_are(1, 0, 0);
}

START_TEST(a_worker_that_does_not_look_gets_no_more)
{
	bool dealt;

	for (unsigned i = 0; i < WORKERS * 2 * UNDER_WAY_MAX; i++) {
		close(accept_one(0, &dealt));
		mailbox_run(&mail[2]);
		ck_assert_uint_le(all[1].under_way, UNDER_WAY_MAX);
	}
	admitted_are(3 * UNDER_WAY_MAX, 0, 2 * UNDER_WAY_MAX);
	mailbox_run(&mail[1]);
	admitted_are(3 * UNDER_WAY_MAX, UNDER_WAY_MAX, 2 * UNDER_WAY_MAX);
	close(accept_one(0, &dealt));
	close(accept_one(0, &dealt));
	ck_assert(dealt);
	run_all();
}
