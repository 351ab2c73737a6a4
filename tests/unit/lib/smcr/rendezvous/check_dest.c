/* The destination in a rendezvous (smcr_open.dest): the server's user takes or refuses it, whichever way the connection
 * goes, and the client's user learns the answer before any byte may be sent. */
#include "duo.h"
#include "unit.h"

UNIT_CASE(duo_case(tc, 5000));

static const struct smcr_config hold = { .holdoff_ms = 20000, .holdoff_max_ms = 30000, .group_idle_ms = 100 };
static const struct clc_dest there = { .kind = CLC_DEST_V4, .port = 5432, .addr = { 10, 0, 5, 9 } };
static const struct clc_dest elsewhere = { .kind = CLC_DEST_V4, .port = 5433, .addr = { 10, 0, 5, 9 } };
static const struct clc_dest nowhere = { .kind = CLC_DEST_NONE };

static void
begin(bool device_a, bool device_b, bool wants_dest)
{
	duo_init(device_a, device_b, &hold);
	d.dest = there;
	d.wants_dest = wants_dest;
}

static void
expect_dest(unsigned pair, bool used)
{
	ck_assert_mem_eq(&s[pair].dest, &there, sizeof(there));
	ck_assert(smcr_dest_is_used(c[pair].conn) == used);
	ck_assert(!smcr_dest_is_used(s[pair].conn));
}

/* First contact, and a group that is there. */
START_TEST(on_smcr)
{
	begin(true, true, true);
	for (unsigned i = 0; i < 2; i++) {
		duo_connect(i, 1, 500);
		expect_dest(i, true);
		ck_assert(!smcr_dest_is_refused(c[i].conn) && !smcr_dest_is_refused(s[i].conn));
	}
}

/* An Accept that does not say so, as that of an older daemon: also without a ticket for later connections. */
START_TEST(an_accept_without_the_answer)
{
	begin(true, true, true);
	d.ignores_dest = true;
	duo_connect(0, 1, 500);
	expect_dest(0, false);
	ck_assert(!smcr_dest_is_refused(c[0].conn));
	ck_assert(!duo_open_over_link(1));
}

/* The server declines: for lack of a device, and by its user. It has judged the destination before. */
START_LOOP_TEST(the_server_declines, 0, 2)
{
	begin(true, _i == 1, true);
	d.tcp_only[B] = _i == 1 ? "no link" : NULL;
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert((s[0].events & SMCR_EV_PROPOSAL) != 0);
	expect_dest(0, true);
	ck_assert_uint_eq(c[0].diag.peer, _i == 1 ? CLC_DIAG_CONFIG : CLC_DIAG_NO_DEVICE);
	ck_assert(!smcr_dest_is_refused(c[0].conn) && !smcr_dest_is_refused(s[0].conn));
}

/* The server's program is not connected in time, so SMC-R is declined: its user has taken the destination. */
START_TEST(the_server_is_late)
{
	begin(true, true, true);
	duo_open_one(&s[0], SMCR_SERVER, false);
	s[0].refuse = true;
	duo_open_one(&c[0], SMCR_CLIENT, false);
	duo_join(0);
	for (unsigned t = 0; t < 1200 && !BOTH(0, FALLBACK); t++)
		duo_run(10);
	ck_assert(BOTH(0, FALLBACK));
	expect_dest(0, true);
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_SERVER_LATE);
}

/* The client declines after the Accept. */
START_TEST(the_client_declines_the_accept)
{
	begin(true, true, true);
	sim_block_connect(d.dev[B], true);
	duo_open(0);
	for (unsigned t = 0; t < 1200 && !BOTH(0, FALLBACK); t++)
		duo_run(10);
	ck_assert(BOTH(0, FALLBACK));
	expect_dest(0, true);
}

/* Likewise in place of its Proposal, for lack of a device: the destination goes without links. */
START_TEST(a_client_without_a_device)
{
	begin(false, true, true);
	duo_open(0);
	duo_run(100);
	duo_expect(0, A, "PROPOSAL");
	duo_expect(1, B, "DECLINE");
	ck_assert_uint_eq(d.seen_cnt, 2);
	ck_assert(BOTH(0, FALLBACK));
	expect_dest(0, true);
	ck_assert_uint_eq(c[0].diag.local, CLC_DIAG_NO_DEVICE);
}

/* The user refuses it, with SMC-R possible and not: both ends know. */
START_LOOP_TEST(the_server_refuses, 0, 2)
{
	begin(true, _i == 1, true);
	d.refuses_dest = true;
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	expect_dest(0, false);
	ck_assert(smcr_dest_is_refused(c[0].conn) && smcr_dest_is_refused(s[0].conn));
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_CONFIG);
}

/* The server's service leads to one server: it learns no destination, and the client sees neither answer. */
START_TEST(a_server_without_destinations)
{
	begin(true, true, false);
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert((s[0].events & SMCR_EV_PROPOSAL) == 0);
	ck_assert(!smcr_dest_is_used(c[0].conn) && !smcr_dest_is_refused(c[0].conn));
	ck_assert(smcr_dest_is_refused(s[0].conn));
	ck_assert_uint_eq(c[0].diag.peer, CLC_DIAG_CONFIG);
}

/* The service leads to many, and the client wants none of them. */
START_TEST(a_client_without_a_destination)
{
	begin(true, true, true);
	d.dest = nowhere;
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	ck_assert((s[0].events & SMCR_EV_PROPOSAL) == 0);
	ck_assert(!smcr_dest_is_used(c[0].conn));
	ck_assert(smcr_dest_is_refused(c[0].conn) && smcr_dest_is_refused(s[0].conn));
}

/* ... but prewarming makes a link. */
START_TEST(prewarming_has_no_destination)
{
	begin(true, true, true);
	d.dest = nowhere;
	duo_open_one(&s[0], SMCR_SERVER, false);
	duo_open_one(&c[0], SMCR_CLIENT, true);
	duo_join(0);
	duo_run(500);
	ck_assert(IS(c[0], CLOSED) && IS(s[0], CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_OK);
}

/* Answers of a daemon that knows no destinations, and one that claims to use what nobody has sent. */
START_LOOP_TEST(answers_to_another_question, 0, 3)
{
	struct clc_msg msg = {
		.type = CLC_DECLINE, .version = 1, .decline = { .diag = 1, .client_used = _i > 0, .dest_used = _i == 2 }
	};

	duo_init(true, true, NULL);
	d.dest = _i == 2 ? nowhere : there;
	duo_open_one(&c[0], SMCR_CLIENT, false);
	duo_feed_msg(&c[0], &msg);
	duo_run(10);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert(!smcr_dest_is_used(c[0].conn) && !smcr_dest_is_refused(c[0].conn));
}

/* Over a link by the ticket of this destination: not to another one, nor to none. */
START_TEST(over_a_link)
{
	duo_init(true, true, &(struct smcr_config){ .keepalive_ms = 30000 });
	d.wants_dest = true;
	d.dest = there;
	d.ticket = 7;
	duo_connect(0, 1, 500);
	ck_assert(duo_open_over_link(1));
	duo_run(100);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert(c[1].conn->over_link && smcr_dest_is_used(c[1].conn));
	ck_assert_uint_eq(smcr_opened_ticket(s[1].conn), 7);
	d.dest = elsewhere;
	ck_assert(!duo_open_over_link(2));
	d.dest = nowhere;
	ck_assert(!duo_open_over_link(2));
	/* Each has its own. */
	d.dest = elsewhere;
	d.ticket = 8;
	duo_connect(2, 1, 500);
	for (unsigned i = 3; i < 5; i++) {
		d.dest = i == 3 ? there : elsewhere;
		ck_assert(duo_open_over_link(i));
		duo_run(100);
		ck_assert(BOTH(i, ESTABLISHED));
		ck_assert_uint_eq(smcr_opened_ticket(s[i].conn), i == 3 ? 7 : 8);
	}
}
