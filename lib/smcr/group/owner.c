/* Who a link group belongs to; see owner.h. */
#include "smcr/group/owner.h"

#include <string.h>

#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"

struct owner
owner_of(const uint8_t peer_id[8], const struct smcr_identity *remote)
{
	struct owner o = { .remote = *remote };

	memcpy(o.peer_id, peer_id, sizeof(o.peer_id));
	return o;
}

bool
identity_same(const struct smcr_identity *a, const struct smcr_identity *b)
{
	return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->scope == b->scope;
}

bool
owner_same(const struct owner *a, const struct owner *b)
{
	return memcmp(a->peer_id, b->peer_id, sizeof(a->peer_id)) == 0 && identity_same(&a->remote, &b->remote);
}

/* The device of a client that is about to connect its first link is known from its Proposal. */
static bool
proposed_from(const struct lgr *lgr, const uint8_t addr[16])
{
	return lgr->role == SMCR_SERVER && lgr->contact.conn != NULL &&
	    memcmp(lgr->contact.proposed_from.b, addr, 16) == 0;
}

/* Strangers make us ask, once a connection: no slot is touched behind those of the group's links. */
static bool
is_at(const struct lgr *lgr, const uint8_t addr[16])
{
	unsigned left = lgr->link_cnt;

	if (memcmp(lgr->owner.remote.addr, addr, 16) == 0 || proposed_from(lgr, addr))
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
	LIST_FOREACH(n, &eng->lgrs)
		if (is_at(CONTAINER_OF(n, struct lgr, node), addr))
			return true;
	return false;
}
