/* Doing harm; see fault.h. */
#include "tests/scenario/fault.h"

#include <string.h>

#include "base/list.h"
#include "tests/scenario/oom.h"
#include "wire/cdc.h"

/* -- possible victims -- */

static bool
same_gid(const struct rnic_gid *a, const struct rnic_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool
ends_at(const struct smcr_link_info *l, const struct rnic_gid *gid, uint32_t qpn)
{
	return (same_gid(&l->gid, gid) && (qpn == 0 || l->qpn == qpn)) ||
	    (same_gid(&l->peer_gid, gid) && (qpn == 0 || l->peer_qpn == qpn));
}

/* Both engines use it, and nothing is wrong with it. */
static bool
works(const struct host *hosts, unsigned cnt, const struct smcr_link_info *l)
{
	const struct host *peer;
	const struct rnic_dev *dev = hosts_dev_of(hosts, cnt, &l->gid, &peer);
	struct smcr_link_info p;

	if (strcmp(l->state, "active") != 0 || dev == NULL || !sim_intact(dev, l->qpn))
		return false;
	if (hosts_dev_of(hosts, cnt, &l->peer_gid, &peer) == NULL)
		return false;
	for (uint32_t pos = 0; smcr_link_next(peer->eng, &pos, &p);)
		if (p.qpn == l->peer_qpn && p.peer_qpn == l->qpn)
			return strcmp(p.state, "active") == 0;
	return false;
}

bool
fault_is_survivable(const struct host *hosts, unsigned cnt, const struct rnic_dev *dev, uint32_t qpn)
{
	struct rnic_info info = rnic_query((struct rnic_dev *)(uintptr_t)dev);
	struct smcr_group_info g;
	struct smcr_link_info l;

	for (unsigned i = 0; i < cnt; i++)
		for (uint32_t gpos = 0; smcr_group_next(hosts[i].eng, &gpos, &g);) {
			bool hit = false, left = false;

			for (uint32_t pos = 0; smcr_link_next(hosts[i].eng, &pos, &l);) {
				if (l.group_id != g.id)
					continue;
				if (ends_at(&l, &info.gid, qpn))
					hit = true;
				else if (works(hosts, cnt, &l))
					left = true;
			}
			if (hit && !left)
				return false;
		}
	return true;
}

static void
hits_device(struct faults *s, const struct rnic_dev *dev)
{
	if (dev != NULL && !fault_is_survivable(s->hosts, s->plan->hosts, dev, 0))
		world_excuse(s->w, "a device fails that a group depends on");
}

static void
hits_link(struct faults *s, const struct rnic_dev *dev, uint32_t qpn)
{
	if (!fault_is_survivable(s->hosts, s->plan->hosts, dev, qpn))
		world_excuse(s->w, "the only link of a group breaks");
}

/* The shortest time limit of an answer. */
static uint32_t
patience_ms(const struct plan *p)
{
	uint32_t ms = p->llc_ms < p->keepalive_answer_ms ? p->llc_ms : p->keepalive_answer_ms;

	return ms < p->confirm_link_ms ? ms : p->confirm_link_ms;
}

/* -- faults at their times -- */

void
fault_break(struct faults *s, struct rnic_dev *dev, uint32_t qpn, enum sim_cut cut)
{
	hits_link(s, dev, qpn);
	(void)sim_break_qp(dev, qpn, cut);
}

static void
break_link(struct faults *s, uint32_t how)
{
	struct rnic_dev *dev;
	uint32_t qpn;

	if (!sim_nth_qp(s->fab, (uint32_t)world_draw(s->w, 0, 1000), &dev, &qpn))
		return;
	fault_break(s, dev, qpn, (enum sim_cut)(how % 3));
}

void
fault_begin(struct faults *s, const struct plan_fault *f)
{
	struct host *h = &s->hosts[f->host % s->plan->hosts];
	struct host_dev *hd = &h->dev[h->dev_cnt > 0 ? f->arg % h->dev_cnt : 0];
	struct flow *victim = &s->flows[f->arg % s->plan->flows];

	world_log(s->w, "fault %s host%u arg %u for %u ms", plan_fault_str(f->kind), h->nr, f->arg, f->for_ms);
	switch (f->kind) {
	case FAULT_BREAK:
		break_link(s, f->arg);
		break;
	case FAULT_PORT:
		hits_device(s, hd->dev);
		if (hd->dev != NULL)
			sim_port(hd->dev, RNIC_PORT_DOWN);
		break;
	case FAULT_FREEZE:
		hits_device(s, hd->dev);
		if (hd->dev != NULL)
			sim_freeze(hd->dev, true);
		hd->frozen = hd->dev != NULL;
		break;
	case FAULT_GONE:
		hits_device(s, hd->dev);
		host_unplug(hd, s->w->now_ns + f->for_ms * MS);
		break;
	case FAULT_STALL:
		world_excuse(s->w, "a process stands still");
		host_stall(h, s->w->now_ns + f->for_ms * MS);
		break;
	case FAULT_KILL:
		if (victim->middle != NULL && stcp_state(victim->middle) == STCP_OPEN) {
			victim->killed = true;
			stcp_kill(victim->middle);
		}
		break;
	case FAULT_BLOCK:
		if (hd->dev != NULL)
			sim_block_connect(hd->dev, true);
		break;
	case FAULT_WITHHOLD:
		/* A send queue that stays full lets no LLC message through. */
		if (2 * f->for_ms >= patience_ms(s->plan))
			world_excuse(s->w, "completions take longer than an answer is awaited");
		if (hd->dev != NULL)
			sim_withhold(hd->dev, true);
		break;
	case FAULT_OOM:
		world_excuse(s->w, "memory runs out");
		oom_arm(f->arg, f->for_ms);
		break;
	case FAULT_RESTART:
		world_excuse(s->w, "a process ends");
		host_restart(h);
		break;
	case FAULT_DRAIN:
		world_excuse(s->w, "a host drains");
		smcr_set_now(h->eng, s->w->now_ns);
		smcr_drain(h->eng, true);
		host_wake(h);
		break;
	case FAULT_NONE:
	case FAULT_FATE:
	case FAULT_HOLD:
	case FAULT_KIND_CNT:
		break;
	}
}

void
fault_end(struct faults *s, const struct plan_fault *f)
{
	struct host *h = &s->hosts[f->host % s->plan->hosts];
	struct host_dev *hd = &h->dev[h->dev_cnt > 0 ? f->arg % h->dev_cnt : 0];
	struct rnic_dev *dev = hd->dev;

	if (f->kind == FAULT_FREEZE)
		hd->frozen = false;
	if (dev == NULL)
		return;
	if (f->kind == FAULT_PORT)
		sim_port(dev, RNIC_PORT_UP);
	else if (f->kind == FAULT_FREEZE)
		sim_freeze(dev, false);
	else if (f->kind == FAULT_BLOCK)
		sim_block_connect(dev, false);
	else if (f->kind == FAULT_WITHHOLD)
		sim_withhold(dev, false);
}

static void
fault_fire(struct timer *t)
{
	struct fault_timer *ft = CONTAINER_OF(t, struct fault_timer, timer);

	if (ft->undo) {
		fault_end(ft->all, &ft->f);
		return;
	}
	ft->undo = true;
	fault_begin(ft->all, &ft->f);
	world_arm(ft->all->w, t, ft->all->w->now_ns + ft->f.for_ms * MS);
}

void
faults_start(struct faults *s, struct world *w, const struct plan *p, struct sim_fabric *fab, struct host *hosts,
    struct flow *flows)
{
	*s = (struct faults){ .w = w, .plan = p, .fab = fab, .hosts = hosts, .flows = flows };
	if (p->enomem_per_mille > 0)
		world_excuse(w, "memory runs out");
	if (p->conns_max < PLAN_FLOWS_MAX)
		world_excuse(w, "connections are limited");
	for (unsigned i = 0; i < p->fault_cnt; i++) {
		struct fault_timer *ft = &s->timer[i];

		ft->all = s;
		ft->f = p->fault[i];
		world_timer_init(w, &ft->timer, fault_fire);
		if (ft->f.kind != FAULT_FATE && ft->f.kind != FAULT_HOLD)
			world_arm(w, &ft->timer, ft->f.at_ms * MS);
	}
}

void
faults_stop(struct faults *s)
{
	oom_disarm();
	for (unsigned i = 0; i < s->plan->fault_cnt; i++)
		world_timer_fini(s->w, &s->timer[i].timer);
}

/* -- messages -- */

/* The next LLC message, once the time of such a fault has come, is held back for a while. */
static bool
hold_back(struct faults *s, uint64_t nr)
{
	for (unsigned i = 0; i < s->plan->fault_cnt; i++) {
		struct fault_timer *ft = &s->timer[i];

		if (ft->f.kind != FAULT_HOLD || s->w->now_ns < ft->f.at_ms * MS)
			continue;
		if (ft->held_nr == 0) {
			ft->held_nr = nr;
			ft->held_until_ns = s->w->now_ns + ft->f.for_ms * MS;
			if (2 * ft->f.for_ms >= patience_ms(s->plan))
				world_excuse(s->w, "a message takes longer than its answer is awaited");
			world_log(s->w, "fault hold: message %llu", (unsigned long long)nr);
		}
		if (ft->held_nr == nr && s->w->now_ns < ft->held_until_ns)
			return true;
	}
	return false;
}

void
fault_message(struct faults *s, const struct sim_msg *msg, enum sim_fate fate)
{
	hits_link(s, msg->from, msg->qpn);
	if (fate != SIM_GHOST)
		return;
	s->w->lossy = true;
	world_excuse(s->w, "data is lost that an adapter has acknowledged");
}

static enum sim_fate
fate_of(struct faults *s, const struct sim_msg *msg)
{
	for (unsigned i = 0; i < s->plan->fault_cnt; i++) {
		const struct plan_fault *f = &s->plan->fault[i];

		if (f->kind != FAULT_FATE || f->arg != msg->nr)
			continue;
		fault_message(s, msg, (enum sim_fate)f->for_ms);
		return (enum sim_fate)f->for_ms;
	}
	return SIM_DELIVER;
}

enum sim_fate
faults_message(struct faults *s, const struct sim_msg *msg)
{
	enum sim_fate f = fate_of(s, msg);

	s->messages = msg->nr;
	if (f == SIM_DELIVER && msg->op == RNIC_WR_SEND && msg->len > 0 && msg->data[0] != CDC_TYPE &&
	    hold_back(s, msg->nr))
		f = SIM_HOLD;
	return f;
}
