/* What happens to port, GID and card, as a verbs device tells it. */
#include "verbs_ends.h"

static struct fake_port *
port_a(void)
{
	return &fake.devs[0].ports[0];
}

static void
port_is(bool active, enum ibv_event_type told)
{
	port_a()->state = active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	fake_async_port(&fake.devs[0], told, 1);
}

#define TOLD(d, u)                             \
	do {                                   \
		turns();                       \
		ck_assert_uint_eq(a.downs, d); \
		ck_assert_uint_eq(a.ups, u);   \
	} while (0)

UNIT_FIXTURE(setup, teardown);

START_TEST(the_ports_state_is_reported_once)
{
	open_both();
	TOLD(0, 0);
	port_is(true, IBV_EVENT_PORT_ACTIVE);
	TOLD(0, 0);
	port_is(false, IBV_EVENT_PORT_ERR);
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ERR, 1);
	TOLD(1, 0);
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_DOWN);
	port_a()->mtu = IBV_MTU_1024;
	port_is(true, IBV_EVENT_PORT_ACTIVE);
	TOLD(1, 1);
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_UP);
	ck_assert_uint_eq(rnic_query(a.dev).mtu_code, 3); /* read anew */
	/* of another port */
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ERR, 2);
	TOLD(1, 1);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
}

/* Down and up again before anybody looked: links went down meanwhile. */
START_TEST(a_port_that_bounced_was_down)
{
	struct rnic_event ev;

	open_both();
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ERR, 1);
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ACTIVE, 1);
	poll_loop_turn(&a.loop, &a.dev, 1, 0);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), poll_loop_now());
	ck_assert(a.dev->ops->poll_event(a.dev, &ev));
	ck_assert_int_eq(ev.type, RNIC_EV_PORT_DOWN);
	ck_assert(a.dev->ops->poll_event(a.dev, &ev));
	ck_assert_int_eq(ev.type, RNIC_EV_PORT_UP);
	ck_assert(!a.dev->ops->poll_event(a.dev, &ev));
	/* up and down: down is what counts */
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ERR, 1);
	poll_loop_turn(&a.loop, &a.dev, 1, 0);
	ck_assert(a.dev->ops->poll_event(a.dev, &ev));
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ACTIVE, 1);
	fake_async_port(&fake.devs[0], IBV_EVENT_PORT_ERR, 1);
	poll_loop_turn(&a.loop, &a.dev, 1, 0);
	ck_assert(a.dev->ops->poll_event(a.dev, &ev));
	ck_assert_int_eq(ev.type, RNIC_EV_PORT_DOWN);
	ck_assert(!a.dev->ops->poll_event(a.dev, &ev));
}

START_TEST(a_device_may_be_opened_with_its_port_down)
{
	port_a()->state = IBV_PORT_DOWN;
	open_both();
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_DOWN);
	TOLD(0, 0); /* no news */
	port_is(true, IBV_EVENT_PORT_ACTIVE);
	TOLD(0, 1);
}

START_TEST(a_gid_that_vanishes_is_a_port_down)
{
	struct rnic_remote r;

	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	fake_gid_remove(port_a(), 3);
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 0);
	ck_assert(!verbs_gid_present(a.dev));
	ck_assert_uint_eq(verbs_port_of(a.dev)->gid_cnt, 3);
	r = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), -EADDRNOTAVAIL);
	/* it is no use that the port is active */
	port_is(true, IBV_EVENT_PORT_ACTIVE);
	TOLD(1, 0);
	/* the same address, but v1 */
	fake_gid(port_a(), 1, 7, IBV_GID_TYPE_ROCE_V1, 1, "::ffff:10.0.0.1");
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 0);
	/* back, under another index */
	fake_gid(port_a(), 1, 9, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:10.0.0.1");
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 1);
	ck_assert(verbs_gid_present(a.dev));
	connect_ends();
	ck_assert_uint_eq(hw(&a)->rtr.ah_attr.grh.sgid_index, 9);
}

START_TEST(a_gid_that_moved_was_gone)
{
	open_both();
	fake_gid_remove(port_a(), 3);
	fake_gid(port_a(), 1, 5, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:10.0.0.1");
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 1);
	/* others come and go as they like */
	fake_gid(port_a(), 1, 6, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:10.0.0.9");
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	fake_gid_remove(port_a(), 6);
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 1);
}

/* The GID comes back while the port is down: it is up when the port is. */
START_TEST(gid_and_port_are_both_needed)
{
	open_both();
	fake_gid_remove(port_a(), 3);
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	port_is(false, IBV_EVENT_PORT_ERR);
	fake_gid(port_a(), 1, 3, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:10.0.0.1");
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(1, 0);
	port_is(true, IBV_EVENT_PORT_ACTIVE);
	TOLD(1, 1);
}

/* A table that cannot be read says nothing. */
START_TEST(a_gid_table_that_cannot_be_read_changes_nothing)
{
	open_both();
	fake.gid_table_err = EIO;
	fake_async_port(&fake.devs[0], IBV_EVENT_GID_CHANGE, 1);
	TOLD(0, 0);
	ck_assert(verbs_gid_present(a.dev));
}

START_TEST(other_events_are_ignored_and_acknowledged)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER };

	open_connected();
	for (unsigned i = 0; i < 4; i++)
		fake_async_port(&fake.devs[0], types[i], 1);
	fake_async_qp(hw(&a), IBV_EVENT_COMM_EST);
	fake_async_qp(hw(&a), IBV_EVENT_SQ_DRAINED);
	fake_async_qp(hw(&a), IBV_EVENT_PATH_MIG);
	fake_async_qp(hw(&a), IBV_EVENT_QP_LAST_WQE_REACHED);
	TOLD(0, 0);
	ck_assert_uint_eq(stats(&a).async_events, 8);
	ck_assert_uint_eq(a.errors, 0);
	/* more than one turn reads */
	fake_async_many(&fake.devs[0], 1000);
	UNTIL(stats(&a).async_events == 1008);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
}

START_TEST(queue_pairs_break_by_event)
{
	static const struct {
		enum ibv_event_type type;
		const char *why;
	} cases[] = {
		{ IBV_EVENT_QP_FATAL, "the RDMA device reported a fatal queue pair error" },
		{ IBV_EVENT_QP_REQ_ERR, "the peer sent an invalid request" },
		{ IBV_EVENT_QP_ACCESS_ERR, "remote access violation by the peer" },
	};

	for (unsigned i = 0; i < 3; i++) {
		struct rnic_qp *first, *other;

		setup();
		open_connected();
		first = a.qp;
		end_qp(&a, 8, 8);
		other = a.qp;
		a.qp = first;
		fake_async_qp(hw(&a), cases[i].type);
		fake_async_qp(hw(&a), cases[i].type); /* no two ends */
		turns();
		ck_assert_uint_eq(a.errors, 1);
		ck_assert_str_eq(a.why, cases[i].why);
		/* nobody else is hit */
		ck_assert_int_eq(fake_qp_of(other->qpn)->qp.state, IBV_QPS_INIT);
		a.dev->ops->qp_destroy(other);
		close_both();
	}
}

/* One that is not connected has nothing to report; connecting it says so. */
START_TEST(a_queue_pair_may_break_before_it_is_connected)
{
	struct rnic_remote r;

	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	fake_async_qp(hw(&a), IBV_EVENT_QP_FATAL);
	turns();
	ck_assert_uint_eq(a.errors + a.failed, 0);
	r = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), -EINVAL);
}

START_TEST(a_card_that_goes_takes_all_with_it)
{
	for (unsigned told = 0; told < 2; told++) {
		const struct rnic_qp_attr attr = { .sq_depth = 8, .rq_depth = 8 };
		struct rnic_event ev;
		struct rnic_remote r;
		struct rnic_mr *mr;
		struct rnic_pd *pd;
		struct rnic_qp *qp, *idle;

		setup();
		open_connected();
		qp = a.qp;
		end_qp(&a, 8, 8);
		idle = a.qp;
		a.qp = qp;
		hw(&a)->hold = true;
		post_recv(&a, 9, 0, 64);
		post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
		a.dev->ops->flush(a.dev);
		post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0); /* did not even leave */
		fake_unplug(&fake.devs[0], told != 0);
		poll_loop_turn(&a.loop, &a.dev, 1, 0);
		ck_assert(a.dev->ops->poll_event(a.dev, &ev));
		ck_assert_int_eq(ev.type, RNIC_EV_DEV_GONE);
		UNTIL(a.wc_cnt >= 3);
		ck_assert_uint_eq(a.wc_cnt, 3);
		for (unsigned i = 0; i < 3; i++)
			ck_assert_int_ne(a.wc[i].status, RNIC_WC_OK);
		ck_assert_uint_eq(a.gones + a.downs, 0); /* told once */
		ck_assert_uint_eq(a.errors, 1);
		ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_DOWN);
		/* nothing works any more, nothing is touched, nothing hangs */
		qp = NULL;
		ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp), -ENODEV);
		ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), -ENODEV);
		ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 10, 0, &mr), -ENODEV);
		r = remote(&b);
		ck_assert_int_eq(a.dev->ops->qp_connect(idle, RNIC_ACTIVE, &r), -ENODEV);
		ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 3, 0, 0, 10, &b, 0), -ENOTCONN);
		turns();
		ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
		a.dev->ops->qp_destroy(idle);
		close_both();
	}
}
