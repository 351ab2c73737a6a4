/* A daemon process in virtual time; see host.h. */
#include "tests/scenario/host.h"

#include <stdlib.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/state/engine.h"
#include "tests/scenario/hostile.h"
#include "tests/scenario/oom.h"
#include "tests/scenario/session.h"
#include "tests/scenario/trace.h"
#include "tests/scenario/watch.h"
#include "tests/seeded_rng.h"
#include "tests/unit/smcr_help.h"

#define ROUNDS_MAX 64  /* of events in one turn */
#define SPIN_MAX 20000 /* turns without a pause in virtual time */

void
host_wake(struct host *h)
{
	int64_t at = h->w->now_ns + world_draw(h->w, 0, h->plan->jitter_us) * US;

	if (world_chance(h->w, h->plan->stall_per_mille))
		at += world_draw(h->w, 0, h->plan->stall_us) * US;
	if (at < h->stalled_until_ns)
		at = h->stalled_until_ns;
	if (!timer_armed(&h->turn) || h->turn.at_ns > at)
		world_arm(h->w, &h->turn, at);
}

static bool
dev_ready(const struct host *h)
{
	/* Those that were unplugged and have not ended yet, too. */
	LIST_EACH(const struct rnic_dev, dev, &h->eng->devices, node)
		if (sim_ready(dev))
			return true;
	return false;
}

void
host_check_device(struct host *h)
{
	if (!h->ended && dev_ready(h))
		host_wake(h);
}

struct rnic_dev *
host_first_dev(const struct host *h)
{
	for (unsigned i = 0; i < h->dev_cnt; i++)
		if (h->dev[i].dev != NULL)
			return h->dev[i].dev;
	return NULL;
}

struct rnic_dev *
host_dev_of(const struct host *h, const struct rnic_gid *gid)
{
	for (unsigned i = 0; i < h->dev_cnt; i++)
		if (h->dev[i].dev != NULL) {
			struct rnic_info info = rnic_query(h->dev[i].dev);

			if (memcmp(&info.gid, gid, sizeof(*gid)) == 0)
				return h->dev[i].dev;
		}
	return NULL;
}

struct rnic_dev *
hosts_dev_of(const struct host *hosts, unsigned cnt, const struct rnic_gid *gid, const struct host **of)
{
	for (unsigned i = 0; i < cnt; i++) {
		struct rnic_dev *dev = host_dev_of(&hosts[i], gid);

		if (dev != NULL) {
			*of = &hosts[i];
			return dev;
		}
	}
	return NULL;
}

void
host_stall(struct host *h, int64_t until_ns)
{
	h->stalled_until_ns = until_ns;
	world_arm(h->w, &h->turn, until_ns);
}

static void
run_sessions(struct host *h)
{
	struct list_node now, *n;

	/* Sessions that become dirty meanwhile wait for the next turn. */
	list_init(&now);
	while ((n = list_pop(&h->dirty)) != NULL)
		list_push(&now, n);
	while ((n = list_pop(&now)) != NULL)
		session_io(CONTAINER_OF(n, struct session, dirty));
}

static void
run_events(struct host *h)
{
	struct smcr_conn *c;
	unsigned events;

	for (int i = 0; i < ROUNDS_MAX * PLAN_FLOWS_MAX && (c = smcr_next_event(h->eng, &events)) != NULL; i++) {
		struct session *s = smcr_app(c) != NULL ? smcr_app(c) : session_opened(h, c);

		if (s != NULL)
			session_event(s, events);
	}
}

static void
drain_log(struct host *h)
{
	static const char *const names[SMCR_LOG_TYPE_CNT] = {
		[SMCR_LOG_GROUP_UP] = "group up",
		[SMCR_LOG_GROUP_DOWN] = "group down",
		[SMCR_LOG_LINK_UP] = "link up",
		[SMCR_LOG_LINK_ENDED] = "link ended",
		[SMCR_LOG_LINK_DOWN] = "link down",
		[SMCR_LOG_LINK_SILENT] = "link silent",
		[SMCR_LOG_LINK_ANSWERS] = "link answers",
		[SMCR_LOG_HELD_OFF] = "held off",
		[SMCR_LOG_HELD_LONGER] = "held longer",
		[SMCR_LOG_HOLD_OVER] = "hold over",
		[SMCR_LOG_SCTP_SHUNNED] = "sctp held off",
		[SMCR_LOG_REFUSED] = "refused",
		[SMCR_LOG_PROTOCOL] = "protocol",
		[SMCR_LOG_DEVICE] = "device",
		[SMCR_LOG_STATE] = "state",
		[SMCR_LOG_OVERRUN] = "log overrun",
	};
	struct smcr_log l;

	while (smcr_next_log(h->eng, &l)) {
		world_log(h->w, "host%u engine: %s, group %u link %u peer %s %s", h->nr, names[l.type], l.group_id,
		    l.link, l.peer, l.text);
		if (l.type == SMCR_LOG_PROTOCOL && hostile_judges(h, l.group_id) &&
		    !(h->w->lossy && strcmp(l.text, "data lost in a failover") == 0))
			world_fail(
			    h->w, "host%u: the engine calls its peer's message a protocol error: %s", h->nr, l.text);
	}
}

static void
free_dead(struct host *h)
{
	LIST_FOREACH(n, &h->sessions) {
		struct session *s = CONTAINER_OF(n, struct session, node);

		if (s->mode == SESSION_DEAD)
			session_free(s);
	}
}

/* When the next turn has to be. */
static void
plan_turn(struct host *h, bool more)
{
	int64_t now = h->w->now_ns, at = smcr_deadline(h->eng);

	h->quiet = !more && list_empty(&h->dirty) && !dev_ready(h);
	h->idle_turns = at > now && h->quiet ? 0 : h->idle_turns + 1;
	if (h->idle_turns == SPIN_MAX)
		world_fail(h->w, "host%u: the engine spins: deadline %lld ns from now, more %d", h->nr,
		    (long long)(at - now), more);
	if (more || !list_empty(&h->dirty) || at <= now)
		at = now + US;
	if (dev_ready(h))
		host_wake(h);
	if (at != INT64_MAX && (!timer_armed(&h->turn) || h->turn.at_ns > at))
		world_arm(h->w, &h->turn, at);
}

static void
turn_fire(struct timer *t)
{
	struct host *h = CONTAINER_OF(t, struct host, turn);

	if (h->ended)
		return;
	if (h->w->now_ns < h->stalled_until_ns) {
		world_arm(h->w, t, h->stalled_until_ns);
		return;
	}
	h->turns++;
	smcr_set_now(h->eng, h->w->now_ns);
	if (world_chance(h->w, 500))
		run_sessions(h);
	smcr_poll(h->eng, h->w->now_ns);
	run_events(h);
	run_sessions(h);
	run_events(h);
	bool more = smcr_flush(h->eng);
	hostile_look(h);
	drain_log(h);
	if (h->turns % 16 == 0)
		watch_groups(h);
	free_dead(h);
	plan_turn(h, more);
}

/* -- devices -- */

static void
plug(struct host_dev *hd)
{
	struct host *h = hd->h;
	enum rnic_transport transport = plan_transport(h->plan, h->nr, (unsigned)(hd - h->dev));
	char name[16];

	/* A process that starts again finds those that there were. */
	if (hd->dev == NULL)
		hd->made = h->dev_made++;
	snprintf(name, sizeof(name), "host%u.%u", h->nr, hd->made);
	hd->dev = sim_dev_at(h->fab, name, transport, h->nr, hd->made, hd->made);
	if ((h->plan->vlans >> (PLAN_DEVS_MAX * h->nr + (unsigned)(hd - h->dev)) & 1) != 0)
		sim_vlan(hd->dev, 7);
	if (h->plan->af_smc == 1 || (h->plan->af_smc == AF_SMC_BOTH && (hd - h->dev) % 2 == 1))
		sim_gid_type(hd->dev, RNIC_GID_ROCE_V1);
	if (h->plan->max_qp != 0)
		sim_max_qp(hd->dev, h->plan->max_qp);
	if (smcr_add_device(h->eng, hd->dev) != 0)
		world_fail(h->w, "host%u: no device", h->nr);
}

static void
back_fire(struct timer *t)
{
	struct host_dev *hd = CONTAINER_OF(t, struct host_dev, back);

	smcr_set_now(hd->h->eng, hd->h->w->now_ns);
	plug(hd);
	host_wake(hd->h);
}

void
host_unplug(struct host_dev *hd, int64_t back_ns)
{
	struct host *h = hd->h;

	if (hd->dev == NULL)
		return;
	if (world_chance(h->w, 500))
		sim_gone(hd->dev);
	smcr_set_now(h->eng, h->w->now_ns);
	smcr_remove_device(h->eng, hd->dev);
	run_events(h); /* of what had arrived */
	hd->dev = NULL;
	hd->frozen = false;
	host_wake(h);
	if (back_ns != INT64_MAX)
		world_arm(h->w, &hd->back, back_ns);
}

/* -- listeners -- */

static bool
ingress_accept(void *arg, struct stcp_end *e, void *tag, struct stcp_user *user)
{
	if (((struct host *)arg)->ended)
		return false;
	*user = (struct stcp_user){ .wake = session_wake, .arg = session_ingress(arg, tag, e) };
	return true;
}

static bool
egress_accept(void *arg, struct stcp_end *e, void *tag, struct stcp_user *user)
{
	if (((struct host *)arg)->ended)
		return false;
	*user = (struct stcp_user){ .wake = session_wake, .arg = session_egress(arg, tag, e) };
	return true;
}

/* The server application of the flow. */
static bool
server_accept(void *arg, struct stcp_end *e, void *tag, struct stcp_user *user)
{
	struct flow *f = tag;

	(void)arg;
	if (f->refuse)
		return false;
	if (f->twice)
		app_again(&f->server_app);
	app_connect(&f->server_app, e);
	*user = (struct stcp_user){ .wake = app_wake, .arg = &f->server_app };
	return true;
}

struct stcp_end *
host_client(struct host *h, struct flow *f, struct stcp_user user)
{
	return stcp_connect(h->w, &h->app_net, &h->ingress, f, user);
}

void
host_prewarm(struct host *h, struct flow *f)
{
	if (!h->ended)
		session_ingress(h, f, NULL);
}

/* -- set-up -- */

static void
engine_config(const struct plan *p, unsigned nr, struct smcr_config *cfg)
{
	smcr_config_init(cfg);
	cfg->conns_max = p->conns_max;
	cfg->conns_per_group = p->conns_per_group;
	cfg->rmb_elems = p->rmb_elems;
	cfg->sndbuf_size = p->auto_windows != 0 ? 0 : p->sndbuf_kb * 1024;
	cfg->sq_depth = p->sq_depth;
	cfg->rq_depth = p->rq_depth;
	cfg->links_max = (p->links_one >> nr & 1) != 0 ? 1 : p->links_max;
	cfg->rfc_cursors = (p->rfc_cursors >> nr & 1) != 0;
	if ((p->no_start_over >> nr & 1) != 0)
		cfg->features &= (uint8_t)~CLC_FEATURE_START_OVER;
	cfg->smc_version = p->af_smc >= AF_SMC_BOTH ? 0 : (uint8_t)p->af_smc;
	cfg->ueid_cnt = p->af_smc >= 2;
	memset(&cfg->ueids[0], 'U', sizeof(cfg->ueids[0]));
#define COPY(name) cfg->name = p->name
	COPY(clc_ms);
	COPY(llc_ms);
	COPY(confirm_link_ms);
	COPY(add_link_ms);
	COPY(add_link_retry_ms);
	COPY(add_link_retry_max_ms);
	COPY(keepalive_ms);
	COPY(keepalive_answer_ms);
	COPY(last_link_ms);
	COPY(group_idle_ms);
	COPY(rmb_idle_ms);
	COPY(close_ms);
	COPY(abort_ms);
	COPY(fin_grace_ms);
	COPY(holdoff_ms);
	COPY(holdoff_max_ms);
#undef COPY
	if (p->hostile == 0) {
		/* Out of the way: small groups make many, and one that ends to make room may be offered at that moment. */
		cfg->groups_per_addr = UINT16_MAX;
		return;
	}
	cfg->quarantine_max = p->quarantine_max;
	cfg->groups_per_addr = (uint16_t)p->groups_per_addr;
	if (p->rmb_kb != 0)
		cfg->rmb_bytes_max = p->rmb_kb * 1024ull;
}

struct smcr_subnet
host_subnet(const struct host *h)
{
	return (struct smcr_subnet){ .addr = { 10, 0, (uint8_t)(h->plan->other_subnet >> h->nr & 1), 0 },
		.prefix_len = 24 };
}

/* A server names addresses of its own host alone, as a peer list of the daemon would have it. */
static bool
may_dial(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	(void)ctx;
	return to->b[15] == middle->addr[15];
}

static void
start_engine(struct host *h)
{
	struct smcr_config cfg;

	engine_config(h->plan, h->nr, &cfg);
	h->eng = smcr_new(&cfg, &h->rng, h->w->now_ns);
	if (h->eng == NULL)
		abort();
	smcr_set_dial_policy(h->eng, may_dial, NULL);
	struct smcr_subnet net = host_subnet(h);
	if (h->plan->far_middle != 0)
		smcr_set_networks(h->eng, &net, 1);
	if (h->lies && h->plan->liar_id > 0) /* another host's: two peers with one id */
		memcpy(h->eng->peer_id, h->all[h->plan->liar_id - 1].eng->peer_id, sizeof(h->eng->peer_id));
	h->bounds = (struct bounds){ 0 };
	trace_attach(h->trace, h->nr, h->eng);
}

void
host_init(struct host *h, struct world *w, const struct plan *p, struct sim_fabric *fab, struct trace *trace,
    struct host *all, unsigned nr)
{
	*h = (struct host){ .w = w, .plan = p, .fab = fab, .trace = trace, .all = all, .nr = nr };
	h->lies = p->hostile != 0 && nr == LIAR_HOST;
	rng_init_seeded(&h->rng, rng_u64(&w->rng));
	start_engine(h);
	list_init(&h->sessions);
	list_init(&h->dirty);
	world_timer_init(w, &h->turn, turn_fire);
	h->ingress = (struct stcp_listener){ .accept = ingress_accept, .arg = h };
	h->egress = (struct stcp_listener){ .accept = egress_accept, .arg = h };
	h->server = (struct stcp_listener){ .accept = server_accept, .arg = h };
	h->mid_net = (struct stcp_net){ .delay_min_ns = p->tcp_delay_us * US,
		.delay_max_ns = (p->tcp_delay_us + p->tcp_spread_us) * US,
		.window = p->tcp_window_kb * 1024,
		.segment = p->tcp_segment,
		.rst_discards = p->rst_discards != 0 };
	h->app_net = h->mid_net;
	h->app_net.delay_min_ns /= 4;
	h->app_net.delay_max_ns /= 4;
	h->dev_cnt = (p->no_device >> nr & 1) != 0 ? 0 : plan_devs(p, nr);
	for (unsigned i = 0; i < h->dev_cnt; i++) {
		h->dev[i].h = h;
		world_timer_init(w, &h->dev[i].back, back_fire);
		plug(&h->dev[i]);
	}
}

static void
end_process(struct host *h)
{
	LIST_FOREACH(n, &h->sessions)
		session_free(CONTAINER_OF(n, struct session, node));
	while (h->eng->dev_cnt > 0)
		smcr_remove_device(h->eng, h->eng->devs[0]);
	sim_end_all(h->fab);
	smcr_poll(h->eng, h->w->now_ns);
	(void)smcr_flush(h->eng);
	smcr_free(h->eng);
	h->eng = NULL;
}

void
host_restart(struct host *h)
{
	oom_disarm(); /* a process that cannot even start is of no interest */
	end_process(h);
	trace_forget(h->trace, h->nr);
	start_engine(h);
	for (unsigned i = 0; i < h->dev_cnt; i++)
		if (h->dev[i].dev != NULL)
			plug(&h->dev[i]);
	host_wake(h);
}

void
host_end(struct host *h)
{
	if (h->ended)
		return;
	end_process(h);
	for (unsigned i = 0; i < h->dev_cnt; i++) {
		h->dev[i].dev = NULL;
		timer_cancel(&h->w->timers, &h->dev[i].back);
	}
	timer_cancel(&h->w->timers, &h->turn);
	h->ended = true;
}

void
host_fini(struct host *h)
{
	host_end(h);
	for (unsigned i = 0; i < h->dev_cnt; i++)
		world_timer_fini(h->w, &h->dev[i].back);
	world_timer_fini(h->w, &h->turn);
}
