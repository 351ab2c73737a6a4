/* LLC codec. Layouts: RFC 7609 A.3, figures 31 to 40. ADD LINK has two reserved bytes after the MAC that figure 32
 * does not show, but Linux writes and Wireshark skips. */
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

#define LOW_HALF 0x0f
#define MAX_OTHER_LINKS (LLC_MAX_LINKS - 1)

/* -- layouts: what follows the header of 4 bytes -- */

static void
confirm_link(struct codec *c, struct llc_msg *msg)
{
	struct llc_confirm_link *m = &msg->confirm_link;

	codec_bytes(c, m->mac, sizeof(m->mac));
	codec_bytes(c, m->gid, sizeof(m->gid));
	m->qpn = codec_be24(c, m->qpn);
	m->link_num = codec_u8(c, m->link_num);
	m->link_uid = codec_be32(c, m->link_uid);
	m->max_links = codec_u8(c, m->max_links);
	m->no_eyecatcher = codec_flag(c, FLAG_NO_EYECATCHER, m->no_eyecatcher);
}

/* The reject reason is in the header. */
static void
add_link(struct codec *c, struct llc_msg *msg)
{
	struct llc_add_link *m = &msg->add_link;

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
}

static void
add_link_cont(struct codec *c, struct llc_msg *msg)
{
	struct llc_add_link_cont *m = &msg->add_link_cont;

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
delete_link(struct codec *c, struct llc_msg *msg)
{
	struct llc_delete_link *m = &msg->delete_link;

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
confirm_rkey(struct codec *c, struct llc_msg *msg)
{
	struct llc_confirm_rkey *m = &msg->confirm_rkey;

	m->other_cnt = codec_u8(c, m->other_cnt);
	codec_need(c, m->other_cnt <= MAX_OTHER_LINKS);
	m->rkey = codec_be32(c, m->rkey);
	m->vaddr = codec_be64(c, m->vaddr);
	link_rkeys(c, m->others, min_u8(m->other_cnt, LLC_LINKS_INLINE));
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
	m->retry = codec_flag(c, FLAG_RETRY, m->retry);
}

static void
confirm_rkey_cont(struct codec *c, struct llc_msg *msg)
{
	struct llc_confirm_rkey_cont *m = &msg->confirm_rkey_cont;

	m->left_cnt = codec_u8(c, m->left_cnt);
	codec_need(c, m->left_cnt >= 1 && m->left_cnt <= MAX_OTHER_LINKS);
	link_rkeys(c, m->others, min_u8(m->left_cnt, LLC_LINKS_PER_CONT));
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
}

static void
delete_rkey(struct codec *c, struct llc_msg *msg)
{
	struct llc_delete_rkey *m = &msg->delete_rkey;
	unsigned cnt, mask; /* the mask bits that stand for an rkey */

	m->cnt = codec_u8(c, m->cnt);
	codec_need(c, m->cnt >= 1 && m->cnt <= LLC_MAX_DELETE_RKEYS);
	cnt = min_u8(m->cnt, LLC_MAX_DELETE_RKEYS);
	mask = 0xff00u >> cnt & 0xff;
	codec_need(c, (m->error_mask & ~mask) == 0);
	m->error_mask = (uint8_t)(codec_u8(c, m->error_mask) & mask);
	codec_reserved(c, 2);
	for (unsigned i = 0; i < cnt; i++)
		m->rkeys[i] = codec_be32(c, m->rkeys[i]);
	m->negative = codec_flag(c, FLAG_NEGATIVE, m->negative);
}

static void
test_link(struct codec *c, struct llc_msg *msg)
{
	codec_bytes(c, msg->test_link.user_data, LLC_TEST_LEN);
}

/* The messages by their type byte; fields are checked by the layout, a reader's and a writer's alike. */
static void (*const layouts[])(struct codec *, struct llc_msg *) = {
	[LLC_CONFIRM_LINK] = confirm_link,
	[LLC_ADD_LINK] = add_link,
	[LLC_ADD_LINK_CONT] = add_link_cont,
	[LLC_DELETE_LINK] = delete_link,
	[LLC_CONFIRM_RKEY] = confirm_rkey,
	[LLC_TEST_LINK] = test_link,
	[LLC_CONFIRM_RKEY_CONT] = confirm_rkey_cont,
	[LLC_DELETE_RKEY] = delete_rkey,
};

static bool
type_is_known(unsigned type)
{
	return type < sizeof(layouts) / sizeof(layouts[0]) && layouts[type] != NULL;
}

int
llc_decode(struct span in, unsigned version, struct llc_msg *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	uint8_t type = rcur_u8(&r);
	uint8_t len = rcur_u8(&r);
	uint8_t reason = rcur_u8(&r) & LOW_HALF;
	uint8_t flags = rcur_u8(&r);
	struct codec c = codec_reader(r, flags);
	struct llc_msg msg;

	if (version != LLC_VERSION)
		return -ENOTSUP;
	if (in.len == 0)
		return -EBADMSG;
	if (!type_is_known(type)) /* before the length: a type to be ignored (A.3) may have any */
		return type >> 6 == 2 ? -EOPNOTSUPP : -EPROTO;
	if (in.len != LLC_LEN || len != LLC_LEN)
		return -EBADMSG;
	memset(&msg, 0, sizeof(msg));
	msg.type = (enum llc_type)type;
	msg.response = codec_flag(&c, FLAG_RESPONSE, false);
	layouts[type](&c, &msg);
	if (c.bad)
		return -EBADMSG;
	if (type == LLC_ADD_LINK && msg.add_link.rejected)
		msg.add_link.reject_reason = reason;
	*out = msg;
	return LLC_LEN;
}

int
llc_encode(const struct llc_msg *msg, unsigned version, uint8_t *buf, size_t cap)
{
	uint8_t bytes[LLC_LEN] = { (uint8_t)msg->type, LLC_LEN };
	struct codec c = codec_writer(bytes + 4, LLC_LEN - 4);
	struct llc_msg m = *msg;

	if (version != LLC_VERSION)
		return -ENOTSUP;
	if (!type_is_known(m.type))
		return -EINVAL;
	layouts[m.type](&c, &m);
	if (c.bad)
		return -EINVAL;
	if (cap < LLC_LEN)
		return -ENOSPC;
	(void)codec_flag(&c, FLAG_RESPONSE, m.response);
	bytes[2] = m.type == LLC_ADD_LINK && m.add_link.rejected ? m.add_link.reject_reason : 0;
	bytes[3] = c.flags;
	memcpy(buf, bytes, LLC_LEN);
	return LLC_LEN;
}
