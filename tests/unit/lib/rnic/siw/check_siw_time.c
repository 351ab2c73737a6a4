/* Soft iWARP's time limits on a loop that sleeps: each counts from the turn that began it, and nothing but its own timer
 * wakes the device. The time is virtual from the moment that a test sets it. */
#include <netinet/tcp.h>

#include "rnic/siw/tcp/siw_tcp.h"
#include "siw_ends.h"

#define MS 1000000LL
#define LONG (60000 * MS) /* the device was idle for that long */

/* What a loop without news does: it sleeps until the deadline. */
static int64_t
sleep_on(struct end *e)
{
	int64_t at = e->dev->ops->deadline(e->dev);

	ck_assert_int_lt(at, INT64_MAX);
	e->dev->now_ns = at;
	e->dev->ops->progress(e->dev, at);
	collect(e);
	e->dev->ops->flush(e->dev);
	return at;
}

/* The device's last turn was long ago; a new one has begun, whose work the device does only after its user's calls. */
static int64_t
idle(struct end *e)
{
	int64_t now = poll_loop_now() + 1000 * MS;

	e->dev->now_ns = now;
	e->dev->ops->progress(e->dev, now);
	e->dev->ops->flush(e->dev);
	return e->dev->now_ns = now + LONG;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(connecting_has_its_time)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote rb = remote(&b);
	int64_t from = idle(&a);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	ck_assert_int_eq(sleep_on(&a) - from, c.connect_ms * MS);
	ck_assert_uint_eq(a.failed, 1);
}

START_TEST(being_connected_to_has_its_time)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote ra = remote(&a);
	int64_t from = idle(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	ck_assert_int_eq(sleep_on(&b) - from, c.connect_ms * MS);
	ck_assert_uint_eq(b.failed, 1);
}

START_TEST(an_answer_has_its_time)
{
	struct siw_config c = config();

	open_connected(&c);
	int64_t from = idle(&a);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	a.dev->ops->fence(a.qp);
	a.dev->ops->flush(a.dev);
	ck_assert_int_eq(sleep_on(&a) - from, c.answer_ms * MS);
	ck_assert_uint_eq(a.silences, 1);
	ck_assert_int_eq(sleep_on(&a) - from, 2 * c.answer_ms * MS);
	ck_assert_uint_eq(a.silences, 2);
	ck_assert_uint_eq(a.errors, 0);
}

START_TEST(confirmation_has_its_time)
{
	struct siw_config c = config();

	open_connected(&c);
	int64_t from = idle(&a);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	a.dev->ops->flush(a.dev);
	ck_assert_int_eq(sleep_on(&a) - from, c.fence_ms * MS);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
	ck_assert_int_eq(sleep_on(&a) - from, (c.fence_ms + c.answer_ms) * MS);
	ck_assert_uint_eq(a.silences, 1);
}

/* -- a socket whose send buffer is full -- */

#define SNDBUF 140000      /* the kernel takes twice that */
#define SNDBUF_MORE 205000 /* there is room again, but less than a third: no event says so */

/* Until the kernel takes no more from a, because of the send buffer alone. The path has this round trip. */
static struct siw_tcp *
full_sndbuf(int64_t rtt_ns)
{
	struct siw_tcp *t = siw_qp(a.qp)->tcp;
	const int sndbuf = SNDBUF, unsent = INT32_MAX;

	run_b = NULL;
	ck_assert_int_eq(setsockopt(t->wire.fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)), 0);
	ck_assert_int_eq(setsockopt(t->wire.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)), 0);
	/* What the peer's kernel still takes meanwhile makes room. */
	for (unsigned quiet = 0; quiet < 100; quiet = siw_qp(a.qp)->tx_blocked ? quiet + 1 : 0) {
		while (room(&a).wrs > 4001 && room(&a).bytes > 0)
			post(&a, RNIC_WR_WRITE, 1, 0, 0, 4000, &b, 0);
		siw_qp(a.qp)->rtt_ns = rtt_ns;
		siw_qp(a.qp)->rtt_asked_ns = a.dev->now_ns;
		run_ms(1);
	}
	return t;
}

/* False if the buffer was not full: the peer's kernel took something late, without an event. */
static bool
enlarge_sndbuf(const struct siw_tcp *t)
{
	const int more = SNDBUF_MORE;
	uint64_t sent = stats(&a).bytes_sent;

	ck_assert_int_eq(setsockopt(t->wire.fd, SOL_SOCKET, SO_SNDBUF, &more, sizeof(more)), 0);
	turn_one(&a, 1);
	return stats(&a).bytes_sent == sent;
}

static void
open_deep(void)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8000, 16, TOKEN);
	connect_ends();
}

/* Else a third of the buffer would stay empty over a path that could hold all of it. */
START_TEST(far_away_a_full_send_buffer_is_filled_again_early)
{
	open_deep();
	struct siw_tcp *t = full_sndbuf(160 * MS);
	uint64_t sent = stats(&a).bytes_sent;
	int64_t before = a.dev->now_ns, first = sleep_on(&a);

	ck_assert_int_le(first - before, 10 * MS);
	ck_assert_uint_eq(stats(&a).bytes_sent, sent);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev) - first, 10 * MS);
	ck_assert(enlarge_sndbuf(t));
	ck_assert_int_eq(sleep_on(&a) - first, 10 * MS);
	ck_assert_uint_gt(stats(&a).bytes_sent, sent);
}

START_TEST(a_short_path_is_not_looked_at)
{
	struct siw_config c = config();
	struct siw_tcp *t;
	int64_t from;
	unsigned tries = 0;

	open_deep();
	do {
		ck_assert_uint_lt(tries++, 50);
		t = full_sndbuf(RNIC_FAR_NS - 1);
		from = a.dev->now_ns;
	} while (!enlarge_sndbuf(t));
	ck_assert(!timer_armed(&t->refill));
	ck_assert_int_ge(a.dev->ops->deadline(a.dev), from + c.fence_ms * MS);
}

/* An idle device has no reason to wake up. */
START_TEST(a_link_that_ends_looks_no_more)
{
	open_deep();
	struct siw_tcp *t = full_sndbuf(160 * MS);

	ck_assert(timer_armed(&t->refill));
	a.dev->ops->qp_disconnect(a.qp, false);
	ck_assert(!timer_armed(&t->refill));
}
