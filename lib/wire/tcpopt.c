/* SMC-R TCP option; see tcpopt.h. */
#include "wire/tcpopt.h"

#include <errno.h>
#include <string.h>

#define KIND_END 0 /* RFC 9293 3.2 */
#define KIND_NOP 1

static const uint8_t padded[TCPOPT_SMCR_PADDED_LEN] = { KIND_NOP, KIND_NOP, TCPOPT_SMCR_KIND, TCPOPT_SMCR_LEN,
	TCPOPT_SMCR_MAGIC >> 24, TCPOPT_SMCR_MAGIC >> 16 & 0xff, TCPOPT_SMCR_MAGIC >> 8 & 0xff,
	TCPOPT_SMCR_MAGIC & 0xff };

int
tcpopt_find_smcr(struct span options)
{
	struct rcur r = rcur_make(options.ptr, options.len);

	while (rcur_left(&r) > 0) {
		uint8_t kind = rcur_u8(&r);
		const uint8_t *value;
		uint8_t len;

		if (kind == KIND_END)
			return 0;
		if (kind == KIND_NOP)
			continue;
		len = rcur_u8(&r);
		if (r.failed || len < 2)
			return -EBADMSG;
		value = rcur_take(&r, len - 2u);
		if (value == NULL)
			return -EBADMSG;
		if (kind == TCPOPT_SMCR_KIND && len == TCPOPT_SMCR_LEN && memcmp(value, padded + 4, len - 2u) == 0)
			return 1;
	}
	return 0;
}

int
tcpopt_encode_smcr(uint8_t *buf, size_t cap)
{
	if (cap < sizeof(padded))
		return -ENOSPC;
	memcpy(buf, padded, sizeof(padded));
	return (int)sizeof(padded);
}
