/* Soft iWARP's connections that linger, over TCP and both stacks of SCTP: so many, for so long, strangers apart from queue pairs. */
#include "rnic/siw/siw_int.h"
#include "unit.h"

#include <string.h>

#define MAX 64
#define TIME_NS INT64_C(2000000000)

static struct siw_dev dev;
static struct siw_linger all[SIW_LINGER_KINDS][MAX + 3];
static unsigned ended;
static const struct siw_linger *last;

static void
over(struct siw_linger *l)
{
	siw_linger_stop(l); /* as its owner does that frees it */
	last = l;
	ended++;
}

static void
start_all(enum siw_linger_kind kind, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		siw_linger_init(&all[kind][i], &dev, over);
		siw_linger_start(&all[kind][i], kind);
	}
}

static void
setup(void)
{
	memset(&dev, 0, sizeof(dev));
	ended = 0;
	timerq_init(&dev.timers);
	ck_assert_int_eq(timerq_reserve(&dev.timers, sizeof(all) / sizeof(all[0][0])), 0);
	for (unsigned kind = 0; kind < SIW_LINGER_KINDS; kind++)
		list_init(&dev.lingering[kind]);
}

START_TEST(the_oldest_of_its_kind_makes_room)
{
	setup();
	start_all(SIW_LINGER_QP, MAX);
	start_all(SIW_LINGER_UNKNOWN_PEER, MAX);
	ck_assert_uint_eq(ended, 0);
	siw_linger_init(&all[SIW_LINGER_UNKNOWN_PEER][MAX], &dev, over);
	siw_linger_start(&all[SIW_LINGER_UNKNOWN_PEER][MAX], SIW_LINGER_UNKNOWN_PEER);
	ck_assert_uint_eq(ended, 1);
	ck_assert_ptr_eq(last, &all[SIW_LINGER_UNKNOWN_PEER][0]);
	ck_assert_uint_eq(dev.stats.linger_refused, 1);
	ck_assert_uint_eq(dev.linger_cnt[SIW_LINGER_UNKNOWN_PEER], MAX);
	ck_assert_uint_eq(dev.linger_cnt[SIW_LINGER_QP], MAX);
	siw_linger_end_all(&dev);
	timerq_fini(&dev.timers);
}

START_TEST(each_has_its_time)
{
	setup();
	start_all(SIW_LINGER_QP, 2);
	dev.dev.now_ns = TIME_NS / 2;
	start_all(SIW_LINGER_UNKNOWN_PEER, 1);
	siw_linger_stop(&all[SIW_LINGER_QP][1]); /* over by itself, and twice is no harm */
	siw_linger_stop(&all[SIW_LINGER_QP][1]);
	timerq_run(&dev.timers, TIME_NS - 1);
	ck_assert_uint_eq(ended, 0);
	timerq_run(&dev.timers, TIME_NS);
	ck_assert_uint_eq(ended, 1);
	timerq_run(&dev.timers, TIME_NS + TIME_NS / 2);
	ck_assert_uint_eq(ended, 2);
	ck_assert_uint_eq(dev.linger_cnt[SIW_LINGER_QP] + dev.linger_cnt[SIW_LINGER_UNKNOWN_PEER], 0);
	ck_assert_uint_eq(dev.stats.linger_refused, 0);
	timerq_fini(&dev.timers);
}

START_TEST(all_end_with_the_device)
{
	setup();
	start_all(SIW_LINGER_QP, 3);
	start_all(SIW_LINGER_UNKNOWN_PEER, 5);
	siw_linger_end_all(&dev);
	ck_assert_uint_eq(ended, 8);
	ck_assert_uint_eq(dev.linger_cnt[SIW_LINGER_QP] + dev.linger_cnt[SIW_LINGER_UNKNOWN_PEER], 0);
	timerq_fini(&dev.timers);
}
