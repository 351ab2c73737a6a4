/* How long answers of name servers count, and when a name is looked up again. */
#include <stdlib.h>
#include <string.h>

#include "daemon/names/dns_ttl.h"
#include "unit.h"

/* A message is written down piece by piece. */
static struct {
	uint8_t b[1024];
	size_t len;
} msg;

static void
put(size_t n, uint32_t v)
{
	for (size_t i = n; i-- > 0;)
		msg.b[msg.len++] = (uint8_t)(v >> 8 * i);
}

/* "a.example", or a pointer to the question's. */
static void
put_name(bool pointer)
{
	static const uint8_t name[] = "\1a\7example";

	if (pointer) {
		put(2, 0xc00c);
		return;
	}
	memcpy(msg.b + msg.len, name, sizeof(name));
	msg.len += sizeof(name);
}

static void
begin(unsigned answers, unsigned authorities)
{
	msg.len = 0;
	put(2, 0x1234);
	put(2, 0x8180);
	put(2, 1);
	put(2, answers);
	put(2, authorities);
	put(2, 0);
	put_name(false);
	put(2, 1);
	put(2, 1);
}

static void
put_a(uint32_t ttl_s)
{
	put_name(true);
	put(2, 1);
	put(2, 1);
	put(4, ttl_s);
	put(2, 4);
	put(4, 0xc0000201);
}

static void
put_soa(uint32_t ttl_s, uint32_t minimum)
{
	put_name(true);
	put(2, 6);
	put(2, 1);
	put(4, ttl_s);
	put(2, 2 + 11 + 20);
	put_name(true);
	put_name(false);
	put(4, 1);
	put(4, 2);
	put(4, 3);
	put(4, 4);
	put(4, minimum);
}

START_TEST(the_smallest_ttl_counts)
{
	uint32_t ttl = 0;

	begin(3, 1);
	put_a(300);
	put_a(7);
	put_a(20);
	put_soa(1, 1);
	ck_assert(dns_answer_ttl(msg.b, msg.len, &ttl));
	ck_assert_uint_eq(ttl, 7);
	/* RFC 2181 8 */
	begin(2, 0);
	put_a(300);
	put_a(0x80000001);
	ck_assert(dns_answer_ttl(msg.b, msg.len, &ttl));
	ck_assert_uint_eq(ttl, 0);
}

START_LOOP_TEST(a_negative_answer_lasts_as_its_soa_says, 0, 2)
{
	uint32_t ttl = 0;

	begin(1, 2);
	put_a(1);
	put_a(2);
	put_soa(_i == 0 ? 60 : 90, _i == 0 ? 90 : 60);
	ck_assert(dns_negative_ttl(msg.b, msg.len, &ttl));
	ck_assert_uint_eq(ttl, 60);
}

START_TEST(without_records_nothing_is_known)
{
	uint32_t ttl = 77;

	begin(0, 0);
	ck_assert(!dns_answer_ttl(msg.b, msg.len, &ttl));
	ck_assert(!dns_negative_ttl(msg.b, msg.len, &ttl));
	ck_assert(!dns_answer_ttl(NULL, 0, &ttl));
	ck_assert(!dns_negative_ttl(NULL, 0, &ttl));
	ck_assert_uint_eq(ttl, 77);
}

START_TEST(no_cut_message_counts)
{
	uint32_t ttl = 77;

	begin(1, 1);
	put_a(300);
	size_t answer = msg.len;
	put_soa(60, 90);
	for (size_t len = 0; len < msg.len; len++) {
		/* On the heap, where a sanitizer sees a read behind the end. */
		uint8_t *copy = malloc(len + 1);

		memcpy(copy + 1, msg.b, len);
		ck_assert_int_eq(dns_answer_ttl(copy + 1, len, &ttl), len >= answer);
		ck_assert_msg(!dns_negative_ttl(copy + 1, len, &ttl), "%zu", len);
		free(copy);
	}
	ck_assert_uint_eq(ttl, 300);
}

START_TEST(lengths_that_lie_are_no_harm)
{
	uint32_t ttl;

	/* The length of the SOA's data, of a label, kinds of labels that there are not, counts. */
	begin(0, 1);
	put_soa(60, 90);
	size_t at = msg.len - 33 - 2;
	for (unsigned v = 0; v < 33; v++) {
		msg.b[at + 1] = (uint8_t)v;
		ck_assert(!dns_negative_ttl(msg.b, msg.len, &ttl));
	}
	msg.b[at] = 0xff;
	ck_assert(!dns_negative_ttl(msg.b, msg.len, &ttl));
	for (unsigned v = 0; v < 256; v++) {
		begin(1, 0);
		put_a(5);
		msg.b[12] = (uint8_t)v;
		(void)dns_answer_ttl(msg.b, msg.len, &ttl);
		msg.b[4] = (uint8_t)v;
		ck_assert(!dns_answer_ttl(msg.b, msg.len, &ttl) || v <= 1);
	}
	begin(0xffff, 0);
	put_a(5);
	ck_assert(!dns_answer_ttl(msg.b, msg.len, &ttl));
}

static const struct {
	unsigned failed;
	bool lasts;
	uint32_t ttl_s, next_s;
} rows[] = {
	{ 0, true, 30, 30 },
	{ 0, true, 0, DNS_TTL_MIN_S },
	{ 0, true, UINT32_MAX, DNS_TTL_MAX_S },
	{ 0, false, 0, DNS_TTL_MIN_S },
	{ 1, true, 30, 30 },
	{ 9, true, 30, 30 },
	{ 1, true, 0, DNS_TTL_MIN_S },
	{ 1, true, 86400, DNS_NEGATIVE_MAX_S },
	{ 1, false, 0, 5 },
	{ 2, false, 0, 10 },
	{ 4, false, 0, 40 },
	{ 5, false, 0, DNS_FAILURE_MAX_S },
	{ UINT32_MAX, false, 0, DNS_FAILURE_MAX_S },
};

START_LOOP_TEST(the_next_look_up_is_bounded, 0, sizeof(rows) / sizeof(rows[0]))
{
	ck_assert_uint_eq(dns_next_s(rows[_i].failed, rows[_i].lasts ? &rows[_i].ttl_s : NULL), rows[_i].next_s);
}
