/* Granted elements and tickets of a group; see grant.h. */
#include "smcr/data/grant.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/link_tx.h"
#include "smcr/data/rmb.h"
#include "smcr/data/window.h"
#include "smcr/state/engine.h"

#define GRANTS_FIRST 8  /* doubles when a client has used all */
#define GRANTS_PINNED 2 /* where a device pins the memory */
#define TICKETS_MAX 64  /* of a group; a new one replaces the oldest */
#define S (1000 * MS)
#define TICKET_NS (300 * S)        /* client: time since the last rendezvous; a server allows more */
#define TICKET_SERVER_NS (360 * S) /* for its clock, and for what is in flight */
#define PAUSE_NS (10 * S)          /* after a refusal */
#define SPREAD_NS (3600 * S)       /* after a sign of a balancer */

bool
grant_is_on(const struct lgr *lgr)
{
	return lgr->dialect.opens && (engine_features(lgr->eng) & CLC_FEATURE_OPEN) != 0;
}

/* -- server -- */

static struct smcr_conn *
new_spare(struct lgr *lgr, const struct smcr_open *want)
{
	struct smcr *eng = lgr->eng;
	/* Spare ones leave room for connections that somebody waits for. */
	struct rmb *rmb = LIST_FIND(struct rmb, r, &lgr->rmbs, node,
	    r->state == RMB_CONFIRMED && r->elem_size == want->elem_size && r->elem_cnt - r->used > r->elem_cnt / 4);
	struct smcr_conn *conn = NULL;
	int err;

	if (rmb != NULL && eng->conns.used < eng->conns.max / 4 * 3)
		conn = conn_new(eng, want, &err);
	if (conn == NULL)
		return NULL;
	conn->rmb = rmb;
	conn->elem_idx = rmb_elem_get_from(rmb);
	rmb->spare++;
	conn->over_link = true;
	conn_set_state(conn, CONN_SPARE);
	list_push(&lgr->spares, &conn->lgr_node);
	lgr->spare_cnt++;
	return conn;
}

/* No longer spare. */
static void
remove_spare(struct lgr *lgr, struct smcr_conn *conn)
{
	list_remove(&conn->lgr_node);
	lgr->spare_cnt -= lgr->spare_cnt > 0;
	conn->rmb->spare--;
}

static void
drop_spare(struct lgr *lgr, struct smcr_conn *conn)
{
	remove_spare(lgr, conn);
	rmb_elem_put(conn->rmb, conn->elem_idx);
	conn->rmb = NULL;
	conn->released = conn->reported = true; /* nobody knows it */
	conn_end(conn, SMCR_OK, "", false);
}

void
grant_fill(struct lgr *lgr, uint32_t elem_size)
{
	struct smcr_open want = { .role = SMCR_SERVER, .elem_size = elem_size };
	unsigned most = window_is_pinned(lgr) ? GRANTS_PINNED : max_u32(lgr->spare_aim, GRANTS_FIRST);
	/* Few at a time, so that a burst of the client finds most of them. */
	unsigned used = max_u32(most / 8, min_u32(most, GRANTS_FIRST) / 2);
	struct link *link = lgr_pick_link(lgr);

	if (!grant_is_on(lgr) || lgr->state != LGR_ACTIVE || lgr->end_wanted || quarantine_is_full(lgr) ||
	    link == NULL || lgr->spare_cnt > most - used)
		return;
	while (lgr->spare_cnt < most) {
		struct smcr_conn *spare[OPEN_GRANT_ELEMS];
		struct open_msg msg = { .type = OPEN_GRANT };

		for (; msg.cnt < OPEN_GRANT_ELEMS && lgr->spare_cnt < most; msg.cnt++) {
			struct smcr_conn *conn = spare[msg.cnt] = new_spare(lgr, &want);
			if (conn == NULL)
				break;
			msg.granted[msg.cnt] = conn_open_elem(conn, link);
		}
		if (msg.cnt > 0 && link_send_open(link, &msg) == 0)
			continue;
		for (unsigned i = 0; i < msg.cnt; i++)
			drop_spare(lgr, spare[i]);
		return;
	}
}

struct smcr_conn *
grant_take_spare(struct lgr *lgr, uint32_t token, unsigned left)
{
	struct smcr_conn *conn = LIST_FIND(struct smcr_conn, c, &lgr->spares, lgr_node, c->id == token);

	if (conn == NULL)
		return NULL;
	remove_spare(lgr, conn);
	/* As many as it opens within a round trip and a turn of both ends. */
	if (left == 0)
		lgr->spare_aim = min_u32(2 * max_u32(lgr->spare_aim, GRANTS_FIRST), GRANTS_MAX);
	conn_set_state(conn, CONN_RENDEZVOUS);
	return conn;
}

void
grant_in_doubt(struct lgr *lgr)
{
	unsigned cnt = 0;

	LIST_FOREACH(n, &lgr->spares)
		cnt++;
	if (cnt <= GRANTS_MAX)
		lgr->spare_cnt = 0;
}

void
grant_end_rmb(struct rmb *rmb)
{
	struct smcr_conn *conn;

	while (rmb->spare > 0 &&
	    (conn = LIST_FIND(struct smcr_conn, c, &rmb->lgr->spares, lgr_node, c->rmb == rmb)) != NULL)
		drop_spare(rmb->lgr, conn);
}

void
grant_end(struct lgr *lgr)
{
	struct smcr_conn *conn;

	while ((conn = LIST_FIRST(struct smcr_conn, &lgr->spares, lgr_node)) != NULL)
		drop_spare(lgr, conn);
	lgr->grant_cnt = 0;
	free(lgr->tickets);
	lgr->tickets = NULL;
	lgr->ticket_cnt = 0;
}

/* -- client -- */

void
grant_add(struct link *link, const struct open_msg *msg)
{
	struct lgr *lgr = link->lgr;

	for (const struct open_elem *e = msg->granted; e < msg->granted + msg->cnt; e++) {
		const struct remote_rmb *rr = remote_rmb_find(lgr, link, e->rkey, &e->vaddr);

		lgr->eng->ctr.llc_ignored += rr == NULL;
		if (rr != NULL && lgr->grant_cnt < GRANTS_MAX) /* a server of another version may grant more */
			lgr->grants[lgr->grant_cnt++] = (struct grant){ e->token, rr->number, e->idx, e->size_code };
	}
}

struct remote_rmb *
grant_take(struct lgr *lgr, const struct link *link, struct grant *out)
{
	while (lgr->grant_cnt > 0) {
		*out = lgr->grants[--lgr->grant_cnt]; /* last in, first out, as for warm pages */
		struct remote_rmb *rr = LIST_FIND(
		    struct remote_rmb, r, &lgr->remote_rmbs, node, r->number == out->remote_rmb);

		if (rr != NULL && rr->on[link->slot].known)
			return rr;
	}
	return NULL;
}

/* -- tickets -- */

/* A client's have a key, a scope and a destination, a server's a number alone. */
static struct ticket *
ticket_find(const struct lgr *lgr, uint32_t nr, const char *key, const struct smcr_open *open)
{
	for (struct ticket *t = lgr->tickets; t < lgr->tickets + lgr->ticket_cnt; t++)
		if (strcmp(t->key, key) == 0 &&
		    (key[0] != '\0' ? memcmp(&t->scope, &open->scope, sizeof(t->scope)) == 0 &&
		                clc_dest_same(&t->dest, &open->dest)
		                    : t->nr == nr))
			return t;
	return NULL;
}

static struct ticket *
new_ticket(struct lgr *lgr)
{
	struct ticket *oldest = lgr->tickets;

	if (lgr->ticket_cnt < TICKETS_MAX) {
		struct ticket *more = realloc(lgr->tickets, (lgr->ticket_cnt + 1) * sizeof(*more));

		if (more == NULL)
			return NULL;
		lgr->tickets = more;
		return &more[lgr->ticket_cnt++];
	}
	for (struct ticket *t = lgr->tickets; t < lgr->tickets + lgr->ticket_cnt; t++)
		if (t->at_ns < oldest->at_ns)
			oldest = t;
	return oldest;
}

/* Behind a balancer a key leads to several hosts, to and fro. A link leads to one: each connection needs its rendezvous.
 * Another number without a way back is a daemon that was replaced, whose ticket ends. */
static bool
leads_elsewhere(
    const struct lgr *lgr, uint32_t nr, const struct ticket *was, const char *key, const struct smcr_open *open)
{
	bool elsewhere = false;

	LIST_EACH(struct lgr, other, &lgr->eng->lgrs, node) {
		struct ticket *t = key[0] != '\0' && other != lgr && other->role == SMCR_CLIENT
		    ? ticket_find(other, 0, key, open)
		    : NULL;

		if (t == NULL || t->nr == nr || t->nr == 0)
			continue;
		elsewhere = elsewhere || (was != NULL && t->at_ns > was->at_ns);
		t->nr = 0;
	}
	return elsewhere;
}

void
ticket_put(struct lgr *lgr, uint32_t nr, const char *key, const struct smcr_open *open, bool uses_client)
{
	int64_t now_ns = lgr->eng->now_ns;
	struct ticket *t = ticket_find(lgr, nr, key, open);
	bool spread = leads_elsewhere(lgr, nr, t, key, open);

	if (t == NULL && (t = new_ticket(lgr)) != NULL) {
		*t = (struct ticket){ .at_ns = now_ns };
		strcpy(t->key, key);
	}
	if (t == NULL)
		return; /* no memory: each connection has its rendezvous */
	t->nr = nr;
	t->at_ns = now_ns;
	t->scope = open->scope;
	t->dest = open->dest;
	t->uses_client = uses_client;
	if (spread)
		t->pause_ns = now_ns + SPREAD_NS;
}

const struct ticket *
ticket_for(const struct lgr *lgr, const struct smcr_open *open)
{
	const struct ticket *t = ticket_find(lgr, 0, open->peer_key, open);
	int64_t now_ns = lgr->eng->now_ns;

	return t != NULL && t->nr != 0 && now_ns - t->at_ns < TICKET_NS && now_ns >= t->pause_ns ? t : NULL;
}

bool
ticket_is_valid(const struct lgr *lgr, uint32_t nr)
{
	const struct ticket *t = ticket_find(lgr, nr, "", NULL);

	return t != NULL && lgr->eng->now_ns - t->at_ns < TICKET_SERVER_NS;
}

struct smcr_scope
ticket_scope(const struct lgr *lgr, uint32_t nr)
{
	const struct ticket *t = lgr != NULL ? ticket_find(lgr, nr, "", NULL) : NULL;

	return t != NULL ? t->scope : (struct smcr_scope){ { 0 } };
}

void
ticket_refused(struct lgr *lgr, uint32_t nr)
{
	for (struct ticket *t = lgr->tickets; t < lgr->tickets + lgr->ticket_cnt; t++)
		if (t->nr == nr) {
			t->nr = 0;
			t->pause_ns = max_i64(t->pause_ns, lgr->eng->now_ns + PAUSE_NS);
		}
}
