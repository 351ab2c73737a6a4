/* Connections of a service over all workers, and the limits on them. */
#include "daemon/account/admission.h"

#include <stdatomic.h>

#include "addrs.h"
#include "unit.h"

#define THREADS 3
#define ROUNDS 20000
#define LIMIT 5

static struct admissions all;

static void
setup(void)
{
	admissions_init(&all);
}

static void
teardown(void)
{
	admissions_fini(&all);
}

UNIT_FIXTURE(setup, teardown);

static struct config_service
service(enum config_kind kind, const char *name, uint32_t max, uint32_t per_peer)
{
	struct config_service cfg = { .kind = kind, .max_connections = max, .max_per_peer = per_peer };

	strcpy(cfg.name, name);
	return cfg;
}

static union net_addr
source(const char *text)
{
	const struct sockaddr_storage ss = addr_of(text);
	union net_addr a;

	net_addr_set(&a, &ss);
	return a;
}

START_TEST(a_name_and_a_kind_are_one_service)
{
	const struct config_service web = service(CONFIG_INGRESS, "web", 1, 0),
	                            db = service(CONFIG_INGRESS, "db", 1, 0), out = service(CONFIG_EGRESS, "web", 1, 0);
	struct admission *a = admission_get(&all, &web), *b = admission_get(&all, &db), *c = admission_get(&all, &out);

	ck_assert(a != b && a != c && b != c);
	ck_assert_ptr_eq(admission_get(&all, &web), a);
	admission_put(&all, a);
	/* Once it is no longer configured, the next one begins anew, while the old one's connections are counted off. */
	const union net_addr peer = source("192.0.2.1");
	ck_assert_int_eq(admission_take(a, &web, &peer), ADMISSION_OK);
	admission_retire(&all, a);
	struct admission *next = admission_get(&all, &web);
	ck_assert_ptr_ne(next, a);
	ck_assert_int_eq(admission_take(next, &web, &peer), ADMISSION_OK);
	admission_give(next, &peer);
	admission_give(a, &peer);
	admission_put(&all, next);
	admission_put(&all, a);
	admission_put(&all, b);
	admission_put(&all, c);
}

START_TEST(limits_are_for_all_and_for_each_source)
{
	const struct config_service cfg = service(CONFIG_INGRESS, "web", 3, 2);
	const union net_addr one = source("192.0.2.1"), two = source("192.0.2.2");
	struct admission *a = admission_get(&all, &cfg);

	ck_assert_int_eq(admission_take(a, &cfg, &one), ADMISSION_OK);
	ck_assert_int_eq(admission_take(a, &cfg, &one), ADMISSION_OK);
	ck_assert_int_eq(admission_take(a, &cfg, &one), ADMISSION_PER_PEER);
	ck_assert_int_eq(admission_take(a, &cfg, &two), ADMISSION_OK);
	ck_assert_int_eq(admission_take(a, &cfg, &two), ADMISSION_MAX);
	admission_give(a, &one);
	ck_assert_int_eq(admission_take(a, &cfg, &two), ADMISSION_OK);
	admission_give(a, NULL); /* one whose source was not counted */
	ck_assert_int_eq(admission_take(a, &cfg, &two), ADMISSION_PER_PEER);
	ck_assert_int_eq(admission_take(a, &cfg, &one), ADMISSION_OK);
	admission_give(a, &one);
	admission_give(a, &one);
	admission_give(a, &two);
	admission_put(&all, a);
}

/* Processes of one user are one source, whichever worker accepts them. */
START_TEST(a_user_of_a_unix_socket_is_a_source)
{
	const struct config_service cfg = service(CONFIG_INGRESS, "web", 5, 1);
	const union net_addr one = { .un = { .family = AF_UNIX, .uid = 7, .pid = 100 } },
	                     again = { .un = { .family = AF_UNIX, .uid = 7, .pid = 101 } },
	                     two = { .un = { .family = AF_UNIX, .uid = 8, .pid = 102 } };
	struct admission *a = admission_get(&all, &cfg);

	ck_assert_int_eq(admission_take(a, &cfg, &one), ADMISSION_OK);
	ck_assert_int_eq(admission_take(a, &cfg, &again), ADMISSION_PER_PEER);
	ck_assert_int_eq(admission_take(a, &cfg, &two), ADMISSION_OK);
	admission_give(a, &one);
	ck_assert_int_eq(admission_take(a, &cfg, &again), ADMISSION_OK);
	admission_give(a, &again);
	admission_give(a, &two);
	admission_put(&all, a);
}

/* -- threads -- */

static struct config_service shared;
static _Atomic unsigned inside, most, refused;

static void *
come_and_go(void *arg)
{
	const union net_addr peer = source("192.0.2.1");
	struct admission *a = admission_get(&all, &shared);

	(void)arg;
	/* On a busy machine one thread may be through before the next one runs: all go on until they have met. */
	for (unsigned i = 0; i < ROUNDS || refused == 0; i++) {
		unsigned got = 0;

		for (; got < LIMIT && admission_take(a, &shared, &peer) == ADMISSION_OK; got++) {
			unsigned now = ++inside, was = most;

			while (now > was && !atomic_compare_exchange_weak(&most, &was, now))
				;
		}
		refused += got < LIMIT;
		for (; got > 0; got--) {
			inside--;
			admission_give(a, &peer);
		}
	}
	admission_put(&all, a);
	return NULL;
}

START_TEST(threads_together_keep_the_limit)
{
	pthread_t thread[THREADS];

	shared = service(CONFIG_INGRESS, "web", LIMIT, 0);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(inside, 0);
	ck_assert_uint_le(most, LIMIT);
	ck_assert_uint_gt(refused, 0);
	ck_assert(list_empty(&all.list));
}
