#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/cdc.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t first[CDC_LEN], second[CDC_LEN];
	struct cdc_msg msg, again;
	int n = cdc_decode((struct span){ data, len }, &msg);

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
