/* One line per SMC message; see describe.h. */
#include "wire/describe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/minmax.h"
#include "base/str.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"

struct line {
	char *buf;
	size_t cap;
};

#define add(line, ...) str_append((line)->buf, (line)->cap, __VA_ARGS__)

#define PAIRS_SHOWN 4 /* of up to 255 in an ADD LINK */
#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

static void
add_hex(struct line *l, const char *key, const uint8_t *bytes, size_t len)
{
	add(l, " %s=", key);
	for (size_t i = 0; i < len; i++)
		add(l, "%02x", bytes[i]);
}

static void
add_gid(struct line *l, const char *key, const uint8_t gid[CLC_GID_LEN])
{
	char text[INET6_ADDRSTRLEN];

	add(l, " %s=%s", key, inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

static void
add_rnic(struct line *l, const uint8_t gid[CLC_GID_LEN], const uint8_t mac[CLC_MAC_LEN])
{
	add_gid(l, "gid", gid);
	add(l, " mac=%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* An EID or host name. */
static void
add_field(struct line *l, const char *key, const uint8_t field[CLC_FIELD_LEN])
{
	char text[CLC_FIELD_LEN + 1];

	clc_field_str(field, text);
	add(l, " %s=%s", key, text);
}

static void
add_flag(struct line *l, bool on, const char *word)
{
	if (on)
		add(l, " %s", word);
}

static void
add_ext(struct line *l, const struct clc_smcrd_ext *ext)
{
	char text[CLC_TRANSPORTS_STR_MAX];

	if (!ext->present)
		return;
	clc_transports_str(ext->transports, text);
	add(l, " smcrd=v%u%s%s", ext->version, text[0] != '\0' ? "," : "", text);
	add(l, " mpa-port=%u recv-depth=%u", ext->mpa_port, ext->recv_depth);
}

static void
add_client(struct line *l, const struct clc_client *c)
{
	char text[INET6_ADDRSTRLEN];

	if (c->kind == CLC_CLIENT_UNIX)
		add(l, " client=uid:%" PRIu32, c->uid);
	else if (c->kind != CLC_CLIENT_NONE)
		add(l, c->kind == CLC_CLIENT_V4 ? " client=%s:%u" : " client=[%s]:%u",
		    inet_ntop(c->kind == CLC_CLIENT_V4 ? AF_INET : AF_INET6, c->addr, text, sizeof(text)), c->port);
}

static void
add_dest(struct line *l, const struct clc_dest *d)
{
	char text[INET6_ADDRSTRLEN];

	if (d->kind != CLC_DEST_NONE)
		add(l, d->kind == CLC_DEST_V4 ? " dest=%s:%u" : " dest=[%s]:%u",
		    inet_ntop(d->kind == CLC_DEST_V4 ? AF_INET : AF_INET6, d->addr, text, sizeof(text)), d->port);
}

static void
add_limits(struct line *l, uint8_t release, uint8_t max_conns, uint8_t max_links, uint16_t features)
{
	add(l, " release=%u", release);
	if (release > 0)
		add(l, " max-conns=%u max-links=%u features=%04x", max_conns, max_links, features);
}

static void
add_proposal(struct line *l, const struct clc_proposal *p)
{
	static const char *const paths[] = { "smc-r", "smc-d", "none", "both" };
	char text[INET6_ADDRSTRLEN];

	add(l, " offers=%s v2=%s", paths[p->typev1], paths[p->typev2]);
	add_hex(l, "peer", p->peer_id, sizeof(p->peer_id));
	add_rnic(l, p->gid, p->mac);
	add(l, " growth=%u subnet=%u.%u.%u.%u/%u", p->growth_len, p->ipv4_subnet >> 24, p->ipv4_subnet >> 16 & 0xff,
	    p->ipv4_subnet >> 8 & 0xff, p->ipv4_subnet & 0xff, p->ipv4_len);
	for (unsigned i = 0; i < p->ipv6_cnt; i++)
		add(l, " prefix=%s/%u", inet_ntop(AF_INET6, p->ipv6[i].addr, text, sizeof(text)), p->ipv6[i].len);
	if (p->v2.present) {
		add_gid(l, "v2-gid", p->v2.gid);
		add_limits(l, p->v2.release, p->v2.max_conns, p->v2.max_links, p->v2.features);
		for (unsigned i = 0; i < p->v2.eid_cnt; i++)
			add_field(l, "eid", p->v2.eids[i].b);
	}
	add_ext(l, &p->ext);
	add_client(l, &p->tlvs.client);
	add_dest(l, &p->tlvs.dest);
}

static void
add_accept(struct line *l, unsigned version, const struct clc_accept *a)
{
	const struct clc_first_contact *f = &a->first;

	add_flag(l, a->first_contact, "first-contact");
	add_hex(l, "peer", a->peer_id, sizeof(a->peer_id));
	add_rnic(l, a->gid, a->mac);
	add(l, " qpn=%06" PRIx32 " idx=%u token=%08" PRIx32 " size=%" PRIu32 " mtu=%" PRIu32, a->qpn, a->rmbe_idx,
	    a->alert_token, clc_size_bytes(a->size_code), clc_mtu_bytes(a->mtu_code));
	add(l, " vaddr=%016" PRIx64 " psn=%06" PRIx32, a->vaddr, a->psn);
	if (version >= 2)
		add_field(l, "eid", a->eid.b);
	if (f->present) {
		add_flag(l, f->direct, "direct");
		add(l, " os=%u (%s)", f->os, clc_os_str(f->os));
		add_field(l, "host", f->host);
		add_limits(l, f->release, f->max_conns, f->max_links, f->features);
		for (unsigned i = 0; i < f->gid_cnt; i++)
			add_gid(l, "other-gid", f->gids[i]);
	}
	add_ext(l, &a->ext);
	add_flag(l, (a->ext.uses & CLC_USES_DEST) != 0, "dest-used");
}

/* The error of malformed bytes, without the bytes: they may contain an rkey. */
static int
describe_failure(struct line *l, const char *layer, struct span in, int err)
{
	static const struct str_word words[] = {
		{ 0, "incomplete" },
		{ EBADMSG, "malformed" },
		{ EPROTO, "unknown type or value" },
		{ EOPNOTSUPP, "unknown type, to be ignored" },
	};

	add(l, "%s %s len=%zu", layer, str_word(words, N_OF(words), (uint32_t)-err, "unknown"), in.len);
	return (int)strlen(l->buf);
}

int
wire_describe_clc(struct span in, char *buf, size_t cap)
{
	static const char *const names[] = { "", "Proposal", "Accept", "Confirm", "Decline" };
	struct line l = { buf, cap };
	struct clc_msg m;
	int n = clc_decode(in, &m);

	buf[0] = '\0';
	if (n <= 0)
		return describe_failure(&l, "CLC", in, n);
	add(&l, "CLC %s v%u len=%d", names[m.type], m.version, n);
	if (m.type == CLC_PROPOSAL) {
		add_proposal(&l, &m.proposal);
	} else if (m.type == CLC_DECLINE) {
		add_flag(&l, m.decline.out_of_sync, "out-of-sync");
		add_hex(&l, "peer", m.decline.peer_id, sizeof(m.decline.peer_id));
		add(&l, " diag=%08" PRIx32 " (%s) os=%u", m.decline.diag, clc_diag_str(m.decline.diag), m.decline.os);
		add_flag(&l, m.decline.client_used, "client-used");
		add_flag(&l, m.decline.dest_used, "dest-used");
		add_flag(&l, m.decline.dest_refused, "dest-refused");
	} else {
		add_accept(&l, m.version, &m.accept);
	}
	return (int)strlen(buf);
}

static void
add_link_rkeys(struct line *l, const struct llc_link_rkey *links, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		add(l, " link=%u vaddr=%016" PRIx64, links[i].link_num, links[i].vaddr);
}

static const struct str_word reject_words[] = {
	{ LLC_REJECT_NO_ALT_PATH, "no alternate path" },
	{ LLC_REJECT_BAD_MTU, "invalid MTU" },
};

static const struct str_word delete_words[] = {
	{ 0, "none" },
	{ LLC_DELETE_LOST_PATH, "lost path" },
	{ LLC_DELETE_OPERATOR, "operator" },
	{ LLC_DELETE_PROGRAM, "program or inactivity" },
	{ LLC_DELETE_PROTOCOL, "protocol violation" },
	{ LLC_DELETE_ASYM_NOT_NEEDED, "asymmetric link not needed" },
	{ LLC_DELETE_UNKNOWN_LINK, "unknown link" },
	{ LLC_DELETE_UNKNOWN_GROUP, "unknown link group" },
};

static void
add_add_link(struct line *l, const struct llc_add_link *m, bool v2, bool response)
{
	if (v2)
		add_flag(l, m->rejected, "rejected");
	else if (m->rejected)
		add(l, " rejected=%u (%s)", m->reject_reason,
		    str_word(reject_words, N_OF(reject_words), m->reject_reason, "unknown"));
	add(l, " link=%u", m->link_num);
	add_rnic(l, m->gid, m->mac);
	add(l, " qpn=%06" PRIx32 " mtu=%" PRIu32 " psn=%06" PRIx32, m->qpn, clc_mtu_bytes(m->mtu_code), m->psn);
	if (!v2 || (response && m->rejected))
		return;
	add_flag(l, m->direct, "direct");
	add_gid(l, "client-gid", m->client_gid);
	add(l, " rtokens=%u", m->pair_cnt);
	for (unsigned i = 0; i < min_u8(m->pair_cnt, PAIRS_SHOWN); i++)
		add(l, " new-vaddr=%016" PRIx64, llc_pair_get(m->pairs, i).new_vaddr);
	add_flag(l, m->pair_cnt > PAIRS_SHOWN, "...");
}

static void
add_llc(struct line *l, const struct llc_msg *m, bool v2)
{
	if (v2)
		add(l, " version=2 %s-endian", m->little ? "little" : "big");
	switch (m->type) {
	case LLC_CONFIRM_LINK:
		add(l, " link=%u", m->confirm_link.link_num);
		add_rnic(l, m->confirm_link.gid, m->confirm_link.mac);
		add(l, " qpn=%06" PRIx32 " uid=%08" PRIx32 " max-links=%u", m->confirm_link.qpn,
		    m->confirm_link.link_uid, m->confirm_link.max_links);
		if (v2)
			add(l, " max-conns=%u", m->confirm_link.max_conns);
		add_flag(l, m->confirm_link.no_eyecatcher, "no-eyecatcher");
		break;
	case LLC_ADD_LINK:
		add_add_link(l, &m->add_link, v2, m->response);
		break;
	case LLC_ADD_LINK_CONT:
		add(l, " link=%u left=%u", m->add_link_cont.link_num, m->add_link_cont.left_cnt);
		for (unsigned i = 0; i < min_u8(m->add_link_cont.left_cnt, LLC_PAIRS_PER_CONT); i++)
			add(l, " new-vaddr=%016" PRIx64, m->add_link_cont.pairs[i].new_vaddr);
		break;
	case LLC_REQUEST_ADD_LINK:
		for (unsigned i = 0; i < m->request_add_link.gid_cnt; i++)
			add_gid(l, "gid", m->request_add_link.gids + (size_t)i * 16);
		break;
	case LLC_DELETE_LINK:
		add_flag(l, m->delete_link.all, "all");
		add_flag(l, m->delete_link.orderly, "orderly");
		add(l, " link=%u reason=%08" PRIx32 " (%s)", m->delete_link.link_num, m->delete_link.reason,
		    str_word(delete_words, N_OF(delete_words), m->delete_link.reason, "unknown"));
		break;
	case LLC_CONFIRM_RKEY:
		add_flag(l, m->confirm_rkey.negative, "negative");
		add_flag(l, m->confirm_rkey.retry, "retry");
		add(l, " vaddr=%016" PRIx64 " others=%u", m->confirm_rkey.vaddr, m->confirm_rkey.other_cnt);
		add_link_rkeys(l, m->confirm_rkey.others, min_u8(m->confirm_rkey.other_cnt, LLC_LINKS_INLINE));
		break;
	case LLC_CONFIRM_RKEY_CONT:
		add_flag(l, m->confirm_rkey_cont.negative, "negative");
		add(l, " left=%u", m->confirm_rkey_cont.left_cnt);
		add_link_rkeys(
		    l, m->confirm_rkey_cont.others, min_u8(m->confirm_rkey_cont.left_cnt, LLC_LINKS_PER_CONT));
		break;
	case LLC_DELETE_RKEY:
		add_flag(l, m->delete_rkey.negative, "negative");
		add(l, " count=%u", m->delete_rkey.cnt);
		if (v2)
			add(l, " invalid=%u", m->delete_rkey.invalid_cnt);
		else
			add(l, " errors=%02x", m->delete_rkey.error_mask);
		break;
	case LLC_TEST_LINK:
		add_hex(l, "data", m->test_link.user_data, LLC_TEST_LEN);
		break;
	}
}

static void
add_open_elem(struct line *l, const struct open_elem *e)
{
	add(l, " token=%08x index=%u size=%u", e->token, e->idx, clc_size_bytes(e->size_code));
}

static void
add_open(struct line *l, const struct open_msg *m)
{
	add(l, "LLC %s", m->type == OPEN_GRANT ? "GRANT" : "OPEN");
	for (unsigned i = 0; m->type == OPEN_GRANT && i < m->cnt; i++)
		add_open_elem(l, &m->granted[i]);
	if (m->type == OPEN_GRANT)
		return;
	add(l, " granted=%08x ticket=%u", m->granted_token, m->ticket);
	add_open_elem(l, &m->own);
	add(l, " hops=%u", m->hops);
}

int
wire_describe_llc(struct span in, char *buf, size_t cap)
{
	static const char *const names[] = {
		[LLC_CONFIRM_LINK] = "CONFIRM LINK",
		[LLC_ADD_LINK] = "ADD LINK",
		[LLC_ADD_LINK_CONT] = "ADD LINK CONTINUATION",
		[LLC_DELETE_LINK] = "DELETE LINK",
		[LLC_REQUEST_ADD_LINK] = "REQUEST ADD LINK",
		[LLC_CONFIRM_RKEY] = "CONFIRM RKEY",
		[LLC_TEST_LINK] = "TEST LINK",
		[LLC_CONFIRM_RKEY_CONT] = "CONFIRM RKEY CONTINUATION",
		[LLC_DELETE_RKEY] = "DELETE RKEY",
	};
	struct line l = { buf, cap };
	unsigned version = llc_version_of(in);
	struct llc_msg m;
	struct open_msg open;
	int n = llc_decode(in, version, &m);

	buf[0] = '\0';
	if (n == -EOPNOTSUPP && open_decode(in, &open) > 0) {
		add_open(&l, &open);
		return (int)strlen(buf);
	}
	if (n <= 0) {
		describe_failure(&l, "LLC", in, n);
		if (in.len > 0)
			add(&l, " type=%02x", in.ptr[0]);
		return (int)strlen(buf);
	}
	add(&l, "LLC %s %s", names[m.type], m.response ? "response" : "request");
	add_llc(&l, &m, version == LLC_VERSION_2);
	return (int)strlen(buf);
}

int
wire_describe_cdc(struct span in, char *buf, size_t cap)
{
	static const struct str_word prod[] = {
		{ CDC_WRITE_BLOCKED, "write-blocked" },
		{ CDC_URGENT_PENDING, "urgent-pending" },
		{ CDC_URGENT_PRESENT, "urgent-present" },
		{ CDC_UPDATE_REQUESTED, "update-requested" },
		{ CDC_FAILOVER, "failover" },
		{ CDC_STARTED_OVER, "started-over" },
		{ CDC_IN_PEACE, "in-peace" },
	};
	static const struct str_word conn[] = {
		{ CDC_SENDING_DONE, "sending-done" },
		{ CDC_CLOSED, "closed" },
		{ CDC_ABORT, "abort" },
		{ CDC_OPERATOR, "by the operator" },
		{ CDC_NOT_OPENED, "not opened" },
	};
	struct line l = { buf, cap };
	struct cdc_msg m;
	int n = cdc_decode(in, &m);

	buf[0] = '\0';
	if (n <= 0)
		return describe_failure(&l, "CDC", in, n);
	add(&l, "CDC seq=%u token=%08" PRIx32 " prod=%u/%" PRIu32 " cons=%u/%" PRIu32, m.seq, m.token, m.prod.wrap,
	    m.prod.count, m.cons.wrap, m.cons.count);
	for (size_t i = 0; i < N_OF(prod); i++)
		add_flag(&l, (m.prod_flags & prod[i].value) != 0, prod[i].text);
	for (size_t i = 0; i < N_OF(conn); i++)
		add_flag(&l, (m.conn_flags & conn[i].value) != 0, conn[i].text);
	return (int)strlen(buf);
}
