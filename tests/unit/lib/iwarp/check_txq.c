#include "iwarp/txq.h"

#include <string.h>

#include "iwarp/fpdu.h"
#include "unit.h"
#include "vectors.h"

static struct txq q;

static size_t
take(uint8_t *out, size_t max)
{
	struct iovec iov[TXQ_SEGS];
	unsigned n = txq_gather(&q, iov, TXQ_SEGS);
	size_t len = 0;

	for (unsigned i = 0; i < n && len < max; i++) {
		size_t k = iov[i].iov_len < max - len ? iov[i].iov_len : max - len;

		memcpy(out + len, iov[i].iov_base, k);
		len += k;
	}
	txq_sent(&q, len);
	return len;
}

static bool with_crc;

/* What is decoded from a vector is encoded to the same bytes. */
static void
check_vector(const char *name, struct span fpdu)
{
	struct span ulpdu = { fpdu.ptr + 2, (size_t)fpdu.ptr[0] << 8 | fpdu.ptr[1] };
	struct ddp_hdr h;
	int n = ddp_decode(ulpdu, &h);
	size_t len = ulpdu.len - (size_t)n;
	const struct txq_payload p = {
		.cnt = 1,
		.len = len,
		.v = { { (void *)(uintptr_t)(ulpdu.ptr + n), len } },
	};
	uint8_t out[VECTOR_MAX_LEN];

	ck_assert_int_eq(txq_init(&q, 4096), 0);
	txq_start(&q, with_crc, false);
	txq_put(&q, &h, &p);
	ck_assert_uint_eq(q.bytes, fpdu.len);
	ck_assert_uint_eq(take(out, sizeof(out)), fpdu.len);
	ck_assert_msg(memcmp(out, fpdu.ptr, fpdu.len) == 0, "%s", name);
	txq_fini(&q);
}

START_TEST(golden_fpdus)
{
	with_crc = true;
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-crc", check_vector), 30);
	with_crc = false;
	ck_assert_uint_ge(vectors_each_in("iwarp.txt", "fpdu-nocrc", check_vector), 20);
}

START_TEST(examples_of_rfc_5044)
{
	static const uint8_t crc5[] = { 0x52, 0x23, 0x99, 0x83 }, crc6[] = { 0x84, 0x92, 0x58, 0x98 };
	uint8_t data[24] = { 0 }, out[64];
	struct ddp_hdr h = { .last = true, .ulp_ctrl = 0x43, .msn = 1 };
	const struct txq_payload p = { .cnt = 1, .len = 24, .v = { { data, 24 } } };

	ck_assert_int_eq(txq_init(&q, 4096), 0);
	txq_start(&q, true, true);
	txq_put(&q, &h, &p);
	ck_assert_uint_eq(take(out, sizeof(out)), 52);
	ck_assert_uint_eq(out[0] | out[1] | out[2] | out[3], 0);
	ck_assert_mem_eq(out + 48, crc5, 4);
	q.pos = 0x1ec;
	h.msn = 2;
	txq_put(&q, &h, &p);
	ck_assert_uint_eq(take(out, sizeof(out)), 52);
	ck_assert_uint_eq(out[23], 0x14);
	ck_assert_mem_eq(out + 48, crc6, 4);
	txq_fini(&q);
}

START_TEST(small_messages_run_together)
{
	uint8_t data[1024] = { 0 };
	const struct txq_payload small = { .cnt = 1, .len = sizeof(data), .v = { { data, sizeof(data) } } };
	const struct ddp_hdr h = { .last = true };
	struct iovec iov[TXQ_SEGS];

	ck_assert_int_eq(txq_init(&q, 64 * 1024), 0);
	txq_start(&q, true, false);
	for (unsigned i = 0; i < 40; i++) {
		ck_assert(txq_room(&q, small.len));
		txq_put(&q, &h, &small);
	}
	ck_assert_uint_eq(txq_gather(&q, iov, TXQ_SEGS), 1);
	txq_fini(&q);
}

START_TEST(large_payload_stays_in_place)
{
	static uint8_t data[20000];
	const struct txq_payload big = {
		.cnt = 2,
		.len = sizeof(data),
		.v = { { data, 7 }, { data + 7, sizeof(data) - 7 } },
	};
	const struct ddp_hdr h = { .tagged = true, .last = true };
	struct iovec iov[TXQ_SEGS];

	ck_assert_int_eq(txq_init(&q, 4096), 0);
	txq_start(&q, true, false);
	txq_put(&q, &h, &big);
	txq_put(&q, &h, &big);
	/* header, two pieces, trailer and next header, two pieces, trailer */
	ck_assert_uint_eq(txq_gather(&q, iov, TXQ_SEGS), 7);
	ck_assert_ptr_eq(iov[1].iov_base, data);
	ck_assert_ptr_eq(iov[5].iov_base, data + 7);
	ck_assert_uint_eq(txq_gather(&q, iov, 3), 3);
	txq_fini(&q);
}

/* Random puts and partial sends against a decoder: the ring goes round many times, no byte is lost or damaged, and room
 * is told rightly. */
START_LOOP_TEST(ring_goes_round, 0, 2)
{
	static uint8_t data[5000], stream[200000];
	bool crc = true, markers = _i & 1;
	struct fpdu_rx rx;
	uint64_t seed = 12345 + (uint64_t)_i;
	size_t have = 0;
	uint32_t put = 0, got = 0;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	ck_assert_int_eq(txq_init(&q, 20000), 0);
	txq_start(&q, crc, markers);
	rx = (struct fpdu_rx){ .crc = crc, .markers = markers };
	for (unsigned round = 0; round < 60000; round++) {
		size_t off = 0, need;
		struct span u;
		ssize_t used;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		size_t len = (seed >> 33) % (seed & 1 ? 60 : 3000);
		while (round % 3 != 0 && txq_room(&q, len)) {
			const struct txq_payload p = { .cnt = 1, .len = len, .v = { { data + len % 100, len } } };

			txq_put(&q, &(struct ddp_hdr){ .tagged = true, .stag = put++, .to = len }, &p);
			if (seed & 2)
				break;
		}
		have += take(stream + have, (seed >> 40) % 9000);
		while ((used = fpdu_rx_next(&rx, stream + off, have - off, &u, &need)) > 0) {
			struct ddp_hdr h;

			ck_assert_int_gt(ddp_decode(u, &h), 0);
			ck_assert_uint_eq(h.stag, got);
			got++;
			ck_assert_uint_eq(u.len, DDP_TAGGED_LEN + h.to);
			ck_assert_mem_eq(u.ptr + DDP_TAGGED_LEN, data + h.to % 100, h.to);
			off += (size_t)used;
		}
		ck_assert_int_eq(used, 0);
		memmove(stream, stream + off, have - off);
		have -= off;
	}
	ck_assert_uint_gt(got, 10000);
	txq_fini(&q);
}
