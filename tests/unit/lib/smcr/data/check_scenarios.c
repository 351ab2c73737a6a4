/* The six scenarios of RFC 7609 4.7 with its numbers: two hosts, RMB elements of 10,000 bytes with eye catcher. */
#include "host.h"
#include "unit.h"

#define ELEM 10000

/* Both cursors of A's direction to this stream position, everything consumed, and the peer knows it. */
static void
bring_to(uint64_t pos)
{
	while (ca->tx.sent < pos) {
		host_write(ca, pos - ca->tx.sent < 5000 ? (size_t)(pos - ca->tx.sent) : 5000, false);
		hosts_carry(&a, &b);
		host_read(cb, ELEM, NULL);
		cb->tx.pending = true;
		conn_tx_schedule(cb);
		hosts_carry(&a, &b);
		host_complete(&a);
		host_complete(&b);
	}
	ck_assert_uint_eq(ca->tx.acked, pos);
	host_events(ca);
	host_events(cb);
	host_forget(&a);
	host_forget(&b);
}

/* Carries exactly so many steps from A, then from B. */
static void
carry(unsigned from_a, unsigned from_b)
{
	for (unsigned i = 0; i < from_a; i++)
		ck_assert(host_carry_one(&a, &b));
	ck_assert(!host_carry_one(&a, &b));
	for (unsigned i = 0; i < from_b; i++)
		ck_assert(host_carry_one(&b, &a));
	ck_assert(!host_carry_one(&b, &a));
}

UNIT_CASE(hosts_case(tc, ELEM, true));

START_TEST(scenario_1_send_unconstrained)
{
	ck_assert_uint_eq(host_write(ca, 1000, false), 1000);
	ck_assert(host_carry_one(&a, &b));
	host_saw(&a, 0, "W 4:1003");
	ck_assert_uint_eq(host_events(cb), 0); /* a write alone tells nobody */
	carry(1, 0);
	host_saw(&a, 1, "C prod=0/1004 cons=0/4");
	ck_assert_uint_eq(host_events(cb), SMCR_EV_READABLE);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1000);
	/* The window is open: B says nothing. */
	carry(0, 0);
	ck_assert_uint_eq(a.steps, 2);
}

START_TEST(scenario_2_send_and_receive)
{
	host_write(ca, 1000, false);
	carry(2, 0);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1000);
	host_write(cb, 500, false);
	carry(0, 2);
	host_saw(&a, 0, "W 4:1003", "C prod=0/1004 cons=0/4");
	host_saw(&b, 0, "W 4:503", "C prod=0/504 cons=0/1004");
	ck_assert_uint_eq(ca->tx.acked, 1000);
	ck_assert_uint_eq(cb->rx.announced, 1000);
}

START_TEST(scenario_3_window_constrained)
{
	host_write(ca, 3000, false);
	carry(2, 0);
	host_saw(&a, 0, "W 4:3003", "C prod=0/3004 cons=0/4");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 3000);
	host_write(ca, 4000, false);
	carry(2, 0);
	host_saw(&a, 2, "W 3004:7003", "C prod=0/7004 cons=0/4");
	/* Less than half is left for A, and it gains more than a tenth. */
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 4000);
	carry(0, 1);
	host_saw(&b, 0, "C prod=0/4 cons=0/7004");
	ck_assert_uint_eq(ca->tx.acked, 7000);
}

START_TEST(scenario_4_full_window_writes)
{
	bring_to(9996 + 1000);
	ck_assert_uint_eq(host_write(ca, 20000, false), 20000);
	carry(3, 0);
	host_saw(&a, 0, "W 1004:9999", "W 4:1003", "C prod=2/1004 cons=0/4 B");
	ck_assert_uint_eq(a.eng.ctr.writer_blocked, 1);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 9996);
	carry(0, 1);
	host_saw(&b, 0, "C prod=0/4 cons=2/1004");
	carry(3, 0);
	host_saw(&a, 3, "W 1004:9999", "W 4:1003", "C prod=3/1004 cons=0/4 B");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 9996);
	carry(0, 1);
	host_saw(&b, 1, "C prod=0/4 cons=3/1004");
	/* "At this point, Host A can write the final 8 bytes." */
	carry(2, 0);
	host_saw(&a, 6, "W 1004:1011", "C prod=3/1012 cons=0/4");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 8);
	carry(0, 0);
}

START_TEST(scenario_5_urgent_window_open)
{
	unsigned urgent = 0;

	bring_to(9996 + 996);
	host_write(ca, 500, true);
	host_write(ca, 1000, false);
	carry(2, 0);
	host_saw(&a, 0, "W 1000:1499", "C prod=1/1500 cons=0/4 PU");
	ck_assert_uint_eq(host_events(cb), SMCR_EV_READABLE);
	ck_assert_uint_eq(host_read(cb, 499, &urgent), 499);
	ck_assert_uint_eq(urgent, 0);
	/* The urgent byte is not consumed: A may not write on, and B has no reason to speak. */
	carry(0, 0);
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 1);
	ck_assert_uint_eq(urgent, 1);
	carry(0, 1);
	host_saw(&b, 0, "C prod=0/4 cons=1/1500");
	carry(2, 0);
	host_saw(&a, 2, "W 1500:2499", "C prod=1/2500 cons=0/4");
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 1000);
	ck_assert_uint_eq(urgent, 1);
	carry(0, 0);
}

START_TEST(scenario_6_urgent_window_closed)
{
	unsigned urgent = 0;

	bring_to(9996 + 996);
	/* Full, but nothing behind it: B is not set yet. */
	host_write(ca, 9996, false);
	carry(3, 0);
	host_saw(&a, 2, "C prod=2/1000 cons=0/4");
	host_events(cb);
	host_forget(&a);
	host_write(ca, 500, true);
	host_write(ca, 1000, false);
	carry(1, 0);
	host_saw(&a, 0, "C prod=2/1000 cons=0/4 BP");
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 9996);
	carry(0, 1);
	host_saw(&b, 0, "C prod=0/4 cons=2/1000");
	carry(2, 0);
	host_saw(&a, 1, "W 1000:1499", "C prod=2/1500 cons=0/4 PU");
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 500);
	ck_assert_uint_eq(urgent, 1);
	carry(0, 1);
	host_saw(&b, 1, "C prod=0/4 cons=2/1500");
	carry(2, 0);
	host_saw(&a, 3, "W 1500:2499", "C prod=2/2500 cons=0/4");
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 1000);
}
