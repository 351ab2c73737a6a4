/* CDC codec (RFC 7609 figure 41). Runs per batch and connection: one length check and fixed offsets, no cursor. */
#include "wire/cdc.h"

#include <errno.h>
#include <string.h>

int
cdc_decode(struct span in, struct cdc_msg *out)
{
	const uint8_t *p = in.ptr;

	if (in.len != CDC_LEN || p[0] != CDC_TYPE || p[1] != CDC_LEN)
		return -EBADMSG;
	out->seq = be16_get(p + 2);
	out->token = be32_get(p + 4);
	out->prod.wrap = be16_get(p + 10);
	out->prod.count = be32_get(p + 12);
	out->cons.wrap = be16_get(p + 18);
	out->cons.count = be32_get(p + 20);
	out->prod_flags = p[24] & CDC_PROD_FLAGS;
	out->conn_flags = p[25] & CDC_CONN_FLAGS;
	return CDC_LEN;
}

int
cdc_encode(const struct cdc_msg *msg, uint8_t *buf, size_t cap)
{
	if ((msg->prod_flags & ~CDC_PROD_FLAGS) != 0 || (msg->conn_flags & ~CDC_CONN_FLAGS) != 0)
		return -EINVAL;
	if (cap < CDC_LEN)
		return -ENOSPC;
	memset(buf, 0, CDC_LEN);
	buf[0] = CDC_TYPE;
	buf[1] = CDC_LEN;
	be16_put(buf + 2, msg->seq);
	be32_put(buf + 4, msg->token);
	be16_put(buf + 10, msg->prod.wrap);
	be32_put(buf + 12, msg->prod.count);
	be16_put(buf + 18, msg->cons.wrap);
	be32_put(buf + 20, msg->cons.count);
	buf[24] = msg->prod_flags;
	buf[25] = msg->conn_flags;
	return CDC_LEN;
}
