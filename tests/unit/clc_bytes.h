/* CLC messages as bytes that a test may bend, and what must hold of all that decode or do not. */
#pragma once

#include <errno.h>
#include <string.h>

#include "checks.h"
#include "hex.h"
#include "wire/clc.h"

struct buf {
	uint8_t b[CLC_MAX_LEN + 64];
	size_t len;
};

static inline struct buf
from_hex(const char *hex)
{
	struct buf out;

	out.len = unhex(hex, out.b, sizeof(out.b));
	return out;
}

static inline int
decode(const struct buf *in, struct clc_msg *out)
{
	return clc_decode((struct span){ in->b, in->len }, out);
}

static inline void
set_len(struct buf *m, unsigned len)
{
	m->b[5] = (uint8_t)(len >> 8);
	m->b[6] = (uint8_t)len;
}

/* Decoding fails with `err` and leaves the output alone. */
static inline void
expect(const struct buf *in, int err)
{
	struct clc_msg out;

	memset(&out, 0xa5, sizeof(out));
	struct clc_msg before = out;
	ck_assert_int_eq(decode(in, &out), err);
	ck_assert_mem_eq(&out, &before, sizeof(out));
}

static inline struct clc_msg
expect_ok(const struct buf *in)
{
	struct clc_msg out;

	ck_assert_int_eq(decode(in, &out), (int)in->len);
	return out;
}

static inline struct buf
encoded(const struct clc_msg *msg)
{
	struct buf out;
	int len = clc_encode(msg, out.b, sizeof(out.b));

	ck_assert_int_gt(len, 0);
	out.len = (size_t)len;
	return out;
}

/* Too small a buffer is refused and stays as it was. */
static inline void
expect_encode_fails(const struct clc_msg *msg, size_t cap, int err)
{
	uint8_t b[CLC_MAX_SENT_LEN], before[CLC_MAX_SENT_LEN];

	memset(b, 0x5a, sizeof(b));
	memcpy(before, b, sizeof(b));
	ck_assert_int_eq(clc_encode(msg, b, cap), err);
	ck_assert_mem_eq(b, before, sizeof(b));
}

static inline void
check_again(const struct buf *in, const struct clc_msg *msg)
{
	struct buf out = encoded(msg);

	ck_assert_uint_eq(out.len, in->len);
	ck_assert_mem_eq(out.b, in->b, in->len);
	for (size_t cap = 0; cap < out.len; cap++)
		expect_encode_fails(msg, cap, -ENOSPC);
}

static inline void
check_truncations(const struct buf *in)
{
	struct buf cut = *in;

	for (cut.len = 0; cut.len < in->len; cut.len++) {
		expect(&cut, 0);
		ck_assert_int_eq(
		    clc_peek_len((struct span){ cut.b, cut.len }), cut.len < CLC_HDR_LEN ? 0 : (int)in->len);
	}
}

static inline struct clc_msg
a_proposal(void)
{
	struct clc_msg m = { .type = CLC_PROPOSAL, .version = 1 };

	memset(m.proposal.peer_id, 1, sizeof(m.proposal.peer_id));
	memset(m.proposal.gid, 2, sizeof(m.proposal.gid));
	memset(m.proposal.mac, 3, sizeof(m.proposal.mac));
	m.proposal.typev2 = CLC_PATH_NONE;
	m.proposal.ipv4_subnet = 0x0a630100;
	m.proposal.ipv4_len = 24;
	return m;
}

static const struct clc_smcrd_ext an_ext = {
	.present = true,
	.version = 1,
	.transports = CLC_TRANSPORT_IWARP,
	.features = CLC_FEATURE_START_OVER,
	.mpa_port = 4791,
	.recv_depth = 512,
	.token = 0x0123456789abcdef,
};

static inline void
check_ext(const struct clc_smcrd_ext *ext)
{
	ck_assert(ext->present);
	ck_assert_uint_eq(ext->version, 1);
	ck_assert_uint_eq(ext->transports, CLC_TRANSPORT_IWARP);
	ck_assert_uint_eq(ext->features, CLC_FEATURE_START_OVER);
	ck_assert_uint_eq(ext->mpa_port, 4791);
	ck_assert_uint_eq(ext->recv_depth, 512);
	ck_assert_uint_eq(ext->token, 0x0123456789abcdef);
}

#define REFUSE(base, field, value)                                   \
	do {                                                         \
		struct clc_msg m_ = (base);                          \
		m_.field = (value);                                  \
		expect_encode_fails(&m_, CLC_MAX_SENT_LEN, -EINVAL); \
	} while (0)
