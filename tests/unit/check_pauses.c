/* What the log tells of accepting that pauses: once for all sockets, with how often and how long. */
#include "daemon/event/pauses.h"

#include <errno.h>

#include "captured.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define PAUSED "warning: accepting paused: service=redis reason=\"Too many open files\" failures="
#define GOES_ON "notice: accepting goes on: service=redis failures="

static struct news news;
static struct pauses all;
static struct pause one, two, three;
static struct pause_place here;

static void
setup(void)
{
	ck_assert_int_eq(news_init(&news), 0);
	pauses_init(&all, &news);
	one = two = three = (struct pause){ 0 };
	here = (struct pause_place){ .now_ns = 1000 * S, .worker = 2, .service = "redis" };
	capture_begin(LOG_LVL_NOTICE);
}

static void
teardown(void)
{
	capture_end();
	pauses_fini(&all);
	news_fini(&news);
}

static void
nothing(void)
{
	ck_assert_msg(capture_lines() == 0, "%s", captured.text);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(the_beginning_and_the_end_are_told_once)
{
	struct event_record r;

	for (unsigned i = 0; i < 37; i++) {
		pauses_failed(&all, &one, &here, EMFILE);
		here.now_ns += S / 10;
	}
	capture_one_line(PAUSED "1\n");
	ck_assert(one.on);
	pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "37 after_ms=3700\n");
	ck_assert(!one.on);
	ck_assert(news_next(&news, 1, &r));
	ck_assert_uint_eq(r.worker, 2);
	/* The next one has numbers of its own. */
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	here.now_ns += S;
	pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "1 after_ms=1000\n");
}

START_TEST(a_socket_that_does_not_pause_tells_nothing)
{
	pauses_over(&all, &one, &here);
	pauses_forget(&all, &one);
	nothing();
	pauses_failed(&all, &two, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	pauses_over(&all, &one, &here);
	pauses_over(&all, &one, &here);
	nothing();
	pauses_over(&all, &two, &here);
	capture_one_line(GOES_ON "1\n");
	pauses_over(&all, &two, &here);
	nothing();
}

START_TEST(all_sockets_are_one)
{
	const struct pause_place control = { .now_ns = here.now_ns + 2 * S, .service = "" };

	pauses_failed(&all, &one, &here, EMFILE);
	pauses_failed(&all, &two, &here, EMFILE);
	pauses_failed(&all, &three, &control, EMFILE);
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	pauses_over(&all, &two, &here);
	pauses_over(&all, &one, &here);
	nothing();
	/* Another one joins while it lasts. */
	pauses_failed(&all, &two, &here, EMFILE);
	pauses_over(&all, &two, &here);
	nothing();
	pauses_over(&all, &three, &control);
	capture_one_line("notice: accepting goes on: failures=5 after_ms=2000\n");
}

START_TEST(another_reason_is_told_and_a_long_pause_again)
{
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	pauses_failed(&all, &one, &here, ENOBUFS);
	capture_one_line("service=redis reason=\"No buffer space available\" failures=2\n");
	pauses_failed(&all, &one, &here, ENOBUFS);
	here.now_ns += 599 * S;
	pauses_failed(&all, &one, &here, ENOBUFS);
	nothing();
	here.now_ns += S;
	pauses_failed(&all, &one, &here, ENOBUFS);
	capture_one_line("failures=5\n");
	pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "5 after_ms=600000\n");
}

START_TEST(what_comes_and_goes_is_told_four_times_a_minute)
{
	for (unsigned i = 0; i < 100; i++) {
		pauses_failed(&all, &one, &here, EMFILE);
		here.now_ns += S / 4;
		pauses_over(&all, &one, &here);
		here.now_ns += S / 4;
	}
	/* Each with its end: 50 s. */
	ck_assert_uint_eq(capture_lines(), 8);
	here.now_ns += 10 * S;
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
}

/* Another worker's turn may be later than ours. */
START_TEST(an_end_before_its_beginning_took_no_time)
{
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	here.now_ns -= S;
	pauses_over(&all, &one, &here);
	capture_one_line(GOES_ON "1\n");
}

START_TEST(a_socket_that_is_closed_does_not_go_on)
{
	pauses_failed(&all, &one, &here, EMFILE);
	pauses_failed(&all, &two, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	pauses_forget(&all, &one);
	ck_assert(!one.on);
	pauses_forget(&all, &one);
	nothing();
	pauses_over(&all, &two, &here);
	capture_one_line(GOES_ON "2\n");
	/* When it was the only one, it is over all the same. */
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
	pauses_forget(&all, &one);
	nothing();
	pauses_failed(&all, &one, &here, EMFILE);
	capture_one_line(PAUSED "1\n");
}
