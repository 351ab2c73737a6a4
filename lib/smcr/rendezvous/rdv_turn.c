/* Wait for a peer that makes one rendezvous at a time: of many concurrent ones, some exceed the limit of a CLC message
 * (C.5) with a correct peer. Its progress with others shows that it will reach them; a Confirm is certain while CLC
 * connection and group exist. rendezvous.c calls this at a timeout. */
#include "base/minmax.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

/* The group has the same peer as the connection. */
static bool
is_of_its_peer(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const char *key = conn->rdv->open.peer_key;
	const struct lgr *own = conn->lgr != NULL ? conn->lgr : conn->rdv->lgr;

	if (conn->role == SMCR_CLIENT) /* only the awaited Accept names the group */
		return peer_key_leads_to(key, peer_known_owner(conn->eng, key), lgr);
	return lgr->role == SMCR_SERVER && own != NULL && owner_same(&lgr->owner, &own->owner);
}

uint32_t
rdv_turn_ms(const struct smcr_conn *conn)
{
	int64_t clc_ns = conn->eng->cfg.clc_ms * MS, until_ns = conn->eng->now_ns;

	/* A server whose Accept names an existing group must wait. TEST LINK detects a dead peer. */
	if (conn->lgr != NULL && conn->lgr->dialect.reset_unseen)
		return conn->eng->cfg.clc_ms;
	LIST_EACH(const struct lgr, lgr, &conn->eng->lgrs, node) {
		if (lgr->dialect.one_rendezvous && lgr->joined_ns != 0 && is_of_its_peer(conn, lgr))
			until_ns = max_i64(until_ns, lgr->joined_ns + clc_ns);
	}
	/* A peer could continue forever without reaching this one. */
	until_ns = min_i64(until_ns, conn->rdv->until_ns + RDV_TURNS_MAX * clc_ns);
	return until_ns > conn->eng->now_ns ? (uint32_t)((until_ns - conn->eng->now_ns) / MS) : 0;
}
