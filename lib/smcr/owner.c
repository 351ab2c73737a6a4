/* Who a link group belongs to; see owner.h. */
#include "smcr/owner.h"

#include <string.h>

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
