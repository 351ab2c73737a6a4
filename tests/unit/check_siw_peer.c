/* Soft iWARP and the ways of cards and kernels, played by a peer made by hand: what they need, and how they end. */
#include "siw_raw_peer.h"

/* -- who may come -- */

static int
connect_from(const char *addr)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(rnic_query(b.dev).mpa_port),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(inet_pton(AF_INET, addr, &from.sin_addr), 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static bool
only_odd_ones(void *ctx, const struct rnic_gid *from)
{
	ck_assert_ptr_eq(ctx, &b);
	ck_assert_uint_eq(from->b[11], 0xff);
	return from->b[15] % 2 == 1;
}

/* Not a byte is read from an address that may not connect, and nobody has to make place for it. */
START_TEST(an_address_that_may_not_connect_is_turned_away)
{
	struct siw_config c = config();
	struct siw_pdata d;
	int fd[200];
	char byte;

	c.may_connect = only_odd_ones;
	c.may_connect_ctx = &b;
	open_for_raw(&c);
	raw_open(&b, 0); /* 127.0.0.1, slow */
	run_ms(20);
	for (unsigned i = 0; i < 200; i++) {
		fd[i] = connect_from("127.0.0.2");
		turn_one(&b, 0);
	}
	UNTIL(stats(&b).mpa_refused_address == 200);
	ck_assert_int_eq(recv(fd[0], &byte, 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	d = raw_pdata();
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	ck_assert_uint_eq(raw_reply(&d).flags, MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(stats(&b).mpa_bad, 0);
	for (unsigned i = 0; i < 200; i++)
		close(fd[i]);
	raw_close();
	close_both();
}

END_TEST

/* Requests that nobody expects yet: one address cannot fill the places, all together have 64. */
START_TEST(early_requests_of_one_address_leave_room)
{
	static const char *const from[] = { "127.0.0.2", "127.0.0.3", "127.0.0.4" };
	static const unsigned refused[] = { 1, 1, 2 }; /* after 33, then 32, then one more requests */
	struct siw_config c = config();
	struct siw_pdata d;
	int fd[66];
	unsigned n = 0;

	open_both(&c, &c);
	end_qp(&b, 16, 8, TOKEN); /* it expects nobody */
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = i == 0 ? 33 : i == 1 ? 32 : 1; k > 0; k--) {
			raw.fd = fd[n++] = connect_from(from[i]);
			d = raw_pdata();
			raw_send_frame(raw_frame(MPA_REQUEST), &d);
			for (unsigned t = 0; t < 3; t++)
				turn_one(&b, 1);
		}
		ck_assert_uint_eq(stats(&b).mpa_refused_parked, refused[i]);
	}
	while (n > 0)
		close(fd[--n]);
	close_both();
}

END_TEST

static void
siw_peer_case(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, an_address_that_may_not_connect_is_turned_away);
	tcase_add_test(tc, early_requests_of_one_address_leave_room);
}

UNIT_MAIN("siw_peer", siw_peer_case)
