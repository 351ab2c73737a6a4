/* CLC codec; see clc.h. Offsets are those of RFC 7609 A.2, figures 26 to 30. */
#include "wire/clc.h"

#include <errno.h>
#include <string.h>

#define EYE_LEN 4
#define PROPOSAL_MIN_LEN 52 /* RFC 7609 A.2.2, an IPv4 flow */
#define ACCEPT_LEN 68       /* A.2.3, A.2.4 */
#define DECLINE_LEN 28      /* A.2.5 */
#define DECLINE_V2_LEN 44   /* Linux: four more diagnosis words */
#define FLAG_FIRST_CONTACT 0x08
#define FLAG_OUT_OF_SYNC 0x08

#define SMCD_AREA_LEN 12 /* ISM GID, CHID, v2 offset: the start of Linux's growth area */
#define EXT_LEN 28
#define MAX_24 0xffffffu
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

int
clc_mtu_code(uint32_t bytes)
{
	for (int code = 1; code <= MAX_MTU_CODE; code++)
		if (bytes == 128u << code)
			return code;
	return -EINVAL;
}

uint32_t
clc_mtu_bytes(unsigned code)
{
	return code >= 1 && code <= MAX_MTU_CODE ? 128u << code : 0;
}

static bool
type_is_known(uint8_t type)
{
	return type >= CLC_PROPOSAL && type <= CLC_DECLINE;
}

static bool
len_is_plausible(enum clc_type type, unsigned version, size_t len)
{
	switch (type) {
	case CLC_PROPOSAL:
		return len >= PROPOSAL_MIN_LEN && len <= CLC_MAX_LEN;
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		return len >= ACCEPT_LEN && len <= CLC_MAX_LEN;
	case CLC_DECLINE:
		return len == DECLINE_LEN || (version >= 2 && len == DECLINE_V2_LEN);
	}
	return false;
}

int
clc_peek_len(struct span in)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	size_t eye_len = in.len < EYE_LEN ? in.len : EYE_LEN;
	uint8_t type, version;
	uint16_t len;

	/* Judged byte by byte: a peer that speaks something else may wait for our answer. */
	if (eye_len > 0 && memcmp(in.ptr, eye, eye_len) != 0)
		return -EBADMSG;
	rcur_skip(&r, EYE_LEN);
	type = rcur_u8(&r);
	if (r.failed)
		return 0;
	if (!type_is_known(type))
		return -EBADMSG;
	len = rcur_be16(&r);
	version = rcur_u8(&r) >> 4;
	if (r.failed)
		return 0;
	if (version == 0 || !len_is_plausible((enum clc_type)type, version, len))
		return -EBADMSG;
	return len;
}

/* Reads what follows the magic and the length. */
static void
decode_ext(struct rcur *r, struct clc_smcrd_ext *ext)
{
	ext->present = true;
	ext->version = rcur_u8(r);
	ext->transports = rcur_u8(r) & CLC_TRANSPORT_KNOWN;
	rcur_skip(r, 1);
	ext->mpa_port = rcur_be16(r);
	ext->recv_depth = rcur_be16(r);
	ext->token = rcur_be64(r);
}

/* The growth area belongs to whoever wrote it: whatever is not ours to the
 * last byte of its head is a foreign peer's, never an error. */
static void
decode_growth(struct rcur r, struct clc_proposal *p)
{
	static const uint8_t no_smcd[SMCD_AREA_LEN];
	size_t kept = rcur_left(&r) < CLC_GROWTH_LEN ? rcur_left(&r) : CLC_GROWTH_LEN;

	p->growth_len = (uint16_t)rcur_left(&r);
	rcur_bytes(&r, p->growth, kept);
	if (kept < CLC_GROWTH_LEN || memcmp(p->growth, no_smcd, SMCD_AREA_LEN) != 0 ||
	    memcmp(p->growth + SMCD_AREA_LEN, ext_magic, sizeof(ext_magic)) != 0)
		return;
	r = rcur_make(p->growth + SMCD_AREA_LEN + sizeof(ext_magic), EXT_LEN - sizeof(ext_magic));
	decode_ext(&r, &p->ext);
	if (p->ext.version == 0)
		p->ext = (struct clc_smcrd_ext){ .present = false };
}

static int
decode_prefixes(struct rcur *r, struct clc_proposal *p)
{
	p->ipv4_subnet = rcur_be32(r);
	p->ipv4_len = rcur_u8(r);
	rcur_skip(r, 2);
	p->ipv6_cnt = rcur_u8(r);
	if (p->ipv4_len > 32 || p->ipv6_cnt > CLC_MAX_IPV6)
		return -EBADMSG;
	for (unsigned i = 0; i < p->ipv6_cnt; i++) {
		rcur_bytes(r, p->ipv6[i].addr, sizeof(p->ipv6[i].addr));
		p->ipv6[i].len = rcur_u8(r);
		if (p->ipv6[i].len > 128)
			return -EBADMSG;
	}
	return r->failed ? -EBADMSG : 0;
}

static int
decode_proposal(struct rcur *r, unsigned version, unsigned low, struct clc_proposal *p)
{
	uint16_t offset;
	int err;

	p->typev1 = version >= 2 ? (enum clc_path)(low & 0x03) : CLC_PATH_R;
	p->typev2 = version >= 2 ? (enum clc_path)(low >> 2) : CLC_PATH_NONE;
	if (p->typev1 == CLC_PATH_NONE)
		return -EPROTO; /* no version 1 offered: there is no IP area to read */
	rcur_bytes(r, p->peer_id, sizeof(p->peer_id));
	rcur_bytes(r, p->gid, sizeof(p->gid));
	rcur_bytes(r, p->mac, sizeof(p->mac));
	offset = rcur_be16(r);
	decode_growth(rcur_sub(r, offset), p);
	err = decode_prefixes(r, p);
	if (err < 0)
		return err;
	/* Version 2 extensions stand between the prefixes and the eye catcher. */
	if (rcur_left(r) > 0 && version <= 2 && p->typev2 == CLC_PATH_NONE)
		return -EBADMSG;
	return 0;
}

/* What stands between PSN and eye catcher: ours, or skipped. */
static int
decode_accept_tail(struct rcur *r, struct clc_smcrd_ext *ext)
{
	const uint8_t *magic;
	uint8_t len;

	if (rcur_left(r) < EXT_LEN)
		return 0;
	magic = rcur_take(r, sizeof(ext_magic) - 1);
	if (memcmp(magic, ext_magic, sizeof(ext_magic) - 1) != 0)
		return 0;
	len = rcur_u8(r);
	if (len < EXT_LEN || len - sizeof(ext_magic) > rcur_left(r))
		return -EBADMSG;
	decode_ext(r, ext);
	return ext->version == 0 ? -EBADMSG : 0;
}

static int
decode_accept(struct rcur *r, unsigned version, unsigned low, struct clc_accept *a)
{
	uint8_t codes;

	if (version != 1)
		return -EPROTO; /* we never ask for more */
	a->first_contact = (low & FLAG_FIRST_CONTACT) != 0;
	rcur_bytes(r, a->peer_id, sizeof(a->peer_id));
	rcur_bytes(r, a->gid, sizeof(a->gid));
	rcur_bytes(r, a->mac, sizeof(a->mac));
	a->qpn = rcur_be24(r);
	a->rkey = rcur_be32(r);
	a->rmbe_idx = rcur_u8(r);
	a->alert_token = rcur_be32(r);
	codes = rcur_u8(r);
	a->size_code = codes >> 4;
	a->mtu_code = codes & 0x0f;
	rcur_skip(r, 1);
	a->vaddr = rcur_be64(r);
	rcur_skip(r, 1);
	a->psn = rcur_be24(r);
	if (r->failed || a->rmbe_idx == 0 || decode_accept_tail(r, &a->ext) < 0)
		return -EBADMSG;
	if (a->first_contact && clc_mtu_bytes(a->mtu_code) == 0)
		return -EPROTO;
	return 0;
}

static int
decode_decline(struct rcur *r, unsigned version, unsigned low, struct clc_decline *d)
{
	d->out_of_sync = (low & FLAG_OUT_OF_SYNC) != 0;
	rcur_bytes(r, d->peer_id, sizeof(d->peer_id));
	d->diag = rcur_be32(r);
	d->os = version >= 2 ? rcur_u8(r) >> 4 : 0;
	return r->failed ? -EBADMSG : 0;
}

static int
decode_body(struct rcur *r, unsigned low, struct clc_msg *msg)
{
	switch (msg->type) {
	case CLC_PROPOSAL:
		return decode_proposal(r, msg->version, low, &msg->proposal);
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		return decode_accept(r, msg->version, low, &msg->accept);
	case CLC_DECLINE:
		return decode_decline(r, msg->version, low, &msg->decline);
	}
	return -EBADMSG;
}

int
clc_decode(struct span in, struct clc_msg *out)
{
	int len = clc_peek_len(in);
	struct clc_msg msg;
	struct rcur r;
	int err;

	if (len <= 0 || in.len < (size_t)len)
		return len <= 0 ? len : 0;
	if (memcmp(in.ptr + len - EYE_LEN, eye, EYE_LEN) != 0)
		return -EBADMSG;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum clc_type)in.ptr[4];
	msg.version = in.ptr[7] >> 4;
	r = rcur_make(in.ptr + CLC_HDR_LEN, (size_t)len - CLC_HDR_LEN - EYE_LEN);
	err = decode_body(&r, in.ptr[7] & 0x0f, &msg);
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

static bool
ext_is_valid(const struct clc_smcrd_ext *ext)
{
	return !ext->present || (ext->version >= 1 && (ext->transports & ~CLC_TRANSPORT_KNOWN) == 0);
}

static void
encode_ext(struct wcur *w, const struct clc_smcrd_ext *ext)
{
	wcur_bytes(w, ext_magic, sizeof(ext_magic));
	wcur_u8(w, ext->version);
	wcur_u8(w, ext->transports);
	wcur_zero(w, 1);
	wcur_be16(w, ext->mpa_port);
	wcur_be16(w, ext->recv_depth);
	wcur_be64(w, ext->token);
	wcur_zero(w, 8);
}

static bool
proposal_is_valid(const struct clc_proposal *p, unsigned version)
{
	if (version != 1 && version != 2)
		return false;
	if (version == 2 && (p->typev1 == CLC_PATH_NONE || p->typev1 > CLC_PATH_BOTH || p->typev2 > CLC_PATH_BOTH))
		return false;
	for (unsigned i = 0; i < p->ipv6_cnt && i < CLC_MAX_IPV6; i++)
		if (p->ipv6[i].len > 128)
			return false;
	return p->ipv4_len <= 32 && p->ipv6_cnt <= CLC_MAX_IPV6 &&
	    (p->ext.present || p->growth_len <= CLC_GROWTH_LEN) && ext_is_valid(&p->ext);
}

static bool
accept_is_valid(const struct clc_accept *a, unsigned version)
{
	return version == 1 && a->qpn <= MAX_24 && a->psn <= MAX_24 && a->rmbe_idx >= 1 &&
	    a->size_code <= CLC_MAX_SIZE_CODE_SENT && clc_mtu_bytes(a->mtu_code) != 0 && ext_is_valid(&a->ext);
}

static void
encode_proposal(struct wcur *w, const struct clc_proposal *p)
{
	wcur_bytes(w, p->peer_id, sizeof(p->peer_id));
	wcur_bytes(w, p->gid, sizeof(p->gid));
	wcur_bytes(w, p->mac, sizeof(p->mac));
	if (p->ext.present) {
		wcur_be16(w, CLC_GROWTH_LEN);
		wcur_zero(w, SMCD_AREA_LEN);
		encode_ext(w, &p->ext);
	} else {
		wcur_be16(w, p->growth_len);
		wcur_bytes(w, p->growth, p->growth_len);
	}
	wcur_be32(w, p->ipv4_subnet);
	wcur_u8(w, p->ipv4_len);
	wcur_zero(w, 2);
	wcur_u8(w, p->ipv6_cnt);
	for (unsigned i = 0; i < p->ipv6_cnt; i++) {
		wcur_bytes(w, p->ipv6[i].addr, sizeof(p->ipv6[i].addr));
		wcur_u8(w, p->ipv6[i].len);
	}
}

static void
encode_accept(struct wcur *w, const struct clc_accept *a)
{
	wcur_bytes(w, a->peer_id, sizeof(a->peer_id));
	wcur_bytes(w, a->gid, sizeof(a->gid));
	wcur_bytes(w, a->mac, sizeof(a->mac));
	wcur_be24(w, a->qpn);
	wcur_be32(w, a->rkey);
	wcur_u8(w, a->rmbe_idx);
	wcur_be32(w, a->alert_token);
	wcur_u8(w, (uint8_t)(a->size_code << 4 | a->mtu_code));
	wcur_zero(w, 1);
	wcur_be64(w, a->vaddr);
	wcur_zero(w, 1);
	wcur_be24(w, a->psn);
	if (a->ext.present)
		encode_ext(w, &a->ext);
}

static void
encode_decline(struct wcur *w, const struct clc_decline *d, unsigned version)
{
	wcur_bytes(w, d->peer_id, sizeof(d->peer_id));
	wcur_be32(w, d->diag);
	wcur_u8(w, version >= 2 ? (uint8_t)(d->os << 4) : 0);
	wcur_zero(w, version >= 2 ? 3 + 16 : 3);
}

/* Length of the message and the low half of byte 7; 0 for a value out of range. */
static size_t
measure(const struct clc_msg *msg, unsigned *low)
{
	const struct clc_proposal *p = &msg->proposal;

	*low = 0;
	switch (msg->type) {
	case CLC_PROPOSAL:
		if (!proposal_is_valid(p, msg->version))
			return 0;
		if (msg->version == 2)
			*low = (unsigned)p->typev2 << 2 | (unsigned)p->typev1;
		return PROPOSAL_MIN_LEN + 17u * p->ipv6_cnt + (p->ext.present ? CLC_GROWTH_LEN : p->growth_len);
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		*low = msg->accept.first_contact ? FLAG_FIRST_CONTACT : 0;
		if (!accept_is_valid(&msg->accept, msg->version))
			return 0;
		return ACCEPT_LEN + (msg->accept.ext.present ? EXT_LEN : 0);
	case CLC_DECLINE:
		*low = msg->decline.out_of_sync ? FLAG_OUT_OF_SYNC : 0;
		if ((msg->version != 1 && msg->version != 2) || msg->decline.os > 15)
			return 0;
		return msg->version == 1 ? DECLINE_LEN : DECLINE_V2_LEN;
	}
	return 0;
}

int
clc_encode(const struct clc_msg *msg, uint8_t *buf, size_t cap)
{
	unsigned low;
	size_t len = measure(msg, &low);
	struct wcur w;

	if (len == 0)
		return -EINVAL;
	if (len > cap)
		return -ENOSPC;
	w = wcur_make(buf, len);
	wcur_bytes(&w, eye, EYE_LEN);
	wcur_u8(&w, (uint8_t)msg->type);
	wcur_be16(&w, (uint16_t)len);
	wcur_u8(&w, (uint8_t)((unsigned)msg->version << 4 | low));
	if (msg->type == CLC_PROPOSAL)
		encode_proposal(&w, &msg->proposal);
	else if (msg->type == CLC_DECLINE)
		encode_decline(&w, &msg->decline, msg->version);
	else
		encode_accept(&w, &msg->accept);
	wcur_bytes(&w, eye, EYE_LEN);
	return (int)len;
}
