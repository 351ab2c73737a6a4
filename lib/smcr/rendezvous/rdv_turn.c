/*
 * Turns at a peer that makes one rendezvous at a time: of many that begin at
 * once, some wait for longer than a CLC message is waited for (C.5), while the
 * peer does nothing wrong. That it comes to others says that it will come to
 * them; of a Confirm it is certain while middle and group last. rendezvous.c
 * asks here when the time is over.
 */
#include "base/minmax.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

/* The group has the same peer as the connection. */
static bool
is_of_its_peer(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const char *key = conn->rdv->open.peer_key;
	const struct lgr *own = conn->lgr != NULL ? conn->lgr : conn->rdv->lgr;

	if (conn->role == SMCR_CLIENT) /* the Accept, which is awaited, says which group it is to be in */
		return peer_key_leads_to(key, peer_known_owner(conn->eng, key), lgr);
	return lgr->role == SMCR_SERVER && own != NULL && owner_same(&lgr->owner, &own->owner);
}

uint32_t
rdv_turn_ms(const struct smcr_conn *conn)
{
	int64_t clc_ns = conn->eng->cfg.clc_ms * MS, until_ns = conn->eng->now_ns;

	/* A server whose Accept names a group that is there: it may not go away. A dead peer is TEST LINK's to find. */
	if (conn->lgr != NULL && conn->lgr->dialect.reset_unseen)
		return conn->eng->cfg.clc_ms;
	LIST_EACH(const struct lgr, lgr, &conn->eng->lgrs, node) {
		if (lgr->dialect.one_rendezvous && lgr->joined_ns != 0 && is_of_its_peer(conn, lgr))
			until_ns = max_i64(until_ns, lgr->joined_ns + clc_ns);
	}
	/* A peer could go on for ever, and never come to this one. */
	until_ns = min_i64(until_ns, conn->rdv->until_ns + RDV_TURNS_MAX * clc_ns);
	return until_ns > conn->eng->now_ns ? (uint32_t)((until_ns - conn->eng->now_ns) / MS) : 0;
}
