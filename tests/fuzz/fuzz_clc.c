#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/clc.h"
#include "wire/describe.h"

/* Messages that decode but are beyond what we send. */
static int
is_not_ours(const struct clc_msg *m)
{
	if (m->type == CLC_PROPOSAL)
		return m->version > 2 || (!m->proposal.ext.present && m->proposal.growth_len > CLC_GROWTH_LEN);
	if (m->type == CLC_DECLINE)
		return m->version > 2;
	return m->accept.size_code > CLC_MAX_SIZE_CODE_SENT || clc_mtu_bytes(m->accept.mtu_code) == 0;
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
