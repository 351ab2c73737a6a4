#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/llc.h"
#include "wire/describe.h"

static void
describe(struct span in)
{
	char line[WIRE_DESCRIBE_LEN];
	int n = wire_describe_llc(in, line, sizeof(line));

	FUZZ_CHECK(n > 0 && (size_t)n == strlen(line) && (size_t)n < sizeof(line) - 1);
	n = wire_describe_llc(in, line, 1 + in.len % 80);
	FUZZ_CHECK(n >= 0 && (size_t)n == strlen(line) && (size_t)n <= in.len % 80);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t first[LLC_LEN], second[LLC_LEN];
	struct llc_msg msg, again;
	int n = llc_decode((struct span){ data, len }, LLC_VERSION, &msg);

	describe((struct span){ data, len });
	if (n <= 0) {
		FUZZ_CHECK(n == -EBADMSG || n == -EPROTO || n == -EOPNOTSUPP);
		return 0;
	}
	FUZZ_CHECK(n == LLC_LEN && len == LLC_LEN);
	FUZZ_CHECK(llc_encode(&msg, LLC_VERSION, first, sizeof(first)) == n);
	FUZZ_CHECK(llc_decode((struct span){ first, LLC_LEN }, LLC_VERSION, &again) == n);
	FUZZ_CHECK(again.type == msg.type && again.response == msg.response);
	FUZZ_CHECK(llc_encode(&again, LLC_VERSION, second, sizeof(second)) == n);
	FUZZ_CHECK(memcmp(first, second, sizeof(first)) == 0);
	return 0;
}
