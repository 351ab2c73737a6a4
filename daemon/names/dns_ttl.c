/* Lifetime of name server answers; see dns_ttl.h. Called by resolver.c and names.c. */
#include "daemon/names/dns_ttl.h"

#include "base/minmax.h"
#include "base/span.h"

#define TYPE_SOA 6
#define SOA_FIXED_LEN 20 /* after the two names: serial, refresh, retry, expire, minimum */
#define RECORDS_MAX 512  /* records that are read */

struct record {
	uint16_t type;
	uint32_t ttl_s;
	struct rcur data;
};

/* Labels up to the root or a pointer, which is not followed. */
static void
skip_name(struct rcur *r)
{
	for (;;) {
		uint8_t len = rcur_u8(r);

		if (r->failed || len == 0)
			return;
		if ((len & 0xc0) == 0xc0) {
			rcur_skip(r, 1);
			return;
		}
		if ((len & 0xc0) != 0)
			r->failed = true;
		rcur_skip(r, len);
	}
}

static bool
take_record(struct rcur *r, struct record *out)
{
	skip_name(r);
	out->type = rcur_be16(r);
	rcur_skip(r, 2);
	out->ttl_s = rcur_be32(r);
	/* RFC 2181 8: 0 when the first bit is set. */
	if (out->ttl_s > INT32_MAX)
		out->ttl_s = 0;
	out->data = rcur_sub(r, rcur_be16(r));
	return !r->failed;
}

/* Skips to the answers; returns the record counts of the sections after the questions. */
static struct rcur
open_message(const uint8_t *msg, size_t len, unsigned *answers, unsigned *authorities)
{
	struct rcur r = msg != NULL ? rcur_make(msg, len) : (struct rcur){ .failed = true };

	rcur_skip(&r, 4);
	unsigned questions = rcur_be16(&r);
	*answers = rcur_be16(&r);
	*authorities = rcur_be16(&r);
	rcur_skip(&r, 2);
	if (questions + *answers + *authorities > RECORDS_MAX)
		r.failed = true;
	for (unsigned i = 0; i < questions && !r.failed; i++) {
		skip_name(&r);
		rcur_skip(&r, 4);
	}
	return r;
}

bool
dns_answer_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s)
{
	unsigned answers, authorities;
	struct rcur r = open_message(msg, len, &answers, &authorities);
	uint32_t least = UINT32_MAX;
	struct record rec;

	for (unsigned i = 0; i < answers && take_record(&r, &rec); i++)
		least = min_u32(least, rec.ttl_s);
	if (r.failed || least == UINT32_MAX)
		return false;
	*ttl_s = least;
	return true;
}

bool
dns_negative_ttl(const uint8_t *msg, size_t len, uint32_t *ttl_s)
{
	unsigned answers, authorities;
	struct rcur r = open_message(msg, len, &answers, &authorities);
	struct record rec;

	/* Aliases without a target may come first. */
	for (unsigned i = 0; i < answers + authorities && take_record(&r, &rec); i++) {
		if (i < answers || rec.type != TYPE_SOA)
			continue;
		skip_name(&rec.data);
		skip_name(&rec.data);
		rcur_skip(&rec.data, SOA_FIXED_LEN - 4);
		uint32_t minimum = rcur_be32(&rec.data);
		if (rec.data.failed)
			return false;
		*ttl_s = min_u32(rec.ttl_s, minimum);
		return true;
	}
	return false;
}

uint32_t
dns_next_s(unsigned failed, const uint32_t *ttl_s)
{
	uint32_t wait = DNS_TTL_MIN_S;

	if (ttl_s != NULL)
		return max_u32(DNS_TTL_MIN_S, min_u32(*ttl_s, failed == 0 ? DNS_TTL_MAX_S : DNS_NEGATIVE_MAX_S));
	for (unsigned i = 1; i < failed && wait < DNS_FAILURE_MAX_S; i++)
		wait *= 2;
	return min_u32(wait, DNS_FAILURE_MAX_S);
}
