/* Soft iWARP's time limits on a loop that sleeps: each counts from the turn that began it, and nothing but its own timer
 * wakes the device. The time is virtual from the moment that a test sets it. */
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
	ck_assert_uint_eq(a.errors, 1);
	ck_assert_str_eq(a.why, "the peer does not answer");
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
	ck_assert_uint_eq(a.errors, 1);
}
