#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/cdc.h"
#include "wire/describe.h"

static void
describe(struct span in)
{
	char line[WIRE_DESCRIBE_LEN];
	int n = wire_describe_cdc(in, line, sizeof(line));

	FUZZ_CHECK(n > 0 && (size_t)n == strlen(line) && (size_t)n < sizeof(line) - 1);
	n = wire_describe_cdc(in, line, 1 + in.len % 80);
	FUZZ_CHECK(n >= 0 && (size_t)n == strlen(line) && (size_t)n <= in.len % 80);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t first[CDC_LEN], second[CDC_LEN];
	struct cdc_msg msg, again;
	int n = cdc_decode((struct span){ data, len }, &msg);

	describe((struct span){ data, len });
	if (n <= 0) {
		FUZZ_CHECK(n == -EBADMSG);
		return 0;
	}
	FUZZ_CHECK(n == CDC_LEN && len == CDC_LEN);
	FUZZ_CHECK(cdc_encode(&msg, first, sizeof(first)) == n);
	FUZZ_CHECK(cdc_decode((struct span){ first, CDC_LEN }, &again) == n);
	FUZZ_CHECK(cdc_encode(&again, second, sizeof(second)) == n);
	FUZZ_CHECK(memcmp(first, second, sizeof(first)) == 0);
	return 0;
}
