/* LLC codec. Layouts: RFC 7609 A.3, figures 31 to 40. ADD LINK has two reserved bytes after the MAC that figure 32
 * lacks, but Linux sends and Wireshark skips. Version 2 (IBM's "Shared Memory Communications Version 2", and Linux) is
 * version 1 with a 16-bit length and longer lists. Bytes after the known fields are ignored, as in Linux. */
#include "wire/llc.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "wire/codec.h"

#define FLAG_RESPONSE 0x80      /* all types */
#define FLAG_NO_EYECATCHER 0x03 /* CONFIRM LINK; reserved in the RFC */
#define FLAG_REJECTED 0x40      /* ADD LINK */
#define FLAG_ALL 0x40           /* DELETE LINK */
#define FLAG_ORDERLY 0x20
#define FLAG_NEGATIVE 0x20 /* CONFIRM RKEY, its CONT, DELETE RKEY */
#define FLAG_RETRY 0x10    /* CONFIRM RKEY */
#define EXT_DIRECT 0x80    /* ADD LINK of version 2, in a separate byte */

#define HDR_LEN 4
#define FIXED_LEN 72      /* longest part before a list: ADD LINK of version 2 */
#define TYPE_VERSION 0x20 /* added to the types in version 2 */

#define LOW_HALF 0x0f
#define MAX_OTHER_LINKS (LLC_MAX_LINKS - 1)

/* A message in one direction. */
struct pass {
	struct codec c;
	bool v2;
	bool order_open;  /* reading version 2: the length is equal in both byte orders */
	struct span list; /* writing: the end of the message */
};

/* -- numbers and lists -- */

uint32_t
llc_rkey_get(const uint8_t *rkeys, unsigned i)
{
	return be32_get(rkeys + (size_t)i * LLC_RKEY_LEN);
}

void
llc_rkey_put(uint8_t *rkeys, unsigned i, uint32_t rkey)
{
	be32_put(rkeys + (size_t)i * LLC_RKEY_LEN, rkey);
}

struct llc_rkey_pair
llc_pair_get(const uint8_t *pairs, unsigned i)
{
	const uint8_t *p = pairs + (size_t)i * LLC_PAIR_LEN;

	return (struct llc_rkey_pair){ be32_get(p), be32_get(p + 4), be64_get(p + 8) };
}

void
llc_pair_put(uint8_t *pairs, unsigned i, const struct llc_rkey_pair *pair)
{
	uint8_t *p = pairs + (size_t)i * LLC_PAIR_LEN;

	be32_put(p, pair->old_rkey);
	be32_put(p + 4, pair->new_rkey);
	be64_put(p + 8, pair->new_vaddr);
}

/* len bytes in wire form, at the end of the message. */
static const uint8_t *
list(struct pass *p, const uint8_t *elems, size_t len)
{
	if (!p->c.writes)
		elems = len > 0 ? rcur_take(&p->c.r, len) : NULL;
	else
		p->list = (struct span){ elems, len };
	codec_need(&p->c, len == 0 || elems != NULL);
	return elems;
}

static void
put_16(uint8_t at[2], unsigned v, bool little)
{
	at[little ? 0 : 1] = (uint8_t)v;
	at[little ? 1 : 0] = (uint8_t)(v >> 8);
}

/* -- layouts: what follows the header -- */

static void
confirm_link(struct pass *p, struct llc_msg *msg)
{
	struct llc_confirm_link *m = &msg->confirm_link;
	struct codec *c = &p->c;

	codec_bytes(c, m->mac, sizeof(m->mac));
	codec_bytes(c, m->gid, sizeof(m->gid));
	m->qpn = codec_be24(c, m->qpn);
	m->link_num = codec_u8(c, m->link_num);
	m->link_uid = codec_be32(c, m->link_uid);
	m->max_links = codec_u8(c, m->max_links);
	if (p->v2)
		m->max_conns = codec_u8(c, m->max_conns);
	m->no_eyecatcher = codec_flag(c, FLAG_NO_EYECATCHER, m->no_eyecatcher);
}

/* The number of pairs, at most 255: one byte is zero, so both byte orders can be read. A message of 124 pairs has
 * 0x0808 bytes, which leaves the order open; the number of pairs decides it then. Linux sends its number of
 * connections, but fewer pairs if connections share RMBs: the pairs that fit the message are valid. */
static void
pair_count(struct pass *p, struct llc_msg *msg)
{
	struct llc_add_link *m = &msg->add_link;
	uint8_t n[2];

	put_16(n, m->pair_cnt, msg->little);
	codec_bytes(&p->c, n, sizeof(n));
	if (p->c.writes)
		return;
	codec_need(&p->c, n[0] == 0 || n[1] == 0);
	m->pair_cnt = (uint8_t)min_size(n[0] | n[1], rcur_left(&p->c.r) / LLC_PAIR_LEN);
	if (p->order_open)
		msg->little = n[0] > 0;
}

/* The version 2 part. */
static void
add_link_ext(struct pass *p, struct llc_msg *msg)
{
	struct llc_add_link *m = &msg->add_link;
	struct codec *c = &p->c;

	codec_reserved(c, 6);
	m->direct = (codec_u8(c, m->direct ? EXT_DIRECT : 0) & EXT_DIRECT) != 0;
	codec_reserved(c, 1);
	codec_bytes(c, m->client_gid, sizeof(m->client_gid));
	codec_reserved(c, 8);
	pair_count(p, msg);
	m->pairs = list(p, m->pairs, (size_t)m->pair_cnt * LLC_PAIR_LEN);
}

/* The reject reason is in the header. */
static void
add_link(struct pass *p, struct llc_msg *msg)
{
	struct llc_add_link *m = &msg->add_link;
	struct codec *c = &p->c;

	codec_bytes(c, m->mac, sizeof(m->mac));
	codec_reserved(c, 2);
	codec_bytes(c, m->gid, sizeof(m->gid));
	m->qpn = codec_be24(c, m->qpn);
	m->link_num = codec_u8(c, m->link_num);
	codec_need(c, m->mtu_code <= LOW_HALF && m->reject_reason <= LOW_HALF);
	m->mtu_code = codec_u8(c, m->mtu_code) & LOW_HALF;
	m->psn = codec_be24(c, m->psn);
	m->mpa_port = codec_be16(c, m->mpa_port);
	m->rejected = codec_flag(c, FLAG_REJECTED, m->rejected);
	if (p->v2 && !(msg->response && m->rejected))
		add_link_ext(p, msg);
}

static void
add_link_cont(struct pass *p, struct llc_msg *msg)
{
	struct llc_add_link_cont *m = &msg->add_link_cont;
	struct codec *c = &p->c;

	m->link_num = codec_u8(c, m->link_num);
	m->left_cnt = codec_u8(c, m->left_cnt);
	codec_reserved(c, 2);
	for (unsigned i = 0; i < min_u8(m->left_cnt, LLC_PAIRS_PER_CONT); i++) {
		m->pairs[i].old_rkey = codec_be32(c, m->pairs[i].old_rkey);
		m->pairs[i].new_rkey = codec_be32(c, m->pairs[i].new_rkey);
		m->pairs[i].new_vaddr = codec_be64(c, m->pairs[i].new_vaddr);
	}
}

static void
delete_link(struct pass *p, struct llc_msg *msg)
{
	struct llc_delete_link *m = &msg->delete_link;
	struct codec *c = &p->c;

	m->link_num = codec_u8(c, m->link_num);
	m->reason = codec_be32(c, m->reason);
	m->all = codec_flag(c, FLAG_ALL, m->all);
	m->orderly = codec_flag(c, FLAG_ORDERLY, m->orderly);
}

static void
link_rkeys(struct codec *c, struct llc_link_rkey *links, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		links[i].link_num = codec_u8(c, links[i].link_num);
		links[i].rkey = codec_be32(c, links[i].rkey);
		links[i].vaddr = codec_be64(c, links[i].vaddr);
	}
}

static void
confirm_rkey(struct pass *p, struct llc_msg *msg)
{
	struct llc_confirm_rkey *m = &msg->confirm_rkey;
	struct codec *c = &p->c;

	m->other_cnt = codec_u8(c, m->other_cnt);
	codec_need(c, m->other_cnt <= (p->v2 ? LLC_LINKS_INLINE : MAX_OTHER_LINKS));
	m->rkey = codec_be32(c, m->rkey);
	m->vaddr = codec_be64(c, m->vaddr);
	link_rkeys(c, m->others, min_u8(m->other_cnt, LLC_LINKS_INLINE));
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
	m->retry = codec_flag(c, FLAG_RETRY, m->retry);
}

static void
confirm_rkey_cont(struct pass *p, struct llc_msg *msg)
{
	struct llc_confirm_rkey_cont *m = &msg->confirm_rkey_cont;
	struct codec *c = &p->c;

	m->left_cnt = codec_u8(c, m->left_cnt);
	codec_need(c, m->left_cnt >= 1 && m->left_cnt <= MAX_OTHER_LINKS);
	link_rkeys(c, m->others, min_u8(m->left_cnt, LLC_LINKS_PER_CONT));
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
}

/* Version 1: at most eight keys, and a mask of unknown ones. A version 2 response has no keys: Linux sends 44 bytes. */
static void
delete_rkey(struct pass *p, struct llc_msg *msg)
{
	struct llc_delete_rkey *m = &msg->delete_rkey;
	struct codec *c = &p->c;

	m->cnt = codec_u8(c, m->cnt);
	codec_need(c, m->cnt >= 1);
	if (p->v2) {
		m->invalid_cnt = codec_u8(c, m->invalid_cnt);
	} else {
		unsigned mask = 0xff00u >> min_u8(m->cnt, LLC_MAX_DELETE_RKEYS) & 0xff; /* bits with an rkey */

		codec_need(c, m->cnt <= LLC_MAX_DELETE_RKEYS && (m->error_mask & ~mask) == 0);
		m->error_mask = (uint8_t)(codec_u8(c, m->error_mask) & mask);
	}
	codec_reserved(c, 2);
	m->rkeys = p->v2 && msg->response ? list(p, NULL, 0) : list(p, m->rkeys, (size_t)m->cnt * LLC_RKEY_LEN);
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
}

static void
test_link(struct pass *p, struct llc_msg *msg)
{
	codec_bytes(&p->c, msg->test_link.user_data, LLC_TEST_LEN);
}

static void
request_add_link(struct pass *p, struct llc_msg *msg)
{
	struct llc_request_add_link *m = &msg->request_add_link;
	struct codec *c = &p->c;

	codec_reserved(c, 20);
	m->gid_cnt = codec_u8(c, m->gid_cnt);
	/* Linux answers a request that it cannot serve with zeroes. */
	codec_need(c, (m->gid_cnt >= 1 || msg->response) && m->gid_cnt <= LLC_MAX_GIDS);
	codec_reserved(c, 3);
	m->gids = list(p, m->gids, (size_t)m->gid_cnt * 16);
}

/* Messages by type. The layout checks the fields for reader and writer alike. */
static const struct {
	void (*layout)(struct pass *, struct llc_msg *);
	bool in[2]; /* version 1, 2 */
} types[] = {
	[LLC_CONFIRM_LINK] = { confirm_link, { true, true } },
	[LLC_ADD_LINK] = { add_link, { true, true } },
	[LLC_ADD_LINK_CONT] = { add_link_cont, { true, false } },
	[LLC_DELETE_LINK] = { delete_link, { true, true } },
	[LLC_REQUEST_ADD_LINK] = { request_add_link, { false, true } },
	[LLC_CONFIRM_RKEY] = { confirm_rkey, { true, true } },
	[LLC_TEST_LINK] = { test_link, { true, true } },
	[LLC_CONFIRM_RKEY_CONT] = { confirm_rkey_cont, { true, false } },
	[LLC_DELETE_RKEY] = { delete_rkey, { true, true } },
};

static bool
type_is_known(unsigned type, bool v2)
{
	return type < sizeof(types) / sizeof(types[0]) && types[type].in[v2];
}

/* -- the header -- */

/* The length must be that of the Send. In version 2 it has 16 bits in the sender's byte order: the order that fits. A
 * length such as 0x0404 (255 keys in DELETE RKEY) fits both; it counts as little-endian, the order of most hosts. */
static bool
read_length(const uint8_t *hdr, size_t len, bool v2, bool *little)
{
	if (!v2)
		return len == LLC_LEN && hdr[1] == LLC_LEN;
	*little = len == (size_t)(hdr[2] << 8 | hdr[1]);
	return len >= LLC_LEN && len <= LLC_MAX_LEN && (*little || len == be16_get(hdr + 1));
}

unsigned
llc_version_of(struct span in)
{
	return in.len > 0 && type_is_known(in.ptr[0] ^ TYPE_VERSION, true) ? LLC_VERSION_2 : LLC_VERSION;
}

int
llc_decode(struct span in, unsigned version, struct llc_msg *out)
{
	bool v2 = version == LLC_VERSION_2;
	struct llc_msg msg;
	unsigned type;

	if (version != LLC_VERSION && !v2)
		return -ENOTSUP;
	if (in.len == 0)
		return -EBADMSG;
	type = in.ptr[0] ^ (v2 ? TYPE_VERSION : 0);
	if (!type_is_known(type, v2)) /* before the length: a type to be ignored (A.3) may have any length */
		return in.ptr[0] >> 6 == 2 ? -EOPNOTSUPP : -EPROTO;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum llc_type)type;
	if (in.len < LLC_LEN || !read_length(in.ptr, in.len, v2, &msg.little))
		return -EBADMSG;
	struct pass p = { .c = codec_reader(rcur_make(in.ptr + HDR_LEN, in.len - HDR_LEN), in.ptr[3]),
		.v2 = v2,
		.order_open = v2 && in.ptr[1] == in.ptr[2] };
	msg.response = codec_flag(&p.c, FLAG_RESPONSE, false);
	types[type].layout(&p, &msg);
	if (p.c.bad || p.c.r.failed)
		return -EBADMSG;
	if (!v2 && type == LLC_ADD_LINK && msg.add_link.rejected)
		msg.add_link.reject_reason = in.ptr[2] & LOW_HALF;
	*out = msg;
	return (int)in.len;
}

/* After the layout, which sets the flags; len is that of the whole message. */
static void
write_header(struct pass *p, const struct llc_msg *msg, size_t len, uint8_t hdr[HDR_LEN])
{
	(void)codec_flag(&p->c, FLAG_RESPONSE, msg->response);
	hdr[0] = (uint8_t)(msg->type | (p->v2 ? TYPE_VERSION : 0));
	if (p->v2) {
		put_16(hdr + 1, (unsigned)len, msg->little);
	} else {
		hdr[1] = (uint8_t)len;
		hdr[2] = msg->type == LLC_ADD_LINK && msg->add_link.rejected ? msg->add_link.reject_reason : 0;
	}
	hdr[3] = p->c.flags;
}

int
llc_encode(const struct llc_msg *msg, unsigned version, uint8_t *buf, size_t cap)
{
	uint8_t fixed[FIXED_LEN] = { 0 };
	struct pass p = { .c = codec_writer(fixed + HDR_LEN, FIXED_LEN - HDR_LEN), .v2 = version == LLC_VERSION_2 };
	struct llc_msg m = *msg;
	size_t fixed_len, len;

	if (version != LLC_VERSION && !p.v2)
		return -ENOTSUP;
	if (!type_is_known(m.type, p.v2))
		return -EINVAL;
	types[m.type].layout(&p, &m);
	if (p.c.bad)
		return -EINVAL;
	fixed_len = (size_t)(p.c.w.p - fixed);
	len = max_size(fixed_len + p.list.len, LLC_LEN);
	if (cap < len)
		return -ENOSPC;
	write_header(&p, &m, len, fixed);
	memset(buf, 0, LLC_LEN);
	memcpy(buf, fixed, fixed_len);
	if (p.list.len > 0)
		memcpy(buf + fixed_len, p.list.ptr, p.list.len);
	return (int)len;
}
