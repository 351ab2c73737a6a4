/* Soft iWARP keeps to rnic.h: completions, receives, protection, the end of a link. */
#include "own_netns.h"
#include "siw_ends.h"

#include <stdio.h>

#include "daemon/control/report.h"
#include "rnic/unit.h"

UNIT_FIXTURE(setup, teardown);

/* Over IPv4 and IPv6. */
START_LOOP_TEST(connects_writes_sends_both_ways, 0, 2)
{
	struct siw_config c = config();

	if (_i == 1)
		ck_assert_int_eq(addr_parse("::1", &c.addr), 0);
	open_both(&c, &c);
	end_qp(&b, 64, 16, TOKEN);
	post_recv(&b, 7, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	fill(a.buf, 300000, 0);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 300000, &b, 1000);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED, 5, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc[0].len, 44);
	ck_assert_mem_eq(b.buf, a.buf + 5, 44);
	ck_assert_mem_eq(b.buf + 1000, a.buf, 300000);
	/* the passive side speaks, too */
	post_recv(&a, 8, 500000, 100);
	post(&b, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &a, 0);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 2);
	check_wc(&a, 1, 8, RNIC_WC_RECV, RNIC_WC_OK);
	check_wc(&b, 1, 3, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(a.errors + b.errors, 0);
}

/* By the page tables: the kernel's running count is behind by some dozens of pages. */
static size_t
resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[256];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "Rss: %lu", &kib) != 1)
		;
	fclose(f);
	ck_assert_uint_gt(kib, 0);
	return kib * 1024;
}

/* Strangers may have many made that come to nothing: no queue takes memory before it is used, nor stays behind because
 * something small that was made later lives on. */
START_TEST(unused_queues_take_no_memory_and_leave_none)
{
	enum { N = 200 };

	struct siw_config c = config();
	const struct rnic_qp_attr attr = { .ctx = &a, .sq_depth = 1024, .rq_depth = 1024, .token = TOKEN };
	struct rnic_qp *qp[N];
	void *small[N];
	open_both(&c, &c);
	size_t before = resident();
	for (unsigned i = 0; i < N; i++) {
		ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[i]), 0);
		small[i] = malloc(100);
	}
	ck_assert_uint_lt(resident() - before, N * 64u * 1024);
	for (unsigned i = 0; i < N; i++)
		a.dev->ops->qp_destroy(qp[i]);
	ck_assert_uint_lt(resident() - before, N * 32u * 1024);
	for (unsigned i = 0; i < N; i++)
		free(small[i]);
}

/* Segments follow a path that gets narrower. The kernel's SCTP, which sends no fragments, ends a link that takes no message of session
 * control in one packet. */
START_LOOP_TEST(a_path_gets_narrower, 0, 2)
{
	bool ends = _i == 1 && OVER_SCTP && SCTP_STACK == SIW_STACK_KERNEL;
	struct siw_config c = config();

	if (!own_netns("link set lo up mtu 1500\n"))
		return;
	open_both(&c, &c);
	connect_ends();
	for (unsigned i = 0; i < 20; i++) {
		if (i == 10)
			ck_assert(ip_batch(_i == 1 ? "link set lo mtu 400\n" : "link set lo mtu 1000\n"));
		post_recv(&b, i, BUF - 100, 100);
		fill(a.buf, 20000, i);
		post(&a, RNIC_WR_WRITE, 2 * i, 0, 0, 20000, &b, 0);
		post(&a, RNIC_WR_SEND, 2 * i + 1, 0, 0, 44, &b, 0);
		UNTIL(b.wc_cnt == i + 1);
		if (i == 10 && ends)
			break;
		ck_assert_mem_eq(b.buf, a.buf, 20000);
	}
	UNTIL(!ends || a.errors == 1);
	ck_assert_uint_eq(a.errors, ends);
}

/* What a large write was read into and sent from goes back, when the link has had a rest, and comes again. (SCTP's is the
 * library's.) */
START_TEST(an_idle_link_gives_memory_back)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&b, 64, 16, TOKEN);
	connect_ends();
	(void)resident(); /* what it needs itself is there from now on */
	for (unsigned i = 0; i < 2; i++) {
		size_t used;

		fill(a.buf, 300000, i);
		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 300000, &b, 1000);
		run_b = NULL; /* so that it finds much at once */
		run_ms(20);
		run_b = &b;
		UNTIL(a.wc_cnt == i + 1);
		ck_assert_mem_eq(b.buf + 1000, a.buf, 300000);
		used = resident();
		b.dev->ops->rest(b.qp);
		ck_assert_uint_ge(resident() + 4096, used); /* not yet: it was in use a moment ago */
		b.dev->ops->rest(b.qp);
		ck_assert_uint_le(resident() + BY_LLP(32 * 1024, 0), used + BY_LLP(0, 64 * 1024));
	}
}

START_TEST(query_tells_the_device)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	struct rnic_info info = rnic_query(a.dev);
	ck_assert_int_eq(info.gid_type, RNIC_GID_NONE);
	ck_assert_str_eq(info.name, "siw0");
	ck_assert_str_eq(info.provider, "siw");
	ck_assert_int_eq(info.transport,
	    BY_LLP(RNIC_TRANSPORT_IWARP,
	        SCTP_STACK == SIW_STACK_KERNEL ? RNIC_TRANSPORT_IWARP_SCTP : RNIC_TRANSPORT_IWARP_SCTP_UDP));
	if (OVER_SCTP) {
		ck_assert_str_eq(info.stack, SCTP_STACK == SIW_STACK_KERNEL ? "kernel" : "user");
		ck_assert_str_eq(info.profile, "rfc5043");
	} else {
		ck_assert_ptr_null(info.stack);
		ck_assert_ptr_null(info.profile);
	}
	ck_assert_uint_ne(info.mpa_port, 0);
	ck_assert_mem_eq(info.gid.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	ck_assert_uint_eq(info.mac[0] & 3, 2); /* the loopback has none: local, unicast */
	ck_assert_uint_eq(info.qp_cnt, 1);
	ck_assert_uint_eq(info.mr_cnt, 1);
	ck_assert_uint_eq(info.mr_bytes, BUF);
	ck_assert_uint_gt(a.qp->qpn, 1);
	ck_assert_uint_lt(a.qp->qpn, 1u << 24);
	ck_assert_uint_lt(a.qp->psn, 1u << 24);
	ck_assert_uint_ne(a.mr->addr, (uintptr_t)a.buf);
}

static void
nothing_is_known(const struct end *e)
{
	struct rnic_conn_info info = rnic_conn_info(e->qp);

	ck_assert_int_eq(info.retransmits, -1);
	ck_assert_int_eq(info.unacked, -1);
	ck_assert_uint_eq(info.path_cnt, 0);
}

static void
one_path_is_known(const struct end *e, const struct rnic_gid *to)
{
	struct rnic_conn_info info = rnic_conn_info(e->qp);

	bool user = OVER_SCTP &&
	    SCTP_STACK == SIW_STACK_USER; /* which tells less, and uses less of the loopback interface */

	ck_assert_int_eq(info.retransmits, user ? -1 : 0);
	ck_assert_int_ge(info.unacked, 0);
	ck_assert_uint_eq(info.path_cnt, 1);
	ck_assert_mem_eq(&info.paths[0].to, to, sizeof(*to));
	ck_assert_int_eq(info.paths[0].state, RNIC_PATH_ACTIVE);
	ck_assert(info.paths[0].primary);
	ck_assert_uint_lt(info.paths[0].rtt_us, 5000000);
	ck_assert_uint_ge(info.paths[0].rto_us, 200000);
	ck_assert_uint_ge(info.paths[0].mtu, user ? 9216 : 1280);
	ck_assert_uint_le(info.paths[0].mtu, user ? 9216 : 65536);
	ck_assert_uint_gt(info.paths[0].cwnd, 0);
}

/* Asked before there is a connection, while it is made, when it stands, and when it is over. */
START_LOOP_TEST(what_the_connection_below_is_like, 0, 2)
{
	struct siw_config c = config();

	if (_i == 1) {
		((struct sockaddr_in6 *)&c.addr)->sin6_family = AF_INET6;
		((struct sockaddr_in6 *)&c.addr)->sin6_addr = in6addr_loopback;
	}
	open_both(&c, &c);
	end_qp(&a, 64, 16, TOKEN);
	end_qp(&b, 64, 16, TOKEN);
	nothing_is_known(&a);
	ask_for_link();
	nothing_is_known(&a);
	nothing_is_known(&b);
	claim_link();
	struct rnic_info at_a = rnic_query(a.dev), at_b = rnic_query(b.dev);
	one_path_is_known(&a, &at_b.gid);
	one_path_is_known(&b, &at_a.gid);
	b.dev->ops->qp_disconnect(b.qp, false);
	nothing_is_known(&b);
	UNTIL(a.errors == 1);
	nothing_is_known(&a);
}

static bool
port_event(enum rnic_event_type *type)
{
	struct rnic_event ev;
	bool got = a.dev->ops->poll_event(a.dev, &ev);

	if (got) {
		ck_assert_ptr_null(ev.qp);
		*type = ev.type;
	}
	return got;
}

static bool
is_reported(const char *counter)
{
	const char *const *name = report_device_stats;

	while (*name != NULL && strcmp(*name, counter) != 0)
		name++;
	return *name != NULL;
}

START_TEST(counters_have_names)
{
	struct siw_config c = config();
	struct rnic_stat rows[RNIC_STATS_MAX];

	open_connected(&c);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	UNTIL(a.wc_cnt == 1);
	unsigned n = a.dev->ops->stats(a.dev, rows);
	struct siw_stats st = stats(&a);
	ck_assert_uint_eq(n, sizeof(st) / sizeof(uint64_t));
	ck_assert_str_eq(rows[0].name, "fpdus_sent");
	ck_assert_uint_eq(rows[0].value, st.fpdus_sent);
	ck_assert_uint_gt(rows[0].value, 1);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_mem_eq(&rows[i].value, (const uint8_t *)&st + i * sizeof(uint64_t), sizeof(uint64_t));
		ck_assert_msg(is_reported(rows[i].name), "smcrctl does not show %s", rows[i].name);
	}
}

START_TEST(the_ports_state_is_reported_once)
{
	struct siw_config c = config();
	enum rnic_event_type type;

	open_both(&c, &c);
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_UP);
	siw_set_port_state(a.dev, RNIC_PORT_UP);
	ck_assert(!port_event(&type));
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
	siw_set_port_state(a.dev, RNIC_PORT_DOWN);
	siw_set_port_state(a.dev, RNIC_PORT_DOWN);
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_DOWN);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), poll_loop_now());
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_DOWN);
	ck_assert(!port_event(&type));
	/* up and down unseen: down is what counts */
	siw_set_port_state(a.dev, RNIC_PORT_UP);
	siw_set_port_state(a.dev, RNIC_PORT_DOWN);
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_DOWN);
	ck_assert(!port_event(&type));
	siw_set_port_state(a.dev, RNIC_PORT_UP);
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_UP);
	/* down and up unseen: links went down meanwhile */
	siw_set_port_state(a.dev, RNIC_PORT_DOWN);
	siw_set_port_state(a.dev, RNIC_PORT_UP);
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_DOWN);
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_UP);
	ck_assert(!port_event(&type));
	ck_assert_int_eq(rnic_query(a.dev).port, RNIC_PORT_UP);
}

/* Ports that are down are the engine's business: the device goes on with what it has. */
START_TEST(port_events_come_before_those_of_queue_pairs)
{
	struct siw_config c = config();
	enum rnic_event_type type;
	struct rnic_event ev;

	open_connected(&c);
	b.dev->ops->qp_disconnect(b.qp, false);
	while ((stats(&a).bytes_sent == 0 && !OVER_SCTP) || a.dev->ops->deadline(a.dev) > poll_loop_now()) {
		poll_loop_turn(&a.loop, &a.dev, 1, 1);
		turn_one(&b, 0);
	}
	siw_set_port_state(a.dev, RNIC_PORT_DOWN);
	ck_assert(port_event(&type));
	ck_assert_int_eq(type, RNIC_EV_PORT_DOWN);
	while (!a.dev->ops->poll_event(a.dev, &ev))
		poll_loop_turn(&a.loop, &a.dev, 1, 1);
	ck_assert_int_eq(ev.type, RNIC_EV_QP_ERROR);
	ck_assert_ptr_eq(ev.qp, a.qp);
}

/* The completion waits for the peer's RNIC, not for TCP: while the peer does not read there is none. */
START_TEST(no_completion_while_the_peer_does_not_read)
{
	struct siw_config c = config();

	open_connected(&c);
	run_b = NULL;
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	a.dev->ops->fence(a.qp);
	UNTIL(stats(&a).bytes_sent > 1000); /* TCP has it */
	run_ms(100);
	ck_assert_uint_eq(a.wc_cnt, 0);
	run_b = &b;
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
}

START_TEST(a_peer_that_does_not_answer_is_reported_and_waited_for)
{
	struct siw_config c = config();

	c.answer_ms = 150;
	open_connected(&c);
	post_recv(&a, 50, 0, 10);
	run_b = NULL;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1000, &b, 0);
	int64_t start = a.dev->now_ns;
	UNTIL(a.silences == 1);
	ck_assert_int_ge(poll_loop_now() - start, 150000000);
	UNTIL(a.silences == 3);
	ck_assert_int_ge(poll_loop_now() - start, 450000000);
	ck_assert_uint_eq(a.wc_cnt, 0);
	run_b = &b;
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 2, RNIC_WC_WRITE, RNIC_WC_OK);
	ck_assert_uint_eq(a.errors + b.errors, 0);
}

/* So much is on its way that there is no place for a Read: the silence counts all the same. */
START_TEST(a_peer_that_takes_nothing_is_reported)
{
	struct siw_config c = config();

	c.answer_ms = 300;
	c.fence_ms = 60000;
	open_both(&c, &c);
	end_qp(&a, 8000, 16, TOKEN);
	connect_ends();
	run_b = NULL;
	while (a.silences == 0) {
		while (room(&a).wrs > 4001 && room(&a).bytes > 0)
			post(&a, RNIC_WR_WRITE, 1, 0, 0, 4000, &b, 0);
		turn();
	}
	ck_assert_uint_eq(stats(&a).reads_sent, 0);
	ck_assert_uint_eq(a.errors, 0);
}

START_TEST(confirmation_on_request_only)
{
	struct siw_config c = config();

	c.fence_ms = 60000;
	open_connected(&c);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 1000, &b, 0);
	run_ms(50);
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(stats(&a).reads_sent, 0);
	a.dev->ops->fence(a.qp);
	UNTIL(a.wc_cnt == 2);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	check_wc(&a, 1, 3, RNIC_WC_WRITE, RNIC_WC_OK);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
	ck_assert_uint_eq(stats(&b).reads_served, 1);
	/* nothing to confirm, nothing sent */
	a.dev->ops->fence(a.qp);
	run_ms(20);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
}

START_TEST(confirmation_after_confirm_ms)
{
	struct siw_config c = config();

	c.fence_ms = 60;
	open_connected(&c);
	run_ms(100);
	int64_t start = a.dev->now_ns = poll_loop_now(); /* as the turn tells it that posts */
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	UNTIL(a.wc_cnt == 1);
	ck_assert_int_ge(poll_loop_now() - start, 55000000);
	/* an unsignaled request asks for none */
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 1000, &b, 0);
	run_ms(150);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
}

START_TEST(confirmation_under_pressure)
{
	struct siw_config c = config();

	c.fence_ms = 60000;
	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	connect_ends();
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
	run_ms(30);
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(room(&a).wrs, 4);
	post(&a, RNIC_WR_WRITE, 4, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(a.wc_cnt == 5);
	ck_assert_uint_eq(room(&a).wrs, 8);
}

START_TEST(a_full_queue_is_refused_and_credits_are_reported)
{
	struct siw_config c = config();

	c.fence_ms = 60000;
	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	connect_ends();
	run_b = NULL;
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, 0, 0, 10, &b, 0);
	ck_assert_uint_eq(room(&a).wrs, 0);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 9, 0, 0, 10, &b, 0), -ENOBUFS);
	run_ms(20);
	ck_assert_uint_eq(a.rooms, 0);
	run_b = &b;
	UNTIL(a.rooms == 1);
	ck_assert_uint_eq(room(&a).wrs, 4);
	ck_assert_uint_eq(a.wc_cnt, 0); /* none was signaled */
}

/* A signaled completion holds its place until it was polled: the completion queue cannot overflow. */
START_TEST(completions_not_polled_hold_their_place)
{
	struct siw_config c = config();
	struct rnic_wc wc[8];

	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	connect_ends();
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
	int64_t end = poll_loop_now() + 200000000;
	while (poll_loop_now() < end) {
		poll_loop_turn(&a.loop, &a.dev, 1, 1); /* without polling */
		turn_one(&b, 1);
	}
	ck_assert_uint_eq(room(&a).wrs, 0);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 3), 3);
	ck_assert_uint_eq(room(&a).wrs, 3);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 8), 1);
	ck_assert_uint_eq(room(&a).wrs, 4);
	collect(&a);
	ck_assert_uint_eq(a.rooms, 1);
}

/* -- receives -- */

START_TEST(sends_keep_to_the_peers_receive_depth)
{
	struct siw_config c = config();

	c.fence_ms = 60000;
	open_both(&c, &c);
	end_qp(&b, 64, 3, TOKEN);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&b, i, i * 100, 100);
	connect_ends();
	ck_assert_uint_eq(room(&a).sends, 3);
	run_b = NULL;
	for (unsigned i = 0; i < 3; i++)
		post(&a, RNIC_WR_SEND, i, RNIC_SIGNALED, 0, 10, &b, 0);
	ck_assert_uint_eq(room(&a).sends, 0);
	ck_assert_uint_eq(room(&a).wrs, 61);
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 9, 0, 0, 10, &b, 0), -ENOBUFS);
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 10, &b, 0); /* writes may go on */
	run_ms(20);
	run_b = &b;
	UNTIL(a.wc_cnt == 4 && b.wc_cnt == 3);
	ck_assert_uint_eq(room(&a).sends, 3);
	ck_assert_uint_ge(a.rooms, 1);
	ck_assert_uint_eq(stats(&b).recv_stalls, 0);
}

START_TEST(a_send_without_a_receive_waits)
{
	struct siw_config c = config();

	open_connected(&c);
	fill(a.buf, 1000, 3);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 100, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1000, &b, 5000);
	UNTIL(stats(&b).recv_stalls == 1);
	run_ms(50);
	ck_assert_uint_eq(a.wc_cnt + b.wc_cnt, 0);
	/* Order: the write is behind it, though over SCTP it is in place already. */
	ck_assert_uint_eq(b.buf[5001], BY_LLP(0, a.buf[1]));
	post_recv(&b, 7, 100, 100);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 1);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_mem_eq(b.buf + 100, a.buf, 100);
	ck_assert_mem_eq(b.buf + 5000, a.buf, 1000);
	ck_assert_uint_eq(stats(&b).recv_stalls, 1);
}

/* Stalls with bytes behind the Send that no further edge announces. */
START_TEST(stalled_stream_goes_on_where_it_was)
{
	struct siw_config c = config();

	open_connected(&c);
	for (unsigned i = 0; i < 10; i++) {
		fill(a.buf + i * 1000, 1000, i);
		post(&a, RNIC_WR_SEND, i, RNIC_SIGNALED, i * 1000, 1000, &b, 0);
	}
	UNTIL(stats(&b).recv_stalls == 1);
	run_ms(20);
	for (unsigned i = 0; i < 10; i++) {
		post_recv(&b, i, i * 1000, 1000);
		UNTIL(b.wc_cnt == i + 1);
	}
	UNTIL(a.wc_cnt == 10);
	ck_assert_mem_eq(b.buf, a.buf, 10000);
}

START_TEST(receives_are_bounded_all_or_none)
{
	struct siw_config c = config();
	struct rnic_recv_wr wr[5];

	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	for (unsigned i = 0; i < 5; i++)
		wr[i] = (struct rnic_recv_wr){ .wr_id = i, .mr = a.mr, .ptr = a.buf, .len = 10 };
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 5), -ENOBUFS);
	wr[2].len = BUF + 1;
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 4), -EINVAL);
	wr[2].len = 10;
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 4), 0);
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 1), -ENOBUFS);
	a.dev->ops->qp_disconnect(a.qp, false);
	collect(&a);
	ck_assert_uint_eq(a.wc_cnt, 4);
	for (unsigned i = 0; i < 4; i++)
		check_wc(&a, i, i, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 1), -ENOTCONN);
}

/* -- requests -- */

START_TEST(inline_data_is_copied)
{
	struct siw_config c = config();
	uint8_t bytes[64];
	struct rnic_send_wr wr = {
		.wr_id = 1,
		.op = RNIC_WR_WRITE,
		.flags = RNIC_SIGNALED | RNIC_INLINE,
		.sge_cnt = 2,
		.sge = { { .ptr = bytes, .len = 30 }, { .ptr = bytes + 30, .len = 34 } },
	};

	open_connected(&c);
	wr.raddr = b.mr->addr;
	wr.rkey = b.mr->rkey;
	fill(bytes, 64, 9);
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	memset(bytes, 0xee, 64);
	UNTIL(a.wc_cnt == 1);
	fill(bytes, 64, 9);
	ck_assert_mem_eq(b.buf, bytes, 64);
	wr.sge[1].len = 35;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), -EINVAL);
}

START_TEST(four_pieces_are_gathered)
{
	struct siw_config c = config();
	struct rnic_send_wr wr = { .wr_id = 1, .op = RNIC_WR_WRITE, .flags = RNIC_SIGNALED, .sge_cnt = 4 };
	static const uint32_t lens[4] = { 1, 40000, 0, 20001 };
	uint8_t *want = malloc(70000);
	size_t len = 0;

	open_connected(&c);
	fill(a.buf, BUF, 1);
	for (unsigned i = 0; i < 4; i++) {
		wr.sge[i] = (struct rnic_sge){ .mr = a.mr, .ptr = a.buf + i * 100001, .len = lens[i] };
		memcpy(want + len, wr.sge[i].ptr, lens[i]);
		len += lens[i];
	}
	wr.raddr = b.mr->addr + 3;
	wr.rkey = b.mr->rkey;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	wr.sge_cnt = 5;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), -EINVAL);
	UNTIL(a.wc_cnt == 1);
	ck_assert_mem_eq(b.buf + 3, want, len);
	ck_assert_uint_eq(b.buf[3 + len], 0);
	free(want);
}

START_TEST(buffers_have_to_be_inside_of_their_region)
{
	struct siw_config c = config();
	struct rnic_pd *pd;
	struct rnic_mr *mr;

	open_connected(&c);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, BUF - 9, 10, &b, 0), -EINVAL);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, BUF + 1, 0, &b, 0), -EINVAL);
	/* a region of another protection domain is none of ours */
	ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), 0);
	ck_assert_int_eq(a.dev->ops->mr_reg(pd, a.buf, BUF, 0, &mr), 0);
	struct rnic_mr *mine = a.mr;
	a.mr = mr;
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -EINVAL);
	a.mr = NULL;
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -EINVAL);
	a.mr = mine;
	a.dev->ops->mr_dereg(mr);
	a.dev->ops->pd_free(pd);
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 0, 0, &mr), -EINVAL);
}

/* -- protection -- */

/* The peer refuses: both QPs break, the first request says so, and nothing was placed. */
static void
refused(const char *why)
{
	UNTIL(a.errors == 1 && b.errors == 1);
	ck_assert_str_eq(a.why, why);
	ck_assert_str_eq(b.why, "iWARP protocol violation by the peer");
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
	ck_assert_uint_eq(stats(&b).terminates_sent, 1);
	ck_assert_uint_eq(stats(&a).terminates_received, 1);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(b.buf[i], 0);
}

START_LOOP_TEST(memory_is_protected, 0, 10)
{
	struct siw_config c = config();
	struct rnic_pd *pd = NULL;
	struct rnic_mr *mr = NULL;
	struct rnic_mr shown;

	c.crc = _i < 5; /* without CRC large writes take another way */
	open_connected(&c);
	shown = *b.mr;
	b.buf[0] = 0;
	fill(a.buf, 100000, 1);
	switch (_i % 5) {
	case 0:
		shown.rkey ^= 0x10000;
		break;
	case 1:
		shown.addr += BUF - 99999;
		break;
	case 2: /* another protection domain */
		ck_assert_int_eq(b.dev->ops->pd_alloc(b.dev, &pd), 0);
		ck_assert_int_eq(b.dev->ops->mr_reg(pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
		shown = *mr;
		break;
	case 3: /* no right to write */
		ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_READ, &mr), 0);
		shown = *mr;
		break;
	default: /* gone */
		ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
		shown = *mr;
		b.dev->ops->mr_dereg(mr);
		mr = NULL;
		break;
	}
	{
		struct end fake = { .mr = &shown };

		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 100000, &fake, 0);
	}
	refused(_i % 5 == 1   ? "DDP tagged buffer: base or bounds"
	        : _i % 5 == 2 ? "DDP tagged buffer: STag not associated with the stream"
	                      : "DDP tagged buffer: invalid STag");
	if (mr != NULL)
		b.dev->ops->mr_dereg(mr);
	if (pd != NULL)
		b.dev->ops->pd_free(pd);
}

/* Revoked in the middle of a write: not a byte more is placed. */
START_LOOP_TEST(revocation_in_the_middle_of_a_write, 0, 2)
{
	struct siw_config c = config();
	struct rnic_mr *mr;
	struct end fake = { 0 };
	size_t placed = 0;

	c.crc = _i == 0;
	open_connected(&c);
	ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
	fake.mr = mr;
	memset(a.buf, 0x77, BUF);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, BUF, &fake, 0);
	while (b.buf[0] == 0)
		turn();
	ck_assert_uint_eq(b.buf[BUF - 1], 0);
	b.dev->ops->mr_dereg(mr);
	while (placed < BUF && b.buf[placed] != 0)
		placed++;
	UNTIL(a.errors == 1 && b.errors == 1);
	while (placed < BUF && b.buf[placed] == 0)
		placed++;
	ck_assert_uint_eq(placed, BUF);
}

/* 100000 bytes are written over units of 1000: one of them is closed, then none. */
START_LOOP_TEST(a_denied_unit_is_not_written, 0, 10)
{
	static const unsigned closed[] = { 0, 1, 63, 64, 99 };
	struct siw_config c = config();
	unsigned unit = closed[_i / 2];

	c.crc = _i % 2 == 0; /* without CRC large writes take another way */
	open_connected(&c);
	fill(a.buf, 100000, 1);
	b.mr->deny_unit = 1000;
	b.mr->deny[unit / 64] = 1ull << unit % 64;
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000 * unit, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1000 * (99 - unit), &b, 1000 * (unit + 1));
	UNTIL(a.wc_cnt == 2);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_OK);
	memset(b.buf, 0, BUF);
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 1, &b, 1000 * unit + 999);
	UNTIL(a.errors == 1 && b.errors == 1);
	ck_assert_str_eq(a.why, "DDP tagged buffer: base or bounds");
	check_wc(&a, 2, 3, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
	for (unsigned i = 0; i < BUF; i++)
		ck_assert_uint_eq(b.buf[i], 0);
}

START_LOOP_TEST(a_write_across_a_denied_unit_is_refused, 0, 2)
{
	struct siw_config c = config();

	c.crc = _i == 0;
	open_connected(&c);
	b.mr->deny_unit = 30000;
	b.mr->deny[0] = 1;
	fill(a.buf, 100000, 1);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 100000, &b, 0);
	refused("DDP tagged buffer: base or bounds");
}

START_LOOP_TEST(a_unit_is_denied_in_the_middle_of_a_write, 0, 2)
{
	struct siw_config c = config();
	size_t placed;

	c.crc = _i == 0;
	open_connected(&c);
	b.mr->deny_unit = BUF;
	memset(a.buf, 0x77, BUF);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, BUF, &b, 0);
	while (b.buf[0] == 0)
		turn();
	ck_assert_uint_eq(b.buf[BUF - 1], 0);
	b.mr->deny[0] = 1;
	for (placed = 0; b.buf[placed] != 0; placed++)
		;
	UNTIL(a.errors == 1 && b.errors == 1);
	for (; placed < BUF; placed++)
		ck_assert_uint_eq(b.buf[placed], 0);
}

/* There are 256 bits; a region of more units has no say in the others. */
START_TEST(units_without_a_bit_are_open)
{
	struct siw_config c = config();

	open_connected(&c);
	b.mr->deny_unit = 64;
	memset(b.mr->deny, 0xff, sizeof(b.mr->deny));
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 256 * 64);
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1, &b, 256 * 64 - 1);
	UNTIL(a.errors == 1 && b.errors == 1);
}

/* -- Writes that stay where they arrived (rnic/unit.h) -- */

#define UNIT 8192u
static struct rnic_unit left[BUF / UNIT + 1];

static void
leave_writes(struct siw_config *c)
{
	memset(left, 0, sizeof(left));
	open_connected(c);
	for (unsigned i = 0; i <= BUF / UNIT; i++)
		left[i].mem = b.buf + (size_t)UNIT * i;
	b.mr->deny_unit = UNIT;
	b.mr->units = left;
	fill(a.buf, BUF, 1);
}

/* The last test of a device's memory: nothing of it is left in a list. */
static void
drop_writes(void)
{
	for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		rnic_unit_drop(&left[i]);
}

START_LOOP_TEST(a_small_write_stays_where_it_arrived, 0, 2)
{
	struct siw_config c = config();

	c.crc = _i == 0;
	leave_writes(&c);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 500, &b, UNIT + 100);
	UNTIL(left[1].len == 500);
	ck_assert_uint_eq(left[1].off, 100);
	ck_assert_mem_eq(left[1].from, a.buf, 500);
	ck_assert_uint_eq(b.buf[UNIT + 100], 0);
	/* The next one into the unit: the first is placed. */
	post(&a, RNIC_WR_WRITE, 2, 0, 500, RNIC_UNPLACED_MAX, &b, UNIT + 600);
	UNTIL(left[1].len == RNIC_UNPLACED_MAX);
	ck_assert_mem_eq(b.buf + UNIT + 100, a.buf, 500);
	ck_assert_uint_eq(b.buf[UNIT + 99] + b.buf[UNIT + 600], 0);
	ck_assert_uint_eq(left[1].dirty, 600);
	ck_assert_uint_eq(left[1].placed, 500 + RNIC_UNPLACED_MAX);
	/* One into another unit: over TCP the buffer is read into again, over SCTP there is room behind. */
	post(&a, RNIC_WR_WRITE, 3, 0, 0, 10, &b, 0);
	UNTIL(left[0].len == 10);
	ck_assert_uint_eq(left[1].len, BY_LLP(0, RNIC_UNPLACED_MAX));
	rnic_unit_place(&left[1]);
	ck_assert_mem_eq(b.buf + UNIT + 600, a.buf + 500, RNIC_UNPLACED_MAX);
	ck_assert_uint_eq(b.buf[0], 0);
	drop_writes();
}

START_TEST(a_long_write_and_one_across_units_are_placed)
{
	struct siw_config c = config();

	leave_writes(&c);
	for (unsigned i = 0; i < 2; i++)
		post(&a, RNIC_WR_WRITE, i, 0, 10 * i, 10, &b, UNIT * i);
	UNTIL(left[1].len == 10);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 100, 20, &b, UNIT - 10);
	UNTIL(a.wc_cnt == 1);
	ck_assert_uint_eq(left[0].len + left[1].len, 0);
	ck_assert_mem_eq(b.buf, a.buf, 10);
	ck_assert_mem_eq(b.buf + UNIT - 10, a.buf + 100, 20); /* newer than what it overlaps */
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, RNIC_UNPLACED_MAX + 1, &b, 2 * UNIT);
	UNTIL(a.wc_cnt == 2);
	ck_assert_uint_eq(left[2].len, 0);
	ck_assert_mem_eq(b.buf + 2 * UNIT, a.buf, RNIC_UNPLACED_MAX + 1);
}

/* What the buffer still has to give stays in it: a Write that was left, behind more than a page, or a Send without a receive. */
START_LOOP_TEST(an_idle_link_keeps_what_it_has_not_passed_on, 0, 2)
{
	struct siw_config c = config();

	leave_writes(&c);
	run_b = NULL;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 20000, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, 0, 20000, 100, &b, 4 * UNIT);
	if (_i == 1)
		post(&a, RNIC_WR_SEND, 3, 0, 500, 44, &b, 0);
	run_ms(20);
	run_b = &b;
	UNTIL(left[4].len == 100);
	for (unsigned i = 0; i < 3; i++)
		b.dev->ops->rest(b.qp);
	for (unsigned i = 0; i <= 4; i++)
		rnic_unit_place(&left[i]); /* SCTP's buffer is the device's, and does not rest */
	ck_assert_mem_eq(b.buf, a.buf, 20000);
	ck_assert_mem_eq(b.buf + 4 * UNIT, a.buf + 20000, 100);
	if (_i == 1) {
		post_recv(&b, 4, BUF - 100, 100);
		UNTIL(b.wc_cnt == 1);
		ck_assert_mem_eq(b.buf + BUF - 100, a.buf + 500, 44);
	}
	drop_writes();
}

/* One in each unit, more than a buffer holds: none is written again. */
START_TEST(what_is_left_outgrows_the_buffer)
{
	struct siw_config c = config();

	leave_writes(&c);
	for (unsigned i = 0; i < BUF / UNIT; i++) {
		UNTIL(room(&a).wrs > 0);
		post(&a, RNIC_WR_WRITE, 1, i == BUF / UNIT - 1 ? RNIC_SIGNALED : 0, UNIT * i, 3000, &b, UNIT * i);
	}
	UNTIL(a.wc_cnt == 1);
	for (unsigned i = 0; i < BUF / UNIT; i++) {
		rnic_unit_place(&left[i]);
		ck_assert_mem_eq(b.buf + UNIT * i, a.buf + UNIT * i, 3000);
	}
}

/* More than the device's buffer holds, some of it read meanwhile, and the end of the queue pair: no byte is lost or stale. */
START_LOOP_TEST(what_nobody_reads_is_placed_in_the_end, 0, 2)
{
	struct siw_config c = config();
	uint64_t x = 5;

	c.crc = _i == 0;
	leave_writes(&c);
	for (unsigned off = 0, len; off < BUF; off += len) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		len = 1 + (x >> 33) % (x >> 60 == 0 ? 2 * UNIT : 2000);
		if (len > BUF - off)
			len = BUF - off;
		UNTIL(room(&a).wrs > 0);
		post(&a, RNIC_WR_WRITE, 1, 0, off, len, &b, off);
		if (x >> 40 & 1)
			turn();
		const struct rnic_unit *u = &left[off / UNIT];
		if (u->len > 0 && (x >> 41 & 3) == 0)
			ck_assert_mem_eq(u->from, a.buf + (u->mem - b.buf) + u->off, u->len);
	}
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1, &b, 0);
	UNTIL(a.wc_cnt == 1);
	b.dev->ops->qp_destroy(b.qp);
	b.qp = NULL;
	UNTIL(b.freed == 1);
	for (unsigned i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		rnic_unit_place(&left[i]);
	ck_assert_mem_eq(b.buf, a.buf, BUF);
}

/* -- the end of a link -- */

START_TEST(disconnect_flushes_everything_once)
{
	struct siw_config c = config();

	open_connected(&c);
	post_recv(&a, 10, 0, 10);
	post_recv(&a, 11, 0, 10);
	run_b = NULL;
	for (unsigned i = 0; i < 5; i++)
		post(&a, RNIC_WR_WRITE, i, i & 1 ? RNIC_SIGNALED : 0, 0, 1000, &b, 0);
	run_ms(20);
	a.dev->ops->qp_disconnect(a.qp, false);
	run_ms(20);
	ck_assert_uint_eq(a.errors, 0);
	ck_assert_uint_eq(a.wc_cnt, 7);
	for (unsigned i = 0; i < 5; i++)
		check_wc(&a, i, i, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 5, 10, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	check_wc(&a, 6, 11, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 1, 0, 0, 10, &b, 0), -ENOTCONN);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_str_eq(
	    b.why, BY_LLP("the peer reset the connection", "the peer reset the association, or does not answer"));
	ck_assert_int_eq(b.silent, BY_LLP(false, true));
	a.dev->ops->qp_disconnect(a.qp, true); /* again: harmless */
}

/* Reset: bytes that wait in the peer's kernel are not placed any more. */
START_TEST(after_a_reset_nothing_is_placed)
{
	struct siw_config c = config();

	open_connected(&c);
	run_b = NULL;
	memset(a.buf, 0x55, 1000);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 1000, &b, 0);
	run_ms(20);
	ck_assert_uint_ge(stats(&a).bytes_sent, 1000);
	a.dev->ops->qp_disconnect(a.qp, false);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_uint_eq(b.buf[0], 0);
}

/* Graceful: all that was posted arrives, more than the kernel takes at once, and the buffers are free at once. */
START_TEST(graceful_disconnect_sends_what_was_posted)
{
	struct siw_config c = config();
	unsigned n = 3;

	open_connected(&c);
	fill(a.buf, BUF, 2);
	for (unsigned i = 0; i < 4; i++)
		post_recv(&b, i, BUF - 1000, 100);
	run_b = NULL;
	for (unsigned i = 0; i < n; i++)
		post(&a, RNIC_WR_WRITE, i, 0, i * 200000, 200000, &b, i * 200000);
	post(&a, RNIC_WR_SEND, n, RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	collect(&a);
	ck_assert_uint_eq(a.wc_cnt, n + 1);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	memset(a.buf, 0, BUF);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, BY_LLP("the peer closed the connection", "the peer ended the session"));
	check_wc(&b, 0, 0, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc_cnt, 4);
	fill(a.buf, BUF, 2);
	ck_assert_mem_eq(b.buf, a.buf, n * 200000);
}

/* A Send that waits for a receive when the peer ends in order is none the less its due. */
START_TEST(what_waits_for_a_receive_outlives_a_graceful_end)
{
	struct siw_config c = config();

	open_connected(&c);
	fill(a.buf, 100, 3);
	post(&a, RNIC_WR_SEND, 1, 0, 0, 100, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	UNTIL(stats(&b).recv_stalls == 1);
	run_ms(50);
	ck_assert_uint_eq(b.errors + b.wc_cnt, 0);
	post_recv(&b, 7, 100, 100);
	UNTIL(b.errors == 1);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_mem_eq(b.buf + 100, a.buf, 100);
}

START_TEST(destroy_drops_what_was_not_polled)
{
	struct siw_config c = config();
	struct rnic_wc wc;
	struct rnic_event ev;

	open_connected(&c);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	b.dev->ops->qp_destroy(b.qp);
	b.qp = NULL;
	for (unsigned i = 0; i < 50; i++)
		poll_loop_turn(&a.loop, &a.dev, 1, 1);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), poll_loop_now()); /* something waits */
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, &wc, 1), 0);
	ck_assert(a.dev->ops->poll_event(a.dev, &ev) && ev.type == RNIC_EV_QP_FREED);
	ck_assert(!a.dev->ops->poll_event(a.dev, &ev));
	/* Nothing else is to come; SCTP looks after what it sent last for a moment. */
	for (unsigned i = 0; i < 500 && a.dev->ops->deadline(a.dev) != INT64_MAX && OVER_SCTP; i++)
		poll_loop_turn(&a.loop, &a.dev, 1, 1);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
}

/* Random requests and a break at a random moment: every request ends exactly once, in order. */
START_LOOP_TEST(each_request_ends_exactly_once, 0, 24)
{
	struct siw_config c = config();
	uint64_t x = 77 + (uint64_t)_i;
	unsigned posted = 0, recvs = 0, sends_seen = 0, recvs_seen = 0;
	bool flushed = false;

	c.crc = _i & 1;
	open_connected(&c);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&b, i, 0, 100);
	for (; recvs < 16; recvs++)
		post_recv(&a, recvs, 0, 100);
	for (unsigned r = 0; r < 60; r++) {
		enum rnic_wr_op op;

		x = x * 6364136223846793005u + 1442695040888963407u;
		op = x >> 60 & 1 ? RNIC_WR_SEND : RNIC_WR_WRITE;
		if (posted < 64 && room(&a).wrs > 0 && (op == RNIC_WR_WRITE || room(&a).sends > 0))
			post(&a, op, posted++, RNIC_SIGNALED, 0, op == RNIC_WR_SEND ? 100 : (x >> 30) % 40000, &b, 0);
		if ((x >> 20) % 4 == 0)
			turn_one(&a, 0);
		if ((x >> 23) % 5 == 0)
			turn_one(&b, 0);
	}
	switch (_i % 4) {
	case 0:
		a.dev->ops->qp_disconnect(a.qp, false);
		break;
	case 1:
		a.dev->ops->qp_disconnect(a.qp, true);
		break;
	case 2:
		b.dev->ops->qp_disconnect(b.qp, false);
		UNTIL(a.errors == 1);
		break;
	default:
		b.dev->ops->qp_disconnect(b.qp, true);
		UNTIL(a.errors == 1);
		break;
	}
	run_ms(5);
	for (unsigned i = 0; i < a.wc_cnt; i++) {
		const struct rnic_wc *wc = &a.wc[i];

		if (wc->op == RNIC_WC_RECV)
			ck_assert_uint_eq(wc->wr_id, recvs_seen++);
		else
			ck_assert_uint_eq(wc->wr_id, sends_seen++);
		ck_assert(!(flushed && wc->status == RNIC_WC_OK));
		flushed = flushed || wc->status != RNIC_WC_OK;
	}
	ck_assert_uint_eq(recvs_seen, recvs);
	ck_assert_uint_eq(sends_seen, posted);
}
