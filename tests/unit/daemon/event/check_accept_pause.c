/* What the log tells of accepting that pauses: once for all sockets, with how often and how long. */
#include "daemon/event/accept_pause.h"

#include <errno.h>

#include "captured.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define PAUSED "warning: accepting paused: service=redis reason=\"Too many open files\" failures="
#define GOES_ON "notice: accepting goes on: service=redis failures="

static struct event_history news;
static struct accept_pauses all;
static struct accept_pause one, two, three;
static struct pause_place here;

static void
setup(void)
{
	ck_assert_int_eq(event_history_init(&news), 0);
	accept_pauses_init(&all, &news);
	one = two = three = (struct accept_pause){ 0 };
	here = (struct pause_place){ .now_ns = 1000 * S, .worker = 2, .service = "redis" };
	capture_begin(LOG_LVL_NOTICE);
}

static void
teardown(void)
{
	capture_end();
	accept_pauses_fini(&all);
	event_history_fini(&news);
}

static void
nothing(void)
{
	ck_assert_msg(capture_lines() == 0, "%s", captured.text);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(begin_and_end_are_reported_once)
{
	struct event_record r;

	for (unsigned i = 0; i < 37; i++) {
		accept_pauses_failed(&all, &one, &here, EMFILE);
		here.now_ns += S / 10;
	}
	capture_one_line(PAUSED "1\n");
	ck_assert(one.on);
	accept_pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "37 after_ms=3700\n");
	ck_assert(!one.on);
	ck_assert(event_history_next(&news, 1, &r));
	ck_assert_uint_eq(r.worker, 2);
	/* The next one has numbers of its own. */
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	here.now_ns += S;
	accept_pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "1 after_ms=1000\n");
}

START_TEST(a_socket_that_does_not_pause_tells_nothing)
{
	accept_pauses_over(&all, &one, &here);
	accept_pauses_over(&all, &one, NULL);
	nothing();
	accept_pauses_failed(&all, &two, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	accept_pauses_over(&all, &one, &here);
	accept_pauses_over(&all, &one, &here);
	nothing();
	accept_pauses_over(&all, &two, &here);
	capture_one_line(GOES_ON "1\n");
	accept_pauses_over(&all, &two, &here);
	nothing();
}

START_TEST(all_sockets_are_one)
{
	const struct pause_place control = { .now_ns = here.now_ns + 2 * S, .service = "" };

	accept_pauses_failed(&all, &one, &here, EMFILE);
	accept_pauses_failed(&all, &two, &here, EMFILE);
	accept_pauses_failed(&all, &three, &control, EMFILE);
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	accept_pauses_over(&all, &two, &here);
	accept_pauses_over(&all, &one, &here);
	nothing();
	/* Another one joins while it lasts. */
	accept_pauses_failed(&all, &two, &here, EMFILE);
	accept_pauses_over(&all, &two, &here);
	nothing();
	accept_pauses_over(&all, &three, &control);
	capture_one_line("notice: accepting goes on: failures=5 after_ms=2000\n");
}

START_TEST(another_reason_and_a_long_pause_are_reported_again)
{
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	accept_pauses_failed(&all, &one, &here, ENOBUFS);
	capture_one_line("service=redis reason=\"No buffer space available\" failures=2\n");
	accept_pauses_failed(&all, &one, &here, ENOBUFS);
	here.now_ns += 599 * S;
	accept_pauses_failed(&all, &one, &here, ENOBUFS);
	nothing();
	here.now_ns += S;
	accept_pauses_failed(&all, &one, &here, ENOBUFS);
	capture_one_line("failures=5\n");
	accept_pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "5 after_ms=600000\n");
}

START_TEST(a_flapping_pause_is_reported_four_times_a_minute)
{
	for (unsigned i = 0; i < 100; i++) {
		accept_pauses_failed(&all, &one, &here, EMFILE);
		here.now_ns += S / 4;
		accept_pauses_over(&all, &one, &here);
		here.now_ns += S / 4;
	}
	/* Each with its end: 50 s. */
	ck_assert_uint_eq(capture_lines(), 8);
	here.now_ns += 10 * S;
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
}

/* Another worker's turn may be later than ours. */
START_TEST(an_end_before_its_beginning_took_no_time)
{
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	here.now_ns -= S;
	accept_pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "1\n");
}

START_TEST(a_socket_that_is_closed_does_not_go_on)
{
	accept_pauses_failed(&all, &one, &here, EMFILE);
	accept_pauses_failed(&all, &two, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	accept_pauses_over(&all, &one, NULL);
	ck_assert(!one.on);
	accept_pauses_over(&all, &one, NULL);
	nothing();
	accept_pauses_over(&all, &two, &here);
	capture_one_line(GOES_ON "2\n");
	/* When it was the only one, it is over all the same. */
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	accept_pauses_over(&all, &one, NULL);
	nothing();
	accept_pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
}
