/* Checks after the run; see check.h. */
#include "tests/scenario/check.h"

#include <string.h>

#include "smcr/state/conn.h"
#include "tests/unit/smcr_help.h"

static bool
asked_for_it(const struct flow *f)
{
	return f->refuse || f->killed || f->client.state == APP_ABORTED || f->client.state == APP_LEFT ||
	    f->server_app.state == APP_ABORTED || f->server_app.state == APP_LEFT;
}

static void
check_well(const struct flow *f, const struct app *a)
{
	const struct app *b = a->server ? &f->client : &f->server_app;

	if (a->got != b->sent || b->sent != b->total)
		world_fail(f->w, "flow %u: the %s is done with %llu of %llu bytes", f->nr,
		    a->server ? "server" : "client", (unsigned long long)a->got, (unsigned long long)b->total);
	if (!f->read_as_clc && b->urgent_cnt > 0 && a->urgent_last != b->urgent[b->urgent_cnt - 1] + 1)
		world_fail(f->w, "flow %u: the last urgent byte, %llu, did not reach the %s as urgent", f->nr,
		    (unsigned long long)b->urgent[b->urgent_cnt - 1], a->server ? "server" : "client");
}

/* What one has sent before it reset the connection has come before the reset. Some systems discard what they have not read. */
static void
check_before_reset(const struct flow *f, const struct app *from, const struct app *to)
{
	if (from->state != APP_ABORTED || to->state != APP_RESET || f->plan->rst_discards || f->killed ||
	    f->w->excuse != NULL || to->got == from->sent)
		return;
	world_fail(f->w, "flow %u: the %s got %llu of %llu bytes that were sent before a reset", f->nr,
	    to->server ? "server" : "client", (unsigned long long)to->got, (unsigned long long)from->sent);
}

static bool
was_cut(const struct app *a)
{
	return a->state == APP_RESET || a->state == APP_REFUSED || a->state == APP_ABORTED || a->state == APP_LEFT ||
	    a->state == APP_NONE;
}

static void
check_reasons(const struct flow *f)
{
	for (int i = 0; i < 2; i++) {
		const struct flow_half *h = &f->half[i];

		if (h->closed && !h->fallback && h->reset && h->reason == SMCR_OK)
			world_fail(f->w, "flow %u %s: reset without a reason", f->nr, i == 0 ? "ingress" : "egress");
	}
	/* Where a link breaks under the last messages of first contact the sides cannot agree: resets, checked below. */
	if (plan_faulty(f->plan))
		return;
	if (f->half[0].established && f->half[1].fallback)
		world_fail(f->w, "flow %u: established at the ingress, fallen back at the egress", f->nr);
	if (f->half[1].established && f->half[0].fallback)
		world_fail(f->w, "flow %u: established at the egress, fallen back at the ingress", f->nr);
}

void
check_flow(const struct flow *f)
{
	const struct app *c = &f->client, *s = &f->server_app;

	if (f->hostile)
		return;
	check_reasons(f);
	if (f->prewarm)
		return;
	if (c->state == APP_DONE)
		check_well(f, c);
	if (s->state == APP_DONE)
		check_well(f, s);
	if (c->state == APP_DONE && s->state == APP_DONE)
		return;
	if (!asked_for_it(f) && f->w->excuse == NULL)
		world_fail(f->w,
		    "flow %u ended badly though nothing went wrong that has to hurt: client %s, server %s; ingress: %s (%s), "
		    "egress: %s (%s)",
		    f->nr, app_state_str(c->state), app_state_str(s->state), smcr_reason_str(f->half[0].reason),
		    f->half[0].detail != NULL ? f->half[0].detail : "", smcr_reason_str(f->half[1].reason),
		    f->half[1].detail != NULL ? f->half[1].detail : "");
	check_before_reset(f, c, s);
	check_before_reset(f, s, c);
	/* An application that saw a good end saw all bytes (checked above); the other one must not believe so. */
	if (c->state != APP_DONE && !was_cut(c))
		world_fail(
		    f->w, "flow %u: client %s, server %s", f->nr, app_state_str(c->state), app_state_str(s->state));
	if (s->state != APP_DONE && !was_cut(s))
		world_fail(
		    f->w, "flow %u: client %s, server %s", f->nr, app_state_str(c->state), app_state_str(s->state));
}

void
check_stuck(struct world *w, const struct flow *flows, unsigned cnt, const struct host *hosts)
{
	unsigned host_cnt = hosts[0].plan->hosts - (hosts[0].plan->hostile != 0);

	for (unsigned i = 0; i < cnt; i++) {
		const struct flow *f = &flows[i];

		if (flow_over(f) && (f->half[0].ended || !f->half[0].opened) &&
		    (f->half[1].ended || !f->half[1].opened))
			continue;
		world_fail(w,
		    "flow %u is stuck: client %s (sent %llu of %llu, got %llu), server %s (sent %llu of %llu, "
		    "got %llu), ingress %s, egress %s",
		    f->nr, app_state_str(f->client.state), (unsigned long long)f->client.sent,
		    (unsigned long long)f->client.total, (unsigned long long)f->client.got,
		    app_state_str(f->server_app.state), (unsigned long long)f->server_app.sent,
		    (unsigned long long)f->server_app.total, (unsigned long long)f->server_app.got,
		    f->half[0].ended ? "ended" : "not ended", f->half[1].ended ? "ended" : "not ended");
	}
	for (unsigned h = 0; h < host_cnt; h++) {
		struct smcr_conn_info ci;

		for (uint32_t pos = 0; smcr_conn_next(hosts[h].eng, &pos, &ci);)
			world_log(w,
			    "host%u conn %08x %s group %u: written %llu sent %llu consumed %llu, produced %llu "
			    "consumed %llu%s%s",
			    h, ci.id, ci.state, ci.group_id, (unsigned long long)ci.tx_written,
			    (unsigned long long)ci.tx_sent, (unsigned long long)ci.tx_consumed,
			    (unsigned long long)ci.rx_produced, (unsigned long long)ci.rx_consumed,
			    ci.writer_blocked ? " writer blocked" : "", ci.peer_blocked ? " peer blocked" : "");
	}
}

static bool
find_link(const struct host *h, uint32_t qpn, struct smcr_link_info *out)
{
	for (uint32_t pos = 0; smcr_link_next(h->eng, &pos, out);)
		if (out->qpn == qpn)
			return true;
	return false;
}

static bool
find_group(const struct host *h, uint32_t id, struct smcr_group_info *out)
{
	for (uint32_t pos = 0; smcr_group_next(h->eng, &pos, out);)
		if (out->id == id)
			return true;
	return false;
}

/* A link and its other end; the groups that they belong to: true, or what is wrong in why. */
static bool
link_agrees(
    const struct host *hosts, unsigned cnt, const struct host *h, const struct smcr_link_info *l, char why[WHY_LEN])
{
	const struct host *p = NULL;
	struct smcr_link_info pl;
	struct smcr_group_info g, pg;

	if (hosts_dev_of(hosts, cnt, &l->peer_gid, &p) == NULL || !find_link(p, l->peer_qpn, &pl)) {
		snprintf(why, WHY_LEN, "host%u: link %u of group %u (%s) is unknown to its peer", h->nr, l->number,
		    l->group_id, l->state);
		return false;
	}
	snprintf(why, WHY_LEN, "host%u: link %u (%s, mtu %u) of group %u is link %u (%s, mtu %u) at host%u", h->nr,
	    l->number, l->state, l->mtu_code, l->group_id, pl.number, pl.state, pl.mtu_code, p->nr);
	if (pl.peer_qpn != l->qpn || pl.number != l->number || strcmp(pl.state, l->state) != 0 ||
	    strcmp(l->state, "active") != 0 || pl.user_id != l->peer_user_id || pl.mtu_code != l->mtu_code)
		return false;
	if (!find_group(h, l->group_id, &g) || !find_group(p, pl.group_id, &pg))
		return false;
	snprintf(why, WHY_LEN,
	    "host%u group %u (%s, %u links, %u RMBs, %u of the peer) and host%u group %u (%s, %u links, "
	    "%u RMBs, %u of the peer) differ",
	    h->nr, g.id, g.state, g.link_cnt, g.rmb_cnt, g.peer_rmb_cnt, p->nr, pg.id, pg.state, pg.link_cnt,
	    pg.rmb_cnt, pg.peer_rmb_cnt);
	return g.role != pg.role && g.rfc_cursors == pg.rfc_cursors && g.link_cnt == pg.link_cnt &&
	    g.rmb_cnt == pg.peer_rmb_cnt && g.peer_rmb_cnt == pg.rmb_cnt && strcmp(g.state, pg.state) == 0;
}

bool
check_agreement(const struct host *hosts, unsigned cnt, char why[WHY_LEN])
{
	for (unsigned i = 0; i < cnt; i++) {
		struct smcr_link_info l;

		for (uint32_t pos = 0; smcr_link_next(hosts[i].eng, &pos, &l);)
			if (!link_agrees(hosts, cnt, &hosts[i], &l, why))
				return false;
	}
	return true;
}

void
check_quiet(const struct host *hosts, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		const struct host *h = &hosts[i];
		struct smcr_group_info g;
		struct smcr_rmb_info r;
		struct smcr_conn_info c;

		for (uint32_t pos = 0; smcr_group_next(h->eng, &pos, &g);)
			if (g.conn_cnt != 0)
				world_fail(h->w, "host%u: group %u still has %u connections", h->nr, g.id, g.conn_cnt);
		for (uint32_t pos = 0; smcr_rmb_next(h->eng, &pos, &r);)
			if (r.used != r.quarantined || (r.quarantined > 0 && !plan_aborts(h->plan)))
				world_fail(h->w, "host%u: %s RMB %u of group %u has %u elements in use, %u quarantined",
				    h->nr, r.remote ? "remote" : "local", r.number, r.group_id, r.used, r.quarantined);
		for (uint32_t pos = 0; smcr_conn_next(h->eng, &pos, &c);)
			if (strcmp(c.state, conn_states[CONN_SPARE].name) != 0) /* these end with their group */
				world_fail(h->w, "host%u: connection %08x is still there (%s)", h->nr, c.id, c.state);
	}
}

void
check_memory(struct world *w, const struct sim_fabric *fab)
{
	struct sim_live live;

	sim_live(fab, &live);
	if (live.pd + live.mr + live.qp > 0)
		world_fail(w, "left behind: %u protection domains, %u memory regions, %u queue pairs", live.pd, live.mr,
		    live.qp);
}
