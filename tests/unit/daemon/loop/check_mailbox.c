/* Mails between threads: order, wake-ups, a reader without a loop. */
#include "daemon/loop/mailbox.h"

#include <poll.h>
#include <stdint.h>

#include "base/list.h"
#include "unit.h"

#define MAILS 20000
#define WRITERS 3

static struct loop *loop;
static struct mailbox box;

static void
setup(void)
{
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	ck_assert_int_eq(mailbox_init(&box, loop), 0);
}

static void
teardown(void)
{
	mailbox_fini(&box);
	loop_free(loop);
}

UNIT_FIXTURE(setup, teardown);

struct numbered {
	struct mail mail;
	unsigned writer, nr;
};

static unsigned seen[WRITERS], total, expected;

static void
on_numbered(struct mail *mail)
{
	const struct numbered *n = CONTAINER_OF(mail, struct numbered, mail);

	ck_assert_uint_eq(n->nr, seen[n->writer]);
	seen[n->writer]++;
	if (++total == expected)
		loop_stop(loop);
}

struct writer {
	pthread_t thread;
	struct numbered mails[MAILS];
};

static void *
write_all(void *arg)
{
	struct writer *w = arg;

	for (unsigned i = 0; i < MAILS; i++)
		mailbox_post(&box, &w->mails[i].mail);
	return NULL;
}

START_TEST(mails_of_many_threads_come_each_once_and_in_order)
{
	struct writer *w = calloc(WRITERS, sizeof(*w));

	expected = WRITERS * MAILS;
	for (unsigned i = 0; i < WRITERS; i++) {
		for (unsigned k = 0; k < MAILS; k++)
			w[i].mails[k] = (struct numbered){ .mail = { .fn = on_numbered }, .writer = i, .nr = k };
		ck_assert_int_eq(pthread_create(&w[i].thread, NULL, write_all, &w[i]), 0);
	}
	ck_assert_int_eq(loop_run(loop), 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_join(w[i].thread, NULL);
		ck_assert_uint_eq(seen[i], MAILS);
	}
	free(w);
}

/* -- two loops that answer one another -- */

static struct loop *other_loop;
static struct mailbox other_box;
static struct mail ball;
static unsigned rallies;

static void on_serve(struct mail *);

static void
on_return(struct mail *mail)
{
	mail->fn = on_serve;
	mailbox_post(&box, mail);
}

static void
on_serve(struct mail *mail)
{
	if (++rallies == 1000) {
		loop_stop(loop);
		return;
	}
	mail->fn = on_return;
	mailbox_post(&other_box, mail);
}

static void
on_stop(struct mail *mail)
{
	(void)mail;
	loop_stop(other_loop);
}

static void *
run_other(void *arg)
{
	(void)arg;
	ck_assert_int_eq(loop_run(other_loop), 0);
	return NULL;
}

START_TEST(sleeping_loops_wake_each_other)
{
	struct mail stop = { .fn = on_stop };
	pthread_t thread;

	other_loop = loop_new();
	ck_assert_int_eq(mailbox_init(&other_box, other_loop), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, run_other, NULL), 0);
	ball.fn = on_serve;
	mailbox_post(&box, &ball);
	ck_assert_int_eq(loop_run(loop), 0);
	ck_assert_uint_eq(rallies, 1000);
	mailbox_post(&other_box, &stop);
	pthread_join(thread, NULL);
	mailbox_fini(&other_box);
	loop_free(other_loop);
}

/* -- a mail that posts mails; what is not run -- */

static unsigned ran;
static struct mail second;

static void
on_second(struct mail *mail)
{
	(void)mail;
	ran++;
}

static void
on_first(struct mail *mail)
{
	ran++;
	second.fn = on_second;
	mailbox_post(&box, &second);
	if (ran == 1)
		mailbox_post(&box, mail); /* it is the reader's again */
}

START_TEST(a_mail_may_be_posted_again_by_its_own_function)
{
	struct mail first = { .fn = on_first };

	mailbox_post(&box, &first);
	mailbox_run(&box);
	ck_assert_uint_eq(ran, 1); /* what came meanwhile waits */
	mailbox_wait(&box);
	ck_assert_uint_eq(ran, 3);
	mailbox_run(&box);
	ck_assert_uint_eq(ran, 4);
	mailbox_run(&box);
	ck_assert_uint_eq(ran, 4);
}

START_TEST(mails_taken_at_once_cause_one_wake_up)
{
	struct mail a = { .fn = on_second }, b = { .fn = on_second };
	struct pollfd p = { .fd = box.io.fd, .events = POLLIN };

	ck_assert_int_eq(poll(&p, 1, 0), 0);
	mailbox_post(&box, &a);
	mailbox_post(&box, &b);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	mailbox_run(&box);
	ck_assert_uint_eq(ran, 2);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
}
