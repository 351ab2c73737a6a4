/* Lifetime of name server answers; see dns_ttl.h. Called by resolver.c and names.c. */
#include "daemon/names/dns_ttl.h"

#include "base/minmax.h"

#define HEADER_LEN 12
#define TYPE_SOA 6
#define SOA_FIXED_LEN 20 /* after the two names: serial, refresh, retry, expire, minimum */
#define RECORDS_MAX 512  /* records that are read */

/* Reads a message; an error is permanent. */
struct reader {
	const uint8_t *at, *end;
	bool bad;
};

struct record {
	uint16_t type;
	uint32_t ttl_s;
	struct reader data;
};

static const uint8_t *
dns_ttl_take(struct reader *r, size_t n)
{
	const uint8_t *at = r->at;

	if (r->bad || (size_t)(r->end - r->at) < n) {
		r->bad = true;
		return NULL;
	}
	r->at += n;
	return at;
}

static uint32_t
take_uint(struct reader *r, size_t n)
{
	const uint8_t *at = dns_ttl_take(r, n);
	uint32_t v = 0;

	for (size_t i = 0; at != NULL && i < n; i++)
		v = v << 8 | at[i];
	return v;
}

/* Labels up to the root or a pointer, which is not followed. */
static void
skip_name(struct reader *r)
{
	for (;;) {
		uint32_t len = take_uint(r, 1);

		if (r->bad || len == 0)
			return;
		if ((len & 0xc0) == 0xc0) {
			(void)dns_ttl_take(r, 1);
			return;
		}
		if ((len & 0xc0) != 0)
			r->bad = true;
		(void)dns_ttl_take(r, len);
	}
}

static bool
take_record(struct reader *r, struct record *out)
{
	skip_name(r);
	out->type = (uint16_t)take_uint(r, 2);
	(void)dns_ttl_take(r, 2);
	out->ttl_s = take_uint(r, 4);
	/* RFC 2181 8: 0 when the first bit is set. */
	if (out->ttl_s > INT32_MAX)
		out->ttl_s = 0;
	size_t len = take_uint(r, 2);
	const uint8_t *data = dns_ttl_take(r, len);
	out->data = (struct reader){ .at = data, .end = r->bad ? data : data + len, .bad = r->bad };
	return !r->bad;
}

/* Skips to the answers; returns the record counts of the sections after the questions. */
static struct reader
open_message(const uint8_t *msg, size_t len, unsigned *answers, unsigned *authorities)
{
	struct reader r = { .at = msg, .end = msg + len, .bad = msg == NULL };
	unsigned questions;

	(void)dns_ttl_take(&r, 4);
	questions = take_uint(&r, 2);
	*answers = take_uint(&r, 2);
	*authorities = take_uint(&r, 2);
	(void)dns_ttl_take(&r, 2);
	if (questions + *answers + *authorities > RECORDS_MAX)
		r.bad = true;
	for (unsigned i = 0; i < questions && !r.bad; i++) {
		skip_name(&r);
		(void)dns_ttl_take(&r, 4);
	}
	return r;
}

bool
dns_answer_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s)
{
	unsigned answers, authorities;
	struct reader r = open_message(msg, len, &answers, &authorities);
	uint32_t least = UINT32_MAX;
	struct record rec;

	for (unsigned i = 0; i < answers && !r.bad; i++)
		if (take_record(&r, &rec))
			least = min_u32(least, rec.ttl_s);
	if (r.bad || least == UINT32_MAX)
		return false;
	*ttl_s = least;
	return true;
}

bool
dns_negative_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s)
{
	unsigned answers, authorities;
	struct reader r = open_message(msg, len, &answers, &authorities);
	struct record rec;

	/* Aliases without a target may come first. */
	for (unsigned i = 0; i < answers && !r.bad; i++)
		(void)take_record(&r, &rec);
	for (unsigned i = 0; i < authorities && take_record(&r, &rec); i++) {
		if (rec.type != TYPE_SOA)
			continue;
		skip_name(&rec.data);
		skip_name(&rec.data);
		(void)dns_ttl_take(&rec.data, SOA_FIXED_LEN - 4);
		uint32_t minimum = take_uint(&rec.data, 4);
		if (rec.data.bad)
			return false;
		*ttl_s = min_u32(rec.ttl_s, minimum);
		return true;
	}
	return false;
}

uint32_t
dns_next_s(const struct dns_outcome *o)
{
	uint32_t wait = DNS_TTL_MIN_S;

	if (o->lasts)
		return max_u32(DNS_TTL_MIN_S, min_u32(o->ttl_s, o->found ? DNS_TTL_MAX_S : DNS_NEGATIVE_MAX_S));
	for (unsigned i = 1; i < o->failed && wait < DNS_FAILURE_MAX_S; i++)
		wait *= 2;
	return min_u32(wait, DNS_FAILURE_MAX_S);
}
