/* CDC codec; see cdc.h. Fixed offsets behind one length check instead of a
 * cursor, since it runs once per batch and connection. Picture: RFC 7609
 * figure 41. */
#include "wire/cdc.h"

#include <errno.h>
#include <string.h>

/* Written so that compilers make one load or store and a byte swap of each. */
static inline uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t
get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void
put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void
put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

int
cdc_decode(struct span in, struct cdc_msg *out)
{
	const uint8_t *p = in.ptr;

	if (in.len != CDC_LEN || p[0] != CDC_TYPE || p[1] != CDC_LEN)
		return -EBADMSG;
	out->seq = get16(p + 2);
	out->token = get32(p + 4);
	out->prod.wrap = get16(p + 10);
	out->prod.count = get32(p + 12);
	out->cons.wrap = get16(p + 18);
	out->cons.count = get32(p + 20);
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
	put16(buf + 2, msg->seq);
	put32(buf + 4, msg->token);
	put16(buf + 10, msg->prod.wrap);
	put32(buf + 12, msg->prod.count);
	put16(buf + 18, msg->cons.wrap);
	put32(buf + 20, msg->cons.count);
	buf[24] = msg->prod_flags;
	buf[25] = msg->conn_flags;
	return CDC_LEN;
}
