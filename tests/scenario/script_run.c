/* Rules that fire and expectations that are met, or not; see script.h. */
#include "tests/scenario/script_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "wire/cdc.h"

/* -- events -- */

static bool
is_message(const struct script_event *ev, enum script_event_kind kind, unsigned host, int link, enum rnic_wr_op op,
    const uint8_t *data, size_t len)
{
	struct llc_msg llc;
	struct cdc_msg cdc;
	struct span in = { data, len };

	if (ev->kind != kind || ev->host != host || (ev->link >= 0 && ev->link != link))
		return false;
	if (op == RNIC_WR_WRITE || ev->msg == SCRIPT_WRITE)
		return op == RNIC_WR_WRITE && ev->msg == SCRIPT_WRITE;
	if (ev->msg == SCRIPT_CDC)
		return cdc_decode(in, &cdc) > 0 && (!ev->failover || (cdc.prod_flags & CDC_FAILOVER) != 0);
	return len > 0 && data[0] != CDC_TYPE && llc_decode(in, llc_version_of(in), &llc) > 0 && llc.type == ev->llc &&
	    (ev->response < 0 || llc.response == (ev->response == 1));
}

/* The event happened (again): true when that makes it the one that is meant. */
static bool
happened(struct script_event *ev)
{
	return ++ev->seen == ev->nth;
}

static void
soon(struct script_run *s)
{
	world_arm(s->w, &s->timer, s->w->now_ns);
}

/* Lines of the log come from anywhere, engine included: what follows is done a little later. */
static void
on_line(void *ctx, const char *text)
{
	struct script_run *s = ctx;

	for (unsigned i = 0; i < s->s.rule_cnt; i++) {
		struct script_rule *r = &s->s.rule[i];

		if (!r->fired && r->when.kind == EVENT_LINE && strstr(text, r->when.text) != NULL &&
		    happened(&r->when)) {
			r->fired = r->due = true;
			soon(s);
		}
		if (r->until.kind == EVENT_LINE && strstr(text, r->until.text) != NULL && happened(&r->until))
			r->over = true;
	}
	for (unsigned i = 0; i < s->s.expect_cnt; i++)
		if (s->s.expect[i].kind == EXPECT_LINE && strstr(text, s->s.expect[i].what) != NULL)
			s->s.expect[i].got++;
}

/* -- actions -- */

static bool
find_link(const struct host *h, uint8_t number, struct smcr_link_info *out)
{
	for (uint32_t pos = 0; smcr_link_next(h->eng, &pos, out);)
		if (out->number == number)
			return true;
	return false;
}

static void
break_link(struct script_run *s, const struct script_rule *r)
{
	const struct host *h = &s->faults->hosts[r->host];
	struct smcr_link_info l;
	struct rnic_dev *dev = find_link(h, r->link, &l) ? host_dev_of(h, &l.gid) : NULL;

	if (dev == NULL)
		world_fail(s->w, "the script breaks link %u of host%u, which is not there", r->link, r->host);
	else
		fault_break(s->faults, dev, l.qpn, r->cut);
}

static void
operate(struct script_run *s, const struct script_rule *r)
{
	struct host *h = &s->faults->hosts[r->host];
	struct smcr_link_info l;
	int rc;

	smcr_set_now(h->eng, s->w->now_ns);
	if (r->act == ACT_REBALANCE)
		rc = smcr_rebalance(h->eng, 0);
	else
		rc = find_link(h, r->link, &l) ? smcr_link_delete(h->eng, l.group_id, r->link) : -1;
	world_log(
	    s->w, "script: host%u %s: %d", r->host, r->act == ACT_REBALANCE ? "rebalances" : "deletes a link", rc);
	host_wake(h);
}

static void
act(struct script_run *s, struct script_rule *r)
{
	switch (r->act) {
	case ACT_BREAK:
		break_link(s, r);
		break;
	case ACT_FAULT:
		if (r->until_ns != 0) {
			fault_end(s->faults, &r->fault);
			break;
		}
		fault_begin(s->faults, &r->fault);
		r->until_ns = s->w->now_ns + r->fault.for_ms * MS;
		break;
	case ACT_REBALANCE:
	case ACT_DELETE_LINK:
		operate(s, r);
		break;
	case ACT_FATE:
	case ACT_HOLD_UNTIL:
	case ACT_HOLD_FOR:
		break;
	}
}

/* When the timer has to look again. */
static void
rearm(struct script_run *s)
{
	int64_t at = INT64_MAX;

	for (unsigned i = 0; i < s->s.rule_cnt; i++) {
		const struct script_rule *r = &s->s.rule[i];
		int64_t t = INT64_MAX;

		if (r->due)
			t = s->w->now_ns;
		else if (!r->fired && r->when.kind == EVENT_TIME)
			t = r->when.ms * MS;
		else if (r->act == ACT_FAULT && r->until_ns > 0)
			t = r->until_ns;
		at = t < at ? t : at;
	}
	if (at != INT64_MAX)
		world_arm(s->w, &s->timer, at);
}

static void
timer_fired(struct timer *t)
{
	struct script_run *s = CONTAINER_OF(t, struct script_run, timer);

	for (unsigned i = 0; i < s->s.rule_cnt; i++) {
		struct script_rule *r = &s->s.rule[i];

		if (!r->fired && r->when.kind == EVENT_TIME && r->when.ms * MS <= s->w->now_ns)
			r->fired = r->due = true;
		if (r->due) {
			r->due = false;
			act(s, r);
		} else if (r->act == ACT_FAULT && r->until_ns > 0 && r->until_ns <= s->w->now_ns) {
			act(s, r);
			r->until_ns = -1;
		}
	}
	rearm(s);
}

/* -- messages -- */

static unsigned
host_of(const struct script_run *s, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < s->faults->plan->hosts; i++)
		for (unsigned k = 0; k < s->faults->hosts[i].dev_cnt; k++)
			if (s->faults->hosts[i].dev[k].dev == dev)
				return i;
	return PLAN_HOSTS_MAX;
}

static int
link_number(const struct host *h, uint32_t qpn)
{
	struct smcr_link_info l;

	for (uint32_t pos = 0; smcr_link_next(h->eng, &pos, &l);)
		if (l.qpn == qpn)
			return l.number;
	return -1;
}

static bool
still_held(struct script_run *s, const struct script_rule *r)
{
	return r->act == ACT_HOLD_FOR ? s->w->now_ns < r->until_ns : !r->over;
}

static enum sim_fate
rule_hits(struct script_run *s, struct script_rule *r, const struct sim_msg *msg)
{
	world_log(
	    s->w, "script: rule %u meets message %llu", (unsigned)(r - s->s.rule) + 1, (unsigned long long)msg->nr);
	r->fired = true;
	if (r->act == ACT_FATE) {
		fault_message(s->faults, msg, r->fate);
		return r->fate;
	}
	if (r->act == ACT_HOLD_UNTIL || r->act == ACT_HOLD_FOR) {
		r->until_ns = s->w->now_ns + r->ms * MS;
		return SIM_HOLD;
	}
	r->due = true;
	soon(s);
	return SIM_DELIVER;
}

enum sim_fate
script_message(struct script_run *s, const struct sim_msg *msg)
{
	unsigned host = host_of(s, msg->from);
	enum sim_fate f = SIM_DELIVER;
	int link = host < PLAN_HOSTS_MAX ? link_number(&s->faults->hosts[host], msg->qpn) : -1;

	for (unsigned i = 0; i < s->s.rule_cnt; i++) {
		struct script_rule *r = &s->s.rule[i];

		if (r->held == msg->data) {
			if (still_held(s, r))
				return SIM_HOLD;
			r->held = NULL;
			continue;
		}
		if (r->until.kind == EVENT_ARRIVES &&
		    is_message(&r->until, EVENT_ARRIVES, host, link, msg->op, msg->data, msg->len) &&
		    happened(&r->until))
			r->over = true;
		if (f != SIM_DELIVER || r->fired ||
		    !is_message(&r->when, EVENT_ARRIVES, host, link, msg->op, msg->data, msg->len) ||
		    !happened(&r->when))
			continue;
		f = rule_hits(s, r, msg);
		if (f == SIM_HOLD)
			r->held = msg->data;
	}
	return f;
}

void
script_sent(struct script_run *s, unsigned host, const struct smcr_trace *m)
{
	if (!m->sent || m->kind == SMCR_TRACE_CLC)
		return;
	for (unsigned i = 0; i < s->s.rule_cnt; i++) {
		struct script_rule *r = &s->s.rule[i];

		if (!r->fired && is_message(&r->when, EVENT_SENT, host, m->link, RNIC_WR_SEND, m->msg, m->len) &&
		    happened(&r->when)) {
			r->fired = r->due = true;
			soon(s);
		}
		if (is_message(&r->until, EVENT_SENT, host, m->link, RNIC_WR_SEND, m->msg, m->len) &&
		    happened(&r->until))
			r->over = true;
	}
}

/* -- the verdict -- */

/* A counter by its name in smcr.h. */
static uint64_t
counter(const struct smcr_counters *c, const char *name, bool *known)
{
	static const struct {
		const char *name;
		size_t off;
	} names[] = {
#define C(x) { #x, offsetof(struct smcr_counters, x) }
		C(established_client),
		C(established_server),
		C(fallback_local),
		C(fallback_peer),
		C(fallback_held_off),
		C(closed_ok),
		C(closed_reset),
		C(first_contacts),
		C(first_contacts_failed),
		C(sctp_shunned),
		C(groups_deleted),
		C(links_up),
		C(links_down),
		C(links_lost),
		C(rmbs_made),
		C(rmbs_deleted),
		C(elems_reused),
		C(elems_quarantined),
		C(elem_conflicts),
		C(bad_clc),
		C(bad_llc),
		C(bad_cdc),
		C(cdc_unknown),
		C(cdc_stale),
		C(llc_ignored),
		C(llc_timeouts),
		C(clc_timeouts),
		C(writer_blocked),
		C(test_links),
		C(out_of_sync),
		C(failovers),
		C(conns_moved),
		C(conns_replayed),
		C(bytes_replayed),
		C(failover_validations),
		C(failover_lost),
		C(started_over),
		C(links_added),
		C(add_link_rejected),
		C(add_link_failed),
		C(add_link_retries),
		C(delete_link_resent),
		C(rkey_retries),
		C(llc_collisions),
		C(llc_limited),
		C(asymmetric_replaced),
		C(rebalanced),
		C(refused_memory),
#undef C
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, name) == 0)
			return *(const uint64_t *)(const void *)((const char *)c + names[i].off);
	*known = false;
	return 0;
}

static uint64_t
figure(const struct scenario_stats *st, const char *name)
{
	return strcmp(name, "well") == 0  ? st->ok
	    : strcmp(name, "reset") == 0  ? st->reset
	    : strcmp(name, "smcr") == 0   ? st->smcr
	    : strcmp(name, "groups") == 0 ? st->groups
	                                  : st->fallback;
}

static bool
met(const struct script_expect *x)
{
	return *x->op == '>' ? x->got >= x->value : *x->op == '<' ? x->got <= x->value : x->got == x->value;
}

static uint64_t
active_links(const struct host *h)
{
	struct smcr_link_info l;
	uint64_t cnt = 0;

	for (uint32_t pos = 0; smcr_link_next(h->eng, &pos, &l);)
		cnt += strcmp(l.state, "active") == 0;
	return cnt;
}

void
script_note_links(struct script_run *s)
{
	for (unsigned i = 0; i < s->s.expect_cnt; i++) {
		struct script_expect *x = &s->s.expect[i];

		if (x->kind == EXPECT_LINKS)
			x->got = active_links(&s->faults->hosts[x->host]);
	}
}

void
script_judge(struct script_run *s, const struct scenario_stats *st)
{
	bool known = true;

	for (unsigned i = 0; i < s->s.rule_cnt; i++)
		if (!s->s.rule[i].fired)
			world_fail(s->w, "rule %u of the script was never used", i + 1);
		else if (s->s.rule[i].act == ACT_HOLD_UNTIL && !s->s.rule[i].over)
			world_fail(s->w, "rule %u of the script never let its message go", i + 1);
	for (unsigned i = 0; i < s->s.expect_cnt; i++) {
		struct script_expect *x = &s->s.expect[i];

		if (x->kind == EXPECT_STAT)
			x->got = figure(st, x->what);
		for (unsigned h = 0; x->kind == EXPECT_COUNTER && h < s->faults->plan->hosts; h++)
			if (x->host < 0 || x->host == (int)h)
				x->got += counter(smcr_counters(s->faults->hosts[h].eng), x->what, &known);
		if (!known)
			world_fail(s->w, "the script expects something of %s, which is no counter", x->what);
		else if (!met(x))
			world_fail(s->w, "expected: %s%s %s %llu; it is %llu", x->kind == EXPECT_LINKS ? "links" : "",
			    x->what, x->op, (unsigned long long)x->value, (unsigned long long)x->got);
	}
}

void
script_start(struct script_run *s, const struct script *sc, struct world *w, struct faults *faults)
{
	*s = (struct script_run){ .s = *sc, .w = w, .faults = faults };
	world_timer_init(w, &s->timer, timer_fired);
	w->line = on_line;
	w->line_ctx = s;
	if (*s->s.excuse != '\0')
		world_excuse(w, s->s.excuse);
	rearm(s);
}

void
script_stop(struct script_run *s)
{
	s->w->line = NULL;
	world_timer_fini(s->w, &s->timer);
}
