/* Runs a plan; see scenario.h. */
#include "tests/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "tests/scenario/check.h"
#include "tests/scenario/fault.h"
#include "tests/scenario/host.h"
#include "tests/scenario/hostile.h"
#include "tests/scenario/script_run.h"
#include "tests/scenario/trace.h"
#include "tests/scenario/watch.h"

struct scenario {
	const struct plan *plan;
	struct world w;
	struct sim_fabric *fab;
	struct trace *trace;
	struct host host[PLAN_HOSTS_MAX];
	struct flow *flow; /* flows, then one prewarm a client host */
	unsigned flow_cnt;
	struct faults faults;
	struct script_run script;
	struct watch watch;
	struct liar liar; /* of a hostile run */
};

/* Hosts that are judged. */
static unsigned
honest_hosts(const struct plan *p)
{
	return p->hosts - (p->hostile != 0);
}

/* -- fabric hooks -- */

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	struct scenario *s = ctx;

	if (s->plan->hostile != 0 && dev->ctx == s->host[LIAR_HOST].eng)
		return;
	world_fail(&s->w, "%s: breach of the device contract: %s", rnic_query((struct rnic_dev *)dev).name, what);
}

static bool
on_peer_lies(void *ctx, const struct rnic_gid *peer)
{
	(void)ctx;
	return peer->b[15] == LIAR_HOST + 1; /* as host.c gives them */
}

static enum sim_fate
on_message(void *ctx, const struct sim_msg *msg)
{
	struct scenario *s = ctx;

	enum sim_fate f = faults_message(&s->faults, msg);

	return f == SIM_DELIVER && s->plan->script != NULL ? script_message(&s->script, msg) : f;
}

static bool
on_tamper(void *ctx, struct sim_forgery *f)
{
	return liar_tampers(&((struct scenario *)ctx)->liar, f);
}

static void
on_placed(void *ctx, const struct rnic_dev *from, struct rnic_qp *to, const uint8_t *ptr, size_t len)
{
	hostile_placed(((struct scenario *)ctx)->host, from, to, ptr, len);
}

static void
on_sim_log(void *ctx, int64_t now_ns, const char *line)
{
	struct scenario *s = ctx;

	(void)now_ns;
	world_log(&s->w, "  sim %s", line);
}

static struct sim_fabric *
make_fabric(struct scenario *s)
{
	const struct plan *p = s->plan;
	struct sim_config cfg;

	sim_config_init(&cfg);
	cfg.seed = rng_u64(&s->w.rng);
	cfg.delay_min_ns = p->rdma_delay_us * US;
	cfg.delay_max_ns = (p->rdma_delay_us + p->rdma_spread_us) * US;
	cfg.ack_max_ns = p->ack_us * US;
	cfg.fence_ns = p->confirm_ms * MS;
	cfg.retry_ns = p->retry_ms * MS;
	cfg.connect_ns = p->connect_ms * MS;
	cfg.credit_bytes = p->room_kb * 1024;
	cfg.tear_percent = p->tear_percent;
	cfg.early_percent = p->early_percent;
	cfg.unplaced_percent = p->unplaced_percent;
	cfg.enomem_per_mille = p->enomem_per_mille;
	cfg.cut = (enum sim_cut)p->late_cut;
	cfg.end_ns = p->end_ms * MS;
	cfg.no_deny = p->no_deny != 0;
	cfg.ctx = s;
	cfg.breach = on_breach;
	cfg.filter = on_message;
	if (world_listens(&s->w) || p->script != NULL)
		cfg.log = on_sim_log;
	if (p->hostile != 0) {
		cfg.peer_lies = on_peer_lies;
		cfg.tamper = on_tamper;
		cfg.placed = on_placed;
	}
	return sim_fabric_new(&cfg);
}

/* -- flows -- */

static void
start_flow(struct flow *f)
{
	struct scenario *s = f->owner;
	struct host *h = &s->host[f->from];

	if (f->prewarm)
		host_prewarm(h, f);
	else
		app_connect(&f->client, host_client(h, f, (struct stcp_user){ .wake = app_wake, .arg = &f->client }));
}

static void
make_flows(struct scenario *s)
{
	const struct plan *p = s->plan;
	/* To Linux nothing can say that no application is behind it. */
	unsigned extra = p->prewarm != 0 && p->af_smc == 0 ? p->hosts - 1 : 0;

	s->flow = must_calloc(p->flows + extra, sizeof(*s->flow));
	s->flow_cnt = p->flows + extra;
	for (unsigned i = 0; i < p->hosts; i++) {
		s->host[i].flows = s->flow;
		s->host[i].flow_cnt = s->flow_cnt;
	}
	for (unsigned i = 0; i < s->flow_cnt; i++) {
		struct flow *f = &s->flow[i];

		flow_init(f, &s->w, p, i);
		f->start = start_flow;
		f->owner = s;
		if (i >= p->flows) {
			f->prewarm = true;
			f->start_ns = 0;
			f->to = 0;
			f->from = 1 + i - p->flows;
		}
		f->hostile = hostile_flow(f);
		world_arm(&s->w, &f->timer, f->start_ns);
	}
}

static bool
half_over(const struct flow *f, int i)
{
	return f->half[i].ended || !f->half[i].opened;
}

static bool
all_over(const struct scenario *s)
{
	for (unsigned i = 0; i < s->flow_cnt; i++)
		if (!flow_over(&s->flow[i]) || !half_over(&s->flow[i], 0) || !half_over(&s->flow[i], 1))
			return false;
	return true;
}

/* -- the run -- */

/* One step of virtual time: false when nothing is left to happen before until_ns. */
static bool
step(struct scenario *s, int64_t until_ns)
{
	int64_t a = timerq_next(&s->w.timers), b = sim_next(s->fab), at = a < b ? a : b;

	if (at > until_ns) {
		s->w.now_ns = until_ns;
		return false;
	}
	s->w.now_ns = at;
	sim_run(s->fab, at);
	timerq_run(&s->w.timers, at);
	for (unsigned i = 0; i < s->plan->hosts; i++)
		host_check_device(&s->host[i]);
	return true;
}

static void
run_for(struct scenario *s, int64_t ns)
{
	int64_t until = s->w.now_ns + ns;

	while (s->w.fail_cnt < 50 && step(s, until))
		;
}

static void
run_flows(struct scenario *s)
{
	int64_t limit = s->plan->limit_ms * MS;
	unsigned n = 0;

	while (s->w.fail_cnt < 50 && step(s, limit))
		if (++n % 16 == 0 && all_over(s))
			break;
	if (!all_over(s))
		check_stuck(&s->w, s->flow, s->flow_cnt, s->host);
}

/* Connections may be waiting for their peer's last word after the TCP legs are closed. */
static int64_t
settle_ns(const struct plan *p)
{
	uint32_t ms = p->close_ms > p->abort_ms ? p->close_ms : p->abort_ms;

	return (ms + p->llc_ms * 2 + p->retry_ms + p->keepalive_answer_ms + p->last_link_ms + 1000) * MS;
}

static bool
all_idle(const struct scenario *s)
{
	for (unsigned i = 0; i < honest_hosts(s->plan); i++)
		if (!smcr_idle(s->host[i].eng))
			return false;
	return true;
}

/* Groups end: by an order, or unused. */
static void
end_groups(struct scenario *s)
{
	int64_t until = s->w.now_ns + settle_ns(s->plan) + (s->plan->group_idle_ms + 20000) * MS;

	for (unsigned i = 0; s->plan->drain == 1 && i < honest_hosts(s->plan); i++) {
		smcr_set_now(s->host[i].eng, s->w.now_ns);
		smcr_drain(s->host[i].eng, true);
		host_wake(&s->host[i]);
	}
	while (!all_idle(s) && s->w.fail_cnt < 50 && step(s, until))
		;
	for (unsigned i = 0; i < honest_hosts(s->plan); i++)
		if (!smcr_idle(s->host[i].eng))
			world_fail(&s->w, "host%u: groups do not end %s", i,
			    s->plan->drain == 1 ? "after draining" : "though they are unused");
}

/* The liar's time, and its end; what is left is the honest hosts'. */
static void
meet_liar(struct scenario *s)
{
	liar_start(&s->liar, &s->w, s->plan, &s->host[LIAR_HOST]);
	for (unsigned i = 0; i < s->plan->hosts; i++)
		s->host[i].liar = &s->liar;
	run_for(s, s->plan->talk_ms * MS);
	if (s->plan->silent_ms > 0) {
		liar_falls_silent(&s->liar, s->w.now_ns + s->plan->silent_ms * MS);
		run_for(s, s->plan->silent_ms * MS);
	}
	liar_ends(&s->liar);
}

static void
collect(const struct scenario *s, struct scenario_stats *st)
{
	*st = (struct scenario_stats){
		.flows = s->plan->flows, .messages = s->faults.messages, .virtual_ms = (uint64_t)(s->w.now_ns / MS)
	};
	for (unsigned i = 0; i < s->plan->flows; i++) {
		const struct flow *f = &s->flow[i];
		bool ok = f->client.state == APP_DONE && f->server_app.state == APP_DONE;

		st->ok += ok;
		st->reset += !ok;
		st->smcr += f->half[0].established;
		st->fallback += f->half[0].fallback;
	}
	for (unsigned i = 0; i < honest_hosts(s->plan); i++) {
		const struct smcr_counters *c = smcr_counters(s->host[i].eng);

		st->turns += s->host[i].turns;
		st->groups += c->first_contacts;
		st->rmbs += c->rmbs_made;
		st->writes += c->writes;
		st->cdc += c->cdc_sent;
		st->llc += c->llc_sent;
		st->failovers += c->failovers;
		st->moved += c->conns_moved;
		st->replayed += c->conns_replayed;
		st->lost += c->failover_lost;
	}
}

/* An exchange may be under way at any time; and what broke in silence, only a test of the link finds out. */
static void
agree(struct scenario *s)
{
	const struct plan *p = s->plan;
	int64_t until = s->w.now_ns +
	    (2 * p->keepalive_ms + 2 * p->keepalive_answer_ms + p->last_link_ms + 4 * p->llc_ms + 30000) * MS;
	char why[WHY_LEN] = "";

	if (plan_faulty(p) && p->keepalive_ms == 0)
		return;
	while (!check_agreement(s->host, honest_hosts(p), why) && s->w.now_ns < until)
		run_for(s, 100 * MS);
	if (s->w.now_ns >= until)
		world_fail(&s->w, "the engines do not come to agree: %s", why);
}

static void
judge(struct scenario *s, const struct scenario_stats *st)
{
	for (unsigned i = 0; i < s->flow_cnt; i++)
		check_flow(&s->flow[i]);
	if (s->w.fail_cnt > 0)
		return;
	run_for(s, settle_ns(s->plan));
	check_quiet(s->host, honest_hosts(s->plan));
	agree(s);
	if (s->plan->script != NULL) {
		script_note_links(&s->script);
		script_judge(&s->script, st);
	}
	if (s->plan->drain != 0)
		end_groups(s);
}

static void
scenario_fini(struct scenario *s)
{
	watch_stop(&s->watch);
	if (s->plan->hostile != 0)
		liar_stop(&s->liar);
	for (unsigned i = 0; i < s->plan->hosts; i++)
		host_fini(&s->host[i]);
	check_memory(&s->w, s->fab);
	for (unsigned i = 0; i < s->flow_cnt; i++)
		flow_fini(&s->flow[i]);
	faults_stop(&s->faults);
	if (s->plan->script != NULL)
		script_stop(&s->script);
	free(s->flow);
	sim_fabric_free(s->fab);
	trace_free(s->trace);
	world_fini(&s->w);
}

unsigned
scenario_run(const struct plan *p, FILE *log, char *text, size_t cap, struct scenario_stats *st)
{
	struct scenario *s = must_calloc(1, sizeof(*s));

	s->plan = p;
	world_init(&s->w, plan_mix(~p->seed), log);
	s->fab = make_fabric(s);
	s->trace = trace_new(&s->w, p);
	for (unsigned i = 0; i < p->hosts; i++)
		host_init(&s->host[i], &s->w, p, s->fab, s->trace, s->host, i);
	trace_set_hosts(s->trace, s->host);
	make_flows(s);
	faults_start(&s->faults, &s->w, p, s->fab, s->host, s->flow);
	if (p->script != NULL) {
		script_start(&s->script, p->script, &s->w, &s->faults);
		trace_set_script(s->trace, &s->script);
	}
	watch_start(&s->watch, &s->w, p, s->host, s->flow, s->flow_cnt);
	if (p->hostile != 0)
		meet_liar(s);
	run_flows(s);
	collect(s, st);
	judge(s, st);
	scenario_fini(s);
	unsigned fails = s->w.fail_cnt;
	snprintf(text, cap, "%s", s->w.first_fail);
	free(s);
	return fails;
}
