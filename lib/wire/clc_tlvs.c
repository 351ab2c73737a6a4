/* Codec of the TLVs in clc_tlvs.h. Layout: doc/transparent.md. */
#include "wire/clc_tlvs.h"

#include <string.h>

#include "wire/codec.h"

#define HEAD_LEN 6 /* magic, length of the list */
#define TLV_HEAD_LEN 2
#define TYPE_CLIENT 0x81
#define TYPE_DEST 0x82
#define TYPE_MANDATORY 0x80 /* types from here on must be understood */

static const uint8_t magic[] = { 's', 'm', 'r', 't' };

static bool
is_mapped_v4(const uint8_t addr[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(addr, prefix, sizeof(prefix)) == 0;
}

static size_t
client_len(enum clc_client_kind kind)
{
	switch (kind) {
	case CLC_CLIENT_V4:
		return 7;
	case CLC_CLIENT_V6:
		return 19;
	case CLC_CLIENT_UNIX:
		return 5;
	case CLC_CLIENT_NONE:
		break;
	}
	return 0;
}

static size_t
dest_len(enum clc_dest_kind kind)
{
	return kind == CLC_DEST_V4 ? 7 : kind == CLC_DEST_V6 ? 19 : 0;
}

static size_t
list_len(const struct clc_tlvs *tlvs)
{
	const size_t client = client_len(tlvs->client.kind), dest = dest_len(tlvs->dest.kind);

	return (client == 0 ? 0 : TLV_HEAD_LEN + client) + (dest == 0 ? 0 : TLV_HEAD_LEN + dest);
}

size_t
clc_tlvs_len(const struct clc_tlvs *tlvs)
{
	const size_t len = list_len(tlvs);

	return len == 0 ? 0 : HEAD_LEN + len;
}

static void
lay_place(struct codec *c, bool v4, uint16_t *port, uint8_t addr[16])
{
	*port = codec_be16(c, *port);
	codec_bytes(c, addr, v4 ? 4 : 16);
	codec_need(c, *port != 0 && (v4 || !is_mapped_v4(addr)));
}

static void
lay_client(struct codec *c, struct clc_client *client)
{
	client->kind = codec_u8(c, (uint8_t)client->kind);
	switch (client->kind) {
	case CLC_CLIENT_V4:
	case CLC_CLIENT_V6:
		lay_place(c, client->kind == CLC_CLIENT_V4, &client->port, client->addr);
		break;
	case CLC_CLIENT_UNIX:
		client->uid = codec_be32(c, client->uid);
		break;
	case CLC_CLIENT_NONE:
	default:
		codec_need(c, false);
	}
}

static void
lay_dest(struct codec *c, struct clc_dest *dest)
{
	dest->kind = codec_u8(c, (uint8_t)dest->kind);
	codec_need(c, dest->kind == CLC_DEST_V4 || dest->kind == CLC_DEST_V6);
	if (!c->bad)
		lay_place(c, dest->kind == CLC_DEST_V4, &dest->port, dest->addr);
}

static void
read_tlv(struct codec *c, struct clc_tlvs *tlvs)
{
	const uint8_t type = rcur_u8(&c->r);
	struct codec in = codec_reader(rcur_sub(&c->r, rcur_u8(&c->r)), 0);

	if (type == TYPE_CLIENT) {
		codec_need(c, tlvs->client.kind == CLC_CLIENT_NONE); /* twice */
		lay_client(&in, &tlvs->client);
	} else if (type == TYPE_DEST) {
		codec_need(c, tlvs->dest.kind == CLC_DEST_NONE);
		lay_dest(&in, &tlvs->dest);
	} else {
		if (type >= TYPE_MANDATORY && tlvs->unknown == 0)
			tlvs->unknown = type;
		return;
	}
	codec_need(c, !in.bad && !in.r.failed && rcur_left(&in.r) == 0);
}

void
clc_tlvs_read(struct codec *c, struct rcur area, struct clc_tlvs *tlvs)
{
	if (rcur_left(&area) < HEAD_LEN || memcmp(rcur_take(&area, sizeof(magic)), magic, sizeof(magic)) != 0)
		return;
	const size_t len = rcur_be16(&area);
	struct codec list = codec_reader(rcur_sub(&area, len), 0);

	codec_need(c, len <= CLC_TLVS_MAX && !area.failed);
	while (!c->bad && !list.bad && rcur_left(&list.r) > 0) {
		read_tlv(&list, tlvs);
		codec_need(&list, !list.r.failed);
	}
	codec_need(c, !list.bad);
}

void
clc_tlvs_write(struct codec *c, struct clc_tlvs *tlvs)
{
	const size_t len = list_len(tlvs);

	codec_need(c, tlvs->unknown == 0);
	if (len == 0)
		return;
	wcur_bytes(&c->w, magic, sizeof(magic));
	wcur_be16(&c->w, (uint16_t)len);
	if (tlvs->client.kind != CLC_CLIENT_NONE) {
		wcur_u8(&c->w, TYPE_CLIENT);
		wcur_u8(&c->w, (uint8_t)client_len(tlvs->client.kind));
		lay_client(c, &tlvs->client);
	}
	if (tlvs->dest.kind != CLC_DEST_NONE) {
		wcur_u8(&c->w, TYPE_DEST);
		wcur_u8(&c->w, (uint8_t)dest_len(tlvs->dest.kind));
		lay_dest(c, &tlvs->dest);
	}
}
