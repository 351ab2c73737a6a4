/* CLC codec; see clc.h. Version 1 offsets: RFC 7609 A.2, figures 26 to 30. Version 2 layouts: as sent by Linux, after
 * IBM's "Shared Memory Communications Version 2". */
#include "wire/clc.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "wire/codec.h"

#define EYE_LEN 4
#define PROPOSAL_MIN_LEN 52 /* RFC 7609 A.2.2, an IPv4 flow */
#define ACCEPT_LEN 68       /* A.2.3, A.2.4 */
#define ACCEPT_V2_LEN 108   /* with the EID and 8 reserved bytes */
#define DECLINE_LEN 28      /* A.2.5 */
#define DECLINE_V2_LEN 44   /* Linux in version 2: four more diagnosis words */
#define FLAG_FIRST_CONTACT 0x08
#define FLAG_OUT_OF_SYNC 0x08
#define CLIENT_USED 0x01 /* byte 23 of a Decline */
#define DEST_USED 0x02
#define DEST_REFUSED 0x04

#define SMCD_ID_LEN 10   /* ISM GID, CHID: the start of Linux's growth area */
#define SMCD_AREA_LEN 12 /* including the offset of the version 2 extension, which counts from here */
#define PREFIXES_LEN(n) (8u + 17u * (n))
#define EXT_LEN 28
/* Fixed part of the SMC-D extension, whose offset counts from byte 8 of the version 2 extension. */
#define SMCD_V2_OFF_MIN 32
#define SMCD_V2_LEN(n) (48u + 10u * (n))
#define FIRST_LIMITS_LEN 16 /* of the first-contact extension; optional in release 0 */
#define FLAG_DIRECT 0x80
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

/* -- lengths -- */

int
clc_peek_len(struct span in)
{
	static const struct {
		uint16_t min, min_v2, max;
	} lens[] = {
		[CLC_PROPOSAL] = { PROPOSAL_MIN_LEN, PROPOSAL_MIN_LEN, CLC_MAX_LEN },
		[CLC_ACCEPT] = { ACCEPT_LEN, ACCEPT_V2_LEN, CLC_MAX_LEN },
		[CLC_CONFIRM] = { ACCEPT_LEN, ACCEPT_V2_LEN, CLC_MAX_LEN },
		[CLC_DECLINE] = { DECLINE_LEN, DECLINE_LEN, DECLINE_LEN },
	};
	struct rcur r = rcur_make(in.ptr, in.len);
	size_t eye_len = min_size(in.len, EYE_LEN);
	uint8_t type, version;
	uint16_t len;

	/* Checked byte by byte: a peer of another protocol may wait for our answer. */
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
	if (version == 0 || len > lens[type].max || len < (version == 2 ? lens[type].min_v2 : lens[type].min))
		return -EBADMSG;
	return len;
}

/* -- layouts, for both directions -- */

/* The smcrd extension after magic and length. */
static void
lay_ext(struct codec *c, struct clc_smcrd_ext *ext)
{
	ext->present = true;
	ext->version = codec_u8(c, ext->version);
	ext->transports = codec_u8(c, ext->transports) & CLC_TRANSPORT_KNOWN;
	ext->features = codec_u8(c, ext->features) & CLC_FEATURES_KNOWN;
	ext->mpa_port = codec_be16(c, ext->mpa_port);
	ext->recv_depth = codec_be16(c, ext->recv_depth);
	ext->token = codec_be64(c, ext->token);
	ext->hops = codec_u8(c, ext->hops);
	ext->uses = codec_u8(c, ext->uses) & CLC_USES_DEST;
	codec_reserved(c, 2);
	ext->origin = codec_be32(c, ext->origin);
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

/* Negotiated limits since release 1; reserved bytes before. */
static void
lay_limits(struct codec *c, uint8_t release, uint8_t *max_conns, uint8_t *max_links, uint16_t *features)
{
	if (release == 0) {
		codec_reserved(c, 4);
		return;
	}
	if (c->writes)
		codec_need(c, *max_conns >= CLC_MIN_MAX_CONNS && *max_links >= 1 && *max_links <= CLC_MAX_MAX_LINKS);
	*max_conns = codec_u8(c, *max_conns);
	*max_links = codec_u8(c, *max_links);
	*features = codec_be16(c, *features);
}

/* The version 2 extension of a Proposal. An invalid EID matches none of ours and is dropped. An SMC-D extension may
 * follow at any distance: it must be present, and is skipped. */
static void
lay_offer(struct codec *c, struct clc_v2_offer *o)
{
	uint8_t eid_cnt = codec_u8(c, o->eid_cnt);
	uint8_t ism_cnt = codec_u8(c, 0);
	unsigned smcd_off, smcd_min = SMCD_V2_OFF_MIN + CLC_EID_LEN * (unsigned)eid_cnt;

	codec_need(c, eid_cnt <= CLC_MAX_EIDS && ism_cnt <= CLC_MAX_GIDS);
	codec_reserved(c, 1);
	codec_need(c, !c->writes || o->release <= CLC_RELEASE);
	o->release = codec_u8(c, (uint8_t)(o->release << 4)) >> 4;
	codec_reserved(c, 2);
	smcd_off = codec_be16(c, 0);
	codec_bytes(c, o->gid, sizeof(o->gid));
	lay_limits(c, o->release, &o->max_conns, &o->max_links, &o->features);
	codec_reserved(c, 12);
	o->present = true;
	o->eid_cnt = 0;
	for (unsigned i = 0; !c->bad && i < eid_cnt; i++) {
		struct clc_eid eid = o->eids[i];

		codec_bytes(c, eid.b, sizeof(eid.b));
		if (clc_eid_is_valid(&eid))
			o->eids[o->eid_cnt++] = eid;
		else
			codec_need(c, !c->writes);
	}
	codec_need(c, smcd_off == 0 ? ism_cnt == 0 : smcd_off >= smcd_min);
	if (!c->bad && smcd_off != 0)
		codec_reserved(c, smcd_off - smcd_min + SMCD_V2_LEN(ism_cnt));
}

/* Release 0 is specified with 36 bytes, but Linux always sends 52. The limits are missing if their place holds a GID
 * list that fits exactly, or nothing. */
static bool
lacks_limits(struct rcur r, enum clc_type type)
{
	size_t left = rcur_left(&r);

	return left < FIRST_LIMITS_LEN || (type == CLC_CONFIRM && left == 4u + CLC_GID_LEN * (size_t)rcur_u8(&r));
}

static void
lay_first_contact(struct codec *c, enum clc_type type, struct clc_first_contact *f)
{
	uint8_t os;

	f->direct = (codec_u8(c, f->direct ? FLAG_DIRECT : 0) & FLAG_DIRECT) != 0;
	codec_need(c, !c->writes || (f->os <= 15 && f->release <= CLC_RELEASE));
	os = codec_u8(c, (uint8_t)(f->os << 4 | f->release));
	f->os = os >> 4;
	f->release = os & 0x0f;
	codec_reserved(c, 2);
	codec_bytes(c, f->host, sizeof(f->host));
	if (c->writes || f->release > 0 || !lacks_limits(c->r, type)) {
		lay_limits(c, f->release, &f->max_conns, &f->max_links, &f->features);
		codec_reserved(c, 12);
	}
	if (type != CLC_CONFIRM || (!c->writes && rcur_left(&c->r) == 0))
		return;
	f->gid_cnt = codec_u8(c, f->gid_cnt);
	codec_need(c, f->gid_cnt <= CLC_MAX_GIDS);
	codec_reserved(c, 3);
	for (unsigned i = 0; !c->bad && i < f->gid_cnt; i++)
		codec_bytes(c, f->gids[i], sizeof(f->gids[i]));
}

/* The version 2 fields after the PSN. */
static void
lay_accept_v2(struct codec *c, enum clc_type type, struct clc_accept *a)
{
	codec_need(c, (c->flags & 0x03) == CLC_PATH_R);
	codec_bytes(c, a->eid.b, sizeof(a->eid.b));
	codec_need(c, clc_eid_is_valid(&a->eid));
	codec_reserved(c, 8);
	a->first.present = a->first_contact;
	if (a->first_contact)
		lay_first_contact(c, type, &a->first);
}

/* Up to the PSN; the smcrd extension may follow. */
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

/* The first diagnosis word, the operating system (version 2), and a byte that others leave 0. */
static void
lay_decline(struct codec *c, unsigned version, struct clc_decline *d)
{
	codec_bytes(c, d->peer_id, sizeof(d->peer_id));
	d->diag = codec_be32(c, d->diag);
	d->os = codec_u8(c, (uint8_t)(d->os << 4)) >> 4;
	if (version < 2)
		d->os = 0;
	codec_reserved(c, 2);
	const unsigned used = codec_u8(c,
	    (uint8_t)((d->client_used ? CLIENT_USED : 0) | (d->dest_used ? DEST_USED : 0) |
	        (d->dest_refused ? DEST_REFUSED : 0)));
	d->client_used = (used & CLIENT_USED) != 0;
	d->dest_used = (used & DEST_USED) != 0;
	d->dest_refused = (used & DEST_REFUSED) != 0;
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

/* The growth area belongs to the sender: one that is not exactly ours is a foreign peer's, and no error. */
static void
read_growth(struct codec *c, size_t len, struct clc_proposal *p)
{
	static const uint8_t no_smcd[SMCD_ID_LEN];
	const size_t head_len = SMCD_AREA_LEN + sizeof(ext_magic);
	struct rcur growth = rcur_sub(&c->r, len);
	size_t kept = min_size(rcur_left(&growth), CLC_GROWTH_LEN);

	p->growth_len = (uint16_t)rcur_left(&growth);
	rcur_bytes(&growth, p->growth, kept);
	if (kept == CLC_GROWTH_LEN && memcmp(p->growth, no_smcd, sizeof(no_smcd)) == 0 &&
	    memcmp(p->growth + SMCD_AREA_LEN, ext_magic, sizeof(ext_magic)) == 0)
		p->ext = read_ext(rcur_make(p->growth + head_len, EXT_LEN - sizeof(ext_magic)));
	if (p->ext.version == 0)
		p->ext = (struct clc_smcrd_ext){ .present = false };
	if ((p->ext.features & CLC_FEATURE_TLVS) != 0)
		clc_tlvs_read(c, growth, &p->tlvs);
}

static bool
offers_r(enum clc_path type)
{
	return type == CLC_PATH_R || type == CLC_PATH_BOTH;
}

/* Offset of the version 2 extension from the start of the growth area; 0: absent. */
static size_t
offer_at(struct codec *c, const struct clc_proposal *p, size_t growth_len)
{
	struct rcur r = c->r;
	size_t off;

	if (!offers_r(p->typev2) || (p->typev1 != CLC_PATH_NONE && growth_len < SMCD_AREA_LEN))
		return 0;
	rcur_skip(&r, SMCD_ID_LEN);
	off = rcur_be16(&r);
	codec_need(c, !r.failed);
	return off == 0 ? 0 : SMCD_AREA_LEN + off;
}

static int
decode_proposal(struct codec *c, unsigned version, struct clc_proposal *p)
{
	size_t growth_len, v2_at, used;

	p->typev1 = version >= 2 ? (enum clc_path)(c->flags & 0x03) : CLC_PATH_R;
	p->typev2 = version >= 2 ? (enum clc_path)(c->flags >> 2) : CLC_PATH_NONE;
	lay_sender(c, p->peer_id, p->gid, p->mac);
	growth_len = rcur_be16(&c->r);
	v2_at = offer_at(c, p, growth_len);
	if (p->typev1 == CLC_PATH_NONE) {
		/* The IP area at offset 0 is absent; the SMC-D area remains. */
		if (!c->bad && v2_at == 0)
			return -EPROTO;
		used = v2_at;
		read_growth(c, v2_at, p);
	} else {
		read_growth(c, growth_len, p);
		lay_prefixes(c, p);
		used = growth_len + PREFIXES_LEN(p->ipv6_cnt);
	}
	if (v2_at != 0 && !c->bad) {
		codec_need(c, v2_at >= used);
		rcur_skip(&c->r, v2_at >= used ? v2_at - used : 0);
		lay_offer(c, &p->v2);
	}
	if (c->bad || c->r.failed)
		return -EBADMSG;
	/* Version 2 extensions lie between the prefixes and the eye catcher. */
	return rcur_left(&c->r) > 0 && version <= 2 && p->typev2 == CLC_PATH_NONE ? -EBADMSG : 0;
}

/* The bytes between PSN and eye catcher: the smcrd extension, or skipped. */
static void
read_accept_ext(struct codec *c, struct clc_accept *a)
{
	const size_t name_len = sizeof(ext_magic) - 1;
	uint8_t len;

	if (rcur_left(&c->r) < EXT_LEN || memcmp(rcur_take(&c->r, name_len), ext_magic, name_len) != 0)
		return;
	len = rcur_u8(&c->r);
	codec_need(c, len >= EXT_LEN && len - sizeof(ext_magic) <= rcur_left(&c->r));
	a->ext = read_ext(c->r);
	codec_need(c, a->ext.version != 0);
}

static int
decode_accept(struct codec *c, enum clc_type type, unsigned version, struct clc_accept *a)
{
	if (version > 2)
		return -EPROTO; /* we never offer a higher one */
	lay_accept(c, a);
	if (version == 2)
		lay_accept_v2(c, type, a);
	else
		read_accept_ext(c, a);
	if (c->r.failed || c->bad)
		return -EBADMSG;
	/* A Confirm has no first-contact flag (A.2.4): the client knows itself that the MTU is valid. */
	return type == CLC_ACCEPT && a->first_contact && clc_mtu_bytes(a->mtu_code) == 0 ? -EPROTO : 0;
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
		err = decode_accept(&c, msg.type, msg.version, &msg.accept);
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
	unsigned version = in.len >= CLC_HDR_LEN ? in.ptr[7] >> 4 : 0;

	if (version != 1 && version != 2)
		return CLC_DIAG_VERSION_MISMATCH;
	if (in.ptr[4] != CLC_PROPOSAL)
		return CLC_DIAG_CONFIG; /* only the MTU can cause this */
	return offers_r((enum clc_path)(in.ptr[7] >> 2 & 0x03)) ? CLC_DIAG_NO_V2_EXT : CLC_DIAG_MODE_MISMATCH;
}

/* -- writing -- */

static void
encode_ext(struct codec *c, struct clc_smcrd_ext *ext)
{
	codec_need(c,
	    ext->version >= 1 && (ext->transports & ~CLC_TRANSPORT_KNOWN) == 0 &&
	        (ext->features & ~CLC_FEATURES_KNOWN) == 0 && (ext->uses & ~CLC_USES_DEST) == 0);
	wcur_bytes(&c->w, ext_magic, sizeof(ext_magic));
	lay_ext(c, ext);
}

static void
encode_growth(struct codec *c, struct clc_proposal *p, size_t len)
{
	uint8_t *area = c->w.p;

	if (p->ext.present) {
		wcur_zero(&c->w, SMCD_AREA_LEN);
		encode_ext(c, &p->ext);
		clc_tlvs_write(c, &p->tlvs);
	} else {
		wcur_bytes(&c->w, p->growth, len);
	}
	if (p->v2.present && !c->w.failed) {
		size_t at = p->typev1 == CLC_PATH_NONE ? len : len + PREFIXES_LEN(p->ipv6_cnt);

		codec_need(c, at > SMCD_AREA_LEN); /* offset 0 means absent */
		be16_put(area + SMCD_ID_LEN, (uint16_t)(at - SMCD_AREA_LEN));
	}
}

static void
encode_proposal(struct codec *c, unsigned version, struct clc_proposal *p)
{
	size_t tlvs_len = clc_tlvs_len(&p->tlvs);
	size_t growth_len = p->ext.present ? CLC_GROWTH_LEN + tlvs_len : p->growth_len;
	bool has_ip = version == 1 || p->typev1 != CLC_PATH_NONE;

	if (version == 2) {
		codec_need(c, p->typev1 <= CLC_PATH_BOTH && p->typev2 <= CLC_PATH_BOTH);
		codec_need(c, p->typev1 != CLC_PATH_NONE || p->v2.present);
		c->flags = (uint8_t)((unsigned)p->typev2 << 2 | (unsigned)p->typev1);
	}
	codec_need(c, growth_len <= CLC_GROWTH_LEN + tlvs_len && p->ipv6_cnt <= CLC_MAX_IPV6);
	codec_need(c, tlvs_len == 0 || (p->ext.present && !p->v2.present && (p->ext.features & CLC_FEATURE_TLVS) != 0));
	if (p->v2.present)
		codec_need(c, version == 2 && offers_r(p->typev2) && growth_len >= SMCD_AREA_LEN);
	if (c->bad)
		return;
	lay_sender(c, p->peer_id, p->gid, p->mac);
	wcur_be16(&c->w, (uint16_t)(has_ip ? growth_len : 0));
	encode_growth(c, p, growth_len);
	if (has_ip)
		lay_prefixes(c, p);
	if (p->v2.present)
		lay_offer(c, &p->v2);
}

static void
encode_accept(struct codec *c, enum clc_type type, unsigned version, struct clc_accept *a)
{
	codec_need(c, a->size_code <= CLC_MAX_SIZE_CODE_SENT && clc_mtu_bytes(a->mtu_code) != 0);
	lay_accept(c, a);
	if (version == 2) {
		codec_need(c, !a->ext.present && a->first.present == a->first_contact);
		lay_accept_v2(c, type, a);
	} else if (a->ext.present) {
		encode_ext(c, &a->ext);
	}
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
	codec_need(&c, (m.version == 1 || m.version == 2) && m.type >= CLC_PROPOSAL && m.type <= CLC_DECLINE);
	switch (m.type) {
	case CLC_PROPOSAL:
		encode_proposal(&c, m.version, &m.proposal);
		break;
	case CLC_ACCEPT:
	case CLC_CONFIRM:
		encode_accept(&c, m.type, m.version, &m.accept);
		break;
	case CLC_DECLINE:
		codec_need(&c, m.decline.os <= (m.version >= 2 ? 15 : 0));
		lay_decline(&c, m.version, &m.decline);
		codec_reserved(&c, m.version >= 2 ? 16 : 0);
		break;
	}
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
