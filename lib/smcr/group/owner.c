/* Owners of link groups, and limits for new groups; see owner.h. */
#include "smcr/group/owner.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "smcr/state/log.h"

struct owner
owner_of(const uint8_t peer_id[8], const struct smcr_identity *remote)
{
	struct owner o = { .remote = *remote };

	memcpy(o.peer_id, peer_id, sizeof(o.peer_id));
	return o;
}

void
owner_str(const struct owner *o, char *buf, size_t cap)
{
	static const uint8_t none[sizeof(o->peer_id)];

	if (memcmp(o->peer_id, none, sizeof(none)) != 0 || inet_ntop(AF_INET6, o->gid, buf, (socklen_t)cap) == NULL)
		engine_hex_id(o->peer_id, buf);
}

bool
identity_same(const struct smcr_identity *a, const struct smcr_identity *b)
{
	return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->scope == b->scope && a->level == b->level &&
	    memcmp(a->name_id, b->name_id, sizeof(a->name_id)) == 0;
}

bool
owner_same(const struct owner *a, const struct owner *b)
{
	return memcmp(a->peer_id, b->peer_id, sizeof(a->peer_id)) == 0 && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0 &&
	    identity_same(&a->remote, &b->remote);
}

/* Called once per connection of unknown peers: skips slots after the last link. */
static bool
is_at(const struct lgr *lgr, const uint8_t addr[16])
{
	unsigned left = lgr->link_cnt;
	/* The device of a client about to connect its first link is in its Proposal. */
	bool proposed = lgr->role == SMCR_SERVER && lgr->contact.conn != NULL &&
	    memcmp(lgr->contact.proposed_from.b, addr, 16) == 0;

	if (memcmp(lgr->owner.remote.addr, addr, 16) == 0 || proposed)
		return true;
	for (const struct link *l = lgr->links; left > 0 && l < lgr->links + LINK_SLOTS; l++) {
		if (l->state == LINK_FREE || l->state == LINK_GONE)
			continue;
		left--;
		if (!link_has_ended(l) && memcmp(l->remote.gid.b, addr, 16) == 0)
			return true;
	}
	return false;
}

bool
smcr_has_peer(const struct smcr *eng, const uint8_t addr[16])
{
	return LIST_FIND(const struct lgr, lgr, &eng->lgrs, node, is_at(lgr, addr)) != NULL;
}

int64_t
smcr_met_ns(const struct smcr *eng, const struct smcr_identity *remote)
{
	int64_t last = 0;

	LIST_EACH(const struct lgr, lgr, &eng->lgrs, node)
		if (lgr->role == SMCR_SERVER && identity_same(&lgr->owner.remote, remote))
			last = max_i64(last, lgr->state == LGR_FORMING ? INT64_MAX : lgr->active_ns);
	return last;
}

uint64_t
smcr_contacts_over(const struct smcr *eng)
{
	return eng->contacts_over;
}

/* -- limits -- */

/* Ends the group that is longest without connections, of any owner when remote is NULL. Groups of other roles stay. */
static void
end_idle(struct smcr *eng, enum smcr_role role, const struct smcr_identity *remote)
{
	struct lgr *idle = NULL;

	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		if (lgr->state != LGR_ACTIVE || lgr->end_wanted || !lgr_unused(lgr) ||
		    (role == SMCR_SERVER && lgr->role != role))
			continue;
		if (remote != NULL && (lgr->role != role || !identity_same(&lgr->owner.remote, remote)))
			continue;
		if (idle == NULL || lgr->idle_since_ns < idle->idle_since_ns)
			idle = lgr;
	}
	if (idle == NULL)
		return;
	eng->ctr.groups_ended_for_room++;
	/* By its timer, as a caller may iterate over the groups, and a group without a link would end at once. */
	idle->end_wanted = true;
	engine_arm(eng, &idle->idle, 0);
}

uint32_t
room_for_group(struct smcr *eng, enum smcr_role role, const struct smcr_identity *remote, struct rnic_dev *dev)
{
	struct rnic_info info = rnic_query(dev);
	/* The last eighth of a device's queue pairs is reserved. */
	uint32_t max_qp = role == SMCR_SERVER ? info.max_qp - info.max_qp / 8 : info.max_qp;
	uint32_t groups = 0, max = eng->cfg.groups_per_addr;

	/* Groups that this address can use: with space for connections, now or later, or about to end. */
	LIST_EACH(const struct lgr, lgr, &eng->lgrs, node)
		groups += lgr->role == role && lgr->conn_cnt < lgr_conns_max(lgr) &&
		    identity_same(&lgr->owner.remote, remote);
	if (groups >= max - max / 4)
		end_idle(eng, role, remote);
	if (groups >= max) {
		eng->ctr.refused_groups_addr++;
		return CLC_DIAG_MAX_LINKS;
	}
	if (info.qp_cnt >= max_qp - max_qp / 8)
		end_idle(eng, role, NULL);
	if (info.qp_cnt >= max_qp) {
		eng->ctr.refused_qp++;
		return CLC_DIAG_READY_LINK;
	}
	return 0;
}
