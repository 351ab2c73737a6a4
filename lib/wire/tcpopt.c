/* SMC-R TCP option; see tcpopt.h. */
#include "wire/tcpopt.h"

#include <errno.h>

#define KIND_END 0 /* RFC 9293 3.2 */
#define KIND_NOP 1

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
		if (kind == TCPOPT_SMCR_KIND && len == TCPOPT_SMCR_LEN && be32_get(value) == TCPOPT_SMCR_MAGIC)
			return 1;
	}
	return 0;
}
