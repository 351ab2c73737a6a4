#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "fuzz.h"
#include "wire/clc.h"
#include "wire/describe.h"

static bool
is_beyond_limits(uint8_t release, uint8_t max_conns, uint8_t max_links)
{
	if (release == 0)
		return false;
	return release > CLC_RELEASE || max_conns < CLC_MIN_MAX_CONNS || max_links < 1 || max_links > CLC_MAX_MAX_LINKS;
}

/* Messages that decode but are beyond what we send. */
static bool
is_not_ours(const struct clc_msg *m)
{
	const struct clc_proposal *p = &m->proposal;
	const struct clc_accept *a = &m->accept;

	if (m->version > 2)
		return true;
	if (m->type == CLC_DECLINE)
		return false;
	if (m->type != CLC_PROPOSAL)
		return a->size_code > CLC_MAX_SIZE_CODE_SENT || clc_mtu_bytes(a->mtu_code) == 0 ||
		    is_beyond_limits(a->first.release, a->first.max_conns, a->first.max_links);
	return (!p->ext.present && p->growth_len > CLC_GROWTH_LEN) || p->tlvs.unknown != 0 ||
	    ((p->tlvs.client.kind != CLC_CLIENT_NONE || p->tlvs.dest.kind != CLC_DEST_NONE) && p->v2.present) ||
	    is_beyond_limits(p->v2.release, p->v2.max_conns, p->v2.max_links);
}

/* What a caller of the decoder may rely on. */
static void
check_promises(const struct clc_msg *m)
{
	const struct clc_proposal *p = &m->proposal;

	if (m->type == CLC_PROPOSAL) {
		FUZZ_CHECK(p->typev1 != CLC_PATH_NONE || p->v2.present);
		FUZZ_CHECK(p->ipv6_cnt <= CLC_MAX_IPV6 && p->v2.eid_cnt <= CLC_MAX_EIDS);
		FUZZ_CHECK(m->version >= 2 || !p->v2.present);
		FUZZ_CHECK(p->v2.eid_cnt == 0 || clc_eid_common(p->v2.eids, 1, p->v2.eids, p->v2.eid_cnt) != NULL);
	} else if (m->type != CLC_DECLINE) {
		FUZZ_CHECK(m->version == 1 || m->version == 2);
		FUZZ_CHECK(m->accept.first.present == (m->version == 2 && m->accept.first_contact));
		FUZZ_CHECK(m->accept.first.gid_cnt <= CLC_MAX_GIDS);
		FUZZ_CHECK(m->version == 1 || !m->accept.ext.present);
	}
}

static void
describe(struct span in)
{
	char line[WIRE_DESCRIBE_LEN];
	int n = wire_describe_clc(in, line, sizeof(line));

	FUZZ_CHECK(n > 0 && (size_t)n == strlen(line) && (size_t)n < sizeof(line) - 1);
	n = wire_describe_clc(in, line, 1 + in.len % 80);
	FUZZ_CHECK(n >= 0 && (size_t)n == strlen(line) && (size_t)n <= in.len % 80);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t first[CLC_MAX_SENT_LEN], second[CLC_MAX_SENT_LEN];
	struct span in = { data, len };
	int total = clc_peek_len(in);
	struct clc_msg msg, again;
	int n = clc_decode(in, &msg);

	describe((struct span){ data, len });
	if (n <= 0) {
		FUZZ_CHECK(n == -EBADMSG || n == -EPROTO || (n == 0 && (size_t)total * (total > 0) > len) ||
		    (n == 0 && total == 0 && len < CLC_HDR_LEN));
		FUZZ_CHECK(n != -EPROTO || clc_bad_value_diag(in) != 0);
		return 0;
	}
	FUZZ_CHECK(n == total && (size_t)n <= len);
	check_promises(&msg);
	n = clc_encode(&msg, first, sizeof(first));
	if (is_not_ours(&msg)) {
		FUZZ_CHECK(n == -EINVAL);
		return 0;
	}
	FUZZ_CHECK(n > 0);
	FUZZ_CHECK(clc_decode((struct span){ first, (size_t)n }, &again) == n);
	FUZZ_CHECK(clc_encode(&again, second, sizeof(second)) == n);
	FUZZ_CHECK(memcmp(first, second, (size_t)n) == 0);
	return 0;
}
