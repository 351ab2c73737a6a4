/* Events on their way: what is kept, what is left out, whom they wake; fields of the journal's entries. */
#include <pthread.h>
#include <string.h>

#include "captured.h"
#include "daemon/event/event_history.h"
#include "unit.h"

#define S INT64_C(1000000000)

static struct event_history news;

static void
setup(void)
{
	ck_assert_int_eq(event_history_init(&news), 0);
	capture_begin(LOG_LVL_NOTICE);
}

static void
teardown(void)
{
	capture_end();
	event_history_fini(&news);
	event_history_fini(&news); /* twice does no harm */
}

UNIT_FIXTURE(setup, teardown);

static struct event
event(enum event_kind kind, uint64_t group)
{
	return (struct event){ .kind = kind, .group = group, .peer = "192.0.2.1" };
}

static unsigned
count(const char *what)
{
	unsigned n = 0;

	for (const char *p = captured.text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

START_TEST(a_reported_event_is_logged_and_kept)
{
	struct event e = event(EVENT_GROUP_UP, 7);
	struct event_record r;

	ck_assert(!event_history_next(&news, 0, &r));
	event_report(&news, S, 3, &e);
	capture_take();
	ck_assert_uint_eq(count("notice: link group up: group=7 peer=192.0.2.1\n"), 1);
	ck_assert(event_history_next(&news, 0, &r));
	ck_assert_uint_eq(r.nr, 1);
	ck_assert_uint_eq(r.worker, 3);
	ck_assert_uint_eq(r.event.group, 7);
	ck_assert_int_gt(r.time_us, 0);
	ck_assert(!event_history_next(&news, 1, &r));
	ck_assert_uint_eq(event_history_last(&news), 1);
}

START_TEST(the_level_is_of_the_log_alone)
{
	struct event e = event(EVENT_GROUP_UP, 7);

	log_set_level(LOG_LVL_ERROR);
	event_report(&news, S, 1, &e);
	ck_assert_str_eq(capture_take(), "");
	ck_assert_uint_eq(event_history_last(&news), 1);
}

START_TEST(what_comes_too_often_is_counted_each_kind_on_its_own)
{
	struct event up = event(EVENT_LINK_UP, 1), down = event(EVENT_LINK_DOWN, 1);
	struct event_record r;

	for (int i = 0; i < 100; i++)
		event_report(&news, S, 1, &up);
	event_report(&news, S, 1, &down);
	capture_take();
	ck_assert_uint_eq(count("link up"), EVENT_HISTORY_BURST);
	ck_assert_uint_eq(count("link down"), 1);
	event_report(&news, 3 * S, 1, &up);
	capture_take();
	ck_assert_uint_eq(count("similar log lines suppressed: count=80"), 1);
	ck_assert_uint_eq(count("link up"), 1);
	ck_assert(event_history_next(&news, EVENT_HISTORY_BURST + 1, &r));
	ck_assert_uint_eq(r.left_out, 100 - EVENT_HISTORY_BURST);
	ck_assert_uint_eq(event_history_last(&news), EVENT_HISTORY_BURST + 2);
}

START_TEST(the_oldest_make_room)
{
	struct event e = event(EVENT_LINK_UP, 0);
	struct event_record r;

	for (unsigned i = 1; i <= EVENT_HISTORY_KEPT + 10; i++) {
		e.group = i;
		event_report(&news, 2 * S * i, 1, &e);
	}
	capture_take();
	ck_assert(event_history_next(&news, 0, &r));
	ck_assert_uint_eq(r.nr, 11);
	ck_assert_uint_eq(r.event.group, 11);
	ck_assert(event_history_next(&news, EVENT_HISTORY_KEPT + 9, &r));
	ck_assert_uint_eq(r.event.group, EVENT_HISTORY_KEPT + 10);
}

/* As long as one likes, and of as many kinds as a stranger can bring about. */
START_TEST(what_comes_often_does_not_empty_the_history_of_others)
{
	struct event rare = event(EVENT_LINK_DOWN, 1), often = event(EVENT_PROTOCOL_VIOLATION, 2);
	struct event other = event(EVENT_LINK_REFUSED, 3);
	struct event_record r;
	unsigned seen = 0, rares = 0;

	for (unsigned i = 0; i < 40; i++)
		event_report(&news, 2 * S * i, 1, &rare);
	for (unsigned i = 0; i < 5000; i++) {
		event_report(&news, S * (100 + i), 1, &often);
		event_report(&news, S * (100 + i), 1, &other);
	}
	for (uint64_t at = 0; event_history_next(&news, at, &r); at = r.nr, seen++) {
		ck_assert_uint_gt(r.nr, at);
		ck_assert_uint_eq(r.event.group,
		    r.event.kind == EVENT_LINK_DOWN          ? 1
		        : r.event.kind == EVENT_LINK_REFUSED ? 3
		                                             : 2);
		rares += r.event.kind == EVENT_LINK_DOWN;
	}
	ck_assert_uint_eq(seen, EVENT_HISTORY_KEPT);
	ck_assert_uint_eq(rares, 40);
	ck_assert_uint_eq(r.nr, event_history_last(&news));
}

START_TEST(strangers_have_few_lines_and_a_count)
{
	struct event e = event(EVENT_UNKNOWN_PEER, 0);

	for (int i = 0; i < 3000; i++)
		event_report(&news, S + i * S / 50, 1, &e); /* a minute */
	capture_take();
	ck_assert_uint_eq(count("no SMC-R peer"), EVENT_HISTORY_BURST);
	event_report(&news, 62 * S, 1, &e);
	capture_take();
	ck_assert_uint_eq(count("similar log lines suppressed: count=2980"), 1);
}

START_TEST(what_a_peer_says_makes_no_line_of_its_own)
{
	struct event e = event(EVENT_LINK_DOWN, 1);
	struct event_record r;

	strcpy(e.host, "a\nb\"c\x7f");
	event_report(&news, S, 1, &e);
	capture_take();
	ck_assert_uint_eq(count("host=a?b'c?"), 1);
	ck_assert_uint_eq(count("\n"), 1);
	ck_assert(event_history_next(&news, 0, &r));
	ck_assert_str_eq(r.event.host, "a?b'c?");
}

START_TEST(without_a_place_there_is_the_line)
{
	struct event e = event(EVENT_LINK_DOWN, 1);

	event_report(NULL, S, 1, &e);
	capture_take();
	ck_assert_uint_eq(count("link down"), 1);
}

static void *
tell_many(void *arg)
{
	struct event e = event((enum event_kind)(uintptr_t)arg, 1);

	for (int i = 0; i < 2000; i++)
		event_report(&news, i * S / 20, 1, &e);
	return NULL;
}

START_TEST(threads_tell_at_once)
{
	struct loop *loop = loop_new();
	struct mailbox box;
	struct event_record r;
	pthread_t threads[4];

	ck_assert_int_eq(mailbox_init(&box, loop), 0);
	event_history_wake(&news, &box);
	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, tell_many, (void *)(EVENT_GROUP_UP + i)), 0);
	for (uint64_t at = 0; at < 4 * 2000;) {
		if (event_history_next(&news, at, &r)) {
			ck_assert_uint_gt(r.nr, at);
			at = r.nr;
		} else {
			mailbox_wait(&box);
		}
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	event_history_wake(&news, NULL);
	mailbox_run(&box);
	mailbox_fini(&box);
	loop_free(loop);
}
