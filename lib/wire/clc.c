/* CLC codec; see clc.h. Offsets are those of RFC 7609 A.2, figures 26 to 30. */
#include "wire/clc.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "wire/codec.h"

#define EYE_LEN 4
#define PROPOSAL_MIN_LEN 52 /* RFC 7609 A.2.2, an IPv4 flow */
#define ACCEPT_LEN 68       /* A.2.3, A.2.4 */
#define DECLINE_LEN 28      /* A.2.5 */
#define DECLINE_V2_LEN 44   /* instead of that, Linux in version 2: four more diagnosis words */
#define FLAG_FIRST_CONTACT 0x08
#define FLAG_OUT_OF_SYNC 0x08

#define SMCD_AREA_LEN 12 /* ISM GID, CHID, v2 offset: the start of Linux's growth area */
#define EXT_LEN 28
#define MAX_MTU_CODE 5
#define MAX_SIZE_CODE 15

static const uint8_t eye[EYE_LEN] = { 0xe2, 0xd4, 0xc3, 0xd9 }; /* "SMCR" in EBCDIC */
static const uint8_t ext_magic[] = { 's', 'm', 'r', 'd', EXT_LEN };

int
clc_size_code(uint32_t bytes)
{
	for (int code = 0; code <= MAX_SIZE_CODE; code++)
		if (bytes == 16384u << code)
			return code;
	return -EINVAL;
}

uint32_t
clc_size_bytes(unsigned code)
{
	return code <= MAX_SIZE_CODE ? 16384u << code : 0;
}

uint32_t
clc_mtu_bytes(unsigned code)
{
	return code >= 1 && code <= MAX_MTU_CODE ? 128u << code : 0;
}

int
clc_peek_len(struct span in)
{
	static const struct {
		uint16_t min, max;
	} lens[] = {
		[CLC_PROPOSAL] = { PROPOSAL_MIN_LEN, CLC_MAX_LEN },
		[CLC_ACCEPT] = { ACCEPT_LEN, CLC_MAX_LEN },
		[CLC_CONFIRM] = { ACCEPT_LEN, CLC_MAX_LEN },
		[CLC_DECLINE] = { DECLINE_LEN, DECLINE_LEN },
	};
	struct rcur r = rcur_make(in.ptr, in.len);
	size_t eye_len = min_size(in.len, EYE_LEN);
	uint8_t type, version;
	uint16_t len;

	/* Judged byte by byte: a peer that speaks something else may wait for our answer. */
	if (eye_len > 0 && memcmp(in.ptr, eye, eye_len) != 0)
		return -EBADMSG;
	rcur_skip(&r, EYE_LEN);
	type = rcur_u8(&r);
	if (r.failed)
		return 0;
	if (type < CLC_PROPOSAL || type > CLC_DECLINE)
		return -EBADMSG;
	len = rcur_be16(&r);
	version = rcur_u8(&r) >> 4;
	if (r.failed)
		return 0;
	if (type == CLC_DECLINE && version >= 2 && len == DECLINE_V2_LEN)
		return len;
	return version == 0 || len < lens[type].min || len > lens[type].max ? -EBADMSG : len;
}

/* -- layouts, for both directions -- */

/* Our extension behind magic and length, without the zeroes at its end. */
static void
lay_ext(struct codec *c, struct clc_smcrd_ext *ext)
{
	ext->present = true;
	ext->version = codec_u8(c, ext->version);
	ext->transports = codec_u8(c, ext->transports) & CLC_TRANSPORT_KNOWN;
	codec_reserved(c, 1);
	ext->mpa_port = codec_be16(c, ext->mpa_port);
	ext->recv_depth = codec_be16(c, ext->recv_depth);
	ext->token = codec_be64(c, ext->token);
}

static void
lay_sender(struct codec *c, uint8_t peer_id[CLC_PEER_ID_LEN], uint8_t gid[CLC_GID_LEN], uint8_t mac[CLC_MAC_LEN])
{
	codec_bytes(c, peer_id, CLC_PEER_ID_LEN);
	codec_bytes(c, gid, CLC_GID_LEN);
	codec_bytes(c, mac, CLC_MAC_LEN);
}

/* From the subnet to the last prefix. */
static void
lay_prefixes(struct codec *c, struct clc_proposal *p)
{
	p->ipv4_subnet = codec_be32(c, p->ipv4_subnet);
	p->ipv4_len = codec_u8(c, p->ipv4_len);
	codec_reserved(c, 2);
	p->ipv6_cnt = codec_u8(c, p->ipv6_cnt);
	codec_need(c, p->ipv4_len <= 32 && p->ipv6_cnt <= CLC_MAX_IPV6);
	for (unsigned i = 0; !c->bad && i < p->ipv6_cnt; i++) {
		codec_bytes(c, p->ipv6[i].addr, sizeof(p->ipv6[i].addr));
		p->ipv6[i].len = codec_u8(c, p->ipv6[i].len);
		codec_need(c, p->ipv6[i].len <= 128);
	}
}

/* To the PSN; our extension may follow. */
static void
lay_accept(struct codec *c, struct clc_accept *a)
{
	uint8_t codes;

	lay_sender(c, a->peer_id, a->gid, a->mac);
	a->qpn = codec_be24(c, a->qpn);
	a->rkey = codec_be32(c, a->rkey);
	a->rmbe_idx = codec_u8(c, a->rmbe_idx);
	codec_need(c, a->rmbe_idx >= 1);
	a->alert_token = codec_be32(c, a->alert_token);
	codes = codec_u8(c, (uint8_t)(a->size_code << 4 | a->mtu_code));
	a->size_code = codes >> 4;
	a->mtu_code = codes & 0x0f;
	codec_reserved(c, 1);
	a->vaddr = codec_be64(c, a->vaddr);
	codec_reserved(c, 1);
	a->psn = codec_be24(c, a->psn);
	a->first_contact = codec_flag(c, FLAG_FIRST_CONTACT, a->first_contact);
}

/* The first diagnosis word and what tells the operating system. */
static void
lay_decline(struct codec *c, unsigned version, struct clc_decline *d)
{
	codec_bytes(c, d->peer_id, sizeof(d->peer_id));
	d->diag = codec_be32(c, d->diag);
	d->os = version >= 2 ? codec_u8(c, (uint8_t)(d->os << 4)) >> 4 : 0;
	d->out_of_sync = codec_flag(c, FLAG_OUT_OF_SYNC, d->out_of_sync);
}

/* -- reading -- */

static struct clc_smcrd_ext
read_ext(struct rcur r)
{
	struct codec c = codec_reader(r, 0);
	struct clc_smcrd_ext ext = { 0 };

	lay_ext(&c, &ext);
	return ext;
}

static int
decode_proposal(struct codec *c, unsigned version, struct clc_proposal *p)
{
	static const uint8_t no_smcd[SMCD_AREA_LEN];
	const size_t head_len = SMCD_AREA_LEN + sizeof(ext_magic);
	struct rcur growth;
	size_t kept;

	p->typev1 = version >= 2 ? (enum clc_path)(c->flags & 0x03) : CLC_PATH_R;
	p->typev2 = version >= 2 ? (enum clc_path)(c->flags >> 2) : CLC_PATH_NONE;
	if (p->typev1 == CLC_PATH_NONE)
		return -EPROTO; /* no version 1 offered: there is no IP area to read */
	lay_sender(c, p->peer_id, p->gid, p->mac);
	/* The growth area belongs to whoever wrote it: what is not ours to the last byte of its head is a foreign peer's,
	 * no error. */
	growth = rcur_sub(&c->r, rcur_be16(&c->r));
	kept = min_size(rcur_left(&growth), CLC_GROWTH_LEN);
	p->growth_len = (uint16_t)rcur_left(&growth);
	rcur_bytes(&growth, p->growth, kept);
	if (kept == CLC_GROWTH_LEN && memcmp(p->growth, no_smcd, SMCD_AREA_LEN) == 0 &&
	    memcmp(p->growth + SMCD_AREA_LEN, ext_magic, sizeof(ext_magic)) == 0)
		p->ext = read_ext(rcur_make(p->growth + head_len, EXT_LEN - sizeof(ext_magic)));
	if (p->ext.version == 0)
		p->ext = (struct clc_smcrd_ext){ .present = false };
	lay_prefixes(c, p);
	if (c->bad || c->r.failed)
		return -EBADMSG;
	/* Version 2 extensions stand between the prefixes and the eye catcher. */
	return rcur_left(&c->r) > 0 && version <= 2 && p->typev2 == CLC_PATH_NONE ? -EBADMSG : 0;
}

static int
decode_accept(struct codec *c, unsigned version, struct clc_accept *a)
{
	const size_t name_len = sizeof(ext_magic) - 1;

	if (version != 1)
		return -EPROTO; /* we never ask for more */
	lay_accept(c, a);
	/* The bytes between PSN and eye catcher: our extension, or skipped. */
	if (rcur_left(&c->r) >= EXT_LEN && memcmp(rcur_take(&c->r, name_len), ext_magic, name_len) == 0) {
		uint8_t len = rcur_u8(&c->r);

		codec_need(c, len >= EXT_LEN && len - sizeof(ext_magic) <= rcur_left(&c->r));
		a->ext = read_ext(c->r);
		codec_need(c, a->ext.version != 0);
	}
	if (c->r.failed || c->bad)
		return -EBADMSG;
	return a->first_contact && clc_mtu_bytes(a->mtu_code) == 0 ? -EPROTO : 0;
}

int
clc_decode(struct span in, struct clc_msg *out)
{
	int len = clc_peek_len(in);
	int err = -EBADMSG;
	struct clc_msg msg;
	struct codec c;

	if (len <= 0 || in.len < (size_t)len)
		return len <= 0 ? len : 0;
	if (memcmp(in.ptr + len - EYE_LEN, eye, EYE_LEN) != 0)
		return -EBADMSG;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum clc_type)in.ptr[4];
	msg.version = in.ptr[7] >> 4;
	c = codec_reader(rcur_make(in.ptr + CLC_HDR_LEN, (size_t)len - CLC_HDR_LEN - EYE_LEN), in.ptr[7] & 0x0f);
	switch (msg.type) {
	case CLC_PROPOSAL:
		err = decode_proposal(&c, msg.version, &msg.proposal);
		break;
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		err = decode_accept(&c, msg.version, &msg.accept);
		break;
	case CLC_DECLINE:
		lay_decline(&c, msg.version, &msg.decline);
		err = c.r.failed ? -EBADMSG : 0;
		break;
	}
	if (err < 0)
		return err;
	*out = msg;
	return len;
}

uint32_t
clc_bad_value_diag(struct span in)
{
	/* A version 1 message can only have failed by its MTU. */
	return in.len >= CLC_HDR_LEN && in.ptr[7] >> 4 == 1 ? CLC_DIAG_CONFIG : CLC_DIAG_VERSION_MISMATCH;
}

/* -- writing -- */

static void
encode_ext(struct codec *c, struct clc_smcrd_ext *ext)
{
	codec_need(c, ext->version >= 1 && (ext->transports & ~CLC_TRANSPORT_KNOWN) == 0);
	wcur_bytes(&c->w, ext_magic, sizeof(ext_magic));
	lay_ext(c, ext);
	codec_reserved(c, 8);
}

static void
encode_proposal(struct codec *c, unsigned version, struct clc_proposal *p)
{
	if (version == 2) {
		codec_need(c, p->typev1 != CLC_PATH_NONE && p->typev1 <= CLC_PATH_BOTH && p->typev2 <= CLC_PATH_BOTH);
		c->flags = (uint8_t)((unsigned)p->typev2 << 2 | (unsigned)p->typev1);
	}
	lay_sender(c, p->peer_id, p->gid, p->mac);
	if (p->ext.present) {
		wcur_be16(&c->w, CLC_GROWTH_LEN);
		wcur_zero(&c->w, SMCD_AREA_LEN);
		encode_ext(c, &p->ext);
	} else {
		codec_need(c, p->growth_len <= CLC_GROWTH_LEN);
		wcur_be16(&c->w, p->growth_len);
		wcur_bytes(&c->w, p->growth, min_size(p->growth_len, CLC_GROWTH_LEN));
	}
	lay_prefixes(c, p);
}

static void
encode_body(struct codec *c, struct clc_msg *m)
{
	switch (m->type) {
	case CLC_PROPOSAL:
		codec_need(c, m->version == 1 || m->version == 2);
		encode_proposal(c, m->version, &m->proposal);
		return;
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		codec_need(c, m->version == 1 && m->accept.size_code <= CLC_MAX_SIZE_CODE_SENT);
		codec_need(c, clc_mtu_bytes(m->accept.mtu_code) != 0);
		lay_accept(c, &m->accept);
		if (m->accept.ext.present)
			encode_ext(c, &m->accept.ext);
		return;
	case CLC_DECLINE:
		codec_need(c, (m->version == 1 || m->version == 2) && m->decline.os <= 15);
		lay_decline(c, m->version, &m->decline);
		codec_reserved(c, m->version >= 2 ? 3 + 16 : 4);
		return;
	}
	codec_need(c, false);
}

int
clc_encode(const struct clc_msg *msg, uint8_t *buf, size_t cap)
{
	uint8_t bytes[CLC_MAX_SENT_LEN];
	struct codec c = codec_writer(bytes, sizeof(bytes));
	struct clc_msg m = *msg;
	size_t len;

	wcur_bytes(&c.w, eye, EYE_LEN);
	wcur_u8(&c.w, (uint8_t)m.type);
	wcur_zero(&c.w, 3);
	encode_body(&c, &m);
	wcur_bytes(&c.w, eye, EYE_LEN);
	if (c.bad || c.w.failed)
		return -EINVAL;
	len = (size_t)(c.w.p - bytes);
	if (len > cap)
		return -ENOSPC;
	be16_put(bytes + 5, (uint16_t)len);
	bytes[7] = (uint8_t)(m.version << 4 | c.flags);
	memcpy(buf, bytes, len);
	return (int)len;
}

/* -- diagnosis codes -- */

#define DIAG_ROW(name, number, words) { number, words },

const char *
clc_diag_str(uint32_t diag)
{
	static const struct {
		uint32_t diag;
		const char *words;
	} diags[] = { CLC_DIAGS(DIAG_ROW) };

	for (size_t i = 0; i < sizeof(diags) / sizeof(diags[0]); i++)
		if (diags[i].diag == diag)
			return diags[i].words;
	return "unknown code";
}
