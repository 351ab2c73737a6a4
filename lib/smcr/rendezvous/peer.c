/* First contact, one at a time per peer; see rendezvous.h. */
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/llc.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"
#include "smcr/rendezvous/rendezvous.h"

#define PEERS_MAX 1024 /* limit per role: a server's come from unknown peers */
#define ATTEMPTS_MAX 2 /* a failed first contact is repeated once for waiting connections */
#define HOLD_AFTER 2   /* failed rounds before the peer is held off */

static bool
peer_is(const struct peer *p, const char *key, const struct owner *owner)
{
	return p->role == SMCR_CLIENT ? strcmp(p->key, key) == 0 : owner_same(&p->owner, owner);
}

/* A hold-off counts for both: several keys lead to one server once their Accepts had the same owner. As that is a
 * claim, the address must match too: a host at one address cannot cause a hold-off for another. */
static bool
share_failures(const struct peer *a, const struct peer *b)
{
	return a == b ||
	    (a->role == SMCR_CLIENT && b->role == a->role && a->owner_met && b->owner_met &&
	        owner_same(&a->owner, &b->owner));
}

static int64_t
held_until_ns(const struct smcr *eng, const struct peer *p)
{
	int64_t until = p->hold_until_ns;

	if (!p->owner_met)
		return until;
	LIST_EACH(const struct peer, q, &eng->peers, node)
		if (share_failures(p, q))
			until = max_i64(until, q->hold_until_ns);
	return until;
}

static void
peer_free(struct peer *p)
{
	list_remove(&p->mark);
	list_remove(&p->node);
	free(p);
}

static bool
peer_in_use(const struct peer *p)
{
	return p->leader != NULL || !list_empty(&p->waiting) || !list_empty(&p->refused) || !list_empty(&p->mark);
}

struct peer *
peer_get(struct smcr *eng, enum smcr_role role, const char *key, const struct owner *owner)
{
	struct peer *unused = NULL;
	unsigned cnt = 0;

	LIST_EACH(struct peer, p, &eng->peers, node) {
		if (p->role != role)
			continue;
		if (peer_is(p, key, owner))
			return p;
		cnt++;
		if (unused == NULL && !peer_in_use(p))
			unused = p;
	}
	if (cnt >= PEERS_MAX && unused == NULL) {
		eng->ctr.refused_peers_max++;
		return NULL;
	}
	if (cnt >= PEERS_MAX) /* frees the oldest unused one */
		peer_free(unused);
	struct peer *p = calloc(1, sizeof(*p));
	if (p == NULL) {
		eng->ctr.refused_memory++;
		return NULL;
	}
	p->role = role;
	if (role == SMCR_CLIENT)
		memcpy(p->key, key, sizeof(p->key));
	else
		p->owner = *owner;
	list_init(&p->mark);
	list_init(&p->waiting);
	list_init(&p->refused);
	list_push(&eng->peers, &p->node);
	return p;
}

void
peer_learn(struct smcr *eng, const char *key, const struct owner *owner)
{
	struct peer *p = peer_get(eng, SMCR_CLIENT, key, NULL);

	if (p == NULL)
		return; /* without memory they join one by one */
	p->owner_known = true;
	p->owner = *owner;
}

const struct owner *
peer_known_owner(const struct smcr *eng, const char *key)
{
	const struct peer *p = LIST_FIND(
	    const struct peer, q, &eng->peers, node, q->owner_known &&peer_is(q, key, NULL));

	return p != NULL ? &p->owner : NULL;
}

bool
peer_key_leads_to(const char *key, const struct owner *known, const struct lgr *lgr)
{
	return lgr->role == SMCR_CLIENT &&
	    (strcmp(lgr->peer_key, key) == 0 || (known != NULL && owner_same(&lgr->owner, known)));
}

bool
peer_meets(struct smcr_conn *conn, const struct owner *owner)
{
	struct peer *p = conn->rdv->peer_ent, met = { .role = SMCR_CLIENT, .owner = *owner, .owner_met = true };

	if (p != NULL) {
		p->owner_known = p->owner_known && owner_same(&p->owner, owner);
		p->owner = *owner;
		p->owner_met = true;
	}
	return held_until_ns(conn->eng, &met) <= conn->eng->now_ns || rdv_insists(conn);
}

bool
rdv_insists(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;

	if (r == NULL || !conn->prewarm)
		return false;
	return conn->role == SMCR_CLIENT ? r->open.insist : (r->proposal.ext.features & CLC_FEATURE_CHECK) != 0;
}

bool
peer_holds_off(const struct peer *p, const struct smcr_conn *conn)
{
	return held_until_ns(conn->eng, p) > conn->eng->now_ns && !rdv_insists(conn);
}

/* Frees a peer without state or a pending end of its hold-off. */
static void
peer_settle(const struct smcr *eng, struct peer *p)
{
	if (!peer_in_use(p) && p->failures == 0 && p->held_ns == 0 && p->sctp_until_ns == 0 && !p->owner_known &&
	    held_until_ns(eng, p) <= eng->now_ns)
		peer_free(p);
}

static void
log_hold(struct smcr *eng, const struct peer *p, enum smcr_log_type type, int64_t hold, const char *why)
{
	char id[sizeof(((struct smcr_log *)0)->peer_id)] = "";
	bool known = p->role == SMCR_SERVER || p->owner_known || p->owner_met;

	if (known)
		owner_str(&p->owner, id, sizeof(id));
	(void)engine_log_peer(eng, type, p->role == SMCR_CLIENT ? p->key : NULL, id, known ? &p->owner.remote : NULL,
	    (uint64_t)(hold / MS), why);
}

/* A firewall does not change soon, and each attempt costs a connection its SMC-R: the longest hold-off at once. */
static void
note_sctp(struct smcr *eng, struct peer *p, struct smcr_conn *leader, enum peer_outcome outcome)
{
	int64_t hold = eng->cfg.holdoff_max_ms * MS;

	if (outcome == PEER_VOID)
		return;
	p->sctp_failed = p->over_sctp && outcome == PEER_FAILED;
	if (p->sctp_failed) {
		p->sctp_until_ns = eng->now_ns + hold;
		leader->diag.sctp_held_off = true;
		log_hold(eng, p, SMCR_LOG_SCTP_SHUNNED, hold,
		    "first contact over it failed: the next one takes iWARP on TCP, or RoCE, where both ends have it");
	} else if (p->over_sctp) {
		p->sctp_until_ns = 0;
	}
}

/* First contact starts again without recorded failures. */
static void
forget_failures(struct smcr *eng, struct peer *p)
{
	LIST_EACH(struct peer, q, &eng->peers, node)
		if (share_failures(p, q)) {
			q->attempts = q->failures = 0;
			q->hold_until_ns = 0;
		}
}

/* Clears the hold-off and its history. */
static void
hold_over(struct smcr *eng, struct peer *p)
{
	forget_failures(eng, p);
	LIST_EACH(struct peer, q, &eng->peers, node) {
		if (!share_failures(p, q))
			continue;
		if (q->held_ns != 0)
			log_hold(eng, q, SMCR_LOG_HOLD_OVER, eng->now_ns - q->held_ns, NULL);
		q->held_ns = 0;
		if (q != p)
			peer_settle(eng, q);
	}
}

static int64_t
hold_ns(const struct smcr *eng, const struct peer *p)
{
	int64_t hold = eng->cfg.holdoff_ms * MS, hold_max = eng->cfg.holdoff_max_ms * MS;

	for (unsigned i = HOLD_AFTER; i < p->failures && hold < hold_max; i++)
		hold *= 2;
	return min_i64(hold, hold_max);
}

/* Simultaneous first contacts of several keys with one cause of failure count as one round. */
static bool
count_failure(const struct smcr *eng, struct peer *p)
{
	bool held = false, same_round = false;

	LIST_EACH(const struct peer, q, &eng->peers, node) {
		if (!share_failures(p, q))
			continue;
		p->failures = max_u32(p->failures, q->failures);
		same_round = same_round || p->began_ns < q->failed_ns;
		held = held || q->held_ns != 0;
	}
	p->failures += !same_round;
	p->failed_ns = eng->now_ns;
	return held;
}

static void
peer_failed(struct smcr *eng, struct peer *p, uint32_t conn_id)
{
	bool held = count_failure(eng, p);
	struct list_node *n;

	p->attempts = 0;
	if (p->failures >= HOLD_AFTER) {
		int64_t hold = hold_ns(eng, p);

		p->hold_until_ns = eng->now_ns + hold;
		p->failed_id = conn_id;
		log_hold(
		    eng, p, held ? SMCR_LOG_HELD_LONGER : SMCR_LOG_HELD_OFF, hold, "first contact failed repeatedly");
		if (!held)
			p->held_ns = eng->now_ns;
	}
	while ((n = list_pop(&p->waiting)) != NULL)
		list_push(&p->refused, n);
}

void
peer_done(struct smcr *eng, struct peer *p, enum peer_outcome outcome)
{
	struct smcr_conn *leader = p->leader;

	if (leader->rdv != NULL)
		leader->rdv->peer_ent = NULL;
	p->leader = NULL;
	note_sctp(eng, p, leader, outcome);
	p->over_sctp = false;
	if (outcome == PEER_FAILED && rdv_insists(leader))
		outcome = PEER_VOID;
	if (outcome == PEER_OK)
		hold_over(eng, p);
	if (outcome == PEER_FAILED && (list_empty(&p->waiting) || ++p->attempts >= ATTEMPTS_MAX))
		peer_failed(eng, p, leader->id);
	if ((!list_empty(&p->waiting) || !list_empty(&p->refused)) && list_empty(&p->mark))
		list_push(&eng->marked_peers, &p->mark);
	peer_settle(eng, p);
}

struct smcr_conn *
peer_next(const struct smcr *eng, struct peer *p, bool *refused)
{
	struct rdv *r = LIST_POP(struct rdv, &p->refused, wait);

	*refused = r != NULL;
	/* Each one that continues may become the next leader, for which the rest waits. */
	if (r == NULL && p->leader == NULL)
		r = LIST_POP(struct rdv, &p->waiting, wait);
	if (r == NULL) {
		list_remove(&p->mark);
		peer_settle(eng, p);
		return NULL;
	}
	r->peer_ent = NULL;
	return r->conn;
}

void
peer_leave(struct peer *p, struct smcr_conn *conn)
{
	list_remove(&conn->rdv->wait);
	conn->rdv->peer_ent = NULL;
	peer_settle(conn->eng, p);
}

void
peer_hold_from(const struct smcr_conn *conn, int64_t from_ns)
{
	LIST_EACH(struct peer, p, &conn->eng->peers, node)
		if (p->failed_id == conn->id && p->hold_until_ns > conn->eng->now_ns)
			p->hold_until_ns = from_ns + hold_ns(conn->eng, p);
}

/* -- operator queries -- */

static struct peer *
held_off(const struct smcr *eng, const char *key)
{
	return LIST_FIND(struct peer, p, &eng->peers, node,
	    p->role == SMCR_CLIENT && strcmp(p->key, key) == 0 && held_until_ns(eng, p) > eng->now_ns);
}

int64_t
smcr_held_off_ns(const struct smcr *eng, const char *key)
{
	const struct peer *p = held_off(eng, key);

	return p != NULL ? held_until_ns(eng, p) - eng->now_ns : 0;
}

void
smcr_end_hold_off(struct smcr *eng, const char *key)
{
	struct peer *p = held_off(eng, key);

	if (p == NULL)
		return;
	forget_failures(eng, p);
	peer_settle(eng, p);
}

void
peer_free_all(struct smcr *eng)
{
	LIST_EACH(struct peer, p, &eng->peers, node)
		peer_free(p);
}

/* -- operator requests -- */

static bool
is_meant(const struct peer *p, const uint8_t *addr, const char *key)
{
	if (addr == NULL)
		return true;
	if (p->role == SMCR_CLIENT)
		return strncmp(p->key, key, strlen(key)) == 0;
	return memcmp(p->owner.remote.addr, addr, sizeof(p->owner.remote.addr)) == 0;
}

struct smcr_retried
smcr_retry(struct smcr *eng, const uint8_t addr[16], const char *key)
{
	struct smcr_retried done = { 0 };

	LIST_EACH(struct peer, p, &eng->peers, node) {
		if (!is_meant(p, addr, key))
			continue;
		done.peers += held_until_ns(eng, p) > eng->now_ns || p->sctp_until_ns > eng->now_ns;
		forget_failures(eng, p);
		p->sctp_until_ns = 0;
		p->sctp_failed = false;
		peer_settle(eng, p);
	}
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		if ((addr != NULL && memcmp(lgr->owner.remote.addr, addr, sizeof(lgr->owner.remote.addr)) != 0) ||
		    lgr->state != LGR_ACTIVE || !timer_armed(&lgr->add_retry))
			continue;
		llc_ask_now(lgr);
		done.links++;
	}
	return done;
}
