/* Connections and links moved on the operator's word: smcr_rebalance, smcr_link_delete. */
#include <errno.h>

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/group/llc.h"
#include "smcr/state/engine.h"

static struct lgr *
group(struct smcr *eng, uint32_t id)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		if (lgr->id == id && lgr->state == LGR_ACTIVE)
			return lgr;
	}
	return NULL;
}

/* How many connections a link is to have at most when all have their share. */
static uint32_t
share(const struct lgr *lgr)
{
	uint32_t links = 0;

	for (unsigned i = 0; i < LINK_SLOTS; i++)
		links += lgr->links[i].state == LINK_ACTIVE && !lgr->links[i].retiring;
	return links > 0 ? (lgr->conn_cnt + links - 1) / links : lgr->conn_cnt;
}

/* Connections above the share of their link go to the link with the fewest; moves under way count as done. */
static uint32_t
rebalance(struct lgr *lgr)
{
	uint32_t will_have[LINK_SLOTS], most = share(lgr), moved = 0;

	for (unsigned i = 0; i < LINK_SLOTS; i++)
		will_have[i] = lgr->links[i].conn_cnt;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		struct link *to = NULL;

		if (conn->tx.move_to != 0 || will_have[conn->link->slot] <= most)
			continue;
		LGR_EACH_LINK(l, lgr) {
			if (l->state == LINK_ACTIVE && !l->retiring && will_have[l->slot] < most &&
			    (to == NULL || will_have[l->slot] < will_have[to->slot]))
				to = l;
		}
		if (to == NULL)
			break;
		will_have[conn->link->slot]--;
		will_have[to->slot]++;
		failover_ask(conn, to);
		moved++;
	}
	lgr->eng->ctr.rebalanced += moved;
	return moved;
}

int
smcr_rebalance(struct smcr *eng, uint32_t group_id)
{
	struct lgr *lgr = group_id != 0 ? group(eng, group_id) : NULL;
	uint32_t moved = 0;

	if (group_id != 0)
		return lgr != NULL ? (int)rebalance(lgr) : -ENOENT;
	LIST_FOREACH(n, &eng->lgrs) {
		lgr = CONTAINER_OF(n, struct lgr, node);
		if (lgr->state == LGR_ACTIVE)
			moved += rebalance(lgr);
	}
	return (int)moved;
}

int
smcr_link_delete(struct smcr *eng, uint32_t group_id, uint8_t number)
{
	struct lgr *lgr = group(eng, group_id);

	if (lgr == NULL)
		return -ENOENT;
	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE || l->number != number)
			continue;
		return lgr->active_cnt > 1 ? llc_retire_link(l, LLC_DELETE_OPERATOR) : -EBUSY;
	}
	return -ENOENT;
}
