/* SMC version 2 in the rendezvous: offer of a Proposal, selection in an Accept, checks of Accept and Confirm (IBM,
 * "Shared Memory Communications Version 2"; diagnosis codes as in Linux). Two smcrd use only version 1. */
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/topology.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

bool
rdv_fits_terms(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const struct rdv *r = conn->rdv;

	return lgr->version == r->version && memcmp(&lgr->terms.eid, &r->terms.eid, sizeof(r->terms.eid)) == 0;
}

/* Linux has no version 2 for a CLC connection over IPv6: its ports for version 2 have IPv4 addresses. */
static bool
may_be_v2(const struct smcr_conn *conn)
{
	const struct smcr_config *cfg = &conn->eng->cfg;

	return cfg->smc_version != 1 && cfg->ueid_cnt > 0 && topology_is_ipv4(conn->rdv->open.remote.addr);
}

/* Release 1 has limits, with this minimum. */
static uint8_t
our_max_conns(const struct smcr_config *cfg)
{
	return (uint8_t)max_u32(CLC_MIN_MAX_CONNS, min_u32(cfg->conns_per_group, SMCR_CONNS_PER_GROUP));
}

static uint8_t
our_max_links(const struct smcr_config *cfg)
{
	return (uint8_t)min_u32(cfg->links_max, CLC_MAX_MAX_LINKS);
}

/* -- client -- */

bool
rdv_offer_v2(const struct smcr_conn *conn, struct clc_v2_offer *offer)
{
	const struct smcr_config *cfg = &conn->eng->cfg;
	struct rnic_dev *dev = NULL;

	if (may_be_v2(conn))
		dev = rdv_pick_device(conn->eng, RDV_ROCE_V2, &conn->rdv->open.local_addr, NULL);
	if (dev == NULL)
		return false;
	*offer = (struct clc_v2_offer){ .present = true,
		.eid_cnt = cfg->ueid_cnt,
		.release = CLC_RELEASE,
		.max_conns = our_max_conns(cfg),
		.max_links = our_max_links(cfg) };
	memcpy(offer->eids, cfg->ueids, sizeof(offer->eids));
	memcpy(offer->gid, rnic_query(dev).gid.b, sizeof(offer->gid));
	return true;
}

/* Checks the Accept of a first contact against our offer. */
static uint32_t
take_first_contact(struct rdv *r, const struct clc_first_contact *f)
{
	const struct clc_v2_offer *offer = &r->proposal.v2;

	if (!f->present || f->release > offer->release)
		return CLC_DIAG_RELEASE;
	r->terms.release = f->release;
	r->terms.peer_os = f->os;
	memcpy(r->terms.peer_host, f->host, sizeof(f->host));
	if (f->release < 1)
		return 0;
	if (f->max_conns < CLC_MIN_MAX_CONNS || f->max_conns > offer->max_conns)
		return CLC_DIAG_MAX_CONNS;
	if (f->max_links < 1 || f->max_links > offer->max_links)
		return CLC_DIAG_MAX_LINKS;
	r->terms.max_conns = f->max_conns;
	r->terms.max_links = f->max_links;
	return 0;
}

uint32_t
rdv_take_accept(struct smcr_conn *conn, const struct clc_msg *msg)
{
	struct rdv *r = conn->rdv;
	const struct clc_proposal *p = &r->proposal;
	const struct clc_accept *a = &msg->accept;

	r->version = 1;
	r->terms = (struct lgr_terms){ 0 };
	if (msg->version < 2) /* smc_version is for foreign peers */
		return p->typev1 == CLC_PATH_R && (a->ext.present || conn->eng->cfg.smc_version != 2)
		    ? 0
		    : CLC_DIAG_VERSION_MISMATCH;
	if (!p->v2.present)
		return CLC_DIAG_VERSION_MISMATCH;
	r->version = 2;
	r->terms.eid = a->eid;
	if (clc_eid_find(p->v2.eids, p->v2.eid_cnt, &a->eid) == NULL) {
		conn->eng->ctr.no_common_ueid++;
		return CLC_DIAG_NO_UEID;
	}
	return a->first_contact ? take_first_contact(r, &a->first) : 0;
}

uint32_t
rdv_way_to_server(const struct smcr_conn *conn, struct rnic_dev *dev, const struct clc_accept *a)
{
	if (conn->rdv->version < 2)
		return 0;
	enum rnic_reach reach = topology_reach(dev, a->gid);
	if (reach == RNIC_REACH_NONE)
		return CLC_DIAG_NO_ROUTE;
	/* The server requires a gateway, and we see none: the ports differ. */
	return !a->first.direct && reach == RNIC_REACH_DIRECT ? CLC_DIAG_INDIRECT : 0;
}

/* -- server -- */

uint32_t
rdv_take_offer(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;
	const struct smcr_config *cfg = &conn->eng->cfg;
	const struct clc_v2_offer *offer = &r->proposal.v2;

	if (!offer->present)
		return CLC_DIAG_NO_V2_EXT;
	if (cfg->smc_version == 1)
		return CLC_DIAG_VERSION_MISMATCH;
	const struct clc_eid *eid = clc_eid_common(cfg->ueids, cfg->ueid_cnt, offer->eids, offer->eid_cnt);
	if (eid == NULL) {
		conn->eng->ctr.no_common_ueid++;
		return CLC_DIAG_NO_UEID;
	}
	if (!may_be_v2(conn))
		return CLC_DIAG_NO_SMCR_DEVICE;
	struct lgr_terms t = { .eid = *eid, .release = min_u8(offer->release, CLC_RELEASE) };

	if (t.release >= 1) {
		t.max_conns = min_u8(offer->max_conns, our_max_conns(cfg));
		t.max_links = min_u8(offer->max_links, our_max_links(cfg));
		if (t.max_conns < CLC_MIN_MAX_CONNS)
			return CLC_DIAG_MAX_CONNS;
		if (t.max_links < 1)
			return CLC_DIAG_MAX_LINKS;
	}
	r->version = 2;
	r->terms = t;
	return 0;
}

uint32_t
rdv_way_to_client(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;

	if (rdv_pick_device(conn->eng, RDV_ROCE_V2, NULL, NULL) == NULL)
		return CLC_DIAG_NO_SMCR_DEVICE;
	return rdv_pick_device(conn->eng, RDV_ROCE_V2, NULL, r->proposal.v2.gid) == NULL ? CLC_DIAG_NO_ROUTE : 0;
}

uint32_t
rdv_take_confirm(struct smcr_conn *conn, const struct clc_msg *msg)
{
	struct lgr *lgr = conn->rdv->lgr != NULL ? conn->rdv->lgr : conn->lgr;
	const struct clc_accept *a = &msg->accept;
	const struct clc_first_contact *f = &a->first;
	struct lgr_terms *t = &lgr->terms;

	if (msg->version != lgr->version)
		return CLC_DIAG_VERSION_MISMATCH;
	if (lgr->version < 2)
		return 0;
	if (memcmp(&a->eid, &t->eid, sizeof(t->eid)) != 0)
		return CLC_DIAG_NO_UEID;
	if (!rdv_forms_group(conn))
		return 0;
	if (!f->present || f->release != t->release)
		return CLC_DIAG_RELEASE;
	if (t->release >= 1 && f->max_conns != t->max_conns)
		return CLC_DIAG_MAX_CONNS;
	if (t->release >= 1 && f->max_links != t->max_links)
		return CLC_DIAG_MAX_LINKS;
	/* The port in the Confirm may differ from that of the Proposal. */
	if (topology_reach(rdv_first_link(conn)->dev, a->gid) == RNIC_REACH_NONE)
		return CLC_DIAG_NO_ROUTE;
	t->peer_os = f->os;
	memcpy(t->peer_host, f->host, sizeof(t->peer_host));
	t->peer_gid_cnt = min_u8(f->gid_cnt, CLC_MAX_GIDS);
	memcpy(t->peer_gids, f->gids, sizeof(t->peer_gids));
	memcpy(lgr->peer_id, a->peer_id, sizeof(lgr->peer_id)); /* missing in a Proposal with version 2 alone */
	return 0;
}

/* -- both: fields of our Accept or Confirm -- */

void
rdv_tell_terms(const struct smcr_conn *conn, enum clc_type type, const struct link *link, struct clc_accept *a)
{
	const struct lgr *lgr = link->lgr;
	struct clc_first_contact *f = &a->first;
	const uint8_t *to = type == CLC_ACCEPT ? conn->rdv->proposal.v2.gid : conn->rdv->peer.gid;

	a->eid = lgr->terms.eid;
	if (!a->first_contact)
		return;
	f->present = true;
	f->direct = topology_reach(link->dev, to) == RNIC_REACH_DIRECT;
	f->os = CLC_OS_LINUX;
	f->release = lgr->terms.release;
	memcpy(f->host, conn->eng->cfg.host, sizeof(f->host));
	f->max_conns = lgr->terms.max_conns;
	f->max_links = lgr->terms.max_links;
	if (type == CLC_CONFIRM)
		f->gid_cnt = rdv_own_gids(conn->eng, link, f->gids);
}
