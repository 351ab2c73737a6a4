/* Room for link groups; see room.h. */
#include "smcr/group/room.h"

#include "smcr/group/owner.h"
#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "wire/clc.h"

/* The group that has been without connections for longest: of anybody when remote is NULL. What others keep ready is not a
 * client's to end. */
static struct lgr *
longest_idle(const struct smcr *eng, enum smcr_role role, const struct smcr_identity *remote)
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
	return idle;
}

static void
end_idle(struct smcr *eng, enum smcr_role role, const struct smcr_identity *remote)
{
	struct lgr *lgr = longest_idle(eng, role, remote);

	if (lgr == NULL)
		return;
	eng->ctr.groups_ended_for_room++;
	/* Its timer ends it: a caller may be walking through the groups, and a group that cannot send DELETE LINK goes at once. */
	lgr->end_wanted = true;
	engine_arm(eng, &lgr->idle, 0);
}

uint32_t
room_for_group(struct smcr *eng, enum smcr_role role, const struct smcr_identity *remote, struct rnic_dev *dev)
{
	struct rnic_info info = rnic_query(dev);
	/* The last eighth of a device's queue pairs is not for strangers. */
	uint32_t max_qp = role == SMCR_SERVER ? info.max_qp - info.max_qp / 8 : info.max_qp;
	uint32_t groups = 0, max = eng->cfg.groups_per_addr;

	/* Groups that this address could do with: those that have room for more connections, or are about to have, or to end. */
	LIST_EACH(const struct lgr, lgr, &eng->lgrs, node)
		groups += lgr->role == role && lgr->conn_cnt < eng->cfg.conns_per_group &&
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
