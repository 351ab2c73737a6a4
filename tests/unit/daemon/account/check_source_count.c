/* Connections by source, against a plain array. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/account/source_count.h"
#include "unit.h"

static union net_addr
addr(const char *text)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;
	union net_addr a;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
	}
	addr_set_port(&ss, (uint16_t)rand());
	net_addr_set(&a, &ss);
	return a;
}

static uint32_t
add(struct source_count *s, const char *text)
{
	union net_addr a = addr(text);

	return source_count_add(s, &a);
}

static void
del(struct source_count *s, const char *text)
{
	union net_addr a = addr(text);

	source_count_remove(s, &a);
}

START_TEST(counts_by_address_and_not_by_port)
{
	struct source_count s = { 0 };

	ck_assert_uint_eq(add(&s, "192.0.2.1"), 1);
	ck_assert_uint_eq(add(&s, "192.0.2.1"), 2);
	ck_assert_uint_eq(add(&s, "::ffff:192.0.2.1"), 3);
	ck_assert_uint_eq(add(&s, "192.0.2.2"), 1);
	del(&s, "192.0.2.1");
	ck_assert_uint_eq(add(&s, "192.0.2.1"), 3);
	del(&s, "192.0.2.2");
	ck_assert_uint_eq(add(&s, "192.0.2.2"), 1);
	source_count_fini(&s);
}

START_TEST(an_ipv6_source_is_its_network)
{
	struct source_count s = { 0 };

	ck_assert_uint_eq(add(&s, "2001:db8::1"), 1);
	ck_assert_uint_eq(add(&s, "2001:db8::ffff:1:2"), 2);
	ck_assert_uint_eq(add(&s, "2001:db8:0:1::1"), 1);
	/* In these networks a host has no choice. */
	ck_assert_uint_eq(add(&s, "fe80::1"), 1);
	ck_assert_uint_eq(add(&s, "fe80::2"), 1);
	ck_assert_uint_eq(add(&s, "::1"), 1);
	ck_assert_uint_eq(add(&s, "::2"), 1);
	source_count_fini(&s);
}

START_TEST(a_source_on_a_unix_socket_is_its_user)
{
	union net_addr one = { .un = { .family = AF_UNIX, .uid = 1000, .pid = 7 } };
	union net_addr again = { .un = { .family = AF_UNIX, .uid = 1000, .pid = 8 } };
	union net_addr other = { .un = { .family = AF_UNIX, .uid = 0, .pid = 7 } };
	struct source_count s = { 0 };

	ck_assert_uint_eq(source_count_add(&s, &one), 1);
	ck_assert_uint_eq(source_count_add(&s, &again), 2);
	ck_assert_uint_eq(source_count_add(&s, &other), 1);
	/* The place of a uid is no place of an address. */
	ck_assert_uint_eq(add(&s, "0.0.3.232"), 1);
	ck_assert_uint_eq(add(&s, "0.0.0.0"), 1);
	source_count_remove(&s, &again);
	ck_assert_uint_eq(source_count_of(&s, &one), 1);
	source_count_fini(&s);
}

/* Few sources and many changes, so that each becomes empty and comes again. */
START_LOOP_TEST(counts_as_a_plain_array_does, 0, 4)
{
	enum { N = 600 };
	static uint32_t cnt[N];
	struct source_count s = { 0 };

	srand((unsigned)_i);
	for (int round = 0; round < 20000; round++) {
		unsigned n = (unsigned)rand() % (round < 10000 ? N : N / 20);
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.%u", n / 256, n % 256);
		union net_addr a = addr(text);
		ck_assert_uint_eq(source_count_of(&s, &a), cnt[n]);
		if (cnt[n] > 0 && rand() % 2 == 0) {
			source_count_remove(&s, &a);
			cnt[n]--;
		} else {
			ck_assert_uint_eq(source_count_add(&s, &a), ++cnt[n]);
		}
	}
	for (unsigned n = 0; n < N; n++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.%u", n / 256, n % 256);
		for (; cnt[n] > 0; cnt[n]--)
			del(&s, text);
	}
	ck_assert_ptr_null(s.tree);
	source_count_fini(&s);
}
