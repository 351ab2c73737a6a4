/* SMC version 2 in the rendezvous, and peers that are no smcrd: what is proposed, chosen, agreed on and refused. Both ends are
 * engines of ours; a client that proposes to Linux is one to the server, which its Accept is then Linux's to. */
#include "duo.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"
#include "vectors.h"

#include <string.h>

UNIT_CASE(duo_case(tc, 5000));

static const enum rnic_gid_type v1[2] = { RNIC_GID_ROCE_V1, RNIC_GID_ROCE_V1 };
static const enum rnic_gid_type v2[2] = { RNIC_GID_ROCE_V2, RNIC_GID_ROCE_V2 };

static const struct smcr_config ueid = { .ueid_cnt = 2,
	.ueids = { { "A.UEID                          " }, { "COMMON.UEID                     " } } };
static const struct smcr_config other_ueid = { .ueid_cnt = 1, .ueids = { { "OTHER.UEID                      " } } };
static const struct smcr_config common_ueid = { .ueid_cnt = 2,
	.ueids = { { "Z.UEID                          " }, { "COMMON.UEID                     " } } };

static void
set_version(unsigned host, uint8_t version)
{
	struct smcr_config cfg = d.eng[host]->cfg;

	cfg.smc_version = version;
	smcr_reconfigure(d.eng[host], &cfg);
}

/* The port of the host's device under the other kind of GID as well. */
static struct rnic_dev *
add_kind(unsigned host, enum rnic_gid_type type)
{
	struct rnic_dev *dev = duo_add_neighbour(host);

	sim_gid_type(dev, type);
	return dev;
}

static struct clc_msg
held(struct duo_end *e)
{
	struct clc_msg msg;

	ck_assert_uint_gt(e->out_len, 0);
	ck_assert_int_eq(clc_decode((struct span){ e->out, e->out_len }, &msg), (int)e->out_len);
	return msg;
}

/* -- what a client proposes -- */

enum { NONE, ONLY_V1, ONLY_V2, BOTH_KINDS, SOFT };

static void
begin_devices(unsigned kinds, const struct smcr_config *change)
{
	static const enum rnic_transport iwarp[2] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP };

	if (kinds == SOFT)
		duo_init_as(iwarp, true, change);
	else
		duo_init_linux(kinds == ONLY_V2 || kinds == NONE ? v2 : v1, change);
	d.ipv4 = true;
	if (kinds == BOTH_KINDS)
		add_kind(A, RNIC_GID_ROCE_V2);
	if (kinds == NONE)
		sim_port(d.dev[A], RNIC_PORT_DOWN);
}

static const struct proposing {
	enum smcr_peer_kind peer;
	unsigned devices;
	uint8_t ueids, version;
	bool ipv6;
	enum clc_path typev1, typev2;
	uint32_t declined;
} proposing[] = {
	/* Linux */
	{ SMCR_PEER_LINUX, ONLY_V1, 0, 0, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_LINUX, ONLY_V1, 1, 0, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_LINUX, BOTH_KINDS, 1, 0, false, CLC_PATH_R, CLC_PATH_R, 0 },
	{ SMCR_PEER_LINUX, BOTH_KINDS, 0, 0, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_LINUX, BOTH_KINDS, 1, 1, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_LINUX, BOTH_KINDS, 1, 2, false, CLC_PATH_NONE, CLC_PATH_R, 0 },
	{ SMCR_PEER_LINUX, BOTH_KINDS, 1, 0, true, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_LINUX, ONLY_V2, 1, 0, false, CLC_PATH_NONE, CLC_PATH_R, 0 },
	{ SMCR_PEER_LINUX, ONLY_V2, 0, 0, false, 0, 0, CLC_DIAG_NO_UEID },
	{ SMCR_PEER_LINUX, ONLY_V2, 1, 1, false, 0, 0, CLC_DIAG_NO_DEVICE },
	{ SMCR_PEER_LINUX, ONLY_V2, 1, 0, true, 0, 0, CLC_DIAG_NO_DEVICE },
	{ SMCR_PEER_LINUX, ONLY_V1, 1, 2, false, 0, 0, CLC_DIAG_NO_DEVICE },
	{ SMCR_PEER_LINUX, SOFT, 1, 0, false, 0, 0, CLC_DIAG_NO_DEVICE },
	{ SMCR_PEER_LINUX, NONE, 1, 0, false, 0, 0, CLC_DIAG_NO_DEVICE },
	/* either */
	{ SMCR_PEER_AUTO, SOFT, 1, 0, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_AUTO, ONLY_V1, 0, 0, false, CLC_PATH_R, CLC_PATH_NONE, 0 },
	{ SMCR_PEER_AUTO, ONLY_V2, 1, 0, false, CLC_PATH_R, CLC_PATH_R, 0 },
	{ SMCR_PEER_AUTO, BOTH_KINDS, 1, 2, false, CLC_PATH_R, CLC_PATH_R, 0 },
	{ SMCR_PEER_AUTO, NONE, 1, 0, false, 0, 0, CLC_DIAG_NO_DEVICE },
};

START_LOOP_TEST(a_client_proposes_what_it_can, 0, sizeof(proposing) / sizeof(proposing[0]))
{
	const struct proposing *row = &proposing[_i];
	static const uint8_t zero[16];

	begin_devices(row->devices, row->ueids != 0 ? &ueid : NULL);
	set_version(A, row->version);
	d.peer = row->peer;
	d.ipv4 = !row->ipv6;
	duo_open_one(&c[0], SMCR_CLIENT, false);
	c[0].hold = true;
	duo_run(1);
	struct clc_msg msg = held(&c[0]);
	if (row->declined != 0) {
		ck_assert_int_eq(msg.type, CLC_DECLINE);
		ck_assert_uint_eq(msg.version, 1);
		ck_assert_uint_eq(msg.decline.diag, row->declined);
		ck_assert(IS(c[0], FALLBACK));
		return;
	}
	const struct clc_proposal *p = &msg.proposal;
	ck_assert_int_eq(msg.type, CLC_PROPOSAL);
	ck_assert_uint_eq(msg.version, 2);
	ck_assert_int_eq(p->typev1, row->typev1);
	ck_assert_int_eq(p->typev2, row->typev2);
	ck_assert_uint_eq(p->growth_len, CLC_GROWTH_LEN);
	ck_assert(p->ext.present == (row->peer == SMCR_PEER_AUTO));
	ck_assert(p->v2.present == (row->typev2 == CLC_PATH_R));
	ck_assert_mem_eq(p->peer_id, d.eng[A]->peer_id, 8); /* Linux tells a daemon that was started again by it */
	ck_assert_uint_eq(p->ipv4_len, row->typev1 == CLC_PATH_R ? 16 : 0);
	if (row->typev1 == CLC_PATH_R && row->devices == BOTH_KINDS && row->version != 2)
		ck_assert_mem_eq(p->gid, rnic_query(d.dev[A]).gid.b, 16);
	if (row->typev1 == CLC_PATH_NONE)
		ck_assert_mem_eq(p->gid, zero, 16);
	if (!p->v2.present)
		return;
	ck_assert_mem_eq(p->v2.gid, rnic_query(row->devices == BOTH_KINDS ? d.more[A][0] : d.dev[A]).gid.b, 16);
	ck_assert_uint_eq(p->v2.eid_cnt, 2);
	ck_assert_mem_eq(&p->v2.eids, &ueid.ueids, sizeof(p->v2.eids));
	ck_assert_uint_eq(p->v2.release, 1);
	ck_assert_uint_eq(p->v2.max_conns, 255);
	ck_assert_uint_eq(p->v2.max_links, 2);
}

START_LOOP_TEST(an_offer_has_the_limits_of_the_configuration, 0, 2)
{
	struct smcr_config change = ueid;

	change.conns_per_group = _i == 0 ? 20 : 3;
	change.links_max = _i == 0 ? 1 : 8;
	duo_init_linux(v2, &change);
	duo_open_one(&c[0], SMCR_CLIENT, false);
	c[0].hold = true;
	duo_run(1);
	struct clc_msg msg = held(&c[0]);
	ck_assert_uint_eq(msg.proposal.v2.max_conns, _i == 0 ? 20 : CLC_MIN_MAX_CONNS);
	ck_assert_uint_eq(msg.proposal.v2.max_links, _i == 0 ? 1 : 2);
}

/* -- what a server makes of it -- */

static const struct serving {
	enum clc_path typev1, typev2;
	bool ext, smcd_only, no_offer;
	enum rnic_gid_type gid;
	const struct smcr_config *ueids; /* the server's */
	uint8_t smc_version;
	bool ipv6, other_subnet, unreachable;
	bool both_kinds; /* the port has a RoCE v1 GID, too, which reaches everybody */
	uint8_t release, max_conns, max_links;
	unsigned accepted; /* version of the Accept */
	uint32_t declined;
} serving[] = {
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .accepted = 2 },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .accepted = 2 },
	{ CLC_PATH_NONE, CLC_PATH_BOTH, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .accepted = 2 },
	/* another subnet does not matter to what is routed */
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .other_subnet = true, .accepted = 2 },
	/* version 1 of the same Proposal */
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = &common_ueid, .accepted = 1 },
	{ CLC_PATH_BOTH, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = &other_ueid, .accepted = 1 },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = NULL, .accepted = 1 },
	{ CLC_PATH_R, CLC_PATH_NONE, .gid = RNIC_GID_ROCE_V1, .ueids = &common_ueid, .no_offer = true, .accepted = 1 },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = &common_ueid, .smc_version = 1, .accepted = 1 },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .unreachable = true,
	    .both_kinds = true, .accepted = 1 },
	/* with our extension there is nothing else than version 1, over any RoCE */
	{ CLC_PATH_R, CLC_PATH_R, .ext = true, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .accepted = 1 },
	{ CLC_PATH_R, CLC_PATH_R, .ext = true, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .smc_version = 2,
	    .accepted = 1 },
	/* why not */
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &other_ueid, .declined = CLC_DIAG_NO_UEID },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = NULL, .declined = CLC_DIAG_NO_UEID },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &other_ueid, .declined = CLC_DIAG_NO_UEID },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .no_offer = true, .ueids = &common_ueid,
	    .declined = CLC_DIAG_NO_V2_EXT },
	{ CLC_PATH_R, CLC_PATH_NONE, .gid = RNIC_GID_ROCE_V2, .no_offer = true, .ueids = &common_ueid,
	    .declined = CLC_DIAG_NO_DEVICE },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = &common_ueid,
	    .declined = CLC_DIAG_NO_SMCR_DEVICE },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .ipv6 = true,
	    .declined = CLC_DIAG_NO_SMCR_DEVICE },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .unreachable = true,
	    .declined = CLC_DIAG_NO_ROUTE },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .smc_version = 1,
	    .declined = CLC_DIAG_VERSION_MISMATCH },
	{ CLC_PATH_R, CLC_PATH_NONE, .gid = RNIC_GID_ROCE_V1, .ueids = &common_ueid, .no_offer = true, .smc_version = 2,
	    .declined = CLC_DIAG_VERSION_MISMATCH },
	{ CLC_PATH_R, CLC_PATH_R, .gid = RNIC_GID_ROCE_V1, .ueids = &other_ueid, .other_subnet = true,
	    .declined = CLC_DIAG_PREFIX_MISMATCH },
	{ CLC_PATH_D, CLC_PATH_D, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .declined = CLC_DIAG_MODE_MISMATCH },
	/* limits */
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .release = 1, .max_conns = 15,
	    .max_links = 2, .declined = CLC_DIAG_MAX_CONNS },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .release = 1, .max_conns = 16,
	    .max_links = 0, .declined = CLC_DIAG_MAX_LINKS },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .release = 1, .max_conns = 16,
	    .max_links = 1, .accepted = 2 },
	{ CLC_PATH_NONE, CLC_PATH_R, .gid = RNIC_GID_ROCE_V2, .ueids = &common_ueid, .release = 15, .max_conns = 255,
	    .max_links = 2, .accepted = 2 },
};

static const uint8_t port[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

/* A Proposal of version 2 as Linux makes it. */
static struct clc_msg
proposal_of_linux(enum clc_path typev1, enum clc_path typev2)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 2 };
	struct clc_proposal *p = &msg.proposal;

	p->typev1 = typev1;
	p->typev2 = typev2;
	p->growth_len = CLC_GROWTH_LEN;
	if (typev1 != CLC_PATH_NONE) {
		memset(p->peer_id, 7, sizeof(p->peer_id));
		memcpy(p->gid, port, sizeof(p->gid));
		p->ipv4_subnet = 0x0a000000;
		p->ipv4_len = 16;
	}
	if (typev2 == CLC_PATH_R || typev2 == CLC_PATH_BOTH) {
		p->v2 = (struct clc_v2_offer){ .present = true, .eid_cnt = 1, .eids = { ueid.ueids[1] } };
		memcpy(p->v2.gid, port, sizeof(p->v2.gid));
	}
	return msg;
}

START_LOOP_TEST(a_server_takes_the_highest_version_that_both_can, 0, sizeof(serving) / sizeof(serving[0]))
{
	const struct serving *row = &serving[_i];
	struct clc_msg msg = proposal_of_linux(row->typev1, row->typev2);
	struct clc_proposal *p = &msg.proposal;
	const enum rnic_gid_type type[2] = { row->gid, row->gid };

	duo_init_linux(type, row->ueids);
	set_version(B, row->smc_version);
	if (row->unreachable)
		sim_reach(d.dev[B], RNIC_REACH_NONE);
	if (row->both_kinds)
		add_kind(B, RNIC_GID_ROCE_V1);
	d.ipv4 = !row->ipv6;
	p->ext.present = row->ext;
	p->ext.version = 1;
	p->ext.transports = CLC_TRANSPORT_ROCE;
	p->v2.release = row->release;
	p->v2.max_conns = row->max_conns;
	p->v2.max_links = row->max_links;
	if (row->no_offer)
		p->v2.present = false;
	if (row->other_subnet)
		p->ipv4_subnet = 0x0a010000;
	duo_open_one(&s[0], SMCR_SERVER, false);
	smcr_set_networks(d.eng[B], NULL, 0);
	/* as decoded: that it cannot be encoded does not matter here */
	s[0].hold = true;
	rdv_step(s[0].conn, RDV_WAIT_PROPOSAL, 0);
	s[0].conn->rdv->heard = 2;
	rdv_server_msg(s[0].conn, &msg);
	duo_run(1);
	struct clc_msg answer = held(&s[0]);
	if (row->declined != 0) {
		ck_assert_int_eq(answer.type, CLC_DECLINE);
		ck_assert_uint_eq(answer.decline.diag, row->declined);
		ck_assert_uint_eq(answer.version, 2);
		ck_assert_uint_eq(s[0].out_len, 44);
		ck_assert_uint_eq(answer.decline.os, CLC_OS_LINUX);
		return;
	}
	const struct clc_accept *a = &answer.accept;
	ck_assert_int_eq(answer.type, CLC_ACCEPT);
	ck_assert_uint_eq(answer.version, row->accepted);
	ck_assert(a->first_contact);
	ck_assert(a->ext.present == row->ext);
	ck_assert_mem_eq(a->peer_id, d.eng[B]->peer_id, 8);
	if (row->accepted == 1)
		return;
	ck_assert_mem_eq(&a->eid, &ueid.ueids[1], sizeof(a->eid));
	ck_assert(a->first.present && a->first.direct);
	ck_assert_uint_eq(a->first.os, CLC_OS_LINUX);
	ck_assert_uint_eq(a->first.release, row->release > 1 ? 1 : row->release);
	ck_assert_uint_eq(a->first.max_conns, row->release > 0 ? row->max_conns : 0);
	ck_assert_uint_eq(a->first.max_links, row->release > 0 ? row->max_links : 0);
	ck_assert_uint_eq(a->first.gid_cnt, 0);
}

START_TEST(a_router_on_the_path_is_reported)
{
	struct clc_msg msg = proposal_of_linux(CLC_PATH_NONE, CLC_PATH_R);

	duo_init_linux(v2, &ueid);
	sim_reach(d.dev[B], RNIC_REACH_GATEWAY);
	duo_open_one(&s[0], SMCR_SERVER, false);
	s[0].hold = true;
	duo_feed_msg(&s[0], &msg);
	duo_run(1);
	ck_assert(!held(&s[0]).accept.first.direct);
}

/* -- what a client makes of the Accept -- */

enum { AS_IT_IS, EID, ABSENT, RELEASE, CONNS_LOW, CONNS_HIGH, LINKS_NONE, LINKS_HIGH, V1, NO_WAY, NOT_DIRECT, ACCEPTS };

START_LOOP_TEST(an_accept_keeps_to_the_proposal, 0, ACCEPTS)
{
	static const uint32_t diag[ACCEPTS] = { 0, CLC_DIAG_NO_UEID, CLC_DIAG_RELEASE, CLC_DIAG_RELEASE,
		CLC_DIAG_MAX_CONNS, CLC_DIAG_MAX_CONNS, CLC_DIAG_MAX_LINKS, CLC_DIAG_MAX_LINKS,
		CLC_DIAG_VERSION_MISMATCH, CLC_DIAG_NO_ROUTE, CLC_DIAG_INDIRECT };
	struct smcr_config change = ueid;

	change.conns_per_group = 100;
	duo_init_linux(v2, &change);
	duo_open(0);
	s[0].hold = true;
	duo_run(5);
	struct clc_msg msg = held(&s[0]);
	struct clc_first_contact *f = &msg.accept.first;
	ck_assert_uint_eq(msg.version, 2);
	ck_assert_uint_eq(f->max_conns, 100);
	msg.accept.eid.b[0] = _i == EID ? 'X' : msg.accept.eid.b[0];
	f->present = _i != ABSENT;
	f->release = _i == RELEASE ? 2 : f->release;
	f->max_conns = _i == CONNS_LOW ? 15 : _i == CONNS_HIGH ? 101 : f->max_conns;
	f->max_links = _i == LINKS_NONE ? 0 : _i == LINKS_HIGH ? 3 : f->max_links;
	msg.version = _i == V1 ? 1 : 2;
	f->direct = _i != NOT_DIRECT;
	if (_i == NO_WAY)
		sim_reach(d.dev[A], RNIC_REACH_NONE);
	c[0].hold = true;
	c[0].conn->rdv->heard = msg.version;
	rdv_client_msg(c[0].conn, &msg);
	duo_run(1);
	struct clc_msg answer = held(&c[0]);
	if (_i != AS_IT_IS) {
		ck_assert_int_eq(answer.type, CLC_DECLINE);
		ck_assert_uint_eq(answer.version, msg.version);
		ck_assert_uint_eq(answer.decline.diag, diag[_i]);
		ck_assert_uint_eq(duo_lgr_cnt(A), 0);
		return;
	}
	const struct clc_accept *a = &answer.accept;
	ck_assert_int_eq(answer.type, CLC_CONFIRM);
	ck_assert_uint_eq(answer.version, 2);
	ck_assert(a->first_contact && a->first.present && a->first.direct);
	ck_assert_mem_eq(&a->eid, &msg.accept.eid, sizeof(a->eid));
	ck_assert_uint_eq(a->first.release, f->release);
	ck_assert_uint_eq(a->first.max_conns, f->max_conns);
	ck_assert_uint_eq(a->first.max_links, f->max_links);
	ck_assert_uint_eq(a->first.gid_cnt, 1);
	ck_assert_mem_eq(a->first.gids[0], rnic_query(d.dev[A]).gid.b, 16);
	ck_assert_mem_eq(a->peer_id, d.eng[A]->peer_id, 8);
}

/* What was not offered is not taken: version 2, version 1 behind an offer of version 2 alone is above, and our extension. */
START_LOOP_TEST(an_accept_of_what_was_not_offered_is_declined, 0, 2)
{
	duo_init_linux(_i == 0 ? v1 : v2, _i == 0 ? NULL : &ueid);
	duo_open(0);
	s[0].hold = true;
	duo_run(5);
	struct clc_msg msg = held(&s[0]);
	ck_assert_uint_eq(msg.version, _i == 0 ? 1 : 2);
	if (_i == 0) {
		msg.version = 2;
		msg.accept.eid = ueid.ueids[0];
		msg.accept.first = (struct clc_first_contact){ .present = true, .direct = true };
	} else {
		msg.accept.ext =
		    (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_ROCE };
	}
	rdv_client_msg(c[0].conn, &msg);
	if (_i == 0) {
		ck_assert_uint_eq(c[0].conn->diag.local, CLC_DIAG_VERSION_MISMATCH);
		return;
	}
	ck_assert(duo_lgr(A)->dialect.foreign);
	ck_assert_uint_eq(duo_lgr(A)->version, 2);
}

/* smc_version = 2 is for the answer, too, where version 1 was offered for the sake of an smcrd. */
START_TEST(version_1_of_a_foreign_peer_is_refused)
{
	duo_init_linux(v2, &ueid);
	set_version(A, 2);
	d.peer = SMCR_PEER_AUTO;
	duo_open(0);
	s[0].hold = true;
	duo_run(5);
	struct clc_msg msg = held(&s[0]);
	msg.version = 1;
	msg.accept.ext.present = false;
	rdv_client_msg(c[0].conn, &msg);
	ck_assert_uint_eq(c[0].conn->diag.local, CLC_DIAG_VERSION_MISMATCH);
}

/* -- what a server makes of the Confirm -- */

enum { C_AS_IT_IS, C_EID, C_ABSENT, C_RELEASE, C_CONNS, C_LINKS, C_VERSION, C_NO_ROUTE, C_OTHER_PORT, CONFIRMS };

START_LOOP_TEST(a_confirm_keeps_to_the_accept, 0, CONFIRMS)
{
	static const uint32_t diag[CONFIRMS] = { 0, CLC_DIAG_NO_UEID, CLC_DIAG_RELEASE, CLC_DIAG_RELEASE,
		CLC_DIAG_MAX_CONNS, CLC_DIAG_MAX_LINKS, CLC_DIAG_VERSION_MISMATCH, CLC_DIAG_NO_ROUTE, 0 };

	duo_init_linux(v2, &ueid);
	duo_open(0);
	s[0].hold = true;
	duo_run(5);
	c[0].hold = true;
	duo_feed_held(&s[0], &c[0]);
	duo_run(5);
	struct clc_msg msg = held(&c[0]);
	struct clc_first_contact *f = &msg.accept.first;
	ck_assert_int_eq(msg.type, CLC_CONFIRM);
	msg.accept.eid.b[0] = _i == C_EID ? 'X' : msg.accept.eid.b[0];
	f->present = _i != C_ABSENT;
	f->release = _i == C_RELEASE ? 0 : f->release;
	f->max_conns -= _i == C_CONNS;
	f->max_links -= _i == C_LINKS;
	msg.version = _i == C_VERSION ? 1 : 2;
	/* The port that counts is the one of the Confirm, which Linux holds to no Proposal either. */
	msg.accept.gid[15] ^= _i == C_NO_ROUTE || _i == C_OTHER_PORT;
	if (_i == C_NO_ROUTE)
		sim_reach(d.dev[B], RNIC_REACH_NONE);
	s[0].conn->rdv->heard = msg.version;
	rdv_server_msg(s[0].conn, &msg);
	if (diag[_i] == 0) {
		ck_assert_mem_eq(rdv_first_link(s[0].conn)->remote.gid.b, msg.accept.gid, 16);
		ck_assert_int_eq(s[0].conn->rdv->step, RDV_WAIT_LINK);
		ck_assert_mem_eq(duo_lgr(B)->peer_id, d.eng[A]->peer_id, 8);
		ck_assert_uint_eq(duo_lgr(B)->terms.peer_gid_cnt, 1);
		return;
	}
	duo_run(1);
	ck_assert_int_eq(held(&s[0]).type, CLC_DECLINE);
	ck_assert_uint_eq(held(&s[0]).decline.diag, diag[_i]);
}

/* -- groups -- */

static void
transfer(unsigned pair)
{
	ck_assert_uint_eq(duo_write(&c[pair], 5000), 5000);
	ck_assert_uint_eq(duo_write(&s[pair], 7000), 7000);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&s[pair]), 5000);
	ck_assert_uint_eq(duo_read(&c[pair]), 7000);
}

static struct smcr_group_info
group_info(unsigned host)
{
	struct smcr_group_info info;
	uint32_t pos = 0;

	ck_assert(smcr_group_next(d.eng[host], &pos, &info));
	return info;
}

START_TEST(linux_of_version_1_is_no_smcrd)
{
	duo_init_linux(v1, NULL);
	duo_connect(0, 1, 500);
	duo_connect(1, 3, 200);
	duo_expect_groups(1);
	for (unsigned i = 0; i < 4; i++)
		transfer(i);
	for (unsigned h = A; h <= B; h++) {
		struct smcr_group_info info = group_info(h);

		ck_assert_uint_eq(info.peer.version, 1);
		ck_assert(info.peer.foreign && info.peer.release == 0 && info.peer.os == 0);
		ck_assert_str_eq(info.peer.eid, "");
		ck_assert_str_eq(info.peer.host, "");
		ck_assert_uint_eq(info.conns_limit, 255);
		ck_assert_mem_eq(info.peer_id, d.eng[1 - h]->peer_id, 8);
	}
}

/* smcrd or not, our extension decides; what goes over the wire between two smcrd is what it always was. */
START_LOOP_TEST(an_smcrd_at_peer_auto_is_an_smcrd, 0, 3)
{
	static const enum rnic_transport iwarp[2] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP };

	if (_i == 2)
		duo_init_as(iwarp, false, &ueid);
	else
		duo_init_linux(_i == 0 ? v1 : v2, &ueid);
	d.peer = SMCR_PEER_AUTO;
	d.ipv4 = true;
	duo_connect(0, 1, 500);
	duo_connect(1, 2, 200);
	duo_expect_groups(1);
	transfer(1);
	for (unsigned h = A; h <= B; h++) {
		ck_assert(!duo_lgr(h)->dialect.foreign);
		ck_assert_uint_eq(group_info(h).peer.version, 1);
		ck_assert_uint_eq(smcr_counters(d.eng[h])->first_contacts_v2, 0);
	}
}

START_TEST(an_smcrd_gets_the_proposal_that_it_always_got)
{
	duo_init(true, true, &ueid);
	d.ipv4 = true;
	duo_open_one(&c[0], SMCR_CLIENT, false);
	c[0].hold = true;
	duo_run(1);
	struct clc_msg msg = held(&c[0]);
	ck_assert_uint_eq(c[0].out_len, 92);
	ck_assert_uint_eq(msg.version, 1);
	ck_assert(msg.proposal.ext.present && !msg.proposal.v2.present);
	/* no bit of Linux's area is set, nor one of either type */
	ck_assert_uint_eq(c[0].out[7], 0x10);
	for (unsigned i = 40; i < 52; i++)
		ck_assert_uint_eq(c[0].out[i], 0);
}

/* Linux joins a group over the port that it has proposed: one that proposes another gets another group. */
START_LOOP_TEST(a_group_is_joined_over_the_port_that_it_has, 0, 4)
{
	struct clc_msg msg = proposal_of_linux(CLC_PATH_R, CLC_PATH_NONE);
	struct clc_proposal *p = &msg.proposal;
	struct rnic_info info;

	duo_init_linux(v1, NULL);
	duo_connect(0, 1, 500);
	info = rnic_query(d.dev[A]);
	memcpy(p->peer_id, d.eng[A]->peer_id, sizeof(p->peer_id));
	memcpy(p->gid, info.gid.b, sizeof(p->gid));
	memcpy(p->mac, info.mac, sizeof(p->mac));
	p->gid[15] ^= _i == 1 ? 1 : 0;
	p->mac[5] ^= _i == 2 ? 1 : 0;
	p->peer_id[7] ^= _i == 3 ? 1 : 0;
	duo_open_one(&s[1], SMCR_SERVER, false);
	s[1].hold = true;
	duo_feed_msg(&s[1], &msg);
	duo_run(5);
	ck_assert(held(&s[1]).accept.first_contact == (_i != 0));
	duo_bystander_is_well();
}

/* A group of version 1 over RoCE, made with an smcrd: from the first message without our extension on its peer is none. */
START_TEST(a_join_without_our_extension_is_foreign)
{
	struct clc_msg msg = proposal_of_linux(CLC_PATH_R, CLC_PATH_NONE);
	struct clc_proposal *p = &msg.proposal;

	duo_init_linux(v1, NULL);
	d.peer = SMCR_PEER_AUTO;
	d.ipv4 = true;
	duo_connect(0, 1, 500);
	ck_assert(!duo_lgr(B)->dialect.foreign);
	struct rnic_info info = rnic_query(d.dev[A]);
	memcpy(p->peer_id, d.eng[A]->peer_id, sizeof(p->peer_id));
	memcpy(p->gid, info.gid.b, sizeof(p->gid));
	memcpy(p->mac, info.mac, sizeof(p->mac));
	duo_open_one(&s[1], SMCR_SERVER, false);
	s[1].hold = true;
	duo_feed_msg(&s[1], &msg);
	duo_run(5);
	ck_assert(!held(&s[1]).accept.first_contact);
	ck_assert(duo_lgr(B)->dialect.foreign);
}

/* Who has another port, comes from elsewhere, or calls itself otherwise, is another client; Linux names nobody here. */
START_LOOP_TEST(clients_of_version_2_alone_are_distinguished, 0, 4)
{
	duo_init_linux(v2, &ueid);
	for (unsigned i = 0; i < 2; i++) {
		struct clc_msg msg = proposal_of_linux(CLC_PATH_NONE, CLC_PATH_R);

		msg.proposal.v2.gid[15] = _i == 0 ? (uint8_t)(1 + i) : 1;
		d.remote = _i == 1 ? (uint8_t)(1 + i) : 1;
		msg.proposal.peer_id[7] = _i == 3 ? (uint8_t)(1 + i) : 0;
		duo_open_one(&s[i], SMCR_SERVER, false);
		s[i].hold = true;
		duo_feed_msg(&s[i], &msg);
		duo_run(5);
	}
	ck_assert(held(&s[0]).accept.first_contact);
	ck_assert_uint_eq(duo_lgr_cnt(B), _i == 2 ? 1 : 2);
	if (_i == 2)
		ck_assert_int_eq(s[1].conn->rdv->step, RDV_WAIT_TURN);
	else
		ck_assert(held(&s[1]).accept.first_contact);
}

/* -- version 2 from the Proposal to the data -- */

START_TEST(version_2_is_agreed_on)
{
	struct smcr_config change = ueid;

	change.conns_per_group = 100;
	duo_init_linux(v2, &change);
	memcpy(d.eng[A]->cfg.host, "alpha                           ", CLC_HOST_LEN);
	memcpy(d.eng[B]->cfg.host, "beta                            ", CLC_HOST_LEN);
	duo_connect(0, 1, 500);
	duo_connect(1, 3, 200);
	duo_expect_groups(1);
	for (unsigned i = 0; i < 4; i++)
		transfer(i);
	ck_assert_uint_eq(duo_count(B, "ACCEPT first contact"), 1);
	for (unsigned h = A; h <= B; h++) {
		struct smcr_group_info info = group_info(h);

		ck_assert_uint_eq(info.peer.version, 2);
		ck_assert(info.peer.foreign);
		ck_assert_uint_eq(info.peer.release, 1);
		ck_assert_uint_eq(info.peer.os, CLC_OS_LINUX);
		ck_assert_str_eq(info.peer.eid, "A.UEID");
		ck_assert_str_eq(info.peer.host, h == A ? "beta" : "alpha");
		ck_assert_uint_eq(info.conns_limit, 100);
		ck_assert_uint_eq(info.links_limit, 2);
		ck_assert_mem_eq(info.peer_id, d.eng[1 - h]->peer_id, 8);
		ck_assert_uint_eq(smcr_counters(d.eng[h])->first_contacts_v2, 1);
	}
}

/* The server goes by what the client has offered, though it could do with more itself: the 17th makes another group. One that
 * is full in this sense is none of those that its address may have. */
START_TEST(the_limit_that_was_agreed_on_is_kept)
{
	struct smcr_config few = { .conns_per_group = 16, .links_max = 1 };

	duo_init_linux(v2, &ueid);
	few.ueid_cnt = ueid.ueid_cnt;
	struct smcr_config cfg = d.eng[A]->cfg;
	cfg.conns_per_group = few.conns_per_group;
	cfg.links_max = few.links_max;
	smcr_reconfigure(d.eng[A], &cfg);
	cfg = d.eng[B]->cfg;
	cfg.groups_per_addr = 1;
	smcr_reconfigure(d.eng[B], &cfg);
	duo_add_devices();
	duo_connect(0, 16, 1000);
	duo_expect_groups(1);
	ck_assert_uint_eq(duo_lgr(B)->conns_limit, 16);
	ck_assert_uint_eq(duo_lgr(B)->links_limit, 1);
	ck_assert_uint_eq(duo_lgr(B)->active_cnt, 1);
	duo_connect(16, 1, 500);
	duo_expect_groups(2);
	transfer(16);
}

START_TEST(release_0_has_no_limits)
{
	duo_init_linux(v2, &ueid);
	duo_open_one(&s[0], SMCR_SERVER, false);
	duo_open_one(&c[0], SMCR_CLIENT, false);
	c[0].hold = true;
	duo_run(1);
	struct clc_msg msg = held(&c[0]);
	msg.proposal.v2.release = 0;
	msg.proposal.v2.max_conns = msg.proposal.v2.max_links = 0;
	c[0].out_len = 0;
	c[0].hold = false;
	duo_feed_msg(&s[0], &msg);
	duo_join(0);
	duo_run(500);
	ck_assert(BOTH(0, ESTABLISHED));
	transfer(0);
	for (unsigned h = A; h <= B; h++) {
		ck_assert_uint_eq(group_info(h).peer.release, 0);
		ck_assert_uint_eq(group_info(h).conns_limit, 255);
	}
}

/* Two devices, two links; what the client can do besides is in its Confirm. */
START_TEST(two_ports_make_two_links_and_are_reported)
{
	duo_init_linux(v2, &ueid);
	duo_add_devices();
	duo_connect(0, 1, 500);
	for (unsigned h = A; h <= B; h++)
		ck_assert_uint_eq(duo_lgr(h)->active_cnt, 2);
	ck_assert_uint_eq(duo_lgr(B)->terms.peer_gid_cnt, 2);
	ck_assert_mem_eq(duo_lgr(B)->terms.peer_gids[1], rnic_query(d.more[A][0]).gid.b, 16);
	transfer(0);
}

/* Not of one that is down, in another VLAN, or has no address for version 2. */
START_TEST(a_confirm_tells_of_ports_that_are_of_use)
{
	const struct rnic_gid ipv6 = { .b = { 0xfe, 0x80, [15] = 7 } };

	duo_init_linux(v2, &ueid);
	sim_port(duo_add_device(A), RNIC_PORT_DOWN);
	sim_vlan(duo_add_device(A), 7);
	add_kind(A, RNIC_GID_ROCE_V1);
	struct rnic_dev *dev = sim_dev_new(d.fab, "ipv6", RNIC_TRANSPORT_ROCE, &ipv6, (const uint8_t[6]){ 2, 7 });
	ck_assert_int_eq(smcr_add_device(d.eng[A], dev), 0);
	duo_connect(0, 1, 500);
	ck_assert_uint_eq(group_info(B).peer.version, 2);
	ck_assert_uint_eq(duo_lgr(B)->terms.peer_gid_cnt, 1);
	ck_assert_mem_eq(duo_lgr(B)->terms.peer_gids[0], rnic_query(d.dev[A]).gid.b, 16);
}

/* A client that names nobody but its port makes a group once, and finds it again. */
START_TEST(a_client_without_a_peer_id_joins_its_group)
{
	struct clc_msg msg = proposal_of_linux(CLC_PATH_NONE, CLC_PATH_R);

	duo_init_linux(v2, &ueid);
	memset(d.eng[A]->peer_id, 0, sizeof(d.eng[A]->peer_id));
	duo_connect(0, 1, 500);
	ck_assert_uint_eq(duo_lgr(B)->owner.peer_id[0] | duo_lgr(B)->owner.peer_id[7], 0);
	duo_open_one(&s[1], SMCR_SERVER, false);
	s[1].hold = true;
	msg.proposal.v2.eids[0] = ueid.ueids[0];
	memcpy(msg.proposal.v2.gid, rnic_query(d.dev[A]).gid.b, 16);
	duo_feed_msg(&s[1], &msg);
	duo_run(5);
	ck_assert(!held(&s[1]).accept.first_contact);
	/* Another EID is another group, as is version 1. */
	duo_open_one(&s[2], SMCR_SERVER, false);
	s[2].hold = true;
	msg.proposal.v2.eids[0] = ueid.ueids[1];
	duo_feed_msg(&s[2], &msg);
	duo_run(5);
	ck_assert(held(&s[2]).accept.first_contact);
	duo_bystander_is_well();
}

/* -- lies about a group that others use -- */

enum { L_EID, L_VERSION, L_ELSEWHERE, ACCEPT_LIES };

/* An Accept that names the bystander's group with an EID that it has not, as if it were of version 1, or that comes from elsewhere. */
START_LOOP_TEST(a_group_is_not_joined_on_other_terms, 0, ACCEPT_LIES)
{
	struct smcr_config change = ueid;

	duo_init_linux(v1, &change);
	add_kind(A, RNIC_GID_ROCE_V2);
	add_kind(B, RNIC_GID_ROCE_V2);
	d.remote = 1;
	duo_connect(0, 1, 500);
	ck_assert_uint_eq(duo_lgr(A)->version, 2);
	d.remote = _i == L_ELSEWHERE ? 2 : 1;
	duo_open_one(&c[1], SMCR_CLIENT, false);
	d.remote = 1;
	duo_open_one(&s[1], SMCR_SERVER, false);
	s[1].hold = true;
	duo_join(1);
	duo_run(5);
	struct clc_msg msg = held(&s[1]);
	ck_assert_int_eq(msg.type, CLC_ACCEPT);
	ck_assert(!msg.accept.first_contact);
	if (_i == L_EID)
		msg.accept.eid = ueid.ueids[1];
	if (_i == L_VERSION)
		msg.version = 1;
	duo_feed_msg(&c[1], &msg);
	duo_run(5);
	ck_assert(IS(c[1], FALLBACK) && !c[1].diag.out_of_sync);
	ck_assert_uint_eq(c[1].diag.local, CLC_DIAG_NO_SERVER_LINK);
	ck_assert_uint_eq(duo_lgr(A)->conn_cnt, 1);
	duo_bystander_is_well();
}

enum { F_EID, F_VERSION, F_ID, F_ID_OF_NOBODY, F_GID, CONFIRM_LIES };

/* Behind the Accept of a subsequent contact nothing can be declined: whoever confirms something else is reset, alone. Who named
 * nobody in its Proposal has joined a group, and is its client. */
START_LOOP_TEST(a_confirm_on_other_terms_ends_its_connection, 0, CONFIRM_LIES)
{
	duo_init_linux(v2, &ueid);
	if (_i == F_ID_OF_NOBODY)
		memset(d.eng[A]->peer_id, 0, sizeof(d.eng[A]->peer_id));
	duo_connect(0, 1, 500);
	duo_open(1);
	s[1].hold = true;
	duo_run(5);
	c[1].hold = true;
	duo_feed_held(&s[1], &c[1]);
	duo_run(5);
	struct clc_msg msg = held(&c[1]);
	ck_assert_int_eq(msg.type, CLC_CONFIRM);
	msg.accept.eid.b[0] ^= _i == F_EID ? 'A' ^ 'B' : 0;
	msg.version = _i == F_VERSION ? 1 : 2;
	msg.accept.peer_id[3] ^= _i == F_ID || _i == F_ID_OF_NOBODY;
	msg.accept.gid[15] ^= _i == F_GID ? 0x40 : 0;
	duo_feed_msg(&s[1], &msg);
	duo_run(5);
	ck_assert(IS(s[1], CLOSED) && !IS(s[1], ESTABLISHED));
	ck_assert_int_eq(s[1].reason, SMCR_R_PROTOCOL);
	duo_bystander_is_well();
}

/* A stranger with the bystander's port, id and EID gets a group of its own, and what it does there is nobody else's. */
START_LOOP_TEST(a_stranger_with_a_clients_port_gets_a_group_of_its_own, 0, 2)
{
	struct clc_msg msg = proposal_of_linux(_i == 0 ? CLC_PATH_NONE : CLC_PATH_R, CLC_PATH_R);
	struct clc_msg lie = { .type = CLC_DECLINE, .version = 2 };

	duo_init_linux(v2, &ueid);
	d.remote = 1;
	duo_connect(0, 1, 500);
	d.remote = 2;
	memcpy(msg.proposal.v2.gid, rnic_query(d.dev[A]).gid.b, 16);
	if (_i == 1)
		memcpy(msg.proposal.peer_id, d.eng[A]->peer_id, 8);
	for (unsigned i = 1; i < 3; i++) {
		duo_open_one(&s[i], SMCR_SERVER, false);
		s[i].hold = true;
		duo_feed_msg(&s[i], &msg);
		duo_run(5);
		ck_assert(held(&s[i]).accept.first_contact);
		lie.decline.diag = CLC_DIAG_SYNC;
		lie.decline.out_of_sync = true;
		duo_feed_msg(&s[i], &lie);
		duo_run(5);
		ck_assert(IS(s[i], FALLBACK));
		duo_bystander_is_well();
	}
	ck_assert_uint_eq(duo_lgr(B)->conn_cnt, 1);
}

/* Linux has one element an RMB, and takes it back and confirms it again with nearly every connection: thousands of them leave
 * nothing behind. */
START_LOOP_TEST(rmbs_that_come_and_go_leave_nothing_behind, 1, 3)
{
	const struct smcr_config one = { .rmb_elems = 1, .rmb_idle_ms = 1 };

	duo_init_version((unsigned)_i, &one);
	duo_connect(0, 1, 500);
	for (unsigned round = 0; round < 1500; round++) {
		duo_connect(1, 2, 20);
		for (unsigned i = 1; i < 3; i++) {
			duo_close(i);
			duo_run(2);
			duo_release_pair(i);
		}
		duo_run(5);
	}
	duo_expect_groups(1);
	for (unsigned h = A; h <= B; h++) {
		ck_assert_uint_le(duo_lgr(h)->remote_rmb_cnt, 4);
		ck_assert_uint_le(duo_lgr(h)->rmb_cnt, 4);
		ck_assert_uint_ge(d.eng[h]->ctr.rmbs_deleted, 1000);
		ck_assert_uint_eq(d.eng[h]->ctr.refused_rmbs_max, 0);
	}
	duo_bystander_is_well();
}

/* -- what Linux said, in the captures -- */

static const char *wanted_name;
static uint8_t captured_bytes[VECTOR_MAX_LEN];
static size_t captured_len;

static void
keep_wanted(const char *name, struct span bytes)
{
	if (strcmp(name, wanted_name) != 0)
		return;
	memcpy(captured_bytes, bytes.ptr, bytes.len);
	captured_len = bytes.len;
}

static struct clc_msg
captured(const char *file, const char *name)
{
	struct clc_msg msg;

	wanted_name = name;
	captured_len = 0;
	ck_assert_uint_gt(vectors_each_in(file, "clc", keep_wanted), 0);
	ck_assert_int_eq(clc_decode((struct span){ captured_bytes, captured_len }, &msg), (int)captured_len);
	return msg;
}

/* The device that Linux had, at both ends of the capture's wire: 10.99.1.1 is the client. */
static void
begin_captured(const uint8_t gid[16], const uint8_t mac[6], enum rnic_gid_type type, unsigned host)
{
	struct smcr_config change = { .ueid_cnt = 1, .ueids = { { "VMLAB.UEID.1                    " } } };
	struct rnic_gid g;

	duo_init_linux(v2, &change);
	memcpy(g.b, gid, sizeof(g.b));
	struct rnic_dev *dev = sim_dev_new(d.fab, "linux", RNIC_TRANSPORT_ROCE, &g, mac);
	sim_gid_type(dev, type);
	sim_port(d.dev[host], RNIC_PORT_DOWN);
	ck_assert_int_eq(smcr_add_device(d.eng[host], dev), 0);
	duo_open_one(host == A ? &c[0] : &s[0], host == A ? SMCR_CLIENT : SMCR_SERVER, false);
}

static const struct {
	const char *file, *name;
} proposals[] = { { "smc2.txt", "k612-a-4-proposal" }, { "smc.txt", "a-4-proposal" } };

/* Of stock 6.12 with a UEID, which has version 2 alone, and of 6.1 without: byte for byte what we send in its place, but for the
 * feature mask, whose only bit is SMC-D's. */
#define FEATURE_MASK 107
START_LOOP_TEST(we_propose_as_linux_did, 0, 2)
{
	struct clc_msg msg = captured(proposals[_i].file, proposals[_i].name);
	const struct clc_proposal *p = &msg.proposal;
	bool is_v1 = p->typev1 == CLC_PATH_R;
	const uint8_t mac[6] = { 0x52, 0x54, 0, 1, 0, 0x61 };
	struct smcr_open o = { .role = SMCR_CLIENT,
		.peer = SMCR_PEER_LINUX,
		.app = &c[0],
		.elem_size = SMCR_ELEM_MIN,
		.peer_key = "captured",
		.subnet_cnt = 1,
		.subnet = { { .addr = { 10, 99, 1, 0 }, .prefix_len = 24 } },
		.remote.addr = { [10] = 0xff, 0xff, 10, 99, 1, 2 } };
	int err;

	begin_captured(is_v1 ? p->gid : p->v2.gid, mac, is_v1 ? RNIC_GID_ROCE_V1 : RNIC_GID_ROCE_V2, A);
	duo_release(&c[0]);
	memcpy(d.eng[A]->peer_id, p->peer_id, sizeof(p->peer_id)); /* none in version 2 */
	c[0] = (struct duo_end){ .host = A, .hold = true };
	c[0].conn = smcr_open(d.eng[A], &o, &err);
	ck_assert_ptr_nonnull(c[0].conn);
	duo_run(1);
	ck_assert_uint_eq(c[0].out_len, captured_len);
	if (p->v2.present)
		captured_bytes[FEATURE_MASK] = 0;
	for (size_t i = 0; i < captured_len; i++)
		ck_assert_msg(
		    c[0].out[i] == captured_bytes[i], "byte %zu is %02x, was %02x", i, c[0].out[i], captured_bytes[i]);
}

/* Release 0 of 6.1 and release 1 of 6.12: what the client of the capture is answered by us has the fields that its server's
 * answer had, and goes on with its Confirm. */
START_LOOP_TEST(linux_of_the_captures_is_accepted, 0, 2)
{
	struct clc_msg proposal = captured("smc2.txt", _i == 0 ? "av2-4-proposal" : "k612-a-4-proposal");
	struct clc_msg accept = captured("smc2.txt", _i == 0 ? "av2-6-accept" : "k612-a-6-accept");
	struct clc_msg confirm = captured("smc2.txt", _i == 0 ? "av2-8-confirm" : "k612-a-8-confirm");

	begin_captured(accept.accept.gid, accept.accept.mac, RNIC_GID_ROCE_V2, B);
	s[0].hold = true;
	duo_feed_msg(&s[0], &proposal);
	duo_run(1);
	struct clc_msg ours = held(&s[0]);
	const struct clc_accept *a = &accept.accept, *b = &ours.accept;
	ck_assert_int_eq(ours.type, CLC_ACCEPT);
	ck_assert_uint_eq(ours.version, 2);
	ck_assert_uint_eq(s[0].out_len, 160);
	ck_assert_mem_eq(b->gid, a->gid, 16);
	ck_assert_mem_eq(b->mac, a->mac, 6);
	ck_assert_mem_eq(&b->eid, &a->eid, sizeof(a->eid));
	ck_assert_uint_eq(b->first.os, a->first.os);
	ck_assert_uint_eq(b->first.release, a->first.release);
	ck_assert_uint_eq(b->first.max_conns, a->first.release >= 1 ? a->first.max_conns : 0);
	ck_assert_uint_eq(b->first.max_links, a->first.release >= 1 ? a->first.max_links : 0);
	ck_assert(b->first.direct == a->first.direct);
	/* the port that it names is on no fabric of ours: the Confirm is taken, and nothing connects */
	duo_feed_msg(&s[0], &confirm);
	ck_assert_int_eq(s[0].conn->rdv->step, RDV_WAIT_LINK);
	ck_assert_mem_eq(duo_lgr(B)->peer_id, confirm.accept.peer_id, 8);
	ck_assert_mem_eq(duo_lgr(B)->terms.peer_host, confirm.accept.first.host, CLC_HOST_LEN);
	ck_assert_mem_eq(duo_lgr(B)->links[0].remote.gid.b, confirm.accept.gid, 16);
	duo_run(10000);
}
