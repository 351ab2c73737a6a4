/* The event loop on real sockets: first of all the traps that were measured with libevent's own socket events. */
#include "daemon/loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tcp_pair.h"
#include "unit.h"

/* Callbacks ignore most of what they are given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define MS 1000000LL
#define DEADLINE (30000 * MS) /* a test that waits longer has failed */

static struct loop *lp;
static int64_t stop_at; /* absolute */
static unsigned turns;

/* What is waited for: at least so much in a counter, or one of the bits. */
static const unsigned *watched_value;
static unsigned at_least, bits;

static bool
is_there(void)
{
	return watched_value != NULL && (bits != 0 ? (*watched_value & bits) != 0 : *watched_value >= at_least);
}

/* Ends the run when what is waited for is there, or at stop_at. */
static int64_t
test_turn(void *arg, int64_t now_ns)
{
	turns++;
	if (now_ns >= stop_at || is_there()) {
		loop_stop(lp);
		return INT64_MAX;
	}
	return stop_at;
}

static void
setup(void)
{
	lp = loop_new();
	ck_assert_ptr_nonnull(lp);
	turns = 0;
	watched_value = NULL;
	ck_assert_int_eq(loop_add_turn(lp, test_turn, NULL), 0);
}

static void
teardown(void)
{
	loop_free(lp);
}

static void
run_for(int64_t ns)
{
	watched_value = NULL;
	stop_at = loop_now(lp) + ns;
	ck_assert_int_eq(loop_run(lp), 0);
}

static void
run_until(const unsigned *value, unsigned least, unsigned any_of)
{
	watched_value = value;
	at_least = least;
	bits = any_of;
	stop_at = loop_now(lp) + DEADLINE;
	ck_assert_int_eq(loop_run(lp), 0);
	ck_assert_msg(is_there(), "the condition never came true");
}

static void
reset(int fd)
{
	struct linger l = { .l_onoff = 1 };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	close(fd);
}

/* A watched socket that only remembers what it was told. */
struct watched {
	struct loop_io io;
	unsigned seen;
	unsigned calls;
};

static struct watched w[2];

static void
note(struct loop_io *io, unsigned events)
{
	struct watched *me = (struct watched *)io;

	me->seen |= events;
	me->calls++;
}

static void
watch(struct watched *me, int fd, void (*cb)(struct loop_io *, unsigned))
{
	*me = (struct watched){ .io = { .fd = fd, .cb = cb } };
	ck_assert_int_eq(loop_add(lp, &me->io), 0);
}

static void
run_until_seen(unsigned event)
{
	run_until(&w[0].seen, 0, event);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(a_reset_of_a_paused_socket_is_seen)
{
	int sv[2];

	/* Paused: bytes are waiting and nobody reads them. */
	tcp_pair(sv);
	ck_assert_int_eq(send(sv[0], "abc", 3, 0), 3);
	watch(&w[0], sv[1], note);
	run_until_seen(LOOP_READ);
	reset(sv[0]);
	run_until_seen(LOOP_ERR);
	ck_assert_uint_eq(w[0].seen & LOOP_HUP, LOOP_HUP);
	loop_del(lp, &w[0].io);
	close(sv[1]);
}

START_TEST(neither_reset_nor_fin_nor_bytes_left_unread_spin)
{
	int sv[2][2];

	tcp_pair(sv[0]);
	tcp_pair(sv[1]);
	watch(&w[0], sv[0][1], note);
	watch(&w[1], sv[1][1], note);
	ck_assert_int_eq(send(sv[1][0], "abc", 3, 0), 3);
	shutdown(sv[1][0], SHUT_WR);
	reset(sv[0][0]);
	run_until_seen(LOOP_ERR);
	turns = 0;
	run_for(50 * MS);
	ck_assert_uint_le(turns, 5);
	for (int i = 0; i < 2; i++) {
		loop_del(lp, &w[i].io);
		close(sv[i][1]);
	}
	close(sv[1][0]);
}

START_LOOP_TEST(a_lone_urgent_byte_is_seen, 0, 2)
{
	int sv[2], on = _i;

	tcp_pair(sv);
	ck_assert_int_eq(setsockopt(sv[1], SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)), 0);
	watch(&w[0], sv[1], note);
	ck_assert_int_eq(send(sv[0], "!", 1, MSG_OOB), 1);
	run_until_seen(LOOP_URGENT);
	/* The second one in a row too, though the first was not read. */
	w[0].seen = 0;
	ck_assert_int_eq(send(sv[0], "?", 1, MSG_OOB), 1);
	run_until_seen(LOOP_URGENT);
	loop_del(lp, &w[0].io);
	close(sv[0]);
	close(sv[1]);
}

static unsigned pongs, flushes, pongs_at_flush;

/* Keeps its peer readable for ever. */
static void
ping_pong(struct loop_io *io, unsigned events)
{
	char c;

	if ((events & LOOP_READ) != 0 && recv(io->fd, &c, 1, 0) == 1) {
		pongs++;
		ck_assert_int_eq(send(io->fd, &c, 1, 0), 1);
	}
}

static int64_t
flush_turn(void *arg, int64_t now_ns)
{
	flushes++;
	ck_assert_uint_le(pongs - pongs_at_flush, 2);
	pongs_at_flush = pongs;
	return INT64_MAX;
}

START_TEST(busy_sockets_do_not_starve_the_turn_functions)
{
	int sv[2];

	tcp_pair(sv);
	watch(&w[0], sv[0], ping_pong);
	watch(&w[1], sv[1], ping_pong);
	ck_assert_int_eq(loop_add_turn(lp, flush_turn, NULL), 0);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	run_until(&pongs, 1000, 0);
	ck_assert_uint_ge(flushes, 500);
	loop_del(lp, &w[0].io);
	loop_del(lp, &w[1].io);
	close(sv[0]);
	close(sv[1]);
}

static struct watched *victim[2];
static unsigned survivors;

/* Whoever comes first removes both; the other's event of this turn must not arrive. */
static void
remove_both(struct loop_io *io, unsigned events)
{
	survivors++;
	for (int i = 0; i < 2; i++) {
		loop_del(lp, &victim[i]->io);
		close(victim[i]->io.fd);
		memset(victim[i], 0xee, sizeof(*victim[i]));
		free(victim[i]);
	}
}

START_TEST(no_event_arrives_after_loop_del_in_the_same_turn)
{
	int sv[2][2];

	for (int i = 0; i < 2; i++) {
		tcp_pair(sv[i]);
		ck_assert_int_eq(send(sv[i][0], "x", 1, 0), 1);
		victim[i] = malloc(sizeof(*victim[i]));
		watch(victim[i], sv[i][1], remove_both);
	}
	run_until(&survivors, 1, 0);
	run_for(20 * MS);
	ck_assert_uint_eq(survivors, 1);
	close(sv[0][0]);
	close(sv[1][0]);
}

static unsigned arrived;

static void
count_first(struct loop_io *io, unsigned events)
{
	arrived++;
}

enum { CROWD = 700 };

START_TEST(more_ready_sockets_than_a_batch_are_all_served)
{
	static struct loop_io io[CROWD];

	for (int i = 0; i < CROWD; i++) {
		io[i] = (struct loop_io){ .fd = socket(AF_INET, SOCK_DGRAM, 0), .cb = count_first };
		ck_assert_int_eq(loop_add(lp, &io[i]), 0);
	}
	run_until(&arrived, CROWD, 0);
	ck_assert_uint_eq(arrived, CROWD);
	for (int i = 0; i < CROWD; i++) {
		loop_del(lp, &io[i]);
		close(io[i].fd);
	}
}

static unsigned signals;

static void
on_usr1(void *arg)
{
	signals += *(unsigned *)arg;
}

START_TEST(signals_arrive_in_the_loop)
{
	unsigned one = 1;

	ck_assert_int_eq(loop_signal(lp, SIGUSR1, on_usr1, &one), 0);
	kill(getpid(), SIGUSR1);
	run_until(&signals, 1, 0);
	kill(getpid(), SIGUSR1);
	run_until(&signals, 2, 0);
}

static int64_t
sleepless_turn(void *arg, int64_t now_ns)
{
	return INT64_MIN;
}

START_TEST(signals_arrive_in_a_loop_that_never_sleeps)
{
	unsigned one = 1;

	ck_assert_int_eq(loop_signal(lp, SIGUSR1, on_usr1, &one), 0);
	ck_assert_int_eq(loop_add_turn(lp, sleepless_turn, NULL), 0);
	kill(getpid(), SIGUSR1);
	run_until(&signals, 1, 0);
}

static void
remove_victim(void *arg)
{
	loop_del(lp, &w[0].io);
	w[0].io.fd = -1;
	signals++;
}

/* The signal comes first, and the event of the socket is fetched with it. */
START_TEST(no_event_arrives_after_loop_del_by_a_signal)
{
	int sv[2];

	tcp_pair(sv);
	ck_assert_int_eq(loop_signal(lp, SIGUSR1, remove_victim, NULL), 0);
	kill(getpid(), SIGUSR1);
	watch(&w[0], sv[1], note);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	run_until(&signals, 1, 0);
	run_for(20 * MS);
	ck_assert_uint_eq(w[0].calls, 0);
	close(sv[0]);
	close(sv[1]);
}

static int64_t
cpu_ns(void)
{
	struct timespec ts;

	ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static unsigned hits;

static int64_t
count_hits(void *arg, int64_t now_ns)
{
	hits = (unsigned)loop_spin_counters(lp)->hits;
	return INT64_MAX;
}

/* Two descriptors in one loop: a wait finds an event at its first look. */
START_TEST(a_loop_that_may_spin_does_so_when_waits_are_short)
{
	int sv[2];

	tcp_pair(sv);
	loop_set_spin(lp, 200000);
	watch(&w[0], sv[0], ping_pong);
	watch(&w[1], sv[1], ping_pong);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	ck_assert_int_eq(loop_add_turn(lp, count_hits, NULL), 0);
	run_until(&hits, 100, 0); /* beside other load it stops now and then */
	loop_del(lp, &w[0].io);
	loop_del(lp, &w[1].io);
	close(sv[0]);
	close(sv[1]);
	/* Idle: no more than a few times. */
	run_for(20 * MS);
	uint64_t spins = loop_spin_counters(lp)->spins;
	int64_t used = cpu_ns();

	run_for(300 * MS);
	ck_assert_int_lt(cpu_ns() - used, 10 * MS);
	ck_assert_uint_le(loop_spin_counters(lp)->spins - spins, 3);
}

START_TEST(a_loop_spins_only_if_configured)
{
	int sv[2];

	tcp_pair(sv);
	watch(&w[0], sv[0], ping_pong);
	watch(&w[1], sv[1], ping_pong);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	run_until(&pongs, 5000, 0);
	ck_assert_uint_eq(loop_spin_counters(lp)->spins, 0);
	loop_del(lp, &w[0].io);
	loop_del(lp, &w[1].io);
	close(sv[0]);
	close(sv[1]);
}

static unsigned at_once;

static int64_t
busy_turn(void *arg, int64_t now_ns)
{
	return ++at_once <= 100 ? INT64_MIN : INT64_MAX;
}

START_TEST(a_turn_function_may_run_again_at_once_or_at_a_time)
{
	ck_assert_int_eq(loop_add_turn(lp, busy_turn, NULL), 0);
	int64_t from = loop_now(lp);
	run_until(&at_once, 100, 0);
	ck_assert_int_lt(loop_now(lp) - from, 1000 * MS);
	from = loop_now(lp);
	run_for(30 * MS);
	ck_assert_int_ge(loop_now(lp) - from, 30 * MS);
	ck_assert_int_lt(loop_now(lp) - from, 1000 * MS);
}

static unsigned alarms;

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old);

int
__wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old)
{
	alarms++;
	return __real_timerfd_settime(fd, flags, to, old);
}

static int64_t
soon_turn(void *arg, int64_t now_ns)
{
	return now_ns + 5 * MS;
}

/* However often an event ends a sleep earlier, and the next one begins. */
START_TEST(the_alarm_is_not_set_before_the_last_one_has_gone_off)
{
	int sv[2];

	tcp_pair(sv);
	watch(&w[0], sv[0], ping_pong);
	watch(&w[1], sv[1], ping_pong);
	ck_assert_int_eq(loop_add_turn(lp, soon_turn, NULL), 0);
	alarms = 0;
	int64_t from = loop_now(lp);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	run_until(&pongs, 5000, 0);
	/* One for each of these times, and a first one. */
	ck_assert_int_le(alarms, (loop_now(lp) - from) / (5 * MS) + 1);
	/* An earlier time replaces a later one. */
	loop_del_turn(lp, soon_turn, NULL);
	run_for(10 * MS);
	ck_assert_int_eq(send(sv[0], "x", 1, 0), 1);
	run_until(&pongs, pongs + 10, 0);
	loop_del(lp, &w[0].io);
	loop_del(lp, &w[1].io);
	close(sv[0]);
	close(sv[1]);
	from = loop_now(lp);
	run_for(20 * MS);
	ck_assert_int_lt(loop_now(lp) - from, 5000 * MS);
}

static unsigned asked;

/* Comes after test_turn, which has to see it at once nevertheless. */
static int64_t
asking_turn(void *arg, int64_t now_ns)
{
	if (asked++ == 0)
		loop_again(lp);
	return INT64_MAX;
}

/* -- a thread that stands still -- */

static unsigned stand_still_ms, fired;
static int64_t due_ns;

static int64_t
stalling_turn(void *arg, int64_t now_ns)
{
	const struct timespec ts = { .tv_sec = stand_still_ms / 1000, .tv_nsec = stand_still_ms % 1000 * MS };

	stand_still_ms = 0;
	(void)nanosleep(&ts, NULL);
	fired += now_ns >= due_ns;
	return due_ns;
}

/* The time that it stood still is no time of the loop: what was due in it has its full rest, and input comes first. */
START_TEST(time_stands_still_with_the_thread)
{
	int64_t from = loop_now(lp);

	fired = 0;
	due_ns = from + 800 * MS;
	stand_still_ms = 1500;
	ck_assert_int_eq(loop_add_turn(lp, stalling_turn, NULL), 0);
	run_for(400 * MS);
	ck_assert_uint_eq(fired, 0);
	ck_assert_int_lt(loop_now(lp) - from, 1400 * MS);
	run_until(&fired, 1, 0);
	ck_assert_int_ge(loop_now(lp), due_ns);
	loop_del_turn(lp, stalling_turn, NULL);
}

/* A turn that is slow each time does not stop the clock. */
START_TEST(slow_turns_let_time_pass)
{
	int64_t from = loop_now(lp);

	due_ns = INT64_MAX;
	ck_assert_int_eq(loop_add_turn(lp, stalling_turn, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		stand_still_ms = 1200;
		run_for(150 * MS);
	}
	ck_assert_int_ge(loop_now(lp) - from, 250 * MS);
	loop_del_turn(lp, stalling_turn, NULL);
}

START_TEST(another_turn_can_be_asked_for)
{
	int64_t from = loop_now(lp);

	ck_assert_int_eq(loop_add_turn(lp, asking_turn, NULL), 0);
	run_until(&asked, 1, 0);
	ck_assert_int_lt(loop_now(lp) - from, 1000 * MS);
}

static int64_t
vanishing_turn(void *arg, int64_t now_ns)
{
	++*(unsigned *)arg;
	loop_del_turn(lp, vanishing_turn, arg);
	return INT64_MIN;
}

START_TEST(a_turn_function_may_remove_itself)
{
	unsigned calls = 0;

	ck_assert_int_eq(loop_add_turn(lp, vanishing_turn, &calls), 0);
	run_for(5 * MS);
	run_for(5 * MS);
	ck_assert_uint_eq(calls, 1);
}

struct timely {
	int64_t told_ns;
	unsigned told_cnt;
};

static struct timely timely[2];

static void
take_time(void *arg, int64_t now_ns)
{
	struct timely *t = arg;

	t->told_ns = now_ns;
	t->told_cnt++;
}

static void
on_usr2(void *arg)
{
	ck_assert_uint_eq(timely[0].told_cnt, turns + 1);
	ck_assert_uint_eq(timely[1].told_cnt, turns + 1);
	signals++;
}

static int64_t
timely_turn(void *arg, int64_t now_ns)
{
	const struct timely *t = arg;

	ck_assert_int_eq(t->told_ns, now_ns);
	return INT64_MAX;
}

START_TEST(each_is_given_the_time_once_a_turn_before_all_else)
{
	for (unsigned i = 0; i < sizeof(timely) / sizeof(timely[0]); i++) {
		ck_assert_int_eq(loop_add_turn(lp, timely_turn, &timely[i]), 0);
		loop_set_clock(lp, take_time, &timely[i]);
	}
	ck_assert_int_eq(loop_signal(lp, SIGUSR2, on_usr2, NULL), 0);
	run_for(20 * MS);
	kill(getpid(), SIGUSR2);
	run_until(&signals, 1, 0);
	ck_assert_uint_eq(timely[0].told_cnt, turns);
	loop_del_turn(lp, timely_turn, &timely[0]);
	run_for(MS);
	ck_assert_uint_lt(timely[0].told_cnt, turns);
	ck_assert_uint_eq(timely[1].told_cnt, turns);
}
