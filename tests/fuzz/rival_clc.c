/* The rival's CLC messages, of either version; see rival.h. */
#include <string.h>

#include "fuzz.h"
#include "rival.h"

static struct clc_smcrd_ext
extension(const struct rival *r, unsigned transports, uint16_t port, uint64_t token)
{
	return (struct clc_smcrd_ext){
		.present = (r->flags & RIVAL_NO_EXT) == 0,
		.version = CLC_SMCRD_EXT_VERSION,
		.transports = (uint8_t)transports,
		.features = CLC_FEATURES,
		.mpa_port = port,
		.recv_depth = RIVAL_RQ,
		.token = token,
	};
}

static void
build_proposal(struct rival_mid *m, struct clc_proposal *p, bool prewarm)
{
	struct rnic_info info = rnic_query(m->of->dev[0]);
	unsigned transports = 0;

	for (unsigned i = 0; i < RIVAL_DEVS; i++)
		transports |= rival_transport(m->of, i);
	memcpy(p->peer_id, m->group->peer_id, sizeof(p->peer_id));
	memcpy(p->gid, info.gid.b, sizeof(p->gid));
	memcpy(p->mac, info.mac, sizeof(p->mac));
	p->ipv4_subnet = 0x0a000000;
	p->ipv4_len = 16;
	p->ipv6_cnt = 1;
	p->ipv6[0] = (struct clc_prefix6){ .addr = { 0xfd }, .len = 64 };
	p->ext = extension(m->of, transports, 0, 0);
	if (prewarm)
		p->ext.transports |= CLC_TRANSPORT_PREWARM;
}

/* The same of version 2; both: version 1 is offered, too. */
static void
build_proposal_v2(struct rival_mid *m, struct clc_proposal *p, bool both)
{
	struct rnic_info info = rnic_query(m->of->dev[0]);

	build_proposal(m, p, false);
	p->typev1 = both ? CLC_PATH_R : CLC_PATH_NONE;
	p->typev2 = CLC_PATH_R;
	p->growth_len = CLC_GROWTH_LEN;
	p->v2 = (struct clc_v2_offer){
		.present = true,
		.eid_cnt = 2,
		.release = CLC_RELEASE,
		.max_conns = (m->of->flags & RIVAL_LINKS_8) != 0 ? CLC_MIN_MAX_CONNS : 255,
		.max_links = CLC_MAX_MAX_LINKS,
	};
	memset(&p->v2.eids[0], 'V', sizeof(p->v2.eids[0]));
	memset(&p->v2.eids[1], ARENA_UEID, sizeof(p->v2.eids[1]));
	memcpy(p->v2.gid, info.gid.b, sizeof(p->v2.gid));
}

static uint8_t
least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* What Accept and Confirm of version 2 have besides: an Accept takes what was offered, a Confirm repeats the Accept's. */
static void
build_terms(const struct rival_mid *m, struct clc_accept *a, bool accept)
{
	struct clc_first_contact *f = &a->first;

	memset(&a->eid, ARENA_UEID, sizeof(a->eid));
	if (!a->first_contact)
		return;
	*f = (struct clc_first_contact){ .present = true, .direct = true, .os = CLC_OS_LINUX };
	memset(f->host, ' ', sizeof(f->host));
	f->release = accept ? least(CLC_RELEASE, m->offer.release) : m->theirs.first.release;
	f->max_conns = accept ? m->offer.max_conns : m->theirs.first.max_conns;
	f->max_links = accept ? least(CLC_MAX_MAX_LINKS, m->offer.max_links) : m->theirs.first.max_links;
	f->gid_cnt = accept ? 0 : RIVAL_DEVS - 1;
	for (unsigned i = 0; i < f->gid_cnt; i++)
		memcpy(f->gids[i], rnic_query(m->of->dev[i + 1]).gid.b, sizeof(f->gids[i]));
}

static struct rival_link *
link_to_name(struct rival_mid *m, bool accept, bool join)
{
	struct rival *r = m->of;

	if (!accept)
		return m->link;
	for (unsigned i = 0; join && i < RIVAL_LINKS; i++)
		if (r->link[i].used && r->link[i].group == m->group && r->link[i].role == SMCR_CLIENT)
			return &r->link[i];
	m->contact = true;
	return rival_link_new(r, m->group, SMCR_CLIENT, rival_device_for(m));
}

static bool
build_accept(struct rival_mid *m, struct clc_accept *a, bool accept, bool join)
{
	struct rival_link *l = link_to_name(m, accept, join);

	if (l == NULL)
		return false;
	m->link = l;
	struct rnic_info info = rnic_query(m->of->dev[l->dev]);
	a->first_contact = accept && m->contact;
	memcpy(a->peer_id, m->group->peer_id, sizeof(a->peer_id));
	memcpy(a->gid, info.gid.b, sizeof(a->gid));
	memcpy(a->mac, info.mac, sizeof(a->mac));
	a->qpn = l->qp->qpn;
	a->psn = l->qp->psn;
	a->rkey = l->rmb[0]->rkey;
	a->vaddr = l->rmb[0]->addr;
	a->rmbe_idx = (uint8_t)(m->slot + 1);
	a->alert_token = RIVAL_TOKEN + m->slot;
	a->mtu_code = 5;
	a->ext = extension(m->of, rival_transport(m->of, l->dev), info.mpa_port, accept ? m->group->token : 0);
	a->ext.ticket = accept && (m->of->flags & RIVAL_OPENS) != 0 ? RIVAL_TICKET : 0;
	if ((m->of->flags & RIVAL_V2) != 0) {
		a->first_contact = m->contact; /* Linux sets it in its Confirm, too */
		build_terms(m, a, accept);
	}
	if (m->group->rmbs_named == 0)
		m->group->rmbs_named = 1;
	return true;
}

void
rival_clc(struct rival_mid *m, enum clc_type type, bool join, unsigned cut)
{
	bool v2 = (m->of->flags & RIVAL_V2) != 0;
	struct clc_msg msg = { .type = type, .version = v2 ? 2 : 1 };
	uint8_t buf[CLC_MAX_SENT_LEN];

	if (type == CLC_PROPOSAL && v2) {
		build_proposal_v2(m, &msg.proposal, join);
	} else if (type == CLC_PROPOSAL) {
		build_proposal(m, &msg.proposal, join);
	} else if (type == CLC_DECLINE) {
		memcpy(msg.decline.peer_id, m->group->peer_id, sizeof(msg.decline.peer_id));
		msg.decline.diag = CLC_DIAG_NO_DEVICE;
		msg.decline.out_of_sync = join;
		msg.decline.os = v2 ? CLC_OS_LINUX : 0;
	} else if (!build_accept(m, &msg.accept, type == CLC_ACCEPT, join)) {
		return;
	}
	int n = clc_encode(&msg, buf, sizeof(buf));
	FUZZ_CHECK(n > 0 || v2);
	if (n <= 0)
		return; /* there is no such Confirm: the engine's Accept was of version 1, or of release 0 */
	rival_twist_clc(m->of, buf, (size_t)n);
	rival_clc_bytes(m, buf, (size_t)n - cut % (unsigned)n);
}

void
rival_clc_next(struct rival_mid *m, bool join, unsigned cut)
{
	if (m->role == SMCR_CLIENT)
		rival_clc(m, CLC_ACCEPT, join, cut);
	else
		rival_clc(m, m->has_theirs ? CLC_CONFIRM : CLC_PROPOSAL, join && !m->has_theirs, cut);
}
