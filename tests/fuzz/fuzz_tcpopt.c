#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "wire/tcpopt.h"

/* An options area without an end mark finds the option that we append to it. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t opt[] = { 1, 1, 0xfe, 6, 0xe2, 0xd4, 0xc3, 0xd9 }; /* padded as by Linux */
	uint8_t b[64 + sizeof(opt)];
	int found = tcpopt_find_smcr((struct span){ data, len });

	FUZZ_CHECK(found == 0 || found == 1 || found == -EBADMSG);
	if (found == 1)
		FUZZ_CHECK(len >= TCPOPT_SMCR_LEN);
	if (found != 0 || len > 64 || memchr(data, 0, len) != NULL)
		return 0;
	memcpy(b, data, len);
	memcpy(b + len, opt, sizeof(opt));
	FUZZ_CHECK(tcpopt_find_smcr((struct span){ b, len + sizeof(opt) }) == 1);
	return 0;
}
