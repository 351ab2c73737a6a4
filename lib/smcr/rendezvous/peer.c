/* First contact, one at a time per peer; see peer.h. */
#include "smcr/rendezvous/peer.h"

#include <stdlib.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"
#include "smcr/rendezvous/rendezvous.h"

#define PEERS_MAX 1024 /* remembered at once, of each role: a server's come from strangers */
#define ATTEMPTS_MAX 2 /* a failed first contact is tried once more for those who wait */
#define HOLD_AFTER 2   /* failed rounds before the peer is held off */

static bool
peer_is(const struct peer *p, enum smcr_role role, const char *key, const struct owner *owner)
{
	if (p->role != role)
		return false;
	return role == SMCR_CLIENT ? strcmp(p->key, key) == 0 : owner_same(&p->owner, owner);
}

static void
peer_free(struct peer *p)
{
	list_remove(&p->node);
	free(p);
}

static bool
peer_in_use(const struct peer *p)
{
	return p->leader != NULL || !list_empty(&p->waiting);
}

/* Counts, and forgets on the way the oldest one that nobody uses when there are too many. */
static bool
make_place(struct smcr *eng, enum smcr_role role)
{
	struct peer *oldest = NULL;
	unsigned cnt = 0;

	LIST_EACH(struct peer, p, &eng->peers, node) {
		if (p->role != role)
			continue;
		cnt++;
		if (oldest == NULL && !peer_in_use(p) && !p->busy)
			oldest = p;
	}
	if (cnt < PEERS_MAX)
		return true;
	if (oldest == NULL) {
		eng->ctr.refused_peers_max++;
		return false;
	}
	peer_free(oldest);
	return true;
}

struct peer *
peer_get(struct smcr *eng, enum smcr_role role, const char *key, const struct owner *owner)
{
	struct peer *p;

	LIST_FOREACH(n, &eng->peers) {
		p = CONTAINER_OF(n, struct peer, node);
		if (peer_is(p, role, key, owner))
			return p;
	}
	if (!make_place(eng, role))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		eng->ctr.refused_memory++;
		return NULL;
	}
	p->role = role;
	if (role == SMCR_CLIENT)
		memcpy(p->key, key, sizeof(p->key));
	else
		p->owner = *owner;
	list_init(&p->waiting);
	list_push(&eng->peers, &p->node);
	return p;
}

void
peer_learn(struct smcr *eng, const char *key, const struct owner *owner)
{
	struct peer *p = peer_get(eng, SMCR_CLIENT, key, NULL);

	if (p == NULL)
		return; /* they join one after the other, as long as memory is out */
	p->owner_known = true;
	p->owner = *owner;
}

const struct owner *
peer_known_owner(const struct smcr *eng, const char *key)
{
	LIST_EACH(const struct peer, p, &eng->peers, node) {
		if (p->owner_known && peer_is(p, SMCR_CLIENT, key, NULL))
			return &p->owner;
	}
	return NULL;
}

bool
peer_held_off(const struct smcr *eng, const struct peer *p)
{
	return p->hold_until_ns > eng->now_ns;
}

void
peer_lead(struct peer *p, struct smcr_conn *conn)
{
	p->leader = conn;
	conn->rdv->peer_ent = p;
}

void
peer_wait(struct peer *p, struct smcr_conn *conn)
{
	conn->rdv->peer_ent = p;
	list_push(&p->waiting, &conn->rdv->wait);
}

/* Nothing to remember: gone. */
static void
peer_settle(struct peer *p)
{
	if (!peer_in_use(p) && !p->busy && p->failures == 0 && !p->owner_known)
		peer_free(p);
}

static void
peer_failed(struct smcr *eng, struct peer *p)
{
	int64_t hold;
	struct list_node *n;
	char what[sizeof(((struct smcr_log *)0)->peer)];

	p->attempts = 0;
	p->failures++;
	if (p->failures >= HOLD_AFTER) {
		hold = eng->cfg.holdoff_ms * MS;
		for (unsigned i = HOLD_AFTER; i < p->failures && hold < eng->cfg.holdoff_max_ms * MS; i++)
			hold *= 2;
		if (hold > eng->cfg.holdoff_max_ms * MS)
			hold = eng->cfg.holdoff_max_ms * MS;
		p->hold_until_ns = eng->now_ns + hold;
		if (p->role == SMCR_CLIENT)
			memcpy(what, p->key, sizeof(what));
		else
			engine_hex_id(p->owner.peer_id, what);
		engine_log_peer(eng, SMCR_LOG_HELD_OFF, what, (uint64_t)(hold / MS), "first contact failed repeatedly");
	}
	while ((n = list_pop(&p->waiting)) != NULL) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct rdv, wait)->conn;

		conn->rdv->peer_ent = NULL;
		rdv_give_up(conn);
	}
}

void
peer_done(struct smcr *eng, struct peer *p, enum peer_outcome outcome)
{
	struct list_node *n;

	bool outer = !p->busy;

	if (p->leader->rdv != NULL)
		p->leader->rdv->peer_ent = NULL;
	p->leader = NULL;
	p->busy = true;
	if (outcome == PEER_OK) {
		p->attempts = p->failures = 0;
		p->hold_until_ns = 0;
	}
	if (outcome == PEER_FAILED && (list_empty(&p->waiting) || ++p->attempts >= ATTEMPTS_MAX))
		peer_failed(eng, p);
	/* Each one that goes on may become the next leader: then the rest waits for that one. */
	while (p->leader == NULL && (n = list_pop(&p->waiting)) != NULL) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct rdv, wait)->conn;

		conn->rdv->peer_ent = NULL;
		rdv_go_on(conn, p);
	}
	if (outer)
		p->busy = false;
	peer_settle(p);
}

void
peer_leave(struct smcr *eng, struct peer *p, struct smcr_conn *conn)
{
	(void)eng;
	list_remove(&conn->rdv->wait);
	conn->rdv->peer_ent = NULL;
	peer_settle(p);
}

void
peer_free_all(struct smcr *eng)
{
	struct list_node *n;

	while ((n = list_first(&eng->peers)) != NULL)
		peer_free(CONTAINER_OF(n, struct peer, node));
}
