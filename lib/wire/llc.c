/* LLC codec; see llc.h. Layouts: RFC 7609 A.3, figures 31 to 40. ADD LINK has
 * two reserved bytes after the MAC that figure 32 does not show, but Linux
 * writes and Wireshark skips. */
#include "wire/llc.h"

#include <errno.h>
#include <string.h>

#define FLAG_RESPONSE 0x80      /* all types */
#define FLAG_NO_EYECATCHER 0x03 /* CONFIRM LINK; reserved in the RFC */
#define FLAG_REJECTED 0x40      /* ADD LINK */
#define FLAG_ALL 0x40           /* DELETE LINK */
#define FLAG_ORDERLY 0x20
#define FLAG_NEGATIVE 0x20 /* CONFIRM RKEY, its CONT, DELETE RKEY */
#define FLAG_RETRY 0x10    /* CONFIRM RKEY */

#define MAX_24 0xffffffu
#define MAX_OTHER_LINKS (LLC_MAX_LINKS - 1)

static uint8_t
min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void
decode_confirm_link(struct rcur *r, uint8_t flags, struct llc_confirm_link *m)
{
	rcur_bytes(r, m->mac, sizeof(m->mac));
	rcur_bytes(r, m->gid, sizeof(m->gid));
	m->qpn = rcur_be24(r);
	m->link_num = rcur_u8(r);
	m->link_uid = rcur_be32(r);
	m->max_links = rcur_u8(r);
	m->no_eyecatcher = (flags & FLAG_NO_EYECATCHER) != 0;
}

static void
encode_confirm_link(struct wcur *w, const struct llc_confirm_link *m)
{
	wcur_bytes(w, m->mac, sizeof(m->mac));
	wcur_bytes(w, m->gid, sizeof(m->gid));
	wcur_be24(w, m->qpn);
	wcur_u8(w, m->link_num);
	wcur_be32(w, m->link_uid);
	wcur_u8(w, m->max_links);
}

static void
decode_add_link(struct rcur *r, uint8_t flags, uint8_t reason, struct llc_add_link *m)
{
	rcur_bytes(r, m->mac, sizeof(m->mac));
	rcur_skip(r, 2);
	rcur_bytes(r, m->gid, sizeof(m->gid));
	m->qpn = rcur_be24(r);
	m->link_num = rcur_u8(r);
	m->mtu_code = rcur_u8(r) & 0x0f;
	m->psn = rcur_be24(r);
	m->mpa_port = rcur_be16(r);
	m->rejected = (flags & FLAG_REJECTED) != 0;
	m->reject_reason = m->rejected ? reason : 0;
}

static void
encode_add_link(struct wcur *w, const struct llc_add_link *m)
{
	wcur_bytes(w, m->mac, sizeof(m->mac));
	wcur_zero(w, 2);
	wcur_bytes(w, m->gid, sizeof(m->gid));
	wcur_be24(w, m->qpn);
	wcur_u8(w, m->link_num);
	wcur_u8(w, m->mtu_code);
	wcur_be24(w, m->psn);
	wcur_be16(w, m->mpa_port);
}

static void
decode_add_link_cont(struct rcur *r, struct llc_add_link_cont *m)
{
	m->link_num = rcur_u8(r);
	m->left_cnt = rcur_u8(r);
	rcur_skip(r, 2);
	for (unsigned i = 0; i < min_u8(m->left_cnt, LLC_PAIRS_PER_CONT); i++) {
		m->pairs[i].old_rkey = rcur_be32(r);
		m->pairs[i].new_rkey = rcur_be32(r);
		m->pairs[i].new_vaddr = rcur_be64(r);
	}
}

static void
encode_add_link_cont(struct wcur *w, const struct llc_add_link_cont *m)
{
	wcur_u8(w, m->link_num);
	wcur_u8(w, m->left_cnt);
	wcur_zero(w, 2);
	for (unsigned i = 0; i < min_u8(m->left_cnt, LLC_PAIRS_PER_CONT); i++) {
		wcur_be32(w, m->pairs[i].old_rkey);
		wcur_be32(w, m->pairs[i].new_rkey);
		wcur_be64(w, m->pairs[i].new_vaddr);
	}
}

static void
decode_delete_link(struct rcur *r, uint8_t flags, struct llc_delete_link *m)
{
	m->link_num = rcur_u8(r);
	m->reason = rcur_be32(r);
	m->all = (flags & FLAG_ALL) != 0;
	m->orderly = (flags & FLAG_ORDERLY) != 0;
}

static void
encode_delete_link(struct wcur *w, const struct llc_delete_link *m)
{
	wcur_u8(w, m->link_num);
	wcur_be32(w, m->reason);
}

static void
decode_link_rkeys(struct rcur *r, struct llc_link_rkey *links, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		links[i].link_num = rcur_u8(r);
		links[i].rkey = rcur_be32(r);
		links[i].vaddr = rcur_be64(r);
	}
}

static void
encode_link_rkeys(struct wcur *w, const struct llc_link_rkey *links, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		wcur_u8(w, links[i].link_num);
		wcur_be32(w, links[i].rkey);
		wcur_be64(w, links[i].vaddr);
	}
}

static int
decode_confirm_rkey(struct rcur *r, uint8_t flags, struct llc_confirm_rkey *m)
{
	m->other_cnt = rcur_u8(r);
	if (m->other_cnt > MAX_OTHER_LINKS)
		return -EBADMSG;
	m->rkey = rcur_be32(r);
	m->vaddr = rcur_be64(r);
	decode_link_rkeys(r, m->others, min_u8(m->other_cnt, LLC_LINKS_INLINE));
	m->negative = (flags & FLAG_NEGATIVE) != 0;
	m->retry = (flags & FLAG_RETRY) != 0;
	return 0;
}

static void
encode_confirm_rkey(struct wcur *w, const struct llc_confirm_rkey *m)
{
	wcur_u8(w, m->other_cnt);
	wcur_be32(w, m->rkey);
	wcur_be64(w, m->vaddr);
	encode_link_rkeys(w, m->others, min_u8(m->other_cnt, LLC_LINKS_INLINE));
}

static int
decode_confirm_rkey_cont(struct rcur *r, uint8_t flags, struct llc_confirm_rkey_cont *m)
{
	m->left_cnt = rcur_u8(r);
	if (m->left_cnt == 0 || m->left_cnt > MAX_OTHER_LINKS)
		return -EBADMSG;
	decode_link_rkeys(r, m->others, min_u8(m->left_cnt, LLC_LINKS_PER_CONT));
	m->negative = (flags & FLAG_NEGATIVE) != 0;
	return 0;
}

static void
encode_confirm_rkey_cont(struct wcur *w, const struct llc_confirm_rkey_cont *m)
{
	wcur_u8(w, m->left_cnt);
	encode_link_rkeys(w, m->others, min_u8(m->left_cnt, LLC_LINKS_PER_CONT));
}

/* The mask bits that stand for one of cnt rkeys. */
static uint8_t
error_bits(unsigned cnt)
{
	return (uint8_t)(0xff00u >> cnt);
}

static int
decode_delete_rkey(struct rcur *r, uint8_t flags, struct llc_delete_rkey *m)
{
	m->cnt = rcur_u8(r);
	if (m->cnt == 0 || m->cnt > LLC_MAX_DELETE_RKEYS)
		return -EBADMSG;
	m->error_mask = rcur_u8(r) & error_bits(m->cnt);
	rcur_skip(r, 2);
	for (unsigned i = 0; i < m->cnt; i++)
		m->rkeys[i] = rcur_be32(r);
	m->negative = (flags & FLAG_NEGATIVE) != 0;
	return 0;
}

static void
encode_delete_rkey(struct wcur *w, const struct llc_delete_rkey *m)
{
	wcur_u8(w, m->cnt);
	wcur_u8(w, m->error_mask);
	wcur_zero(w, 2);
	for (unsigned i = 0; i < m->cnt; i++)
		wcur_be32(w, m->rkeys[i]);
}

static int
decode_body(struct rcur *r, uint8_t reason, uint8_t flags, struct llc_msg *m)
{
	switch (m->type) {
	case LLC_CONFIRM_LINK:
		decode_confirm_link(r, flags, &m->confirm_link);
		return 0;
	case LLC_ADD_LINK:
		decode_add_link(r, flags, reason, &m->add_link);
		return 0;
	case LLC_ADD_LINK_CONT:
		decode_add_link_cont(r, &m->add_link_cont);
		return 0;
	case LLC_DELETE_LINK:
		decode_delete_link(r, flags, &m->delete_link);
		return 0;
	case LLC_CONFIRM_RKEY:
		return decode_confirm_rkey(r, flags, &m->confirm_rkey);
	case LLC_TEST_LINK:
		rcur_bytes(r, m->test_link.user_data, LLC_TEST_LEN);
		return 0;
	case LLC_CONFIRM_RKEY_CONT:
		return decode_confirm_rkey_cont(r, flags, &m->confirm_rkey_cont);
	case LLC_DELETE_RKEY:
		return decode_delete_rkey(r, flags, &m->delete_rkey);
	}
	return -EPROTO;
}

/* 0, or what A.3 says about a type that is not ours. */
static int
check_type(uint8_t type)
{
	switch (type) {
	case LLC_CONFIRM_LINK:
	case LLC_ADD_LINK:
	case LLC_ADD_LINK_CONT:
	case LLC_DELETE_LINK:
	case LLC_CONFIRM_RKEY:
	case LLC_TEST_LINK:
	case LLC_CONFIRM_RKEY_CONT:
	case LLC_DELETE_RKEY:
		return 0;
	default:
		return type >> 6 == 2 ? -EOPNOTSUPP : -EPROTO;
	}
}

int
llc_decode(struct span in, unsigned version, struct llc_msg *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	uint8_t type = rcur_u8(&r);
	uint8_t len = rcur_u8(&r);
	uint8_t reason = rcur_u8(&r) & 0x0f;
	uint8_t flags = rcur_u8(&r);
	struct llc_msg msg;
	int err;

	if (version != LLC_VERSION)
		return -ENOTSUP;
	if (in.len == 0)
		return -EBADMSG;
	err = check_type(type);
	if (err < 0)
		return err; /* before the length: a type to be ignored may have any */
	if (in.len != LLC_LEN || len != LLC_LEN)
		return -EBADMSG;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum llc_type)type;
	msg.response = (flags & FLAG_RESPONSE) != 0;
	err = decode_body(&r, reason, flags, &msg);
	if (err < 0)
		return err;
	*out = msg;
	return LLC_LEN;
}

static bool
msg_is_valid(const struct llc_msg *m)
{
	switch (m->type) {
	case LLC_CONFIRM_LINK:
		return m->confirm_link.qpn <= MAX_24;
	case LLC_ADD_LINK:
		return m->add_link.qpn <= MAX_24 && m->add_link.psn <= MAX_24 && m->add_link.mtu_code <= 15 &&
		    m->add_link.reject_reason <= 15;
	case LLC_ADD_LINK_CONT:
	case LLC_DELETE_LINK:
	case LLC_TEST_LINK:
		return true;
	case LLC_CONFIRM_RKEY:
		return m->confirm_rkey.other_cnt <= MAX_OTHER_LINKS;
	case LLC_CONFIRM_RKEY_CONT:
		return m->confirm_rkey_cont.left_cnt >= 1 && m->confirm_rkey_cont.left_cnt <= MAX_OTHER_LINKS;
	case LLC_DELETE_RKEY:
		return m->delete_rkey.cnt >= 1 && m->delete_rkey.cnt <= LLC_MAX_DELETE_RKEYS &&
		    (m->delete_rkey.error_mask & ~error_bits(m->delete_rkey.cnt)) == 0;
	}
	return false;
}

static uint8_t
flags_of(const struct llc_msg *m)
{
	unsigned flags = m->response ? FLAG_RESPONSE : 0;

	switch (m->type) {
	case LLC_CONFIRM_LINK:
		flags |= m->confirm_link.no_eyecatcher ? FLAG_NO_EYECATCHER : 0;
		break;
	case LLC_ADD_LINK:
		flags |= m->add_link.rejected ? FLAG_REJECTED : 0;
		break;
	case LLC_DELETE_LINK:
		flags |= m->delete_link.all ? FLAG_ALL : 0;
		flags |= m->delete_link.orderly ? FLAG_ORDERLY : 0;
		break;
	case LLC_CONFIRM_RKEY:
		flags |= m->confirm_rkey.negative ? FLAG_NEGATIVE : 0;
		flags |= m->confirm_rkey.retry ? FLAG_RETRY : 0;
		break;
	case LLC_CONFIRM_RKEY_CONT:
		flags |= m->confirm_rkey_cont.negative ? FLAG_NEGATIVE : 0;
		break;
	case LLC_DELETE_RKEY:
		flags |= m->delete_rkey.negative ? FLAG_NEGATIVE : 0;
		break;
	case LLC_ADD_LINK_CONT:
	case LLC_TEST_LINK:
		break;
	}
	return (uint8_t)flags;
}

static void
encode_body(struct wcur *w, const struct llc_msg *m)
{
	switch (m->type) {
	case LLC_CONFIRM_LINK:
		encode_confirm_link(w, &m->confirm_link);
		break;
	case LLC_ADD_LINK:
		encode_add_link(w, &m->add_link);
		break;
	case LLC_ADD_LINK_CONT:
		encode_add_link_cont(w, &m->add_link_cont);
		break;
	case LLC_DELETE_LINK:
		encode_delete_link(w, &m->delete_link);
		break;
	case LLC_CONFIRM_RKEY:
		encode_confirm_rkey(w, &m->confirm_rkey);
		break;
	case LLC_TEST_LINK:
		wcur_bytes(w, m->test_link.user_data, LLC_TEST_LEN);
		break;
	case LLC_CONFIRM_RKEY_CONT:
		encode_confirm_rkey_cont(w, &m->confirm_rkey_cont);
		break;
	case LLC_DELETE_RKEY:
		encode_delete_rkey(w, &m->delete_rkey);
		break;
	}
}

int
llc_encode(const struct llc_msg *msg, unsigned version, uint8_t *buf, size_t cap)
{
	struct wcur w;

	if (version != LLC_VERSION)
		return -ENOTSUP;
	if (!msg_is_valid(msg))
		return -EINVAL;
	if (cap < LLC_LEN)
		return -ENOSPC;
	w = wcur_make(buf, LLC_LEN);
	wcur_u8(&w, (uint8_t)msg->type);
	wcur_u8(&w, LLC_LEN);
	wcur_u8(&w, msg->type == LLC_ADD_LINK && msg->add_link.rejected ? msg->add_link.reject_reason : 0);
	wcur_u8(&w, flags_of(msg));
	encode_body(&w, msg);
	wcur_zero(&w, (size_t)(w.end - w.p));
	return LLC_LEN;
}
