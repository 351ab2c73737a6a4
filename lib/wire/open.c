/* Codec of the messages in open.h. Layout: doc/open.md. */
#include "wire/open.h"

#include <errno.h>
#include <string.h>

#include "wire/codec.h"

#define HDR_LEN 4        /* type, length, count, 0 */
#define MAX_SIZE_CODE 15 /* four bits in CLC messages */

static void
lay_elem(struct codec *c, struct open_elem *e)
{
	e->token = codec_be32(c, e->token);
	e->rkey = codec_be32(c, e->rkey);
	e->vaddr = codec_be64(c, e->vaddr);
	e->idx = codec_u8(c, e->idx);
	e->size_code = codec_u8(c, e->size_code);
	codec_need(c, e->token != 0 && e->idx != 0 && e->size_code <= MAX_SIZE_CODE);
}

bool
open_client_make(const struct clc_client *from, struct open_client *out)
{
	struct rcur r = rcur_make(from->addr, sizeof(out->value));

	if (from->kind == CLC_CLIENT_V6)
		return false;
	*out = (struct open_client){ .kind = (uint8_t)from->kind, .port = from->port };
	out->value = from->kind == CLC_CLIENT_V4 ? rcur_be32(&r) : from->uid;
	return true;
}

struct clc_client
open_client_get(const struct open_client *from)
{
	struct clc_client c = { .kind = from->kind };
	struct wcur w = wcur_make(c.addr, sizeof(from->value));

	if (from->kind == CLC_CLIENT_V4) {
		c.port = from->port;
		wcur_be32(&w, from->value);
	} else if (from->kind == CLC_CLIENT_UNIX) {
		c.uid = from->value;
	}
	return c;
}

static void
lay_own_client(struct codec *c, struct open_client *client)
{
	client->port = codec_be16(c, client->port);
	client->value = codec_be32(c, client->value);
	codec_reserved(c, 2);
	codec_need(c,
	    client->kind == CLC_CLIENT_NONE || client->kind == CLC_CLIENT_UNIX ||
	        (client->kind == CLC_CLIENT_V4 && client->port != 0));
}

static void
lay(struct codec *c, struct open_msg *m)
{
	if (m->type == OPEN_GRANT) {
		for (unsigned i = 0; i < m->cnt; i++)
			lay_elem(c, &m->granted[i]);
		return;
	}
	m->granted_token = codec_be32(c, m->granted_token);
	m->ticket = codec_be32(c, m->ticket);
	lay_elem(c, &m->own);
	m->hops = codec_u8(c, m->hops);
	m->client.kind = codec_u8(c, m->client.kind);
	m->origin = codec_be32(c, m->origin);
	lay_own_client(c, &m->client);
}

static bool
count_is_valid(const struct open_msg *m)
{
	return m->type == OPEN_CONN || (m->cnt >= 1 && m->cnt <= OPEN_GRANT_ELEMS);
}

int
open_decode(struct span in, struct open_msg *out)
{
	if (in.len == 0 || (in.ptr[0] != OPEN_GRANT && in.ptr[0] != OPEN_CONN))
		return -EOPNOTSUPP;
	if (in.len != OPEN_LEN || in.ptr[1] != OPEN_LEN)
		return -EBADMSG;
	struct open_msg m = { .type = in.ptr[0], .cnt = in.ptr[2] };
	struct codec c = codec_reader(rcur_make(in.ptr + HDR_LEN, in.len - HDR_LEN), 0);

	if (!count_is_valid(&m))
		return -EBADMSG;
	lay(&c, &m);
	if (c.bad)
		return -EBADMSG;
	*out = m;
	return OPEN_LEN;
}

int
open_encode(const struct open_msg *msg, uint8_t *buf, size_t cap)
{
	uint8_t bytes[OPEN_LEN] = { (uint8_t)msg->type, OPEN_LEN, msg->cnt };
	struct codec c = codec_writer(bytes + HDR_LEN, OPEN_LEN - HDR_LEN);
	struct open_msg m = *msg;

	if ((m.type != OPEN_GRANT && m.type != OPEN_CONN) || !count_is_valid(&m))
		return -EINVAL;
	lay(&c, &m);
	if (c.bad)
		return -EINVAL;
	if (cap < OPEN_LEN)
		return -ENOSPC;
	memcpy(buf, bytes, OPEN_LEN);
	return OPEN_LEN;
}
